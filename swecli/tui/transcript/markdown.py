"""Markdown, drawn block by block from markdown-it's tokens. ``MarkdownStream`` adds streaming.

Reference definitions are disabled, so that later text never changes a block; HTML is shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field
from rich.style import Style

from swecli.core.protocol.blocks import MarkdownBlock, TableBlock
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import SafeText, safe_line, sanitise
from swecli.tui.transcript.code import CodeLines
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import (
    BULLETS,
    Gutter,
    ListMark,
    Row,
    Styled,
    blank,
    cells,
    cut,
    gutter_width,
    indent,
    plain_rows,
    segment,
    wrap,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


MAX_INLINE: Final = 20_000
"""Characters of a paragraph beyond which its source is shown instead."""


def inline_lines(token: Token, palette: Palette, base: Style) -> list[Styled]:
    """Lines of an inline token. Line breaks of the source are kept; links are followed by their address."""
    if len(token.content) > MAX_INLINE:
        return [Styled(SafeText(line), base) for line in sanitise(token.content).split("\n")]
    return _Lines(palette, base).feed(token.children or [])


def _plain(tokens: Sequence[Token]) -> str:
    """Plain text of an image's description."""
    parts = (_plain(token.children or []) if token.type == "image" else token.content for token in tokens)
    return "".join(
        " " if token.type in ("softbreak", "hardbreak") else part for token, part in zip(tokens, parts, strict=True)
    )


def _bare(address: str) -> str:
    """An address without the parts that people omit, so that a link doesn't appear twice."""
    return re.sub(r"^(https?://|mailto:)", "", address).rstrip("/")


class _Lines:
    def __init__(self, palette: Palette, base: Style) -> None:
        self.lines = [Styled()]
        self._palette = palette
        self._styles = [base]
        self._links: list[tuple[str, list[str]]] = []
        self._opened = {
            "strong_open": palette.bold,
            "em_open": palette.emphasis,
            "s_open": palette.strike,
            "link_open": palette.link,
        }

    def feed(self, tokens: Sequence[Token]) -> list[Styled]:
        for token in tokens:
            self._token(token)
        return self.lines

    def _token(self, token: Token) -> None:
        kind = token.type
        if kind in self._opened:
            self._styles.append(self._styles[-1] + self._opened[kind])
            if kind == "link_open":
                self._links.append((str(token.attrs.get("href", "")), []))
        elif kind.endswith("_close"):
            if len(self._styles) > 1:
                self._styles.pop()
            if kind == "link_close" and self._links:
                self._address(*self._links.pop())
        elif kind in ("softbreak", "hardbreak"):
            self.lines.append(Styled())
        elif kind == "code_inline":
            self._add(token.content, self._styles[-1] + self._palette.inline_code)
        elif kind == "image":
            alt = _plain(token.children or []) or "image"
            self._add(f"[{alt}]({token.attrs.get('src', '')})", self._styles[-1] + self._palette.link)
        else:
            self._add(token.content, self._styles[-1])

    def _address(self, href: str, text: list[str]) -> None:
        shown = "".join(text)
        if href and _bare(href) != _bare(shown):
            self._add(f" ({href})", self._styles[-1] + self._palette.dim)

    def _add(self, text: str, style: Style) -> None:
        if self._links:
            self._links[-1][1].append(text)
        for number, line in enumerate(sanitise(text).split("\n")):
            if number:
                self.lines.append(Styled())
            self.lines[-1].add(SafeText(line), style)


Align = Literal["left", "center", "right"]
NARROWEST: Final = 6
"""Minimum width of a squeezed column in cells."""
TALLEST: Final = 6
"""Maximum rows of a cell; the rest is cut."""
SEPARATOR: Final = SafeText(" │ ")
MOST_STACKED: Final = 40
"""Maximum columns of a table whose columns are shown one below the other."""
DIVIDER: Final = SafeText(" · ")


def render_table(block: TableBlock, width: int, palette: Palette) -> list[Row]:
    rows = plain_rows(safe_line(block.title), width, palette.strong) if block.title else []
    head = [Styled(safe_line(cell), palette.table_head) for cell in block.headers]
    body = [[Styled(safe_line(cell)) for cell in row] for row in block.rows]
    aligns: Sequence[Align] = ("left", *("right" for _ in block.headers[1:])) if block.figures else ()
    return rows + table_rows(head, body, aligns, width, palette)


def table_rows(
    head: Sequence[Styled], body: Sequence[Sequence[Styled]], aligns: Sequence[Align], width: int, palette: Palette
) -> list[Row]:
    """Rows of a table; each cell is one line of styled text. If its columns don't fit, one column, in the form of
    ``_stacked``."""
    columns = max([len(head), *(len(row) for row in body)], default=0)
    if columns == 0:
        return []
    natural = [1] * columns
    for row in (head, *body):
        for number, cell in enumerate(row):
            natural[number] = max(natural[number], cells(cell.text))
    widths = column_widths(natural, width)
    if len(widths) < columns:
        return _stacked(head, body, columns, width, palette)
    out: list[Row] = []
    if any(cell.text for cell in head):
        out += _line(head, widths, aligns, width, palette)
        rule = SafeText("─┼─".join("─" * size for size in widths))
        out += Styled(cut(rule, width), palette.rule).rows(width)
    for row in body:
        out += _line(row, widths, aligns, width, palette)
    return out


def _stacked(
    head: Sequence[Styled], body: Sequence[Sequence[Styled]], columns: int, width: int, palette: Palette
) -> list[Row]:
    """Each row of the table as its first cell and, indented below it, its other cells, each after the name of its
    column. Of a table with more than ``MOST_STACKED`` columns, the last ones are left out."""
    gutter: Gutter = (segment(SafeText("  ")),) if width > 4 else ()
    room = width - 2 * len(gutter)
    names = [cell.text for cell in head[1:MOST_STACKED]] if body else []
    out: list[Row] = []
    for first, *others in body or [head]:
        title = Styled(SafeText("" if first.text else "-"), palette.dim)
        for part in first.segments():
            title.add(SafeText(part.text), part.style or palette.strong)
        out += title.rows(width)
        line = Styled()
        for number, cell in enumerate(others[: MOST_STACKED - 1]):
            if not cell.text:
                continue
            name = SafeText(f"{names[number]} ") if number < len(names) and names[number] else SafeText("")
            if line.text and cells(line.text) + len(DIVIDER) + cells(name) + cells(cell.text) > room:
                out += indent(line.rows(room), gutter)
                line = Styled()
            elif line.text:
                line.add(DIVIDER, palette.rule)
            line.add(name, palette.dim)
            for part in cell.segments():
                line.add(SafeText(part.text), part.style or palette.text)
        out += indent(line.rows(room), gutter) if line.text else []
    if columns > MOST_STACKED:
        more = SafeText(f"… {columns - MOST_STACKED} more columns do not fit")
        out += Styled(more, palette.dim).rows(width)
    return out


def column_widths(natural: Sequence[int], width: int) -> list[int]:
    """Widths of the shown columns: the widest are squeezed first, down to ``NARROWEST``; columns that still don't fit
    are dropped from the right."""
    gap = len(SEPARATOR)
    count = 0
    used = -gap
    for size in natural:
        used += min(size, NARROWEST) + gap
        if used > width and count:
            break
        count += 1
    widths = list(natural[:count])
    over = sum(widths) + gap * (count - 1) - width
    while over > 0:
        widest = max(widths)
        if widest <= min(NARROWEST, width) and count > 1:
            break
        places = [number for number, size in enumerate(widths) if size == widest]
        second = max((size for size in widths if size < widest), default=0)
        target = max(second, NARROWEST if count > 1 else 1, widest - -(-over // len(places)))
        target = min(target, widest - 1)
        for number in places:
            step = min(widest - target, over)
            widths[number] -= step
            over -= step
    return widths


def _line(
    cells_of_row: Sequence[Styled], widths: Sequence[int], aligns: Sequence[Align], width: int, palette: Palette
) -> list[Row]:
    pieces = [
        wrap(cell.text, size)[:TALLEST] if cell.text else [] for cell, size in zip(cells_of_row, widths, strict=False)
    ]
    out: list[Row] = []
    for number in range(max([1, *(len(parts) for parts in pieces)])):
        line = Styled()
        for column, size in enumerate(widths):
            if column:
                line.add(SEPARATOR, palette.rule)
            parts = pieces[column] if column < len(pieces) else []
            used = 0
            align = aligns[column] if column < len(aligns) else "left"
            if number < len(parts):
                cell, piece = cells_of_row[column], parts[number]
                text = SafeText(cell.text[piece.start : piece.end])
                last = number == TALLEST - 1 and piece.end < len(cell.text)
                used = min(size, cells(text) + last)
                left = {"left": 0, "right": size - used, "center": (size - used) // 2}[align]
                line.add(SafeText(" " * left))
                used += left
                if last or cells(text) > size:
                    line.add(cut(SafeText(text + "…"), size), palette.dim)
                else:
                    for part in cell.segments(piece.start, piece.end):
                        line.add(SafeText(part.text), part.style or palette.text)
            if column < len(widths) - 1:
                line.add(SafeText(" " * (size - used)))
        out += line.rows(max(width, cells(line.text)), words=False)
    return out


MAX_NESTING: Final = 40
"""Maximum nesting to draw; a deeper block is shown as source."""
_LISTS: Final = ("bullet_list_open", "ordered_list_open")
_BREAKING: Final = lazy_pattern("\r\n|[\x00\r\ud800-\udfff]")


class Unit(Struct, frozen=True):
    """A top-level block: its tokens and its source lines ``start`` to ``stop``."""

    tokens: Sequence[Token]
    start: int
    stop: int

    @property
    def kind(self) -> str:
        return self.tokens[0].type

    @property
    def is_list(self) -> bool:
        return self.kind in _LISTS

    @property
    def list_key(self) -> str:
        """Equal for two lists that would merge if adjacent."""
        return self.kind + self.tokens[0].markup


@cache
def parser() -> MarkdownIt:
    """The configured parser; markdown-it is imported when the first markdown is drawn."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    return markdown.enable(["table", "strikethrough"]).disable("reference")


def prepare(text: str) -> str:
    """The source with newline as the only line end, which is how the parser and this module count lines."""
    if not _BREAKING.search(text):
        return text
    return _BREAKING.sub(lambda match: "\n" if match[0] == "\r\n" else sanitise(match[0]), text)


def units(source: str) -> list[Unit]:
    """The top-level blocks of a prepared source."""
    tokens = parser().parse(source)
    out: list[Unit] = []
    first = 0
    for number, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            start, stop = tokens[first].map or (0, 0)
            out.append(Unit(tokens[first : number + 1], start, stop))
            first = number + 1
    return out


def render_markdown(block: MarkdownBlock, width: int, palette: Palette) -> list[Row]:
    return markdown_rows(block.text, width, palette)


def markdown_rows(text: str, width: int, palette: Palette, base: Style | None = None) -> list[Row]:
    """All rows of a markdown text; ``base`` is its default style."""
    source = prepare(text)
    drawer = Drawer(width, palette, base or palette.text)
    out: list[Row] = []
    for unit in units(source):
        rows = drawer.unit(unit, source)
        if out and rows:
            out.append(blank())
        out += rows
    return out


class Drawer:
    def __init__(self, width: int, palette: Palette, base: Style) -> None:
        self._width = max(1, width)
        self._palette = palette
        self._base = base

    def unit(self, unit: Unit, source: str, first_number: int | None = None) -> list[Row]:
        """Rows of a top-level block. ``first_number`` overrides the start of an ordered list."""
        if max(token.level for token in unit.tokens) >= MAX_NESTING - 2:
            text = "\n".join(source.split("\n")[unit.start : unit.stop]).rstrip()
            return plain_rows(sanitise(text), self._width, self._base)
        return self._block(unit.tokens, self._width, self._base, 0, first_number)

    def code(self, lines: Sequence[SafeText], language: str, *, alone: bool = False) -> list[Row]:
        """Rows of a top-level code block."""
        return self._code(lines, language, self._width, alone=alone)

    def _blocks(self, tokens: Sequence[Token], width: int, base: Style, depth: int, *, in_list: bool) -> list[Row]:
        out: list[Row] = []
        first = 0
        level = tokens[0].level if tokens else 0
        for number, token in enumerate(tokens):
            if token.level == level and token.nesting <= 0:
                rows = self._block(tokens[first : number + 1], width, base, depth)
                if out and rows and not (in_list and tokens[first].type in _LISTS):
                    out.append(blank())
                out += rows
                first = number + 1
        return out

    def _block(
        self, tokens: Sequence[Token], width: int, base: Style, depth: int, first_number: int | None = None
    ) -> list[Row]:
        token = tokens[0]
        palette = self._palette
        match token.type:
            case "paragraph_open":
                return self._inline(tokens[1], width, base)
            case "heading_open":
                style = palette.heading if token.tag in ("h1", "h2") else palette.heading_small
                return self._inline(tokens[1], width, base + style)
            case "bullet_list_open" | "ordered_list_open":
                return self._list(tokens, width, base, depth, first_number)
            case "blockquote_open":
                gutter: Gutter = (segment(SafeText("▎ "), palette.rule),)
                inner = self._blocks(tokens[1:-1], max(1, width - 2), base + palette.quote, depth, in_list=False)
                return indent(inner, gutter)
            case "fence" | "code_block":
                lines = [SafeText(line) for line in sanitise(token.content.removesuffix("\n")).split("\n")]
                return self._code(lines, token.info.split()[0] if token.info.split() else "", width)
            case "hr":
                return Styled(SafeText("─" * width), palette.rule).rows(width)
            case "table_open":
                return self._table(tokens, width, base)
            case "html_block":
                return plain_rows(sanitise(token.content.rstrip("\n")), width, palette.dim)
            case _:
                return plain_rows(sanitise(token.content), width, base) if token.content else []

    def _inline(self, token: Token, width: int, base: Style) -> list[Row]:
        out: list[Row] = []
        for line in inline_lines(token, self._palette, base):
            out += line.rows(width)
        return out

    def _list(
        self, tokens: Sequence[Token], width: int, base: Style, depth: int, first_number: int | None
    ) -> list[Row]:
        ordered = tokens[0].type == "ordered_list_open"
        number = int(tokens[0].attrs.get("start", 1)) if first_number is None else first_number
        out: list[Row] = []
        first = 1
        level = tokens[0].level + 1
        for index, token in enumerate(tokens):
            if token.level != level or token.type != "list_item_close":
                continue
            marker = f"{number}{tokens[0].markup} " if ordered else BULLETS[min(depth, len(BULLETS) - 1)]
            out += self._item(tokens[first + 1 : index], marker, width, base, depth + 1)
            number += 1
            first = index + 1
        return out

    def _item(self, tokens: Sequence[Token], marker: str, width: int, base: Style, depth: int) -> list[Row]:
        head: Gutter = (segment(ListMark(marker), self._palette.accent),)
        size = gutter_width(head)
        rest: Gutter = (segment(ListMark(" " * size)),)
        _show_task(tokens)
        rows = self._blocks(tokens, max(1, width - size), base, depth, in_list=True) or [blank()]
        for row in rows:
            row.gutter = rest + row.gutter
        rows[0].gutter = head + rows[0].gutter[1:]
        return rows

    def _code(self, lines: Sequence[SafeText], language: str, width: int, *, alone: bool = False) -> list[Row]:
        code = CodeLines(lines or [SafeText()], language.lower(), self._palette.tokens, alone=alone)
        gutter: Gutter = (segment(SafeText("  ")),) if width > 4 else ()
        out: list[Row] = []
        for number in range(len(code.lines)):
            out += code.rows(number, max(1, width - gutter_width(gutter)), gutter)
        return out

    def _table(self, tokens: Sequence[Token], width: int, base: Style) -> list[Row]:
        head: list[Styled] = []
        body: list[list[Styled]] = []
        aligns: list[Align] = []
        for number, token in enumerate(tokens):
            if token.type == "tr_open":
                body.append([])
            elif token.type in ("th_open", "td_open"):
                is_head = token.type == "th_open"
                style = base + self._palette.table_head if is_head else base
                cell = _joined(inline_lines(tokens[number + 1], self._palette, style))
                if is_head:
                    head.append(cell)
                    align = str(token.attrs.get("style", ""))
                    aligns.append("right" if "right" in align else "center" if "center" in align else "left")
                else:
                    body[-1].append(cell)
        return table_rows(head, [row for row in body if row], aligns, width, self._palette)


def _show_task(tokens: Sequence[Token]) -> None:
    """Replace ``[ ]`` and ``[x]`` at the start of an item by boxes."""
    if len(tokens) < 2 or tokens[0].type != "paragraph_open" or not tokens[1].children:
        return
    first = tokens[1].children[0]
    if first.type == "text" and first.content[:4].lower() in ("[ ] ", "[x] "):
        first.content = ("☐" if first.content[1] == " " else "☑") + first.content[3:]


def _joined(lines: Sequence[Styled]) -> Styled:
    if len(lines) == 1:
        return lines[0]
    out = Styled()
    for number, line in enumerate(lines):
        if number:
            out.add(SafeText(" "))
        for part in line.segments():
            out.add(SafeText(part.text), part.style or Style())
    return out


LARGE: Final = 8_000
"""Characters of unfinished text beyond which it is redrawn only after growing by ``1 / SLOW``."""
SLOW: Final = 50
_FENCE: Final = lazy_pattern(r" {0,3}(`{3,}|~{3,})([^\n]*)\n")


class _Fence(Struct):
    """An open top-level code block."""

    indent: int
    marker: str
    language: str
    first_row: int
    lines: list[SafeText] = field(default_factory=lambda: [])

    def closes(self, line: str) -> bool:
        bare = line.rstrip(" \t")
        inner = bare.lstrip(" ")
        return len(bare) - len(inner) <= 3 and len(inner) >= len(self.marker) and set(inner) == {self.marker[0]}

    def content(self, line: str) -> SafeText:
        column = offset = 0
        while column < self.indent and line[offset : offset + 1] in (" ", "\t"):
            column += 1 if line[offset] == " " else 4 - column % 4
            offset += 1
        return sanitise(" " * (column - self.indent) + line[offset:])


class MarkdownStream:
    """Rows of a markdown text that arrives in pieces. After ``finish`` they equal those of the whole text."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.rows: list[Row] = []
        self.length = 0
        """Characters received."""
        self._drawer = Drawer(width, palette, palette.text)
        self._tail = ""
        self._held = ""
        self._frozen = 0
        """Number of final rows."""
        self._list: tuple[str, int] | None = None
        """Kind of the list that the tail continues, and the number of its next item."""
        self._fence: _Fence | None = None
        self._drawn = 0
        """Length of the tail when last drawn."""
        self._changed = 0

    def feed(self, text: str) -> int:
        """Add a piece. Returns the number of the first row that may have changed."""
        self.length += len(text)
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = prepare(text[: len(text) - len(self._held)])
        self._tail += text
        frozen, self._changed = self._frozen, len(self.rows)
        if "\n" in text:
            self._freeze()
        grown = len(self._tail) - self._drawn
        if self._frozen == frozen and len(self._tail) > LARGE and 0 <= grown < len(self._tail) // SLOW:
            return self._changed
        self._draw_tail()
        return self._changed

    def finish(self) -> None:
        """Mark the text as complete."""
        self._tail += prepare(self._held)
        self._held = ""
        self._freeze()
        fence = self._fence
        if fence is None:
            self._draw_tail()
            return
        if self._tail.strip(" \t") and not fence.closes(self._tail):
            fence.lines.append(fence.content(self._tail))
        self._tail = ""
        self._close_fence(fence)

    def _freeze(self) -> None:
        while True:
            if self._fence is not None and not self._take_code(self._fence):
                return
            complete = self._tail[: self._tail.rfind("\n") + 1]
            if not complete or complete.isspace() or not self._freeze_blocks(complete):
                return

    def _freeze_blocks(self, source: str) -> bool:
        """Draw the final rows of blocks that another block follows. Returns whether a code block was opened."""
        parsed = units(source)
        if not parsed:
            return False
        for unit in parsed[:-1]:
            self._freeze_unit(unit, source)
        last = parsed[-1]
        lines = source.split("\n")
        opening = _FENCE.match(lines[last.start] + "\n") if last.kind == "fence" else None
        if opening is not None:
            self._tail = _from_line(self._tail, last.start + 1)
            self._truncate(self._frozen)
            if self._frozen:
                self.rows.append(blank())
            self._list = None
            info = opening[2].split()
            indent = len(opening[0]) - len(opening[0].lstrip(" "))
            self._fence = _Fence(indent, opening[1], info[0] if info else "", len(self.rows))
            self._frozen = len(self.rows)
            return True
        cut = last.start
        if last.is_list:
            cut = self._freeze_items(last, lines)
        self._tail = _from_line(self._tail, cut)
        return False

    def _freeze_unit(self, unit: Unit, source: str) -> None:
        self._truncate(self._frozen)
        self.rows += self._gap_and_rows(unit, source)
        self._frozen = len(self.rows)
        self._list = None

    def _freeze_items(self, unit: Unit, lines: list[str]) -> int:
        """Draw the final rows of all items of an unfinished list but the last. Returns the line where the rest
        begins."""
        starts = [t.map[0] for t in unit.tokens if t.type == "list_item_open" and t.level == 1 and t.map]
        rest = starts[-1]
        if len(starts) < 2 or len(lines[rest]) - len(lines[rest].lstrip(" ")) > 3 or "\t" in lines[rest][:4]:
            return unit.start
        finished = "\n".join(lines[unit.start : rest]) + "\n"
        items = units(finished)[0]
        number = self._first_number(unit)
        self._truncate(self._frozen)
        self.rows += self._gap_and_rows(items, finished)
        self._frozen = len(self.rows)
        self._list = (unit.list_key, number + len(starts) - 1)
        return rest

    def _first_number(self, unit: Unit) -> int:
        if self._list is not None and self._list[0] == unit.list_key:
            return self._list[1]
        return int(unit.tokens[0].attrs.get("start", 1))

    def _gap_and_rows(self, unit: Unit, source: str) -> list[Row]:
        goes_on = self._list is not None and unit.is_list and self._list[0] == unit.list_key
        number = self._first_number(unit) if goes_on else None
        rows = self._drawer.unit(unit, source, number)
        return [blank(), *rows] if rows and self.rows and not goes_on else rows

    def _take_code(self, fence: _Fence) -> bool:
        """Add complete lines to the open code block. Returns whether it was closed."""
        *lines, self._tail = self._tail.split("\n")
        for number, line in enumerate(lines):
            if fence.closes(line):
                self._tail = "\n".join([*lines[number + 1 :], self._tail])
                self._close_fence(fence)
                return True
            self._truncate(self._frozen)
            content = fence.content(line)
            fence.lines.append(content)
            self.rows += self._drawer.code([content], fence.language, alone=True)
            self._frozen = len(self.rows)
        return False

    def _close_fence(self, fence: _Fence) -> None:
        """Redraw the code block, because its colours depend on its whole text."""
        self._truncate(fence.first_row)
        self.rows += self._drawer.code(fence.lines, fence.language)
        self._frozen = len(self.rows)
        self._fence = None
        self._drawn = 0

    def _draw_tail(self) -> None:
        self._truncate(self._frozen)
        self._drawn = len(self._tail)
        if self._fence is not None:
            if self._tail:
                self.rows += self._drawer.code([self._fence.content(self._tail)], self._fence.language, alone=True)
            return
        going_on = self._list
        for unit in units(self._tail):
            self.rows += self._gap_and_rows(unit, self._tail)
            self._list = None
        self._list = going_on

    def _truncate(self, count: int) -> None:
        del self.rows[count:]
        self._changed = min(self._changed, count)


def _from_line(text: str, line: int) -> str:
    """The text from this line on."""
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return text[offset:]
