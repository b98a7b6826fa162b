"""Streams that are damaged at random: whatever comes, the answer ends in one known way, nothing that arrived is lost,
and calls of an answer that is not whole are marked so.

``SWECLI_EXAMPLES`` sets how many damaged streams are tried for each protocol (see ``scripts/soak.py``).
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.registry import PROTOCOLS
from swecli.core.llm.text_tools import TextCallStream
from swecli.core.llm.types import (
    ErrorKind,
    Failed,
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDone,
    ToolCallStarted,
)
from swecli.core.protocol.messages import Message, ReasoningPart, TextPart
from tests.core.llm.wire_cases import WireCase, stream_cases

EXAMPLES = int(os.environ.get("SWECLI_EXAMPLES", "60"))
KINDS = get_args(ErrorKind)
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 3, 1.5, 10**30, "", "x", "\ud800", "0", [], {}, [None], [[]], [{}], [1, "a"], {"": None},
    {"text": "t"}, {"type": "text"}, "{", '{"a":1}', {"message": None}, {"code": []},
)  # fmt: skip

Lines = list[bytes]
Damage = Callable[[random.Random, Lines], Lines]


def drop(chance: random.Random, lines: Lines) -> Lines:
    at = chance.randrange(len(lines))
    return lines[:at] + lines[at + chance.randrange(1, 3) :]


def double(chance: random.Random, lines: Lines) -> Lines:
    at = chance.randrange(len(lines))
    return lines[:at] + [lines[at]] * chance.randrange(2, 4) + lines[at + 1 :]


def swap(chance: random.Random, lines: Lines) -> Lines:
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    out = list(lines)
    out[one], out[other] = out[other], out[one]
    return out


def truncate(chance: random.Random, lines: Lines) -> Lines:
    at = chance.randrange(len(lines))
    return [*lines[:at], lines[at][: chance.randrange(len(lines[at]) + 1)]]


def garble(chance: random.Random, lines: Lines) -> Lines:
    at = chance.randrange(len(lines))
    line = bytearray(lines[at])
    for _ in range(chance.randrange(1, 4)):
        if line:
            line[chance.randrange(len(line))] = chance.randrange(256)
    return [*lines[:at], bytes(line), *lines[at + 1 :]]


def foreign(chance: random.Random, lines: Lines) -> Lines:
    """A line of another protocol or of none."""
    case = chance.choice(stream_cases())
    line = chance.choice([*case.body.split(b"\n"), b"<html>", b"error: x", b'{"error": null}', b"data: [DONE]", b":"])
    at = chance.randrange(len(lines) + 1)
    return [*lines[:at], line, *([b""] if chance.random() < 0.7 else []), *lines[at:]]


def retype(chance: random.Random, lines: Lines) -> Lines:
    """Another value in place of one within the JSON of a line."""
    places = [index for index, line in enumerate(lines) if b"{" in line]
    if not places:
        return lines
    at = chance.choice(places)
    head, brace, rest = lines[at].partition(b"{")
    try:
        value = json.loads(brace + rest)
    except ValueError:
        return lines
    for _ in range(chance.randrange(1, 4)):
        _retype(chance, value)
    return [*lines[:at], head + json.dumps(value).encode(), *lines[at + 1 :]]


def _retype(chance: random.Random, value: Any) -> None:
    spots = list(_spots(value))
    if not spots:
        return
    holder, key = chance.choice(spots)
    action = chance.random()
    if action < 0.7:
        holder[key] = json.loads(json.dumps(chance.choice(STRANGE)))
    elif action < 0.85 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = [holder[key]]


def _spots(value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _spots(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _spots(item)


DAMAGES: tuple[Damage, ...] = (drop, double, swap, truncate, garble, foreign, retype, retype, retype)


def decode(case: WireCase, body: bytes, chance: random.Random) -> list[StreamEvent]:
    parser, decoder = BodyParser(case.headers.get("content-type", "")), case.decoder()
    events: list[StreamEvent] = []
    position = 0
    while position < len(body):
        end = position + chance.choice((1, 2, 7, 64, 4096))
        for wire in parser.feed(body[position:end]):
            events += decoder.feed(wire)
        position = end
    for wire in parser.end():
        events += decoder.feed(wire)
    return events + decoder.end_of_body(parser)


def said(events: list[StreamEvent], kind: type[TextDelta] | type[ReasoningDelta]) -> str:
    parts: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, kind):
            parts.setdefault(event.part, []).append(event.text)
    return "".join("".join(parts[index]) for index in sorted(parts))


def check(events: list[StreamEvent], *, settled: bool = False) -> Message | None:
    """What holds for each stream. Returns the message, if there is one. ``settled``: the protocol states the texts once
    more at the end, so that a damaged stream may have told others."""
    last = events[-1]
    assert isinstance(last, Finished | Failed)
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])
    if isinstance(last, Failed):
        assert last.error.kind in KINDS
        assert last.error.message
        if last.message is None:
            return None
        assert last.message.response is not None
        assert not last.message.response.complete
    message = last.message
    assert message is not None
    if not settled:
        assert said(events, TextDelta) == message.text
        assert said(events, ReasoningDelta) == "".join(p.text for p in message.parts if isinstance(p, ReasoningPart))
    ids = [call.call_id for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    started = [event.call_id for event in events if isinstance(event, ToolCallStarted)]
    assert sorted(started) == sorted(ids)
    assert [call for call in message.tool_calls if call in _done(events)] == _done(events)
    json.dumps([part.text for part in message.parts if isinstance(part, TextPart)]).encode()
    return message


def _done(events: list[StreamEvent]) -> list[Any]:
    return [event.call for event in sorted((e for e in events if isinstance(e, ToolCallDone)), key=lambda e: e.part)]


CASES = {name: [case for case in stream_cases() if case.protocol == name] for name in PROTOCOLS}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=EXAMPLES, deadline=None)
def test_damaged_streams(protocol: str, seed: int) -> None:
    chance = random.Random(seed)
    case = chance.choice(CASES[protocol])
    lines = re.split(rb"\r\n|\n|\r", case.body)
    ends = [index for index, line in enumerate(lines) if not line or case.framing != "sse"]
    start = chance.choice([0, *ends])
    before, rest = lines[:start], [*([b""] if case.framing == "sse" else []), *lines[start:]]
    for _ in range(chance.randrange(1, 4)):
        rest = chance.choice(DAMAGES)(chance, rest) or [b""]
    events = decode(case, b"\n".join([*before, b"", *rest]), chance)
    check(events, settled=protocol == "openai-responses")
    sound = decode(case, b"\n".join([*before, b"", b""]), chance)
    assert said(events, TextDelta).startswith(said(sound, TextDelta))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=max(10, EXAMPLES // 4), deadline=None)
def test_damaged_streams_whose_text_may_hold_calls(protocol: str, seed: int) -> None:
    chance = random.Random(seed)
    case = chance.choice(CASES[protocol])
    lines = re.split(rb"\r\n|\n|\r", case.body)
    for _ in range(chance.randrange(1, 3)):
        lines = chance.choice(DAMAGES)(chance, lines) or [b""]
    calls = TextCallStream(["f", "get_weather", "read_file"])
    events = [made for event in decode(case, b"\n".join(lines), chance) for made in calls.feed(event)]
    last = events[-1]
    assert isinstance(last, Finished | Failed)
    if isinstance(last, Failed) and last.message is not None:
        assert last.message.response is not None
        assert not last.message.response.complete
