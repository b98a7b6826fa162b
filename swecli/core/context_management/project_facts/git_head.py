"""The commit that HEAD is at, from git's own files."""

from __future__ import annotations

from pathlib import Path

from swecli.core.workspace.git_facts import GitFacts
from swecli.core.workspace.text_file import read_bytes

_MAX_PACKED_REFS = 4 * 1024 * 1024


def head_commit(git: GitFacts) -> str:
    """Hash of the newest commit; empty when there is none yet or git's files make no sense."""
    if git.commit is not None:
        return git.commit
    if git.branch is None or ".." in git.branch:
        return ""
    name = f"refs/heads/{git.branch}"
    # A linked work tree keeps its branches in the repository that it belongs to.
    common = _text(git.folder / "commondir").strip()
    folders = [git.folder, *([(git.folder / common).resolve()] if common else [])]
    for folder in folders:
        if commit := _hash(_text(folder / name).strip()):
            return commit
        for line in _text(folder / "packed-refs").splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return _hash(commit)
    return ""


def _text(path: Path) -> str:
    try:
        data, _ = read_bytes(path, _MAX_PACKED_REFS)
    except OSError:
        return ""
    return data.decode("utf-8", "replace")


def _hash(text: str) -> str:
    return text if len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text) else ""
