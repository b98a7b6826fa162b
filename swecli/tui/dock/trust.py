"""The question whether a folder is trusted, and about single settings of it, before anything is read."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from msgspec.structs import replace
from rich.cells import cell_len

from swecli.safe_text import safe_line
from swecli.tui.backend import TrustChoice, TrustGate, TrustItem, TrustQuestion
from swecli.tui.dock.choices import Choice, ChoicePanel
from swecli.tui.dock.panel import DockPanel
from swecli.tui.main_screen import Dock

ItemChoice = Literal["yes", "no", "later"]
"""``later``: no for this run, and asked again at the next start."""
ItemsChoice = Literal["yes", "no", "later", "single"]
WIDTH = 70
"""Columns of a line of a value."""
PANEL_ROWS = 12
"""Rows of a screen that a panel with all items leaves for other things, and for its own question and answers."""


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
    return ChoicePanel(
        f"Allow this project to {safe_line(item.wish)}?",
        _cut(item.value),
        f"{safe_line(item.origin)}. swecli asks again if it changes.",
        (("yes", Choice("yes", "y")), ("no", Choice("no", "n"))),
        lambda value: done(answers.get(value, "later")),
        leave=("later", "not now"),
    )


def _cut(value: str) -> list[str]:
    # Between words where it can be; no character of what would run is lost.
    return textwrap.wrap(
        value[:2_000], WIDTH, expand_tabs=False, replace_whitespace=False, drop_whitespace=False, break_on_hyphens=False
    )


def _lines(items: Sequence[TrustItem]) -> list[str]:
    """All that the items want, so that nothing is cut on a usual screen."""
    found: list[str] = []
    for item in items:
        found += [f"• {item.wish} ({item.origin.rpartition('/')[2]})", *(f"  {line}" for line in _cut(item.value))]
    return found


def items_panel(items: Sequence[TrustItem], done: Callable[[ItemsChoice], None]) -> ChoicePanel:
    """All of them at once."""
    answers: dict[str, ItemsChoice] = {"yes": "yes", "single": "single", "no": "no"}
    return ChoicePanel(
        f"Allow this project to do these {len(items)} things?",
        _lines(items),
        "swecli asks again about each that changes.",
        (
            ("yes", Choice("yes, all of them", "y")),
            ("single", Choice("one by one", "o")),
            ("no", Choice("no, none of them", "n")),
        ),
        lambda value: done(answers.get(value, "later")),
        leave=("later", "not now"),
    )


def at_once(items: Sequence[TrustItem], columns: int, rows: int) -> bool:
    """Whether all of them can be read on one panel of a screen of this size."""
    lines = _lines(items)
    longest = max((cell_len(safe_line(line)) for line in lines), default=0)
    return len(items) > 1 and longest < columns - 3 and len(lines) <= rows - PANEL_ROWS


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
    if at_once(items, dock.app.size.width, dock.app.size.height):
        every: ItemsChoice = await _asked(dock, lambda done: items_panel(items, done))
        if every != "single":
            notices.append(await asyncio.to_thread(_keep, gate, every, items))
            items = ()
    for number, item in enumerate(items, 1):
        place = f"{number} of {len(items)} · {item.origin}" if len(items) > 1 else item.origin
        shown = replace(item, origin=place)
        said: ItemChoice = await _asked(dock, lambda done, shown=shown: item_panel(shown, done))
        notices.append(await asyncio.to_thread(_keep, gate, said, [item]))
    return tuple(filter(None, notices))


def _keep(gate: TrustGate, said: ItemChoice, items: Sequence[TrustItem]) -> str:
    match said:
        case "yes":
            return gate.accept(items)
        case "no":
            return gate.refuse(items)
        case "later":
            gate.postpone(items)
            return ""


async def _asked(dock: Dock, panel: Callable[[Callable[[T], None]], DockPanel]) -> T:
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    dock.show(panel(answer.set_result))
    return await answer
