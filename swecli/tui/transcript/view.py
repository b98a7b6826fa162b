"""The transcript widget: takes events, shows blocks, and lets the user walk, fold, copy and search them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import reactive

from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.events import Event
from swecli.tui import bindings
from swecli.tui.keymap import Keymap
from swecli.tui.preferences import Density
from swecli.tui.transcript.blocks import AnswerBlock, Put, ShownBlock
from swecli.tui.transcript.finder import Search, row_spans
from swecli.tui.transcript.painter import Mark
from swecli.tui.transcript.palette import DARK, Palette
from swecli.tui.transcript.plain import block_text, file_of, for_clipboard
from swecli.tui.transcript.reducer import Reducer
from swecli.tui.transcript.rows import ENTER_SHOWS_ALL, Row
from swecli.tui.transcript.scroll import BlockScroll

_AFTER: Mapping[Density, Density] = {"usual": "full", "full": "short", "short": "usual"}


@dataclass(frozen=True, slots=True)
class Found:
    """State of a search: ``current`` counts from 1 among the ``total`` blocks that match; 0 before the first."""

    query: str = ""
    current: int = 0
    total: int = 0


class Transcript(BlockScroll, can_focus=True):
    """Everything that happened in the session, never pruned.

    Colours come from its palette (see ``set_palette``); the app feeds it with ``apply``. Its keys work while it
    has the focus; the app gives it other ones and may run its actions from anywhere.
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
    BINDINGS: ClassVar[list[BindingType]] = [*bindings.transcript(Keymap())]

    found: reactive[Found] = reactive(Found())
    """The search, for a status line."""
    cursor: reactive[int | None] = reactive[int | None](None)
    """Number of the block that the block cursor is at."""
    density: reactive[Density] = reactive[Density]("usual")
    """How much blocks show unless they were opened or folded one by one."""

    @dataclass
    class CopyRequested(Message):
        """The user wants this text in the clipboard. ``what`` names it for the confirmation."""

        text: str
        what: str

    @dataclass
    class EditRequested(Message):
        """The user wants to open this in their editor: a file's path where ``path`` is set, else the text."""

        text: str
        path: str = ""

    class Left(Message):
        """The user is done with the block cursor: the prompt should have the focus."""

    def __init__(
        self, palette: Palette = DARK, *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(palette, name=name, id=id, classes=classes)
        self._reducer = Reducer(self.page.block)
        self._shown = 0
        self._search: Search | None = None

    # --- content ---

    def apply(self, events: Iterable[Event]) -> None:
        """Take events of the session in, in order. Costs one change of size and one refresh."""
        operations = self._reducer.reduce(events)
        if operations:
            self.change_blocks(operations)

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None:
        """Show something that is not part of the session, for example what a slash command answers."""
        if blocks or title:
            self._shown += 1
            self.change_blocks([Put(ShownBlock(f"shown-{self._shown}", tuple(blocks), title))])

    def clear(self) -> None:
        """Forget everything, for a new session."""
        self._reducer = Reducer(self.page.block)
        self.page.clear()
        self.cursor = None
        self.clear_find()
        self.follow()

    def last_answer(self) -> str:
        """Text of the newest answer of the model; empty when there is none."""
        blocks = self.page.blocks
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place] if issubclass(blocks.kind_at(place), AnswerBlock) else None
            if isinstance(block, AnswerBlock) and block.text:
                return for_clipboard(block.text)
        return ""

    # --- block cursor ---

    def has_cursor(self, number: int) -> bool:
        return self.cursor == number

    def action_cursor_previous(self) -> None:
        """Move the block cursor up; from nowhere to the last block in sight."""
        self._move_cursor(-1)

    def action_cursor_next(self) -> None:
        """Move the block cursor down."""
        self._move_cursor(1)

    def action_toggle_block(self) -> None:
        """Show all of the block at the cursor, or its short form again."""
        if self.cursor is None or self.cursor >= len(self.page.blocks):
            return
        self.drop_selection()
        number = self.cursor
        height = self.page.index.height(number)
        if self.page.toggle(number):
            self.following = self.following and self.page.index.height(number) <= height
            self.refresh_layout()

    def on_click(self, event: events.Click) -> None:
        """A click on the line that says how much is hidden shows it."""
        line = self.scroll_line + event.y
        for number, row in self.rows_at(line, 1):
            if row.body.endswith(ENTER_SHOWS_ALL):
                self.cursor = number
                self.action_toggle_block()

    def action_copy_block(self) -> None:
        """Ask for the text of the block at the cursor to be copied."""
        if self.cursor is not None and self.cursor < len(self.page.blocks):
            text = for_clipboard(block_text(self.page.blocks[self.cursor]))
            self.post_message(self.CopyRequested(text, "block"))

    def action_edit_block(self) -> None:
        """Ask for the block at the cursor, or the file that it changed or read, to be opened in the editor."""
        if self.cursor is None or self.cursor >= len(self.page.blocks):
            return
        block = self.page.blocks[self.cursor]
        self.post_message(self.EditRequested(for_clipboard(block_text(block)), file_of(block)))

    def action_leave(self) -> None:
        """Let the block cursor go."""
        self.cursor = None
        self.post_message(self.Left())

    def action_next_density(self) -> None:
        """From the usual form of all blocks to the full one, then to the short one, and back."""
        self.density = _AFTER[self.density]

    def watch_cursor(self) -> None:
        self.refresh()

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
        """Scroll as little as needed to have a block, or one of its rows, in sight."""
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
        """Look for a text, in any case, also in what is folded. Returns how many blocks hold it; the newest of
        them is brought into sight."""
        self._search = Search(self.page, query)
        self.found = Found(query, 0, len(self._search.blocks))
        self.action_find_previous()
        self.refresh()
        return self.found.total

    def action_find_next(self) -> None:
        """Go to the next match."""
        self._find(1)

    def action_find_previous(self) -> None:
        """Go to the match before."""
        self._find(-1)

    def clear_find(self) -> None:
        """End the search."""
        self._search = None
        self.found = Found()
        self.refresh()

    def marks_of(self, number: int, row: Row) -> list[Mark]:
        if self._search is None:
            return []
        palette = self.page.palette
        lead = self.painter.margin + len(row.gutter_text)
        style = palette.match_current if self._search.is_at(number, row) else palette.match
        return [Mark(lead + start, lead + end, style) for start, end in row_spans(row, self._search.query)]

    def _find(self, step: Literal[-1, 1]) -> None:
        place = self._search.go(step) if self._search is not None else None
        if self._search is None or place is None:
            return
        self.found = Found(self._search.query, self._search.current, len(self._search.blocks))
        self.following = False
        self._bring(*place)
        self.refresh()
