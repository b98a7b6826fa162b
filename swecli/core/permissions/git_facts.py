"""Whether git would run a program that a repository chose: its configuration, hooks and submodules.

Read-only git commands start programs for the file system monitor, external diff, textconv, clean filters, signatures,
lazy fetches and the hook after an index refresh; submodules bring their own configuration. Therefore only keys known to
be harmless are accepted, and only if the repository is in its usual place.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from swecli.core.git import MAX_INDEX, common_directory, git_directory, linked_target, read_text, repository_of
from swecli.core.permissions.paths import inside
from swecli.lazy_pattern import lazy_pattern

_HEADER = lazy_pattern(r'\s*\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\][ \t]*(.*)')
_VARIABLE = lazy_pattern(r"\s*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?")
_SETTINGS = lazy_pattern(
    r"(?:^|/)(?:\.git/(?:.*/)?config(?:\.worktree)?|\.git/fetch_head|\.gitmodules|\.gitconfig|git/config)$"
)
_CREDENTIALS = lazy_pattern(
    r"""https?://[^/\s"'@]+@|://[^/\s"'@:]+:[^/\s"'@]+@|extraheader|(?:password|token|secret|apikey)\w*\s*=|\[include""",
    re.IGNORECASE,
)
"""A user name in a web address (possibly a token), a key named after a secret, and keys that refer to a separate secret
file."""
_HEAD = lazy_pattern(r"(?:ref: refs/[\x21-\x7e]+|[0-9a-f]{40}(?:[0-9a-f]{24})?)\n?")
_SHOWN = ("BISECT_LOG", "rebase-merge", "rebase-merge/done", "rebase-merge/git-rebase-todo")
"""Files of git's whose lines ``git status`` and ``git bisect log`` print."""
_READ = ("info/exclude", "info/attributes", "info/grafts", "shallow", "objects/info/alternates")
_READ_IN_TREE = (".gitignore", ".gitattributes", ".mailmap")
"""Files that git opens without a look at their kind, so that it would wait for the other end of a pipe."""
_LINK_MODE = b"\x00\x00\xe0\x00"
"""Mode 160000 as the index stores it: a submodule."""
_SPARSE = b"sdir"
"""Extension of an index that names whole folders, with what git's objects say is in them."""
_INCLUDED = lazy_pattern(r"^[ \t]*path[ \t]*=[ \t]*\"?([^\"\n]+?)\"?[ \t]*$", re.IGNORECASE | re.MULTILINE)
_PROGRAM = lazy_pattern(
    r"^[^#;\n]*?\b(hookspath|fsmonitor|external|textconv|command|clean|smudge|process|program)[ \t]*=[ \t]*(.+)$",
    re.IGNORECASE | re.MULTILINE,
)
"""A setting that names a program or hooks for commands that read."""
_MAX_INCLUDES = 20
_MAX_SEARCHED = 40_000
"""Entries of a work tree that are searched for repositories: about 50 ms."""


class _Harmless(Struct, frozen=True):
    environment: frozenset[str]
    environment_cat: frozenset[str]
    sections: frozenset[str]
    diff_driver: frozenset[str]
    keys: Mapping[str, frozenset[str]]
    values: Mapping[str, re.Pattern[str]]
    """By section and key, or by a section with a dot behind it for all of its keys."""


@cache
def _harmless_settings() -> _Harmless:
    import tomllib

    data = tomllib.loads(Path(__file__).with_name("git_config.toml").read_text(encoding="utf-8"))
    return _Harmless(
        frozenset(data["environment"].split()),
        frozenset(data["environment_cat"].split()),
        frozenset(data["sections"].split()),
        frozenset(data["diff_driver"]["keys"].split()),
        {section: frozenset(keys.split()) for section, keys in data["keys"].items()},
        {name: re.compile(expression) for name, expression in data["values"].items()},
    )


def git_problem(
    cwd: str, environment: Mapping[str, str], roots: Sequence[str], *, submodules: bool = True
) -> str | None:
    """Why git started in ``cwd`` might run a program of the repository's choice, show another repository's content or
    wait forever, as a clause; else None. ``submodules=False`` ignores them."""
    known = _harmless_settings()
    for name, value in environment.items():
        if name.startswith("GIT_") and name not in known.environment:
            if name in known.environment_cat and value in ("", "cat", "true", ":"):
                continue
            return f"{name} is set in the environment"
    try:
        return _repository_problem(Path(cwd), roots, environment, submodules=submodules)
    except OSError as error:
        return f"cannot examine the repository ({error.strerror})"


def settings_of(cwd: str) -> tuple[str, ...]:
    try:
        folder = repository_of(cwd)
        directory = None if folder is None else git_directory(Path(folder))
        if directory is None:
            return ()
        common = common_directory(directory)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(each) for each in (common / "config", directory / "config.worktree")))


def harmful_settings(path: str) -> bool:
    """Whether a repository's settings file has keys not known to be harmless; a hooks folder is one."""
    try:
        return _config_problem(Path(path), None) is not None
    except OSError:
        return True


def is_git_settings(path: str) -> bool:
    """Whether git keeps settings, which may name a remote with a password, at this path."""
    return _SETTINGS.search(path.casefold()) is not None


def credentials_in(path: str) -> bool:
    """Whether a git settings file contains a password or token, or can't be judged; False if it is missing."""
    try:
        text = read_text(Path(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return _CREDENTIALS.search(text) is not None


def personal_settings(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The user's and the machine's settings files."""
    home = environment.get("HOME", "")
    folder = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    own = (os.path.join(home, ".gitconfig"), os.path.join(folder, "git", "config")) if home else ()
    return (*own, "/etc/gitconfig")


def _repository_problem(
    cwd: Path, roots: Sequence[str], environment: Mapping[str, str], *, submodules: bool
) -> str | None:
    for folder in (cwd, *cwd.parents):
        directory = folder / ".git"
        try:
            mode = os.lstat(directory).st_mode
        except (FileNotFoundError, NotADirectoryError):
            if _may_be_bare(folder):
                return f"{folder} is laid out as a bare repository"
            continue
        if stat.S_ISREG(mode):
            target = linked_target(read_text(directory))
            if not target:
                return f"{directory} is not understood"
            directory = Path(os.path.realpath(folder / target))
            if inside(str(directory), roots) is None and not _is_work_tree_of(directory, folder):
                return f"{folder / '.git'} leads to the repository of another folder"
        elif not stat.S_ISDIR(mode):
            return f"{directory} is a link"
        personal = _personal_text(environment)
        own = _own_settings(personal)
        problem = _directory_problem(directory, folder, own, submodules=submodules)
        problem = problem or _foreign_problem(directory, folder, roots)
        if problem is None:
            problem = _relative_program_problem(folder, personal)
            if problem is None and submodules:
                problem = _hidden_submodule_problem(directory, folder, personal)
        return problem
    return None


def _hidden_submodule_problem(directory: Path, work_tree: Path, personal: str) -> str | None:
    """Problem with submodules that only git's objects name: git enters a repository that lies where they are."""
    if _is_sparse(directory / "index"):
        cause = "its index is sparse"
    elif "submodule" in personal.casefold():
        cause = "your git settings mention submodules"
    else:
        return None
    if os.path.lexists(common_directory(directory) / "modules") or _has_repository_below(work_tree):
        return f"{cause}, and repositories in the work tree may be some, which bring their own settings"
    return None


def _is_sparse(index: Path) -> bool:
    return os.path.lexists(index) and _SPARSE in index.read_bytes()


def _relative_program_problem(work_tree: Path, personal: str) -> str | None:
    """Problem with a program or hooks folder that the user's settings name relative to the work tree."""
    for key, value in _PROGRAM.findall(personal):
        name = value.strip(" \t\"'!").split(" ")[0]
        if name.startswith(("/", "~", "%")) or not name:
            continue
        problem = _hooks_path_problem(name, work_tree) if key.casefold() == "hookspath" else None
        if problem is not None or ("/" in name and os.path.lexists(work_tree / name)):
            return f"your git settings name {name}, which the work tree provides"
    return None


def _personal_text(environment: Mapping[str, str]) -> str:
    """The user's and the machine's settings, with all files that they may include."""
    pending, texts = list(personal_settings(environment)), dict[str, str]()
    while pending and len(texts) < _MAX_INCLUDES:
        file = pending.pop(0)
        if file in texts:
            continue
        try:
            texts[file] = read_text(Path(file))
        except OSError:
            texts[file] = ""  # git ignores a missing one
        for name in _INCLUDED.findall(texts[file]):
            pending.append(os.path.join(os.path.dirname(file), os.path.expanduser(name)))
    return "\n".join(texts.values())


def _has_repository_below(work_tree: Path) -> bool:
    """Whether a folder in a work tree, possibly reached by a link, is a repository as well; also True if it is too
    large to search."""
    top = os.fspath(work_tree)
    pending, searched = [top], 0
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    searched += 1
                    linked = entry.is_symlink() and os.path.lexists(os.path.join(entry.path, ".git"))
                    if linked or searched > _MAX_SEARCHED or (entry.name == ".git" and folder != top):
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue  # git can't enter it either
    return False


def _is_work_tree_of(directory: Path, folder: Path) -> bool:
    """Whether an outside repository lists the folder as one of its work trees, or is that of the submodule there: the
    folder alone could claim any."""
    try:
        back = Path(read_text(directory / "gitdir").strip())
    except FileNotFoundError:
        return _is_submodule_at(directory, folder)
    except OSError:
        return False
    return os.path.realpath(directory / back) == os.path.realpath(folder / ".git")


def _is_submodule_at(directory: Path, folder: Path) -> bool:
    try:
        settings = list(_settings(read_text(directory / "config")))
    except (OSError, _UnclearError):
        return False
    return any(
        setting.name == ("core", False, "worktree") and _leads_to(setting.value, directory, folder)
        for setting in settings
    )


def _leads_to(value: str, directory: Path, work_tree: Path) -> bool:
    """Whether the value of ``core.worktree`` in the git directory names the work tree."""
    plain = re.fullmatch(r"[\w./@+-]+", value) is not None
    return plain and os.path.realpath(directory / value) == os.path.realpath(work_tree)


def _own_settings(personal: str) -> frozenset[_Setting]:
    """The settings of the user's own configuration, which a repository may repeat without harm; none of what includes
    other files, whose place counts, nor of a text that is not understood."""
    try:
        return frozenset(setting for setting in _settings(personal) if not setting.name[0].startswith("include"))
    except _UnclearError:
        return frozenset()


def _directory_problem(directory: Path, work_tree: Path, own: frozenset[_Setting], *, submodules: bool) -> str | None:
    common = common_directory(directory)
    if not _is_repository(directory, common) or not os.path.lexists(common / "config"):
        return f"{directory} is not a complete repository"
    for file in (f"{directory}/HEAD", f"{directory}/index", f"{common}/packed-refs"):
        if os.path.lexists(file) and not os.path.isfile(file):
            return f"{file} is not an ordinary file"
    for name in _SHOWN:
        if os.path.islink(f"{directory}/{name}"):
            return f"{directory}/{name} is a link, and git would show what it leads to"
    for config in dict.fromkeys((common / "config", common / "config.worktree", directory / "config.worktree")):
        problem = _config_problem(config, work_tree, own)
        if problem is not None:
            return f"{config} {problem}"
    return _hook_problem(common / "hooks") or _index_problem(directory, submodules=submodules)


def _foreign_problem(directory: Path, work_tree: Path, roots: Sequence[str]) -> str | None:
    """Problem with objects of another repository, whose text git would show, and with files that git waits for."""
    common = common_directory(directory)
    for path in (*(f"{common}/{name}" for name in _READ), *(os.path.join(work_tree, name) for name in _READ_IN_TREE)):
        if os.path.lexists(path) and not os.path.isfile(path):
            return f"{path} is not an ordinary file"
    own = (*roots, os.path.realpath(common))
    objects = common / "objects"
    for folder in (f"{common}", f"{objects}", f"{objects}/pack", f"{objects}/info"):
        for entry in os.scandir(folder) if os.path.lexists(folder) else ():
            linked = entry.is_symlink() and (folder != f"{common}" or entry.name in ("objects", "refs", "packed-refs"))
            if linked and inside(os.path.realpath(entry.path), own) is None:
                return f"{entry.path} leads to another repository"
    alternates = objects / "info" / "alternates"
    for line in read_text(alternates).splitlines() if os.path.lexists(alternates) else ():
        if line and not line.startswith("#") and inside(os.path.realpath(objects / line.strip('"')), own) is None:
            return f"{alternates} adds the objects of another repository"
    return None


def _may_be_bare(folder: Path) -> bool:
    """Whether git may take a folder itself for a repository. Its objects may be in the folder that a file names."""
    has = {name for name in ("HEAD", "objects", "refs", "commondir") if os.path.lexists(os.path.join(folder, name))}
    return has >= {"HEAD", "commondir"} or has >= {"HEAD", "objects", "refs"}


def _is_repository(directory: Path, common: Path) -> bool:
    """Whether git surely uses this git directory. It passes over an incomplete one, and takes the folder around it, or
    one above, for a repository."""
    head = directory / "HEAD"
    if os.path.islink(head) or not os.path.isfile(head) or not _HEAD.fullmatch(read_text(head)):
        return False
    return all(os.path.isdir(each) and os.access(each, os.X_OK) for each in (f"{common}/objects", f"{common}/refs"))


def _hook_problem(hooks: Path) -> str | None:
    """Problem with the only hook that a read-only command may start; it runs when the index is refreshed."""
    if os.path.lexists(hooks / "post-index-change"):
        return "the repository has a hook that runs when its index is refreshed"
    return None


def _hooks_path_problem(value: str, work_tree: Path) -> str | None:
    """Same check for the folder that ``core.hooksPath`` names, relative to the work tree."""
    if not re.fullmatch(r"(?:~/)?[\w./@+-]+", value):
        return "sets core.hooksPath in a form swecli cannot read"
    return _hook_problem(Path(os.path.expanduser(value)) if value.startswith("~/") else work_tree / value)


def _config_problem(path: Path, work_tree: Path | None, own: frozenset[_Setting] = frozenset()) -> str | None:
    """Base for a relative hooks folder is ``work_tree``; without one, no hooks folder is harmless. ``own`` are the
    user's own settings."""
    if not os.path.lexists(path):
        return None
    try:
        for setting in _settings(read_text(path)):
            section, _, key = setting.name
            if setting.name == ("core", False, "hookspath") and work_tree is not None:
                problem = _hooks_path_problem(setting.value, work_tree)
                if problem is not None:
                    return problem
            elif setting.name == ("core", False, "worktree") and work_tree is not None:
                if not _leads_to(setting.value, path.parent, work_tree):
                    return "sets core.worktree to another folder"
            elif not _harmless(setting) and setting not in own:
                return f"sets {section}.{key}"
    except _UnclearError as error:
        return str(error)
    return None


class _UnclearError(Exception):
    """A settings file can't be judged; the message is a clause."""


class _Setting(Struct, frozen=True):
    """``name`` is the section, whether a subsection is named, and the key, in lower case; ``sub`` is the subsection."""

    name: tuple[str, bool, str]
    value: str
    sub: str = ""


def _settings(text: str) -> Iterator[_Setting]:
    """The settings of a git configuration file.

    Raises:
        _UnclearError: a line is not understood.
    """
    section, sub, named = "", False, ""
    for line in text.removeprefix("\ufeff").split("\n"):
        rest = line.strip()
        header = _HEADER.fullmatch(rest)
        if header is not None:
            name, dot, inner = header.group(1).lower().partition(".")
            section, sub, named = name, bool(dot) or header.group(2) is not None, header.group(2) or inner
            rest = header.group(3).strip()
        if not rest or rest[0] in "#;":
            continue
        if rest.endswith("\\"):
            raise _UnclearError("has values over several lines, which swecli can't check")
        variable = _VARIABLE.fullmatch(rest)
        if variable is None or not section:
            raise _UnclearError("is not understood")
        yield _Setting((section, sub, variable.group(1).lower()), (variable.group(2) or "").strip(), named)


def _harmless(setting: _Setting) -> bool:
    known = _harmless_settings()
    section, sub, key = setting.name
    if section == "diff" and sub:
        return key in known.diff_driver
    if section in known.sections or key in known.keys.get(section, ()):
        return True
    fits = None if sub else known.values.get(f"{section}.{key}", known.values.get(f"{section}."))
    return fits is not None and fits.fullmatch(re.sub(r'^"([^"\\]*)"$', r"\1", setting.value)) is not None


_SHOWING = frozenset(("advice", "blame", "color", "column", "diff", "grep", "log", "status"))


def is_harmless_option(word: str | None) -> bool:
    """Whether ``git -c WORD`` only changes how something is shown."""
    name, equals, value = (word or "").partition("=")
    section, dot, key = name.lower().partition(".")
    if not equals or not dot or re.fullmatch(r"[a-z0-9.-]+", key) is None:
        return False
    if section not in _SHOWING and name.lower() not in ("core.quotepath", "core.abbrev"):
        return False
    return _harmless(_Setting((section, "." in key, key), value, key))


def _index_problem(directory: Path, *, submodules: bool) -> str | None:
    if any(name.startswith("sharedindex.") for name in os.listdir(directory)):
        return "its index is split, which swecli can't check"
    index = directory / "index"
    if not os.path.lexists(index):
        return None
    state = os.stat(index)
    if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_INDEX:
        return "its index is too large to examine"
    if submodules and _LINK_MODE in index.read_bytes():
        return "it may have submodules, which bring their own settings"
    return None
