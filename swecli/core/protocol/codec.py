"""JSON codec of events and commands, and their JSON Schema.

pydantic is imported when the first event is read or written, not with this module, so that a front-end can
show its first frame without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

from swecli.core.protocol.commands import Command
from swecli.core.protocol.events import PROTOCOL_VERSION, Body, Event, Unknown
from swecli.core.protocol.messages import Message

if TYPE_CHECKING:
    from pydantic import TypeAdapter


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class CodecError(ValueError):
    """The text is no event or command. The message names the field."""


KNOWN_TYPES: frozenset[str] = frozenset(cls.__dataclass_fields__["type"].default for cls in get_args(Body))


@cache
def _body_adapter() -> TypeAdapter[Body]:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Body, Field(discriminator="type")])


@cache
def _body_reader() -> tuple[Callable[[str | bytes], Body], type[Exception]]:
    """What reads a body, and what it raises; looked up once, for a session has tens of thousands of bodies."""
    from pydantic import ValidationError

    return _body_adapter().validate_json, ValidationError


@cache
def _messages_adapter() -> TypeAdapter[tuple[Message, ...]]:
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[Message, ...])


@cache
def _command_adapter() -> TypeAdapter[Command]:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(Annotated[Command, Field(discriminator="type")])


def to_text(value: Any) -> str:
    """JSON on one line. A lone surrogate, which no UTF-8 file can hold, becomes U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def encode_body(body: Body | Unknown) -> str:
    """The body's JSON text."""
    if isinstance(body, Unknown):
        return to_text(body.data)
    return to_text(_body_adapter().dump_python(body, mode="json"))


def decode_body(text: str | bytes) -> Body | Unknown:
    """The body of a JSON text; ``Unknown`` where its type is of a later version.

    Raises:
        CodecError: no JSON object, no type, or fields that do not fit a known type.
    """
    read, invalid = _body_reader()
    try:
        return read(text)
    except invalid:
        # The slower way takes what only Python's parser reads, and says what is wrong.
        return _to_body(_object(text if isinstance(text, str) else text.decode("utf-8", "replace")))


def encode_messages(messages: Sequence[Message]) -> str:
    """Messages as one line of JSON."""
    return to_text(_messages_adapter().dump_python(tuple(messages), mode="json"))


def decode_messages(text: str) -> tuple[Message, ...]:
    """The reverse of ``encode_messages``.

    Raises:
        CodecError: the text is no list of messages.
    """
    from pydantic import ValidationError

    try:
        return _messages_adapter().validate_json(text)
    except ValidationError as error:
        raise CodecError(f"messages: {_first(error)}") from error


def _to_body(data: Mapping[str, Any]) -> Body | Unknown:
    from pydantic import ValidationError

    kind = data.get("type")
    if not isinstance(kind, str):
        raise CodecError("event body without a type")
    if kind not in KNOWN_TYPES:
        return Unknown(kind, data)
    try:
        return _body_adapter().validate_python(data)
    except ValidationError as error:
        raise CodecError(f"event body {kind}: {_first(error)}") from error


def encode_event(event: Event) -> str:
    """The event on one line of JSON."""
    return to_text(
        {
            "v": event.v,
            "seq": event.seq,
            "ts": event.ts,
            "session": event.session,
            "turn": event.turn,
            "agent": event.agent,
            "body": json.loads(encode_body(event.body)),
        }
    )


def decode_event(text: str) -> Event:
    """The reverse of ``encode_event``.

    Raises:
        CodecError: the line is no event.
    """
    data = _object(text)
    try:
        return Event(
            seq=int(data["seq"]),
            ts=float(data["ts"]),
            session=str(data["session"]),
            turn=int(data["turn"]),
            agent=str(data.get("agent", "main")),
            v=int(data.get("v", PROTOCOL_VERSION)),
            body=_to_body(data["body"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, CodecError):
            raise
        raise CodecError(f"event envelope: {error!r}") from error


def encode_command(command: Command) -> str:
    """The command on one line of JSON."""
    return to_text(_command_adapter().dump_python(command, mode="json"))


def decode_command(text: str) -> Command:
    """The reverse of ``encode_command``.

    Raises:
        CodecError: the line is no command; the message names the field.
    """
    from pydantic import ValidationError

    data = _object(text)
    try:
        return _command_adapter().validate_python(data)
    except ValidationError as error:
        raise CodecError(f"command: {_first(error)}") from error


def json_schema() -> dict[str, Any]:
    """JSON Schema of the event envelope (``$defs/Event``) and of commands (``$defs/Command``)."""
    template = "#/$defs/{model}"
    definitions: dict[str, Any] = {}
    bodies, commands = (
        _body_adapter().json_schema(ref_template=template),
        _command_adapter().json_schema(ref_template=template),
    )
    for name, schema in (("Body", bodies), ("Command", commands)):
        definitions.update(schema.pop("$defs", {}))
        definitions[name] = schema
    definitions["Event"] = {
        "type": "object",
        "required": ["v", "seq", "ts", "session", "turn", "agent", "body"],
        "properties": {
            "v": {"const": PROTOCOL_VERSION},
            "seq": {"type": "integer", "minimum": 1},
            "ts": {"type": "number", "description": "Unix seconds"},
            "session": {"type": "string"},
            "turn": {"type": "integer", "minimum": 0},
            "agent": {"type": "string"},
            "body": {"$ref": "#/$defs/Body"},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "swecli protocol",
        "version": PROTOCOL_VERSION,
        "$defs": dict(sorted(definitions.items())),
    }


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"no JSON: {error}") from error
    if not isinstance(data, dict):
        raise CodecError("no JSON object")
    return cast("dict[str, Any]", data)


def _first(error: Any) -> str:
    detail = error.errors()[0]
    return f"{'.'.join(str(part) for part in detail['loc'])}: {detail['msg']}"
