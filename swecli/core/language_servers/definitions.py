"""Which language servers there are: those that swecli knows by their program, and those of the settings."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.workspace.walk import MOSTLY_BUILT, NOT_OWN

if TYPE_CHECKING:
    from swecli.core.config.settings import LanguageServerSettings
    from swecli.core.sandbox.sandbox import Sandbox

MOST_ENTRIES: Final = 1_500
"""Names that are looked at to find out which languages a workspace has."""
SKIPPED: Final = NOT_OWN | MOSTLY_BUILT
"""Folders that are not looked into."""


class LanguageServer(Struct, frozen=True):
    """One server as it is written down. ``languages`` has the language by the ending of a file's name, ``roots`` are
    names of files that mark the root of a project."""

    name: str
    command: tuple[str, ...]
    languages: Mapping[str, str]
    roots: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=lambda: {})
    """What it gets as ``initializationOptions``."""
    settings: Mapping[str, Any] = field(default_factory=lambda: {})
    """What it gets when it asks for its configuration, by section."""
    env: Mapping[str, str] = field(default_factory=lambda: {})
    sandboxed: bool = True
    local: tuple[str, ...] = ()
    """Folders of a project where its program is looked for when it is not on PATH."""
    needs: Literal["", "tsserver", "typescript 7"] = ""
    """What it can't work without, besides its program."""
    quiet: bool = False
    """Whether it is not reported that it can't be started: its program is mostly there for something else."""
    origin: str = ""
    """Where it was set; empty for one that swecli knows."""

    def language(self, path: str) -> str | None:
        """The language of a file; None where the server is not for it."""
        name = os.path.basename(path).lower()
        found = [ending for ending in self.languages if name.endswith(ending)]
        return self.languages[max(found, key=len)] if found else None


class Program(Struct, frozen=True):
    """A server whose program was found. ``inside``: it is a file of the workspace, which the model could write."""

    server: LanguageServer
    path: str
    inside: bool


class Surroundings(Struct, frozen=True):
    """Where servers run. ``environment`` is scrubbed; ``logs`` is a folder, None where nothing is stored. ``contain``:
    they are not started where no sandbox can hold them."""

    cwd: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]
    sandbox: Sandbox
    logs: Path | None = None
    mask: Callable[[str], str] = str
    contain: bool = False


@cache
def known() -> Mapping[str, LanguageServer]:
    """The servers that need no setting, by name."""
    text = files("swecli.core.language_servers").joinpath("known.toml").read_text(encoding="utf-8")
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
        )
        for name, table in tomllib.loads(text).items()
    }


def defined(
    settings: Mapping[str, LanguageServerSettings], origins: Mapping[str, str]
) -> tuple[tuple[LanguageServer, ...], tuple[str, ...]]:
    """The user's servers and then the known ones, without those that are switched off; and a sentence for each section
    that can't be used. A section with the name of a known server changes that."""
    own: list[LanguageServer] = []
    problems: list[str] = []
    for name, one in settings.items():
        base = known().get(name)
        if not one.enabled:
            continue
        if base is None and not (one.command and one.extensions):
            missing = "command" if not one.command else "extensions"
            problems.append(f"{origins.get(name, 'settings')}: ignored language server {name!r}: it has no {missing}.")
            continue
        own.append(_merged(name, one, base or LanguageServer(name, (), {}), origins.get(name, "settings")))
    rest = [server for name, server in known().items() if name not in settings]
    return (*own, *rest), tuple(problems)


def _merged(name: str, one: LanguageServerSettings, base: LanguageServer, origin: str) -> LanguageServer:
    languages = {_ending(text): one.language or _ending(text)[1:] for text in one.extensions}
    return replace(
        base,
        name=name,
        command=(one.command, *one.args) if one.command else (*base.command, *one.args),
        languages=languages or base.languages,
        roots=one.roots or base.roots,
        options={**base.options, **one.options},
        settings={**base.settings, **_nested(one.settings)},
        env={**base.env, **one.env},
        sandboxed=one.sandbox,
        needs="" if one.command else base.needs,
        origin=origin,
    )


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with keys such as ``python.analysis`` written out as tables: servers ask for either."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        *outer, last = key.split(".")
        place = found
        for part in outer:
            inner = place.get(part)
            place[part] = inner if isinstance(inner, dict) else {}
            place = cast("dict[str, Any]", place[part])
        known = place.get(last)
        both = isinstance(known, dict) and isinstance(value, dict)
        place[last] = {**cast("dict[str, Any]", known), **cast("dict[str, Any]", value)} if both else value
    return found


def _ending(text: str) -> str:
    return f".{text.lower().removeprefix('*').removeprefix('.')}"


def found_program(server: LanguageServer, search_path: str, roots: Sequence[Path]) -> Program | None:
    """The program of a server by the absolute entries of PATH, by its absolute path, or in the project; None where
    there is none."""
    entries = [entry for entry in search_path.split(os.pathsep) if entry.startswith("/")]
    own = [str(root / folder) for root in roots for folder in server.local]
    word = os.path.expanduser(server.command[0])
    if os.sep in word and not word.startswith("/"):
        return None  # what a relative path means depends on where swecli was started
    for places in (entries, own):
        path = shutil.which(word, path=os.pathsep.join(places))
        if path is not None and _suffices(server, path):
            real = Path(os.path.realpath(path))
            inside = any(Path(one).is_relative_to(root) for one in (path, real) for root in roots)
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
    """Servers whose program is there, and whether the workspace has files for one of them. Looks at some of the
    workspace's names until it finds one, and at none where no program is there."""
    programs = [program for server in servers if (program := found_program(server, search_path, roots)) is not None]
    endings = tuple({ending for program in programs for ending in program.server.languages})
    has_files = bool(endings) and any(path.lower().endswith(endings) for root in roots for path in some_files(root))
    return tuple(programs), has_files


def some_files(root: Path) -> Iterator[str]:
    """Files of a folder, level by level, a bounded number. Waits for the disk."""
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
    """The servers for a file, the first to be used first."""
    return tuple(program for program in programs if program.server.language(path) is not None)


def root_of(server: LanguageServer, path: Path, roots: Sequence[Path]) -> Path | None:
    """The outermost folder around a file, within the workspace, that has a mark of a project; the workspace's folder
    where none has. None for a file outside. The outermost, as one process then serves all parts of a project."""
    top = next((root for root in roots if path.is_relative_to(root)), None)
    if top is None:
        return None
    inner = [folder for folder in path.parents if folder.is_relative_to(top)]
    for folder in reversed(inner):
        if any((folder / mark).exists() for mark in server.roots):
            return folder
    return top
