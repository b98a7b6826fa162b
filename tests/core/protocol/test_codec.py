"""Every event and command survives its JSON form, also those of a later version."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.protocol import codec
from swecli.core.protocol.commands import Command, ReplyPermission
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemCompleted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    ToolDefinition,
    Unknown,
    is_fact,
)
from swecli.core.protocol.messages import Message, Opaque, Origin, TextPart, ToolCallPart, ToolResultPart
from tests.support.event_lines import decode_event
from tests.support.thorough import examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
st.register_type_strategy(Opaque, st.builds(Opaque, st.builds(Origin), json_values))
st.register_type_strategy(
    Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=0, max_value=1000)
)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))

_arguments = st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=3)
for _with_arguments in (PermissionRequested, PermissionResolved, ReplyPermission):
    st.register_type_strategy(_with_arguments, st.builds(_with_arguments, arguments=_arguments))
st.register_type_strategy(
    ToolDefinition,
    st.builds(ToolDefinition, parameters=st.dictionaries(st.text(max_size=5), json_values, max_size=3)),
)
bodies = st.one_of(*(st.from_type(body) for body in get_args(Body)))
commands = st.one_of(*(st.from_type(command) for command in get_args(Command)))
events = st.builds(
    Event,
    seq=st.integers(1, 10**9),
    ts=st.floats(0, 4e9),
    session=st.text(max_size=10),
    turn=st.integers(0, 1000),
    body=bodies,
    agent=st.just("main"),
    v=st.just(1),
)


@settings(max_examples=examples(80, 400), deadline=None)
@given(events)
def test_an_event_survives_its_json(event: Event) -> None:
    line = codec.encode_event(event)
    assert "\n" not in line
    assert decode_event(line) == event


@settings(max_examples=examples(80, 400), deadline=None)
@given(commands)
def test_a_command_survives_its_json(command: Command) -> None:
    assert codec.decode_command(codec.to_text(command)) == command


@settings(max_examples=examples(40, 200), deadline=None)
@given(st.dictionaries(st.text(max_size=6), json_values, max_size=4), st.text(min_size=1, max_size=12))
def test_an_event_of_a_later_version_is_written_back_as_it_was(data: dict[str, object], kind: str) -> None:
    data = {**data, "type": f"future_{kind}"}
    line = json.dumps({"v": 9, "seq": 3, "ts": 1.5, "session": "s", "turn": 2, "agent": "main", "body": data})
    event = decode_event(line)
    assert isinstance(event.body, Unknown)
    assert is_fact(event.body)
    assert json.loads(codec.encode_event(event)) == json.loads(line)


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    event = Event(1, 0.0, "s", 0, Notice("a\ud800b"))
    decoded = decode_event(codec.encode_event(event)).body
    assert isinstance(decoded, Notice)
    assert decoded.text == "a�b"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"v":1}', "type"),
        ("{}", "type"),
        ('{"type":"notice"}', "text"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_event_is_refused_with_the_place(line: str, named: str) -> None:
    with pytest.raises(codec.CodecError, match=named):
        codec.decode_body(line)


def test_an_unknown_command_is_refused() -> None:
    with pytest.raises(codec.CodecError):
        codec.decode_command('{"type":"explode"}')


STORED = Path(__file__).parents[2] / "data" / "stored-protocol.tsv"


LATER = {
    "prompt_progress": {"slots"},
    "item_checkpointed": {"begins"},
    "item_completed": {"title"},
    "compaction_completed": {"anchors", "anchors_kept", "anchors_written", "undo", "rewritten", "thoughts"},
    "compaction_undone": {"view"},
    "apply_plan": {"fold"},
    "context_restored": {"view"},
    "model_changed": {"replaces"},
    "notice": {"about"},
    "undo_compaction": {"item"},
    "redo_compaction": {"item"},
    "rewind": {"scope", "handoff"},
    "rewound": {"scope", "name"},
    "permission_requested": {"rules", "rule_note", "danger", "acceptable"},
    "sandbox_changed": {"contains", "masked", "masked_count"},
    "session_started": {"commands"},
    "retry_scheduled": {"unreached"},
    "turn_ended": {"waited", "estimated"},
    "tools_changed": {"note", "redefined", "withdrawn"},
    "change_context": {"later"},
    "set_model": {"later"},
    "turn_started": {"allowed"},
    "cache_break": {"kind", "component", "part"},
}
"""Fields that events have got since; they are written with what says nothing."""
LATER_INSIDE = {"report", "cache_write_1h", "web_searches"}
"""Fields that messages and usages have got since."""


def without_later(value: Any) -> Any:
    if isinstance(value, dict):
        later = LATER_INSIDE | ({"effort"} if "origin" in value else set()) | ({"note"} if "role" in value else set())
        later |= {"added", "removed"} if "how" in value else set()
        later |= {"provider"} if value.keys() >= {"kind", "sources", "rule"} else set()
        assert all(value.get(name) in (None, "", 0) for name in later)
        return {name: without_later(entry) for name, entry in value.items() if name not in later}
    return [without_later(entry) for entry in value] if isinstance(value, list) else value


def _messages(value: object) -> Iterator[dict[str, Any]]:
    """The messages anywhere in a document."""
    if isinstance(value, dict):
        document = cast("dict[str, Any]", value)
        if "role" in document and "parts" in document:
            yield document
        value = list(document.values())
    if isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _messages(inner)


def _results(value: object) -> Iterator[dict[str, Any]]:
    """The results of calls anywhere in a document."""
    if isinstance(value, dict):
        document = cast("dict[str, Any]", value)
        if document.get("type") == "tool_result":
            yield document
        value = list(document.values())
    if isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _results(inner)


@pytest.mark.parametrize("line", STORED.read_text("utf-8").split("\n")[:-1])
def test_text_of_earlier_versions_is_read_and_written_with_the_same_content(line: str) -> None:
    """The lines were written by version 0.1, whose codec was pydantic's: every event, message part and command."""
    kind, text = line.split("\t", 1)
    if kind == "body":
        body = codec.decode_body(text)
        assert not isinstance(body, Unknown)
        written = codec.encode_body(body)
    elif kind == "messages":
        written = codec.encode_messages(codec.decode_messages(text))
    else:
        written = codec.to_text(codec.decode_command(text))
    found, stored = json.loads(written), json.loads(text)
    for name in LATER.get(stored["type"], set()) if kind != "messages" else set():
        assert found.pop(name) in ("conversation", "", None, [], 0, False)
    for result in _results(found):
        assert result.pop("documents") == []
    for message in _messages(found):
        assert message.pop("note") == ""
    for question in found.get("questions", ()) if kind == "body" else ():
        assert not question.pop("closed")
    assert without_later(found) == stored


def test_the_stored_lines_have_every_type() -> None:
    types = {
        json.loads(text)["type"] for text in re.findall(r"^(?:body|command)\t(.*)$", STORED.read_text("utf-8"), re.M)
    }
    assert types >= codec.KNOWN_TYPES


def test_the_schema_names_every_event_and_command() -> None:
    definitions = codec.json_schema()["$defs"]
    for cls in (*get_args(Body), *get_args(Command)):
        assert cls.__name__ in definitions


def test_a_message_gives_its_text_calls_and_results() -> None:
    call = ToolCallPart("c", "search", "{}")
    result = ToolResultPart("c", "search", "found")
    message = Message("assistant", (TextPart("a"), call, TextPart("b"), result))
    assert (message.text, message.tool_calls, message.tool_results) == ("ab", (call,), (result,))


def test_parts_of_a_completed_item_keep_their_types() -> None:
    body = ItemCompleted("t1", "ok", (ToolResultPart("c", "run", "out"), TextPart("x")))
    assert codec.decode_body(codec.encode_body(body)) == body


@pytest.mark.parametrize(
    ("text", "hint", "line"),
    [
        ("can't start new thread", "The conversation is kept.", "can't start new thread. The conversation is kept."),
        ("It failed.", "Try again.", "It failed. Try again."),
        ("It failed", "", "It failed"),
    ],
)
def test_text_and_hint_of_a_notice_are_sentences(text: str, hint: str, line: str) -> None:
    assert Notice(text, "error", hint=hint).line == line
