"""Where skills, commands and agent profiles come from: the folders in order of precedence, and their files as text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from swecli.core.config.trust import EXTENSION_FOLDERS, EXTENSION_HOMES, trust_key
from swecli.core.extensions.front_matter import Problem
from swecli.core.workspace.text_file import open_regular

Kind = Literal["skills", "commands", "agents"]

SKILL_FILE = "SKILL.md"
MOST_BYTES = 256 * 1024
"""More of one file is not read."""
MOST_FILES = 2_000
"""Files that one folder may have."""
_DEEPEST = 4
"""Folders in folders, for the namespaces of commands."""
_HEAD = 8_192
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class Source(Struct, frozen=True):
    """One folder. ``label`` is what people call it; ``project`` the folder that its files must be inside of, None for
    those of the user, who may link wherever they like."""

    kind: Kind
    folder: Path
    label: str
    project: Path | None = None


class Origin(Struct, frozen=True):
    """The file that something came from. ``shown`` is its path as people know it, ``digest`` the SHA-256 of what was
    read of it, empty for what came with swecli."""

    path: Path
    shown: str
    source: Source
    digest: str = ""

    @property
    def folder(self) -> Path:
        return self.path.parent


class FoundFile(Struct, frozen=True):
    """A file that was read. ``stem`` is what its place says of its name: folders and file, without the ending."""

    origin: Origin
    stem: tuple[str, ...]
    text: str
    problems: tuple[Problem, ...] = ()


def places(cwd: Path, *, user_folder: Path, home: Path, project: bool) -> tuple[Source, ...]:
    """The folders in which something may be, the first to win first: of the project from ``cwd`` up to its root, then
    the user's. ``project`` says whether those of the project count. None of them need exist."""
    found: list[Source] = []
    own = [(user_folder, f"{_shown(user_folder, home)}/")]
    own += [(home / name, f"~/{name}/") for name in EXTENSION_HOMES[1:]]
    users = {os.path.realpath(folder) for folder, _ in own}
    start, root = Path(os.path.realpath(cwd)), trust_key(cwd)
    if project:
        down = [start, *start.parents]
        for folder in down[: down.index(root) + 1] if root in down else [start]:
            for name in EXTENSION_HOMES:
                base = folder / name
                if os.path.realpath(base) in users or not os.path.lexists(base):
                    continue
                label = f"{os.path.relpath(base, start)}/"
                found += (Source(kind, base / kind, f"{label}{kind}", root) for kind in EXTENSION_FOLDERS)
    for base, label in own:
        found += (Source(kind, base / kind, f"{label}{kind}") for kind in EXTENSION_FOLDERS)
    return tuple(found)


def _shown(folder: Path, home: Path) -> str:
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


class _Seen(Struct, frozen=True):
    """What a file was like when it was read."""

    signature: tuple[int, ...]
    file: FoundFile | None
    problem: tuple[str, Problem] | None


Found: TypeAlias = "tuple[tuple[FoundFile, ...], tuple[tuple[str, Problem], ...]]"
"""Files, and what is wrong with others, each with its place."""


class Reader:
    """Reads the files of sources, each again only when it has changed."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._newest: Found = ((), ())

    def read(self, sources: Sequence[Source]) -> Found:
        """Everything that is there, in the order of the sources, and what could not be read, each with its place. The
        same value as before where nothing has changed."""
        found: list[FoundFile] = []
        problems: list[tuple[str, Problem]] = []
        seen: dict[str, _Seen] = {}
        for source in sources:
            trouble = _leads_out(source.folder, source)
            if trouble:
                problems.append((source.label, Problem(0, trouble)))
                continue
            try:
                candidates = list(_candidates(source))
            except OSError as error:
                if not isinstance(error, FileNotFoundError | NotADirectoryError):
                    problems.append((source.label, Problem(0, f"cannot list it ({error.strerror or error})")))
                continue
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
                    found.append(now.file)
        self._seen = seen
        if (tuple(found), tuple(problems)) != self._newest:
            self._newest = tuple(found), tuple(problems)
        return self._newest

    def _look(self, name: str, source: Source) -> _Seen | None:
        """The file as it is now; None where it has gone since the folder was listed."""
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
    """What is wrong with a place of a project that a link leads out of it; empty where nothing is."""
    if source.project is None or Path(os.path.realpath(path)).is_relative_to(source.project):
        return ""
    return "is a link that leads outside the project and is ignored"


def _candidates(source: Source) -> Iterator[str]:
    """The files that may define something, sorted by name."""
    if source.kind == "skills":
        with os.scandir(source.folder) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        for name in names:
            path = f"{source.folder}/{name}/{SKILL_FILE}"
            if os.path.lexists(path):
                yield path
        return
    yield from _markdown(str(source.folder), 0)


def _markdown(folder: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted((entry.name, entry.is_dir()) for entry in entries if not entry.name.startswith("."))
    for name, is_folder in found:
        if is_folder and depth < _DEEPEST and not os.path.islink(f"{folder}/{name}"):
            yield from _markdown(f"{folder}/{name}", depth + 1)
        elif not is_folder and name.lower().endswith(".md") and name.lower() != "readme.md":
            yield f"{folder}/{name}"


def _read(path: Path, shown: str, source: Source) -> FoundFile:
    """The file as text.

    Raises:
        OSError: it can't be read.
        ValueError: it is nothing that can be used; the message says what it is.
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
    if b"\0" in data[:_HEAD]:
        raise ValueError("is a binary file and is ignored")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(Problem(line, "is not UTF-8; unreadable bytes are shown as �"))
        text = data.decode("utf-8", "replace")
    relative = path.relative_to(source.folder)
    stem = relative.parent.parts if source.kind == "skills" else relative.with_suffix("").parts
    origin = Origin(path, shown, source, sha256(data).hexdigest())
    return FoundFile(origin, stem, text.replace("\r\n", "\n").replace("\r", "\n"), tuple(problems))


def is_name(text: str) -> bool:
    """Whether something can be called so: small letters, digits and hyphens, beginning with a letter."""
    return _NAME.fullmatch(text) is not None


def as_name(text: str) -> str:
    """The nearest thing to ``text`` that can be a name; empty where there is none."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")
    return slug[:64] if is_name(slug[:64]) else ""
