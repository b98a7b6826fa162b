"""What all protocols share: the decoder interface, the description of the model that is asked, the request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swecli.core.llm.dialects import Dialect
from swecli.core.llm.error_bodies import message_of
from swecli.core.llm.errors import ErrorContext, WireError, read_error, readable, to_provider_error
from swecli.core.llm.framing import BodyParser, WireEvent
from swecli.core.llm.json_values import JsonObject, as_int, as_object, is_list, parse_json, parse_object
from swecli.core.llm.protocols.answer import Answer
from swecli.core.llm.protocols.transcript import new_call_id
from swecli.core.llm.text import ThinkTags
from swecli.core.llm.types import ErrorKind, ModelRequest, ProviderError, StreamEvent
from swecli.core.protocol.messages import Message, Opaque, Origin

_DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Target:
    """The model a request goes to. ``window`` is set where a server must be told it."""

    origin: Origin
    dialect: Dialect
    provider: str = ""
    window: int | None = None
    max_output: int | None = None

    @property
    def model(self) -> str:
        return self.origin.model

    def echo(self, opaque: Opaque | None) -> JsonObject | None:
        """The provider data of a part, if it came from this very model; else None: another one must not see it."""
        return as_object(opaque.data) if opaque is not None and opaque.origin == self.origin else None


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request ready to be sent. ``path`` follows the base URL (which ends without a slash), ``optional`` names
    the keys of ``body`` (``outer.inner`` for a key within one) that the request can do without, in case a server
    does not know them."""

    path: str
    body: JsonObject
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    optional: tuple[str, ...] = ()


BuildRequest = Callable[[ModelRequest, Target], WireRequest]


class Decoder(ABC):
    """A pure state machine: wire events in, stream events out. The last event is ``Finished`` or ``Failed``."""

    def __init__(
        self,
        origin: Origin,
        *,
        think_tags: ThinkTags = "keep",
        context: ErrorContext | None = None,
        make_id: Callable[[], str] = new_call_id,
    ) -> None:
        self.answer = Answer(origin, think_tags, make_id)
        self._context = context or ErrorContext(model=origin.model)
        self._recognised = False
        self._seen = False
        self._strange = ""

    @property
    def closed(self) -> bool:
        """Whether the terminal event has been given out."""
        return self.answer.outcome != "open"

    def feed(self, event: WireEvent) -> list[StreamEvent]:
        """The stream events that follow from one event of the wire."""
        data = event.data.strip()
        try:
            self._take(data, event.name)
        except ValueError:
            if not self._take_lines(data, event.name):
                self._on_unreadable(event, data)
        return self.answer.take_events()

    def _take(self, data: str, name: str) -> None:
        """Take in the text of one event.

        Raises:
            ValueError: it is no JSON.
        """
        if self.closed:
            return
        if data == _DONE:
            self.on_done()
            return
        value: object = parse_json(data)
        if is_list(value) and value:
            value = value[0]
        message = as_object(value)
        self._seen = True
        self._recognised = self.on_message(message, name) or self._recognised
        if not self._recognised and not self._strange:
            self._strange = message_of(value, message)
        if not self.closed and (name == "error" or _is_error(message)):
            self.fail_wire(read_error(value))

    def _take_lines(self, data: str, name: str) -> bool:
        """Events whose server forgot the blank lines between them. Returns whether they are that."""
        lines = [line for line in data.split("\n") if line.strip()]
        if len(lines) < 2 or not all(line.strip() == _DONE or parse_object(line) is not None for line in lines):
            return False
        for line in lines:
            self._take(line.strip(), name)
        return True

    def end(self) -> list[StreamEvent]:
        """No more events come."""
        if self.closed:
            return []
        self.on_end()
        if not self.closed and self._seen and not self._recognised:
            said = f": {readable(self._strange)[:300]}" if self._strange else ""
            self.fail("protocol", f"the answer is JSON, but not of this protocol{said}")
        elif not self.closed:
            self.fail("truncated", "the answer ended before it was complete")
        return self.answer.take_events()

    def end_of_body(self, body: BodyParser) -> list[StreamEvent]:
        """No more bytes come: like ``end``, with an explanation if the body was something else altogether."""
        if not self.closed and not self._seen and body.kind in ("html", "other"):
            self.fail("protocol", readable(body.excerpt))
            return self.answer.take_events()
        return self.end()

    def abort(self, error: ProviderError) -> list[StreamEvent]:
        """The transport failed; what came so far is kept in the ``Failed`` event."""
        self.answer.fail("truncated" if error.kind == "truncated" else "error", error)
        return self.answer.take_events()

    @abstractmethod
    def on_message(self, message: JsonObject, name: str) -> bool:
        """Take in one JSON object of the stream. Returns whether it is of this protocol."""

    def on_done(self) -> None:
        """The ``[DONE]`` marker came: no news where the protocol has a terminal event."""
        return

    def on_end(self) -> None:
        """The stream ended without a marker: complete the answer if the protocol allows that."""
        return

    def fail_wire(self, wire: WireError) -> None:
        """End with an error that the server sent in the stream."""
        self.answer.fail("error", to_provider_error(wire, self._context), wire)

    def fail(self, kind: ErrorKind, message: str) -> None:
        """End with an error that was found here."""
        hints: dict[ErrorKind, str] = {
            "truncated": "What arrived is kept; its tool calls were not run.",
            "protocol": f"Check the base URL {self._context.base_url!r} and the protocol of this provider.",
        }
        error = ProviderError(kind, message, hint=hints.get(kind, ""))
        if kind == "truncated":
            self.answer.fail("truncated", error)
        else:
            self.answer.fail("error", error, WireError(200, message, kind=kind))

    def _on_unreadable(self, event: WireEvent, data: str) -> None:
        if event.name == "error":
            self.fail_wire(read_error(data))
        elif data.startswith(("{", "[")) and not event.partial:
            self.fail("protocol", f"an event of the answer is no JSON: {readable(data)[:200]!r}")


def _is_error(message: JsonObject) -> bool:
    if message.get("error") or message.get("type") == "error" or message.get("object") == "error":
        return True
    return as_int(as_object(message.get("base_resp")).get("status_code")) not in (None, 0)  # MiniMax


def tool_messages_end(messages: Sequence[Message], start: int) -> int:
    """The index after the run of tool messages that begins at ``start``."""
    end = start
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def plain(schema: Mapping[str, Any]) -> JsonObject:
    """A tool's parameters as a JSON object, keys in the order given."""
    return dict(schema)
