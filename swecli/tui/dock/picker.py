"""A list to pick from, narrowed by typing: modes, models, and whatever else needs choosing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.tui.dock.panel import DockPanel, KeyEffect, height
from swecli.tui.keymap import keymap_of
from swecli.tui.line_input import LineInput, Row, Rows
from swecli.tui.prompt.completion import last_part, score_folded

KEYS = "↑↓ choose · enter selects · esc cancels"


@dataclass(frozen=True, slots=True)
class Choice:
    """``value`` is what is picked; ``current`` marks what is set now."""

    value: str
    label: str
    detail: str = ""
    current: bool = False


class _Named(NamedTuple):
    """A choice with its label as it is searched."""

    choice: Choice
    text: str
    base: str


def _folded(choice: Choice) -> str:
    return choice.label.casefold()


class Picker(DockPanel):
    """Calls ``pick`` with the chosen value. ``free`` lets the user pick what they typed even when it is not in the
    list; else ``nothing`` is said when that leaves none. Without ``narrow`` nothing is typed: it is a question, and
    letters are meant for the prompt. ``unasked`` tells that it appears by itself: what is no name goes to the prompt.
    ``preview`` is called with each value that is pointed at, ``cancelled`` when nothing is picked, ``quit`` by
    the key that quits on an empty prompt, while nothing is typed, ``gone`` when it has left the screen in any way."""

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        pick: Callable[[str], None],
        *,
        free: bool = False,
        narrow: bool = True,
        unasked: bool = False,
        nothing: str = "No match.",
        preview: Callable[[str], None] | None = None,
        cancelled: Callable[[], None] | None = None,
        quit: Callable[[], None] | None = None,
        gone: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._pick = pick
        self._preview = preview
        self._cancelled = cancelled
        self._quit = quit
        self._gone = gone
        self._title = title
        self._choices = list(choices)
        self._shown = list(choices)
        self._made: dict[Choice, Row] = {}
        self._found: tuple[str, list[_Named]] = ("", [])
        """The words typed last, and what they left: longer ones leave no more."""
        self._free = free
        self._narrows = narrow
        self._unasked = unasked
        self._nothing = nothing
        self._note = Static(Content(KEYS), classes="dock--note")
        self._filter = LineInput(placeholder="type to filter" if choices else "type it here", intercept=self._intercept)
        self._narrowed_by = ""
        self._rows = Rows(limit=10)

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        if self._narrows:
            yield self._filter
        yield self._rows
        yield self._note

    def on_mount(self) -> None:
        self._show(next((n for n, choice in enumerate(self._choices) if choice.current), 0))
        self.appear()
        (self._filter if self._narrows else self).focus()

    def on_unmount(self) -> None:
        if self._gone is not None:
            self._gone()

    def fit(self) -> None:
        """A question has to show what it is about, and what can be chosen."""
        super().fit()
        if not self._narrows and self.is_mounted:
            width = max(1, self.screen.size.width - 2)
            fixed = 1 + height(self._title, width) + min(2, len(self._rows.rows))
            self.measure(12, fixed + height(KEYS, width), fixed)

    @property
    def field(self) -> LineInput | None:
        return self._filter if self._narrows else None

    def key_effect(self, key: str) -> KeyEffect:
        return "decides" if key == "enter" else "nothing" if self._step(key) is None else "moves"

    def take(self, key: str) -> None:
        step = self._step(key)
        if step is None:
            self._choose("")
        else:
            self._move(step)

    def _step(self, key: str) -> int | None:
        return {"previous": -1, "next": 1}.get(keymap_of(self).action("list", key) or "")

    def _move(self, step: int) -> None:
        self._rows.move(step)
        self._point()

    def _intercept(self, event: events.Key) -> bool:
        self._narrow()
        step = self._step(event.key)
        if step is not None:
            self._move(step)
        elif self._quit is not None and not self._filter.value and self._ends(event.key):
            self._quit()
        else:
            return False
        return True

    def _ends(self, key: str) -> bool:
        return keymap_of(self).action("prompt", key) == "leave"

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._narrow()

    def _narrow(self) -> None:
        """List what the typed words leave, unless that is done: a key may come before the message that says so."""
        if self._filter.value == self._narrowed_by:
            return
        self._narrowed_by = self._filter.value
        query = "".join(self._narrowed_by.split())  # names have no blanks: several words are parts of one
        self._shown = self._matching(query.casefold()) if query else self._choices
        self._show(0)
        self._point()

    def _matching(self, wanted: str) -> list[Choice]:
        before, pool = self._found
        if not before or not wanted.startswith(before):
            pool = [_Named(choice, text, last_part(text)) for choice in self._choices if (text := _folded(choice))]
        ranked = [
            (rank, place, named)
            for place, named in enumerate(pool)
            if (rank := score_folded(wanted, named.text, named.base, named.choice.label)) is not None
        ]
        self._found = (wanted, [named for _, _, named in ranked])
        return [named.choice for _, _, named in sorted(ranked, key=itemgetter(0, 1))]

    def escape(self) -> None:
        if self._cancelled is not None:
            self._cancelled()
        super().escape()

    def _point(self) -> None:
        if self._preview is not None and self._shown:
            self._preview(self._shown[self._rows.selected].value)

    @on(Input.Submitted)
    def _chosen(self, event: Input.Submitted) -> None:
        event.stop()
        self._choose(event.value.strip())

    def _choose(self, typed: str) -> None:
        if self._unasked and typed and not self._names(typed):
            self._filter.value = ""
            self._narrow()
            self.prompt_context.stray(typed)
            self._note.update(Content("That is not a model; your text is in the prompt."))
            return
        value = self._shown[self._rows.selected].value if self._shown else typed if self._free else ""
        if value:
            self.post_message(self.Finished(self))
            self._pick(value)

    def _names(self, typed: str) -> bool:
        """Whether what was typed is meant for this list, and not for the prompt that was there a moment ago: it is like
        a name, or a part of the one that is pointed at."""
        if self._shown:
            label = self._shown[self._rows.selected].label.lower()
            return all(word in label for word in typed.lower().split())
        return self._free and len(typed.split()) == 1 and all(typed.partition("/"))

    def _row(self, choice: Choice) -> Row:
        row = self._made.get(choice)
        if row is None:
            row = self._made[choice] = Row(choice.label, choice.detail, "● " if choice.current else "  ")
        return row

    def _show(self, selected: int) -> None:
        self._rows.show([self._row(choice) for choice in self._shown], selected)
        if self._shown:
            hint = KEYS
        elif self._free:
            hint = "enter uses the typed text · esc cancels"
        else:
            hint = f"{self._nothing} Esc cancels."
        self._note.update(Content(hint))
