"""JSON codec of events and commands, and their JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast, get_args

import msgspec

from swecli.core.protocol.commands import Command
from swecli.core.protocol.events import PROTOCOL_VERSION, Body, Event, Unknown
from swecli.core.protocol.messages import Message
from swecli.lazy_pattern import lazy_pattern

T = TypeVar("T")

_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class CodecError(ValueError):
    """The text is not an event or command; the message names the field."""


KNOWN_TYPES: frozenset[str] = frozenset(str(cls.__struct_config__.tag) for cls in get_args(Body))


# Made when first used: a new session decodes nothing, and to make the three takes a fiftieth of its start.


@cache
def _bodies() -> msgspec.json.Decoder[Body]:
    return msgspec.json.Decoder(cast("type[Body]", Body))


@cache
def _message_lists() -> msgspec.json.Decoder[tuple[Message, ...]]:
    return msgspec.json.Decoder(tuple[Message, ...])


@cache
def _commands() -> msgspec.json.Decoder[Command]:
    return msgspec.json.Decoder(cast("type[Command]", Command))


def to_text(value: Any) -> str:
    """JSON on one line. A lone surrogate, invalid in UTF-8, becomes U+FFFD."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        return _LONE_SURROGATE.sub("\ufffd", text)


def encode_body(body: Body | Unknown) -> str:
    """The body's JSON text."""
    return to_text(body.data if isinstance(body, Unknown) else body)


def decode_body(text: str | bytes) -> Body | Unknown:
    """The body of a JSON text; ``Unknown`` if a later version added its type.

    Raises:
        CodecError: not a JSON object, no type, or fields that do not fit the type.
    """
    try:
        return _bodies().decode(text)
    except (ValueError, RecursionError):
        # Slower: accepts what only Python's parser reads, and reports what is wrong.
        return _to_body(_object(text if isinstance(text, str) else text.decode("utf-8", "replace")))


def encode_messages(messages: Sequence[Message]) -> str:
    """Messages as one line of JSON."""
    return to_text(messages)


def decode_messages(text: str) -> tuple[Message, ...]:
    """The reverse of ``encode_messages``.

    Raises:
        CodecError: the text is not a list of messages.
    """
    try:
        return _message_lists().decode(text)
    except (ValueError, RecursionError):
        return _converted(_json(text), _message_lists(), "messages")


def _to_body(data: Mapping[str, Any]) -> Body | Unknown:
    kind = data.get("type")
    if not isinstance(kind, str):
        raise CodecError("event body without a type")
    if kind not in KNOWN_TYPES:
        return Unknown(kind, data)
    return _converted(data, _bodies(), f"event body {kind}")


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
            "body": event.body.data if isinstance(event.body, Unknown) else event.body,
        }
    )


def decode_command(text: str) -> Command:
    """The command on a line of JSON.

    Raises:
        CodecError: the line is not a command; the message names the field.
    """
    data = _object(text)
    return _converted(data, _commands(), f"command {data.get('type', '')}".strip())


def json_schema() -> dict[str, Any]:
    """JSON Schema of a line of the format stream-json: an event (``$defs/Event``) or the result of the run. The one of
    commands is ``$defs/Command``."""
    from swecli.core.protocol.result import Result

    wanted = (Body, Command, Result)
    (body, command, result), definitions = msgspec.json.schema_components(wanted, ref_template="#/$defs/{name}")
    definitions["Body"], definitions["Command"] = body, command
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
        "anyOf": [{"$ref": "#/$defs/Event"}, result],
        "$defs": dict(sorted(definitions.items())),
    }


def _converted(data: object, decoder: msgspec.json.Decoder[T], what: str) -> T:
    try:
        return msgspec.convert(data, decoder.type)
    except msgspec.ValidationError as error:
        raise CodecError(f"{what}: {error}") from error


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not JSON: {error}") from error


def _object(text: str) -> dict[str, Any]:
    data = _json(text)
    if not isinstance(data, dict):
        raise CodecError("not a JSON object")
    return cast("dict[str, Any]", data)
