"""Events for tests: short constructors, and a whole session as live stream and as stored facts."""

from __future__ import annotations

from swecli.core.protocol.blocks import DiffBlock, FileListBlock, TerminalBlock
from swecli.core.protocol.context_events import Offloaded
from swecli.core.protocol.events import (
    Body,
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    CompactionUndone,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemsOffloaded,
    ItemStarted,
    JobChanged,
    ModeChanged,
    ModelChanged,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    RetryScheduled,
    SessionStarted,
    TurnEnded,
    TurnStarted,
    Unknown,
    is_fact,
)
from swecli.core.protocol.messages import ImagePart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.request_events import Question


def stream(*bodies: Body | Unknown, agent: str = "main", first: int = 1) -> list[Event]:
    """Events around bodies, numbered."""
    return [Event(first + n, 1_000.0 + n, "session", 1, body, agent) for n, body in enumerate(bodies)]


def facts(events: list[Event]) -> list[Event]:
    """What the store keeps of a stream."""
    return [event for event in events if is_fact(event.body)]


def user(item: str, text: str) -> list[Body]:
    return [ItemStarted(item, "user"), ItemCompleted(item, "ok", (TextPart(text),)), TurnStarted(item)]


def answer(item: str, text: str, *, pieces: int = 7) -> list[Body]:
    size = max(1, len(text) // pieces)
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    deltas: list[Body] = [ItemDelta(item, part) for part in parts]
    middle = ItemCheckpointed(item, TextPart("".join(parts[: len(parts) // 2])))
    deltas.insert(len(parts) // 2, middle)
    return [ItemStarted(item, "text"), *deltas, ItemCompleted(item, "ok", (TextPart(text),))]


def tool(item: str, name: str, title: str, result: ItemCompleted, output: str = "") -> list[Body]:
    arguments = '{"path": "x", "n": 1}'
    live: list[Body] = [ItemDelta(item, line, "output") for line in output.splitlines(keepends=True)]
    return [
        ItemStarted(item, "tool", name),
        ItemDelta(item, arguments[:9], "arguments"),
        ItemDelta(item, arguments[9:], "arguments"),
        ItemCheckpointed(item, ToolCallPart("call-" + item, name, arguments), title),
        ItemCheckpointed(item, ToolCallPart("call-" + item, name, arguments), title, running=True),
        *live,
        result,
    ]


def session() -> list[Event]:
    """A session with everything in it, whose items have all ended."""
    diff = DiffBlock("src/a.py", "a\n", "b\n")
    edit = tool("t2", "edit_file", "src/a.py", ItemCompleted("t2", "ok", (), (diff,), "+1 -1"))
    permission = PermissionRequested("p1", "t2", "edit_file", "src/a.py", (diff,), "writes a file", "hash", "Edit(src)")
    edit[4:4] = [permission, PermissionResolved("p1", "once")]
    refused = tool("t3", "write_file", "b.py", ItemCompleted("t3", "rejected", ()))[:4]
    ask = tool("t5", "ask_user", "", ItemCompleted("t5", "ok", (ToolResultPart("c", "ask_user", "blue"),)))
    ask[5:5] = [QuestionAsked("q1", "t5", (Question("Which colour?"),)), QuestionAnswered("q1", (("blue",),))]
    matches = ItemCompleted("t1", "ok", (ToolResultPart("c", "search", "3"),), (FileListBlock((), 3),), "3 matches")
    ran = (TerminalBlock("make test", "ok", 0),)
    return stream(
        SessionStarted("/w", "m", "default", "0.1"),
        *user("u1", "fix it"),
        ItemStarted("r1", "reasoning"),
        ItemDelta("r1", "Think "),
        ItemDelta("r1", "well."),
        RetryScheduled(1, 3, 2.0, "overloaded", "The server is overloaded"),
        ItemCompleted("r1", "ok", (ReasoningPart("Think well."),), duration=1.5),
        *tool("t1", "search", "'login'", matches),
        *edit,
        *refused,
        PermissionRequested("p2", "t3", "write_file", "b.py", (diff,), "writes", "hash"),
        PermissionResolved("p2", "reject", note="not this one"),
        ItemCompleted("t3", "rejected", (ToolResultPart("c", "write_file", "rejected", is_error=True),)),
        *tool("t4", "run_command", "make test", ItemCompleted("t4", "ok", (), ran, "exit 0", 2.0), "one\ntwo\n"),
        *ask,
        CompactionStarted("c1", "auto", "summary", 900),
        CompactionCompleted("c1", (), 900, 300, 20, 5, ("summary",), "What was said."),
        CompactionUndone("c1"),
        CompactionStarted("c2", "manual", "summary", 900),
        CompactionFailed("c2", "no answer"),
        ItemsOffloaded((Offloaded("x", "ref", 400, "large"),)),
        CacheBreak("tools changed", 1200),
        Notice("Be careful", "warning", hint="Type /help"),
        ModeChanged("plan"),
        ModeChanged("accept-edits", "the sandbox is off"),
        ModelChanged("other/model", "high"),
        JobChanged("j1", "make serve", "exited", 1),
        Unknown("from_later", {"type": "from_later"}),
        *answer("a1", "# Done\n\n- one\n- two\n\n```python\nx = 1\n```\n\nThe end."),
        ItemStarted("u2", "user"),
        ItemCompleted("u2", "ok", (TextPart("and this"), ImagePart("image/png", "QUJD", "a.png"))),
        *answer("a2", "Half an ans")[:-1],
        ItemCompleted("a2", "interrupted", (TextPart("Half an ans"),)),
        TurnEnded("interrupted", "", duration=3.0),
        *user("u3", "again"),
        ItemStarted("t9", "tool", "read_file", "gone.py"),
        ItemCompleted("t9", "error", (ToolResultPart("c", "read_file", "no such file", is_error=True),)),
        TurnEnded("error", "The key was refused.", "auth"),
    )
