"""The transcript widget: takes events, shows blocks, and lets the user walk, fold, copy and search them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, cast

from msgspec import Struct
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.events import Event
from swecli.safe_text import SafeText
from swecli.tui import compat, keymap
from swecli.tui.keymap import Keymap
from swecli.tui.preferences import Density
from swecli.tui.transcript.block_rows import Mark, Painter
from swecli.tui.transcript.blocks import (
    CompactionBlock,
    Operation,
    Put,
    ShownBlock,
    UserBlock,
)
from swecli.tui.transcript.finder import Search, SearchState, row_spans
from swecli.tui.transcript.page import Anchor, Page
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.plain import block_text, file_of, for_clipboard
from swecli.tui.transcript.reducer import Reducer
from swecli.tui.transcript.rows import SHOWS_ALL, Row, copied


class _Place(Struct, frozen=True):
    """The first visible line, by its block's id."""

    block_id: str
    line: int
    height: int


MAX_PAINTED: Final = 400
"""Finished strips to cache; each consists of many objects."""


class PageView(ScrollView):
    """A virtualised view of a ``Page``: draws the visible lines and keeps the reader's position as heights change."""

    following: reactive[bool] = reactive(True)
    """Whether the view follows the end."""
    unseen: reactive[int] = reactive(0)
    """New lines below the view since the user scrolled up."""
    earlier = False
    """Whether more content exists above, which is loaded on demand."""

    @dataclass
    class EarlierWanted(Message):
        """The user scrolled past the top and wants the next part, or ``all``, of the earlier content."""

        all: bool

    def __init__(
        self, palette: Palette = DARK, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.page = Page(palette)
        self._painter: Painter | None = None
        self._painted: deque[Row] = deque()
        """Rows with a finished strip, oldest first."""
        self._origin = 0
        """Lines by which visible lines have moved because estimates above them became exact. Selection offsets count
        from here, so that they stay with the text."""
        self._moving = False
        """Whether the program is changing the scroll position."""

    @property
    def view_height(self) -> int:
        """Number of visible lines."""
        return self.scrollable_content_region.height

    @property
    def scroll_line(self) -> int:
        """First visible line."""
        return int(self.scroll_offset.y)

    def notify_style_update(self) -> None:
        """Called by Textual when colours of the widget may have changed."""
        super().notify_style_update()
        self._unpaint()

    def _unpaint(self) -> None:
        self._painter = None
        while self._painted:
            self._painted.pop().painted = None

    @property
    def painter(self) -> Painter:
        """The current painter."""
        if self._painter is None:
            background = self.background_colors[1]
            filters = tuple(self.get_line_filters())
            width = max(1, self.scrollable_content_region.width)
            self._painter = Painter(width, self.rich_style, filters, background)
        return self._painter

    def rows_at(self, line: int, count: int) -> list[tuple[int, Row]]:
        """Rows from a line on, each with its block's number; fewer at the end."""
        index = self.page.index
        out: list[tuple[int, Row]] = []
        if line >= index.total:
            return out
        anchor = index.at(line)
        number, skip = anchor.block, anchor.line
        while len(out) < count and number < len(index):
            rows = self.page.rows(number)[: index.height(number)]
            out += [(number, row) for row in rows[skip : skip + count - len(out)]]
            number, skip = number + 1, 0
        return out

    def render_lines(self, crop: Region) -> list[Strip]:
        first = self.scroll_line + crop.y
        painter = self.painter
        selection = self.text_selection
        strips: list[Strip] = []
        for line, (number, row) in enumerate(self.rows_at(first, crop.height), first):
            strips.append(self._paint(painter, line, number, row, selection))
        if len(strips) < crop.height:
            strips += [painter.blank()] * (crop.height - len(strips))
        left, right = crop.column_span
        if (left, right) == (0, painter.width):
            return strips
        return [strip.crop(left, right) for strip in strips]

    def render_line(self, y: int) -> Strip:
        """One line with its offsets, which locate the text under the mouse."""
        line = self.scroll_line + y
        rows = self.rows_at(line, 1)
        strip = self._paint(self.painter, line, *rows[0], None) if rows else self.painter.blank()
        return strip.apply_offsets(0, line - self._origin)

    def marks_of(self, number: int, row: Row) -> list[Mark]:
        """Marks in a row besides the selection."""
        return []

    def has_cursor(self, number: int) -> bool:
        """Whether the block cursor is at this block."""
        return False

    def _paint(self, painter: Painter, line: int, number: int, row: Row, selection: Selection | None) -> Strip:
        marks = self.marks_of(number, row)
        if selection is not None:
            span = selection.get_span(line - self._origin)
            if span is not None:
                length = painter.margin + len(row.text)
                end = length if span[1] < 0 else min(span[1], length)
                marks.append(Mark(span[0], end, self.page.palette.selection))
        cursor = self.page.palette.cursor if self.has_cursor(number) else None
        if marks or cursor is not None:
            return painter.paint_marked(row, marks, cursor)
        if row.painted is None:
            self._painted.append(row)
            if len(self._painted) > MAX_PAINTED:
                self._painted.popleft().painted = None
        return painter.paint(row)

    # --- selection ---

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without margins and gutters (see ``copied``). A selection that starts or ends in another
        widget is limited to the visible part."""
        first, last = self.scroll_line, self.scroll_line + self.view_height - 1
        if selection.start is None and selection.end is None:
            first, last = 0, self.page.index.total - 1
        if selection.start is not None:
            first = selection.start.y + self._origin
        if selection.end is not None:
            last = selection.end.y + self._origin
        margin = self.painter.margin
        parts: list[tuple[Row, str, bool]] = []
        for line, (_, row) in enumerate(self.rows_at(max(0, first), last - first + 1), max(0, first)):
            span = selection.get_span(line - self._origin)
            if span is None:
                continue
            lead = margin + len(row.gutter_text)
            start = max(0, span[0] - lead)
            end = None if span[1] < 0 else max(0, span[1] - lead)
            parts.append((row, row.body[start:end], span[0] < lead))
        return SafeText(copied(parts)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def drop_selection(self) -> None:
        """Clear the selection, which can't survive a new layout."""
        if self.is_attached and self.text_selection is not None:
            self.screen.clear_selection()

    # --- content and scroll position ---

    def set_palette(self, palette: Palette) -> None:
        self._reconfigure(palette=palette)

    def on_mount(self) -> None:
        self._reconfigure()

    def on_resize(self, event: events.Resize) -> None:
        self._reconfigure()

    def change_blocks(self, operations: Iterable[Operation]) -> None:
        """Apply operations with one change of size and one refresh."""
        if not self.is_attached:
            for operation in operations:
                self.page.apply(operation)
            return
        position = self._remember()
        before = self.page.index.total
        for operation in operations:
            self.page.apply(operation)
        self._settle(position)
        if not self.following:
            self.unseen += max(0, self.page.index.total - before)

    def refresh_layout(self) -> None:
        """Lay out again after heights were changed from outside."""
        self._settle(self._remember())

    def _reconfigure(self, *, palette: Palette | None = None, density: Density | None = None) -> None:
        if not self.is_attached:
            self.page.configure(palette=palette, density=density)
            return
        position = self._remember()
        self._unpaint()
        window = self.app.size.height
        if self.page.configure(width=self.painter.inner, window=window, palette=palette, density=density):
            self.drop_selection()
        self._settle(position)

    def _remember(self) -> _Place | None:
        if not self.page.blocks:
            return None
        anchor = self.page.index.at(self.scroll_line)
        return _Place(self.page.blocks.id_at(anchor.block), anchor.line, self.page.index.height(anchor.block))

    def _settle(self, position: _Place | None) -> None:
        """Measure the visible part, set the size, and scroll to the end or back to the remembered position."""
        if self.following or position is None:
            self.page.measure_end(self.view_height)
            target = self._last_line()
        else:
            number = self.page.place(position.block_id)
            if number is None:  # removed, for instance by a rewind: show nothing beyond the end
                self.page.measure_end(self.view_height)
                target = min(self.scroll_line, self._last_line())
            else:
                self.page.measure(number)
                height = self.page.index.height(number)
                line = position.line if height >= position.height else position.line * height // max(1, position.height)
                target = self.page.index.line(Anchor(number, line))
            target = self._measure_from(target)
        self._set_size()
        self._move_to(target)
        self.refresh()

    def _last_line(self) -> int:
        return self.page.last_line(self.view_height)

    def _measure_from(self, line: int) -> int:
        measured, moved = self.page.measure_from(line, self.view_height)
        self._origin += moved
        return measured

    def _set_size(self) -> None:
        size = Size(self.painter.width, self.page.index.total)
        if self.virtual_size != size:
            self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = size.height

    def _move_to(self, line: int) -> None:
        self._moving = True
        try:
            self.scroll_target_y = line
            self.scroll_y = line
        finally:
            self._moving = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving or round(old_value) == round(new_value):
            return
        # A larger view clamps the position to the estimated end, before newly visible blocks are measured.
        at_end = self.scroll_line >= self._last_line()
        line = self._measure_from(self.scroll_line)
        self._set_size()
        if at_end:
            self._settle(None)
        elif line != self.scroll_line:
            self._move_to(line)
        self.following = at_end or self.scroll_line >= self._last_line()
        compat.extend_selection(self)

    def watch_following(self, following: bool) -> None:
        if following:
            self.unseen = 0

    def scroll_to_line(self, line: int) -> None:
        """Scroll a line to the top, as far as possible."""
        self.scroll_y = self.scroll_target_y = min(max(0, line), max(0, self.page.index.total - 1))

    def action_page_up(self) -> None:
        self._look_further_back(whole=False)
        self._scroll_by(1 - self.view_height)

    def _look_further_back(self, *, whole: bool) -> None:
        """At the top of a long session, request the next earlier part, or the ``whole``."""
        if self.earlier and self.scroll_line == 0:
            self.earlier = False
            self.post_message(self.EarlierWanted(whole))

    def show_before(self, block_id: str) -> bool:
        """Scroll to the content before a block. Returns whether the block exists."""
        if self.page.place(block_id) is None:
            return False
        self.following = False
        self._settle(_Place(block_id, 0, 0))
        self._scroll_by(1 - self.view_height)
        return True

    def show_top(self) -> bool:
        """Scroll to the first line and stay there. Returns whether there is one."""
        if not self.page.blocks:
            return False
        self.following = False
        self._settle(_Place(self.page.blocks.id_at(0), 0, 0))
        return True

    def action_page_down(self) -> None:
        self._scroll_by(self.view_height - 1)

    def action_scroll_up(self) -> None:
        self._scroll_by(-1)

    def action_scroll_down(self) -> None:
        self._scroll_by(1)

    def action_scroll_home(self) -> None:
        self._look_further_back(whole=True)
        self.scroll_to_line(0)

    def action_scroll_end(self) -> None:
        self.follow()

    def _scroll_by(self, lines: int) -> None:
        self.scroll_to_line(min(self.scroll_line + lines, self._last_line()))

    def follow(self) -> None:
        """Go to the end and follow it."""
        self.following = True
        if self.is_attached:
            self._settle(None)


_AFTER: Mapping[Density, Density] = {"usual": "full", "full": "short", "short": "usual"}


TICK: Final = 0.5
"""Seconds between two updates of running durations."""


class Transcript(PageView, can_focus=True):
    """Everything that happened in the session, never pruned.

    Colours come from its palette (see ``set_palette``); the app feeds it with ``apply``. Its keys work while it has the
    focus; the app may replace them and run its actions from anywhere.
    """

    FOCUS_ON_CLICK = False
    DEFAULT_CSS = """
    Transcript {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*keymap.transcript(Keymap())]

    search_state: reactive[SearchState] = reactive(SearchState())
    """Search state, for a status line."""
    cursor: reactive[int | None] = reactive[int | None](None)
    """Number of the block at the block cursor."""
    density: reactive[Density] = reactive[Density]("usual")
    """Default form of blocks that were not opened or folded individually."""

    @dataclass
    class CopyRequested(Message):
        """Asks to copy this text. ``what`` names it for the confirmation."""

        text: str
        what: str

    @dataclass
    class EditRequested(Message):
        """Asks to open this in the user's editor: the file ``path`` if set, else the text."""

        text: str
        path: str = ""

    @dataclass
    class AtCompaction(Message):
        """The block cursor is at a compaction that of ``item`` that can be undone, or redone if ``undone``."""

        item: str
        undone: bool

    @dataclass
    class UndoRequested(Message):
        """Asks to undo the compaction of ``item``, or to redo it if ``undone``."""

        item: str
        undone: bool

    @dataclass
    class ContextRequested(Message):
        """Asks for the context in which the block ``item`` was written."""

        item: str

    class Left(Message):
        """The user left the block cursor; the prompt should get the focus."""

    def __init__(
        self,
        palette: Palette = DARK,
        *,
        clock: Callable[[], float] = time.time,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """``clock`` is Unix seconds."""
        super().__init__(palette, name=name, id=id, classes=classes)
        self._reducer = Reducer(self.page.block)
        self._clock = clock
        self._ticker: Timer | None = None
        self._shown = 0
        self._search: Search | None = None

    # --- content ---

    def apply(self, events: Iterable[Event]) -> None:
        """Apply the session's events in order. Costs one change of size and one refresh."""
        operations = self._reducer.reduce(events)
        if operations:
            self.change_blocks(operations)
            self._search_further(operations)
        self._tick_if_needed()

    def change_blocks(self, operations: Iterable[Operation]) -> None:
        """As in ``PageView``; the block cursor stays at its block, or at the next one if that was removed."""
        blocks = self.page.blocks
        current = blocks.id_at(self.cursor) if self.cursor is not None and self.cursor < len(blocks) else None
        super().change_blocks(operations)
        if current is not None and self.cursor is not None:
            index = self.page.place(current)
            self.cursor = index if index is not None else min(self.cursor, len(blocks) - 1) if blocks else None

    def _tick_if_needed(self) -> None:
        """Update durations while a step runs."""
        runs = self._reducer.counts and self.is_attached
        if runs and self._ticker is None:
            self._ticker = self.set_interval(TICK, self._tick)
        elif not runs and self._ticker is not None:
            self._ticker.stop()
            self._ticker = None

    def _tick(self) -> None:
        if self.app.app_focus and (operations := self._reducer.tick(self._clock())):
            self.change_blocks(operations)

    def greet(self, lines: tuple[tuple[str, str], ...]) -> None:
        """Set the greeting of the next new session."""
        self._reducer.greeting = lines

    def advise(self, advice: tuple[TextBlock, ...], *, brief: bool) -> bool:
        """Say in the greeting how to connect a model. Returns whether there is a greeting of a session without one."""
        operations = self._reducer.advise(advice, brief=brief)
        self.change_blocks(operations)
        return bool(operations)

    def show(self, blocks: Sequence[DisplayBlock], title: str = "", over: str = "") -> str:
        """Show something outside the session, for example a slash command's result. Returns its id; ``over`` is the id
        of what it replaces, if that is still there."""
        if not blocks and not title:
            return ""
        self._shown += 1
        shown = [Put(ShownBlock(over or f"shown-{self._shown}", tuple(blocks), title))]
        self.change_blocks(shown)
        self._search_further(shown)
        return shown[0].block.id

    def clear(self) -> None:
        """Remove everything, for a new session."""
        self._reducer = Reducer(self.page.block)
        self.page.clear()
        self.cursor = None
        if self._search is not None:  # continues in what is shown next
            self._search = Search(self.page, self._search.query)
            self.search_state = SearchState(self._search.query)
        self.follow()

    @property
    def first_message(self) -> str:
        """Id of the user's first message shown; empty if there is none."""
        blocks = self.page.blocks
        places = (index for index in range(len(blocks)) if issubclass(blocks.kind_at(index), UserBlock))
        return next((blocks.id_at(index) for index in places), "")

    # --- turns ---

    def action_turn_previous(self) -> None:
        """Scroll the user's previous message to the top."""
        self._go_to_turn(-1)

    def action_turn_next(self) -> None:
        """Scroll the user's next message to the top; after the last one, follow the end."""
        self._go_to_turn(1)

    def _go_to_turn(self, step: Literal[-1, 1]) -> None:
        page = self.page
        if not page.blocks:
            return
        anchor = page.index.at(self.scroll_line + 1)
        """One line further, because the top row is the empty one before a message."""
        index = anchor.block if step < 0 and anchor.line > 1 else anchor.block + step
        last = len(page.blocks) - 1
        while 0 <= index <= last and not issubclass(page.blocks.kind_at(index), UserBlock):
            index += step
        if index > last:
            self.follow()
            return
        if index < 0:
            self.scroll_to_line(0)
            return
        page.measure(index)
        self._set_size()
        top = page.index.top(index)
        if top > self._last_line():
            self.follow()
            return
        self.following = False
        self.scroll_to_line(top)
        if self.cursor is not None:
            self.cursor = index

    # --- block cursor ---

    def has_cursor(self, number: int) -> bool:
        return self.cursor == number

    def action_cursor_previous(self) -> None:
        """Move the block cursor up; initially to the last visible block."""
        self._move_cursor(-1)

    def action_cursor_next(self) -> None:
        """Move the block cursor down."""
        self._move_cursor(1)

    def action_toggle_block(self) -> None:
        """Expand or fold the block at the cursor."""
        if self.cursor is None or self.cursor >= len(self.page.blocks):
            return
        self.drop_selection()
        number = self.cursor
        height = self.page.index.height(number)
        if self.page.toggle(number):
            self.following = self.following and self.page.index.height(number) <= height
            self.refresh_layout()

    def on_click(self, event: events.Click) -> None:
        """Expand a block by a click on its line of hidden rows."""
        line = self.scroll_line + event.y
        for number, row in self.rows_at(line, 1):
            if row.body.endswith(SHOWS_ALL):
                self.cursor = number
                self.action_toggle_block()

    def action_copy_block(self) -> None:
        """Request copying the text of the block at the cursor."""
        if self.cursor is not None and self.cursor < len(self.page.blocks):
            text = for_clipboard(block_text(self.page.blocks[self.cursor]))
            self.post_message(self.CopyRequested(text, "block"))

    def action_edit_block(self) -> None:
        """Request opening the block at the cursor, or its file, in the editor."""
        if self.cursor is None or self.cursor >= len(self.page.blocks):
            return
        block = self.page.blocks[self.cursor]
        self.post_message(self.EditRequested(for_clipboard(block_text(block)), file_of(block)))

    def action_undo_block(self) -> None:
        """Request undoing or redoing the compaction at the cursor."""
        block = self._compaction_here()
        if block is not None:
            self.post_message(self.UndoRequested(block.id, block.status == "undone"))

    def action_context_of_block(self) -> None:
        """Request the context in which the block at the cursor was written."""
        if self.cursor is not None and self.cursor < len(self.page.blocks):
            self.post_message(self.ContextRequested(self.page.blocks[self.cursor].id))

    def can(self, action: str) -> bool:
        """Whether an action of the keymap could do something now."""
        if action in ("find_next", "find_previous"):
            return self._search is not None
        if action == "block_undo":
            return self._compaction_here() is not None
        return self.cursor is not None or not action.startswith("block_")

    def _compaction_here(self) -> CompactionBlock | None:
        """The completed compaction at the cursor, if any."""
        on_block = self.cursor is not None and self.cursor < len(self.page.blocks)
        block = self.page.blocks[self.cursor] if on_block and self.cursor is not None else None
        made = isinstance(block, CompactionBlock) and block.status in ("done", "redone", "undone")
        return block if isinstance(block, CompactionBlock) and made else None

    def action_leave(self) -> None:
        self.cursor = None
        self.post_message(self.Left())

    def action_next_density(self) -> None:
        """Cycle the form of all blocks: usual, full, short."""
        self.density = _AFTER[self.density]

    def watch_cursor(self) -> None:
        self.refresh()
        block = self._compaction_here()
        if block is not None:
            self.post_message(self.AtCompaction(block.id, block.status == "undone"))

    def watch_density(self, density: Density) -> None:
        self._reconfigure(density=density)

    def _move_cursor(self, step: int) -> None:
        index = self.page.index
        last = len(index) - 1
        if last < 0:
            return
        if self.cursor is None:
            number = index.at(self.scroll_line + self.view_height - 1).block
        else:
            number = min(max(self.cursor + step, 0), last)
        while 0 < number < last and index.is_exact(number) and not index.height(number):
            number += step
        self.cursor = number
        self._bring(number)

    def _bring(self, number: int, row: int | None = None) -> None:
        """Scroll as little as needed to show a block, or one of its rows."""
        self.page.measure(number)
        self._set_size()
        top = self.page.index.top(number)
        bottom = top + self.page.index.height(number)
        if row is not None:
            top, bottom = max(0, top + row - 1), top + row + 2
        if top < self.scroll_line or bottom - top >= self.view_height:
            self.scroll_to_line(top)
        elif bottom > self.scroll_line + self.view_height:
            self.scroll_to_line(bottom - self.view_height)

    # --- search ---

    def find(self, query: str) -> int:
        """Search ignoring case, including folded text. Returns the number of matching blocks and scrolls to the
        newest."""
        self._search = Search(self.page, query)
        self.search_state = SearchState(query, 0, len(self._search.blocks))
        self.action_find_previous()
        self.refresh()
        return self.search_state.total

    def action_find_next(self) -> None:
        self._find(1)

    def action_find_previous(self) -> None:
        self._find(-1)

    def _search_further(self, operations: Sequence[Operation]) -> None:
        """Search what arrives during a search, too."""
        search = self._search
        if search is not None and search.take_in(operations):
            self.search_state = SearchState(search.query, search.current, len(search.blocks))

    def clear_find(self) -> None:
        self._search = None
        self.search_state = SearchState()
        self.refresh()

    def marks_of(self, number: int, row: Row) -> list[Mark]:
        if self._search is None:
            return []
        palette = self.page.palette
        lead = self.painter.margin + len(row.gutter_text)
        style = palette.match_current if self._search.is_at(number, row) else palette.match
        return [Mark(lead + start, lead + end, style) for start, end in row_spans(row, self._search.query)]

    def _find(self, step: Literal[-1, 1]) -> None:
        position = self._search.go(step) if self._search is not None else None
        if self._search is None or position is None:
            return
        self.search_state = SearchState(self._search.query, self._search.current, len(self._search.blocks))
        self.following = False
        self._bring(*position)
        self.refresh()
