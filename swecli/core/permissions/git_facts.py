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
_SETTINGS = re.compile(
    r"(?:^|/)(?:\.git/(?:.*/)?config(?:\.worktree)?|\.git/fetch_head|\.gitmodules|\.gitconfig|git/config)$"
)
_CREDENTIALS = re.compile(
    r"""https?://[^/\s"'@]+@|://[^/\s"'@:]+:[^/\s"'@]+@|extraheader|(?:password|token|secret|apikey)\w*\s*=|\[include""",
    re.IGNORECASE,
)
"""A user's name in a web address, which may be a token, a key that says so, and what is kept in yet another file."""
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


def repository_of(cwd: str) -> str | None:
    """The folder whose ``.git`` git would use in ``cwd``."""
    return next((str(folder) for folder in (Path(cwd), *Path(cwd).parents) if os.path.lexists(folder / ".git")), None)


def tracked_names(cwd: str) -> tuple[str, ...] | None:
    """The names in the index of the repository that git started in ``cwd`` would use, as text; None where they can't
    be told."""
    try:
        folder = repository_of(cwd)
        if folder is None:
            return ()
        place = _git_directory(Path(folder))
        if place is None:
            return None
        index = place / "index"
        if not os.path.lexists(index):
            return ()
        state = os.stat(index)
        if not stat.S_ISREG(state.st_mode) or state.st_size > _MAX_INDEX:
            return None
        wide = "sha256" in _read(_common(place) / "config").lower()
        return _index_names(index.read_bytes(), 32 if wide else 20)
    except OSError:
        return None


def _git_directory(folder: Path) -> Path | None:
    """Git's own directory for a folder: its ``.git``, or what a file of this name leads to."""
    place = folder / ".git"
    mode = os.lstat(place).st_mode
    if stat.S_ISDIR(mode):
        return place
    target = _read(place).strip() if stat.S_ISREG(mode) else ""
    return Path(os.path.normpath(folder / target[8:])) if target.startswith("gitdir: ") else None


def _common(place: Path) -> Path:
    """The directory that all work trees of a repository share."""
    shared = place / "commondir"
    return Path(os.path.normpath(place / _read(shared).strip())) if os.path.lexists(shared) else place


def _index_names(data: bytes, hash_size: int) -> tuple[str, ...] | None:
    """The names of an index of version 2 to 4 (gitformat-index)."""
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        return None
    names: list[str] = []
    name, at = b"", 12
    for _ in range(int.from_bytes(data[8:12], "big")):
        flags_at = at + 40 + hash_size
        start = flags_at + (4 if int.from_bytes(data[flags_at : flags_at + 2], "big") & 0x4000 else 2)
        kept = b""
        if version == 4:  # a name is what is dropped from the end of the one before, and what is added
            drop, start = _variable_integer(data, start)
            kept = name[: len(name) - drop]
        end = data.find(b"\0", start)
        if end < 0:
            return None
        name = kept + data[start:end]
        names.append(name.decode("utf-8", "replace"))
        at = end + 1 if version == 4 else at + (end - at) // 8 * 8 + 8
    return tuple(names)


def _variable_integer(data: bytes, at: int) -> tuple[int, int]:
    """An integer as git packs offsets, and where it ends."""
    byte = data[at]
    value, at = byte & 0x7F, at + 1
    while byte & 0x80 and at < len(data):
        byte = data[at]
        value, at = (value + 1) << 7 | byte & 0x7F, at + 1
    return value, at


def settings_of(cwd: str) -> tuple[str, ...]:
    """The files with settings of the repository that git would use in ``cwd``."""
    try:
        folder = repository_of(cwd)
        place = None if folder is None else _git_directory(Path(folder))
        if place is None:
            return ()
        common = _common(place)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(each) for each in (common / "config", place / "config.worktree")))


def harmful_settings(path: str) -> bool:
    """Whether a repository's file of settings has keys that are not known to be harmless; a folder of hooks is one."""
    try:
        return _config_problem(Path(path), None) is not None
    except OSError:
        return True


def is_git_settings(path: str) -> bool:
    """Whether a path is one where git keeps settings, which may name a remote with a password."""
    return _SETTINGS.search(path.casefold()) is not None


def credentials_in(path: str) -> bool:
    """Whether git's settings in a file hold a password or token, or can't be judged; False where there are none."""
    try:
        text = _read(Path(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return _CREDENTIALS.search(text) is not None


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
        return _directory_problem(place, folder)
    return None


def _is_work_tree_of(place: Path, folder: Path) -> bool:
    """Whether a repository outside knows the folder as one of its work trees: the folder alone could claim any."""
    try:
        back = Path(_read(place / "gitdir").strip())
    except OSError:
        return False
    return os.path.realpath(place / back) == os.path.realpath(folder / ".git")


def _directory_problem(place: Path, work_tree: Path) -> str | None:
    common = place
    if os.path.lexists(place / "commondir"):
        common = Path(os.path.normpath(place / _read(place / "commondir").strip()))
    if not os.path.lexists(place / "HEAD") or not os.path.lexists(common / "config"):
        return f"{place} is no ordinary repository"
    for file in (place / "HEAD", place / "index", common / "packed-refs"):
        if os.path.lexists(file) and not os.path.isfile(file):
            return f"{file} is no ordinary file"
    for config in dict.fromkeys((common / "config", common / "config.worktree", place / "config.worktree")):
        problem = _config_problem(config, work_tree)
        if problem is not None:
            return f"{config} {problem}"
    return _hook_problem(common / "hooks") or _index_problem(place)


def _hook_problem(hooks: Path) -> str | None:
    """The one hook that a reading command may start: it runs when the index is refreshed."""
    if os.path.lexists(hooks / "post-index-change"):
        return "the repository has a hook that runs when its index is refreshed"
    return None


def _hooks_path_problem(value: str, work_tree: Path) -> str | None:
    """The same for the folder that ``core.hooksPath`` names, relative to the work tree."""
    if not re.fullmatch(r"(?:~/)?[\w./@+-]+", value):
        return "sets core.hooksPath in a form that is not understood"
    return _hook_problem(Path(os.path.expanduser(value)) if value.startswith("~/") else work_tree / value)


def _config_problem(path: Path, work_tree: Path | None) -> str | None:
    """``work_tree`` is what a folder of hooks is relative to; without one, no such folder is harmless."""
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
        if (section, sub, key) == ("core", False, "hookspath") and work_tree is not None:
            problem = _hooks_path_problem((variable.group(2) or "").strip(), work_tree)
            if problem is not None:
                return problem
        elif not _harmless(section, sub, key):
            return f"sets {section}.{key}, which may not be harmless"
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
