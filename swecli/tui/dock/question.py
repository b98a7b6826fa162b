"""The model's questions to the user: one choice, several, or free text; several questions are tabs of one panel."""

from __future__ import annotations

from collections.abc import Callable

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.core.protocol.commands import Answer
from swecli.core.protocol.events import Question, QuestionAsked
from swecli.safe_text import safe_line, sanitise
from swecli.tui.dock.panel import NARROW, DockPanel, KeyEffect, height
from swecli.tui.line_input import LineInput, Row, Rows


class SecretPanel(DockPanel):
    """Calls ``done`` with what was typed or pasted; Esc leaves without."""

    def __init__(self, title: str, note: str, done: Callable[[str], None]) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._done = done
        self._line = LineInput(placeholder="paste it here (hidden)", password=True)

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        yield self._line
        yield Static(Content(self._note), classes="dock--note")

    @property
    def field(self) -> LineInput:
        return self._line

    def on_mount(self) -> None:
        self._line.focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        typed = event.value.strip()
        self._line.value = ""
        if typed:
            self.post_message(self.Finished(self))
            self._done(typed)


OTHER = "Something else…"

_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1}
_TURNS = {"left": -1, "right": 1}


class QuestionPanel(DockPanel):
    """Asks each question of a request, in turn or as the user turns to them, and posts all answers at once when there
    is one to each."""

    def __init__(self, request: QuestionAsked) -> None:
        super().__init__()
        self.request = request
        self._answers: dict[int, tuple[str, ...]] = {}
        self._kept: dict[int, tuple[set[int], str]] = {}
        """What was ticked and written of each question that was left."""
        self._at = 0
        self._checked: set[int] = set()
        self._done = False
        self._lead = ""
        self._rows = Rows(limit=10)
        self._text = LineInput(placeholder="Your answer", intercept=self._too_early)

    def compose(self) -> ComposeResult:
        yield Static("", classes="dock--title", id="title", markup=False)
        yield self._rows
        yield self._text
        yield Static("", classes="dock--note", id="keys", markup=False)

    def on_mount(self) -> None:
        self.appear()
        self._ask()

    def escape(self) -> None:
        """From the text field back to the options; otherwise dismiss."""
        if self._question.options and self._text.display:
            self._write(False)
        else:
            self._finish(())

    @property
    def _question(self) -> Question:
        return self.request.questions[self._at]

    def _ask(self) -> None:
        """Show the question at hand, with the answer that it has already."""
        question, count = self._question, len(self.request.questions)
        place = f" ({self._at + 1} of {count})" if count > 1 else ""
        header = f"{safe_line(question.header)}: " if question.header else ""
        self._lead = f"{self._tabs()}{header}{sanitise(question.text)}{place}"
        self.query_one("#title", Static).update(Content(self._lead))
        checked, self._text.value = self._kept.get(self._at, (set[int](), ""))
        self._text.cursor_position = len(self._text.value)
        self._checked = set(checked)
        self._show_rows(min(checked, default=0))
        self._write(not question.options or bool(self._text.value))

    def _tabs(self) -> str:
        """A line of all questions: which one is shown, and which have an answer."""
        questions = self.request.questions
        if len(questions) == 1:
            return ""
        names = [safe_line(question.header) or str(number + 1) for number, question in enumerate(questions)]
        marked = [f"{name} ✓" if number in self._answers else name for number, name in enumerate(names)]
        return " · ".join(f"[{name}]" if number == self._at else name for number, name in enumerate(marked)) + "\n"

    async def on_key(self, event: events.Key) -> None:
        if event.key == "tab" and len(self.request.questions) > 1:
            event.stop()
            event.prevent_default()
            self._turn(1)
        else:
            await super().on_key(event)

    def _turn(self, step: int) -> None:
        """To another question; what was begun of an answer is there when the user comes back."""
        self._keep()
        self._at = (self._at + step) % len(self.request.questions)
        self._ask()

    def _keep(self) -> None:
        self._kept[self._at] = (set(self._checked), self._text.value if self._text.display else "")

    def _show_rows(self, selected: int) -> None:
        question = self._question
        rows: list[Row] = []
        for number, option in enumerate(question.options):
            mark = ("[x] " if number in self._checked else "[ ] ") if question.multiple else f"{number + 1}. "
            rows.append(Row(option.label, option.description, mark))
        if rows:
            rows.append(Row(OTHER, "type your own answer"))
        self._rows.show(rows, selected)

    def _write(self, on: bool) -> None:
        self._rows.display = not on
        self._text.display = on
        (self._text if on else self).focus()
        if on:
            keys = "enter answers · esc goes back" if self._question.options else "enter answers · esc dismisses"
        elif self._question.multiple:
            keys = "space ticks · enter answers · esc dismisses"
        else:
            keys = "↑↓ or number · enter answers · esc dismisses"
        if len(self.request.questions) > 1:
            keys += " · tab another question"
        self.query_one("#keys", Static).update(Content(keys))
        self.fit()

    @property
    def field(self) -> LineInput | None:
        return self._text if self._text.display else None

    def fit(self) -> None:
        """The question, some of its answers and the keys have to be there; a long question is cut before them."""
        if not self.is_mounted:
            return
        width = max(1, self.screen.size.width - 2)
        answers = 1 if self._text.display else len(self._rows.rows)
        lead_height = height(self._lead, width)
        keys = height(str(self.query_one("#keys", Static).content), width)
        fixed = 1 + keys + min(answers, 3)
        rows = self.measure(12, fixed + lead_height, fixed + min(lead_height, 2))
        self.query_one("#title", Static).styles.max_height = max(1, rows - fixed)
        self.set_class(self.screen.size.width < NARROW, "-tight")

    def key_effect(self, key: str) -> KeyEffect:
        if key in ("enter", "space") or key.isdecimal():
            return "decides"
        return "moves" if key in _STEPS or (key in _TURNS and len(self.request.questions) > 1) else "nothing"

    def take(self, key: str) -> None:
        if key in _STEPS:
            self._rows.move(_STEPS[key])
        elif key in _TURNS:
            self._turn(_TURNS[key])
        else:
            self._choose(key)

    def _too_early(self, event: events.Key) -> bool:
        """Whether a key in the line was meant for the prompt, or comes before the question could be read. Where the
        user has chosen to write, none is."""
        if self._question.options or self.grace is None:
            return False
        if event.is_printable:
            return self.grace.in_sentence(event.character or "")
        return event.key == "enter" and (self.cramped or not self.grace.counts())

    def _choose(self, key: str) -> None:
        options, multiple = self._question.options, self._question.multiple
        index = int(key) - 1 if key.isdecimal() else self._rows.selected
        if not 0 <= index <= len(options):
            return
        if index == len(options) and key != "space":
            self._write(True)
        elif multiple and key != "enter":
            if index < len(options):
                self._checked ^= {index}
            self._show_rows(index)
        elif multiple:
            self._next(tuple(options[number].label for number in sorted(self._checked or {index})))
        elif key != "space":
            self._checked = {index}
            self._next((options[index].label,))

    @on(Input.Submitted)
    def _wrote(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if text:
            if not self._question.multiple:
                self._checked.clear()
            ticked = tuple(self._question.options[number].label for number in sorted(self._checked))
            self._next((*ticked, text))

    def _next(self, answer: tuple[str, ...]) -> None:
        self._keep()
        self._answers[self._at] = answer
        count = len(self.request.questions)
        behind = (*range(self._at + 1, count), *range(self._at))
        left = [number for number in behind if number not in self._answers]
        if left:
            self._at = left[0]
            self._ask()
        else:
            self._finish(tuple(self._answers[number] for number in range(count)))

    def _finish(self, answers: tuple[tuple[str, ...], ...]) -> None:
        if not self._done:
            self._done = True
            self.post_message(self.Decided(Answer(self.request.request, answers)))
