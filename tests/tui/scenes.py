"""Scenes of whole screens, for the goldens of their looks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from swecli.core.protocol.blocks import DiffBlock, FileEntry, FileListBlock, TerminalBlock, Todo
from swecli.core.protocol.events import (
    Body,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    PermissionRequested,
    QuestionAsked,
    TodosChanged,
    TurnEnded,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.request_events import Option, Question
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import Running

OLD = "def price(pens):\n    if pens > 10:\n        return 95\n    return 100\n"
NEW = OLD.replace("> 10", ">= 10")
EDIT = DiffBlock("shop/pricing.py", OLD, NEW)
ANSWER = "Fixed: **ten** pens are cheaper now.\n\n| pens | price |\n|---|---|\n| 9 | 100 |\n| 10 | 95 |\n"


def tool(item: str, name: str, title: str) -> tuple[Body, Body]:
    call = ToolCallPart(item, name, "{}")
    return ItemStarted(item, "tool", name), ItemCheckpointed(item, call, title, running=True)


def user(text: str) -> tuple[Body, Body]:
    return ItemStarted("u1", "user"), ItemCompleted("u1", "ok", (TextPart(text),))


def found(item: str) -> ItemCompleted:
    entries = FileListBlock((FileEntry("shop/pricing.py", 2, "if pens > 10:"),), 1)
    return ItemCompleted(item, "ok", (ToolResultPart(item, "search", "x"),), (entries,), "1 match in 1 file", 0.2)


TODOS = TodosChanged((Todo("find it", "completed"), Todo("fix it", "in_progress"), Todo("run the tests")))
WORK: tuple[Body, ...] = (
    *user("Ten pens get no discount. Please fix that."),
    TODOS,
    ItemStarted("r1", "reasoning"),
    ItemCompleted("r1", "ok", (ReasoningPart("The comparison must be wrong."),), duration=2.0),
    *tool("t1", "search", "'pens' in shop/"),
    found("t1"),
)
CHANGED = ItemCompleted("t2", "ok", (ToolResultPart("t2", "edit_file", "ok"),), (EDIT,), "+1 -1", 0.1)
DONE: tuple[Body, ...] = (
    *WORK,
    *tool("t2", "edit_file", "shop/pricing.py"),
    CHANGED,
    ItemStarted("a1", "text"),
    ItemCompleted("a1", "ok", (TextPart(ANSWER),)),
    TurnEnded("done", duration=12.0),
)
ASK = PermissionRequested(
    "p1", "t2", "edit_file", "shop/pricing.py", (EDIT,), "Edits ask in this mode.", "hash", "Edit(/shop/pricing.py)"
)
RUN = PermissionRequested(
    "p2",
    "t3",
    "run_command",
    "make test",
    (TerminalBlock("make test", "", cwd="/proj"),),
    "Commands ask in this mode.",
    "hash",
    "Bash(make test)",
)
QUESTION = QuestionAsked(
    "q1", "t4", (Question("Which price?", (Option("95", "as in the README"), Option("90")), header="Price"),)
)

Scene = Callable[[Running], Awaitable[None]]


async def welcome(it: Running) -> None:
    await it.shows("Connect a model")


async def conversation(it: Running) -> None:
    await it.say("go")
    await it.shows("done in 12 s")


async def busy(it: Running) -> None:
    await it.say("go")
    await it.until(lambda: it.app.session.state.running)
    await it.press("ctrl+t")
    await it.say("use integers")
    await it.type("then write a changelog entry")
    await it.press("tab")
    await it.shows("use integers")
    await it.until(lambda: len(it.app.session.state.queue) == 2)


async def suggestions(it: Running) -> None:
    await it.press("slash")
    await it.until(lambda: it.app.main.prompt.suggestions.is_open)


async def change(it: Running) -> None:
    await it.say("go")
    await it.until(lambda: it.app.main.dock.panel)


async def question(it: Running) -> None:
    await it.say("go")
    await it.shows("Which price?")


SCENES: dict[str, tuple[tuple[Body, ...], Scene]] = {
    "welcome": ((), welcome),
    "conversation": (DONE, conversation),
    "busy": ((*WORK, *tool("t2", "run_command", "make test"), WAIT_FOR_INTERRUPT), busy),  # type: ignore[arg-type]
    "suggestions": ((), suggestions),
    "change": ((*WORK, *tool("t2", "edit_file", "shop/pricing.py")[:1], ASK), change),
    "command": ((*WORK, RUN), change),
    "question": ((*WORK, QUESTION), question),
}
