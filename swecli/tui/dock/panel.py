"""What all panels of the dock share: they take the keyboard, and they ignore keys that were meant for
what was there before."""

from __future__ import annotations

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
from textual.widgets import Static, TextArea

from swecli.safe_text import safe_line, sanitise
from swecli.tui.tool_words import words_for

if TYPE_CHECKING:
    from swecli.core.protocol.commands import Command
    from swecli.core.protocol.events import GrantSpan, PermissionRequested
    from swecli.tui.line_input import LineInput


Clock = Callable[[], float]
"""Monotonic seconds."""

GRACE = 0.3
"""Seconds after the appearance of a panel, and after an ignored key, in which keys decide nothing."""

TYPING = 1.0
"""Seconds after a letter that was meant for the prompt: whoever writes a sentence does not look at the panel yet."""


ANSWERS = frozenset((*"0123456789", "enter", "up", "down"))
"""Keys that answer a panel and are not written with, so that the prompt is not to get them either."""

ANSWER_PAUSE = 0.25
"""Seconds without another key after which a letter that approves is an answer and not the beginning of a sentence."""


class Grace:
    """Weighs the keys of one panel. A key that means something counts once ``GRACE`` has passed since the appearance
    and since the last key that was ignored. A letter that means nothing was meant for the prompt, and so are those
    before and after it that did not count: ``stray`` gets them all, in order.

    ``typed`` is when the user last typed at a draft that was not sent.
    """

    def __init__(
        self,
        clock: Clock = time.monotonic,
        typed: float | None = None,
        stray: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._clock = clock
        self._stray = stray
        now = clock()
        self._until = now + GRACE
        self._sentence = typed is not None and now - typed < TYPING
        self._pause = GRACE
        self._held = ""
        """Letters of which it is not known yet whether they begin a sentence."""
        self._held_at = now

    @property
    def left(self) -> float:
        """Seconds in which keys are still ignored; 0 when they count."""
        return max(0.0, self._until - self._clock())

    def ignores(self) -> bool:
        return self.left > 0

    def typed(self, text: str) -> None:
        """Letters came that mean nothing here."""
        held, self._held = self._held, ""
        recent = self._clock() - self._held_at < TYPING
        self._sentence, self._pause = True, TYPING
        self._prolong(TYPING)
        self._stray(held + text if recent else text)

    def counts(self, text: str = "", *, decides: bool = True) -> bool:
        """Whether a key that means something here counts. ``text`` is its letter if it is one; keys that are none and
        decide nothing count at once."""
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
        """Whether a letter goes on with the sentence that the user was typing when the panel appeared; it went there
        then."""
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

Hint = tuple[str, str, int]
"""A key, what it does, and how soon it is left out where there is no room: 0 is never."""


def title(request: PermissionRequested, place: tuple[int, int]) -> str:
    """The question; with several that wait, which of them it is."""
    question = words_for(request.tool).question or f"Allow {safe_line(request.tool)}?"
    target = f" {safe_line(request.title)}" if request.title and request.tool != "run_command" else ""
    return f"{question}{target}" + ("" if place[1] < 2 else f"  ({place[0]} of {place[1]})")


def facts(request: PermissionRequested) -> str:
    """Where it runs, what it makes, how large it is, on one line."""
    return " \u00b7 ".join(safe_line(fact) for fact in request.facts)


def danger(request: PermissionRequested) -> str:
    """What has to be seen before any answer, on one line."""
    return "; ".join(safe_line(text) for text in (request.danger, *request.warnings) if text)


def reasons(request: PermissionRequested, *, folded: bool) -> str:
    """Why it asks and what that rests on; folded, only the reason. What the line of danger says is not repeated."""
    from swecli.core.protocol.events import grounds  # not needed by the first frame

    lines = [str(sanitise(line)) for line in grounds(request)]
    if folded:
        first = lines[0] if lines else ""
        if request.danger and request.danger.startswith(first.rstrip(".")):
            first = ""
        lines = [first.removeprefix(f"{request.danger.rstrip('.')}. ")] if first else []
    if request.rule is not None and request.rule_note:
        lines.append(f"2 {request.rule_note[:1].lower()}{safe_line(request.rule_note[1:])}")
    return "\n".join(lines)


def keys(hints: Sequence[Hint], width: int, *, narrow: bool, early: bool = False) -> Content:
    """The keys on one line, as many of them as have room; all of them pale while it is too early for them."""
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
    """Cells that the keys take which are never left out."""
    return sum(cell_len(f"{key} {word}  ") for key, word, last in hints if not last) - 2


def height(text: str, width: int) -> int:
    """Lines that a text takes, a little generously."""
    return sum(1 + max(0, cell_len(line) - 1) // width for line in text.split("\n")) if text else 0


TOO_EARLY = "Ignored: you pressed that key before you could read this."
TO_PROMPT = "Typed into the prompt behind this question: "
"""The end of the draft follows."""
SHOWN_DRAFT = 30
"""Characters of the draft that are shown."""
SHOWN_SECONDS = 4.0
"""How long the draft is shown after the last letter."""


class KeyLine(Static):
    """Shows as many keys as have room, or what became of the last one."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id, classes="dock--keys")
        self._hints: Sequence[Hint] = ()
        self._width = 1
        self._narrow = False
        self._grace: Grace | None = None
        self._pale: Callable[[bool], object] = lambda early: None
        self._timer: Timer | None = None
        self._said = ""

    def say(self, text: str) -> None:
        """Show this in place of the keys; empty: the keys."""
        self._said = text
        self._draw()

    def tell(self, hints: Sequence[Hint], width: int, *, narrow: bool) -> None:
        self._hints, self._width, self._narrow = hints, width, narrow
        self._draw()

    def wait(self, grace: Grace | None, pale: Callable[[bool], object] = lambda early: None) -> None:
        """Be pale until the keys count; None: they count. ``pale`` gets it too."""
        self._grace, self._pale = grace, pale
        self._draw()
        if grace is not None and grace.left and self._timer is None:
            self._timer = self.set_timer(grace.left, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        if self._grace is not None and not self._grace.ignores():
            self._forget(TOO_EARLY)
            if self._said.startswith(TO_PROMPT):
                self.set_timer(SHOWN_SECONDS, partial(self._forget, self._said))
        self.wait(self._grace, self._pale)

    def _forget(self, said: str) -> None:
        if self._said == said:
            self.say("")

    def _draw(self) -> None:
        early = self._grace is not None and self._grace.ignores()
        self._pale(early)
        if self._said:
            self.update(Content(self._said).truncate(max(1, self._width), ellipsis=True).stylize("$warning"))
        else:
            self.update(keys(self._hints, self._width, narrow=self._narrow, early=early))


@dataclass
class ChoiceClicked(Message):
    """A choice of a panel was clicked; ``again`` when it was highlighted already by a click or a key."""

    again: bool


_NEW_LINE = frozenset(("ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"))


class CommandEditor(TextArea):
    """Enter posts ``Submitted``; Ctrl+J makes a new line."""

    DEFAULT_CSS = """
    CommandEditor {
        display: none; height: auto; max-height: 8; border: none; padding: 0; background: $panel;
        &:focus { border: none; background-tint: transparent; }
    }
    """

    last_key: events.Key | None = None
    """The newest key that came here."""

    @dataclass
    class Submitted(Message):
        """The user is done; ``text`` is the command."""

        text: str

    def __init__(self, command: str) -> None:
        super().__init__(visible_part(command), soft_wrap=True, show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.move_cursor(self.document.end)
        # At once: as a binding each would come after the letters that were typed behind it.
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
        elif event.key in _NEW_LINE:
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


def visible_part(command: str) -> str:
    """The command without characters that can't be seen as what they are: line ends other than LF, control and other
    hidden characters."""
    text = command.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in text if char in "\n\t" or sanitise(char) == char)


TOO_SMALL = "Enlarge the window: this question does not fit."

NARROW = 62
"""Columns below which panels use short forms."""

KeyEffect = Literal["decides", "moves", "letter", "nothing"]
"""What a key is to a panel: it decides something, or looks at something; a letter without meaning; or neither."""


class PanelContext(Struct, frozen=True):
    """What a panel knows of the prompt whose place it takes. ``typed`` is when (by ``clock``) the user last typed at a
    draft that is not sent; ``stray`` takes letters that were meant for it, ``pasted`` what was pasted."""

    clock: Clock = time.monotonic
    typed: Callable[[], float | None] = lambda: None
    whole: Callable[[DockPanel, bool], None] = lambda panel, on: None
    """Gives a panel the whole screen, or takes it back."""
    stray: Callable[[str], None] = lambda text: None
    pasted: Callable[[str], None] = lambda text: None
    draft: Callable[[], str] = lambda: ""
    """What is in the prompt."""
    above: Callable[[], int] = lambda: 0
    """Lines of the screen that other parts of the dock take above a panel."""


class DockPanel(Vertical, can_focus=True):
    """A panel in place of the prompt. It posts ``Finished`` and leaves closing to the dock, or ``Decided`` where the
    session has to know; the request is over then, and its panel with it."""

    prompt_context = PanelContext()
    cramped = False
    """Whether not even the whole screen has room for what is asked: nothing can be decided then."""
    grace: Grace | None = None
    """Weighs the keys of a panel that appeared without being asked for; made when it is on the screen."""
    said = ""
    """What became of the last key, where that has to be said."""
    last_key: events.Key | None = None
    """The newest key that came here."""
    _early: tuple[events.Key, ...] = ()
    """Keys that came before the panel was there."""
    _there = False
    _approving = ""
    """The key of a letter that approves unless the next one shows that it began a sentence."""
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
        """What the user has decided about a request of the session."""

        command: Command

    def available(self) -> int:
        """Lines that the panel may take: the screen without status bar, activity line, todos and two lines of the
        transcript."""
        return max(3, self.screen.size.height - 4 - self.prompt_context.above())

    def measure(self, columns: int, best: int, least: int) -> int:
        """Lines that the panel has. ``best`` are those that it should have, else it takes the whole screen; with less
        than ``least``, or than ``columns``, it is cramped."""
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

    def on_resize(self) -> None:
        self.fit()

    def fit(self) -> None:
        """Take no more of the screen than there is for it."""
        self.styles.max_height = self.available()
        self.set_class(self.screen.size.width < NARROW, "-tight")

    @property
    def field(self) -> LineInput | CommandEditor | None:
        """What is typed in now, if there is something."""
        return None

    def appear(self) -> None:
        """From now on the panel is to be seen."""
        self.grace = Grace(self.prompt_context.clock, self.prompt_context.typed(), self._stray)

    def _stray(self, text: str) -> None:
        self.prompt_context.stray(text)
        if text:
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
        """Do what a key does that came before the panel had the keyboard, and nothing for one that came from here."""
        if not self._there:
            self._early += (event,)
        elif event is not self.last_key:
            await self.on_key(event)

    async def on_key(self, event: events.Key) -> None:
        """Tab would take the keyboard away from the question; what is typed before the line has the keyboard is meant
        for the line. Letters that mean nothing are meant for the prompt."""
        self.last_key, field = event, self.field
        if event.key in ("tab", "shift+tab"):
            event.stop()
            event.prevent_default()
        elif field is not None:
            if event is not field.last_key:
                await field.take_key(event)
        else:
            self._handle_key(event)

    def _handle_key(self, event: events.Key) -> None:
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
        """The letter was an answer: nothing followed it, or a key that goes on with no sentence."""
        key = self._approving
        self.take_back()
        if key and not self.cramped:
            self.take(key)
            self.key_handled()

    def take_back(self) -> None:
        """A letter that approves and still waits is no answer any more."""
        self._approving = ""
        if self._answer_timer is not None:
            self._answer_timer.stop()
            self._answer_timer = None

    def _handle_digit(self, digit: str, weight: KeyEffect) -> None:
        """A digit is meant for the panel and never kept for the prompt, except in the middle of a sentence."""
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
        """What a key is to this panel while no line is typed in."""
        return "nothing"

    def approves(self, key: str) -> bool:
        """Whether a letter lets something happen, so that it is no answer where a sentence begins with it."""
        return False

    def no_choice(self, digit: str) -> None:
        """A digit came that chooses nothing here. It is meant for the panel, so the prompt does not get it."""
        self.said = f"{digit} is not a choice here."

    def take(self, key: str) -> None:
        """Do what a key means that counts."""

    def key_handled(self) -> None:
        """A key came that the panel knows, or a letter."""

    def on_choice_clicked(self, message: ChoiceClicked) -> None:
        """A click moves to a choice, a second one chooses it; too early it decides as little as a key."""
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
        """Where no line is typed in, a paste is meant for the prompt."""
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
        """Which of how many waiting requests this is: ``(2, 3)``, and those that ask for permission. Panels that don't
        show it ignore it."""

    def toggle_expanded(self) -> bool:
        """Ctrl+O: show more, or less again. Whether the panel can."""
        return False

    def escape(self) -> None:
        """Esc was pressed: one step back, or out."""
        self.post_message(self.Finished(self))
