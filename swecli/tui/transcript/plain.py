"""Plain text of a block, for copying and search."""

from __future__ import annotations

from swecli.block_text import block_lines
from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
)
from swecli.safe_text import sanitise
from swecli.tool_words import call_title
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
from swecli.tui.transcript.diff import compare


def block_text(block: Block) -> str:
    """All text of a block unsanitised, including hidden parts. Not safe to show."""
    match block:
        case UserBlock() if block.title:
            return _lines(block.title, block.text)
        case UserBlock() | AnswerBlock() | ReasoningBlock():
            return block.text
        case ToolBlock():
            shown = [display_text(part) for part in block.blocks or block.preview] or [block.result or block.output]
            return _lines(f"{call_title(block.name, block.title)}  {block.detail}".rstrip(), *shown)
        case NoticeBlock():
            return _lines(block.text, block.hint)
        case CompactionBlock():
            return _lines(f"Compaction {block.status}", block.summary, block.reason)
        case TurnEndBlock():
            return _lines(block.outcome, block.reason)
        case SessionBlock():
            parts = (block.model, block.address, block.cwd)
            advice = (line.text for line in block.advice)
            return _lines(*(text for _, text in block.lines), *advice) or " ".join(part for part in parts if part)
        case ShownBlock():
            return _lines(block.title, *map(display_text, block.blocks))
        case RewoundBlock():
            return _lines(*map(block_text, block.blocks))


def display_text(block: DisplayBlock) -> str:
    """All text of a display block; for a diff the changed lines with their signs, for a new file its text, for a table
    tab-separated cells."""
    match block:
        case TextBlock() | MarkdownBlock():
            return block.text
        case DiffBlock():
            signs = block.old is not None
            lines = [line for line in compare(block).lines if line.sign != "~"]
            return _lines(block.path, *(f"{line.sign}{line.text}" if signs else line.text for line in lines))
        case TerminalBlock():  # the call's own line shows the exit
            return _lines(f"$ {block.command}" if block.command else "", block.output)
        case TableBlock():
            return _lines(block.title, *("\t".join(row) for row in (block.headers, *block.rows)))
        case _:
            return "\n".join(block_lines(block))


def for_clipboard(text: str) -> str:
    """Text safe to paste into a terminal: tabs and newlines remain, other control characters are removed."""
    return "\t".join(sanitise(part) for part in text.split("\t"))


def _lines(*parts: str) -> str:
    return "\n".join(part.rstrip("\n") for part in parts if part)


def file_of(block: Block) -> str:
    """Path of a tool call's file; empty if there is none, or several."""
    if not isinstance(block, ToolBlock):
        return ""
    paths = {shown.path for shown in (*block.preview, *block.blocks) if isinstance(shown, DiffBlock)}
    if not paths and block.name in ("read_file", "write_file", "edit_file"):
        paths = {block.title}
    return paths.pop() if len(paths) == 1 else ""
