"""A session with everything that an export shows, and with text that is up to no good."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from swecli.core.protocol.blocks import DiffBlock, TerminalBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import Offloaded
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    Event,
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemsOffloaded,
    ItemStarted,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QueueChanged,
    Queued,
    SessionStarted,
    StepEnded,
    StepStarted,
    TodosChanged,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import (
    ImagePart,
    Opaque,
    Origin,
    Part,
    ReasoningPart,
    Stop,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

SESSION = "2026-01-02-03-04-05-abcd"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()
HOSTILE = (
    "</script><script>alert(1)</script> <img src=x onerror=alert(1)> \u2028 \u202e evil \x00 \x1b[31m ]]> --> ${x} "
    "$title \ud800 javascript:alert(1) [a](javascript:alert(1)) ![p](http://127.0.0.1:1/p.png) "
    '" onload="x" &lt; <style>*{display:none}</style>'
)
KEY = "sk-proj-0123456789abcdefghijklmn"
ORIGIN = Origin("openai-chat", "127.0.0.1", "m")


def budget(used: int) -> Budget:
    return Budget((), used, used, 10_000, 12_000, 2_000, "ok")


def in_order(bodies: Sequence[Body], session: str = SESSION) -> list[Event]:
    """Events of these bodies, one second apart; a TurnStarted begins the next turn."""
    turn = 0
    events: list[Event] = []
    for number, body in enumerate(bodies, 1):
        turn += isinstance(body, TurnStarted)
        events.append(Event(number, 1_767_323_045.0 + number, session, turn, body))
    return events


def user(item: str, *parts: Part) -> list[Body]:
    return [TurnStarted(item), ItemStarted(item, "user"), ItemCompleted(item, "ok", parts)]


def call(item: str, name: str, arguments: str, title: str = "") -> list[Body]:
    part = ToolCallPart(f"c{item}", name, arguments)
    return [ItemStarted(item, "tool", name), ItemCheckpointed(item, part, title, running=True)]


def result(item: str, name: str, text: str) -> ToolResultPart:
    return ToolResultPart(f"c{item}", name, text)


def said(item: str, text: str) -> list[Body]:
    return [ItemStarted(item, "text"), ItemCompleted(item, "ok", (TextPart(text),))]


def answered(*items: str, usage: Usage | None = None) -> ModelResponded:
    return ModelResponded(f"m{items[0]}", items, ORIGIN, Stop("end"), usage, duration_ms=1500)


def sample() -> list[Event]:
    """Two turns: an edit, a command whose result is stored elsewhere, a compaction, and hostile text everywhere."""
    usage = Usage(4_000, 1_000, None, 50)
    return in_order(
        [
            SessionStarted("/proj", "openai/m", "default", "1.0", environment="<environment/>"),
            *user("u1", TextPart("Fix add. Never touch the tests."), ImagePart("image/png", PNG, "shot.png")),
            StepStarted(1, budget(4_000)),
            ItemStarted("r2", "reasoning"),
            ItemCompleted("r2", "ok", (ReasoningPart("I think."),)),
            *call("t3", "edit_file", '{"path": "calc.py"}', "calc.py"),
            answered("r2", "t3", usage=usage),
            PermissionRequested("q1", "t3", "edit_file", "calc.py", (), "It changes a file.", "b", "Edit(calc.py)"),
            PermissionResolved("q1", "always"),
            FileChanged("/proj/calc.py", "a" * 64, "b" * 64, "t3"),
            ItemCompleted(
                "t3",
                "ok",
                (result("t3", "edit_file", "edited"),),
                (DiffBlock("calc.py", "return a - b\n", "return a + b\n"),),
                "+1 -1",
                2.0,
            ),
            StepEnded(1, usage, "0.01"),
            StepStarted(2, budget(5_000)),
            *call("t4", "run_command", '{"command": "pytest -q"}', "pytest -q"),
            answered("t4", usage=usage),
            ItemsOffloaded((Offloaded("t4", "r0123456789ab", 900, "large"),)),
            ItemCompleted(
                "t4",
                "ok",
                (result("t4", "run_command", "[stored as r0123456789ab]"),),
                (TerminalBlock("pytest -q", HOSTILE + "\na line" * 300 + "\n1 failed", 1),),
                "exit 1",
            ),
            StepEnded(2, usage, "0.01"),
            CompactionCompleted("k5", (), 8_000, 3_000, 9, 4, ("summarization",), effective=10_000),
            StepStarted(3, budget(3_000)),
            *said("a6", f"# Done\n\n| a | b |\n|---|--:|\n| {HOSTILE} | 1 |\n\n{HOSTILE}\n\nsee https://example.org"),
            answered("a6", usage=usage),
            StepEnded(3, usage, "0.01"),
            TurnEnded("done", "", "", 12.0),
            *user("u7", TextPart(HOSTILE)),
            Notice(HOSTILE, "warning", "x"),
            TodosChanged((Todo("run the tests"), Todo("fix add", "completed"))),
            QueueChanged((Queued("q", "delete everything"),)),
            StepStarted(1, budget(3_500)),
            *said("a8", f"The key is {KEY}."),
            answered("a8"),
            TurnEnded("interrupted", "you pressed Esc"),
        ]
    )


def with_opaque_key() -> list[Event]:
    """A session whose provider wants data back in which a key stands."""
    data = Opaque(ORIGIN, {"summary": f"uses {KEY}"})
    part = ReasoningPart("thinking", opaque=data)
    return in_order(
        [
            SessionStarted("/proj", "openai/m", "default", "1.0"),
            *user("u1", TextPart("Hello")),
            ItemStarted("r2", "reasoning"),
            ItemCompleted("r2", "ok", (part,)),
            TurnEnded("done"),
        ]
    )
