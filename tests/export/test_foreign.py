"""Session files of other agents, in the forms that their programs write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from msgspec import structs

from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.projection import project
from swecli.core.engine.state import SessionState
from swecli.core.protocol.messages import ImagePart, Message, ReasoningPart, TextPart
from swecli.core.sessions.portable import Portable, PortableError
from swecli.export.foreign import NO_RESULT, portable_of, read_foreign
from swecli.export.rendering import readable
from tests.export.support import PNG

Line = dict[str, Any]


def claude(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> Line:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    base = {"uuid": uuid, "parentUuid": parent, "type": kind, "isSidechain": False, "cwd": "/w", "sessionId": "s"}
    return {**base, "message": message, "timestamp": f"2026-02-03T04:05:{len(uuid):02}.000Z", **more}


def tool_use(name: str, call: str, **arguments: Any) -> Line:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def tool_result(call: str, content: Any, **more: Any) -> Line:
    return {"type": "tool_result", "tool_use_id": call, "content": content, **more}


ANSWER = {"id": "msg_1", "model": "claude-x", "usage": {"input_tokens": 5, "cache_read_input_tokens": 7}}
CLAUDE: Sequence[Line] = (
    {"type": "summary", "summary": "Fix the login", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    claude("a", None, "user", "<command-name>/fix</command-name>\n<command-args>login</command-args>"),
    claude("b", "a", "user", "Caveat: generated", isMeta=True),
    claude("c", "b", "assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "sig"}], message=ANSWER),
    claude("d", "c", "assistant", [tool_use("Bash", "toolu_1", command="ls", description="List")], message=ANSWER),
    claude("e", "d", "assistant", [tool_use("Read", "toolu_2", file_path="/w/a.py")], message=ANSWER),
    claude("f", "d", "user", [tool_result("toolu_1", "a.py")], toolUseResult={"stdout": "a.py"}),
    claude("g", "e", "user", [tool_result("toolu_2", [{"type": "text", "text": "no"}], is_error=True)]),
    claude("h", "g", "assistant", [{"type": "text", "text": "An old branch"}], message={"id": "msg_0"}),
    claude("i", "g", "assistant", [{"type": "text", "text": "Fixed."}], message={"id": "msg_2", "model": "claude-x"}),
    claude("s", None, "assistant", [{"type": "text", "text": "inner"}], isSidechain=True),
    claude("j", "i", "user", [{"type": "text", "text": "[Request interrupted by user]"}]),
    claude(
        "k",
        "j",
        "user",
        [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {"type": "text", "text": "Look"},
        ],
    ),
    claude("l", "k", "assistant", [tool_use("mcp__x__y", "toolu_3", a=1)], message={"id": "msg_3"}),
    {"type": "brand-new", "x": 1},
)


def item(**payload: Any) -> Line:
    return {"timestamp": "2026-02-03T04:05:06.000Z", "type": "response_item", "payload": payload}


def text_of(role: str, text: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(type="message", role=role, content=[{"type": kind, "text": text}])


CODEX: Sequence[Line] = (
    {"timestamp": "2026-02-03T04:05:05Z", "type": "session_meta", "payload": {"id": "x", "cwd": "/w"}},
    text_of("developer", "<permissions instructions>be careful"),
    text_of("user", "# AGENTS.md instructions for /w"),
    text_of("user", "<environment_context>\n<cwd>/w</cwd></environment_context>"),
    {"type": "turn_context", "payload": {"cwd": "/w", "model": "gpt-x", "approval_policy": "never"}},
    text_of("user", "Add a test"),
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Add a test"}},
    item(type="reasoning", summary=[{"type": "summary_text", "text": "Plan"}], encrypted_content="opaque"),
    item(type="function_call", name="shell", arguments='{"command":["bash","-lc","ls -a"]}', call_id="c1"),
    item(type="function_call_output", call_id="c1", output='{"output":"x.py","metadata":{"exit_code":2}}'),
    item(type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
    item(type="custom_tool_call_output", call_id="c2", output=[{"type": "input_text", "text": "done"}]),
    item(type="local_shell_call", call_id="c3", action={"type": "exec", "command": ["pwd"]}),
    text_of("assistant", "Added."),
    item(type="function_call_output", call_id="orphan", output="x"),
    {"type": "event_msg", "payload": {"type": "agent_message", "message": "Added."}},
    {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
)


def taken(lines: Sequence[Line]) -> tuple[Portable, Sequence[Message]]:
    session = portable_of(read_foreign("\n".join(map(json.dumps, lines))), "s")
    ledger = Ledger()
    for event in session.events:
        ledger.apply(event)
    assert ledger.open == {}
    assert [event.seq for event in session.events] == [*range(1, len(session.events) + 1)]
    return session, project(ledger)


def shown(messages: Sequence[Message]) -> list[str]:
    lines: list[str] = []
    for message in messages:
        for part in message.parts:
            match part:
                case TextPart(text=text):
                    lines.append(f"{message.role}: {text}")
                case ReasoningPart(text=text):
                    lines.append(f"thinks: {text}")
                case ImagePart():
                    lines.append(f"{message.role}: image")
                case _:
                    pass
        lines += [f"{call.call_id} {call.name} {call.arguments}" for call in message.tool_calls]
        lines += [f"{one.call_id} -> {one.text}{' !' if one.is_error else ''}" for one in message.tool_results]
    return lines


def test_claude_code() -> None:
    session, messages = taken(CLAUDE)
    assert shown(messages) == [
        "user: /fix login",
        "thinks: Hm.",
        'call_1 run_command {"command": "ls"}',
        'call_2 read_file {"path": "/w/a.py"}',
        "call_1 -> a.py",
        "call_2 -> no !",
        "assistant: Fixed.",
        "user: image",
        "user: Look",
        'call_3 mcp__x__y {"a": 1}',
        f"call_3 -> {NO_RESULT} !",
    ]
    assert (session.title, session.cwd, session.model) == ("Fix the login", "/w", "")
    (told,) = session.left_out
    for words in ("1 of subagents", "1 of abandoned branches", "1 not understood"):
        assert words in told


def test_codex() -> None:
    session, messages = taken(CODEX)
    assert shown(messages) == [
        "user: Add a test",
        "thinks: Plan",
        'call_1 run_command {"command": "ls -a"}',
        "call_1 -> x.py !",
        'call_2 apply_patch {"patch": "*** Begin Patch"}',
        "call_2 -> done",
        "assistant: Added.",
        'call_3 run_command {"command": "pwd"}',
        f"call_3 -> {NO_RESULT} !",
    ]
    assert "1 results without a call" in session.left_out[0]


def test_codex_of_older_versions() -> None:
    spoken = [line for line in CODEX if line["type"] in ("session_meta", "event_msg")]
    assert shown(taken(spoken)[1]) == ["user: Add a test", "assistant: Added."]
    bare = [{"id": "x", "timestamp": "2025-05-01T00:00:00Z"}, *(line["payload"] for line in CODEX if "payload" in line)]
    wanted = [line for line in bare if line.get("type") in (None, "message", "function_call", "function_call_output")]
    assert shown(taken([line for line in wanted if "cwd" not in line])[1])[0] == "user: Add a test"


def test_nothing_of_it_has_power() -> None:
    for lines in (CLAUDE, CODEX):
        session, messages = taken(lines)
        state = SessionState()
        for event in session.events:
            state.apply(event)
        assert (state.rules, state.queue, state.turn_open, state.mode) == ((), (), False, "default")
        assert not any(getattr(part, "opaque", None) for message in messages for part in message.parts)
        assert "sig" not in repr(session.events)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "not json\n" * 3,
        '{"type": "user"}',
        "null\n[1]\n",
        '{"type":"session","id":' + "[" * 400 + "]" * 400 + "}",
        '{"type":"session","id":1}',
        '{"type":"session","version":3,"id":"u","cwd":"/w"}\n{"type":"message","message":{"role":"user","content":"x"}}',
        '{"info":{"id":"ses"},"messages":[]}',
        "# aider chat started at 2026-02-03 04:05:06\n\n#### hello\n",
    ],
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(PortableError):
        read_foreign(text)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-23:59", 99_999_999_999_999, "0001-01-01T00:00:00+23:59", 1e300])
def test_a_time_that_no_calendar_has_is_unknown(time: object) -> None:
    lines = [{**line, "timestamp": time} for line in CLAUDE]
    session = portable_of(read_foreign("\n".join(map(json.dumps, lines))), "s")
    assert session.updated == 0
    far = [structs.replace(event, ts=5e11) for event in session.events]
    assert "Last used: unknown" in readable(far, "markdown", str)
    assert "Turn 1" in readable(far, "html", str)


def test_a_file_without_words_is_refused_by_name() -> None:
    with pytest.raises(PortableError, match="a session file of Codex, but contains no messages"):
        read_foreign(json.dumps(CODEX[0]))


def test_lines_of_any_shape_never_break_it() -> None:
    random = Random(5)
    odd: Sequence[Any] = (None, 0, -1.5, True, "x", [], {}, [None], ["x"], [{}], {"type": []}, "\ud800", "9" * 400)
    refused = 0
    for _ in range(300):
        lines = json.loads(json.dumps(random.choice((CLAUDE, CODEX))))
        for _ in range(random.randint(1, 6)):
            place = random.choice(lines)
            while True:
                key = random.choice([*place]) if isinstance(place, dict) and place else random.randrange(len(place))
                inner = place[key]
                if not isinstance(inner, dict | list) or not inner or random.random() < 0.4:
                    break
                place = inner
            place[key] = deepcopy(random.choice(odd))
        random.shuffle(lines) if random.random() < 0.2 else None
        text = "\n".join(map(json.dumps, lines))
        try:
            session = portable_of(read_foreign(text[: random.randint(1, len(text))]), "s")
        except PortableError:
            refused += 1
            continue
        ledger = Ledger()
        for event in session.events:
            ledger.apply(event)
        project(ledger)
    assert refused < 250


@pytest.mark.parametrize("name", ["call_0", ""])
def test_calls_of_an_answer_that_share_an_id_get_their_results_in_order(name: str) -> None:
    session, messages = taken(
        [
            claude("a", None, "user", "Fix it"),
            claude(
                "b",
                "a",
                "assistant",
                [
                    {"type": "text", "text": "I look."},
                    *(tool_use("Bash", name, command=command) for command in ("ls", "pwd", "date")),
                ],
                message=ANSWER,
            ),
            claude("c", "b", "user", [tool_result(name, "a.py"), tool_result(name, "/w")]),
            claude("d", "c", "assistant", [{"type": "text", "text": "Done."}], message={"id": "msg_2"}),
        ]
    )
    assert session.left_out == ()
    assert shown(messages) == [
        "user: Fix it",
        "assistant: I look.",
        'call_1 run_command {"command": "ls"}',
        'call_2 run_command {"command": "pwd"}',
        'call_3 run_command {"command": "date"}',
        "call_1 -> a.py",
        "call_2 -> /w",
        "call_3 -> The imported session has no result for this call. !",
        "assistant: Done.",
    ]
