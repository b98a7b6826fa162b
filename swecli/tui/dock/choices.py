"""Numbered choices for the dock's panels, and a panel that asks one question with such choices."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from swecli.figures import plural
from swecli.safe_text import safe_line
from swecli.tui.dock.panel import (
    NARROW,
    ChoiceClicked,
    DockPanel,
    Hint,
    KeyEffect,
    KeyLine,
    height,
    least_width,
    show_text,
)
from swecli.tui.keymap import keymap_of
from swecli.tui.line_input import component_style, with_count

if TYPE_CHECKING:
    from swecli.core.engine.plan import ProposedPlan


class Choice(Struct, frozen=True):
    """One answer. ``key`` is its letter, ``mark`` precedes the text (a checkbox). One with ``open=False`` can't be
    chosen: its line says why, without a number, or is omitted if empty. The numbers of the others don't change."""

    text: str
    key: str = ""
    detail: str = ""
    mark: str = ""
    open: bool = True


class ChoiceList(Widget, can_focus=False):
    """Numbered choices with a highlight that is kept visible. ``moved``: the user has moved the highlight since the
    choices appeared. Without ``wrap``, long texts are cut and the last line ends with the visible range, for long
    lists."""

    DEFAULT_CSS = """
    ChoiceList { height: auto; color: $foreground; }
    ChoiceList > .choices--dim { color: $foreground-muted; text-style: $muted-style; }
    ChoiceList > .choices--chosen { color: $accent; text-style: $chosen-style; background: $panel; }
    """
    COMPONENT_CLASSES = {"choices--dim", "choices--chosen"}

    def __init__(self, *, limit: int = 12, wrap: bool = True) -> None:
        super().__init__()
        self._limit = limit
        self._wrap = wrap
        self._choices: tuple[Choice, ...] = ()
        self._texts: list[str] = []
        """Text of each choice, without its number."""
        self._widest = 0
        self._measured: dict[Choice, tuple[str, int]] = {}
        self._laid: tuple[int, list[tuple[int, int, str]]] = (0, [])
        """Layout for a width: per line, the choice's index, the line's index within it, and its text."""
        self._top = 0
        self._early = False
        self.numbered = True
        self.around = True
        """Whether moving wraps around the ends."""
        self.selected = 0
        self.moved = False

    @property
    def choices(self) -> Sequence[Choice]:
        return self._choices

    def show(self, choices: Sequence[Choice], selected: int | None = None) -> None:
        """Show these choices; highlight ``selected``, or else keep the highlight."""
        if tuple(choices) != self._choices or selected is not None:
            self._choices = tuple(choices)
            measured = [self._measure(choice) for choice in choices]
            self._texts = [text for text, _ in measured]
            described = any(choice.detail for choice in choices)
            self._widest = max(
                (cells for (_, cells), choice in zip(measured, choices, strict=True) if choice.detail or not described),
                default=0,
            )
            self._laid = (0, [])
            self.selected = min(max(0, self.selected if selected is None else selected), max(0, len(choices) - 1))
            self.refresh(layout=True)

    def _measure(self, choice: Choice) -> tuple[str, int]:
        """Text of a choice and its width, cached because every filter key shows the choices again."""
        measured = self._measured.get(choice)
        if measured is None:
            text = choice.mark + safe_line(choice.text)
            measured = self._measured[choice] = text, cell_len(text)
        return measured

    def pale(self, early: bool) -> None:
        """Dim the list while keys are still ignored."""
        if early != self._early:
            self._early = early
            self.refresh()

    def move(self, step: int) -> None:
        """Move the highlight, skipping choices that can't be chosen."""
        self.moved = True
        index = self.selected
        for _ in self._choices:
            index += step
            if not self.around and not 0 <= index < len(self._choices):
                break
            index %= len(self._choices)
            if self._choices[index].open:
                self.selected = index
                break
        self.refresh()

    def numbered_at(self, key: str) -> int | None:
        """Index of the selectable choice with this number."""
        index = int(key) - 1 if self.numbered and len(key) == 1 and key in "123456789" else -1
        return index if 0 <= index < len(self._choices) and self._choices[index].open else None

    def how_to_choose(self) -> str:
        """The answer to Enter before the highlight was moved."""
        open_ = [str(number) for number, choice in enumerate(self._choices[:9], 1) if choice.open]
        unbroken = len(open_) > 1 and int(open_[-1]) - int(open_[0]) == len(open_) - 1
        numbers = f"{open_[0]}-{open_[-1]}" if unbroken else " or ".join(open_)
        return f"Press {numbers}, or move with ↑↓ before Enter."

    def lines(self, width: int) -> int:
        """Number of lines of all choices."""
        return len(self._lines(width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(self.lines(width), self._limit, max(1, viewport.height // 2))

    def on_click(self, event: events.Click) -> None:
        lines = self._lines(self.size.width)
        event.stop()
        if 0 <= self._top + event.y < len(lines):
            index = lines[self._top + event.y][0]
            if self._choices[index].open:
                again = index == self.selected and self.moved
                self.selected, self.moved = index, True
                self.refresh()
                self.post_message(ChoiceClicked(again))

    def render_line(self, y: int) -> Strip:
        width, tall = self.size.width, self.size.height
        rows = self._lines(width)
        if y == 0:
            self._follow(rows, tall)
        if width < 1 or self._top + y >= len(rows):
            return Strip.blank(max(0, width), self.rich_style)
        at = self._top + y
        index, line_number, text = rows[at]
        line = self._styled(index, line_number, text, last=at + 1 == len(rows) or rows[at + 1][0] != index)
        if not self._wrap and y == tall - 1:
            dim = self.get_visual_style("choices--dim", partial=True)
            line = with_count(line, self._top, tall, len(rows), width, dim)
        return Strip(list(line.truncate(width, ellipsis=True, pad=True).render_segments(self.visual_style)), width)

    def _follow(self, rows: Sequence[tuple[int, int, str]], tall: int) -> None:
        """Scroll to the highlighted choice, and if there is room to the next one."""
        last = bisect_right(rows, self.selected, key=lambda row: row[0]) - 1
        self._top = max(0, min(last - tall + 1 + (tall > 2), len(rows) - tall))

    def _lines(self, width: int) -> list[tuple[int, int, str]]:
        if self._laid[0] != width:
            letters = 3 * any(choice.key for choice in self._choices)
            room = max(8, width - len(self._lead(0, False)) - letters)
            shown = [(index, text) for index, text in enumerate(self._texts) if text or self._choices[index].open]
            if self._wrap:
                lines = [
                    (index, line_number, line)
                    for index, text in shown
                    for line_number, line in enumerate(wrapped(text, room) if self._choices[index].open else (text,))
                ]
            else:
                lines = [(index, 0, text) for index, text in shown]
            self._laid = width, lines
        return self._laid[1]

    def _lead(self, index: int, chosen: bool, line_number: int = 0) -> str:
        number = f"{index + 1} " if line_number == 0 and index < 9 else "  "
        return ("\u203a " if chosen and line_number == 0 else "  ") + (number if self.numbered else "")

    def _styled(self, index: int, line_number: int, text: str, *, last: bool) -> Content:
        choice, chosen = self._choices[index], index == self.selected and self._choices[index].open
        dim = self.get_visual_style("choices--dim", partial=True)
        width = self.size.width
        line = Content(self._lead(index, chosen, line_number if choice.open else 1) + text)
        room = width - line.cell_length
        if last and choice.detail and room > 12:
            before = self._column(width, with_detail=True) - line.cell_length if line_number == 0 else 2
            detail = Content(" " * max(2, before) + safe_line(choice.detail))
            line += detail if chosen else detail.stylize(dim)
        elif last and choice.key and not choice.detail and room >= len(choice.key) + 2:
            before = self._column(width, with_detail=False) - line.cell_length
            line += Content(" " * max(2, before) + choice.key).stylize(dim)
        if self._early or not choice.open:
            return line.stylize(dim)
        if chosen:  # the whole row, as in the lists of screens
            line = line.pad_right(max(0, width - line.cell_length)).stylize(component_style(self, "choices--chosen"))
        return line

    def _column(self, width: int, *, with_detail: bool) -> int:
        """Column of the letters or details; 0 if a long choice leaves no room for details."""
        lead = len(self._lead(0, False)) + 2
        if with_detail:
            return lead + self._widest if lead + self._widest <= width * 3 // 5 else 0
        letters = max((len(choice.key) for choice in self._choices), default=0)
        choices = (text for index, _, text in self._lines(width) if self._choices[index].open)
        return min(lead + max(map(cell_len, choices), default=0), width - letters)


_LEAST_INDENTED = 20
"""Columns beside an indentation that it leaves at least."""


def wrapped(text: str, room: int) -> list[str]:
    """The text in lines of at most ``room`` columns, broken between words if possible, all indented as the first."""
    if cell_len(text) <= room:
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    if indent and room - len(indent) >= _LEAST_INDENTED:
        return [indent + line for line in wrapped(text[len(indent) :], room - len(indent))]
    lines: list[str] = []
    for word in text.split(" "):
        while cell_len(word) > room:
            cut = next(at for at in range(len(word), 0, -1) if cell_len(word[:at]) <= room)
            lines, word = [*lines, word[:cut]], word[cut:]
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def step_of(panel: DockPanel, key: str) -> int | None:
    """Step of the highlight for a key, same in every list."""
    return {"previous": -1, "next": 1}.get(keymap_of(panel).action("list", key) or "")


UNREAD = "Read all of it first: PgDn or End shows more."
_SCROLLING = frozenset(("pageup", "pagedown", "home", "end"))


class ChoicePanel(DockPanel):
    """A question with numbered answers. Keys meant for the previous content decide nothing, nor does Enter before the
    user has moved. Details that don't fit scroll. ``done`` gets the value of the chosen answer, or that of Esc."""

    DEFAULT_CSS = """
    ChoicePanel { border-top: solid $warning; }
    ChoicePanel .dock--title { color: $warning; }
    ChoicePanel.-calm { border-top: solid $accent; }
    ChoicePanel.-calm .dock--title { color: $accent; }
    ChoicePanel #lines, ChoicePanel #intro { height: auto; }
    """

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        note: str,
        choices: Sequence[tuple[str, Choice]],
        done: Callable[[str], None],
        *,
        intro: str = "",
        leave: tuple[str, str],
        approving: Collection[str] = (),
        calm: bool = False,
    ) -> None:
        """``choices`` are values with their display, ``leave`` the value of Esc and its label; those in ``approving``
        can be chosen only after all of ``lines`` was visible. ``calm``: the answer is harmless."""
        super().__init__(classes="-calm" if calm else None)
        self._title = title
        self._intro = intro
        self._lines = [safe_line(line) for line in lines]
        self._note = note
        self._values = [value for value, _ in choices]
        self._leave = leave
        self._done = done
        self._approving_values = approving
        self._top = self._page = 0
        self._more = False
        self._read = False
        """Whether the last line was visible."""
        self._list = ChoiceList()
        self._list.show([choice for _, choice in choices])
        self._legend = KeyLine()
        # Kept here because the children go before the panel when the program ends.
        self._intro_line = Static(Content(intro), id="intro")
        self._about = Static(Content(""), id="lines")
        self._note_line = Static(Content(note), classes="dock--note")

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        yield self._intro_line
        yield self._about
        yield self._note_line
        yield self._list
        yield self._legend

    def on_mount(self) -> None:
        self.appear()
        self._legend.wait(self.grace, self._list.pale)
        self.fit()

    def key_handled(self) -> None:
        self._legend.say(self.said)
        self._legend.wait(self.grace, self._list.pale)

    def _hints(self, *, listed: bool) -> list[Hint]:
        """Key hints that the choices don't show themselves."""
        letters = [
            (choice.key, choice.text.split(",")[0], 3 if number else 0)
            for number, choice in enumerate(self._list.choices)
            if choice.key and not listed
        ]
        move: list[Hint] = [("\u2191\u2193 enter", "choose", 1)] if listed else []
        more: list[Hint] = [("pgdn", "more", 1)] if self._more else []
        return [*move, *letters, *more, ("esc", self._leave[1], 0)]

    def fit(self) -> None:
        """Show as many of the details as fit first, then the note."""
        if not self.is_mounted:  # a resize may come before the lines are mounted
            return
        columns = self.screen.size.width
        narrow = columns < NARROW
        width = max(1, columns - (0 if narrow else 2))
        answers = self._list.lines(width)
        fixed = 2 + height(self._title, width)
        lines = [piece for line in self._lines for piece in wrapped(line, width)]
        best, least = fixed + min(3, len(lines)) + answers, fixed + min(2, len(lines))
        rows = self.measure(least_width(self._hints(listed=True)), best, least)
        listed = rows >= fixed + answers + min(1, len(lines))
        self._list.display = listed
        spare = rows - fixed - (answers if listed else 0)
        taken = min(len(lines), 3)
        for text, line in ((self._note, self._note_line), (self._intro, self._intro_line)):
            fits = bool(text) and height(text, width) <= spare - taken
            taken += height(text, width) if fits else 0
            line.display = fits
        self._show_lines(lines, max(1, spare - taken + min(len(lines), 3)))
        self._legend.tell(self._hints(listed=listed), width, narrow=narrow)
        self.set_class(narrow, "-tight")

    def _show_lines(self, lines: Sequence[str], room: int) -> None:
        self._more = len(lines) > room
        self._page = max(1, room - 1) if self._more else room
        self._top = max(0, min(self._top, len(lines) - self._page))
        end = min(len(lines), self._top + self._page)
        self._read = self._read or (end == len(lines) and not self.cramped)
        position = [f"\u2026 lines {self._top + 1}\u2013{end} of {len(lines)}"] if self._more and room > 1 else []
        text = "\n".join([*lines[self._top : end], *position])
        self._about.display = bool(text)
        show_text(self._about, text)

    def _scroll(self, key: str) -> None:
        match key:
            case "pagedown":
                self._top += self._page
            case "pageup":
                self._top -= self._page
            case "home":
                self._top = 0
            case _:
                self._top = sys.maxsize
        self.fit()

    def _letter(self, key: str) -> int | None:
        letters = [choice.key for choice in self._list.choices]
        return letters.index(key.lower()) if key.lower() in letters and key else None

    def key_effect(self, key: str) -> KeyEffect:
        known = key == "enter" or self._list.numbered_at(key) is not None or self._letter(key) is not None
        if key in _SCROLLING and self._more:
            return "moves"
        return "decides" if known or step_of(self, key) is not None else "nothing"

    def approves(self, key: str) -> bool:
        return self._letter(key) is not None and step_of(self, key) is None

    def take(self, key: str) -> None:
        step = step_of(self, key)
        index = self._list.numbered_at(key) if key.isdecimal() else self._letter(key)
        if key in _SCROLLING and self._more:
            self._scroll(key)
        elif step is not None:
            self._list.move(step)
        elif index is not None:
            self._choose(self._values[index])
        elif self._list.moved:
            self._choose(self._values[self._list.selected])
        else:
            self.said = self._list.how_to_choose()

    def _choose(self, value: str) -> None:
        if value in self._approving_values and not self._read:
            self.said = UNREAD
        else:
            self._decide(value)

    def escape(self) -> None:
        self._decide(self._leave[0])

    def _decide(self, value: str) -> None:
        if not self.answered:
            self.close_to_keys()
            self.post_message(self.Finished(self))
            self._done(value)


class PlanPanel(ChoicePanel):
    """Asks what to do with a plan that the model proposed. It closes when the mode changes or a turn begins."""

    def __init__(self, plan: ProposedPlan, done: Callable[[str], None]) -> None:
        """``done`` gets "default", "accept-edits", "edit", "change" or "keep"."""
        size = f" ({plural(len(plan.steps), 'step')})" if plan.steps else ""
        super().__init__(
            f"Go ahead with this plan?{size}",
            (),
            f"The plan is above{f' and in {plan.path}' if plan.path else ''}. Nothing has been changed yet.",
            (
                ("default", Choice("go ahead", "y", "asks before each change")),
                ("accept-edits", Choice("go ahead and accept edits", "a", "commands still ask")),
                *((("edit", Choice("edit it", "e", "in your editor, then decide")),) if plan.path else ()),
                ("change", Choice("revise it", "n", "say how")),
                ("keep", Choice("keep planning", "k", "back to the prompt")),
            ),
            done,
            leave=("keep", "keep planning"),
            calm=True,
        )
