"""Markdown, drawn block by block with markdown-it's tokens. Nothing here knows of streaming.

Reference definitions are left off, so that a block never changes by what comes after it; HTML is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from rich.style import Style

from swecli.core.protocol.blocks import MarkdownBlock
from swecli.safe_text import SafeText, sanitise
from swecli.tui.transcript.code import CodeLines
from swecli.tui.transcript.inline import inline_lines
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Gutter, Row, Styled, blank, gutter_width, indent, plain_rows, segment
from swecli.tui.transcript.table import Align, table_rows

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_NESTING: Final = 40
"""Levels of nesting that are drawn; a block that goes deeper is shown as it was written."""
BULLETS: Final = ("• ", "◦ ", "▪ ")
_LISTS: Final = ("bullet_list_open", "ordered_list_open")
_BREAKING: Final = re.compile("\r\n|[\x00\r\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Unit:
    """A block at the top level: its tokens and its lines ``start`` to ``stop`` of the source."""

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
        """Equal for two lists that would be one if they stood together."""
        return self.kind + self.tokens[0].markup


@cache
def parser() -> MarkdownIt:
    """The configured parser; markdown-it is imported when the first markdown is drawn."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    return markdown.enable(["table", "strikethrough"]).disable("reference")


def prepare(text: str) -> str:
    """Source that the parser reads line by line as everything else here does: newline is the only line end."""
    if not _BREAKING.search(text):
        return text
    return _BREAKING.sub(lambda found: "\n" if found[0] == "\r\n" else sanitise(found[0]), text)


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
    """All rows of a markdown text."""
    return markdown_rows(block.text, width, palette)


def markdown_rows(text: str, width: int, palette: Palette, base: Style | None = None) -> list[Row]:
    """All rows of a markdown text; ``base`` is the style of its running text."""
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
    """Draws blocks at a width."""

    def __init__(self, width: int, palette: Palette, base: Style) -> None:
        self._width = max(1, width)
        self._palette = palette
        self._base = base

    def unit(self, unit: Unit, source: str, first_number: int | None = None) -> list[Row]:
        """The rows of a top-level block. ``first_number`` overrides where an ordered list starts."""
        if max(token.level for token in unit.tokens) >= MAX_NESTING - 2:
            text = "\n".join(source.split("\n")[unit.start : unit.stop]).rstrip()
            return plain_rows(sanitise(text), self._width, self._base)
        return self._block(unit.tokens, self._width, self._base, 0, first_number)

    def code(self, lines: Sequence[SafeText], language: str, *, alone: bool = False) -> list[Row]:
        """The rows of a code block at the top level."""
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
                lines = _code_lines(token.content)
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
        for place, token in enumerate(tokens):
            if token.level != level or token.type != "list_item_close":
                continue
            marker = f"{number}{tokens[0].markup} " if ordered else BULLETS[min(depth, len(BULLETS) - 1)]
            out += self._item(tokens[first + 1 : place], marker, width, base, depth + 1)
            number += 1
            first = place + 1
        return out

    def _item(self, tokens: Sequence[Token], marker: str, width: int, base: Style, depth: int) -> list[Row]:
        mark = SafeText(marker)
        head: Gutter = (segment(mark, self._palette.accent),)
        size = gutter_width(head)
        rest: Gutter = (segment(SafeText(" " * size)),)
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
    """Turns ``[ ]`` and ``[x]`` at the start of an item into boxes."""
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


def _code_lines(content: str) -> list[SafeText]:
    return [SafeText(line) for line in sanitise(content.removesuffix("\n")).split("\n")]
