"""The model's questions to the user: single choice, multiple choice, or free text; several questions are tabs of one
panel."""

from __future__ import annotations

from collections.abc import Callable

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from swecli.core.protocol.commands import Answer
from swecli.core.protocol.events import QuestionAsked
from swecli.core.protocol.request_events import Question
from swecli.safe_text import safe_line, sanitise
from swecli.tui.dock.choices import Choice, ChoiceList, step_of
from swecli.tui.dock.panel import NARROW, DockPanel, Hint, KeyEffect, KeyLine, height, least_width
from swecli.tui.line_input import LineInput


class SecretPanel(DockPanel):
    """Hidden input: calls ``done`` with what was typed or pasted; Esc cancels."""

    def __init__(self, title: str, note: str, done: Callable[[str], None]) -> None:
        super().__init__()
        self._title = title
        self._note = note
        self._done = done
        self._keys = KeyLine()
        self._line = LineInput(placeholder="paste it here (hidden)", password=True)

    def compose(self) -> ComposeResult:
        yield Static(Content(self._title), classes="dock--title")
        yield self._line
        yield Static(Content(self._note), classes="dock--note")
        yield self._keys

    @property
    def field(self) -> LineInput:
        return self._line

    def on_mount(self) -> None:
        self._line.focus()
        self.fit()

    def fit(self) -> None:
        super().fit()
        columns = self.screen.size.width
        self._keys.tell([("enter", "stores it", 0), ("esc", "closes", 0)], columns - 2, narrow=columns < NARROW)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        typed = event.value.strip()
        self._line.value = ""
        if typed:
            self.post_message(self.Finished(self))
            self._done(typed)


OTHER = "Something else…"
NOTHING_TICKED = "Tick an answer first (Space or its number), then press Enter."

_STEPS = {"k": -1, "j": 1}
_TURNS = {"left": -1, "right": 1}


class QuestionPanel(DockPanel):
    """Asks the questions of a request in any order and posts all answers together. A number, or Enter on a choice that
    the user moved to, answers."""

    def __init__(self, request: QuestionAsked) -> None:
        super().__init__()
        self.request = request
        self._answers: dict[int, tuple[str, ...]] = {}
        self._kept: dict[int, tuple[set[int], str]] = {}
        """Ticked options and text of each question that was left."""
        self._at = 0
        self._checked: set[int] = set()
        self._lead = ""
        self._list = ChoiceList(limit=10)
        self._keys = KeyLine()
        self._text = LineInput(placeholder="Your answer", intercept=self._too_early)

    def compose(self) -> ComposeResult:
        yield Static("", classes="dock--title", id="title", markup=False)
        yield self._list
        yield self._text
        yield self._keys

    def on_mount(self) -> None:
        self.appear()
        self._ask()

    def escape(self) -> None:
        """Return from the text field to the options; otherwise dismiss."""
        if self._question.options and self._text.display:
            self._write(False)
        else:
            self._finish(())

    @property
    def _question(self) -> Question:
        return self.request.questions[self._at]

    def _ask(self) -> None:
        """Show the current question with its answer so far."""
        question, count = self._question, len(self.request.questions)
        position = f" ({self._at + 1} of {count})" if count > 1 else ""
        header = f"{safe_line(question.header)}{position}: " if question.header else ""
        self._lead = f"{self._tabs()}{header}{sanitise(question.text)}{'' if header else position}"
        self._text.placeholder = f"Your answer; Enter {safe_line(question.blank)}" if question.blank else "Your answer"
        self.query_one("#title", Static).update(Content(self._lead))
        checked, self._text.value = self._kept.get(self._at, (set[int](), ""))
        self._text.cursor_position = len(self._text.value)
        self._checked = set(checked)
        self._show_rows(min(checked, default=0))
        self._list.moved = False
        self._write(not question.options or bool(self._text.value))

    def _tabs(self) -> str:
        """Line of all questions: which one is shown, and which are answered."""
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
        """Switch to another question, keeping the started answer."""
        self._keep()
        self._at = (self._at + step) % len(self.request.questions)
        self._ask()

    def _keep(self) -> None:
        self._kept[self._at] = (set(self._checked), self._text.value if self._text.display else "")

    def _show_rows(self, selected: int) -> None:
        question = self._question
        choices: list[Choice] = []
        for number, option in enumerate(question.options):
            mark = ("[x] " if number in self._checked else "[ ] ") if question.multiple else ""
            choices.append(Choice(option.label, "", option.description, mark))
        if choices and not question.closed:
            choices.append(Choice(OTHER, "", "type your own answer", "    " if question.multiple else ""))
        self._list.show(choices, selected)

    def _write(self, on: bool) -> None:
        self._list.display = not on
        self._text.display = on
        (self._text if on else self).focus()
        self.said = ""
        self.key_handled()
        self.fit()

    def key_handled(self) -> None:
        self._keys.say(self.said)
        asks = not self._text.display or not self._question.options
        self._keys.wait(self.grace if asks else None, self._list.pale)

    def _hints(self) -> list[Hint]:
        another: list[Hint] = [("tab", "another question", 2)] if len(self.request.questions) > 1 else []
        if self._text.display:
            return [("enter", "answer", 0), *another, ("esc", "back" if self._question.options else "dismiss", 1)]
        if self._question.multiple:
            return [("space", "tick", 0), ("enter", "answer", 0), *another, ("esc", "dismiss", 1)]
        return [("\u2191\u2193 enter", "choose", 3), *another, ("esc", "dismiss", 1)]

    @property
    def field(self) -> LineInput | None:
        return self._text if self._text.display else None

    def fit(self) -> None:
        """Fit question, some answers and keys; cut a long question before them."""
        if not self.is_mounted:
            return
        columns = self.screen.size.width
        width = max(1, columns - (0 if columns < NARROW else 2))
        answers = 1 if self._text.display else self._list.lines(width)
        lead_height = height(self._lead, width)
        fixed = 2 + min(answers, 3)
        rows = self.measure(max(12, least_width(self._hints())), fixed + lead_height, fixed + min(lead_height, 2))
        for title in self.query("#title"):  # gone before the panel when the program ends
            title.styles.max_height = max(1, rows - fixed)
        self._keys.tell(self._hints(), width, narrow=columns < NARROW)
        self.set_class(columns < NARROW, "-tight")

    def key_effect(self, key: str) -> KeyEffect:
        if key in ("enter", "space") or self._list.numbered_at(key) is not None:
            return "decides"
        turns = key in _TURNS and len(self.request.questions) > 1
        return "moves" if turns or self._step(key) is not None else "nothing"

    def _step(self, key: str) -> int | None:
        return _STEPS.get(key) or step_of(self, key)

    def take(self, key: str) -> None:
        if (step := self._step(key)) is not None:
            self._list.move(step)
        elif key in _TURNS:
            self._turn(_TURNS[key])
        else:
            self._choose(key)

    def _too_early(self, event: events.Key) -> bool:
        """Whether a key in the input was meant for the prompt, or came before the question was readable. Never after
        the user chose to write."""
        if self._question.options or self.grace is None:
            return False
        if event.is_printable:
            return self.grace.in_sentence(event.character or "")
        return event.key == "enter" and (self.cramped or not self.grace.counts())

    def _choose(self, key: str) -> None:
        options, multiple = self._question.options, self._question.multiple
        number = self._list.numbered_at(key)
        index = self._list.selected if number is None else number
        if key == "enter" and not self._list.moved and not self._checked:
            self.said = NOTHING_TICKED if multiple else self._list.how_to_choose()
        elif (
            index == len(options)
            and not self._question.closed
            and key != "space"
            and not (key == "enter" and not self._list.moved)
        ):
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

    @on(Input.Changed)
    def _writing(self) -> None:
        if self.said:
            self.said = ""
            self.key_handled()

    @on(Input.Submitted)
    def _wrote(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if not text and not self._question.blank:
            self.said = "Type an answer first; Esc leaves without one."
            self.key_handled()
        else:
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
            self.appear()  # the answering key may repeat
            self.key_handled()
        else:
            self._finish(tuple(self._answers[number] for number in range(count)))

    def _finish(self, answers: tuple[tuple[str, ...], ...]) -> None:
        if not self.answered:
            self.close_to_keys()
            self.post_message(self.Decided(Answer(self.request.request, answers)))
