"""A full screen drawn line by line by one widget: without child widgets, thousands of rows cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from swecli.core.config.key_actions import ACTIONS, Place
from swecli.figures import plural
from swecli.safe_text import SafeText, sanitise
from swecli.tui.keymap import Keymap, keymap_of
from swecli.tui.screens.list_screen import Leaving, ListScreen
from swecli.tui.transcript.palette import Palette, palette_for
from swecli.tui.transcript.rows import ELLIPSIS, NO_STYLE, cells, cut, wrap

Line = list[Segment]
AGAIN: Final = 0.5
"""Seconds between two checks for changes of the conversation."""
_PLACES: Final[tuple[Place, ...]] = ("context", "list", "everywhere")


def text_line(*pieces: tuple[str, Style]) -> Line:
    """A line of styled texts; untrusted text must already be safe."""
    return [Segment(text, style) for text, style in pieces if text]


def fit(line: Line, width: int) -> Line:
    """The line in exactly this many cells; "…" marks a cut."""
    if cells("".join(piece.text for piece in line).rstrip()) > width > 0:
        line = list(Strip(line).adjust_cell_length(width - 1))
        line.append(Segment(ELLIPSIS, line[-1].style if line else None))
    return list(Strip(line).adjust_cell_length(max(0, width), NO_STYLE))


def fitted_text(text: str, width: int) -> str:
    """One line of text, cut or padded to this many cells."""
    shown = cut(SafeText(text), max(0, width))
    return shown + " " * (width - cells(shown))


Key = tuple[str, str]
"""A key's display name, and its effect in a word or two."""


def keys_line(parts: Sequence[Key], last: Key, width: int, palette: Palette, more: Key | None = None) -> Line:
    """Keys and their effects; those that don't fit are dropped, ``last`` (how to leave) last of all. ``more`` is then
    shown as the way to list them all."""
    ends = [last] if more is None or _cells_of((*parts, last)) <= width else [more, last]
    room = width - _cells_of(ends)
    line: Line = []
    for part in parts:
        room -= _cells_of([part]) + len(_GAP)
        if room < 0:
            break
        line += _key(part, palette)
    for end in ends[:-1]:
        line += _key(end, palette)
    return line + _key(last, palette, "")


_GAP: Final = "   "


def _cells_of(keys: Sequence[Key]) -> int:
    return sum(cells(f"{key} {meaning}") for key, meaning in keys) + len(_GAP) * (len(keys) - 1)


def _key(part: Key, palette: Palette, gap: str = _GAP) -> Line:
    return text_line((part[0], palette.accent + palette.strong), (f" {part[1]}{gap}", palette.dim))


def step_for(action: str, page: int, rows: int) -> int | None:
    """Rows that an action moves in a list of ``rows``, before clamping; None if it moves nothing."""
    steps = {"previous": -1, "next": 1, "page_up": -page, "page_down": page, "scroll_home": -rows, "scroll_end": rows}
    return steps.get(action)


class Board(Widget, can_focus=True):
    """Base class: subclasses paint lines and handle keys. ``top`` is the first visible row of the list."""

    DEFAULT_CSS = "Board { height: 1fr; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._painted: list[Line] = []
        self._strips: list[Strip] = []
        self._key: object = None
        self._ground = NO_STYLE
        self._before: dict[Hashable, list[Line]] = {}
        self._made: dict[Hashable, list[Line]] = {}
        """Results of ``once``, kept from the newest painting for the current one."""
        self._last_key: events.Key | None = None
        self.leaving = Leaving()
        self.ready = False
        """Whether it takes keys: it is mounted and laid out."""
        self.drawn = 0
        """Number of lines drawn so far."""
        self.reading: tuple[str, str] | None = None
        """Heading and text read in place of the board."""
        self._read_top = 0
        self._read_lines: tuple[int, list[str]] = (0, [])
        self._all_keys: tuple[Key, ...] = ()
        """All keys in the screen's current state."""
        self.typing = False
        """Whether characters go into the search."""
        self.words = ""

    # --- overridden by subclasses ---

    def paint(self, width: int, height: int, palette: Palette) -> list[Line]:
        """All lines of the board."""
        return []

    def act(self, action: str) -> bool:
        """Handle a key; returns whether it has a meaning here."""
        return False

    def clicked(self, x: int, y: int) -> None:
        """Handle a mouse press at a cell."""

    def move_by(self, step: int) -> None:
        """Select the row ``step`` rows further, as the wheel does."""

    def step_back(self) -> bool:
        """Handle Esc: go one step back within the board; False if there is none."""
        return False

    def searched(self) -> None:
        """The search text changed."""

    # --- the keyboard ---

    def on_mount(self) -> None:
        self.call_after_refresh(self._open_to_keys)

    def _open_to_keys(self) -> None:
        self.ready = True
        self.post_message(ListScreen.Ready())

    def take_focus(self) -> None:
        if self.ready:
            self.focus()

    async def take_key(self, event: events.Key) -> None:
        """Handle a key from before the board had the keyboard; ignore one that bubbled up from it. The current focus
        can't distinguish them."""
        if event is not self._last_key:
            self.on_key(event)
            self.take_focus()

    def escape(self) -> None:
        """Handle Esc: one step back, or out."""
        if self.reading is not None:
            self.reading = None
        elif self.typing or self.words:
            self.typing, self.words = False, ""
            self.searched()
        elif not self.step_back():
            self.leaving.begin()
            self.post_message(ListScreen.Closed())
            return
        self.changed()

    @property
    def keymap(self) -> Keymap:
        return keymap_of(self)

    def on_key(self, event: events.Key) -> None:
        self._last_key = event
        if self.leaving.keeps(event):
            return
        if self._typed(event):
            done = True
        elif self.keymap.action("everywhere", event.key) == "close":  # a binding would come after letters
            self.escape()
            done = True
        else:
            action = next(
                (candidate for context in _PLACES if (candidate := self.keymap.action(context, event.key))), ""
            )
            if not action and event.key == "enter":
                action = "open"
            if self.reading is not None:
                done = self._read(action)
            elif action == "show_keys" and self._all_keys:
                done = True
                self._read_keys()
            else:
                done = self.act(action) if action else False
        if done:
            event.stop()
            event.prevent_default()
            self.changed()

    def on_paste(self, event: events.Paste) -> None:
        self.leaving.keeps(event)

    def _typed(self, event: events.Key) -> bool:
        if not self.typing or self.reading is not None:
            return False
        if event.key == "enter":
            self.typing = False
        elif event.key == "backspace":
            self.words = self.words[:-1]
        elif event.is_printable and event.character:
            self.words += event.character
        else:
            return False
        self.searched()
        return True

    # --- key hints ---

    def keys_foot(self, parts: Sequence[Key], last: Key, width: int, palette: Palette) -> Line:
        """Last line: the screen's keys, and if they don't fit, the key that lists them all."""
        self._all_keys = (*parts, last)
        return keys_line(parts, last, width, palette, (self.keymap.shown("show_keys"), "all keys"))

    def _read_keys(self) -> None:
        rows = [(key, self._meaning(key) or meaning) for key, meaning in self._all_keys]
        size = max(cells(key) for key, _ in rows) + 2
        self.read("Keys", "\n".join(f"{key:<{size}}{meaning}" for key, meaning in rows))

    def _meaning(self, key: str) -> str:
        """Full meaning of a key; empty if only the screen knows it."""
        actions = (action for action in ACTIONS if action.place == "context")
        return next((action.meaning for action in actions if self.keymap.shown(action.name) == key), "")

    # --- reading a text in full ---

    def read(self, heading: str, text: str) -> None:
        """Show a text in place of the board until Esc."""
        self.reading, self._read_top, self._read_lines = (heading, text), 0, (0, [])
        self.changed()

    def _read(self, action: str) -> bool:
        page = max(1, self.size.height - 3)
        lines = len(self._read_lines[1])
        if action == "open":
            self.reading = None
            return True
        step = step_for(action, page, lines)
        if step is None:
            return False
        self._read_top = max(0, min(self._read_top + step, lines - page))
        return True

    def _reading(self, width: int, height: int, palette: Palette) -> list[Line]:
        heading, text = self.reading or ("", "")
        if self._read_lines[0] != width:
            self._read_lines = (width, wrapped(text, max(1, width)))
        lines = self._read_lines[1]
        shown = lines[self._read_top : self._read_top + max(1, height - 3)]
        last = self._read_top + len(shown)
        part = f"lines {self._read_top + 1:,} to {last:,} of {len(lines):,}" if len(shown) < len(lines) else ""
        position = f" · {part or plural(len(lines), 'line')}"
        heading = fitted_text(heading, min(cells(heading), max(8, width - cells(position))))
        head = text_line((heading, palette.heading), (position, palette.dim))
        rule = text_line(("─" * width, palette.rule))
        body = [text_line((line, palette.text)) for line in shown]
        body += [[] for _ in range(max(1, height - 3) - len(body))]
        return [head, rule, *body, keys_line([("↑↓ PgUp PgDn", "scroll")], ("esc", "back"), width, palette)]

    # --- drawing ---

    def changed(self) -> None:
        """Redraw the changed lines."""
        if not self.size or not self._strips:
            self.refresh()
            return
        before, now = self._strips, self._paint()
        rows = [y for y in range(max(len(before), len(now))) if before[y : y + 1] != now[y : y + 1]]
        self._strips = now
        if rows:
            self.refresh(*(Region(0, y, self.outer_size.width, 1) for y in rows))

    def once(self, key: Hashable, make: Callable[[], list[Line]]) -> list[Line]:
        """Cached lines, rebuilt only if the previous painting had none for this key, which must capture everything they
        depend on besides the board's size and colours."""
        lines = self._before.get(key)
        if lines is None:
            lines = make()
        self._made[key] = lines
        return lines

    def _paint(self) -> list[Strip]:
        width, height = self.size
        palette = palette_for(self.app.current_theme)
        ground = self.rich_style
        key = (width, height, palette)
        if (key, ground) != (self._key, self._ground):
            self._key, self._ground, self._before, self._painted = key, ground, {}, []
        painter = self._reading if self.reading is not None else self.paint
        lines = painter(max(1, width), max(1, height), palette)[:height]
        self._before, self._made = self._made, {}
        done = {id(line): strip for line, strip in zip(self._painted, self._strips, strict=False)}
        strips = [done.get(id(line)) or _strip(line, width, ground) for line in lines]
        self._painted = lines  # keep the old lines alive until here, so that no new one reuses an id
        return strips

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        if (width, height, palette_for(self.app.current_theme)) != self._key:
            self._strips = self._paint()
        self.drawn += 1
        return self._strips[y] if y < len(self._strips) else Strip.blank(width, self.rich_style)

    # --- the mouse ---

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.take_focus()
        if self.reading is None:
            self.clicked(event.x - 1, event.y)
            self.changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -3)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        if self.reading is not None:
            self._read_top = max(0, min(self._read_top + step, len(self._read_lines[1]) - 1))
        else:
            self.move_by(step)
        self.changed()


def _strip(line: Line, width: int, ground: Style) -> Strip:
    return Strip(list(Segment.simplify(line))).adjust_cell_length(width, NO_STYLE).apply_style(ground)


def wrapped(text: str, width: int) -> list[str]:
    """Untrusted text in lines of at most this many cells, broken at spaces if possible."""
    lines = [SafeText(line) for line in sanitise(text).split("\n")]
    return [line[piece.start : piece.end] for line in lines for piece in wrap(line, width)]
