"""The protocol between swecli and a language server: messages, positions in a text, and file URIs.

msgspec structs replace lsprotocol's classes, which are slow to import and convert: see docs/language-servers.md.

Any value from a server may be missing or of another type; unreadable values count as missing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import msgspec

from swecli.core.llm.json_values import as_object
from swecli.lazy_pattern import lazy_pattern

LONGEST_MESSAGE: Final = 64_000_000
"""Bytes of one message."""
LONGEST_HEADER: Final = 4_096
ERROR: Final = 1
"""Severity of an error diagnostic."""


class Position(msgspec.Struct, frozen=True):
    """Line and character, counted from 0; characters are UTF-16 units."""

    line: int
    character: int


class Range(msgspec.Struct, frozen=True):
    start: Position
    end: Position


class Diagnostic(msgspec.Struct, frozen=True):
    range: Range
    message: str
    severity: int | None = None
    code: str | int | None = None
    source: str | None = None

    @property
    def is_error(self) -> bool:
        """A diagnostic without a severity counts as an error."""
        return self.severity in (None, ERROR)


class Message(msgspec.Struct, frozen=True):
    """Any message from a server. ``params`` and ``result`` are decoded only when needed, so that an unexpected message
    costs nothing, however long."""

    method: str | None = None
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class Published(msgspec.Struct, frozen=True):
    uri: str
    diagnostics: msgspec.Raw = msgspec.Raw(b"[]")
    version: int | None = None


class Report(msgspec.Struct, frozen=True):
    """The answer to a request for a file's diagnostics."""

    items: msgspec.Raw = msgspec.Raw(b"[]")
    kind: str = "full"


class ProtocolError(Exception):
    """A message from a server is invalid; the message gives the reason as a clause."""


_LENGTH = lazy_pattern(rb"content-length:[ \t]*([0-9]+)[ \t]*\r?\n?$", re.IGNORECASE)
_message = msgspec.json.Decoder(Message)
_published = msgspec.json.Decoder(Published)
_report = msgspec.json.Decoder(Report)
_diagnostics = msgspec.json.Decoder(list[Diagnostic])
_one_by_one = msgspec.json.Decoder(list[msgspec.Raw])
_one = msgspec.json.Decoder(Diagnostic)


def read_message(data: bytes) -> Message:
    """The decoded message; raises ``ProtocolError`` if it is invalid."""
    try:
        return _message.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"it sent something that is not a message ({str(error)[:100]})") from error


def read_published(raw: bytes | msgspec.Raw) -> Published | None:
    try:
        return _published.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_report(raw: bytes | msgspec.Raw) -> Report | None:
    try:
        return _report.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_errors(raw: bytes | msgspec.Raw) -> tuple[Diagnostic, ...]:
    """The errors in a list of diagnostics, without unreadable ones."""
    try:
        diagnostics = _diagnostics.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        diagnostics = list(_readable(raw))
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.is_error)


def _readable(raw: bytes | msgspec.Raw) -> Sequence[Diagnostic]:
    try:
        each = _one_by_one.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()
    diagnostics: list[Diagnostic] = []
    for item in each:
        try:
            diagnostics.append(_one.decode(item))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return diagnostics


def read_json(raw: bytes | msgspec.Raw) -> Any:
    """Any value; None if unreadable."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def framed(message: Mapping[str, Any]) -> bytes:
    """A message with its header."""
    whole_message = {"jsonrpc": "2.0", **message}
    try:
        body = msgspec.json.encode(whole_message)
    except (UnicodeEncodeError, TypeError):  # names and settings may hold what only JSON's escapes can say
        body = json.dumps(whole_message, default=str).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def content_length(line: bytes) -> int | None:
    """The length in a header line; None for any other line. Text may precede it if a program printed without a line
    end.

    Raises:
        ProtocolError: it exceeds the maximum message length.
    """
    match = _LENGTH.search(line)
    if match is None:
        return None
    if len(match[1]) > 12 or int(match[1]) > LONGEST_MESSAGE:
        raise ProtocolError(f"it sent a message of more than {LONGEST_MESSAGE // 1_000_000} MB")
    return int(match[1])


# --- places ---------------------------------------------------------------------------------------------------------


def units(text: str) -> int:
    """Number of UTF-16 units in a text."""
    return len(text) + sum(ord(character) > 0xFFFF for character in text)


def column_of(line: str, character: int) -> int:
    """Index in ``line`` of the position ``character``, which is in UTF-16 units."""
    seen = 0
    for index, each in enumerate(line):
        if seen >= character:
            return index
        seen += 2 if ord(each) > 0xFFFF else 1
    return len(line)


def lines_of(text: str) -> list[str]:
    """Lines of a text by the protocol's rules: ended by LF, CRLF or CR only."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def uri_of(path: Path | str) -> str:
    return f"file://{quote(os.fsencode(str(path)), safe='/~')}"


def path_of(uri: object) -> Path | None:
    """The file of a URI; None for anything else. Servers escape more or fewer characters than swecli."""
    if not isinstance(uri, str) or not uri.startswith("file://"):
        return None
    try:
        path = unquote(urlsplit(uri.replace("?", "%3F").replace("#", "%23")).path, errors="surrogateescape")
    except ValueError:
        return None
    return Path(os.path.normpath(path)) if path.startswith("/") and "\0" not in path else None


# --- what is read of answers ------------------------------------------------------------------------------------------


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def start_of(value: Any) -> tuple[int, int] | None:
    """Line and character of the start of a range."""
    start = as_object(as_object(value).get("start"))
    line, character = whole(start.get("line")), whole(start.get("character"))
    return (line, character or 0) if line is not None else None


KINDS: Final = (
    *("file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum"),
    *("interface", "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key"),
    *("null", "enum member", "struct", "event", "operator", "type parameter"),
)


def kind_name(value: Any) -> str:
    """The word for a symbol kind; empty if unknown."""
    number = whole(value)
    return KINDS[number - 1] if number and number <= len(KINDS) else ""
