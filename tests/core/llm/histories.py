"""Requests to build, shared by the tests of all protocols."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from swecli.core.llm.dialects import Dialect, find_dialect
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.json_values import compact
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.protocols.registry import decoder_for, request_builder
from swecli.core.llm.types import Finished, ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    NoteForm,
    Origin,
    Part,
    Response,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.core.llm.wire_cases import find_case

TOOL = ToolSchema("read", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
IMAGE = ImagePart("image/png", "aGk=")


def target(protocol: str, host: str = "example.com", model: str = "m", **quirks: Any) -> Target:
    origin = Origin(protocol, host, model)
    dialect = find_dialect(protocol, host, model)
    return Target(origin, replace(dialect, **quirks) if quirks else dialect, "test")


def plain_target(protocol: str, **quirks: Any) -> Target:
    return Target(Origin(protocol, "h", "m"), Dialect(**quirks))


def user(*texts: str | Part) -> Message:
    return Message("user", tuple(TextPart(part) if isinstance(part, str) else part for part in texts))


def note(text: str, form: NoteForm = "stays") -> Message:
    return Message("user", (TextPart(text),), note=form)


def assistant(*parts: str | Part, origin: Origin | None = None, complete: bool = True) -> Message:
    response = Response(origin or Origin("other", "other", "other"), complete=complete)
    return Message(
        "assistant", tuple(TextPart(part) if isinstance(part, str) else part for part in parts), response=response
    )


def call(call_id: str, arguments: str = "{}", name: str = "read") -> ToolCallPart:
    return ToolCallPart(call_id, name, arguments)


def result(call_id: str, text: str = "ok", *images: ImagePart, error: bool = False) -> Message:
    return Message("tool", (ToolResultPart(call_id, "read", text, error, images),))


def request(*messages: Message, system: Sequence[SystemBlock] = (), **more: Any) -> ModelRequest:
    return ModelRequest(tuple(system), more.pop("tools", ()), messages, **more)


def build(model_request: ModelRequest, to: Target) -> dict[str, Any]:
    """The body, after a trip through JSON."""
    wire = request_builder(to.origin.protocol)(model_request, to)
    assert {name.partition(".")[0] for name in wire.optional} <= set(wire.body)
    return json.loads(compact(wire.body))


def decoded(to: Target, case: str) -> Message:
    """The assistant message of a wire case, as it came from ``to``."""
    wire_case = find_case(to.origin.protocol, case)
    decoder, body = decoder_for(to.origin.protocol, to.origin), BodyParser("text/event-stream")
    events = [event for wire in body.feed(wire_case.body) + body.end() for event in decoder.feed(wire)]
    events += decoder.end_of_body(body)
    last = events[-1]
    assert isinstance(last, Finished)
    return last.message
