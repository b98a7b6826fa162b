"""Project instructions: the files in which users tell agents how to work in their project.

They are one section of the system prompt, outside of the history, so that nothing that happens to the history
changes a byte of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from swecli.core.config.trust import INSTRUCTION_FILES
from swecli.core.context_management.counter import CountsTokens, PieceEstimator
from swecli.core.context_management.prompts import read_prompt
from swecli.core.workspace.text_file import open_regular


@dataclass(frozen=True, slots=True)
class FileHead:
    """``text`` is decoded as UTF-8, undecodable bytes replaced, line ends as ``\\n``. ``size`` is the bytes of
    the whole file; ``whole`` says whether ``text`` is all of it. ``digest`` is the SHA-256 of what was read."""

    text: str
    size: int
    whole: bool
    digest: str


class OutsideError(OSError):
    """A symbolic link leads out of the project."""


def read_head(path: Path, limit: int, within: Path | None = None) -> FileHead:
    """Read at most ``limit`` bytes of a regular file. A link may not lead out of ``within``.

    Raises:
        OutsideError: the file is outside of ``within``.
        OSError: there is no such file, or it can't be read.
    """
    resolved = Path(os.path.realpath(path))
    if within is not None and not resolved.is_relative_to(os.path.realpath(within)):
        raise OutsideError(f"{path.name} is a link to a file outside of the project")
    with open_regular(resolved) as (descriptor, status):
        data = _read(descriptor, limit + 1)
    whole = len(data) <= limit
    data = data[:limit]
    text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8", "replace")
    if not whole:
        # The cut may be inside a character or a line; only whole lines are of use.
        text = text[: text.rfind("\n") + 1] or text.rstrip("\ufffd")
    return FileHead(
        text.replace("\r\n", "\n").replace("\r", "\n"), status.st_size, whole, hashlib.sha256(data).hexdigest()
    )


def _read(descriptor: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(descriptor, min(limit, 65_536))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


INSTRUCTION_NAMES = INSTRUCTION_FILES
"""In each directory the first of these that is there and not empty counts."""

MAX_BYTES = 48 * 1024
"""More of one file does not go into the prompt."""

LONG_TOKENS = 4_000
"""A file of more tokens is named to the user with its cost."""

_CUT_NOTE = "(The file goes on; read it with `read_file` when you need the rest.)"


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """One file in the prompt. ``name`` is its path relative to the project's root, for the user's own file its
    absolute path; ``digest`` is the SHA-256 of the bytes that were read; ``tokens`` is an estimate."""

    path: Path
    name: str
    text: str
    digest: str
    tokens: int
    whole: bool = True
    quoted: bool = False
    """Whether it is information of a folder that the user did not say they trust, and no instruction."""
    own: bool = False
    """Whether it is the user's own file, which holds in every project."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """All instruction files, the most general first. ``notices`` are sentences for the user."""

    files: tuple[InstructionFile, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(str(file.path) for file in self.files)

    def render(self) -> str:
        """All of them for the system prompt; empty without files. Equal files give equal bytes."""
        return "\n\n".join(part for part in (self.render_own(), self.render_project()) if part)

    def render_own(self) -> str:
        files = [file for file in self.files if file.own]
        return "\n\n".join([read_prompt("instructions"), *_tagged(files, "instructions")]) if files else ""

    def render_project(self) -> str:
        """The section of the project's files. What they are is said once: here, unless before the user's own file."""
        files = [file for file in self.files if not file.own and not file.quoted]
        quoted = [file for file in self.files if file.quoted]
        heading = [read_prompt("instructions")] if files and not any(file.own for file in self.files) else []
        warning = [read_prompt("instructions_untrusted")] if quoted else []
        return "\n\n".join([*heading, *_tagged(files, "instructions"), *warning, *_tagged(quoted, "quoted")])

    @property
    def digest(self) -> str:
        return sha256(self.render().encode("utf-8", "replace")).hexdigest()


def _tagged(files: Iterable[InstructionFile], tag: str) -> Iterator[str]:
    for file in files:
        note = "" if file.whole else f"\n{_CUT_NOTE}"
        yield f'<{tag} path="{file.name}">\n{file.text.strip()}{note}\n</{tag}>'


def load_instructions(
    cwd: Path,
    *,
    user_directory: Path | None = None,
    counter: CountsTokens | None = None,
    project: Literal["trusted", "quoted", "none"] = "trusted",
    approved: Callable[[Path, str], bool] = lambda path, digest: False,
) -> Instructions:
    """Collect the user's own file and one file for each directory from the project's root down to ``cwd``.

    ``project`` says whether files of the project are instructions, information, or not read at all; a file with a
    content (its SHA-256) that the user ``approved`` is no mere information. A file with the same content as an earlier
    one is left out. Links that lead out of the project, special files and unreadable ones are skipped with a notice.
    """
    counter = counter or PieceEstimator()
    root = project_root(cwd)
    files: list[InstructionFile] = []
    notices: list[str] = []
    seen: set[str] = set()
    for directory, within in _directories(cwd, root, user_directory):
        found = None if project == "none" and within is not None else _first(directory, within, notices)
        if found is None:
            continue
        path, head = found
        if head.digest in seen:
            continue
        seen.add(head.digest)
        name = str(path) if within is None else path.relative_to(root).as_posix()
        tokens = counter.count(head.text)
        quoted = project == "quoted" and within is not None and not approved(path, head.digest)
        files.append(InstructionFile(path, name, head.text, head.digest, tokens, head.whole, quoted, within is None))
        notices.extend(_cost(name, head, tokens))
    return Instructions(tuple(files), tuple(notices))


def project_root(cwd: Path) -> Path:
    """The nearest directory from ``cwd`` upwards that is a git work tree, else ``cwd``."""
    return next((directory for directory in (cwd, *cwd.parents) if (directory / ".git").exists()), cwd)


def _directories(cwd: Path, root: Path, user_directory: Path | None) -> Iterator[tuple[Path, Path | None]]:
    """Each directory to look at, and where its files must be inside of."""
    if user_directory is not None:
        yield user_directory, None
    down = [cwd, *cwd.parents]
    for directory in reversed(down[: down.index(root) + 1]):
        yield directory, root


def _first(directory: Path, within: Path | None, notices: list[str]) -> tuple[Path, FileHead] | None:
    for name in INSTRUCTION_NAMES:
        path = directory / name
        try:
            head = read_head(path, MAX_BYTES, within)
        except FileNotFoundError:
            continue
        except OSError as error:
            notices.append(f"{path} is not used as project instructions: {error.strerror or error}.")
            continue
        if head.text.strip():
            return path, head
    return None


def _cost(name: str, head: FileHead, tokens: int) -> Iterator[str]:
    if not head.whole:
        yield (
            f"{name} has {head.size:,} bytes; its first {MAX_BYTES:,} are in the prompt"
            f" and cost about {tokens:,} tokens in each request. Shorten it."
        )
    elif tokens > LONG_TOKENS:
        yield f"{name} costs about {tokens:,} tokens in each request; shorten it to leave room for the work."
