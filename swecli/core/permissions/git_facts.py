"""Whether git would run a program that a repository chose: its configuration, hooks and submodules.

Read-only git commands start programs for the file system monitor, external diff, textconv, clean filters,
signatures, lazy fetches and the hook after an index refresh; submodules bring a configuration of their own. So
only keys that are known to be harmless are accepted, and only in a repository that is where one expects it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from swecli.core.permissions.paths import inside

_HEADER = re.compile(r'\s*\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\][ \t]*(.*)')
_VARIABLE = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")
_MAX_BYTES = 1_000_000
_MAX_INDEX = 64_000_000
_LINK_MODE = b"\x00\x00\xe0\x00"
"""Mode 160000 as the index stores it: a submodule."""


@dataclass(frozen=True, slots=True)
class _Harmless:
    environment: frozenset[str]
    environment_cat: frozenset[str]
    sections: frozenset[str]
    diff_driver: frozenset[str]
    keys: Mapping[str, frozenset[str]]


@cache
def _harmless_settings() -> _Harmless:
    import tomllib
    from importlib.resources import files

    data = tomllib.loads(files(__package__ or "").joinpath("git_config.toml").read_text(encoding="utf-8"))
    return _Harmless(
        frozenset(data["environment"].split()),
        frozenset(data["environment_cat"].split()),
        frozenset(data["sections"].split()),
        frozenset(data["diff_driver"].split()),
        {section: frozenset(keys.split()) for section, keys in data["keys"].items()},
    )


def git_problem(cwd: str, environment: Mapping[str, str], roots: Sequence[str]) -> str | None:
    """Why git started in ``cwd`` might run something of the repository's choice, show another one's content or wait
    for ever, as a clause; else None."""
    known = _harmless_settings()
    for name, value in environment.items():
        if name.startswith("GIT_") and name not in known.environment:
            if name in known.environment_cat and value in ("", "cat", "true", ":"):
                continue
            return f"{name} is set in the environment"
    try:
        return _repository_problem(Path(cwd), roots)
    except OSError as error:
        return f"the repository can't be examined ({error.strerror})"


def tracked_names(cwd: str) -> tuple[str, ...] | None:
    """The names in the index of the repository that git started in ``cwd`` would use, as text; None where they can't
    be told."""
    try:
        for folder in (Path(cwd), *Path(cwd).parents):
            place = folder / ".git"
            if not os.path.lexists(place):
                continue
            if not stat.S_ISDIR(os.lstat(place).st_mode) or b"sha256" in _read(place / "config").lower().encode():
                return None
            index = place / "index"
            if not os.path.lexists(index):
                return ()
            state = os.stat(index)
            if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_INDEX:
                return None
            return _index_names(index.read_bytes())
    except OSError:
        return None
    return ()


def _index_names(data: bytes) -> tuple[str, ...] | None:
    """The names of an index of version 2 or 3 with SHA-1 (gitformat-index)."""
    if data[:4] != b"DIRC" or int.from_bytes(data[4:8], "big") not in (2, 3):
        return None
    names: list[str] = []
    at = 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        flags = int.from_bytes(data[at + 60 : at + 62], "big")
        start = at + (64 if flags & 0x4000 else 62)
        end = data.find(b"\0", start)
        if end < 0:
            return None
        names.append(data[start:end].decode("utf-8", "replace"))
        at += (end - at) // 8 * 8 + 8
    return tuple(names)


def _repository_problem(cwd: Path, roots: Sequence[str]) -> str | None:
    for folder in (cwd, *cwd.parents):
        place = folder / ".git"
        try:
            mode = os.lstat(place).st_mode
        except (FileNotFoundError, NotADirectoryError):
            if all(os.path.lexists(folder / name) for name in ("HEAD", "objects", "refs")):
                return f"{folder} is laid out as a bare repository"
            continue
        if stat.S_ISREG(mode):
            target = _read(place).strip()
            if not target.startswith("gitdir: "):
                return f"{place} is not understood"
            place = Path(os.path.normpath(folder / target.removeprefix("gitdir: ")))
            if inside(os.path.realpath(place), roots) is None and not _is_work_tree_of(place, folder):
                return f"{folder / '.git'} leads to the repository of another folder"
        elif not stat.S_ISDIR(mode):
            return f"{place} is a link"
        return _directory_problem(place)
    return None


def _is_work_tree_of(place: Path, folder: Path) -> bool:
    """Whether a repository outside knows the folder as one of its work trees: the folder alone could claim any."""
    try:
        back = Path(_read(place / "gitdir").strip())
    except OSError:
        return False
    return os.path.realpath(place / back) == os.path.realpath(folder / ".git")


def _directory_problem(place: Path) -> str | None:
    common = place
    if os.path.lexists(place / "commondir"):
        common = Path(os.path.normpath(place / _read(place / "commondir").strip()))
    if not os.path.lexists(place / "HEAD") or not os.path.lexists(common / "config"):
        return f"{place} is no ordinary repository"
    for file in (place / "HEAD", place / "index", common / "packed-refs"):
        if os.path.lexists(file) and not os.path.isfile(file):
            return f"{file} is no ordinary file"
    for config in dict.fromkeys((common / "config", common / "config.worktree", place / "config.worktree")):
        problem = _config_problem(config)
        if problem is not None:
            return f"{config} {problem}"
    if os.path.lexists(common / "hooks" / "post-index-change"):
        return "the repository has a hook that runs when its index is refreshed"
    return _index_problem(place)


def _config_problem(path: Path) -> str | None:
    if not os.path.lexists(path):
        return None
    section, sub = "", False
    for line in _read(path).removeprefix("\ufeff").split("\n"):
        text = line.strip()
        header = _HEADER.fullmatch(text)
        if header is not None:
            name, dot, _ = header.group(1).lower().partition(".")
            section, sub = name, bool(dot) or header.group(2) is not None
            text = header.group(3).strip()
        if not text or text[0] in "#;":
            continue
        if text.endswith("\\"):
            return "continues over several lines, which is not understood"
        variable = _VARIABLE.fullmatch(text)
        if variable is None or not section:
            return "is not understood"
        key = variable.group(1).lower()
        if not _harmless(section, sub, key):
            return f"sets {section}.{key}, which is not known to be harmless"
    return None


def _harmless(section: str, sub: bool, key: str) -> bool:
    known = _harmless_settings()
    if section == "diff" and sub:
        return key in known.diff_driver
    return section in known.sections or key in known.keys.get(section, ())


def _index_problem(place: Path) -> str | None:
    if any(name.startswith("sharedindex.") for name in os.listdir(place)):
        return "its index is split, which is not understood"
    index = place / "index"
    if not os.path.lexists(index):
        return None
    state = os.stat(index)
    if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_INDEX:
        return "its index is too large to examine"
    if _LINK_MODE in index.read_bytes():
        return "it may have submodules, which bring settings of their own"
    return None


def _read(path: Path) -> str:
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_BYTES:
        raise OSError(0, f"{path.name} is no ordinary file")
    return path.read_bytes().decode("utf-8", "replace")
