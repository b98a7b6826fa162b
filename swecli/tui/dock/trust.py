"""The question whether a folder is trusted, and about single settings of it, before anything is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from swecli.safe_text import safe_line
from swecli.tui.backend import TrustChoice, TrustGate, TrustItem, TrustQuestion
from swecli.tui.dock.dock import Dock
from swecli.tui.dock.panel import NARROW, DockPanel, KeyEffect, KeyLine, height, least_width

_TRUST_KEYS: Mapping[str, TrustChoice] = {"y": "trust", "s": "session", "n": "decline"}

Key = tuple[str, str, str, int]
"""A key, what it does, the same in a narrow window, and how soon it is left out: 0 is never."""


class ChoicePanel(DockPanel):
    """A question with one key for each answer. Keys that were meant for what was there before decide nothing."""

    DEFAULT_CSS = """
    ChoicePanel { border-top: solid $warning; }
    ChoicePanel .dock--title { color: $warning; }
    ChoicePanel #lines, ChoicePanel #intro { height: auto; }
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        note: str,
        keys: Sequence[Key],
        done: Callable[[str], None],
        *,
        intro: str = "",
    ) -> None:
        super().__init__()
        self._title = title
        self._intro = intro
        self._lines = [safe_line(line) for line in lines]
        self._note = note
        self._keys = keys
        self._done = done
        self._legend = KeyLine("keys")
        self._decided = False

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        yield Static(Content(self._intro), id="intro")
        yield Static(Content(""), id="lines")
        yield Static(Content(self._note), classes="dock--note")
        yield self._legend

    def on_mount(self) -> None:
        self.appear()
        self._legend.wait(self.grace)
        self.fit()

    def key_handled(self) -> None:
        self._legend.wait(self.grace)

    def fit(self) -> None:
        """Show what it is about first, as much of it as there is room for, then what is said of it."""
        if not self.is_mounted:  # a terminal that changes its size may ask before the lines are there
            return
        columns = self.screen.size.width
        narrow = columns < NARROW
        width = max(1, columns - (0 if narrow else 2))
        hints = [(key, short if narrow else word, last) for key, word, short, last in self._keys]
        fixed = 2 + height(self._title, width)
        best, least = fixed + min(3, len(self._lines)), fixed + min(2, len(self._lines))
        spare = self.measure(least_width(hints), best, least) - fixed
        taken = min(len(self._lines), 3)
        for text, selector in ((self._note, ".dock--note"), (self._intro, "#intro")):
            fits = bool(text) and height(text, width) <= spare - taken
            taken += height(text, width) if fits else 0
            self.query_one(selector).display = fits
        room = max(1, spare - taken + min(len(self._lines), 3))
        shown = self._lines if len(self._lines) <= room else self._lines[: room - 1]
        hidden = len(self._lines) - len(shown)
        lines = [line if len(line) <= width else line[: width - 1] + "…" for line in shown]
        text = "\n".join([*lines, *([f"… and {hidden} more"] if hidden else [])])
        self.query_one("#lines", Static).update(Content(text))
        self._legend.tell(hints, width, narrow=narrow)
        self.set_class(narrow, "-tight")

    def key_effect(self, key: str) -> KeyEffect:
        return "decides" if key != "esc" and key.lower() in {name for name, *_ in self._keys} else "nothing"

    def take(self, key: str) -> None:
        self._decide(key.lower())

    def escape(self) -> None:
        self._decide("esc")

    def _decide(self, key: str) -> None:
        if not self._decided:
            self._decided = True
            self.post_message(self.Finished(self))
            self._done(key)


def trust_panel(question: TrustQuestion, done: Callable[[TrustChoice], None]) -> ChoicePanel:
    return ChoicePanel(
        f"Do you trust {safe_line(question.folder)}?",
        [f"  {name}" for name in question.names],
        "None has been read yet. If you decline, they are ignored and swecli asks before changes.",
        (
            ("y", "yes", "yes", 0),
            ("s", "this time", "once", 2),
            ("n", "no, never", "never", 1),
            ("esc", "not now", "not now", 0),
        ),
        lambda key: done(_TRUST_KEYS.get(key, "later")),
        intro="It contains files that would change how swecli works:",
    )


def item_panel(item: TrustItem, done: Callable[[bool], None]) -> ChoicePanel:
    return ChoicePanel(
        f"Allow this project to set {safe_line(item.key)}?",
        [item.value[at : at + 70] for at in range(0, min(len(item.value), 2_000), 70)],
        f"{safe_line(item.origin)}. swecli asks again if it changes.",
        (("y", "yes", "yes", 0), ("n", "no", "no", 0), ("esc", "no", "no", 1)),
        lambda key: done(key == "y"),
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
