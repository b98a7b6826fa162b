"""Framing: bytes of a response body in, whole events out. Pure and incremental; the result does not depend on how the
bytes are cut into chunks, and the cost is linear in their number.

- ``SseParser``: server-sent events (WHATWG HTML, section 9.2), plus deviations of real servers.
- ``JsonParser``: JSON values in sequence (lines, pretty-printed, or the elements of one long array).
- ``BodyParser``: chooses between the two by content type and first byte.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

_BOM = b"\xef\xbb\xbf"
_LINE_END = lazy_pattern(rb"\r\n|\n|\r")
_STRUCTURE = lazy_pattern(rb'[{}\[\]"]')
_FILLING = lazy_pattern(rb'(?:[^"{}\[\]]+|"[^"\\]*(?:\\.[^"\\]*)*")+', re.DOTALL)
"""Text between brackets, including whole strings."""
_IN_STRING = lazy_pattern(rb'["\\]')
_FIELDS = frozenset(("data", "event", "id", "retry", "error"))


class WireEvent(Struct, frozen=True):
    """One event of a stream. ``partial``: the bytes ended before the event did, so it may be incomplete."""

    data: str
    name: str = ""
    partial: bool = False


class Framing(Protocol):
    def feed(self, chunk: bytes) -> list[WireEvent]: ...

    def end(self) -> list[WireEvent]:
        """The remaining events, after the last bytes."""
        ...


class SseParser:
    """Server-sent events.

    Line ends are CR, LF or CRLF, even split between chunks, and nothing else (U+2028 is text). A byte order mark at the
    start is dropped. ``end`` returns an event whose final blank line is missing. A field ``error`` and a bare
    ``{"error": ...}`` line, which some servers write when they die, become events named ``error``. Invalid UTF-8
    becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_cr = False
        self._at_start = True
        self._data: list[str] = []
        self._name = ""
        self.recognised = False
        """Whether any line was a comment or a field of the format."""
        self.strange = False
        """Whether any whole line was neither."""

    def feed(self, chunk: bytes) -> list[WireEvent]:
        events: list[WireEvent] = []
        position = 0
        if self._after_cr and chunk:
            self._after_cr = False
            position = 1 if chunk.startswith(b"\n") else 0
        for match in _LINE_END.finditer(chunk, position):
            self._line += chunk[position : match.start()]
            self._end_line(events)
            position = match.end()
        self._line += chunk[position:]
        if position == len(chunk) and chunk.endswith(b"\r"):
            self._after_cr = True
        return events

    def end(self) -> list[WireEvent]:
        events: list[WireEvent] = []
        partial, strange = bool(self._line), self.strange
        if partial:
            self._end_line(events)
            self.strange = strange
        self._dispatch(events, partial=partial)
        return events

    def _end_line(self, events: list[WireEvent]) -> None:
        line = self._line.decode("utf-8", "replace")
        self._line.clear()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix("\ufeff")
        if not line:
            self._dispatch(events)
            return
        if line.startswith(":"):
            self.recognised = True
            return
        field, _, value = line.partition(":")
        if field in _FIELDS:
            self.recognised = True
        else:
            self.strange = True
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "error":
            self._name = "error"
            self._data.append(value)
        elif line.startswith('{"error"'):
            self._name = "error"
            self._data.append(line)

    def _dispatch(self, events: list[WireEvent], partial: bool = False) -> None:
        data, name = "\n".join(self._data), self._name
        self._data.clear()
        self._name = ""
        if data or name == "error":
            events.append(WireEvent(data, name, partial))


class JsonParser:
    """JSON values framed only by their own brackets.

    Accepts one value per line (NDJSON), values that span lines, and the elements of one array that spans the whole
    body. Anything else at the outermost level is kept in ``stray`` for the error message.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._in_array = False
        self._values = 0
        self._had_array = False
        self.stray = ""

    def feed(self, chunk: bytes) -> list[WireEvent]:
        events: list[WireEvent] = []
        position = start = 0
        while position < len(chunk):
            if self._in_string:
                position = self._string(chunk, position)
                continue
            if self._depth and (filling := _FILLING.match(chunk, position)) is not None:
                position = filling.end()
            match = _STRUCTURE.search(chunk, position)
            if match is None:
                self._outside(chunk, position, len(chunk))
                break
            self._outside(chunk, position, match.start())
            token = match.group()
            position = match.end()
            if token == b'"':
                self._in_string = True
            elif token in (b"{", b"["):
                if token == b"[" and self._depth == 0 and not self._in_array:
                    self._in_array = self._had_array = True
                    continue
                if self._depth == 0:
                    start = match.start()
                self._depth += 1
            elif self._depth == 0:
                self._in_array = False
            else:
                self._depth -= 1
                if self._depth == 0:
                    self._values += 1
                    self._buffer += chunk[start:position]
                    events.append(WireEvent(self._buffer.decode("utf-8", "replace")))
                    self._buffer.clear()
                    start = position
        if self._depth:
            self._buffer += chunk[start:]
        return events

    @property
    def is_one_object(self) -> bool:
        return self._values == 1 and self._depth == 0 and not self._had_array and not self.stray

    def end(self) -> list[WireEvent]:
        rest = self._buffer.decode("utf-8", "replace")
        self._buffer.clear()
        return [WireEvent(rest, partial=True)] if rest else []

    def _string(self, chunk: bytes, position: int) -> int:
        if self._escaped:
            self._escaped = False
            return position + 1
        match = _IN_STRING.search(chunk, position)
        if match is None:
            return len(chunk)
        if match.group() == b"\\":
            self._escaped = True
        else:
            self._in_string = False
        return match.end()

    def _outside(self, chunk: bytes, start: int, end: int) -> None:
        if self._depth == 0 and len(self.stray) < 200:
            self.stray += chunk[start:end].decode("utf-8", "replace").strip(" \t\r\n,\ufeff")


BodyKind = Literal["unknown", "sse", "json", "html", "other"]


class BodyParser:
    """The body of a successful response, in any format.

    ``kind`` is ``unknown`` until the first non-blank byte. A body that starts with ``<`` is a web page; one that starts
    with a bracket is JSON even if labelled as an event stream; the rest counts as server-sent events if the label or
    the format of its lines says so, else it is ``other``. ``excerpt`` holds the first 300 characters of a body that is
    neither events nor JSON.
    """

    def __init__(self, content_type: str) -> None:
        self._labelled_sse = "event-stream" in content_type.lower()
        self._head = bytearray()
        self._parser: Framing | None = None
        self._kind: BodyKind = "unknown"
        self.excerpt = ""

    @property
    def kind(self) -> BodyKind:
        if self._kind == "sse" and isinstance(self._parser, SseParser):
            doubtful = not self._labelled_sse or self._parser.strange
            return "other" if doubtful and not self._parser.recognised else "sse"
        return self._kind

    @property
    def is_one_object(self) -> bool:
        return isinstance(self._parser, JsonParser) and self._parser.is_one_object

    def feed(self, chunk: bytes) -> list[WireEvent]:
        if self._parser is None:
            self._head += chunk
            if not self._decide():
                return []
            chunk = bytes(self._head)
        if len(self.excerpt) < 300 and self._kind != "json":
            self.excerpt = (self.excerpt + chunk[:400].decode("utf-8", "replace"))[:300]
        return [] if self._kind == "html" or self._parser is None else self._parser.feed(chunk)

    def end(self) -> list[WireEvent]:
        return self._parser.end() if self._parser is not None else []

    def _decide(self) -> bool:
        head = bytes(self._head)
        if len(head) < len(_BOM) and _BOM.startswith(head):
            return False
        start = head.removeprefix(_BOM).lstrip()[:1]
        if not start:
            return False
        if start == b"<":
            self._kind, self._parser = "html", JsonParser()
        elif start in (b"{", b"["):
            self._kind, self._parser = "json", JsonParser()
        else:
            self._kind, self._parser = "sse", SseParser()
        return True
