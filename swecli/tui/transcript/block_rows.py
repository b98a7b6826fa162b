"""The rows of a block: one pure function of block, width, palette and whether it is shown whole."""

from __future__ import annotations

from typing import Final

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
    SubagentBlock,
    ToolBlock,
    TurnEndBlock,
    UserBlock,
)
from swecli.tui.transcript.display import fold, render_displays
from swecli.tui.transcript.images import render_image
from swecli.tui.transcript.markdown import markdown_rows
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import ENTER_SHOWS_ALL, Gutter, Row, Styled, blank, indent, plain_rows, segment
from swecli.tui.transcript.tool_rows import INDENT, subagent_rows, tool_rows
from swecli.tui.transcript.wrap import cells, cut

LONG_PASTE: Final = (12, 4)
"""First and last rows of a user's message that are shown when it is folded."""
SHORT_PASTE: Final = (2, 1)
"""The same in the short form."""
_PREVIEW: Final = 400
"""Characters of reasoning that its one line is made from."""
_OUTCOMES: Final = {
    "done": "✓ done",
    "interrupted": "⊘ interrupted",
    "blocked": "■ blocked",
    "limit": "■ limit reached",
    "error": "✗ error",
}


_WORK: Final = (ToolBlock, ReasoningBlock, NoticeBlock, SubagentBlock, CompactionBlock)


def gap_before(previous: type[Block] | None, kind: type[Block]) -> bool:
    """Whether an empty row stands between two blocks of these kinds: not between lines of work."""
    if previous is None:
        return False
    return not (issubclass(previous, _WORK) and issubclass(kind, _WORK))


def render_block(
    block: Block, width: int, palette: Palette, *, expanded: bool = False, short: bool = False
) -> list[Row]:
    """All rows of a block at a width in cells: all that there is of it (``expanded``), the one line of work that it is
    (``short``), or that and the beginning of what came out."""
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
        case SubagentBlock():
            return subagent_rows(block, width, palette, expanded=expanded, short=short)
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
    """What is said below an answer that did not end by itself."""
    words = {"interrupted": "⊘ interrupted", "error": "✗ cut off by an error", "rejected": "✗ rejected"}
    text = words.get(block.status)
    if text and block.detail:
        return Styled(safe_line(f"✗ broke off: {block.detail}"), palette.warning).rows(width)
    return Styled(SafeText(text), palette.warning).rows(width) if text else []


def _user(block: UserBlock, width: int, palette: Palette, *, expanded: bool, short: bool) -> list[Row]:
    mark: Gutter = (segment(SafeText("› "), palette.user_mark),)
    inner = max(1, width - 2)
    rows = plain_rows(sanitise(block.text), inner, palette.user, mark, INDENT) if block.text else []
    if not expanded:
        rows = fold(rows, *(SHORT_PASTE if short else LONG_PASTE), inner, palette, INDENT)
    for image in block.images:
        rows += indent(render_image(image, inner, palette), INDENT if rows else mark)
    return rows


def _reasoning(block: ReasoningBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    live = block.status == "running"
    words = "Reasoning" if block.duration is None else f"Reasoning {block.duration:.1f}s"
    head = Styled(SafeText("✻ "), palette.accent).add(SafeText(words), palette.reasoning)
    if block.status in ("interrupted", "error"):
        why = safe_line(f" broke off: {block.detail}") if block.detail else SafeText(f" {block.status}")
        head.add(why, palette.warning)
    text = block.text.strip()
    if expanded and text:
        body = plain_rows(sanitise(text), max(1, width - 2), palette.reasoning)
        return head.rows(width) + indent(body, INDENT)
    room = width - cells(head.text) - 2
    if text and room > 4:
        preview = text[-_PREVIEW:] if live else text[:_PREVIEW]
        line = safe_line(" ".join(preview.split()))
        if len(text) > _PREVIEW and not live:
            line = SafeText(line + " …")
        head.add(SafeText("  ")).add(cut(line, room, "end" if live else "start"), palette.dim)
    return head.rows(width)


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
    tokens = f"{block.tokens_before:,} → {block.tokens_after:,} tokens"
    messages = f"{block.messages_before} → {block.messages_after} messages"
    text, style = {
        "running": (f"Compacting the context ({block.tokens_before:,} tokens) …", palette.accent),
        "done": (f"Context compacted: {tokens}, {messages} · /compact undo takes it back", palette.text),
        "redone": (f"Compaction applied again: {tokens}, {messages}", palette.text),
        "undone": (f"Compaction taken back: {block.tokens_before:,} tokens as before", palette.warning),
        "failed": (f"Compaction failed, nothing was changed: {block.reason}", palette.error),
    }[block.status]
    mark: Gutter = (segment(SafeText("⇣ "), palette.accent),)
    rows = plain_rows(safe_line(text), max(1, width - 2), style, mark, INDENT)
    if block.summary and expanded:
        rows += indent(markdown_rows(block.summary, max(1, width - 2), palette, palette.dim), INDENT)
    return rows


def _turn_end(block: TurnEndBlock, width: int, palette: Palette) -> list[Row]:
    words = [_OUTCOMES[block.outcome]]
    if block.duration:
        words[0] += f" in {block.duration:.1f}s"
    if block.reason and block.reason != block.outcome:
        words.append(block.reason)
    style = {"done": palette.dim, "error": palette.error}.get(block.outcome, palette.warning)
    return plain_rows(sanitise(": ".join(words)), width, style)


def _session(block: SessionBlock, width: int, palette: Palette) -> list[Row]:
    words = "Continued" if block.resumed else "New session"
    model = f"{block.model} at {block.address}" if block.address else block.model
    parts = [f"{words} · swecli {block.version}", model, block.mode, block.cwd]
    return Styled(cut(safe_line(" · ".join(part for part in parts if part)), width), palette.dim).rows(width)


def _rewound(block: RewoundBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    count = len(block.blocks)
    hint = "" if expanded else f" · {ENTER_SHOWS_ALL}"
    text = f"Rewound, {count} entr{'y' if count == 1 else 'ies'} taken back{hint}"
    mark: Gutter = (segment(SafeText("⟲ "), palette.warning),)
    rows = plain_rows(safe_line(text), max(1, width - 2), palette.warning, mark, INDENT)
    if expanded:
        previous: type[Block] | None = None
        for inner in block.blocks:
            if gap_before(previous, type(inner)):
                rows.append(blank())
            rows += indent(render_block(inner, max(1, width - 2), palette), INDENT)
            previous = type(inner)
    return rows
