"""A file's bytes as text, with an exact way back.

The encoding is chosen so that encoding the text again gives the same bytes. Bytes that no encoding explains are
kept: edits slice the original bytes and never write a re-encoded copy of what they did not change.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from typing import Literal

LineEnd = Literal["lf", "crlf", "mixed", "none"]

_BOMS: tuple[tuple[bytes, str, str], ...] = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with BOM"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 LE"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 BE"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 LE"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 BE"),
)
"""UTF-32 LE stands before UTF-16 LE, whose mark is its beginning."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """``raw`` = ``bom`` + encoded ``text`` + ``tail``. ``text`` keeps the line ends of the file."""

    raw: bytes
    text: str
    bom: bytes
    codec: str
    """Name of the Python codec."""
    errors: str
    """Error handler that makes the codec reversible for this file."""
    label: str
    """Name of the encoding for people."""
    tail: bytes = b""
    """Bytes after the last whole code unit, which belong to no character."""

    def encode(self, text: str) -> bytes:
        """A piece of ``self.text`` as the file's bytes."""
        return text.encode(self.codec, self.errors)

    def encode_new(self, text: str) -> bytes:
        """New text as bytes of the file's encoding.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        return text.encode(self.codec, "strict")

    def holding(self, raw: bytes) -> TextFile:
        """A file of the same encoding with other bytes, which an edit of this one made."""
        end = len(raw) - len(self.tail)
        text = raw[len(self.bom) : end].decode(self.codec, self.errors)
        return replace(self, raw=raw, text=text)

    @property
    def line_end(self) -> LineEnd:
        """Which line ends the file has."""
        total, pairs = self.text.count("\n"), self.text.count("\r\n")
        if not total:
            return "none"
        return "crlf" if pairs == total else "mixed" if pairs else "lf"

    @property
    def final_newline(self) -> bool:
        return self.text.endswith("\n")

    @property
    def looks_binary(self) -> bool:
        """Whether the text has a NUL character: no text that a person or a model would read."""
        return "\0" in self.text


def decode(raw: bytes) -> TextFile:
    """The text of ``raw``. Never fails: what is no Unicode text is read as a single-byte encoding."""
    for bom, codec, label in _BOMS:
        if raw.startswith(bom):
            found = _with_bom(raw, bom, codec, label)
            if found is not None:
                return found
    return _without_bom(raw)


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
    if any(0x80 <= byte <= 0x9F for byte in raw):
        try:
            return TextFile(raw, raw.decode("cp1252"), b"", "cp1252", "strict", "Windows-1252")
        except UnicodeDecodeError:
            pass
    return TextFile(raw, raw.decode("latin-1"), b"", "latin-1", "strict", "Latin-1")
