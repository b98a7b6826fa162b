"""The available language servers: those that swecli knows by their program, and those in the settings."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.workspace.walk import MOSTLY_BUILT, NOT_OWN

if TYPE_CHECKING:
    from swecli.core.config.settings import LanguageServerSettings
    from swecli.core.sandbox.sandbox import Sandbox

MOST_ENTRIES: Final = 1_500
"""Names examined to find out which languages a workspace uses."""
SKIPPED: Final = NOT_OWN | MOSTLY_BUILT
"""Folders that are not searched."""


class LanguageServer(Struct, frozen=True):
    """The definition of one server. ``languages`` maps file extensions to languages; ``roots`` are file names that mark
    a project's root."""

    name: str
    command: tuple[str, ...]
    languages: Mapping[str, str]
    roots: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=lambda: {})
    """Sent as ``initializationOptions``."""
    settings: Mapping[str, Any] = field(default_factory=lambda: {})
    """Answers to its configuration requests, by section."""
    env: Mapping[str, str] = field(default_factory=lambda: {})
    sandboxed: bool = True
    local: tuple[str, ...] = ()
    """Project folders searched for its program if it is not on PATH."""
    needs: Literal["", "tsserver", "typescript 7"] = ""
    """A requirement besides its program."""
    quiet: bool = False
    """Whether a failed start goes unreported, because its program usually serves another purpose."""
    reads_disk: bool = False
    """Whether its checks read files on disk, so that what it reports of a text sent to it may be of a newer one."""
    origin: str = ""
    """Settings file and line; empty for a known server."""

    def language(self, path: str) -> str | None:
        """The language of a file; None if the server does not handle it."""
        name = os.path.basename(path).lower()
        endings = [ending for ending in self.languages if name.endswith(ending)]
        return self.languages[max(endings, key=len)] if endings else None


class Program(Struct, frozen=True):
    """A server with its program. ``inside``: the program is in the workspace, where the model could write it."""

    server: LanguageServer
    path: str
    inside: bool


class Surroundings(Struct, frozen=True):
    """Where servers run. ``environment`` is scrubbed; ``logs`` is a folder, None if nothing is stored. ``contain``:
    without a sandbox they are not started."""

    cwd: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]
    sandbox: Sandbox
    logs: Path | None = None
    mask: Callable[[str], str] = str
    contain: bool = False


@cache
def known() -> Mapping[str, LanguageServer]:
    """Servers that work without settings, by name."""
    text = Path(__file__).with_name("known.toml").read_text(encoding="utf-8")
    return {
        name: LanguageServer(
            name,
            tuple(table["command"]),
            dict(table["languages"]),
            tuple(table["roots"]),
            table.get("options", {}),
            env=table.get("env", {}),
            local=tuple(table.get("local", ())),
            needs=table.get("needs", ""),
            quiet=table.get("quiet", False),
            reads_disk=table.get("reads_disk", False),
        )
        for name, table in tomllib.loads(text).items()
    }


def defined(
    settings: Mapping[str, LanguageServerSettings], origins: Mapping[str, str]
) -> tuple[tuple[LanguageServer, ...], tuple[str, ...]]:
    """The user's servers, then the known ones, without disabled ones, and a sentence for each invalid section. A
    section named like a known server changes that server."""
    own: list[LanguageServer] = []
    problems: list[str] = []
    for name, section in settings.items():
        base = known().get(name)
        if not section.enabled:
            continue
        if base is None and not (section.command and section.extensions):
            missing = "command" if not section.command else "extensions"
            problems.append(f"{origins.get(name, 'settings')}: ignored language server {name!r}: it has no {missing}.")
            continue
        own.append(_merged(name, section, base or LanguageServer(name, (), {}), origins.get(name, "settings")))
    rest = [server for name, server in known().items() if name not in settings]
    return (*own, *rest), tuple(problems)


def _merged(name: str, section: LanguageServerSettings, base: LanguageServer, origin: str) -> LanguageServer:
    languages = {_ending(text): section.language or _ending(text)[1:] for text in section.extensions}
    return replace(
        base,
        name=name,
        command=(section.command, *section.args) if section.command else (*base.command, *section.args),
        languages=languages or base.languages,
        roots=section.roots or base.roots,
        options={**base.options, **section.options},
        settings={**base.settings, **_nested(section.settings)},
        env={**base.env, **section.env},
        sandboxed=section.sandbox,
        needs="" if section.command else base.needs,
        origin=origin,
    )


def plugin_languages(
    plugin: str, root: Path, table: Mapping[str, Any], origin: str
) -> tuple[tuple[LanguageServer, ...], tuple[str, ...]]:
    """The language servers of a plugin the user allowed, and a sentence for each ignored one. A server whose program
    swecli knows is left out: it works without the plugin."""
    programs = {server.command[0] for server in known().values()}
    servers: list[LanguageServer] = []
    problems: list[str] = []
    for name, given in table.items():
        entry = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        command, words, languages = entry.get("command"), entry.get("args"), entry.get("extensionToLanguage")
        if not isinstance(command, str) or not command or not isinstance(languages, dict):
            problems.append(f"{origin}: ignored language server {name!r}: it has no command or no extensionToLanguage.")
            continue
        if command in programs:
            continue
        tables = [cast("dict[str, Any]", entry[key]) if isinstance(entry.get(key), dict) else {} for key in _TABLES]
        texts = [str(argument) for argument in cast("list[object]", words)] if isinstance(words, list) else []
        command_line = [text.replace("${CLAUDE_PLUGIN_ROOT}", str(root)) for text in (command, *texts)]
        served = {_ending(str(ending)): str(word) for ending, word in cast("dict[str, object]", languages).items()}
        servers.append(
            LanguageServer(
                f"{plugin}-{name}"[:64],
                tuple(command_line),
                served,
                options=tables[0],
                settings=_nested(tables[1]),
                env={key: str(value) for key, value in tables[2].items()},
                origin=origin,
            )
        )
    return tuple(servers), tuple(problems)


_TABLES = ("initializationOptions", "settings", "env")


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with keys such as ``python.analysis`` expanded into tables, because servers ask for either form."""
    expanded: dict[str, Any] = {}
    for key, value in values.items():
        *outer, last = key.split(".")
        target = expanded
        for part in outer:
            inner = target.get(part)
            target[part] = inner if isinstance(inner, dict) else {}
            target = cast("dict[str, Any]", target[part])
        known = target.get(last)
        both = isinstance(known, dict) and isinstance(value, dict)
        target[last] = {**cast("dict[str, Any]", known), **cast("dict[str, Any]", value)} if both else value
    return expanded


def _ending(text: str) -> str:
    return f".{text.lower().removeprefix('*').removeprefix('.')}"


def found_program(server: LanguageServer, search_path: str, roots: Sequence[Path]) -> Program | None:
    """A server's program, found by the absolute entries of PATH, by its absolute path, or in the project; None if
    missing."""
    entries = [entry for entry in search_path.split(os.pathsep) if entry.startswith("/")]
    own = [str(root / folder) for root in roots for folder in server.local]
    word = os.path.expanduser(server.command[0])
    if os.sep in word and not word.startswith("/"):
        return None  # what a relative path means depends on where swecli was started
    for places in (entries, own):
        path = shutil.which(word, path=os.pathsep.join(places))
        if path is not None and _suffices(server, path):
            real = Path(os.path.realpath(path))
            inside = any(Path(candidate).is_relative_to(root) for candidate in (path, real) for root in roots)
            return Program(server, path, inside)
    return None


def _suffices(server: LanguageServer, path: str) -> bool:
    if server.needs != "typescript 7":
        return True
    from swecli.core.language_servers.typescript import is_too_old  # few have a tsc

    return not is_too_old(path)


def usable(
    servers: Sequence[LanguageServer], search_path: str, roots: Sequence[Path]
) -> tuple[tuple[Program, ...], bool]:
    """Servers with an existing program, and whether the workspace has files for one of them. Examines workspace names
    until it finds one, and none if no program exists."""
    programs = [program for server in servers if (program := found_program(server, search_path, roots)) is not None]
    endings = tuple({ending for program in programs for ending in program.server.languages})
    has_files = bool(endings) and any(path.lower().endswith(endings) for root in roots for path in some_files(root))
    return tuple(programs), has_files


def some_files(root: Path) -> Iterator[str]:
    """A bounded number of a folder's files, level by level. Blocks on the disk."""
    left = MOST_ENTRIES
    folders = [str(root)]
    while folders and left > 0:
        folder = folders.pop(0)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in SKIPPED:
                            folders.append(entry.path)
                    else:
                        yield entry.path
                    if left <= 0:
                        return
        except OSError:
            continue


def suited(programs: Sequence[Program], path: str) -> tuple[Program, ...]:
    """The servers for a file in order of preference."""
    return tuple(program for program in programs if program.server.language(path) is not None)


def root_of(server: LanguageServer, path: Path, roots: Sequence[Path]) -> Path | None:
    """The outermost folder around a file, within the workspace, with a project marker; otherwise the workspace folder.
    None for a file outside. The outermost folder lets one process serve all parts of a project."""
    top = next((root for root in roots if path.is_relative_to(root)), None)
    if top is None:
        return None
    inner = [folder for folder in path.parents if folder.is_relative_to(top)]
    for folder in reversed(inner):
        if any(os.path.exists(folder / mark) for mark in server.roots):
            return folder
    return top


class CodePlace(Struct, frozen=True):
    """Place of a name: ``line`` counts from 1, ``column`` from 0. ``kind`` is a word such as "class", ``depth`` its
    depth in an outline, ``within`` the name of its container."""

    path: Path
    line: int
    name: str = ""
    kind: str = ""
    depth: int = 0
    within: str = ""
    column: int = 0


CodeQuestion = Literal["definition", "references", "outline"]
"""About the name at a place, or about a file."""


class CodeError(Exception):
    """There is no answer; the message gives the reason, as a clause."""
