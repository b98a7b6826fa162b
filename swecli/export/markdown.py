"""A transcript as a Markdown document, to read or to paste into an issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from swecli.block_text import block_lines, diff_lines, shortened
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, MarkdownBlock, TerminalBlock
from swecli.core.protocol.messages import DocumentPart, ImagePart, usage_words
from swecli.export.transcript import Entry, Transcript, Turn
from swecli.figures import cut_line, dollars, duration, percent, plural
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line, sanitise, without_sequences
from swecli.tool_words import call_title

LONGEST = 20_000
"""Characters of one output. The JSON export has all of it."""
_TARGET = 160
"""Characters of a call's target."""
_SPECIAL = lazy_pattern(r"([\\`*_\[\]<>|#])")


def markdown_of(transcript: Transcript) -> str:
    """The document, with control characters and other invisible ones made visible."""
    lines = [*_head(transcript)]
    for turn in transcript.turns:
        lines += _turn(turn)
    return "\n".join(lines).rstrip("\n") + "\n"


def when(timestamp: float) -> str:
    """Unix seconds as a date and time in UTC; "unknown" for 0, and for a time that no calendar has."""
    if timestamp <= 0:
        return "unknown"
    try:
        return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):  # from an edited file, or a damaged database
        return "unknown"


def facts_of(transcript: Transcript) -> list[tuple[str, str]]:
    """Known facts about a session for the top of an export: names and values."""
    head = transcript.heading
    facts = (
        ("Session", head.session),
        ("Folder", head.cwd),
        ("Model", head.model),
        ("Began", when(head.created)),
        ("Last used", when(head.updated)),
        ("Turns", str(sum(turn.number > 0 for turn in transcript.turns))),
        ("Tokens", usage_words(transcript.usage)),
        ("Cost", dollars(transcript.cost) if transcript.cost is not None else ""),
        ("Unreadable", f"{transcript.unreadable:,} events" if transcript.unreadable else ""),
        ("swecli", head.swecli),
    )
    return [(name, value) for name, value in facts if value]


def ended_words(turn: Turn) -> str:
    """The end of a turn, on one line; empty for everything before the first."""
    if not turn.number:
        return ""
    words = [turn.outcome or "did not end"]
    if turn.duration:
        words.append(duration(turn.duration))
    if tokens := usage_words(turn.usage):
        words.append(tokens)
    if turn.cost is not None:
        words.append(dollars(turn.cost))
    if turn.context and turn.context[-1].effective > 0:
        last = turn.context[-1]
        words.append(f"context {percent(last.used / last.effective)}")
    return ", ".join(words) + (f": {turn.reason}" if turn.reason else "")


def call_words(entry: Entry) -> str:
    """Verb and target of a call on one line, as on the screen."""
    target = cut_line(entry.title, _TARGET)
    return call_title(entry.name, target)


def _head(transcript: Transcript) -> Iterator[str]:
    yield f"# {_escaped(transcript.heading.title or 'Session')}"
    yield ""
    yield from (f"- {name}: {_escaped(value)}" for name, value in facts_of(transcript))
    yield ""


def _turn(turn: Turn) -> Iterator[str]:
    if turn.number:
        yield f"## Turn {turn.number}"
        yield ""
    for entry in turn.entries:
        yield from _entry(entry)
        yield ""
    if words := ended_words(turn):
        yield f"_Turn {_escaped(words)}_"
        yield ""
    for entry in turn.later:
        yield from _entry(entry)
        yield ""


def _entry(entry: Entry) -> Iterator[str]:
    match entry.kind:
        case "user":
            text = entry.title if entry.name == "command" and entry.title else entry.text
            yield "**You**"
            yield ""
            yield from _quoted(text)
        case "answer":
            yield sanitise(entry.text).strip("\n")
            if entry.status != "ok":
                yield f"\n_{_escaped(entry.detail or entry.status)}_"
        case "reasoning":
            yield "_Reasoning_"
            yield ""
            yield from _quoted(entry.text)
        case "note":
            yield f"_{_escaped(entry.title or 'Note to the model')}_"
            if entry.text.strip():
                yield ""
                yield from _quoted(shortened(entry.text, LONGEST))
        case "notice":
            mark = {"info": "", "warning": "Warning: ", "error": "Error: "}[entry.level]
            yield f"_{mark}{_escaped(entry.text)}_"
        case _:
            yield from _call(entry)
    yield from (f"\n{_image(image)}" for image in entry.images)
    for document in entry.documents:
        yield f"\n_{_escaped(document_words(document))}_"
        if document.text:
            yield ""
            yield from _fenced(without_sequences(document.text).split("\n"))


def document_words(document: DocumentPart) -> str:
    """The name and size of a PDF file."""
    return f"PDF file {document.name or 'without a name'}, {plural(document.pages, 'page')}"


def _call(entry: Entry) -> Iterator[str]:
    status = "" if entry.status == "ok" else f", {entry.status}"
    blocks = entry.blocks
    below = entry.text if not blocks else "\n".join(line for block in blocks for line in block_lines(block))
    detail = "" if " ".join(below.split()).startswith(" ".join(entry.detail.split())) else entry.detail
    about = "; ".join(filter(None, (detail, entry.decision)))
    told = f"{_escaped(status)} ({_escaped(about)})" if about else _escaped(status)
    yield f"**{_escaped(call_words(entry) or 'Command')}**{told}"
    if not blocks and entry.text.strip():
        yield ""
        yield from _fenced(without_sequences(entry.text).strip("\n").split("\n"))
    for block in blocks:
        yield ""
        yield from _block(block)


def _block(block: DisplayBlock) -> Iterable[str]:
    match block:
        case MarkdownBlock(text=text):
            return [sanitise(text).strip("\n")]
        case DiffBlock():
            return _fenced(diff_lines(block), "diff")
        case TerminalBlock():
            return _fenced([without_sequences(line) for line in block_lines(block)], "console")
        case _:
            return _fenced(block_lines(block))


def _fenced(lines: Sequence[str], language: str = "") -> Iterator[str]:
    """Lines as code, in a fence that none of them can close."""
    text = sanitise(shortened("\n".join(lines), LONGEST))
    runs = re.findall(r"`{3,}", text)
    fence = "`" * max(3, *(len(run) + 1 for run in runs), 3)
    yield f"{fence}{language}"
    yield text
    yield fence


def _quoted(text: str) -> Iterator[str]:
    yield from (f"> {line}".rstrip() for line in sanitise(text).strip("\n").split("\n"))


def _image(image: ImagePart) -> str:
    size = len(image.data) * 3 // 4
    return f"_Image {_escaped(image.name or 'unnamed')} ({_escaped(image.media_type)}, {size:,} bytes)_"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", safe_line(" ".join(text.split())))
