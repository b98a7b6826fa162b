"""Sources of skills, commands and agent profiles: folders in order of precedence, and their files as text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from msgspec import Struct

from swecli.core.config.trust import EXTENSION_HOMES, own_extensions, trust_key
from swecli.core.extensions.front_matter import Problem
from swecli.core.workspace.command_output import as_read
from swecli.core.workspace.text_file import marked_text, open_regular
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.extensions.plugins import Plugin

Kind = Literal["skills", "commands", "agents"]

SKILL_FILE = "SKILL.md"
MOST_BYTES = 256 * 1024
"""Bytes read of one file."""
MOST_FILES = 2_000
"""Maximum files in one folder."""
_DEEPEST = 4
"""Maximum folder depth, for the namespaces of commands."""
_HEAD = 8_192
_NAME = lazy_pattern(r"(?=[0-9_-]*[a-z])[a-z0-9][a-z0-9_-]{0,63}")


class Source(Struct, frozen=True):
    """One folder. ``label`` is its display name; ``project`` is the folder that its files must lie in, None for the
    user's own folders, which may contain any links."""

    kind: Kind
    folder: Path
    label: str
    project: Path | None = None
    ending: str = ".md"
    """Of its commands and agents."""
    plugin: str = ""
    """The plugin that it belongs to, whose name begins the names of its extensions."""
    root: Path | None = None
    """The folder of that plugin."""
    only: str = ""
    """The single file, or folder of a skill, that counts; empty: all."""


class Origin(Struct, frozen=True):
    """The file behind an extension. ``shown`` is its display path; ``digest`` is the SHA-256 of the bytes read, empty
    for built-in ones."""

    path: Path
    shown: str
    source: Source
    digest: str = ""

    @property
    def folder(self) -> Path:
        return self.path.parent


class FoundFile(Struct, frozen=True):
    """A file that was read. ``stem`` is the name that its path implies: folders and file name without extension."""

    origin: Origin
    stem: tuple[str, ...]
    text: str
    problems: tuple[Problem, ...] = ()


def places(
    cwd: Path, *, user_folder: Path, home: Path, project: bool, plugins: Sequence[Plugin] = ()
) -> tuple[Source, ...]:
    """Possible folders in order of precedence: the project's, from ``cwd`` up to its root, then the user's, then those
    of plugins. ``project`` includes those of the project. They need not exist."""
    sources: list[Source] = []
    own = own_extensions(user_folder, home)
    users = {os.path.realpath(folder) for folder in own}
    start, root = Path(os.path.realpath(cwd)), trust_key(cwd)
    if project:
        down = [start, *start.parents]
        for folder in down[: down.index(root) + 1] if root in down else [start]:
            for name, folders in EXTENSION_HOMES.items():
                base = folder / name
                if os.path.realpath(base) in users or not os.path.lexists(base):
                    continue
                label = f"{os.path.relpath(base, start)}/"
                sources += _sources(base, label, folders, root)
    for base, folders in own.items():
        sources += _sources(base, f"{_shown(base, home)}/", folders, None)
    for plugin in plugins:
        for kind, folder, shown, only in plugin.folders:
            label = f"plugin {plugin.name}/{os.path.dirname(shown) if only else shown}".rstrip("/")
            sources.append(Source(kind, folder, label, plugin=plugin.name, root=plugin.root, only=only))
    return tuple(sources)


def _sources(base: Path, label: str, folders: Mapping[str, str], project: Path | None) -> Iterator[Source]:
    ending = ".toml" if base.name == ".gemini" else ".md"
    for folder, kind in folders.items():
        yield Source(cast("Kind", kind), base / folder, f"{label}{folder}", project, ending)


def _shown(folder: Path, home: Path) -> str:
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


class _Seen(Struct, frozen=True):
    """A file's identity when it was read."""

    signature: tuple[int, ...]
    file: FoundFile | None
    problem: tuple[str, Problem] | None


Found: TypeAlias = "tuple[tuple[FoundFile, ...], tuple[tuple[str, Problem], ...]]"
"""Files, and problems with others, each with its path."""


class Reader:
    """Reads the files of sources, rereading only changed ones."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._newest: Found = ((), ())

    def read(self, sources: Sequence[Source]) -> Found:
        """All files in the order of the sources, and problems with unreadable ones. Returns the same object if nothing
        changed."""
        files: list[FoundFile] = []
        problems: list[tuple[str, Problem]] = []
        seen: dict[str, _Seen] = {}
        for source in sources:
            trouble = _leads_out(source.folder, source)
            if trouble:
                problems.append((source.label, Problem(0, trouble)))
                continue
            unlisted: list[tuple[str, OSError]] = []
            candidates = list(_candidates(source, unlisted))
            for folder, error in unlisted:
                if not isinstance(error, FileNotFoundError | NotADirectoryError):
                    shown = f"{source.label}{folder.removeprefix(str(source.folder))}"
                    problems.append((shown, Problem(0, f"cannot list it ({error.strerror or error})")))
            if len(candidates) > MOST_FILES:
                text = f"has more than {MOST_FILES:,} {source.kind}; the others are ignored"
                problems.append((source.label, Problem(0, text)))
            for path in candidates[:MOST_FILES]:
                now = self._look(path, source)
                if now is None:
                    continue
                seen[path] = now
                if now.problem is not None:
                    problems.append(now.problem)
                if now.file is not None:
                    files.append(now.file)
        self._seen = seen
        if (tuple(files), tuple(problems)) != self._newest:
            self._newest = tuple(files), tuple(problems)
        return self._newest

    def _look(self, name: str, source: Source) -> _Seen | None:
        """The file as it is now; None if it disappeared since the folder was listed."""
        shown = f"{source.label}{name.removeprefix(str(source.folder))}"
        try:
            status = os.stat(name)
            signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)
        except FileNotFoundError:
            if not os.path.islink(name):
                return None
            return _Seen((), None, (shown, Problem(0, "is a broken link")))
        except OSError as error:
            return _Seen((), None, (shown, Problem(0, f"cannot read it ({error.strerror or error})")))
        known = self._seen.get(name)
        if known is not None and known.signature == signature:
            return known
        path = Path(name)
        if trouble := _leads_out(path, source):
            return _Seen(signature, None, (shown, Problem(0, trouble)))
        try:
            return _Seen(signature, _read(path, shown, source), None)
        except OSError as error:
            return _Seen(signature, None, (shown, Problem(0, f"cannot read it ({error.strerror or error})")))
        except ValueError as error:
            return _Seen(signature, None, (shown, Problem(0, str(error))))


def _leads_out(path: Path, source: Source) -> str:
    """The problem with a project path that a link leads out of the project; empty if there is none."""
    if source.project is None or Path(os.path.realpath(path)).is_relative_to(source.project):
        return ""
    return "is a link that leads outside the project and is ignored"


def _candidates(source: Source, unlisted: list[tuple[str, OSError]]) -> Iterator[str]:
    """Files that may define an extension, sorted by name. ``unlisted`` gets the folders that can't be listed."""
    top = str(source.folder)
    if source.kind != "skills" and source.only:
        yield f"{top}/{source.only}"
        return
    if source.kind != "skills":
        yield from _files(top, source.ending, 0, unlisted)
        return
    names = [source.only] if source.only else [name for name, _ in _entries(top, unlisted)]
    for name in names:
        path = f"{top}/{name}/{SKILL_FILE}"
        if os.path.lexists(path):
            yield path


def _files(folder: str, ending: str, depth: int, unlisted: list[tuple[str, OSError]]) -> Iterator[str]:
    for name, is_folder in _entries(folder, unlisted):
        if is_folder and depth < _DEEPEST and not os.path.islink(f"{folder}/{name}"):
            yield from _files(f"{folder}/{name}", ending, depth + 1, unlisted)
        elif not is_folder and name.lower().endswith(ending) and name.lower() != "readme.md":
            yield f"{folder}/{name}"


def _entries(folder: str, unlisted: list[tuple[str, OSError]]) -> list[tuple[str, bool]]:
    """Names in a folder that are not hidden, sorted, and whether each is a folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        unlisted.append((folder, error))
        return []


def _read(path: Path, shown: str, source: Source) -> FoundFile:
    """The file as text.

    Raises:
        OSError: it can't be read.
        ValueError: it is unusable; the message gives the reason.
    """
    with open_regular(Path(os.path.realpath(path))) as (descriptor, status):
        data = b""
        while len(data) <= MOST_BYTES and (piece := os.read(descriptor, 65_536)):
            data += piece
    problems: list[Problem] = []
    if len(data) > MOST_BYTES:
        data = data[:MOST_BYTES].rpartition(b"\n")[0] or data[:MOST_BYTES]
        text = f"has {status.st_size:,} bytes; only its first {MOST_BYTES:,} are used"
        problems.append(Problem(0, text))
    data = marked.encode() if (marked := marked_text(data)) is not None else data
    if b"\0" in data[:_HEAD]:
        raise ValueError("is a binary file and is ignored")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(Problem(line, "is not UTF-8; unreadable bytes are shown as �", broken=True))
        text = data.decode("utf-8", "replace")
    relative = path.relative_to(source.folder)
    stem = relative.parent.parts if source.kind == "skills" else relative.with_suffix("").parts
    origin = Origin(path, shown, source, sha256(data).hexdigest())
    return FoundFile(origin, stem, as_read(text.replace("\r\n", "\n").replace("\r", "\n")), tuple(problems))


def is_name(text: str) -> bool:
    """Whether the text is a valid name: lower-case letters, digits and hyphens, at least one letter."""
    return _NAME.fullmatch(text) is not None


def as_name(text: str) -> str:
    """The nearest valid name; empty if there is none."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")
    return slug[:64] if is_name(slug[:64]) else ""
