"""The prompt's editor: a text area with shell-like line editing."""

from __future__ import annotations

import asyncio
import os
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.binding import Binding
from textual.message import Message

from swecli.figures import cut, plural
from swecli.lazy_pattern import lazy_pattern
from swecli.tui.compat import ShrinkingTextArea
from swecli.tui.keymap import Keymap
from swecli.tui.prompt import graphemes
from swecli.tui.prompt.attachments import Attachments, image_paths, load, loaded_from, takes_time

if TYPE_CHECKING:
    from textual.document._document import EditResult, Location
    from textual.timer import Timer
    from textual.widget import Widget

    from swecli.core.protocol.messages import ImagePart


def word_left(text: str, column: int) -> int:
    """Column of the start of the word before ``column``, after skipping blanks: letters and digits, or a run of other
    characters."""
    position = column
    while position > 0 and text[position - 1].isspace():
        position -= 1
    if position == 0:
        return 0
    word = _is_word(text[position - 1])
    while position > 0 and not text[position - 1].isspace() and _is_word(text[position - 1]) == word:
        position -= 1
    return position


def word_right(text: str, column: int) -> int:
    """Column of the end of the word after ``column``."""
    position = column
    while position < len(text) and text[position].isspace():
        position += 1
    if position == len(text):
        return position
    word = _is_word(text[position])
    while position < len(text) and not text[position].isspace() and _is_word(text[position]) == word:
        position += 1
    return position


def blank_left(text: str, column: int) -> int:
    """Start column of what Ctrl+W removes: the blanks and non-blanks before ``column``."""
    position = column
    while position > 0 and text[position - 1].isspace():
        position -= 1
    while position > 0 and not text[position - 1].isspace():
        position -= 1
    return position


def continues(line: str, column: int) -> bool:
    """Whether Enter inserts a newline: an odd number of backslashes ends the line at the cursor."""
    before = line[:column]
    slashes = len(before) - len(before.rstrip("\\"))
    return column == len(line) and slashes % 2 == 1


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


KILLS = frozenset(("kill_right", "kill_left", "kill_blank_left", "kill_word_right", "kill_word_left"))
"""Actions whose consecutive cuts are joined."""

YANKS = frozenset(("yank", "yank_older"))
"""Actions after which the pasted cut can be replaced by an older one."""

KEEPS_RING = KILLS | YANKS

MOST = 30
"""Number of cuts kept."""


class KillRing:
    """Cutting and pasting at the editor's cursor."""

    def __init__(self, editor: PromptEditor) -> None:
        self._editor = editor
        self._cuts: list[str] = []
        """Oldest first."""
        self._running = False
        self._put: tuple[Location, Location] | None = None
        """Span of the cut pasted just now."""
        self._left: tuple[str, Location] = "", (0, 0)
        """Text and cursor after the newest cut or paste."""
        self._back = 0

    def keep(self, text: str) -> None:
        """Add text that was cut elsewhere."""
        self._cuts = [*self._cuts[1 - MOST :], text]

    def rest(self) -> None:
        """End the current cut, because something else was done."""
        self._running = False
        self._put = None

    def _now(self) -> tuple[str, Location]:
        return self._editor.text, self._editor.cursor_location

    def _rest_if_changed(self) -> None:
        """End it too if history, mouse, a paste or anything else has changed text or cursor since."""
        if self._now() != self._left:
            self.rest()

    def yank(self) -> None:
        self._running = False
        self._back = 0
        if self._cuts:
            self._insert(*self._editor.selection)

    def yank_older(self) -> None:
        """Right after a paste: replace it by the next older cut, wrapping to the newest."""
        self._rest_if_changed()
        if self._put is not None:
            self._back = (self._back + 1) % len(self._cuts)
            self._insert(*self._put)

    def _insert(self, start: Location, end: Location) -> None:
        text = self._cuts[-1 - self._back]
        start, end = self._editor.outside(start, end)
        result = self._editor.replace(text, start, end, maintain_selection_offset=False)
        self._put = (start, result.end_location)
        self._left = self._now()

    def right(self) -> None:
        """Cut to the end of the line, or the line break itself."""
        line, column = self._editor.here()
        row = self._editor.cursor_location[0]
        end = (row, len(line)) if column < len(line) else (row + 1, 0)
        if end[0] < self._editor.document.line_count:
            self._cut((row, column), end, forward=True)

    def left(self) -> None:
        self._cut_back(lambda line, column: 0)

    def blank_left(self) -> None:
        """Cut back to the blank before the word."""
        self._cut_back(blank_left)

    def word_left(self) -> None:
        self._cut_back(word_left)

    def word_right(self) -> None:
        row, column = self._editor.cursor_location
        self._cut((row, column), (row, word_right(*self._editor.here())), forward=True)

    def _cut_back(self, start: Callable[[str, int], int]) -> None:
        row, column = self._editor.cursor_location
        self._cut((row, start(*self._editor.here())), (row, column), forward=False)

    def _cut(self, start: tuple[int, int], end: tuple[int, int], *, forward: bool) -> None:
        """Cut a span, and all of the placeholders that it touches."""
        start, end = self._editor.whole(start, end)
        text = self._editor.get_text_range(start, end)
        if not text:
            return
        self._rest_if_changed()
        if not self._running:
            self.keep(text)
        else:
            self._cuts[-1] = self._cuts[-1] + text if forward else text + self._cuts[-1]
        self._running = True
        self._put = None
        self._editor.delete(start, end, maintain_selection_offset=False)
        self._left = self._now()


FOLD_LINES = 8
FOLD_CHARACTERS = 1000
"""Pastes with more lines or characters are folded."""
BACK_LINES = 200
BACK_CHARACTERS = 10_000
"""Text returned to the prompt, for instance from the history, is only folded above these limits, because it may be
edited."""
MOST_HELD = 64_000_000
"""Characters of all pastes kept in memory."""
MOST_SAVED = 8_000_000
"""Largest paste, in characters, that is saved with the draft."""

_PLACEHOLDER = lazy_pattern(r"\[Pasted text #(\d+): [^\]\n]*\]")


class Pastes:
    """Folded pastes of the current draft."""

    def __init__(self, draft: Callable[[], str] = lambda: "") -> None:
        """``draft`` returns the text with the placeholders."""
        self._draft = draft
        self._texts: dict[int, str] = {}
        self._sent: tuple[str, ...] = ()
        """Pastes of the messages sent before, newest first, at most ``MOST_SAVED`` characters."""
        self._count = 0
        self.weigh: Callable[[str, int], str] = lambda text, images: ""
        """Share of the window that a text and a number of images take, for display."""

    def fold(self, text: str) -> str:
        """Editor text for pasted ``text``: itself, or a placeholder if it is large or has characters that would disturb
        the screen."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if not _large(text, FOLD_LINES, FOLD_CHARACTERS):
            return text
        self._make_room(len(text))
        self._count += 1
        self._texts[self._count] = text
        count = text.count("\n") + (not text.endswith("\n"))
        weight = self.weigh(text, 0)
        size = f"{_size(len(text))}, {weight}" if weight else _size(len(text))
        return f"[Pasted text #{self._count}: {plural(count, 'line')}, {size}]"

    def fold_back(self, text: str) -> str:
        """Editor text for a returned one: itself, or if it is very large, with placeholders for the pastes that it was
        sent with; one for all of it if those are not known, or leave too much."""
        if not _large(text, BACK_LINES, BACK_CHARACTERS):
            return text
        folded = text
        for pasted in sorted(self._sent, key=len, reverse=True):
            if pasted in folded:
                folded = folded.replace(pasted, self.fold(pasted), 1)
        rest = _PLACEHOLDER.sub("", folded)
        return self.fold(text) if _large(rest, BACK_LINES, BACK_CHARACTERS) else folded

    def refusal(self, text: str) -> str:
        """Why a paste can't be kept with those of the draft; empty if it can."""
        used = sum(len(self._texts[number]) for number in self._numbers())
        if used + len(text) <= MOST_HELD:
            return ""
        return f"Not pasted: {_size(len(text))} is too large for the prompt; save it as a file and type its path"

    def _numbers(self) -> set[int]:
        """Numbers with a placeholder in the draft."""
        numbers = {int(match.group(1)) for match in _PLACEHOLDER.finditer(self._draft())}
        return numbers & self._texts.keys()

    def _make_room(self, size: int) -> None:
        """Discard the oldest pastes that are no longer in the draft."""
        used, total = self._numbers(), sum(map(len, self._texts.values()))
        for number in [number for number in self._texts if number not in used]:
            if total + size <= MOST_HELD:
                break
            total -= len(self._texts.pop(number))

    def saved(self) -> dict[int, str]:
        """Pastes of the draft that are saved with it, by number."""
        return {number: self._texts[number] for number in self._numbers() if len(self._texts[number]) <= MOST_SAVED}

    def adopt(self, draft: str, pastes: Mapping[int, str]) -> str:
        """Take over another process's draft. Returns its text with new paste numbers."""

        def renumbered(match: re.Match[str]) -> str:
            text = pastes.get(int(match.group(1)))
            return match.group() if text is None else self.fold(text)

        return _PLACEHOLDER.sub(renumbered, draft)

    def used(self, text: str) -> tuple[tuple[str, str], ...]:
        """The text's placeholders with their pastes."""
        pairs = ((match.group(), self._texts.get(int(match.group(1)))) for match in _PLACEHOLDER.finditer(text))
        return tuple((placeholder, pasted) for placeholder, pasted in pairs if pasted is not None)

    def expand(self, text: str) -> str:
        """The text with every placeholder of this draft replaced by its paste."""
        if not self._texts:
            return text
        return _PLACEHOLDER.sub(lambda match: self._texts.get(int(match.group(1)), match.group()), text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Spans of this draft's placeholders."""
        return [match.span() for match in _PLACEHOLDER.finditer(text) if int(match.group(1)) in self._texts]

    def sent(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Take the draft for sending: its full text, and the placeholders with their pastes. Numbering restarts."""
        full, pastes = (self.expand(text), self.used(text)) if self._texts else (text, ())
        recent, total = [pasted for _, pasted in reversed(pastes)], 0
        recent += [pasted for pasted in self._sent if pasted not in recent]
        self._sent = tuple(pasted for pasted in recent if (total := total + len(pasted)) <= MOST_SAVED)
        self._texts.clear()
        self._count = 0
        return full, pastes


def _large(text: str, lines: int, characters: int) -> bool:
    """Whether a text is above these limits, or has characters that would disturb the screen."""
    return len(text) > characters or text.count("\n") >= lines or _hidden(text)


def _hidden(text: str) -> bool:
    return any(unicodedata.category(char) in ("Cc", "Cf", "Cs") and char not in "\n\t\u200c\u200d" for char in text)


def _size(characters: int) -> str:
    if characters < 1000:
        return f"{characters} characters"
    return f"{characters / 1000:.0f}K" if characters < 1_000_000 else f"{characters / 1_000_000:.1f}M"


_OTHER_KEYS = {"shift+\r": "shift+enter", "ctrl+\r": "ctrl+enter", "alt+\r": "alt+enter"}
"""Keys from terminals that report modifiers in the older form."""


_OWN = {
    key: binding.action
    for binding in ShrinkingTextArea.BINDINGS
    if isinstance(binding, Binding)
    for key in binding.key.split(",")
}
"""Actions of Textual's editor, by key."""


COMMANDS = ("/", "!", "#")
"""What a line begins with that is no message."""

ASIDE = 40
"""Characters of a text put aside that are shown."""

OPENING = 0.25
"""Seconds that keys wait for what a slash command opens, which then gets them, or for a list to be gone."""


class PromptEditor(ShrinkingTextArea):
    """Multi-line text input. ``intercept`` sees each event first and returns whether it handled it."""

    DEFAULT_CSS = """
    PromptEditor {
        height: auto; max-height: 12; min-height: 1; width: 1fr;
        border: none; padding: 0; background: transparent;
        scrollbar-size-vertical: 1;
    }
    PromptEditor:focus { border: none; }
    PromptEditor .text-area--cursor-line { background: transparent; }
    PromptEditor .text-area--placeholder { color: $foreground-muted; text-style: $muted-style; }
    PromptEditor .text-area--selection { text-style: $selection-style; }
    """

    @dataclass
    class Submitted(Message):
        """The user sent ``text``, with ``typed`` as the part that was not folded, and ``images``. ``queue``: send it
        after the running turn."""

        text: str
        typed: str
        images: tuple[ImagePart, ...] = ()
        queue: bool = False
        pastes: tuple[tuple[str, str], ...] = ()
        """Placeholders of ``typed`` with their pastes."""

    def __init__(self, *, id: str | None = None, keymap: Keymap | None = None) -> None:
        super().__init__(id=id, soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=True)
        self.cursor_blink = False
        self.highlight_cursor_line = False
        self.match_cursor_bracket = False
        self.pastes = Pastes(lambda: self.text)
        self.attachments = Attachments()
        self.blind: Callable[[], str] = lambda: ""
        """Why images can't be attached; empty if they can."""
        self.complain: Callable[[str], None] = lambda text: None
        self.intercept: Callable[[events.Key], bool] = lambda event: False
        self.intercept_paste: Callable[[str], bool] = lambda text: False
        """Sees each paste first and returns whether it handled it."""
        self.taken: Callable[[], None] | None = None
        """Called when the draft was taken and the next one begins."""
        self._held: list[events.Key | events.Paste] | None = None
        """What came behind a slash command that has just been sent, or behind images that are being scaled down; None
        if nothing waits."""
        self.kept: list[events.Key | events.Paste] | None = None
        """What the app has not yet given to any widget meanwhile."""
        self._before: PromptEditor.Submitted | None = None
        """That command."""
        self._opens = False
        """Whether it has run and opens something."""
        self._longest: Timer | None = None
        self._returned = ""
        """Text that came back by itself and that no key has touched: what is typed next does not belong to it."""
        self._ring = KillRing(self)
        self._keymap = keymap or Keymap()
        self._edits: dict[str, Callable[[], object]] = {
            "newline": lambda: self._replace_via_keyboard("\n", *self.selection),
            "send": self._enter,
            "kill_right": self._ring.right,
            "kill_left": self._ring.left,
            "kill_blank_left": self._ring.blank_left,
            "kill_word_left": self._ring.word_left,
            "kill_word_right": self._ring.word_right,
            "yank": self._ring.yank,
            "yank_older": self._ring.yank_older,
            "undo": self.action_undo,
            "paste": lambda: self.run_worker(self._from_clipboard(), group="clipboard", exclusive=True),
            "line_start": self.action_cursor_line_start,
            "line_end": self.action_cursor_line_end,
            "word_left": lambda: self._move(word_left),
            "word_right": lambda: self._move(word_right),
        }

    @property
    def message(self) -> str:
        """The text to send: pastes in full."""
        return self.pastes.expand(self.text)

    def weigh_with(self, weigh: Callable[[str, int], str]) -> None:
        """Set the function that weighs placeholders against the window."""
        self.pastes.weigh = self.attachments.weigh = weigh

    def put(self, text: str) -> None:
        """Replace the text, folding a very large one. Undo restores the old text."""
        self.retype(self.folded_back(text))

    def retype(self, typed: str) -> None:
        """Replace the text with an earlier typed one and its placeholders. Undo restores the old text."""
        self.replace(typed, (0, 0), self.document.end, maintain_selection_offset=False)
        self.move_cursor(self.document.end)

    def folded_back(self, text: str) -> str:
        """Editor text for a returned text, folded if very large."""
        return self.pastes.fold_back(text) if text else ""

    def add(self, text: str) -> None:
        """Insert text at the cursor, folded if it is large."""
        self._keep_apart(text)
        if refusal := self.pastes.refusal(text):
            self.complain(refusal)
            return
        if len(text) > MOST_SAVED:
            self.complain(f"Pasted {_size(len(text))}: too large to save with the draft, so keep its source")
        result = self.replace(self.pastes.fold(text), *self.outside(*self.selection), maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def submit(self, *, queue: bool = False) -> None:
        """Send the current text; later keys belong to the next one."""
        typed = self.text
        if typed.strip():
            text, pastes = self.pastes.sent(typed)
            self.clear()
            self.history.clear()
            if self.taken is not None:
                self.taken()
            images = self.attachments.sent(text) if self.attachments.images else ()
            message = self.Submitted(text, typed, images, queue, pastes)
            self.post_message(message)
            if text.lstrip().startswith("/") and self._held is None:
                self._held, self._before, self._opens = [], message, False
                self.hold()

    def let_go(self, message: Submitted, *, opens: bool = False) -> None:
        """A slash command has run. What came behind it is typed here, or goes to what the command ``opens`` as soon as
        that has the focus."""
        if message is self._before:
            self._opens = opens
            if not (opens and self.has_focus):
                self.call_later(self._release)

    def on_blur(self) -> None:
        if self._before is not None:
            self._release()

    def hold(self) -> None:
        """Let the app keep what comes from now on, until it is clear which widget gets it."""
        if self.kept is None:
            self.kept = []
            self._longest = self.set_timer(OPENING, self._release)

    def _release(self) -> None:
        """All keys that were on their way to the editor have come."""
        self._before = None
        if self._held is None:
            self.pass_on([])
        else:
            self.pass_on(self._held, None if self._opens else self)

    def pass_on(self, held: list[events.Key | events.Paste], target: Widget | None = None) -> None:
        """Give ``target``, or else what has the focus then, what was held, and the app what it has kept. It is the
        app's own turn: all that is on its way to the app comes before it, so that nothing overtakes anything. What is
        given leaves ``held``: a command that opens something releases it by its end and by the focus that it takes."""
        if self._longest is not None:
            self._longest.stop()
            self._longest = None

        async def give() -> None:
            if held is self._held:
                self._held = None
            waiting, self.kept = self.kept or (), None
            receiver = target or self.app.focused or self.screen
            given = held.copy()
            held.clear()
            for event in given:
                if isinstance(event, events.Key):
                    receiver._forward_event(events.Key(event.key, event.character))
                else:
                    receiver._forward_event(events.Paste(event.text))
            for event in waiting:
                await self.app.on_event(event)

        self.app.call_later(give)

    def restore(self, typed: str, pastes: Sequence[tuple[str, str]]) -> None:
        """Put a returned message with its pastes before the text typed since. Undo begins there."""
        done, rest = "", typed
        for placeholder, text in pastes:  # in their order: a new placeholder may look like a later one
            before, separator, after = rest.partition(placeholder)
            if separator:
                done, rest = done + before + self.pastes.fold(text), after
        typed = done + rest
        self.replace(f"{typed}\n" if self.text else typed, (0, 0), (0, 0), maintain_selection_offset=False)
        self.move_cursor(self.document.end)
        self.history.clear()

    def give_back(self, typed: str, *, wanted: bool = False) -> None:
        """Replace the text with a returned message and what was typed since. Undo does not take it away again: nothing
        would restore it. Unless the user ``wanted`` it, what is typed next does not belong to it."""
        before = self.text
        self.retype(typed)
        self.history.clear()
        self._returned = "" if wanted or before else self.text

    def put_aside(self, text: str) -> None:
        """Keep text for the key that pastes what was cut, and say so."""
        self._ring.keep(text)
        first = next(iter(text.split("\n")), "")
        shown = cut(first, ASIDE)
        self.complain(f"Put aside: {shown} ({self._keymap.shown('yank')} restores it)")

    def _keep_apart(self, text: str) -> None:
        """Before ``text`` is typed or pasted: a command must not be joined to a message that came back, nor a word."""
        returned, self._returned = self._returned, ""
        if not returned or self.text != returned or self.cursor_location != self.document.end:
            return
        if text.startswith(COMMANDS):
            self.replace("", (0, 0), self.document.end, maintain_selection_offset=False)
            self.put_aside(returned)
        elif text[:1].isalnum() and not returned[-1:].isspace():
            self.replace("\n", self.document.end, self.document.end, maintain_selection_offset=False)
            self.move_cursor(self.document.end)

    def kill_all(self) -> None:
        """Clear the prompt; Ctrl+Y restores the text."""
        if self.text:
            self._ring.keep(self.text)
            self.replace("", (0, 0), self.document.end, maintain_selection_offset=False)

    async def take_key(self, event: events.Key) -> None:
        """Handle a key from before the editor had the focus."""
        self.focus()
        await self._on_key(event)

    async def _on_key(self, event: events.Key) -> None:
        key = event.key
        if self._held is not None:
            self._held.append(event)
            event.stop()
            event.prevent_default()
            return
        if self.intercept(event):
            event.stop()
            event.prevent_default()
            return
        if event.is_printable and event.character:
            self._keep_apart(event.character)
        elif key != "escape":
            self._returned = ""
        action = self._keymap.action("prompt", _OTHER_KEYS.get(key, key))
        if action not in KEEPS_RING:
            self._ring.rest()
        edit = self.action_delete_left if key in ("backspace", "ctrl+h") else self._edits.get(action or "")
        if edit is not None or self._keymap.freed("prompt", key):
            event.stop()
            event.prevent_default()
            if edit is not None:
                edit()
            return
        if event.character in graphemes.JOINERS:  # Textual inserts only what is printable by itself
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard(event.character, *self.selection)
            return
        # At once, as in ``LineInput``: a binding would run after letters that were typed behind it.
        if key in _OWN and await self.app.run_action(_OWN[key], self):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if self._held is not None:
            self._held.append(event)
            return
        self.take_paste(event.text)

    def take_paste(self, text: str) -> None:
        """Insert a paste: the text, or the images that it names."""
        if not self.intercept_paste(text) and not self._take_images(text):
            self.add(text)

    def _take_images(self, pasted: str) -> bool:
        """Attach pasted image paths; returns whether it was such a paste and could be attached."""
        if not image_paths(pasted):
            return False
        if self._held is None and takes_time(pasted) and not self.blind():
            self._held = []
            self.run_worker(self._from_files(pasted, self._held), group="images")
            return True
        return self._put_images(lambda: self.attachments.take(pasted))

    async def _from_files(self, pasted: str, waiting: list[events.Key | events.Paste]) -> None:
        """Attach large images; what is typed meanwhile is ``held`` and follows them."""
        try:
            loaded = await asyncio.to_thread(loaded_from, pasted)
            if not self._put_images(lambda: self.attachments.put(loaded)):
                self.add(pasted)
        finally:
            self.pass_on(waiting, self)

    async def _from_clipboard(self) -> None:
        """Paste from the desktop's clipboard, or else the text copied in this program."""
        from swecli.tui.clipboard import read_clipboard

        content = await asyncio.to_thread(read_clipboard, os.environ)
        text = content.text or self.app.clipboard
        if content.image:
            loaded = await asyncio.to_thread(load, "clipboard.png", content.image)
            self._put_images(lambda: self.attachments.put([loaded]))
        elif text:
            self.add(text)
        else:
            self.complain("Nothing to paste. Try your terminal's paste key.")

    def _put_images(self, take: Callable[[], tuple[str, str]]) -> bool:
        """Attach images unless the model can't take any; returns whether that worked."""
        label, refusal = "", self.blind()
        if not refusal:
            label, refusal = take()
        if refusal:
            self.complain(refusal)
        elif label:
            self.add(f"{label} ")
        return bool(label)

    def placeholders(self, text: str | None = None) -> tuple[tuple[int, int], ...]:
        """Spans of pastes and attachments in the draft, or in one of its lines."""
        text = self.text if text is None else text
        return (*self.pastes.spans(text), *self.attachments.spans(text))

    def whole(self, start: Location, end: Location) -> tuple[Location, Location]:
        """The span, extended to every placeholder that it touches: a part of one would be sent as text, without what it
        stands for."""
        (row, column), (last, limit) = start, end
        for left, right in self.placeholders(self.document.get_line(row)):
            if column < right and (last > row or left < limit):
                column = min(column, left)
        for left, right in self.placeholders(self.document.get_line(last)):
            if left < limit and (last > row or column < right):
                limit = max(limit, right)
        return (row, column), (last, limit)

    def outside(self, start: Location, end: Location) -> tuple[Location, Location]:
        """Where text may replace the span: behind a placeholder that a click led into, or all of those touched."""
        if start != end:
            return self.whole(min(start, end), max(start, end))
        row, column = start
        spans = self.placeholders(self.document.get_line(row))
        position = row, next((right for left, right in spans if left < column < right), column)
        return position, position

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        return super()._replace_via_keyboard(insert, *self.outside(start, end))

    def units(self, row: int) -> Sequence[tuple[int, int]]:
        return (*self.placeholders(self.document.get_line(row)), *super().units(row))

    def delete_to(self, to: Location) -> None:
        """Delete with placeholders as a whole."""
        start, end = self.selection if not self.selection.is_empty else (self.cursor_location, to)
        self.delete(*self.whole(min(start, end), max(start, end)), maintain_selection_offset=False)

    @property
    def at_first_row(self) -> bool:
        """Whether the cursor is in the first row on the screen: a long line takes several."""
        return self.navigator.is_first_wrapped_line(self.cursor_location)

    @property
    def at_last_row(self) -> bool:
        return self.navigator.is_last_wrapped_line(self.cursor_location)

    def _enter(self) -> None:
        line, column = self.here()
        if continues(line, column):
            row = self.cursor_location[0]
            self.replace("\n", (row, column - 1), (row, column), maintain_selection_offset=False)
        else:
            self.submit()

    def here(self) -> tuple[str, int]:
        """The cursor's line and column."""
        row, column = self.cursor_location
        return self.document.get_line(row), column

    def _move(self, target: Callable[[str, int], int]) -> None:
        """Move within the line, out of a placeholder to its end in this direction."""
        line, column = self.here()
        position = target(line, column)
        inside = next((span for span in self.placeholders(line) if span[0] < position < span[1]), (position, position))
        self.move_cursor((self.cursor_location[0], inside[position > column]))
