"""Rows of a block: a pure function of block, width, palette and form."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from swecli.core.protocol.messages import usage_words
from swecli.figures import duration, plural
from swecli.safe_text import SafeText, safe_line, sanitise
from swecli.tui.transcript.blocks import (
    AnswerBlock,
    Block,
    CompactionBlock,
    NoticeBlock,
    ReasoningBlock,
    RewoundBlock,
    SessionBlock,
    ShownBlock,
    ToolBlock,
    TurnEndBlock,
    UserBlock,
)
from swecli.tui.transcript.markdown import markdown_rows
from swecli.tui.transcript.palette import Palette, on_band
from swecli.tui.transcript.rows import (
    SHOWS_ALL,
    Gutter,
    Row,
    Styled,
    blank,
    cells,
    cut,
    hanging,
    indent,
    plain_rows,
    segment,
)
from swecli.tui.transcript.tool_rows import INDENT, fold, render_displays, render_image, render_text, tool_rows

MARGIN: Final = 1
"""Cells on the left for the block cursor; the same on the right."""
NARROW: Final = 10
"""Width below which there are no margins."""


class Mark(Struct, frozen=True):
    """Characters ``start`` to ``end`` of a row (including gutter and margin) with another style."""

    start: int
    end: int
    style: Style


class Painter(Struct, frozen=True):
    """Converts rows to strips ``width`` cells wide. Filters are those of the app, for example for NO_COLOR."""

    width: int
    base: Style
    filters: tuple[LineFilter, ...]
    background: Color

    @property
    def margin(self) -> int:
        return MARGIN if self.width >= NARROW else 0

    @property
    def inner(self) -> int:
        """Cells for rows."""
        return max(1, self.width - 2 * self.margin)

    def paint(self, row: Row) -> Strip:
        """The cached strip of a row."""
        strip = row.painted
        if strip is None:
            strip = row.painted = self._filter(self._plain(row))
        return strip

    def paint_marked(self, row: Row, marks: Sequence[Mark], cursor: Style | None) -> Strip:
        """A strip with some text in other styles, and the block cursor in the margin."""
        strip = self._plain(row)
        text = strip.text
        for mark in marks:
            start, end = cells(text[: mark.start]), cells(text[: mark.end])
            if end > start:
                parts = strip.divide([start, end, strip.cell_length])
                marked = Strip(Segment.apply_style(parts[1], post_style=mark.style), end - start)
                strip = Strip.join([parts[0], marked, parts[2]])
        if cursor is not None and self.margin:
            rest = strip.crop(self.margin, strip.cell_length)
            strip = Strip.join([Strip([Segment("▌", self.base + cursor)], 1), rest])
        return self._filter(strip)

    def blank(self) -> Strip:
        return self._filter(Strip([Segment(" " * self.width, self.base)], self.width))

    def _plain(self, row: Row) -> Strip:
        base = self.base
        fill = base + row.fill if row.fill is not None else base
        segments = [Segment(" " * self.margin, base)] if self.margin else []
        used = self.margin
        for text, style, _ in row.segments():
            segments.append(Segment(text, base + style if style else base))
            used += cells(text)
        if used < self.width:
            segments.append(Segment(" " * (self.width - used), fill))
        return Strip(segments, max(used, self.width)).adjust_cell_length(self.width, base)

    def _filter(self, strip: Strip) -> Strip:
        for line_filter in self.filters:
            strip = strip.apply_filter(line_filter, self.background)
        return strip


MAX_CACHED: Final = 200
"""Blocks whose rows are cached. Few, because garbage collection walks over all of them."""
MAX_CACHED_ROWS: Final = 8_000


class Drawn(Struct, frozen=True):
    """Rows of one block and how it was drawn: in its long form (``expanded``), after an empty row (``gap``)."""

    expanded: bool
    gap: bool
    rows: list[Row]


class RowCache:
    """Rows by block id; discards the least recently used."""

    def __init__(self) -> None:
        self._drawn: OrderedDict[str, Drawn] = OrderedDict()
        self._rows = 0

    def get(self, block_id: str, *, expanded: bool, gap: bool) -> list[Row] | None:
        """Cached rows of a block, if it was last drawn in this form."""
        drawn = self._drawn.get(block_id)
        if drawn is None or drawn.expanded != expanded or drawn.gap != gap:
            return None
        self._drawn.move_to_end(block_id)
        return drawn.rows

    def keep(self, block_id: str, drawn: Drawn) -> None:
        """Cache the rows of a block, replacing earlier ones."""
        self.drop(block_id)
        self._drawn[block_id] = drawn
        self._rows += len(drawn.rows)
        while len(self._drawn) > 1 and (len(self._drawn) > MAX_CACHED or self._rows > MAX_CACHED_ROWS):
            _, old = self._drawn.popitem(last=False)
            self._rows -= len(old.rows)

    def drop(self, block_id: str) -> None:
        """Discard the rows of a block."""
        old = self._drawn.pop(block_id, None)
        if old is not None:
            self._rows -= len(old.rows)

    def clear(self) -> None:
        self._drawn.clear()
        self._rows = 0


LONG_PASTE: Final = (12, 4)
"""First and last rows shown of a folded user message."""
SHORT_PASTE: Final = (2, 1)
"""Same for the short form."""
_PREVIEW: Final = 400
"""Characters of reasoning used for its one-line form."""
_OUTCOMES: Final = {
    "done": "✓ done",
    "interrupted": "⊘ interrupted",
    "blocked": "■ not sent",
    "limit": "■ limit reached",
    "error": "✗ error",
}


_WAITED: Final = 1.0
"""Seconds of waiting from which the line shows them."""

_WORK: Final = (ToolBlock, ReasoningBlock, NoticeBlock, CompactionBlock)


def gap_before(previous: type[Block] | None, kind: type[Block]) -> bool:
    """Whether an empty row separates two blocks of these kinds; none between lines of work."""
    if previous is None:
        return False
    return not (issubclass(previous, _WORK) and issubclass(kind, _WORK))


def render_block(
    block: Block, width: int, palette: Palette, *, expanded: bool = False, short: bool = False
) -> list[Row]:
    """All rows of a block at a width in cells: everything (``expanded``), only its one line (``short``), or that line
    and the start of its output."""
    width = max(1, width)
    match block:
        case UserBlock():
            return _user(block, width, palette, expanded=expanded, short=short)
        case AnswerBlock():
            return markdown_rows(block.text, width, palette) + answer_ending(block, width, palette)
        case ReasoningBlock():
            return _reasoning(block, width, palette, expanded=expanded)
        case ToolBlock():
            return tool_rows(block, width, palette, expanded=expanded, short=short)
        case NoticeBlock():
            return _notice(block, width, palette)
        case CompactionBlock():
            return _compaction(block, width, palette, expanded=expanded)
        case TurnEndBlock():
            return _turn_end(block, width, palette)
        case SessionBlock():
            return _session(block, width, palette)
        case ShownBlock():
            title = Styled(safe_line(block.title), palette.heading).rows(width) if block.title else []
            return title + render_displays(block.blocks, width, palette)
        case RewoundBlock():
            return _rewound(block, width, palette, expanded=expanded)


def answer_ending(block: AnswerBlock, width: int, palette: Palette) -> list[Row]:
    """Note below an answer that was cut off, unless the turn's end reports it."""
    if block.status in ("interrupted", "error") and block.detail:
        return hanging(Styled(safe_line(f"✗ stopped early: {block.detail}"), palette.warning), width, 2)
    return []


def _user(block: UserBlock, width: int, palette: Palette, *, expanded: bool, short: bool) -> list[Row]:
    """User message on a band, or behind a line if the theme has no band."""
    band = palette.band
    colours = palette if band is None else on_band(palette, band)
    mark: Gutter = (segment(SafeText("┃ " if band is None else "› "), colours.user_mark),)
    rest: Gutter = mark if band is None else (segment(SafeText("  "), colours.text),)
    inner = max(1, width - 2)
    text = block.title or block.text
    rows = plain_rows(sanitise(text), inner, colours.user, mark, rest) if text else []
    if block.title and expanded and block.text:
        rows += plain_rows(sanitise(block.text), inner, colours.dim, rest, rest)
    if not expanded:
        rows = fold(rows, *(SHORT_PASTE if short else LONG_PASTE), inner, colours, rest)
    for image in block.images:
        rows += indent(render_image(image, inner, colours), rest if rows else mark)
    for row in rows:
        row.fill = band
    return rows


def _reasoning(block: ReasoningBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    live = block.status == "running"
    words = "Reasoning" if block.duration is None else f"Reasoning {duration(block.duration)}"
    head = Styled(SafeText("✻ "), palette.accent).add(SafeText(words), palette.reasoning)
    if block.status in ("interrupted", "error") and block.detail:
        head.add(safe_line(f" stopped early: {block.detail}"), palette.warning)
    text = block.text.strip()
    if expanded and text:
        body = plain_rows(sanitise(text), max(1, width - 2), palette.reasoning)
        return hanging(head, width, 2) + indent(body, INDENT)
    room = width - cells(head.text) - 2
    if text and room > 4:
        preview = text[-_PREVIEW:] if live else text[:_PREVIEW]
        line = safe_line(" ".join(preview.split()))
        if len(text) > _PREVIEW and not live:
            line = SafeText(line + " …")
        head.add(SafeText("  ")).add(cut(line, room, "end" if live else "start"), palette.dim)
    return hanging(head, width, 2)


def _notice(block: NoticeBlock, width: int, palette: Palette) -> list[Row]:
    sign, style = {
        "info": ("· ", palette.dim),
        "warning": ("! ", palette.warning),
        "error": ("✗ ", palette.error),
    }[block.level]
    mark: Gutter = (segment(SafeText(sign), style),)
    inner = max(1, width - 2)
    rows = plain_rows(sanitise(block.text), inner, style, mark, INDENT)
    if block.hint:
        rows += plain_rows(sanitise(block.hint), inner, palette.dim, INDENT)
    return rows


def _compaction(block: CompactionBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    name = "Clearing" if block.clearing else "Compaction"
    text, style = {
        "running": (f"Compacting the context: {block.words} …", palette.accent),
        "done": (block.words, palette.dim if block.clearing else palette.text),
        "redone": (block.words, palette.text),
        "undone": (f"{name} of {block.tokens_before:,} tokens (undone)", palette.warning),
        "failed": (f"Could not compact: {block.reason}", palette.error),
    }[block.status]
    mark: Gutter = (segment(SafeText("⇣ "), palette.accent),)
    rows = plain_rows(safe_line(text), max(1, width - 2), style, mark, INDENT)
    if block.summary and expanded:
        rows += indent(markdown_rows(block.summary, max(1, width - 2), palette, palette.dim), INDENT)
    return rows


def _turn_end(block: TurnEndBlock, width: int, palette: Palette) -> list[Row]:
    words = [_OUTCOMES[block.outcome]]
    when = "after" if block.outcome == "interrupted" else "in"
    if block.duration and block.outcome != "blocked":
        words[0] += f" {when} {duration(block.duration - block.waited)}"
    if block.waited >= _WAITED:
        words[0] += f" (waited {duration(block.waited)} for you)"
    if tokens := usage_words(block.usage, estimated=block.estimated):
        words[0] += f" · {tokens}"
    if block.reason:
        words.append(block.reason)
    style = {"done": palette.dim, "error": palette.error}.get(block.outcome, palette.warning)
    return hanging(Styled(safe_line(": ".join(words)), style), width, 2)


def _session(block: SessionBlock, width: int, palette: Palette) -> list[Row]:
    if block.lines:
        return _first_screen(block, width, palette)
    words = "Continued" if block.resumed else "New session"
    model = f"{block.model} at {block.address}" if block.address else block.model
    head = f"{words} · swecli {block.version}"
    text = SafeText("")
    short = ((words, block.cwd), (head,), (words,))
    for parts in ((head, model, block.mode, block.cwd), (head, block.model, block.mode, block.cwd), *short):
        text = safe_line(" · ".join(part for part in parts if part))
        if cells(text) <= width:
            break
    return Styled(cut(text, width, "end"), palette.dim).rows(width)


def _first_screen(block: SessionBlock, width: int, palette: Palette) -> list[Row]:
    """The greeting, cut so that the informative part remains: the end of a folder's path, the start of everything
    else. Labels stand in a column, in a narrow window directly before their text, in a tiny one nowhere; the program's
    name is that of the folder. Advice on connecting a model stands below the folder, in place of the model and the
    hint."""
    from swecli.tui import greeting  # not needed by the first frame

    if is_centred(block, width):
        return _centred_screen(block, width, palette)
    shown_lines = greeting.beside_advice(block.lines, brief=block.brief) if block.advice else block.lines
    labels = max(len(label) for label, _ in block.lines) + 2
    rows: list[Row] = []
    for label, text in shown_lines:
        folder = label == greeting.FOLDER
        named = f"swecli {block.version}" if folder else label
        beside = named.ljust(labels) if width > 3 * labels else f"{named.partition(' (')[0]} " if width >= 30 else ""
        name = safe_line(beside) if label else SafeText("")
        shown = cut(safe_line(text), max(1, width - cells(name)), "end" if folder else "start")
        style = palette.text if label else palette.dim
        rows += Styled(name, palette.accent if folder else palette.dim).add(shown, style).rows(width)
        if folder:
            for advice in block.advice:
                rows += render_text(advice, width, palette)
    return rows


def is_centred(block: Block, width: int) -> bool:
    """Whether this is the greeting of a wide window."""
    if not isinstance(block, SessionBlock) or not block.lines:
        return False
    from swecli.tui import greeting

    return width >= greeting.WIDE


def _centred_screen(block: SessionBlock, width: int, palette: Palette) -> list[Row]:
    """The greeting of a wide window, below a small mark in the theme's colours."""
    from swecli.tui import greeting

    name = safe_line(f" swecli {block.version}")
    mark = Styled(SafeText(" " * ((width - cells(name) - 2) // 2)), palette.dim)
    mark = mark.add(SafeText("▟"), palette.accent).add(SafeText("▙"), palette.success).add(name, palette.heading)
    lines = greeting.beside_advice(block.lines, brief=block.brief) if block.advice else block.lines
    first, *others = greeting.centred(lines, advised=bool(block.advice))
    shown = [
        *Styled(cut(safe_line(first), width), palette.text).rows(width),
        *(row for advice in block.advice for row in render_text(advice, width, palette)),
        *(row for text in others for row in Styled(cut(safe_line(text), width), palette.dim).rows(width)),
    ]
    rows = [*mark.rows(width), blank()]
    for row in shown:
        rows += indent([row], (segment(SafeText(" " * ((width - cells(row.text)) // 2))),))
    return rows if block.brief else [blank(), *rows, blank()]


def _unanswered(block: Block) -> bool:
    """Whether it belongs to a message that was interrupted before any answer."""
    return isinstance(block, UserBlock) or (isinstance(block, TurnEndBlock) and block.outcome == "interrupted")


def _rewound(block: RewoundBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    count = len(block.blocks)
    hint = "" if expanded else f" · {palette.expand} {SHOWS_ALL}"
    why = f": {block.reason.removesuffix('.')}" if block.reason else ""
    undo = " · /rewind undo" if block.undoable else ""
    text = f"Rewound {plural(count, 'entry')}{why}{undo}{hint}"
    if block.not_sent:
        text = f"Not sent; your message is back in the prompt. {block.reason}{hint}"
    sign = "■ " if block.not_sent else "⟲ "
    if not block.reason and all(map(_unanswered, block.blocks)):
        sign, text = "⊘ ", f"Interrupted before an answer; your message is back in the prompt{hint}"
    mark: Gutter = (segment(SafeText(sign), palette.warning),)
    rows = plain_rows(safe_line(text), max(1, width - 2), palette.warning, mark, INDENT)
    if expanded:
        previous: type[Block] | None = None
        for inner in block.blocks:
            if gap_before(previous, type(inner)):
                rows.append(blank())
            rows += indent(render_block(inner, max(1, width - 2), palette), INDENT)
            previous = type(inner)
    return rows
