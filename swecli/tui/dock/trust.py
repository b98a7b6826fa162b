"""Questions whether to trust a folder, and about individual settings in it, before anything is read."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec.structs import replace

from swecli.safe_text import safe_line
from swecli.tui.dock.choices import Choice, ChoicePanel, wrapped
from swecli.tui.dock.panel import DockPanel

if TYPE_CHECKING:
    from swecli.assembly.trust import TrustChoice, TrustItem, TrustQuestion, WorkspaceTrust
    from swecli.tui.main_screen import Dock

ItemChoice = Literal["yes", "no", "later"]
"""``later`` means no for this run; swecli asks again at the next start."""
ItemsChoice = Literal["yes", "no", "later", "single"]
WIDTH = 70
"""Columns of a value's line."""
PANEL_ROWS = 12
"""Rows that a panel with all items leaves for the rest of the screen and its own question and answers."""


def trust_panel(question: TrustQuestion, done: Callable[[TrustChoice], None]) -> ChoicePanel:
    answers: dict[str, TrustChoice] = {"trust": "trust", "session": "session", "decline": "decline"}
    return ChoicePanel(
        f"Do you trust {safe_line(question.folder)}?",
        [f"  {name}" for name in question.names],
        "These files have no effect yet. If you decline, swecli ignores them and asks before changes.",
        (
            ("trust", Choice("yes", "y")),
            ("session", Choice("only this time", "s")),
            ("decline", Choice("no, never", "n")),
        ),
        lambda value: done(answers.get(value, "later")),
        intro="It contains files that would change how swecli works:",
        leave=("later", "not now"),
        approving=("trust", "session"),
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
        approving=("yes",),
    )


def _cut(value: str) -> list[str]:
    # Break between words if possible, without losing any character of a command.
    return textwrap.wrap(
        value, WIDTH, expand_tabs=False, replace_whitespace=False, drop_whitespace=False, break_on_hyphens=False
    )


def _lines(items: Sequence[TrustItem]) -> list[str]:
    """Everything the items want, wrapped so that a usual screen cuts nothing."""
    found: list[str] = []
    for item in items:
        found += [f"• {item.wish} ({_place(item.origin)})", *(f"  {line}" for line in _cut(item.value))]
    return found


def _place(origin: str) -> str:
    """The file's name, with a hidden folder around it: ``.claude/settings.json:5``."""
    folder, _, name = origin.rpartition("/")
    around = folder.rpartition("/")[2]
    return f"{around}/{name}" if around.startswith(".") else name


def items_panel(
    items: Sequence[TrustItem], done: Callable[[ItemsChoice], None], *, first: int = 1, total: int = 0
) -> ChoicePanel:
    """Panel for one page: the items from number ``first`` of ``total``."""
    answers: dict[str, ItemsChoice] = {"yes": "yes", "single": "single", "no": "no"}
    part = total > len(items)
    place = f"Things {first} to {first + len(items) - 1} of {total}. " if part else ""
    every = "these" if part else "them"
    return ChoicePanel(
        f"Allow this project to do these {len(items)} things?",
        _lines(items),
        f"{place}swecli asks again about each one that changes.",
        (
            ("yes", Choice(f"yes, all of {every}", "y")),
            ("single", Choice("one by one", "o")),
            ("no", Choice(f"no, none of {every}", "n")),
        ),
        lambda value: done(answers.get(value, "later")),
        leave=("later", "not now"),
        approving=("yes",),
    )


def pages(items: Sequence[TrustItem], columns: int, rows: int) -> list[list[TrustItem]]:
    """The items in the fewest panels that show each of them whole on a screen of this size; an item that doesn't fit
    has its own panel and scrolls."""
    found: list[list[TrustItem]] = []
    taken = rows
    for item in items:
        lines = sum(len(wrapped(safe_line(line), max(1, columns - 2))) for line in _lines([item]))
        if taken + lines <= rows - PANEL_ROWS:
            found[-1].append(item)
            taken += lines
        else:
            found.append([item])
            taken = lines
    return found


T = TypeVar("T")


async def ask_trust(gate: WorkspaceTrust, dock: Dock) -> tuple[str, ...] | None:
    """Ask the trust questions before the workspace is read. Returns sentences for the user; None if there was nothing
    to ask."""
    question = await asyncio.to_thread(gate.question)
    notices: list[str] = []
    if question is not None:
        choice: TrustChoice = await _asked(dock, lambda done: trust_panel(question, done))
        notices.append(await asyncio.to_thread(gate.answer, choice))
        if choice not in ("trust", "session"):
            return tuple(filter(None, notices))
    items = await asyncio.to_thread(gate.items)
    if question is None and not items:
        return None
    first = 1
    for page in pages(items, dock.app.size.width, dock.app.size.height):
        every: ItemsChoice = "single"
        if len(page) > 1:
            every = await _asked(
                dock, lambda done, page=page, first=first: items_panel(page, done, first=first, total=len(items))
            )
        if every != "single":
            notices.append(await asyncio.to_thread(_keep, gate, every, page))
        else:
            notices += await _one_by_one(gate, dock, page, first, len(items))
        first += len(page)
    return tuple(filter(None, notices))


async def _one_by_one(gate: WorkspaceTrust, dock: Dock, page: Sequence[TrustItem], first: int, total: int) -> list[str]:
    notices: list[str] = []
    for number, item in enumerate(page, first):
        place = f"{number} of {total} · {item.origin}" if total > 1 else item.origin
        shown = replace(item, origin=place)
        said: ItemChoice = await _asked(dock, lambda done, shown=shown: item_panel(shown, done))
        notices.append(await asyncio.to_thread(_keep, gate, said, [item]))
    return notices


def _keep(gate: WorkspaceTrust, said: ItemChoice, items: Sequence[TrustItem]) -> str:
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
