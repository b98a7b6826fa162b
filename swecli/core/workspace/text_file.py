"""Reading arbitrary files: regular ones only, as bytes or as text with an exact way back."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from swecli.lazy_pattern import lazy_pattern

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NON_BLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)
READ_FLAGS = os.O_RDONLY | _NO_FOLLOW | _NON_BLOCK | _BINARY | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
_AT = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISLNK, "a symbolic link"),
)


class NotRegularError(OSError):
    """The path exists but is not a regular file. ``kind`` names its type ("a directory")."""

    def __init__(self, path: Path | str, kind: str) -> None:
        super().__init__(errno.EINVAL, f"is {kind}, not a regular file", str(path))
        self.kind = kind


class TooLargeError(OSError):
    """The file exceeds the caller's limit. ``size`` is bytes."""

    def __init__(self, path: Path | str, size: int, limit: int) -> None:
        super().__init__(errno.EFBIG, f"is {size:,} bytes, more than {limit:,}", str(path))
        self.size = size


class FileState(NamedTuple):
    """A file's state at one moment. ``sha256`` is the hex digest of its bytes."""

    sha256: str
    dev: int
    ino: int
    size: int

    def __str__(self) -> str:
        return f"{self.sha256}:{self.dev}:{self.ino}"


def kind_of(mode: int) -> str | None:
    """The type of a non-regular ``st_mode`` in words; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    return next((name for test, name in _KINDS if test(mode)), "a special file")


def require_regular(path: Path | str, status: os.stat_result) -> None:
    kind = kind_of(status.st_mode)
    if kind is not None:
        raise NotRegularError(path, kind)


def open_folder(path: Path) -> int | None:
    """A descriptor for naming a directory's entries; None where the platform has no such calls. ``path`` must be
    resolved: each component is opened from its parent without following links.

    Raises:
        OSError: it can't be opened, or a component is a link.
    """
    if not _AT:
        return None
    descriptor = os.open(path.anchor, _FOLDER_FLAGS)
    try:
        for part in path.parts[1:]:
            deeper = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
    except OSError as error:
        os.close(descriptor)
        error.filename = str(path)
        raise
    return descriptor


@contextmanager
def open_regular(path: Path, *, exact: bool = False) -> Generator[tuple[int, os.stat_result]]:
    """A file descriptor for reading, and its status. ``path`` must be resolved. ``exact``: a folder of the path that
    has become a link since is an error, too.

    Opening neither blocks on a pipe nor follows a link at the end of the path.

    Raises:
        NotRegularError: not a regular file.
        OSError: it can't be opened.
    """
    folder = open_folder(path.parent) if exact else None
    name = path.name if folder is not None else path
    try:
        require_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
    finally:
        if folder is not None:
            os.close(folder)
    try:
        status = os.fstat(descriptor)
        require_regular(path, status)
        yield descriptor, status
    finally:
        os.close(descriptor)


def read_all(descriptor: int, size: int) -> bytes:
    """The rest of an open file; ``size`` is a hint."""
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as stream:
        pieces: list[bytes] = []
        while piece := stream.read(max(65_536, min(size, 1 << 24))):
            pieces.append(piece)
        return b"".join(pieces)


def read_bytes(path: Path, limit: int, *, exact: bool = False) -> tuple[bytes, FileState]:
    """The whole file and its state; ``exact`` as for ``open_regular``.

    Raises:
        NotRegularError: not a regular file.
        TooLargeError: more than ``limit`` bytes.
        OSError: it can't be read.
    """
    with open_regular(path, exact=exact) as (descriptor, status):
        if status.st_size > limit:
            raise TooLargeError(path, status.st_size, limit)
        data = read_all(descriptor, status.st_size)
    if len(data) > limit:
        raise TooLargeError(path, len(data), limit)
    return data, FileState(sha256(data).hexdigest(), status.st_dev, status.st_ino, len(data))


def is_folder(name: str, base: Path) -> bool:
    """Whether this names an existing folder; False for an invalid name."""
    try:
        return _located(name, base).is_dir()
    except (OSError, ValueError):  # too long for a name, or with a null byte
        return False


def shown_path(path: str, cwd: Path | str) -> str:
    """``path`` as the user knows it: relative to the working directory if inside it."""
    inside = path.startswith(f"{cwd}{os.sep}")
    return os.path.relpath(path, cwd) if inside else path


_ESCAPED = lazy_pattern(r"\\([^\w\\])")
_IN_QUOTES = lazy_pattern(r"""\\(["\\])""")


def unescaped(quoted: str) -> str:
    """The name that stands between double quotes, in which a backslash precedes a quote or another backslash."""
    return _IN_QUOTES.sub(r"\1", quoted)


def typed_path(words: str) -> str:
    """The path that a user typed behind a command, completed as a mention, or dropped on the terminal: without ``@``,
    quotes around it, and backslashes before blanks and other signs."""
    path = words.strip().removeprefix("@")
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'":
        return unescaped(path[1:-1]) if path[0] == '"' else path[1:-1]
    return _ESCAPED.sub(r"\1", path)


def usable_folder(name: str, base: Path) -> Path:
    """The folder, with links followed.

    Raises:
        ValueError: it is unusable; the message says why.
    """
    path = _located(name, base)
    if not is_folder(name, base):
        try:
            there = path.exists()
        except (OSError, ValueError):
            there = False
        raise ValueError("not a directory" if there else "no such directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ValueError("not readable")
    return path.resolve()


def _located(name: str, base: Path) -> Path:
    try:
        return base / Path(name).expanduser()
    except RuntimeError as error:  # ~name of an unknown account
        raise ValueError(f"cannot use it ({error})") from None


LineEnd = Literal["lf", "crlf", "mixed", "none"]

_BOMS: tuple[tuple[bytes, str, str], ...] = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with BOM"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 LE"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 BE"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 LE"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 BE"),
)
"""UTF-32 LE precedes UTF-16 LE, whose mark is its beginning."""


class TextFile(NamedTuple):
    """``raw`` = ``bom`` + encoded ``text`` + ``tail``. ``text`` keeps the line ends of the file."""

    raw: bytes
    text: str
    bom: bytes
    codec: str
    """Name of the Python codec."""
    errors: str
    """Error handler that makes the codec reversible for this file."""
    label: str
    """Encoding name for people."""
    tail: bytes = b""
    """Bytes after the last whole code unit, which form no character."""

    def encode(self, text: str) -> bytes:
        """A piece of ``self.text`` as the file's bytes."""
        return text.encode(self.codec, self.errors)

    def encode_new(self, text: str) -> bytes:
        """New text as bytes of the file's encoding.

        Raises:
            UnicodeEncodeError: the encoding lacks a character.
        """
        return text.encode(self.codec, "strict")

    def holding(self, raw: bytes) -> TextFile:
        """A file of the same encoding with the bytes of an edit."""
        end = len(raw) - len(self.tail)
        text = raw[len(self.bom) : end].decode(self.codec, self.errors)
        return self._replace(raw=raw, text=text)

    @property
    def line_end(self) -> LineEnd:
        total, pairs = self.text.count("\n"), self.text.count("\r\n")
        if not total:
            return "none"
        return "crlf" if pairs == total else "mixed" if pairs else "lf"

    @property
    def final_newline(self) -> bool:
        return self.text.endswith("\n")

    @property
    def looks_binary(self) -> bool:
        """Whether the text has a NUL character, so that it is unreadable for people and models."""
        return "\0" in self.text


def decode(raw: bytes) -> TextFile:
    """The text of ``raw``. Never fails: invalid Unicode is read as an East Asian encoding that it clearly is, else as a
    single-byte one."""
    for bom, codec, label in _BOMS:
        if raw.startswith(bom):
            file = _with_bom(raw, bom, codec, label)
            if file is not None:
                return file
    return _without_bom(raw)


def marked_text(raw: bytes) -> str | None:
    """The text of bytes that begin with the mark of UTF-16 or UTF-32, as some editors and shells write it; None for
    others."""
    if not raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        return None
    file = decode(raw)
    return file.text.encode("utf-8", "replace").decode("utf-8") if file.bom else None


def _with_bom(raw: bytes, bom: bytes, codec: str, label: str) -> TextFile | None:
    body = raw[len(bom) :]
    unit = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[codec[:6].rstrip("-")]
    whole = len(body) - len(body) % unit
    errors = "surrogateescape" if unit == 1 else "surrogatepass"
    try:
        text = body[:whole].decode(codec, errors)
        reversible = text.encode(codec, errors) == body[:whole]
    except UnicodeError:
        return None
    return TextFile(raw, text, bom, codec, errors, label, body[whole:]) if reversible else None


def _without_bom(raw: bytes) -> TextFile:
    try:
        return TextFile(raw, raw.decode("utf-8"), b"", "utf-8", "strict", "UTF-8")
    except UnicodeDecodeError:
        pass
    lenient = raw.decode("utf-8", "surrogateescape")
    stray = sum(1 for char in lenient if "\udc80" <= char <= "\udcff")
    valid = sum(1 for char in lenient if char > "\x7f") - stray
    if valid > stray:
        return TextFile(raw, lenient, b"", "utf-8", "surrogateescape", "UTF-8 with invalid bytes")
    from swecli.core.workspace.east_asian import LEAST, east_asian  # few files need it

    if stray >= LEAST and "\0" not in lenient and (decoded := east_asian(raw)) is not None:
        encoding, text = decoded
        return TextFile(raw, text, b"", encoding.codec, "strict", encoding.label)
    if any(0x80 <= byte <= 0x9F for byte in raw):
        try:
            return TextFile(raw, raw.decode("cp1252"), b"", "cp1252", "strict", "Windows-1252")
        except UnicodeDecodeError:
            pass
    return TextFile(raw, raw.decode("latin-1"), b"", "latin-1", "strict", "Latin-1")
