"""A screen with a list filtered by typing: entries, input line, details, keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from msgspec import Struct
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from swecli.core.config.key_actions import Place
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import SafeText, safe_line
from swecli.tui.dock.block_view import BlockView
from swecli.tui.greeting import short_paths
from swecli.tui.keymap import Keymap, keymap_of
from swecli.tui.line_input import LineInput, component_style
from swecli.tui.transcript.markdown import SEPARATOR, column_widths
from swecli.tui.transcript.rows import cells, cut

Tone = Literal["plain", "dim", "ok", "warning", "heading"]

Ask = Callable[[str, tuple[str, str], Callable[[], None]], None]
"""Asks for confirmation: the question, a label for yes with its consequence, and the action."""


class Entry(Struct, frozen=True):
    """One line. ``name`` identifies it; an entry without a name is a heading and can't be selected. ``words`` are
    additional search text."""

    name: str
    cells: tuple[str, ...]
    tone: Tone = "plain"
    words: str = ""
    mark: str = " "
    tail: bool = False
    """Whether the end of the first cell distinguishes entries; if it is too long, its middle is cut."""
    spare: bool = False
    """Whether the last cell is left out if not all fit."""
    least: int = 0
    """Width of the first cell below which the last cells are left out instead of shortening it; 0: never."""

    @property
    def heading(self) -> bool:
        """Whether it is only a heading."""
        return not self.name


def heading(text: str) -> Entry:
    return Entry("", (text,), "heading")


def narrowed(entries: Sequence[Entry], query: str) -> list[Entry]:
    """Entries that contain every word of the query, ignoring case, with the headings of remaining ones. A heading's
    words count for the entries below it."""
    words = query.casefold().split()
    out: list[Entry] = []
    above: Entry | None = None
    placed: Entry | None = None
    for entry in entries:
        if entry.heading:
            above = entry
            continue
        under = above.cells[0] if above is not None else ""
        hay = " ".join((under, entry.name, *entry.cells, entry.words)).casefold()
        if all(word in hay for word in words):
            if above is not None and above is not placed:
                out.append(above)
                placed = above
            out.append(entry)
    return out


NOTHING = (TextBlock("No match.", "dim"),)


class ListPage:
    """Content of a list: subclasses fill ``entries`` and define their actions. ``view`` shows the page, from ``begin``
    on."""

    mark = "/ "
    """Precedes the input line."""
    reads = False
    """Whether the page has nothing to select and its text fills the screen, scrolled to the end."""
    about = 0
    """Lines for details, border included; 0: a third of the screen."""
    leave = "goes back"
    """Effect of Esc on a page that is not the first."""
    view: ListScreen

    def __init__(self, title: str, placeholder: str = "type to filter") -> None:
        self.title = title
        self.placeholder = placeholder
        self.entries: Sequence[Entry] = ()
        self.trouble: Sequence[DisplayBlock] = ()
        """Why the list could not be read."""

    def begin(self) -> None:
        """The page is shown, for the first time or again."""

    # --- display ---

    def headline(self, count: int, total: int) -> str:
        """The title with the number of entries, filtered and total."""
        return f"{self.title} · {count} of {total}" if count < total else f"{self.title} · {total}"

    def matching(self, query: str) -> Sequence[Entry]:
        """Entries that match the typed text."""
        return narrowed(self.entries, query)

    def detail_or_reason(self, entry: Entry | None, text: str) -> Sequence[DisplayBlock]:
        """Text below the list: details of the entry, or why there is none."""
        if entry is None and self.trouble and not self.entries:
            return self.trouble
        lost = entry is None and bool(text.strip()) and bool(self.entries)
        return self.detail(entry) or (NOTHING if lost else ())

    def detail(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        """Details of the selected entry, or of an empty list."""
        return ()

    def key_note(self, entry: Entry | None) -> str:
        """Keys and their effects, except for the one that leaves, separated by " · "."""
        return "↑↓ move"

    # --- actions ---

    def pointed(self, entry: Entry | None) -> None:
        """Another entry was selected."""

    def left(self) -> None:
        """The page is no longer shown."""

    def typed(self, text: str) -> None:
        """The input changed, and the list with it."""

    def submitted(self, entry: Entry | None, text: str) -> None:
        """Enter was pressed in the input line."""
        if entry is not None:
            self.choose(entry)

    def choose(self, entry: Entry) -> None:
        """Handle Enter on an entry."""

    def remove(self, entry: Entry | None) -> None:
        """Handle the key that removes an entry."""

    def switch(self) -> None:
        """Handle the key that switches between two views."""


class Previews:
    """Slow details of a page's entries, each computed once, when first selected."""

    def __init__(self, page: ListPage, make: Callable[[str], Awaitable[Sequence[DisplayBlock]]]) -> None:
        """``make`` receives the name of the entry."""
        self._page = page
        self._make = make
        self._made: dict[str, Sequence[DisplayBlock]] = {}

    def of(self, entry: Entry | None) -> Sequence[DisplayBlock]:
        """Details known now; the rest is shown once computed."""
        if entry is None:
            return ()
        made = self._made.get(entry.name)
        if made is None:
            self._page.view.start(lambda: self._show(entry.name), "preview")
            return (TextBlock("…", "dim"),)
        return made

    def forget(self) -> None:
        """Discard the computed details."""
        self._made.clear()

    async def _show(self, name: str) -> None:
        made = self._made[name] = await self._make(name)
        view = self._page.view
        if view.chosen is not None and view.chosen.name == name:
            view.say(made)


GAP = 3
"""Cells between two columns."""
NARROW = 62
"""Columns below which only one cell is shown."""


class Lines(Widget, can_focus=False):
    """Entries with a selected one that is kept visible."""

    DEFAULT_CSS = """
    Lines { height: 1fr; color: $foreground; }
    Lines > .lines--dim { color: $foreground-muted; text-style: $muted-style; }
    Lines > .lines--ok { color: $success; }
    Lines > .lines--warning { color: $warning; }
    Lines > .lines--heading { color: $accent; text-style: bold; }
    Lines > .lines--chosen { color: $accent; text-style: $chosen-style; background: $panel; }
    """
    COMPONENT_CLASSES = {"lines--dim", "lines--ok", "lines--warning", "lines--heading", "lines--chosen"}

    @dataclass
    class Clicked(Message):
        """An entry was clicked; ``again`` if it was already selected."""

        again: bool

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._natural: list[int] = []
        self._top = 0
        self._at = -1

    @property
    def chosen(self) -> Entry | None:
        return self._entries[self._at] if 0 <= self._at < len(self._entries) else None

    def show(self, entries: Sequence[Entry], name: str | None = None, *, near: bool = False) -> None:
        """Replace the entries; select the one with this name, else keep the selection. If that is gone, select the
        first, or with ``near`` the one that took its place."""
        wanted = name if name is not None else self.chosen.name if self.chosen else ""
        self._entries = list(entries)
        self._natural = _natural(self._entries)
        places = [number for number, entry in enumerate(self._entries) if not entry.heading]
        named = [number for number in places if self._entries[number].name == wanted]
        near = near and self._at >= 0
        nearest = [number for number in places if number >= self._at] or places[-1:] if near else places
        self._at = (named or nearest or [-1])[0]
        if not named and not near:
            self._top = 0
        self.refresh()

    def move(self, step: int) -> None:
        """Move the selection by this many entries; a single step wraps around."""
        places = [number for number, entry in enumerate(self._entries) if not entry.heading]
        if not places:
            return
        current = places.index(self._at)
        there = (current + step) % len(places) if abs(step) == 1 else min(max(0, current + step), len(places) - 1)
        self._at = places[there]
        if there == 0:
            self._top = 0
        self.refresh()

    def move_page(self, step: int) -> None:
        self.move(step * max(2, self.size.height - 2))

    def move_to_end(self, *, last: bool) -> None:
        self.move(len(self._entries) * (1 if last else -1) + (2 if last else -2))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            self._follow()
        number = self._top + y
        if number >= len(self._entries) or width < 1:
            return Strip.blank(max(0, width), self.rich_style)
        line = self._line(self._entries[number], number == self._at, width)
        below = len(self._entries) - number - 1
        if below and y == self.size.height - 1 and width >= NARROW:
            more = Content(f" ↓ {below} more").stylize(component_style(self, "lines--dim"))
            room = width - more.cell_length
            line = line.truncate(room, ellipsis=cells(line.plain.rstrip()) > room, pad=True) + more
        return Strip(list(line.render_segments(self.visual_style)), width)

    def _follow(self) -> None:
        height = max(1, self.size.height)
        if self._at >= 0:
            self._top = min(self._top, self._at - (self._at > 0 and self._entries[self._at - 1].heading))
            self._top = max(self._top, self._at - height + 1)
        self._top = max(0, min(self._top, len(self._entries) - height))

    def _line(self, entry: Entry, chosen: bool, width: int) -> Content:
        if entry.heading:
            text = cut(safe_line(entry.cells[0]), max(0, width - 1))
            line = Content(" " + text).pad_right(max(0, width - 1 - cells(text)))
            return line.stylize(self.get_visual_style("lines--heading", partial=True))
        lead = ("›" if chosen else " ") + entry.mark + " "
        gap = GAP if width >= NARROW else 1
        text = _in_columns(entry, self._widths(width - len(lead), gap, entry), gap)
        line = Content(cut(SafeText(lead + text), width))
        line = line.pad_right(max(0, width - line.cell_length))
        style = "chosen" if chosen else entry.tone
        return line if style == "plain" else line.stylize(component_style(self, f"lines--{style}"))

    def _widths(self, width: int, gap: int, entry: Entry) -> list[int]:
        natural, spare = self._natural or [1], entry.spare
        if _fit(natural, width, gap):
            return natural
        if entry.least:
            while len(natural) > 1 and not _fit([min(natural[0], entry.least), *natural[1:]], width, gap):
                natural = natural[:-1]
            rest = sum(natural[1:]) + gap * (len(natural) - 1)
            return [max(1, min(natural[0], width - rest)), *natural[1:]]
        if spare and _fit(natural := natural[:-1], width, gap):
            return natural
        between = len(natural) - 1
        most = max(12, width * 2 // (3 if spare else 5))
        squeezed = [*(min(size, most) for size in natural[:-1]), natural[-1]]
        return column_widths(squeezed, width + (len(SEPARATOR) - gap) * between)

    def on_click(self, event: events.Click) -> None:
        number = self._top + event.y
        if 0 <= number < len(self._entries) and not self._entries[number].heading:
            again, self._at = self._at == number, number
            self.refresh()
            self.post_message(self.Clicked(again))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        for _ in range(3):
            places = [number for number, entry in enumerate(self._entries) if not entry.heading]
            if places and self._at != (places[-1] if step > 0 else places[0]):
                self.move(step)
        self.post_message(self.Clicked(again=False))


def _fit(widths: Sequence[int], width: int, gap: int) -> bool:
    return sum(widths) + gap * (len(widths) - 1) <= width


def _natural(entries: Sequence[Entry]) -> list[int]:
    """Preferred width of each column."""
    widths: list[int] = []
    for entry in entries:
        if entry.heading:
            continue
        for column, cell in enumerate(entry.cells):
            size = cells(safe_line(cell))
            if column == len(widths):
                widths.append(1)
            widths[column] = max(widths[column], size)
    return widths


def _in_columns(entry: Entry, widths: Sequence[int], gap: int) -> str:
    parts: list[str] = []
    for text, size in zip(entry.cells, widths, strict=False):
        safe = safe_line(text)
        shown = _without_middle(safe, size) if entry.tail and not parts else cut(safe, size)
        parts.append(shown + " " * (size - cells(shown)))
    return (" " * gap).join(parts)


def _without_middle(text: SafeText, size: int) -> str:
    """A text in this many cells; if it is too long, its start gets a third of them."""
    if cells(text) <= size or size < 6:
        return cut(text, size)
    start = cut(text, size // 3 + 1)
    return start + cut(text, size - cells(start) + 1, keep="end")[1:]


T = TypeVar("T")


def brief_paths(text: str) -> str:
    """The text with ``~`` for the home folder in its paths."""
    return short_paths(text, os.environ.get("HOME", ""))


async def read_or_say(page: ListPage, read: Callable[[], T]) -> T | None:
    """Result of ``read``, run in a thread; None if it fails, after the page showed the message of its ValueError, or if
    the page was closed meanwhile."""
    try:
        result = await asyncio.to_thread(read)
    except ValueError as error:
        page.trouble = (TextBlock(brief_paths(str(error)), "error"),)
        if page.view.shows(page):
            page.view.show()
        return None
    page.trouble = ()
    return result if page.view.shows(page) else None


BETWEEN = " · "


class KeyNote(Static):
    """Line of keys; parts that don't fit are dropped."""

    DEFAULT_CSS = "KeyNote { height: 1; color: $foreground-muted; }"

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._note = self._leave = ""

    def tell(self, note: str, leave: str) -> None:
        """Show another note; ``leave`` is its last part."""
        self._note, self._leave = safe_line(note), safe_line(leave)
        self.on_resize()

    def on_resize(self) -> None:
        self.update(styled(fitted(self._note, self._leave, self.size.width)), layout=False)


LEAST_NOTE: Final = 12
"""Cells from which the beginning of a key's meaning is understood."""


def fitted(note: str, last: str, width: int) -> str:
    """Parts of a note that fit: how to leave takes precedence, then the order of the parts. The first is cut rather
    than left out."""
    parts: list[str] = []
    for part in filter(None, note.split(BETWEEN)):
        if cells(BETWEEN.join((*parts, part, last))) > width:
            room = width - cells(f"{BETWEEN}{last}")
            if not parts and room >= LEAST_NOTE:
                parts.append(cut(SafeText(part), room))
            break
        parts.append(part)
    return BETWEEN.join((*parts, last))


_KEY = lazy_pattern(r"(?:(?:[\u2191\u2193]+|enter|esc|[Tt]ab|space|PgUp|PgDn|Home|End|[Cc]trl\+\w)(?: |$))+")


def styled(note: str) -> Content:
    """A note styled like the keys of panels: keys in the accent colour, three blanks between parts."""
    parts: list[str | tuple[str, str]] = []
    for number, part in enumerate(note.split(BETWEEN)):
        key = _KEY.match(part)
        end = 0 if key is None else key.end()
        parts += ["   " if number else "", (part[:end], "bold $accent"), (part[end:], "$muted-style")]
    return Content.assemble(*parts)


ROOMY = 14
"""Lines from which a third of them shows details of the selected entry."""
TIGHT = 9
"""Lines below which details are hidden while entries are listed."""

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


class _Step(Struct, frozen=True):
    """State of a page that was left for the next one."""

    page: ListPage
    text: str
    chosen: str | None


class Leaving:
    """Keeps what is typed behind the key that closes a screen: it belongs to what is in front then."""

    def __init__(self) -> None:
        self._kept: list[events.Key | events.Paste] | None = None
        self._give: Callable[[Message], object] | None = None

    def begin(self) -> None:
        """The screen will be closed."""
        self._kept = []

    def end(self, give: Callable[[Message], object]) -> Sequence[events.Key | events.Paste]:
        """The screen is closed: what was typed behind that. What still comes to the screen goes to ``give``."""
        kept, self._kept, self._give = self._kept or (), None, give
        return kept

    def keeps(self, event: events.Key | events.Paste) -> bool:
        """Keep an event that came to the screen, if the screen does not get it any more."""
        if self._kept is None and self._give is None:
            return False
        key = isinstance(event, events.Key)
        again = events.Key(event.key, event.character) if key else events.Paste(event.text)  # not forwarded yet
        if self._give is not None:
            self._give(again)
        elif self._kept is not None:
            self._kept.append(again)
        event.stop()
        event.prevent_default()
        return True


class ListScreen(Vertical):
    """Shows a page in place of the transcript."""

    DEFAULT_CSS = """
    ListScreen { height: 1fr; padding: 0 1; }
    ListScreen .screen--title { height: 1; color: $accent; text-style: bold; }
    ListScreen .screen--line { height: 1; }
    ListScreen .screen--mark {
        width: auto; max-width: 50%; height: 1; color: $accent; text-style: bold;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    ListScreen BlockView { height: 6; max-height: 100%; border-top: solid $border-blurred; }
    ListScreen LineInput { height: 1; width: 1fr; border: none; padding: 0; background: $background; }
    ListScreen LineInput:focus { border: none; background-tint: transparent; }
    ListScreen LineInput > .input--placeholder { color: $foreground-muted; text-style: $muted-style; }
    ListScreen LineInput > .input--selection { text-style: $selection-style; }
    """

    class Ready(Message):
        """The screen is mounted and laid out, so it takes the keyboard. Until then the app keeps the keys."""

    class Closed(Message):
        """The user closed the screen."""

    def __init__(self, page: ListPage, words: str = "") -> None:
        super().__init__()
        self._page = page
        self._before: list[_Step] = []
        self._listed: str | None = None
        self._listed_page: ListPage | None = None
        """Page and input for which the list was built."""
        self._pointed: str | None = None
        self._bare = False
        """Whether the list is empty, which gives a low screen room for details."""
        self.ready = False
        """Whether it takes keys."""
        self.leaving = Leaving()
        self._line = LineInput(words, intercept=self._intercept, keeps=self.leaving.keeps)
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
        self._lay(self._page, self.text)
        self.call_after_refresh(self._open_to_keys)

    def _open_to_keys(self) -> None:
        self.ready = True
        self.post_message(self.Ready())

    def on_unmount(self) -> None:
        self._page.left()

    def on_resize(self) -> None:
        height = self.size.height
        reads = self._page.reads or (self._bare and height < TIGHT)
        self._lines.display = not reads
        self._about.display = reads or height >= TIGHT
        about = self._page.about or max(5, height // 3) if height >= ROOMY else 3
        self._about.styles.height = "1fr" if reads else about

    # --- the keyboard ---

    def take_focus(self) -> None:
        if self.ready:
            self._line.focus()

    async def take_key(self, event: events.Key) -> None:
        """Handle a key from before the screen had the keyboard."""
        await self._line.take_key(event)
        self.take_focus()

    def escape(self) -> None:
        """Handle Esc: one step back, or out."""
        if self._before:
            self.back()
        elif self.text:
            self.put("")
        else:
            self.leaving.begin()
            self.post_message(self.Closed())

    def _intercept(self, event: events.Key) -> bool:
        self._catch_up()
        if self.keymap.action("everywhere", event.key) == "close":  # here, because a binding would come after letters
            self.escape()
            return True
        action = next((candidate for context in _PLACES if (candidate := self.keymap.action(context, event.key))), "")
        at = self._line.cursor_position
        if (action == "scroll_home" and at > 0) or (action == "scroll_end" and at < len(self.text)):
            return False
        if action in _IN_LIST:
            if self._page.reads:
                _IN_TEXT[action](self._about)
            else:
                _IN_LIST[action](self._lines)
        elif action == "remove":
            self._page.remove(self.chosen)
        elif action == "switch":
            self._page.switch()
        else:
            return False
        self._point()
        return True

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._catch_up()

    def _catch_up(self) -> None:
        """Apply the filter unless it is already applied: a key may arrive before the change message."""
        if self._listed_page is not None and self.text != self._listed:
            self.show()
            self._page.typed(self.text)

    @on(Input.Submitted)
    def _sent(self, event: Input.Submitted) -> None:
        event.stop()
        self._page.submitted(self.chosen, self.text)

    @on(Lines.Clicked)
    def _clicked(self, event: Lines.Clicked) -> None:
        event.stop()
        self.take_focus()
        self._point()
        if event.again:
            self._page.submitted(self.chosen, self.text)

    # --- called by the page ---

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
        """Rebuild list and details; select the entry with this name, or keep the selection. If only the selected entry
        is gone, the next one is selected, not the first."""
        same = self._listed_page is self._page and self._listed == self.text
        self._listed_page, self._listed = self._page, self.text
        entries = self._page.matching(self.text)
        if not entries and self.text.startswith("/"):
            entries = self._page.matching(self.text[1:])  # some users type a leading slash to search
        typed = self.text.strip()
        if name is None and any(entry.name == typed for entry in entries):
            name = typed
        self._lines.show(entries, name, near=same)
        if self._bare != (not entries):
            self._bare = not entries
            self.on_resize()
        count = sum(not entry.heading for entry in entries)
        total = sum(not entry.heading for entry in self._page.entries)
        self._heading.update(Content(safe_line(self._page.headline(count, total))), layout=False)
        self._point(again=True)

    def say(self, blocks: Sequence[DisplayBlock]) -> None:
        """Show this in place of the page's details until the selection changes."""
        self._about.show(blocks, tail=self._page.reads)

    def put(self, text: str) -> None:
        self._line.put(text)

    def enter(self, page: ListPage, text: str = "") -> None:
        """Open a further page, with this text in its input."""
        chosen = self.chosen
        self._before.append(_Step(self._page, self.text, chosen.name if chosen is not None else None))
        self._lay(page, text)

    def back(self) -> None:
        """Return to the previous page as it was left."""
        if self._before:
            self._page.left()
            step = self._before.pop()
            self._lay(step.page, step.text, step.chosen)

    def shows(self, page: ListPage) -> bool:
        return self.is_attached and self._page is page

    def start(self, work: Callable[[], Coroutine[Any, Any, object]], group: str = "") -> None:
        """Run work in parallel until the list closes; in a named group only the newest runs."""

        async def run() -> None:  # creates the coroutine only when it runs, since a newer one may replace it
            await work()

        self.run_worker(run, group=group or "default", exclusive=bool(group))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something later if the same page is still shown."""
        page = self._page
        self.set_timer(seconds, lambda: do() if self.shows(page) else None)

    # --- drawing ---

    def _lay(self, page: ListPage, text: str, chosen: str | None = None) -> None:
        self._page = page
        page.view = self
        self._line.placeholder = page.placeholder
        self._mark.update(Content(safe_line(page.mark)))
        self.put(text)
        self.on_resize()
        self.show(chosen)
        page.begin()

    def _point(self, *, again: bool = False) -> None:
        """Update the details of the selected entry."""
        if self._listed_page is None:
            return  # the mouse was faster than the layout
        entry = self.chosen
        name = entry.name if entry is not None else ""
        if again or name != self._pointed:
            self._pointed = name
            self._page.pointed(entry)
            self.say(self._page.detail_or_reason(entry, self.text))
            leave = self._page.leave if self._before else "clears" if self.text else "closes"
            self._note.tell(self._page.key_note(entry), f"esc {leave}")
