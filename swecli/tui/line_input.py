"""One-line input and list rows for panels and screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input

from swecli.safe_text import safe_line, visible_part
from swecli.tui.keymap import keymap_of
from swecli.tui.prompt.graphemes import ends_in_mark, spans


def component_style(widget: Widget, name: str) -> Style:
    """Style from the style sheet, including reverse, which Textual drops and which marks the selection without
    colours."""
    reverse = widget.get_component_styles(name).text_style.reverse
    return widget.get_visual_style(name, partial=True) + Style(reverse=reverse)


class Row(Struct, frozen=True):
    """One choice. A label beside a detail takes at most half of the line."""

    label: str
    detail: str = ""


def with_count(line: Content, first: int, height: int, total: int, width: int, style: Style) -> Content:
    """The last visible row with the range of visible ones at its end, if some are hidden and it keeps half of the
    width."""
    count = f"  {first + 1:,}-{first + height:,} of {total:,}"
    if height >= total or len(count) >= width // 2:
        return line
    return line.truncate(width - len(count), ellipsis=True, pad=True) + Content(count).stylize(style)


class Rows(Widget, can_focus=False):
    """List of one-line rows with a selected one, which is kept visible. The last line ends with the visible range while
    some rows are hidden."""

    DEFAULT_CSS = """
    Rows { height: auto; color: $foreground; }
    Rows > .rows--detail { color: $foreground-muted; text-style: $muted-style; }
    Rows > .rows--selected { color: $accent; text-style: $chosen-style; background: $panel; }
    """
    COMPONENT_CLASSES = {"rows--detail", "rows--selected"}

    def __init__(self, *, limit: int, id: str) -> None:
        super().__init__(id=id)
        self._limit = limit
        self._rows: list[Row] = []
        self._widest = 0
        """Length of the longest label."""
        self.selected = 0

    def show(self, rows: Sequence[Row]) -> None:
        taller = len(rows) != len(self._rows)
        self._rows = list(rows)
        self._widest = max((len(row.label) for row in self._rows), default=0)
        self.selected = 0
        self.refresh(layout=taller)

    def move(self, step: int) -> None:
        """Move the selection, wrapping around; from no selection to the first or the last row."""
        if self._rows:
            start = self.selected if self.selected >= 0 or step > 0 else 0
            self.selected = (start + step) % len(self._rows)
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(len(self._rows), self._limit, max(1, viewport.height // 2))

    def render_line(self, y: int) -> Strip:
        height, width = self.size.height, self.size.width
        first = max(0, min(self.selected - height + 1 + (height > 2), len(self._rows) - height))
        index = first + y
        base = self.visual_style
        if index >= len(self._rows) or width < 1:
            return Strip.blank(max(0, width), self.rich_style)
        row = self._rows[index]
        chosen = index == self.selected
        marker = "› " if chosen else "  "
        line = Content(marker + safe_line(row.label))
        if row.detail and width > 30:
            column = min(self._widest + 2, width // 2)
            line = line.truncate(column, ellipsis=True, pad=True)
            detail = Content("  " + safe_line(row.detail))
            line = line + (detail if chosen else detail.stylize(self.get_visual_style("rows--detail", partial=True)))
        if y == height - 1:
            dim = self.get_visual_style("rows--detail", partial=True)
            line = with_count(line, first, height, len(self._rows), width, dim)
        line = line.truncate(width, ellipsis=True, pad=True)
        if chosen:
            line = line.stylize(component_style(self, "rows--selected"))
        return Strip(list(line.render_segments(base)), width)


class LineInput(Input):
    """Input that handles each key in order: a binding would run after letters typed behind it. ``intercept`` sees every
    key first and returns whether it handled it; ``keeps`` sees
    keys and pastes before that and returns whether they are for somebody else."""

    last_key: events.Key | None = None
    """Newest key received here."""

    def __init__(
        self,
        text: str = "",
        *,
        placeholder: str = "",
        password: bool = False,
        intercept: Callable[[events.Key], bool] = lambda event: False,
        keeps: Callable[[events.Key | events.Paste], bool] = lambda event: False,
        id: str | None = None,
    ) -> None:
        super().__init__(text, placeholder=placeholder, password=password, id=id, compact=True, select_on_focus=False)
        self.cursor_blink = False
        self._intercept = intercept
        self._keeps = keeps
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

    def action_delete_left(self) -> None:
        place = self.cursor_position
        if not self.selection.is_empty or place == 0:
            super().action_delete_left()
        else:
            alone = ends_in_mark(self.value[:place])
            self.delete(place - 1 if alone else self._character(place - 1)[0], place)

    def action_delete_right(self) -> None:
        if not self.selection.is_empty:
            super().action_delete_right()
        else:
            self.delete(self.cursor_position, self._character(self.cursor_position)[1])

    def action_cursor_left(self, select: bool = False) -> None:
        super().action_cursor_left(select)
        if not select:
            self.cursor_position = self._character(self.cursor_position)[0]

    def action_cursor_right(self, select: bool = False) -> None:
        before = self.cursor_position
        super().action_cursor_right(select)
        if not select and self.cursor_position == before + 1:
            self.cursor_position = self._character(before)[1]

    def _character(self, place: int) -> tuple[int, int]:
        """Span of what a reader takes for the character at a place."""
        return next((span for span in spans(self.value) if span[0] <= place < span[1]), (place, place + 1))

    def put(self, text: str) -> None:
        """Replace the text and put the cursor at its end."""
        self.value = text
        self.cursor_position = len(text)

    async def _on_key(self, event: events.Key) -> None:
        self.last_key = event
        await self.take_key(event)

    async def take_key(self, event: events.Key) -> None:
        if self._keeps(event):
            return
        if not self._intercept(event):
            if event.key == "enter":
                await self.action_submit()
            elif (edit := self._edits.get(self._edit_of(event.key))) is not None:
                edit()
            else:
                await super()._on_key(event)
                return
        event.stop()
        event.prevent_default()

    def _on_paste(self, event: events.Paste) -> None:
        """Insert the paste on one line: spaces replace its line breaks."""
        if self._keeps(event):
            return
        event.stop()
        event.prevent_default()
        lines = visible_part(event.text).expandtabs(1).split("\n")
        words = filter(None, (line.strip() for line in lines)) if lines[1:] else lines
        self.replace(" ".join(words), *self.selection)

    def _edit_of(self, key: str) -> str:
        """Editing action of a key, same as in the prompt."""
        return {"ctrl+h": "backspace"}.get(key) or keymap_of(self).action("prompt", key) or key
