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


def entry(name: str, parent: str | None, role: str, content: Any, **more: Any) -> Line:
    message = {"role": role, "content": content, **more}
    return {"type": "message", "id": name, "parentId": parent, "timestamp": "2026-02-03T04:05:06Z", "message": message}


PI: Sequence[Line] = (
    {"type": "session", "version": 3, "id": "u", "timestamp": "2026-02-03T04:05:05Z", "cwd": "/w"},
    {"type": "model_change", "id": "m", "parentId": None, "provider": "openai", "modelId": "gpt-x"},
    entry("a", "m", "user", "Hello"),
    entry("b", "a", "assistant", [{"type": "text", "text": "left"}]),
    entry(
        "c",
        "a",
        "assistant",
        [
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "Reading."},
            {
                "type": "toolCall",
                "id": "k1",
                "name": "edit",
                "arguments": {"path": "x", "oldText": "a", "newText": "b"},
            },
        ],
        provider="openai",
        model="gpt-y",
        usage={"input": 3, "output": 4, "cacheRead": 5},
    ),
    entry("d", "c", "toolResult", [{"type": "text", "text": "ok"}], toolCallId="k1", toolName="edit", isError=False),
    {**entry("e", "d", "bashExecution", None, command="make", output="built"), "x": 1},
    {"type": "compaction", "id": "f", "parentId": "e", "summary": "sum", "firstKeptEntryId": "c"},
    {"type": "session_info", "id": "g", "parentId": "f", "name": "My work"},
    entry("h", "g", "assistant", [{"type": "text", "text": "Done."}]),
    {"type": "label", "id": "i", "parentId": "h", "targetId": "a", "label": "x"},
)


def gemini(name: str, kind: str, content: Any, **more: Any) -> Line:
    return {"id": name, "timestamp": f"2026-02-03T04:05:{len(name):02}.000Z", "type": kind, "content": content, **more}


def gemini_call(name: str, call: str, args: Any, status: str, answer: Any, **more: Any) -> Line:
    result = None if answer is None else [{"functionResponse": {"id": call, "name": name, "response": answer}}]
    return {"id": call, "name": name, "args": args, "status": status, "result": result, **more}


GEMINI: Sequence[Line] = (
    {"sessionId": "s", "projectHash": "abc", "startTime": "2026-02-03T04:05:00.000Z", "directories": ["/w"]},
    gemini("u", "user", [{"text": "Fix it"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]),
    gemini("i", "info", "Update available"),
    gemini("gg", "gemini", "", model="g-1"),
    gemini(
        "gg",
        "gemini",
        "I look.",
        model="g-1",
        thoughts=[{"subject": "Plan", "description": "Look first."}],
        toolCalls=[
            gemini_call(
                "run_shell_command", "c1", {"command": "ls", "description": "x"}, "success", {"output": "a.py"}
            ),
            gemini_call("read_file", "c2", {"file_path": "/w/a.py"}, "error", {"error": "no"}),
            gemini_call("replace", "c3", {"file_path": "a", "old_string": "1", "new_string": "2"}, "cancelled", None),
            gemini_call("list_directory", "c4", {"dir_path": "src"}, "executing", None),
        ],
    ),
    gemini("x", "user", "Something else"),
    gemini("y", "gemini", "Else."),
    {"$rewindTo": "x"},
    {"$set": {"summary": "Fix the login", "lastUpdated": "2026-02-03T04:06:00.000Z"}},
    gemini("zzz", "gemini", [{"text": "Hm.", "thought": True}, {"text": "Done."}], model="g-2"),
)
OPENCODE: Line = {
    "info": {"id": "ses", "title": "Fix the login", "directory": "/w", "revert": {"messageID": "m5"}},
    "messages": [
        {
            "info": {"id": "m1", "role": "user", "time": {"created": 1_770_000_000_000}},
            "parts": [
                {"type": "text", "text": "Fix it"},
                {"type": "text", "text": "Called the Read tool", "synthetic": True},
                {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{PNG}"},
            ],
        },
        {
            "info": {
                "id": "m2",
                "role": "assistant",
                "providerID": "anthropic",
                "modelID": "c",
                "time": {"created": 1},
            },
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "Hm."},
                {"type": "text", "text": "I look."},
                *(
                    {"type": "tool", "callID": call, "tool": tool, "state": state}
                    for call, tool, state in (
                        ("k1", "bash", {"status": "completed", "input": {"command": "ls"}, "output": "a.py"}),
                        (
                            "k2",
                            "edit",
                            {"status": "error", "input": {"filePath": "a", "oldString": "1"}, "error": "no"},
                        ),
                        ("k3", "grep", {"status": "running", "input": {"pattern": "x", "include": "*.py"}}),
                    )
                ),
                {"type": "step-finish", "reason": "tool-calls"},
                {"type": "step-start"},
                {"type": "text", "text": "Done."},
                {"type": "patch", "hash": "h", "files": []},
                {"type": "unheard-of"},
            ],
        },
        {"info": {"id": "m3", "role": "user", "time": {}}, "parts": [{"type": "compaction", "auto": True}]},
        {"info": {"id": "m4", "role": "assistant", "summary": True}, "parts": [{"type": "text", "text": "Summary"}]},
        {"info": {"id": "m5", "role": "user"}, "parts": [{"type": "text", "text": "Taken back"}]},
    ],
}


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


def test_pi() -> None:
    session, messages = taken(PI)
    assert shown(messages) == [
        "user: Hello",
        "thinks: Hm.",
        "assistant: Reading.",
        'call_1 edit_file {"path": "x", "old_string": "a", "new_string": "b"}',
        "call_1 -> ok",
        "user: I ran this command myself: make\nbuilt",
        "assistant: Done.",
    ]
    assert session.title == "My work"
    assert "1 of abandoned branches" in session.left_out[0]


def test_nothing_of_it_has_power() -> None:
    for lines in (CLAUDE, CODEX, PI):
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
        lines = json.loads(json.dumps(random.choice((CLAUDE, CODEX, PI, GEMINI, [OPENCODE], KIMI, VIBE))))
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


def test_gemini_cli() -> None:
    session, messages = taken(GEMINI)
    assert (session.cwd, session.title) == ("/w", "Fix the login")
    assert session.left_out == ("Skipped lines of the file: 2 of abandoned branches.",)
    expected = [
        "user: Fix it",
        "user: image",
        "thinks: Plan\nLook first.",
        "assistant: I look.",
        'call_1 run_command {"command": "ls"}',
        'call_2 read_file {"path": "/w/a.py"}',
        'call_3 edit_file {"path": "a", "old_string": "1", "new_string": "2"}',
        'call_4 list_files {"path": "src"}',
        "call_1 -> a.py",
        "call_2 -> no !",
        "call_3 -> cancelled !",
        f"call_4 -> {NO_RESULT} !",
        "thinks: Hm.",
        "assistant: Done.",
    ]
    assert shown(messages) == expected
    head, *rest = GEMINI
    kept = [line for line in rest if "id" in line and line["id"] not in ("x", "y")]
    document = {**head, "summary": "Fix the login", "messages": [kept[0], *kept[2:]]}
    whole = portable_of(read_foreign(json.dumps(document, indent=2)), "s")
    ledger = Ledger()
    for event in whole.events:
        ledger.apply(event)
    assert shown(project(ledger)) == expected
    checkpoint = [*GEMINI, {"$set": {"messages": [gemini("q", "user", "A summary"), gemini("r", "gemini", "Yes.")]}}]
    assert shown(taken(checkpoint)[1]) == ["user: A summary", "assistant: Yes."]


def test_opencode() -> None:
    session, messages = taken([OPENCODE])
    assert (session.cwd, session.title) == ("/w", "Fix the login")
    (left_out,) = session.left_out
    assert "1 of abandoned branches" in left_out
    assert "1 summaries of existing entries" in left_out
    assert "1 not understood" in left_out
    assert shown(messages) == [
        "user: Fix it",
        "user: image",
        "thinks: Hm.",
        "assistant: I look.",
        'call_1 run_command {"command": "ls"}',
        'call_2 edit_file {"path": "a", "old_string": "1"}',
        'call_3 search {"pattern": "x", "glob": "*.py"}',
        "call_1 -> a.py",
        "call_2 -> no !",
        f"call_3 -> {NO_RESULT} !",
        "assistant: Done.",
    ]
    assert shown(taken([OPENCODE])[1]) == shown(messages)
    assert read_foreign(json.dumps(OPENCODE, indent=2)).model == "anthropic/c"


def said(role: str, content: Any, **more: Any) -> Line:
    return {"role": role, "content": content, **more}


def function_call(call: str, name: str, **arguments: Any) -> Line:
    return {"type": "function", "id": call, "function": {"name": name, "arguments": json.dumps(arguments)}}


KIMI: Sequence[Line] = (
    said("_system_prompt", "You are Kimi."),
    {"role": "_checkpoint", "id": 0},
    said("user", "<system>CHECKPOINT 0</system>"),
    said(
        "user",
        [
            {"type": "text", "text": "Fix it"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "id": None}},
        ],
    ),
    said(
        "assistant",
        [{"type": "think", "think": "Hm.", "encrypted": None}, {"type": "text", "text": "I look."}],
        tool_calls=[
            function_call("Shell:0", "Shell", command="ls"),
            function_call("ReadFile:1", "ReadFile", path="a.py", line_offset=3, n_lines=9),
            function_call("Think:2", "SetTodoList", todos=[]),
        ],
    ),
    {"role": "_usage", "token_count": 900},
    said("tool", [{"type": "text", "text": "a.py"}], tool_call_id="Shell:0"),
    said("tool", "<system>ERROR: no such file</system>", tool_call_id="ReadFile:1"),
    said("tool", "noted", tool_call_id="Think:2"),
    said("narrator", "Once upon a time"),
    said("assistant", "Done."),
)
VIBE: Sequence[Line] = (
    said("user", "Fix it", injected=False, message_id="1"),
    said("user", "<vibe_warning>long</vibe_warning>", injected=True, message_id="2"),
    said(
        "assistant",
        "I look.",
        reasoning_content="Hm.",
        message_id="3",
        tool_calls=[function_call("c1", "bash", command="ls"), function_call("c2", "search_replace", file_path="a")],
    ),
    said("tool", "a.py", name="bash", tool_call_id="c1"),
    said("tool", "<tool_error>not found</tool_error>", name="search_replace", tool_call_id="c2"),
    said("assistant", "Done.", message_id="4"),
)
AIDER = """
# aider chat started at 2025-03-01 10:00:00

> Aider v0.80.0

#### an old question

The old answer.

# aider chat started at 2026-02-03 04:05:06

> /usr/bin/aider --model m
> Model: m with diff edit format

#### /add a.py

> Added a.py to the chat

#### fix it  \n#### and test it

I change `a.py`:

```python
# a comment
x = 1
```

> Tokens: 2.1k sent, 43 received.
> Applied edit to a.py

#### /ask why?

Because.

#### /exit
"""


def test_kimi_cli() -> None:
    session, messages = taken(KIMI)
    assert session.left_out == ("Skipped lines of the file: 1 not understood.",)
    assert shown(messages) == [
        "user: Fix it",
        "user: image",
        "thinks: Hm.",
        "assistant: I look.",
        'call_1 run_command {"command": "ls"}',
        'call_2 read_file {"path": "a.py", "offset": 3, "limit": 9}',
        'call_3 SetTodoList {"todos": []}',
        "call_1 -> a.py",
        "call_2 -> <system>ERROR: no such file</system> !",
        "call_3 -> noted",
        "assistant: Done.",
    ]


@pytest.mark.parametrize("name", ["call_0", ""])
def test_calls_of_an_answer_that_share_an_id_get_their_results_in_order(name: str) -> None:
    session, messages = taken(
        [
            said("user", "Fix it"),
            said(
                "assistant",
                "I look.",
                tool_calls=[function_call(name, "bash", command=one) for one in ("ls", "pwd", "date")],
            ),
            said("tool", "a.py", tool_call_id=name),
            said("tool", "/w", tool_call_id=name),
            said("assistant", "Done."),
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


def test_mistral_vibe() -> None:
    expected = [
        "user: Fix it",
        "thinks: Hm.",
        "assistant: I look.",
        'call_1 run_command {"command": "ls"}',
        'call_2 search_replace {"file_path": "a"}',
        "call_1 -> a.py",
        "call_2 -> <tool_error>not found</tool_error> !",
        "assistant: Done.",
    ]
    assert shown(taken(VIBE)[1]) == expected
    about = {"session_id": "x", "start_time": "2026-02-03T04:05:06", "environment": {"working_directory": "/w"}}
    session, messages = taken([{"metadata": about, "messages": list(VIBE)}])
    assert session.cwd == "/w"
    assert shown(messages) == expected


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_aider(line_end: str) -> None:
    found = read_foreign(AIDER.replace("\n", line_end))
    assert found.agent == "aider"
    assert [(type(one.part).__name__, getattr(one.part, "text", ""), bool(one.answer)) for one in found.said] == [
        ("TextPart", "fix it\nand test it", False),
        ("TextPart", "I change `a.py`:\n\n```python\n# a comment\nx = 1\n```", True),
        ("TextPart", "/ask why?", False),
        ("TextPart", "Because.", True),
    ]
    assert found.said[0].at > 1.7e9
    (left_out,) = portable_of(found, "s").left_out
    assert "of earlier chats" in left_out
    with pytest.raises(PortableError, match="of aider, but contains no messages"):
        read_foreign("# aider chat started at 2026-02-03 04:05:06\n\n> Aider v0.80.0\n")


def test_only_line_ends_separate_the_lines_of_aider() -> None:
    found = read_foreign("# aider chat started at 2026-02-03 04:05:06\n\n#### why?\n\nOne\u2028#### two\f> three\n")
    assert [getattr(one.part, "text", "") for one in found.said] == ["why?", "One\u2028#### two\f> three"]
