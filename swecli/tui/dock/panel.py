"""Base of the dock's panels: they take the keyboard and ignore keys meant for the previous content."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from rich.cells import cell_len
from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line, sanitise, visible_part
from swecli.tool_words import words_for
from swecli.tui.compat import ShrinkingTextArea

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Command
    from swecli.core.protocol.events import PermissionRequested
    from swecli.core.protocol.request_events import GrantSpan
    from swecli.tui.line_input import LineInput


Clock = Callable[[], float]
"""Monotonic seconds."""

GRACE = 0.3
"""Seconds after a panel appears, and after an ignored key, in which keys decide nothing."""

TYPING = 1.0
"""The same after a letter meant for the prompt, because somebody writing a sentence isn't looking at the panel yet."""


ANSWERS = frozenset((*"0123456789", "enter", "up", "down"))
"""Keys that answer a panel and are not text, so they never go to the prompt."""

ANSWER_PAUSE = 0.25
"""Seconds without another key after which an approving letter counts as an answer rather than the start of a
sentence."""


class Grace:
    """Filters the keys of one panel. A key with a meaning counts once ``GRACE`` has passed since the panel appeared and
    since the last ignored key. A letter without one was meant for the prompt, like the ignored letters around it:
    ``stray`` gets them all, in order.

    ``typed`` is when the user last typed at an unsent draft.
    """

    def __init__(
        self,
        clock: Clock = time.monotonic,
        typed: float | None = None,
        stray: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._clock = clock
        self._stray = stray
        self._since = now = clock()
        self._until = now + GRACE
        self._sentence = typed is not None and now - typed < TYPING
        self._pause = GRACE
        self._held = ""
        """Letters that may begin a sentence."""
        self._held_at = now

    @property
    def left(self) -> float:
        """Seconds until keys count; 0 if they do."""
        return max(0.0, self._until - self._clock())

    @property
    def unread(self) -> bool:
        """Whether the panel appeared too recently to have been read."""
        return self._clock() - self._since < GRACE

    def ignores(self) -> bool:
        return self.left > 0

    def typed(self, text: str) -> None:
        """Handle letters without a meaning here."""
        pending, self._held = self._held, ""
        recent = self._clock() - self._held_at < TYPING
        self._sentence, self._pause = True, TYPING
        self._prolong(TYPING)
        self._stray(pending + text if recent else text)

    def counts(self, text: str = "", *, decides: bool = True) -> bool:
        """Whether a key with a meaning counts now. ``text`` is its letter, if any; keys that are no letter and decide
        nothing count at once."""
        if not self.ignores():
            self._sentence, self._pause = False, GRACE
            self._held, self._held_at = "" if decides else text.strip(), self._clock()
            return True
        if not text:
            if decides:
                self._prolong(GRACE)
            return not decides
        if self._sentence and self._pause == TYPING:
            self.typed(text)
            return False
        self._prolong(GRACE)
        if self._sentence:
            self._stray(text)
        else:
            self._held, self._held_at = self._held + text, self._clock()
        return False

    def in_sentence(self, text: str) -> bool:
        """Whether a letter continued the sentence that the user was typing when the panel appeared; if so, it went to
        the prompt."""
        if not self._sentence or not self.ignores():
            return False
        self.typed(text)
        return True

    def _prolong(self, seconds: float) -> None:
        self._until = max(self._until, self._clock() + seconds)


SPANS: tuple[tuple[GrantSpan, str], ...] = (
    ("session", "this session"),
    ("turn", "this turn"),
    ("week", "here for 7 days"),
    ("project", "here until revoked"),
)

_LOST = ("deletes ", "overwrites ", "discards ")
"""First words of a warning that counts what is lost."""

Hint = tuple[str, str, int]
"""A key, its effect, and its rank for being dropped if space is short: 0 is never."""


def title(request: PermissionRequested, place: tuple[int, int]) -> str:
    """The question, with the request's position if several wait."""
    question = words_for(request.tool).question or f"Allow {safe_line(request.tool)}?"
    target = f" {safe_line(request.title)}" if request.title and request.tool != "run_command" else ""
    return f"{question}{target}" + ("" if place[1] < 2 else f"  ({place[0]} of {place[1]})")


def facts(request: PermissionRequested) -> str:
    """Where it runs, what it creates and how large it is, on one line."""
    text = ""
    for fact in request.facts:
        text += f"{'' if not text else ' ' if text.endswith('.') else ' · '}{safe_line(fact)}"
    return text


def danger(request: PermissionRequested) -> str:
    """Warning that precedes any answer, on one line."""
    return "; ".join(safe_line(text) for text in (request.danger, *request.warnings) if text)


_SUBJECT = lazy_pattern(r"The (?:\S+ code|output) (?:would )?")


def brief_danger(danger: str, command: str) -> str:
    """The warning without its subject, which the command above it shows: where space is short, what it does matters. A
    warning that begins with what is lost stays as it is."""
    if danger.startswith(_LOST):
        return danger
    if subject := _SUBJECT.match(danger):
        return danger[subject.end() :]
    words, known = danger.split(" "), 0
    while known < len(words) - 1:
        quoted = re.escape(" ".join(words[: known + 1]))
        if re.search(rf"(?:^|[;&|(\n])\s*{quoted}(?:$|[\s;&|)])", command) is None:
            break
        known += 1
    known += known > 0 and words[known].endswith("\u2026")  # a long command is quoted only in part
    return " ".join(words[known:])


def reasons(request: PermissionRequested, *, folded: bool) -> str:
    """Why it asks, and the grounds; folded, only the reason. Omits what the danger line says."""
    from swecli.core.protocol.request_events import grounds, rule_words  # not needed by the first frame

    lines = [str(sanitise(line)) for line in grounds(request)]
    if lines and request.danger:
        repeats = request.danger.startswith(lines[0].rstrip("."))
        lines[0] = "" if repeats else lines[0].removeprefix(f"{request.danger.rstrip('.')}. ")
    lines = [line for line in (lines[:1] if folded else lines) if line]
    if request.rule is not None and request.rule_note:
        lines.append(safe_line(rule_words(request, "Choice 2")))
    return "\n".join(lines)


def keys(hints: Sequence[Hint], width: int, *, narrow: bool, early: bool = False) -> Content:
    """As many keys as fit on one line; dimmed while keys are still ignored."""
    gap = "  " if narrow else "   "
    left = list(hints)
    while sum(cell_len(f"{key} {word}{gap}") for key, word, _ in left) - len(gap) > width:
        first = max(left, key=lambda hint: hint[2])
        if not first[2]:
            break
        left.remove(first)
    strong = "$foreground-muted" if early else "bold $accent"
    return Content.assemble(
        *(part for key, word, _ in left for part in ((key, strong), (f" {word}{gap}", "$foreground-muted")))
    )


def least_width(hints: Sequence[Hint]) -> int:
    """Cells of the keys that are never dropped."""
    return sum(cell_len(f"{key} {word}  ") for key, word, last in hints if not last) - 2


_MANY_LINES = 200
"""Lines that no panel has room for: more are counted as if they broke within words."""


def height(text: str, width: int) -> int:
    """Lines of a text that breaks between words, as it is drawn."""
    lines = text.split("\n") if text else []
    least = sum(1 + max(0, cell_len(line) - 1) // width for line in lines)
    return Content(text).get_height({}, width) if len(lines) < least <= _MANY_LINES else least


TOO_EARLY = "Ignored: you pressed that key before you could read this."
TO_PROMPT = "Kept in the prompt: "
"""Precedes the end of the draft."""
SHOWN_DRAFT = 30
"""Characters of the draft to show."""
SHOWN_SECONDS = 4.0
"""Seconds after the last letter that the draft is shown."""


def show_text(widget: Static, text: str) -> None:
    """Show a text without styles. The screen is laid out again only for another text."""
    if widget.content != text:
        widget.update(Content(text))


class KeyLine(Static):
    """Shows as many keys as fit, or the result of the last one."""

    def __init__(self) -> None:
        super().__init__(id="keys", classes="dock--keys")
        self._hints: Sequence[Hint] = ()
        self._width = 1
        self._narrow = False
        self._grace: Grace | None = None
        self._pale: Callable[[bool], object] = lambda early: None
        self._timer: Timer | None = None
        self._shown_text = ""
        self._drawn: tuple[object, ...] = ()
        """What the drawn line was made of."""
        self._lines = 0

    def say(self, text: str) -> None:
        """Show a message in place of the keys; empty restores them."""
        self._shown_text = text
        self._draw()

    def tell(self, hints: Sequence[Hint], width: int, *, narrow: bool) -> None:
        self._hints, self._width, self._narrow = hints, width, narrow
        self._draw()

    def wait(self, grace: Grace | None, pale: Callable[[bool], object] = lambda early: None) -> None:
        """Dim the keys until they count; None: they count. Also passed to ``pale``."""
        self._grace, self._pale = grace, pale
        self._draw()
        if grace is not None and grace.left and self._timer is None:
            self._timer = self.set_timer(grace.left, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if self._grace is not None and not self._grace.ignores():
            self._forget(TOO_EARLY)
            if self._shown_text.startswith(TO_PROMPT):
                self.set_timer(SHOWN_SECONDS, partial(self._forget, self._shown_text))
        self.wait(self._grace, self._pale)

    def _forget(self, text: str) -> None:
        if self._shown_text == text:
            self.say("")

    def _draw(self) -> None:
        early = self._grace is not None and self._grace.ignores()
        self._pale(early)
        made_of = (self._shown_text, tuple(self._hints), self._width, self._narrow, early)
        if made_of == self._drawn:
            return
        self._drawn = made_of
        if self._shown_text:
            line = Content(self._shown_text).truncate(max(1, self._width), ellipsis=True).stylize("$warning")
        else:
            line = keys(self._hints, self._width, narrow=self._narrow, early=early)
        before, self._lines = self._lines, line.get_height({}, max(1, self._width))
        self.update(line, layout=self._lines != before)  # each key comes here: the screen is seldom laid out for one


@dataclass
class ChoiceClicked(Message):
    """A choice of a panel was clicked; ``again`` if it was already highlighted by a click or a key."""

    again: bool


class CommandEditor(ShrinkingTextArea):
    """Command input: Enter posts ``Submitted``; Ctrl+J, and Enter with a modifier, insert a newline."""

    DEFAULT_CSS = """
    CommandEditor {
        display: none; height: auto; max-height: 8; border: none; padding: 0; background: $panel;
        &:focus { border: none; background-tint: transparent; }
    }
    """

    last_key: events.Key | None = None
    """Newest key received here."""

    @dataclass
    class Submitted(Message):
        """The user finished; ``text`` is the command."""

        text: str

    def __init__(self, command: str) -> None:
        super().__init__(visible_part(command), soft_wrap=True, show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.move_cursor(self.document.end)
        # Handled here: as a binding each would run after the letters typed behind it.
        self._edits: dict[str, Callable[[], None]] = {
            "backspace": self.action_delete_left,
            "delete": self.action_delete_right,
            "left": self.action_cursor_left,
            "right": self.action_cursor_right,
            "up": self.action_cursor_up,
            "down": self.action_cursor_down,
            "home": self.action_cursor_line_start,
            "ctrl+a": self.action_cursor_line_start,
            "end": self.action_cursor_line_end,
            "ctrl+e": self.action_cursor_line_end,
            "alt+b": self.action_cursor_word_left,
            "alt+f": self.action_cursor_word_right,
            "ctrl+u": self.action_delete_to_start_of_line,
            "ctrl+k": self.action_delete_to_end_of_line,
            "ctrl+w": self.action_delete_word_left,
            "alt+d": self.action_delete_word_right,
        }

    async def _on_key(self, event: events.Key) -> None:
        self.last_key = event
        await self.take_key(event)

    async def take_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted(self.text))
        elif event.key == "ctrl+j" or event.key.endswith("+enter"):
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif (edit := self._edits.get(event.key)) is not None:
            event.stop()
            event.prevent_default()
            edit()
        else:
            await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.insert(visible_part(event.text))


TOO_SMALL = "Enlarge the window: this question does not fit."

NARROW = 62
"""Columns below which panels use short forms."""

KeyEffect = Literal["decides", "moves", "letter", "nothing"]
"""Effect of a key in a panel: it decides something, or only moves; a letter without meaning; or nothing."""


class PanelContext(Struct, frozen=True):
    """A panel's view of the prompt that it replaces. ``typed`` is when (by ``clock``) the user last typed at an unsent
    draft; ``stray`` gets letters meant for it, ``pasted`` pasted text."""

    clock: Clock = time.monotonic
    typed: Callable[[], float | None] = lambda: None
    whole: Callable[[DockPanel, bool], None] = lambda panel, on: None
    """Gives a panel the whole screen, or takes it away."""
    stray: Callable[[str], None] = lambda text: None
    pasted: Callable[[str], None] = lambda text: None
    draft: Callable[[], str] = lambda: ""
    """The prompt's text."""
    above: Callable[[], int] = lambda: 0
    """Lines above a panel that other parts of the dock take."""
    hold: Callable[[], None] = lambda: None
    """Keeps the keys that come while a panel leaves."""
    pass_on: Callable[[list[events.Key | events.Paste]], None] = lambda keys: None
    """Passes on those that still came to the panel, and then those that were kept."""


class DockPanel(Vertical, can_focus=True):
    """A panel in place of the prompt. It posts ``Finished`` and leaves closing to the dock, or ``Decided`` if the
    session must know, which ends the request and its panel."""

    prompt_context = PanelContext()
    cramped = False
    """Whether the question doesn't fit even the whole screen; nothing can be decided then."""
    grace: Grace | None = None
    """Filters the keys of a panel that appeared unasked; created when the panel is visible."""
    said = ""
    """Result of the last key, if it needs reporting."""
    last_key: events.Key | None = None
    """Newest key received here."""
    _early: tuple[events.Key, ...] = ()
    """Keys received before the panel was mounted."""
    answered = False
    """Whether the user has decided; the panel disappears once the session knows."""
    _there = False
    _typed_line: Literal["", "begun", "ended"] = ""
    """Whether letters went to the prompt, and Enter came behind them: what is typed next is a new line of it."""
    _approving = ""
    """Pending approving letter; cancelled if the next key shows that it began a sentence."""
    _answer_timer: Timer | None = None

    DEFAULT_CSS = """
    DockPanel { height: auto; border-top: solid $accent; padding: 0 1; }
    DockPanel.-tight { padding: 0; }
    DockPanel .dock--title { height: auto; color: $accent; text-style: bold; }
    DockPanel .dock--note { height: auto; color: $foreground-muted; text-style: $muted-style; }
    DockPanel .dock--keys { height: auto; }
    DockPanel .dock--small { dock: top; width: 100%; height: 100%; color: $warning; }
    DockPanel Input { height: 1; border: none; padding: 0; background: $panel; }
    DockPanel Input:focus { border: none; background-tint: transparent; }
    DockPanel Input > .input--placeholder { color: $foreground-muted; text-style: $muted-style; }
    DockPanel Input > .input--selection { text-style: $selection-style; }
    """

    @dataclass
    class Finished(Message):
        panel: DockPanel

    @dataclass
    class Decided(Message):
        """The user's decision about a request of the session."""

        command: Command

    def available(self) -> int:
        """Lines for the panel: the screen without status bar, activity line, todos and two lines of the transcript."""
        return max(3, self.screen.size.height - 4 - self.prompt_context.above())

    def measure(self, columns: int, best: int, least: int) -> int:
        """Height of the panel. Below ``best`` lines it takes the whole screen; below ``least`` lines or ``columns``
        columns it is cramped."""
        size, usual = self.screen.size, self.available()
        whole = best > usual
        self.prompt_context.whole(self, whole)
        self.cramped = columns > size.width or least > size.height
        notice = self.query(".dock--small")
        if self.cramped and not notice:
            self.mount(Static(TOO_SMALL, classes="dock--small", markup=False))
        elif notice and not self.cramped:
            notice.remove()
        self.styles.height = "auto" if not self.cramped else max(2, size.height)
        rows = max(usual, size.height) if whole else usual
        self.styles.max_height = rows
        return rows

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Keep all styles as they are: no rule depends on the focus of a panel, and Textual would apply every rule anew
        to each part of it."""

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Limit the height to the available lines."""
        self.styles.max_height = self.available()
        self.set_class(self.screen.size.width < NARROW, "-tight")

    @property
    def field(self) -> LineInput | CommandEditor | None:
        """The active input, if any."""
        return None

    @property
    def unread(self) -> bool:
        return self.grace is None or self.grace.unread

    def appear(self) -> None:
        """Mark the panel as visible from now on. It is fitted when it is mounted, whether or not its size changes."""
        self.grace = Grace(self.prompt_context.clock, self.prompt_context.typed(), self._stray)
        self.call_later(self.fit)

    def close_to_keys(self) -> None:
        """The user has decided: letters belong to the prompt from now on, other keys to nothing."""
        self.answered = True
        self.focus()

    def _stray(self, text: str) -> None:
        self.prompt_context.stray(f"\n{text}" if text and self._typed_line == "ended" else text)
        if text:
            self._typed_line = "begun"
            self._say_draft()

    def _say_draft(self) -> None:
        draft = safe_line(self.prompt_context.draft())
        self.said = TO_PROMPT + (draft if len(draft) <= SHOWN_DRAFT else f"…{draft[-SHOWN_DRAFT:]}")

    def _on_mount(self, event: events.Mount) -> None:
        self._there = True
        if self._early:
            self.call_later(self._catch_up)

    async def _catch_up(self) -> None:
        for event in self._early:
            await self.on_key(event)

    async def take_key(self, event: events.Key) -> None:
        """Handle a key from before the panel had the keyboard; ignore one that bubbled up from it."""
        if not self._there:
            self._early += (event,)
        elif event is not self.last_key:
            await self.on_key(event)

    async def on_key(self, event: events.Key) -> None:
        """Keep Tab from moving the focus out of the question; pass keys typed before the input had the focus to it, and
        letters without a meaning to the prompt."""
        self.last_key, field = event, self.field
        if event.key in ("tab", "shift+tab"):
            event.stop()
            event.prevent_default()
        elif self.answered:
            event.stop()
            event.prevent_default()
            self._pass_on((event.character or "") if event.is_printable else "")
        elif field is not None:
            if event is not field.last_key:
                await field.take_key(event)
        else:
            self._handle_key(event)

    def _pass_on(self, letter: str) -> None:
        """Give the prompt what is typed behind an answer, but no digit that may repeat it."""
        if self.grace is None or not letter:
            self.prompt_context.stray(letter)
        elif not letter.isdigit():
            self.grace.typed(letter)
        else:
            self.grace.in_sentence(letter)

    def _handle_key(self, event: events.Key) -> None:
        if self._typed_line and event.key in ("enter", "ctrl+j"):
            self._typed_line = "ended"
        weight, letter = self.key_effect(event.key), (event.character or "") if event.is_printable else ""
        if weight == "decides" and self.cramped:
            event.stop()
            event.prevent_default()
            return
        if weight == "nothing" and letter:
            weight = "letter"
        if weight == "nothing":
            return
        event.stop()
        event.prevent_default()
        self.said = ""
        waits = bool(letter) and self.approves(event.key)
        if self.grace is None:
            self.prompt_context.stray(letter)
        elif self._approving and not letter:
            self._approve()
        elif self._approving:
            self.take_back()
            self.grace.typed(letter)
        elif letter.isdigit():
            self._handle_digit(letter, weight)
        elif weight == "letter":
            self.grace.typed(letter)
        elif self.grace.counts(letter, decides=weight == "decides" and not waits):
            if waits:
                self._approving, self._answer_timer = event.key, self.set_timer(ANSWER_PAUSE, self._approve)
            else:
                self.take(event.key)
        elif not self.said:
            self.said = TOO_EARLY
        self.key_handled()

    def _approve(self) -> None:
        """Accept the pending letter: nothing followed it, or only a key that continues no sentence."""
        key = self._approving
        self.take_back()
        if key and not self.cramped:
            self.take(key)
            self.key_handled()

    def take_back(self) -> None:
        """Drop the pending approving letter."""
        self._approving = ""
        if self._answer_timer is not None:
            self._answer_timer.stop()
            self._answer_timer = None

    def _handle_digit(self, digit: str, weight: KeyEffect) -> None:
        """Handle a digit: it belongs to the panel, never to the prompt, except within a sentence."""
        assert self.grace is not None
        if self.grace.in_sentence(digit):
            return
        if weight == "letter":
            self.no_choice(digit)
        elif self.grace.counts(decides=weight == "decides"):
            self.take(digit)
        else:
            self.said = TOO_EARLY

    def key_effect(self, key: str) -> KeyEffect:
        """Effect of a key while no input is active."""
        return "nothing"

    def approves(self, key: str) -> bool:
        """Whether a letter approves something; such a letter is no answer if it starts a sentence."""
        return False

    def no_choice(self, digit: str) -> None:
        """Handle a digit without a choice. It belongs to the panel, so the prompt does not get it."""
        self.said = f"{digit} is not a choice here."

    def take(self, key: str) -> None:
        """Act on a key that counts."""

    def key_handled(self) -> None:
        """Hook: the panel handled a known key or a letter."""

    def on_choice_clicked(self, message: ChoiceClicked) -> None:
        """A click highlights a choice, a second one chooses it; early clicks are ignored like early keys."""
        message.stop()
        self.take_back()
        self.said = ""
        if message.again and not self.cramped:
            if self.field is None and self.grace is not None and not self.grace.counts():
                self.said = TOO_EARLY
            else:
                self.take("enter")
        self.key_handled()

    def on_paste(self, event: events.Paste) -> None:
        """Pass a paste to the prompt unless an input is active."""
        event.stop()
        event.prevent_default()
        field = self.field
        if field is not None:
            if not field.has_focus:
                field.post_message(events.Paste(event.text))
            return
        self.take_back()
        if self.grace is not None:
            self.grace.typed("")
        self.prompt_context.pasted(event.text)
        self._say_draft()
        self.key_handled()

    def show_place(self, place: tuple[int, int], waiting: Sequence[PermissionRequested] = ()) -> None:
        """Show this request's place among the waiting ones, as ``(2, 3)``, given those that ask for permission. Panels
        may ignore it."""

    def toggle_expanded(self) -> bool:
        """Handle Ctrl+O: toggle details. Returns whether the panel can."""
        return False

    def escape(self) -> None:
        """Handle Esc: one step back, or out."""
        self.post_message(self.Finished(self))
