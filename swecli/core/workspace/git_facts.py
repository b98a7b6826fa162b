"""What git's own files say, read without running git: a repository may name programs that git would run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from swecli.core.workspace.text_file import read_bytes

_LIMIT = 4_096
_MAX_PACKED_REFS = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GitFacts:
    """``root`` is the work tree, ``folder`` its git directory. ``branch`` is None when HEAD is detached, then
    ``commit`` has the hash."""

    root: Path
    folder: Path
    branch: str | None
    commit: str | None


def git_facts(start: Path) -> GitFacts | None:
    """The work tree that ``start`` is in, or None when there is none or its files make no sense."""
    for root in (start, *start.parents):
        folder = _git_folder(root / ".git")
        if folder is None:
            continue
        head = _first_line(folder / "HEAD")
        if head is None:
            return None
        if head.startswith("ref:"):
            name = head.removeprefix("ref:").strip()
            return GitFacts(root, folder, name.removeprefix("refs/heads/"), None)
        return GitFacts(root, folder, None, head if _is_hash(head) else None)
    return None


def head_commit(git: GitFacts) -> str:
    """Hash of the newest commit; empty when there is none yet or git's files make no sense."""
    if git.commit is not None:
        return git.commit
    if git.branch is None or ".." in git.branch:
        return ""
    name = f"refs/heads/{git.branch}"
    # A linked work tree keeps its branches in the repository that it belongs to.
    common = _first_line(git.folder / "commondir")
    for folder in (git.folder, *([(git.folder / common).resolve()] if common else [])):
        if _is_hash(commit := _first_line(folder / name) or ""):
            return commit
        for line in (_text(folder / "packed-refs", _MAX_PACKED_REFS) or "").splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return commit if _is_hash(commit) else ""
    return ""


def _git_folder(entry: Path) -> Path | None:
    if entry.is_dir():
        return entry
    # Work trees and submodules have a file that names the directory.
    line = _first_line(entry)
    if line is None or not line.startswith("gitdir:"):
        return None
    target = Path(line.removeprefix("gitdir:").strip())
    return target if target.is_absolute() else (entry.parent / target).resolve()


def _first_line(path: Path) -> str | None:
    text = _text(path, _LIMIT)
    return None if text is None else text.partition("\n")[0].strip()


def _text(path: Path, limit: int) -> str | None:
    try:
        data, _ = read_bytes(path, limit)
    except OSError:
        return None
    return data.decode("utf-8", "replace")


def _is_hash(text: str) -> bool:
    return len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text)
