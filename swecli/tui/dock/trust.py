"""The question whether a folder is trusted, and about single settings of it, before anything is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from swecli.safe_text import safe_line
from swecli.tui.backend import TrustChoice, TrustGate, TrustItem, TrustQuestion
from swecli.tui.dock.choices import Choice, ChoicePanel
from swecli.tui.dock.dock import Dock
from swecli.tui.dock.panel import DockPanel


def trust_panel(question: TrustQuestion, done: Callable[[TrustChoice], None]) -> ChoicePanel:
    answers: dict[str, TrustChoice] = {"trust": "trust", "session": "session", "decline": "decline"}
    return ChoicePanel(
        f"Do you trust {safe_line(question.folder)}?",
        [f"  {name}" for name in question.names],
        "None has been read yet. If you decline, they are ignored and swecli asks before changes.",
        (
            ("trust", Choice("yes", "y")),
            ("session", Choice("only this time", "s")),
            ("decline", Choice("no, never", "n")),
        ),
        lambda value: done(answers.get(value, "later")),
        intro="It contains files that would change how swecli works:",
        leave=("later", "not now"),
    )


def item_panel(item: TrustItem, done: Callable[[bool], None]) -> ChoicePanel:
    return ChoicePanel(
        f"Allow this project to set {safe_line(item.key)}?",
        [item.value[at : at + 70] for at in range(0, min(len(item.value), 2_000), 70)],
        f"{safe_line(item.origin)}. swecli asks again if it changes.",
        (("yes", Choice("yes", "y")), ("no", Choice("no", "n"))),
        lambda value: done(value == "yes"),
        leave=("no", "no"),
    )


T = TypeVar("T")


async def ask_trust(gate: TrustGate, dock: Dock) -> tuple[str, ...]:
    """Ask whatever has to be asked before the workspace is read. Returns sentences for the user."""
    question = await asyncio.to_thread(gate.question)
    if question is None:
        return ()

    choice: TrustChoice = await _asked(dock, lambda done: trust_panel(question, done))
    notices = [await asyncio.to_thread(gate.answer, choice)]
    if choice in ("trust", "session"):
        items = await asyncio.to_thread(gate.items)
        for number, item in enumerate(items, 1):
            place = f"{number} of {len(items)} · {item.origin}" if len(items) > 1 else item.origin
            shown = replace(item, origin=place)
            if await _asked(dock, lambda done, shown=shown: item_panel(shown, done)):
                notices.append(await asyncio.to_thread(gate.accept, [item]))
    return tuple(notice for notice in notices if notice)


async def _asked(dock: Dock, panel: Callable[[Callable[[T], None]], DockPanel]) -> T:
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    dock.show(panel(answer.set_result))
    return await answer
