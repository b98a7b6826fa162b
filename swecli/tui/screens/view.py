"""What all screens share: a title, a line to type in, the list, a word on the chosen entry, and the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from swecli.core.config.key_actions import Place
from swecli.core.protocol.blocks import DisplayBlock
from swecli.safe_text import safe_line
from swecli.tui.dock.block_view import BlockView
from swecli.tui.dock.panel import keymap_of
from swecli.tui.screens.entry import Entry, narrowed
from swecli.tui.screens.lines import Lines
from swecli.tui.screens.told import ScreenClosed, ScreenReady

ROOMY = 14
"""Lines from which on there is room for a word on the chosen entry."""


class Line(Input):
    """The line to type in. ``intercept`` gets every key first, and says whether it took it."""

    DEFAULT_CSS = """
    Line { height: 1; width: 1fr; border: none; padding: 0; background: $background; }
    Line:focus { border: none; background-tint: transparent; }
    Line > .input--placeholder { color: $foreground-muted; text-style: $muted-style; }
    Line > .input--selection { text-style: $selection-style; }
    """

    def __init__(self, placeholder: str, intercept: Callable[[events.Key], bool]) -> None:
        super().__init__(placeholder=placeholder, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._intercept = intercept
        # At once: as a binding each would come after the letters that were typed behind it.
        self._edits: dict[str, Callable[[], None]] = {
            "backspace": self.action_delete_left,
            "delete": self.action_delete_right,
            "left": self.action_cursor_left,
            "right": self.action_cursor_right,
            "home": self.action_home,
            "end": self.action_end,
            "line_start": self.action_home,
            "line_end": self.action_end,
            "word_left": self.action_cursor_left_word,
            "word_right": self.action_cursor_right_word,
            "kill_left": self.action_delete_left_all,
            "kill_right": self.action_delete_right_all,
            "kill_blank_left": self.action_delete_left_word,
            "kill_word_left": self.action_delete_left_word,
            "kill_word_right": self.action_delete_right_word,
        }

    async def _on_key(self, event: events.Key) -> None:
        edit = None if (taken := self._intercept(event)) else self._edits.get(self._edit_of(event.key))
        if edit is not None:
            edit()
        if taken or edit is not None:
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _edit_of(self, key: str) -> str:
        """Keys of the prompt mean the same here."""
        return {"ctrl+h": "backspace"}.get(key) or keymap_of(self).action("prompt", key) or key


class ScreenView(Vertical):
    """A screen in place of the transcript. Subclasses say what is listed and what the keys do with it."""

    DEFAULT_CSS = """
    ScreenView { height: 1fr; padding: 0 1; }
    ScreenView .screen--title { height: 1; text-style: bold; }
    ScreenView .screen--line { height: 1; }
    ScreenView .screen--mark { width: auto; height: 1; color: $accent; text-style: bold; }
    ScreenView BlockView { height: 6; max-height: 100%; border-top: solid $border-blurred; }
    ScreenView .screen--note { height: 1; color: $foreground-muted; text-style: $muted-style; }
    """

    def __init__(self, title: str, placeholder: str = "type to narrow") -> None:
        super().__init__()
        self._title = title
        self._all: Sequence[Entry] = ()
        self._pointed: str | None = None
        self.line = Line(placeholder, self._intercept)
        self.lines = Lines()
        self._heading = Static("", classes="screen--title", markup=False)
        self._mark = Static("", classes="screen--mark", markup=False)
        self._about = BlockView(())
        self._note = Static("", classes="screen--note", markup=False)

    # --- for subclasses ---

    def about(self, entry: Entry) -> Sequence[DisplayBlock]:
        """A word on an entry; empty for none."""
        return ()

    def about_nothing(self) -> Sequence[DisplayBlock]:
        """What is said while no entry is chosen."""
        return ()

    def headline(self, count: int, total: int) -> str:
        """The title, with how many of all entries are left."""
        return f"{self._title} · {count} of {total}" if count < total else f"{self._title} · {total}"

    def note(self, entry: Entry | None) -> str:
        """Which keys do what."""
        return "↑↓ choose · esc closes"

    def choose(self, entry: Entry) -> None:
        """Enter."""

    def remove_entry(self, entry: Entry) -> None:
        """The key that takes an entry away."""

    def switch(self) -> None:
        """The key that changes to the other of two."""

    def found(self, query: str) -> Sequence[Entry]:
        """What is left by what was typed."""
        return narrowed(self._all, query)

    def back(self) -> bool:
        """Esc: one step back. False where there is none, and the screen is to be closed."""
        if self.line.value:
            self.line.value = ""
            return True
        return False

    # --- the screen ---

    def compose(self) -> ComposeResult:
        yield self._heading
        with Horizontal(classes="screen--line"):
            yield self._mark
            yield self.line
        yield self.lines
        yield self._about
        yield self._note

    def on_mount(self) -> None:
        self.mark("/ ")
        self.line.cursor_position = len(self.line.value)
        self.refill()
        self.post_message(ScreenReady())

    def take_focus(self) -> None:
        """Give the keyboard to the screen."""
        if self.line.is_mounted:
            self.line.focus()

    def take_key(self, event: events.Key) -> None:
        """Do what a key does that came before the screen had the keyboard."""
        if not self._intercept(event) and event.is_printable and event.character:
            self.line.value += event.character
            self.line.cursor_position = len(self.line.value)
        self.take_focus()

    def escape(self) -> None:
        """Esc was pressed: one step back, or out."""
        if not self.back():
            self.post_message(ScreenClosed())

    def mark(self, text: str) -> None:
        """What stands before the line to type in."""
        self._mark.update(Content(safe_line(text)))

    def show_all(self, entries: Sequence[Entry], name: str | None = None) -> None:
        """List these; the one of this name is chosen."""
        self._all = entries
        self.refill(name)

    def refill(self, name: str | None = None) -> None:
        """List what the typed words leave."""
        entries = self.found(self.line.value)
        typed = self.line.value.strip()
        if name is None and any(entry.name == typed for entry in entries):
            name = typed
        self.lines.show(entries, name)
        count = sum(not entry.heading for entry in entries)
        total = sum(not entry.heading for entry in self._all)
        self._heading.update(Content(safe_line(self.headline(count, total))))
        self.point(again=True)

    def point(self, *, again: bool = False) -> None:
        """Bring what is said of the chosen entry up to date."""
        entry = self.lines.chosen
        name = entry.name if entry is not None else ""
        if again or name != self._pointed:
            self._pointed = name
            self.say(self.about(entry) if entry is not None else self.about_nothing())
            self._note.update(Content(safe_line(self.note(entry))))

    def say(self, blocks: Sequence[DisplayBlock]) -> None:
        """Show something below the list."""
        self._about.show(blocks)

    def on_resize(self) -> None:
        height = self.size.height
        self._about.display = height >= ROOMY
        self._about.styles.height = max(5, height // 3)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.typed()

    def typed(self) -> None:
        """What is in the line has changed."""
        self.refill()

    @on(Input.Submitted)
    def _sent(self, event: Input.Submitted) -> None:
        event.stop()
        self.sent()

    def sent(self) -> None:
        """Enter."""
        entry = self.lines.chosen
        if entry is not None:
            self.choose(entry)

    @on(Lines.Clicked)
    def _clicked(self, event: Lines.Clicked) -> None:
        event.stop()
        self.take_focus()
        self.point()
        if event.again:
            self.sent()

    def _intercept(self, event: events.Key) -> bool:
        keymap = keymap_of(self)
        entry = self.lines.chosen
        places: tuple[Place, ...] = ("screen", "list", "everywhere")
        action = next((found for place in places if (found := keymap.action(place, event.key))), None)
        match action:
            case "previous":
                self.lines.move(-1)
            case "next":
                self.lines.move(1)
            case "page_up":
                self.lines.move_page(-1)
            case "page_down":
                self.lines.move_page(1)
            case "scroll_home" if self.at_start:
                self.lines.move_to_end(last=False)
            case "scroll_end" if self.at_end:
                self.lines.move_to_end(last=True)
            case "remove":
                if entry is not None:
                    self.remove_entry(entry)
            case "switch":
                self.switch()
            case _:
                return False
        self.point()
        return True

    @property
    def at_start(self) -> bool:
        """Whether the cursor is at the start of what is typed."""
        return self.line.cursor_position == 0

    @property
    def at_end(self) -> bool:
        """Whether the cursor is at the end of what is typed."""
        return self.line.cursor_position >= len(self.line.value)
