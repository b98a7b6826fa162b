"""A transcript as one self-contained HTML page: style, script and images are included, and its policy forbids the
browser to load anything. All text is made safe first, then escaped; hostile text has neither a tag nor an invisible
character."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final

from swecli.block_text import block_lines, diff_lines, shortened
from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileListBlock,
    ImageBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    TodoBlock,
)
from swecli.core.protocol.messages import DocumentPart, ImagePart
from swecli.export.markdown import call_words, document_words, ended_words, facts_of, when
from swecli.export.transcript import ContextPoint, Entry, Transcript, Turn
from swecli.figures import duration, percent, tokens
from swecli.safe_text import safe_line, sanitise, without_sequences

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST: Final = 60_000
"""Characters of one output. The JSON export has all of it."""
LONGEST_MARKDOWN: Final = 200_000
"""Characters up to which an answer is rendered; a longer one is shown as source."""
IMAGE_BYTES: Final = 2_000_000
"""Of the largest image in a page."""
IMAGES_BYTES: Final = 12_000_000
"""Of all images in a page."""
_IMAGE_KINDS: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""Kinds of images to show, with the first bytes of each."""
_CHART: Final = 480
_HEIGHT: Final = 56
"""Pixels of the chart's height; its width grows with the number of bars."""
_MAX_BARS: Final = 100
_NARROWEST: Final = 9
_BAR_WIDTH: Final = 24
"""Pixels of one bar."""


def page_of(transcript: Transcript) -> str:
    """The page."""
    page = _Page()
    style, script = _part("page.css"), _part("page.js")
    return Template(_part("page.html")).substitute(
        title=_text(transcript.heading.title or "Session", line=True),
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        style=style,
        script=script,
        facts="".join(
            f"<dt>{_text(name)}</dt><dd>{_text(value, line=True)}</dd>" for name, value in facts_of(transcript)
        ),
        chart=_chart(transcript.turns),
        turns="\n".join(page.turn(turn) for turn in transcript.turns),
        footer="Exported by swecli. Known keys and passwords are masked. This page loads no external resources.",
    )


@cache
def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """For the Content-Security-Policy of a page."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(text: str, *, line: bool = False) -> str:
    return escape(safe_line(text) if line else sanitise(text))


class _Page:
    """Renders entries; images count against the page's limit."""

    def __init__(self) -> None:
        self._left = IMAGES_BYTES
        self._markdown = _renderer()

    def turn(self, turn: Turn) -> str:
        name = f"Turn {turn.number} · {when(turn.at)}" if turn.number else "Before the first turn"
        entries = "\n".join(self._entry(entry) for entry in turn.entries)
        ended = ended_words(turn)
        closing = f'\n<p class="ended">{_text(ended, line=True)}</p>' if ended else ""
        later = "".join(f"\n{self._entry(entry)}" for entry in turn.later)
        return f'<section class="turn" id="t{turn.number}"><h2>{name}</h2>\n{entries}{closing}{later}\n</section>'

    def _entry(self, entry: Entry) -> str:
        images = "".join((*map(self._image, entry.images), *map(_document, entry.documents)))
        match entry.kind:
            case "user":
                text = entry.title if entry.name == "command" and entry.title else entry.text
                return f'<div class="entry user">{_text(text)}{images}</div>'
            case "answer":
                note = "" if entry.status == "ok" else f"<p><em>{_text(entry.detail or entry.status)}</em></p>"
                return f'<div class="entry answer">{self._rendered(entry.text)}{note}</div>'
            case "reasoning":
                return _folded("reasoning", "Reasoning", "", _text(entry.text.strip("\n")))
            case "note":
                return _folded("notice", entry.title or "Note to the model", "", _code(entry.text))
            case "notice":
                return f'<p class="entry notice {entry.level}">{_text(entry.text)}</p>'
            case _:
                return self._call(entry, images)

    def _call(self, entry: Entry, images: str) -> str:
        took = duration(entry.duration) if entry.duration is not None and entry.duration >= 1 else ""
        status = "" if entry.status == "ok" else entry.status
        state = ", ".join((*_distinct(status, entry.detail, entry.decision), *filter(None, (took,))))
        kind = "tool" if entry.status == "ok" else "tool failed"
        inside = [self._block(block) for block in entry.blocks]
        if not any(isinstance(block, DiffBlock | TerminalBlock) for block in entry.blocks) and entry.arguments:
            inside.insert(0, _code(entry.arguments))
        if not entry.blocks and entry.text.strip():
            inside.append(_code(without_sequences(entry.text)))
        is_edit = any(isinstance(block, DiffBlock) for block in entry.blocks)
        return _folded(kind, call_words(entry) or "Command", state, "".join(inside) + images, unfolded=is_edit)

    def _block(self, block: DisplayBlock) -> str:
        match block:
            case TextBlock(text=text):
                return _code(text)
            case MarkdownBlock(text=text):
                return self._rendered(text)
            case DiffBlock():
                return _diff(block)
            case TableBlock():
                return _table(block)
            case TerminalBlock() | FileListBlock() | TodoBlock() | ImageBlock():
                return _code(without_sequences("\n".join(block_lines(block))))

    def _rendered(self, text: str) -> str:
        if len(text) > LONGEST_MARKDOWN:
            return _code(text)
        return self._markdown(sanitise(text))

    def _image(self, image: ImagePart) -> str:
        size = len(image.data) * 3 // 4
        name = image.name or "image"
        if size <= min(IMAGE_BYTES, self._left) and _is_image(image):
            self._left -= size
            data = "".join(image.data.split())
            return f'<p><img alt="{_text(name, line=True)}" src="data:{image.media_type};base64,{data}"></p>'
        return f"<p><em>Image {_text(name, line=True)}, {size:,} bytes: not included in this page</em></p>"


def _document(document: DocumentPart) -> str:
    return _folded("tool", document_words(document), "", _code(without_sequences(document.text)))


def _is_image(image: ImagePart) -> bool:
    begin = _IMAGE_KINDS.get(image.media_type)
    try:
        return begin is not None and base64.b64decode(image.data, validate=True).startswith(begin)
    except (binascii.Error, ValueError):
        return False


def _distinct(*parts: str) -> list[str]:
    """The parts without those that another one begins with: "rejected" and "rejected: use integers" are one."""
    known = list(dict.fromkeys(filter(None, parts)))
    return [part for part in known if not any(other != part and other.startswith(part) for other in known)]


def _folded(kind: str, title: str, state: str, inside: str, *, unfolded: bool = False) -> str:
    shown = f' <span class="state">{_text(state, line=True)}</span>' if state else ""
    summary = f"<summary>{_text(title, line=True)}{shown}</summary>"
    opened = " open" if unfolded else ""
    return f'<details class="entry {kind}"{opened}>{summary}<div class="inside">{inside}</div></details>'


def _code(text: str) -> str:
    return f"<pre>{_text(shortened(text.strip(chr(10)), LONGEST))}</pre>"


def _diff(block: DiffBlock) -> str:
    text = shortened("\n".join(diff_lines(block)), LONGEST)
    lines = (f'<span class="{_diff_kind(line)}">{_text(line) or " "}</span>' for line in text.split("\n"))
    return f'<pre class="diff">{"".join(lines)}</pre>'


def _diff_kind(line: str) -> str:
    if line.startswith(("@@", "---", "+++", "\\", "…")):
        return "at"
    return {"+": "add", "-": "del"}.get(line[:1], "same")


def _table(block: TableBlock) -> str:
    side = ' class="right"' if block.figures else ""

    def row(cells: Iterable[str], tag: str) -> str:
        drawn = (f"<{tag}{side if column else ''}>{_text(cell)}</{tag}>" for column, cell in enumerate(cells))
        return f"<tr>{''.join(drawn)}</tr>"

    body = "".join(row(cells, "td") for cells in block.rows)
    return f'<div class="scroll"><table>{row(block.headers, "th")}{body}</table></div>'


def _renderer() -> Callable[[str], str]:
    """Markdown to HTML without the text's own tags, styles or pictures; links lead to web pages only."""
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    markdown.validateLink = lambda url: url.lower().startswith(("http://", "https://", "mailto:"))

    def rendered(text: str) -> str:
        parsed = markdown.parse(text)
        for token in parsed:
            for each in (token, *(token.children or ())):
                _plain(each)
        return _wide(markdown, parsed)

    return rendered


def _plain(token: Any) -> None:
    """Express alignment as a class, because the page's policy allows no style; links open in a new tab without a
    referrer."""
    style = str(token.attrs.pop("style", "")) if token.attrs else ""
    if style:
        token.attrSet("class", style.rpartition(":")[2].strip())
    if token.type == "link_open":
        token.attrSet("rel", "noreferrer noopener")
        token.attrSet("target", "_blank")


def _wide(markdown: MarkdownIt, parsed: Sequence[Any]) -> str:
    html = markdown.renderer.render(parsed, markdown.options, {})
    return html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


# --- the chart -------------------------------------------------------------------------------------------------


def _chart(turns: Sequence[Turn]) -> str:
    """One bar for each request, or for the last one of each turn if there are many: the fill of the context, and the
    part from the cache."""
    shown = [(turn, number, point) for turn in turns for number, point in enumerate(turn.context, 1)]
    if len(shown) > _MAX_BARS:
        shown = [(turn, len(turn.context), turn.context[-1]) for turn in turns if turn.context]
    if not shown:
        return ""
    most = max(max(point.used, point.effective) for _, _, point in shown) or 1
    wide = max(_NARROWEST, min(_BAR_WIDTH, _CHART // len(shown)))
    bars = "".join(_bar(index * wide, wide, *bar, most) for index, bar in enumerate(shown))
    last = shown[-1][2]
    room = f", the line at {tokens(last.effective)} is the limit" if last.effective > 0 else ""
    newest = ", ".join(f"turn {turn.number} {tokens(point.used)}" for turn, _, point in shown[-8:])
    return (
        f'<figure class="chart"><figcaption>Context of the requests by turn, {tokens(last.used)} tokens at the '
        f"end. The light part came from the provider's cache{room}; a mark on top is a "
        f'compaction.</figcaption><div><svg width="{len(shown) * wide}" height="{_HEIGHT}" role="img" '
        f'aria-label="Context per turn: {newest}">{bars}</svg></div></figure>'
    )


def _bar(left: int, wide: int, turn: Turn, number: int, point: ContextPoint, most: int) -> str:
    def high(size: int) -> float:
        return round(size / most * (_HEIGHT - 8), 1)

    used, cached, room = high(point.used), high(min(point.cached, point.used)), _HEIGHT - high(point.effective)
    share = f" ({percent(point.used / point.effective)})" if point.effective > 0 else ""
    title = f"Turn {turn.number}, request {number}: {point.used:,} tokens{share}, {point.cached:,} from the cache"
    inner = f'x="{left + 1}" width="{wide - 3}"'
    mark = f'<rect class="compacted" {inner} y="0" height="4"/>' if point.compacted_from else ""
    band = "odd" if turn.number % 2 else "even"
    return (
        f'<a class="{band}" href="#t{turn.number}"><title>{escape(title)}</title>'
        f'<rect class="used" {inner} y="{_HEIGHT - used}" height="{used}"/>'
        f'<rect class="cached" {inner} y="{_HEIGHT - cached}" height="{cached}"/>{mark}'
        f'<line class="room" x1="{left}" x2="{left + wide}" y1="{room}" y2="{room}"/></a>'
    )
