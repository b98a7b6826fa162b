"""Commands that are edits: they change workspace files as the file tools do, and start nothing else.

``mkdir``, ``touch``, ``cp``, ``mv``, ``ln -s``, formatters, and ``sed -i`` that replaces literal text. Excluded is
anything that would lose a file's content, touch protected or secret names, or lead outside.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, cast

from msgspec import Struct

from swecli.core.permissions.facts import Reach
from swecli.core.permissions.paths import folders_above, inside, is_own, is_secret_in
from swecli.core.permissions.protected import installed_reason, protected_name, protected_reason
from swecli.core.permissions.shell.expand import Situation
from swecli.core.permissions.shell.programs import replaces_literally
from swecli.core.permissions.shell.syntax import UnprovenError
from swecli.core.permissions.shell.tables import Options

EditKind = Literal["folder", "file", "name", "format", "text"]
"""New folders; new empty files; renames or copies; formatted content; replaced text."""


class _Tables(Struct, frozen=True):
    files: Mapping[str, Options]
    formatters: Mapping[tuple[str, ...], Options]
    starters: tuple[tuple[str, ...], ...]
    configured: Mapping[str, tuple[str, ...]]


@cache
def _tables() -> _Tables:
    import tomllib
    from pathlib import Path

    text = Path(__file__).with_name("edits.toml").read_text(encoding="utf-8")
    data = cast("dict[str, dict[str, str]]", tomllib.loads(text))
    return _Tables(
        {name: Options.of(options) for name, options in data["files"].items()},
        {tuple(name.split()): Options.of(options) for name, options in data["formatters"].items()},
        tuple(tuple(starter.split()) for starter in data["starters"]["node"].split(",")),
        {name: tuple(names.split()) for name, names in data["configured"].items()},
    )


class _NoEdit(Exception):
    """The command is not taken for an edit. The text says why, as a clause; empty where there is no single reason that
    a person would look for."""


def edit_kind(arguments: Sequence[str | None], situation: Situation) -> tuple[EditKind | None, str]:
    """The edit the command makes to workspace files, if it does nothing else. Otherwise None and, for a command that
    usually edits them, why it is not taken for one here, as a clause; empty where no single reason would help."""
    words = [word for word in arguments if word is not None]
    if len(words) != len(arguments) or not words or len(situation.cwds) != 1 or any("\0" in word for word in words):
        return None, ""
    try:
        if words[0] in _tables().files:
            return _of_files(words[0], words[1:], situation), ""
        if words[0] == "sed":
            return _of_sed(words[1:], situation), ""
        return _of_formatter(words, situation), ""
    except _NoEdit as error:
        return None, str(error)
    except UnprovenError:
        return None, ""


# --- files ---------------------------------------------------------------------------------------------------------


def _of_files(name: str, rest: Sequence[str], situation: Situation) -> EditKind:
    parsed = _tables().files[name].operands(rest)
    if parsed is None or situation.facts.program_problem(name, situation.cwds[0], situation.roots) is not None:
        raise _NoEdit
    options, operands = parsed
    if not operands or not all(operands):
        raise _NoEdit
    if name == "ln":
        if not {"-s", "--symbolic"} & options:
            raise _NoEdit
        _check_link(operands, options, situation)
        return "name"
    paths = _absolute(operands, situation)
    for path, operand in zip(paths, operands, strict=True):
        _check_place(posixpath.normpath(path), operand, situation)
    if name in ("mkdir", "touch"):
        for path, operand in zip(paths, operands, strict=True):
            _check_new(path, operand, situation)
        return "folder" if name == "mkdir" else "file"
    if len(operands) < 2:
        raise _NoEdit
    for source, operand in zip(paths[:-1], operands, strict=False):
        if situation.facts.kind(source) == "missing":
            raise _NoEdit(f"{operand} does not exist yet")
    pairs = _pairs(operands, situation)
    for source, target in pairs:
        _check_put(name, source, target, situation)
    if not pairs:
        raise _NoEdit
    return "name"


def _absolute(words: Sequence[str], situation: Situation) -> list[str]:
    return [posixpath.join(situation.cwds[0], word) for word in words]


def _check_place(path: str, shown: str, situation: Situation) -> None:
    if inside(path, situation.roots) is None:
        raise _NoEdit(f"{shown} is outside the workspace")
    if is_secret_in(path, situation.roots, situation.facts.secret_names):
        raise _NoEdit(f"{shown} may hold secrets")


def _check_new(path: str, shown: str, situation: Situation) -> None:
    """A file or folder of this name may be made."""
    resolved = situation.facts.resolve(path)
    for each in (posixpath.normpath(path), resolved):
        _check_place(each, shown, situation)
        if is_own(each, ()) or each in situation.roots or any(ord(char) < 32 or ord(char) == 127 for char in each):
            raise _NoEdit
        if protected_reason(each, situation.roots, situation.home) or installed_reason(each, situation.roots):
            raise _NoEdit
    if situation.facts.names_elsewhere(resolved, situation.roots) != 0:
        raise _NoEdit


def _pairs(operands: Sequence[str], situation: Situation) -> list[tuple[str, str]]:
    """Each source with every name it may get, as absolute paths; empty if unclear. A missing target may become a folder
    before the command reaches it."""
    *sources, target = _absolute(operands, situation)
    kind = situation.facts.kind(target)
    names = [posixpath.basename(posixpath.normpath(source)) for source in sources]
    if any(posixpath.basename(source) in (".", "..") for source in sources) or len(set(names)) != len(names):
        return []
    pairs = [(source, f"{target}/{name}") for source, name in zip(sources, names, strict=True) if kind != "file"]
    if kind != "directory" and len(sources) == 1 and not operands[-1].endswith("/"):
        pairs.append((sources[0], target))
    return pairs


def _check_put(name: str, source: str, target: str, situation: Situation) -> None:
    """A file or folder, with its contents, may be renamed or copied there. It must not overwrite: existing content
    would be lost unread."""
    facts, cwd = situation.facts, situation.cwds[0]
    there = facts.kind(target)
    if there != "missing":
        raise _NoEdit("" if there == "directory" else f"{name} would overwrite {posixpath.relpath(target, cwd)}")
    if facts.kind(source) not in ("file", "directory"):
        raise _NoEdit
    for path in (source, target):
        _check_new(path, posixpath.relpath(path, cwd), situation)
    if posixpath.normpath(source) != facts.resolve(source):
        raise _NoEdit  # a link: its target may change
    if facts.kind(source) == "file":
        return
    if facts.leads_outside(source, situation.roots) or facts.secrets_below(source, Reach(), situation.rules) != ():
        raise _NoEdit
    below = facts.below(source)
    if below is None or any(
        protected_name(f"{posixpath.relpath(top, _root(top, situation))}/{path}") is not None
        or installed_reason(f"{top}/{path}", situation.roots) is not None
        for top in (posixpath.normpath(source), posixpath.normpath(target))
        for path in below
    ):
        raise _NoEdit


def _root(path: str, situation: Situation) -> str:
    return inside(path, situation.roots) or "/"


def _check_link(operands: Sequence[str], options: frozenset[str], situation: Situation) -> None:
    """A new symbolic link stays in the workspace, and away from protected and secret places."""
    if len(operands) != 2:
        raise _NoEdit
    facts = situation.facts
    link = _absolute(operands[1:], situation)[0]
    if facts.kind(link) == "directory" or operands[1].endswith("/"):
        link = f"{link}/{posixpath.basename(posixpath.normpath(operands[0]))}"
    relative = not {"-r", "--relative"} & options
    target = posixpath.join(posixpath.dirname(link) if relative else situation.cwds[0], operands[0])
    if facts.kind(link) != "missing":
        raise _NoEdit
    _check_new(link, operands[1], situation)
    _check_new(target, operands[0], situation)


# --- sed -------------------------------------------------------------------------------------------------------------

_IN_PLACE = frozenset(("-i", "--in-place", "-Ei", "-ri"))
_EXTENDED = frozenset(("-E", "-r", "--regexp-extended", "-Ei", "-ri"))
_OTHER_SED = frozenset(("-s", "--separate", "-u", "--unbuffered", "--sandbox"))


def _of_sed(rest: Sequence[str], situation: Situation) -> EditKind:
    """``sed -i`` on named files that only replaces text which the command spells out, as ``edit_file`` does."""
    if sys.platform != "linux":  # elsewhere -i takes the script for the suffix of a copy
        raise _NoEdit
    scripts: list[str] = []
    operands: list[str] = []
    options: set[str] = set()
    words = list(rest)
    while words:
        word = words.pop(0)
        if word == "--":
            operands += words
            break
        if word in ("-e", "--expression") and words:
            scripts.append(words.pop(0))
        elif word.startswith("--expression="):
            scripts.append(word.partition("=")[2])
        elif word in _IN_PLACE or word in _EXTENDED or word in _OTHER_SED:
            options.add(word)
        elif word.startswith("-"):
            raise _NoEdit
        else:
            operands.append(word)
    if not scripts and operands:
        scripts.append(operands.pop(0))
    literal = all(replaces_literally(script, extended=bool(options & _EXTENDED)) for script in scripts)
    if not options & _IN_PLACE or not scripts or not operands or not literal:
        raise _NoEdit
    if situation.facts.program_problem("sed", situation.cwds[0], situation.roots) is not None:
        raise _NoEdit
    for path, operand in zip(_absolute(operands, situation), operands, strict=True):
        _check_new(path, operand, situation)
        if posixpath.normpath(path) != situation.facts.resolve(path) or situation.facts.kind(path) != "file":
            raise _NoEdit
        if situation.facts.read_only(path):  # sed would replace it all the same
            raise _NoEdit(f"{operand} is read-only")
    return "text"


# --- formatters ----------------------------------------------------------------------------------------------------


def _of_formatter(words: list[str], situation: Situation) -> EditKind:
    tables = _tables()
    starter = next((prefix for prefix in tables.starters if tuple(words[: len(prefix)]) == prefix), ())
    rest = words[len(starter) :]
    name = posixpath.basename(rest[0]) if rest else ""
    for form, options in tables.formatters.items():
        if name != form[0] or (name, *rest[1 : len(form)]) != form:
            continue
        if not _is_installed(rest[0], starter, situation):
            missing = rest[0] == name and not starter and not situation.facts.program(name, situation.cwds[0])
            raise _NoEdit(f"{name} is not installed" if missing else "")
        parsed = options.operands(rest[len(form) :])
        if parsed is None:
            raise _NoEdit
        operands = _absolute(parsed[1] or (".",), situation)
        if all(_may_format(path, situation) for path in operands) and not _runs_code(
            (" ".join(form), *starter[:1]), operands, situation
        ):
            return "format"
        raise _NoEdit
    raise _NoEdit


def _is_installed(word: str, starter: Sequence[str], situation: Situation) -> bool:
    """Whether the program is the system's or was installed in the workspace, where edits always ask, after it came from
    elsewhere."""
    facts, cwd = situation.facts, situation.cwds[0]
    if starter:
        return (
            "/" not in word
            and facts.program_problem(starter[0], cwd, situation.roots) is None
            and _was_installed(f"{cwd}/node_modules/.bin/{word}", situation)
        )
    path = posixpath.normpath(posixpath.join(cwd, word)) if "/" in word else facts.program(word, cwd)
    if not path:
        return False
    root = inside(path, situation.roots)
    if root is not None:
        return protected_name(path[len(root) :]) is not None and _was_installed(path, situation)
    return "/" not in word and facts.program_problem(word, cwd, situation.roots) is None


def _was_installed(path: str, situation: Situation) -> bool:
    """Whether a program of the workspace, such as ``node_modules/.bin/prettier``, is not part of what git tracks there,
    which came with the workspace."""
    facts = situation.facts
    folder = posixpath.dirname(posixpath.dirname(path))
    leads_to_tracked = facts.tracked_below(posixpath.dirname(facts.resolve(path)))
    return facts.kind(path) == "file" and facts.tracked_below(folder) is False and not leads_to_tracked


def _may_format(path: str, situation: Situation) -> bool:
    resolved = situation.facts.resolve(path)
    return all(
        inside(each, situation.roots) is not None
        and not is_secret_in(each, situation.roots, situation.facts.secret_names)
        for each in (posixpath.normpath(path), resolved)
    ) and situation.facts.kind(resolved) in ("file", "directory")


def _runs_code(names: Sequence[str], operands: Sequence[str], situation: Situation) -> bool:
    """Whether settings around the operands, which commands of the script may change, may make the formatter, or what
    starts it, run workspace code."""
    facts = situation.facts
    configured = [_entry(text) for name in names for text in _tables().configured.get(name, ())]
    if any(not situation.edited.isdisjoint(entry.name.split("/")) for entry in configured):
        return True
    endings = tuple(f"/{entry.name}" for entry in configured)
    for operand in (situation.cwds[0], *operands) if configured else ():
        below = facts.below(operand, skipping=("node_modules", ".git")) if facts.kind(operand) == "directory" else ()
        if below is None:
            return True
        places = [posixpath.join(operand, path) for path in below]
        for folder in folders_above(facts.resolve(operand), situation.roots, situation.home):
            places += [posixpath.join(folder, entry.name) for entry in configured]
        named = [path for path in places if path.endswith(endings)]
        if any(_configures_code(path, entry, situation) for path in named for entry in configured):
            return True
    return False


class _Entry(Struct, frozen=True):
    """A file of ``configured``, and what has to be in it: a setting after "=", a key of JSON after ":"."""

    name: str
    kind: str
    word: str


def _entry(text: str) -> _Entry:
    return _Entry(*re.fullmatch(r"([^=:]+)([=:]?)(.*)", text).groups())  # type: ignore[union-attr]


def _configures_code(path: str, entry: _Entry, situation: Situation) -> bool:
    """Whether the file at ``path`` matches an entry of ``configured``, including its required key."""
    facts = situation.facts
    if not path.endswith(f"/{entry.name}") or facts.kind(path) == "missing":
        return False
    if facts.kind(path) != "file" or not entry.kind:
        return True
    return facts.may_set(path, entry.word) if entry.kind == "=" else facts.has_key(path, entry.word)
