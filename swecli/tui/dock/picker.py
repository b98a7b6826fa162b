"""A list filtered by typing, for modes, models and other choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct
from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.tui.dock.choices import Choice as Row
from swecli.tui.dock.choices import ChoiceList, step_of
from swecli.tui.dock.panel import NARROW, DockPanel, Hint, KeyEffect, KeyLine, height, least_width, show_text
from swecli.tui.keymap import keymap_of
from swecli.tui.line_input import LineInput
from swecli.tui.prompt.completion import last_part, score_folded

NUMBERED = 9
"""Choices that digits can select."""
ROWS = 10
"""Choices visible at once."""
LEAST_ROWS = 3
"""Choices for which a list takes the whole screen."""


class Choice(Struct, frozen=True):
    """``value`` is the result; ``current`` marks the active one."""

    value: str
    label: str
    detail: str = ""
    current: bool = False


class Prompted(Struct, frozen=True):
    """What a list that appears unasked does for the prompt: input with a slash filters ``commands``, and ``run`` gets
    it, as it gets input with an exclamation mark. A question mark on empty input runs /help."""

    commands: Callable[[], Sequence[Choice]]
    run: Callable[[str], None]


class _Named(NamedTuple):
    """A choice with its label in search form."""

    choice: Choice
    text: str
    base: str


def _placeholder(choices: Sequence[Choice]) -> str:
    return "type to filter" if choices else "type it here"


def _is_start(wanted: str, name: str) -> bool:
    """Whether a name begins with the typed words: ``gpt-5`` means ``gpt-5-mini`` rather than ``gpt-50x``."""
    return name.startswith(wanted) and not name[len(wanted) : len(wanted) + 1].isalnum()


class Picker(DockPanel):
    """Calls ``pick`` with the chosen value, by Enter or, in a short list, by number. ``free`` allows typed values that
    are not in the list; otherwise ``nothing`` is shown if the filter matches none. Without ``narrow`` it is a question
    without input, and letters go to the prompt. ``prompted``: the list appears unasked, so text that is no name goes to
    the prompt and commands run. ``preview`` is called with each highlighted value, ``cancelled`` if nothing is picked,
    ``quit`` by the key that quits on an empty prompt while the input is empty, ``gone`` whenever the list leaves the
    screen."""

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        pick: Callable[[str], None],
        *,
        free: bool = False,
        narrow: bool = True,
        prompted: Prompted | None = None,
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
        self._picked = False
        self._behind: list[events.Key | events.Paste] = []
        """Keys behind the choice; they wait until the list is gone."""
        self._title = title
        self._choices = list(choices)
        self._shown = list(choices)
        self._marked = any(choice.current for choice in self._choices)
        self._made: dict[Choice, Row] = {}
        self._found: tuple[str, list[_Named]] = ("", [])
        """Last filter and its matches: a longer filter only searches these."""
        self._free = free
        self._narrows = narrow
        self._prompted = prompted
        self._nothing = nothing
        self._note = Static(classes="dock--note")
        self._filter = LineInput(placeholder=_placeholder(choices), intercept=self._intercept)
        self._narrowed_by = ""
        self._list = ChoiceList(limit=ROWS, wrap=not narrow)
        digits = narrow and any(char.isdecimal() for choice in choices for char in choice.label)
        self._list.numbered = bool(choices) and not free and not digits and len(choices) <= NUMBERED
        self._keys = KeyLine()

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        if self._narrows:
            yield self._filter
        yield self._list
        yield self._note
        yield self._keys

    def on_mount(self) -> None:
        self._show(next((n for n, choice in enumerate(self._choices) if choice.current), 0))
        self.appear()
        self._filter.display = not self._list.numbered
        (self._filter if self._narrows and self._filter.display else self).focus()
        if not self._narrows:
            self.key_handled()

    def on_unmount(self) -> None:
        if self._gone is not None:
            self._gone()
        if self._picked:
            self.prompt_context.pass_on(self._behind)

    def fit(self) -> None:
        """Make room for the question and its choices."""
        super().fit()
        if not self.is_mounted:
            return
        columns = self.screen.size.width
        width = max(1, columns - (0 if columns < NARROW else 2))
        if self._narrows:  # a filter leaves the panel as it is, and the keys give way to choices
            fixed = 1 + height(self._title, width) + self._filter.display
            self.measure(0, fixed + min(LEAST_ROWS, len(self._choices)), 0)
        else:
            fixed, answers = 2 + height(self._title, width), self._list.lines(width)
            self.measure(least_width(self._hints()), fixed + answers, fixed + min(2, answers))
        self._keys.tell(self._hints(), width, narrow=columns < NARROW)

    def _hints(self) -> list[Hint]:
        if not self._shown:
            uses = "runs it" if self._narrowed_by.startswith(("/", "!")) else "uses the typed text"
            return [*([("enter", uses, 0)] if self._free else []), ("esc", "closes", 0)]
        typing: list[Hint] = [("letters", "filter", 2)] if self._narrows and self._list.numbered else []
        return [("\u2191\u2193 enter", "chooses", 1), *typing, ("esc", "closes", 0)]

    @property
    def field(self) -> LineInput | None:
        return self._filter if self._narrows else None

    def key_effect(self, key: str) -> KeyEffect:
        if key == "enter" or self._list.numbered_at(key) is not None:
            return "decides"
        return "nothing" if step_of(self, key) is None else "moves"

    def take(self, key: str) -> None:
        step, number = step_of(self, key), self._list.numbered_at(key)
        if step is not None:
            self._move(step)
        elif number is not None:
            self._finish(self._shown[number].value)
        else:
            self._choose("")

    def key_handled(self) -> None:
        self._keys.say(self.said)
        self._keys.wait(None if self._narrows else self.grace, self._list.pale)

    def _move(self, step: int) -> None:
        self._list.move(step)
        self._point()

    def _intercept(self, event: events.Key) -> bool:
        if self._picked:
            self._behind.append(event)
            return True
        self._narrow()
        if self.said:
            self.said = ""
            self._keys.say("")
        step, digit = step_of(self, event.key), event.character or ""
        number = self._list.numbered_at(digit)
        if event.key == "enter":  # not by a message, which letters that were typed behind it would overtake
            self._choose(self._filter.value.strip())
        elif step is not None:
            self._move(step)
        elif number is not None:
            self._finish(self._shown[number].value)
        elif self._list.numbered and len(digit) == 1 and digit.isdecimal():
            self.no_choice(digit)
            self._keys.say(self.said)
        elif self._quit is not None and not self._filter.value and self._ends(event.key):
            self._quit()
        elif self._prompted is not None and not self._filter.value and digit == "?":
            self._finish("/help")
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
        """Apply the filter unless it is already applied: a key may arrive before the change message."""
        if self._filter.value == self._narrowed_by:
            return
        self._narrowed_by = self._filter.value
        query = "".join(self._narrowed_by.split())  # names have no blanks, so words are parts of one name
        self._shown = self._offered(self._narrowed_by, query)
        self._filter.display = self._filter.display or bool(query)
        if self._filter.display and not self._filter.has_focus:
            self._filter.focus()
        self._show(0)
        self._point()

    def add(self, choices: Sequence[Choice]) -> None:
        """Add choices that became known later; the filter and the highlighted choice stay."""
        self.offer([*self._choices, *choices])

    def offer(self, choices: Sequence[Choice], *, top: bool = False) -> None:
        """Offer other choices; the filter stays, and the highlight if its value is still offered. With ``top``, a
        highlight at the top stays at the top."""
        stays = self._shown and not (top and self._list.selected == 0)
        pointed = self._shown[self._list.selected].value if stays else ""
        self._choices = list(choices)  # a new list, because the shown one may be the earlier one
        self._marked = any(choice.current for choice in choices)
        self._filter.placeholder = _placeholder(choices)
        self._made.clear()
        vars(self).pop("_named", None)
        self._found = ("", [])
        self._shown = self._offered(self._narrowed_by, "".join(self._narrowed_by.split()))
        self._show(next((n for n, choice in enumerate(self._shown) if choice.value == pointed), 0))

    def _offered(self, typed: str, query: str) -> list[Choice]:
        if self._prompted is None or not typed.startswith(("/", "!")):
            return self._matching(query.casefold()) if query else self._choices
        word = typed.split()[0].casefold()
        commands = self._prompted.commands() if typed.startswith("/") else ()
        matches = [command for command in commands if command.label.startswith(word)]
        return sorted(matches, key=lambda command: command.label != word)  # an exact name first

    @cached_property
    def _named(self) -> list[_Named]:
        return [_Named(choice, text, last_part(text)) for choice in self._choices if (text := choice.label.casefold())]

    def _matching(self, wanted: str) -> list[Choice]:
        before, pool = self._found
        if not before or not wanted.startswith(before):
            pool = self._named
        ranked = [
            (not _is_start(wanted, named.base), rank, index, named)
            for index, named in enumerate(pool)
            if (rank := score_folded(wanted, named.text, named.base, named.choice.label)) is not None
        ]
        self._found = (wanted, [named for *_, named in ranked])
        return [named.choice for *_, named in sorted(ranked, key=itemgetter(0, 1, 2))]

    def escape(self) -> None:
        typed = self._filter.value
        if not self._choices:  # words, not a filter
            self.prompt_context.stray(typed)
        elif self._prompted is not None and typed.strip() and not self._names(typed):
            self._give_prompt(typed.strip())
        if self._cancelled is not None:
            self._cancelled()
        super().escape()

    def _point(self) -> None:
        if self._preview is not None and self._shown:
            self._preview(self._shown[self._list.selected].value)

    def _choose(self, typed: str) -> None:
        if self._prompted is not None and typed.startswith(("/", "!")):
            whole = " " in typed or not self._shown
            self._finish(typed if whole else self._shown[self._list.selected].value)
            return
        if self._prompted is not None and typed and not self._names(typed):
            self._filter.value = ""
            self._narrow()
            self._give_prompt(typed)
            self.said = "That is not a model; your text is in the prompt."
            self._keys.say(self.said)
            return
        value = self._shown[self._list.selected].value if self._shown else typed if self._free else ""
        if value:
            self._finish(value)

    def _give_prompt(self, typed: str) -> None:
        """Add what was meant for the prompt to its text, as a line of its own."""
        draft = self.prompt_context.draft()
        self.prompt_context.stray(f"\n{typed}" if draft.strip() and not draft.endswith("\n") else typed)

    def _finish(self, value: str) -> None:
        if not self._picked:
            self._picked = True
            self.prompt_context.hold()
            self.post_message(self.Finished(self))
            runs = self._prompted is not None and value.startswith(("/", "!"))
            (self._prompted.run if self._prompted is not None and runs else self._pick)(value)

    def _names(self, typed: str) -> bool:
        """Whether typed text is meant for this list and not for the prompt before it: it resembles a name, or is part
        of the highlighted one."""
        if self._shown:
            label = self._shown[self._list.selected].label.lower()
            return all(word in label for word in typed.lower().split())
        return self._free and len(typed.split()) == 1 and all(typed.partition("/"))

    def _row(self, choice: Choice) -> Row:
        row = self._made.get(choice)
        if row is None:
            mark = ("\u25cf " if choice.current else "  ") if self._marked else ""
            row = self._made[choice] = Row(choice.label, "", choice.detail, mark)
        return row

    def _show(self, selected: int) -> None:
        self._list.show([self._row(choice) for choice in self._shown], selected)
        self._note.display = not self._shown and not self._free
        show_text(self._note, self._nothing)
        self.fit()
