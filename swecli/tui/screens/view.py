"""A screen as a widget: a title, a line to type in, the list, a word on the chosen entry, and the keys of one sheet."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from swecli.core.config.key_actions import Place
from swecli.core.protocol.blocks import DisplayBlock
from swecli.safe_text import safe_line
from swecli.tui.dock.block_view import BlockView
from swecli.tui.keymap import Keymap, keymap_of
from swecli.tui.line_input import LineInput
from swecli.tui.screens.entry import Entry
from swecli.tui.screens.key_note import KeyNote
from swecli.tui.screens.lines import Lines
from swecli.tui.screens.sheet import Sheet
from swecli.tui.screens.told import ScreenClosed, ScreenReady

ROOMY = 14
"""Lines from which on a third of them is for a word on the chosen entry."""
TIGHT = 9
"""Lines below which there is no word on it at all while something is listed."""

_PLACES: tuple[Place, ...] = ("screen", "list", "everywhere")
_IN_LIST: Mapping[str, Callable[[Lines], None]] = {
    "previous": lambda lines: lines.move(-1),
    "next": lambda lines: lines.move(1),
    "page_up": lambda lines: lines.move_page(-1),
    "page_down": lambda lines: lines.move_page(1),
    "scroll_home": lambda lines: lines.move_to_end(last=False),
    "scroll_end": lambda lines: lines.move_to_end(last=True),
}
_IN_TEXT: Mapping[str, Callable[[BlockView], None]] = {
    "previous": lambda text: text.scroll_up(animate=False),
    "next": lambda text: text.scroll_down(animate=False),
    "page_up": lambda text: text.scroll_page_up(animate=False),
    "page_down": lambda text: text.scroll_page_down(animate=False),
    "scroll_home": lambda text: text.scroll_home(animate=False),
    "scroll_end": lambda text: text.scroll_end(animate=False),
}


@dataclass(frozen=True, slots=True)
class _Step:
    """A sheet as it was left for the next one."""

    sheet: Sheet
    text: str
    chosen: str | None


class ScreenView(Vertical):
    """Shows a sheet in place of the transcript, and is its board."""

    DEFAULT_CSS = """
    ScreenView { height: 1fr; padding: 0 1; }
    ScreenView .screen--title { height: 1; text-style: bold; }
    ScreenView .screen--line { height: 1; }
    ScreenView .screen--mark {
        width: auto; max-width: 50%; height: 1; color: $accent; text-style: bold;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    ScreenView BlockView { height: 6; max-height: 100%; border-top: solid $border-blurred; }
    ScreenView LineInput { height: 1; width: 1fr; border: none; padding: 0; background: $background; }
    ScreenView LineInput:focus { border: none; background-tint: transparent; }
    ScreenView LineInput > .input--placeholder { color: $foreground-muted; text-style: $muted-style; }
    ScreenView LineInput > .input--selection { text-style: $selection-style; }
    """

    def __init__(self, sheet: Sheet, words: str = "") -> None:
        super().__init__()
        self._sheet = sheet
        self._before: list[_Step] = []
        self._listed: str | None = None
        """What was typed when the list was made."""
        self._pointed: str | None = None
        self._bare = False
        """Whether nothing is listed: a low screen then has room for what is said."""
        self._line = LineInput(words, intercept=self._intercept)
        self._lines = Lines()
        self._heading = Static("", classes="screen--title", markup=False)
        self._mark = Static("", classes="screen--mark", markup=False)
        self._about = BlockView(())
        self._note = KeyNote()

    def compose(self) -> ComposeResult:
        yield self._heading
        with Horizontal(classes="screen--line"):
            yield self._mark
            yield self._line
        yield self._lines
        yield self._about
        yield self._note

    def on_mount(self) -> None:
        self._lay(self._sheet, self.text)
        self.post_message(ScreenReady())

    def on_resize(self) -> None:
        height = self.size.height
        reads = self._sheet.reads or (self._bare and height < TIGHT)
        self._lines.display = not reads
        self._about.display = reads or height >= TIGHT
        self._about.styles.height = "1fr" if reads else max(5, height // 3) if height >= ROOMY else 3

    # --- the keyboard ---

    def take_focus(self) -> None:
        """Give the keyboard to the screen."""
        if self._line.is_mounted:
            self._line.focus()

    async def take_key(self, event: events.Key) -> None:
        """Do what a key does that came before the screen had the keyboard."""
        await self._line.take_key(event)
        self.take_focus()

    def escape(self) -> None:
        """Esc was pressed: one step back, or out."""
        if self._before:
            self.back()
        elif self.text:
            self.put("")
        else:
            self.post_message(ScreenClosed())

    def _intercept(self, event: events.Key) -> bool:
        self._catch_up()
        action = next((found for place in _PLACES if (found := self.keymap.action(place, event.key))), "")
        at = self._line.cursor_position
        if (action == "scroll_home" and at > 0) or (action == "scroll_end" and at < len(self.text)):
            return False
        if action in _IN_LIST:
            if self._sheet.reads:
                _IN_TEXT[action](self._about)
            else:
                _IN_LIST[action](self._lines)
        elif action == "remove":
            self._sheet.remove(self.chosen)
        elif action == "switch":
            self._sheet.switch()
        else:
            return False
        self._point()
        return True

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._catch_up()

    def _catch_up(self) -> None:
        """List what the typed words leave, unless that is done: a key may come before the message that says so."""
        if self.text != self._listed:
            self.show()
            self._sheet.typed(self.text)

    @on(Input.Submitted)
    def _sent(self, event: Input.Submitted) -> None:
        event.stop()
        self._sheet.sent(self.chosen, self.text)

    @on(Lines.Clicked)
    def _clicked(self, event: Lines.Clicked) -> None:
        event.stop()
        self.take_focus()
        self._point()
        if event.again:
            self._sheet.sent(self.chosen, self.text)

    # --- the board of its sheet ---

    @property
    def text(self) -> str:
        return self._line.value

    @property
    def chosen(self) -> Entry | None:
        return self._lines.chosen

    @property
    def keymap(self) -> Keymap:
        return keymap_of(self)

    def show(self, name: str | None = None) -> None:
        self._listed = self.text
        entries = self._sheet.found(self.text)
        typed = self.text.strip()
        if name is None and any(entry.name == typed for entry in entries):
            name = typed
        self._lines.show(entries, name)
        if self._bare != (not entries):
            self._bare = not entries
            self.on_resize()
        count = sum(not entry.heading for entry in entries)
        total = sum(not entry.heading for entry in self._sheet.entries)
        self._heading.update(Content(safe_line(self._sheet.headline(count, total))))
        self._point(again=True)

    def say(self, blocks: Sequence[DisplayBlock]) -> None:
        self._about.show(blocks, tail=self._sheet.reads)

    def put(self, text: str) -> None:
        self._line.put(text)

    def enter(self, sheet: Sheet, text: str = "") -> None:
        chosen = self.chosen
        self._before.append(_Step(self._sheet, self.text, chosen.name if chosen is not None else None))
        self._lay(sheet, text)

    def back(self) -> None:
        if self._before:
            step = self._before.pop()
            self._lay(step.sheet, step.text, step.chosen)

    def shows(self, sheet: Sheet) -> bool:
        return self.is_attached and self._sheet is sheet

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], group: str = "") -> None:
        async def run() -> None:  # nothing is made that would be waited for by nobody where a newer one comes first
            await work()

        self.run_worker(run, group=group or "default", exclusive=bool(group))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        sheet = self._sheet
        self.set_timer(seconds, lambda: do() if self.shows(sheet) else None)

    # --- drawing ---

    def _lay(self, sheet: Sheet, text: str, chosen: str | None = None) -> None:
        self._sheet = sheet
        sheet.board = self
        self._line.placeholder = sheet.placeholder
        self._mark.update(Content(safe_line(sheet.mark)))
        self.put(text)
        self.on_resize()
        self.show(chosen)
        sheet.begin()

    def _point(self, *, again: bool = False) -> None:
        """Bring what is said of the chosen entry up to date."""
        entry = self.chosen
        name = entry.name if entry is not None else ""
        if again or name != self._pointed:
            self._pointed = name
            self.say(self._sheet.said(entry, self.text))
            leave = self._sheet.leave if self._before else "clears" if self.text else "closes"
            self._note.tell(self._sheet.note(entry), f"esc {leave}")
