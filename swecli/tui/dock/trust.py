"""The question whether a folder is trusted, and about single settings of it, before anything is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

from swecli.safe_text import safe_line
from swecli.tui.backend import TrustChoice, TrustGate, TrustItem, TrustQuestion
from swecli.tui.dock.choices import Choice, ChoicePanel
from swecli.tui.dock.dock import Dock
from swecli.tui.dock.panel import DockPanel

ItemChoice = Literal["yes", "no", "later"]
"""``later``: no for this run, and asked again at the next start."""


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


def item_panel(item: TrustItem, done: Callable[[ItemChoice], None]) -> ChoicePanel:
    answers: dict[str, ItemChoice] = {"yes": "yes", "no": "no"}
    hook = item.key.startswith("hooks.") and item.key[6:7].isupper()
    wish = f"run this program at {item.key[6:]}" if hook else f"set {item.key}"
    return ChoicePanel(
        f"Allow this project to {safe_line(wish)}?",
        [item.value[at : at + 70] for at in range(0, min(len(item.value), 2_000), 70)],
        f"{safe_line(item.origin)}. swecli asks again if it changes.",
        (("yes", Choice("yes", "y")), ("no", Choice("no", "n"))),
        lambda value: done(answers.get(value, "later")),
        leave=("later", "not now"),
    )


T = TypeVar("T")


async def ask_trust(gate: TrustGate, dock: Dock) -> tuple[str, ...]:
    """Ask whatever has to be asked before the workspace is read. Returns sentences for the user."""
    question = await asyncio.to_thread(gate.question)
    notices: list[str] = []
    if question is not None:
        choice: TrustChoice = await _asked(dock, lambda done: trust_panel(question, done))
        notices.append(await asyncio.to_thread(gate.answer, choice))
        if choice not in ("trust", "session"):
            return tuple(filter(None, notices))
    items = await asyncio.to_thread(gate.items)
    for number, item in enumerate(items, 1):
        place = f"{number} of {len(items)} · {item.origin}" if len(items) > 1 else item.origin
        shown = replace(item, origin=place)
        said: ItemChoice = await _asked(dock, lambda done, shown=shown: item_panel(shown, done))
        if said != "later":
            keep = gate.accept if said == "yes" else gate.refuse
            notices.append(await asyncio.to_thread(keep, [item]))
    return tuple(filter(None, notices))


async def _asked(dock: Dock, panel: Callable[[Callable[[T], None]], DockPanel]) -> T:
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    dock.show(panel(answer.set_result))
    return await answer
