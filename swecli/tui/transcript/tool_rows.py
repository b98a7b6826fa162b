"""A tool call: one line that names verb, target, result and state, and below it what came out."""

from __future__ import annotations

from typing import Final

from rich.style import Style

from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileListBlock,
    ImageBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    TodoBlock,
)
from swecli.safe_text import SafeText, safe_line, sanitise
from swecli.tui.transcript.blocks import SubagentBlock, ToolBlock
from swecli.tui.transcript.diff import render_diff
from swecli.tui.transcript.display import fold, render_display, render_displays
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Gutter, Row, Styled, indent, plain_rows, segment
from swecli.tui.transcript.terminal import output_rows
from swecli.tui.transcript.verbs import sign_and_verb, target_of
from swecli.tui.transcript.wrap import cells, cut

LIVE_LINES: Final = 8
"""Rows of live output."""
DIFF_LINES: Final = 12
INDENT: Final[Gutter] = (segment(SafeText("  ")),)
_GAP: Final = SafeText("   ")
_LOOKING: Final = frozenset(("read_file", "list_files", "search", "web_fetch"))
"""Tools whose result is told by the line itself."""
_NOTHING: Final = "{}"
"""Arguments of a call that takes none."""
_SLOW: Final = 1.0
"""Seconds from which a call's duration is shown."""


def tool_rows(block: ToolBlock, width: int, palette: Palette, *, expanded: bool, short: bool = False) -> list[Row]:
    """All rows of a tool call; ``short`` leaves only its line."""
    sign, verb = sign_and_verb(block.name)
    unknown = block.status == "pending" and block.arguments != _NOTHING
    target = block.title or target_of(block.arguments) or ("…" if unknown else "")
    state, style = _state(block, palette)
    out = head_rows(sign, verb, target, state, style, width, palette)
    if short:
        return out
    body = _body(block, max(1, width - 2), palette, expanded=expanded)
    return out + indent(body, INDENT)


def subagent_rows(
    block: SubagentBlock, width: int, palette: Palette, *, expanded: bool, short: bool = False
) -> list[Row]:
    """The line of a subagent, what it did last while it works, and its result when asked for."""
    calls = f"{block.calls} call{'' if block.calls == 1 else 's'}"
    words = [word for word in (_word(block.status), block.detail or calls, _seconds(block.duration)) if word]
    style = _style_of(block.status, palette)
    verb = f"Agent {block.name}".strip()
    out = head_rows("◈", verb, block.title, " · ".join(words), style, width, palette)
    inner = max(1, width - 2)
    if short:
        return out
    if block.status == "running" and block.activity:
        out += indent(Styled(cut(safe_line(block.activity), inner), palette.dim).rows(inner), INDENT)
    elif expanded or block.status == "error":
        body = render_displays(block.blocks, inner, palette)
        body = body or (plain_rows(sanitise(block.result.rstrip()), inner, palette.text) if block.result else [])
        out += indent(body if expanded else fold(body, 8, 0, inner, palette), INDENT)
    return out


def head_rows(
    sign: str, verb: str, target: str, state: str, state_style: Style, width: int, palette: Palette
) -> list[Row]:
    """``✎ Edit src/a.py   +3 -1`` in one row where it fits; the target is cut before the state is, and where
    the row is too narrow for both the state has one of its own."""
    lead = SafeText(f"{sign} ")
    name, rest = safe_line(verb), safe_line(state)
    first, _, more = target.partition("\n")
    aim = safe_line(first.strip() + (" …" if more.strip() else ""))
    line = Styled(lead, palette.accent).add(name, palette.verb)
    used = cells(line.text)
    room = width - used - (cells(rest) + len(_GAP) if rest else 0) - 1
    own_row = bool(rest) and room < min(12, cells(aim))
    if own_row:
        room = width - used - 1
    if aim and room > 0:
        line.add(SafeText(" ")).add(cut(aim, room, "end" if _is_path(aim) else "start"), palette.target)
    if rest and not own_row:
        line.add(_GAP).add(rest, state_style)
    out = line.rows(width)
    if own_row:
        out += indent(Styled(rest, state_style).rows(max(1, width - 2)), INDENT)
    return out


def _is_path(target: str) -> bool:
    return "/" in target and " " not in target


def _word(status: str) -> str:
    return {"error": "failed", "rejected": "rejected", "interrupted": "interrupted", "running": "running"}.get(
        status, ""
    )


def _style_of(status: str, palette: Palette) -> Style:
    return {
        "error": palette.error,
        "rejected": palette.warning,
        "interrupted": palette.warning,
        "waiting": palette.warning,
    }.get(status, palette.dim)


def _state(block: ToolBlock, palette: Palette) -> tuple[str, Style]:
    """Result and state in words, so that they are not told by colour alone."""
    style = _style_of(block.status, palette)
    if block.status == "pending":
        return (f"writing · {len(block.arguments):,} characters" if len(block.arguments) > 400 else "", style)
    if block.status == "waiting":
        return ("waits for an answer" if block.name == "ask_user" else "waits for your approval", style)
    if block.status == "running":
        return ("running", style)
    duration = _seconds(block.duration) if block.name == "run_command" or (block.duration or 0) >= _SLOW else ""
    exited = block.detail.startswith("exit ")
    if exited and block.detail != "exit 0" and block.status == "ok":
        style = palette.error
    word = "" if exited and block.status == "error" else _word(block.status)
    words = dict.fromkeys((word, block.detail, block.note, duration))  # a detail may be the same word
    return (" · ".join(word for word in words if word), style)


def _seconds(duration: float | None) -> str:
    if duration is None:
        return ""
    return f"{duration:.1f}s" if duration < 60 else f"{int(duration) // 60}m {int(duration) % 60:02d}s"


def _body(block: ToolBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    if block.status == "waiting":
        return _preview(block, width, palette) if expanded else []
    if block.status == "running" or (block.status == "pending" and block.output):
        rows = output_rows(block.output, width, palette)
        return rows[-LIVE_LINES:]
    out: list[Row] = []
    if expanded:
        out += _command(block, width, palette)
    out += _displays(block, block.blocks, width, palette, expanded=expanded)
    if not block.blocks and block.result and (expanded or block.status == "error"):
        rows = output_rows(block.result, width, palette)
        out += rows if expanded else fold(rows, LIVE_LINES, 0, width, palette)
    return out


def _preview(block: ToolBlock, width: int, palette: Palette) -> list[Row]:
    """What consent is asked for; folded it is left to the panel that asks."""
    reason = Styled(safe_line(block.note), palette.warning).rows(width) if block.note else []
    return reason + _displays(block, block.preview, width, palette, expanded=True)


def _command(block: ToolBlock, width: int, palette: Palette) -> list[Row]:
    """What the head can't show: a long target whole, or the arguments of a tool that is not known."""
    if block.title and ("\n" in block.title or cells(safe_line(block.title)) > width - 12):
        return plain_rows(sanitise(block.title), width, palette.strong)
    if not block.title and block.arguments not in ("", _NOTHING):
        return plain_rows(sanitise(block.arguments), width, palette.dim)
    return []


def _displays(
    block: ToolBlock, blocks: tuple[DisplayBlock, ...], width: int, palette: Palette, *, expanded: bool
) -> list[Row]:
    def whole(shown: DisplayBlock, width: int, palette: Palette) -> list[Row]:
        match shown:
            case DiffBlock():
                return render_diff(shown, width, palette, header=_names_file(block, shown, blocks))
            case TerminalBlock():
                return output_rows(shown.output, width, palette) + _shortened(shown, width, palette)
            case _:
                return render_display(shown, width, palette)

    def folded(shown: DisplayBlock, width: int, palette: Palette) -> list[Row]:
        match shown:
            case DiffBlock():
                header = _names_file(block, shown, blocks)
                return render_diff(shown, width, palette, header=header, limit=DIFF_LINES)
            case TerminalBlock():
                rows = fold(output_rows(shown.output, width, palette), 2, LIVE_LINES - 3, width, palette)
                return rows + _shortened(shown, width, palette)
            case FileListBlock() | TextBlock() if block.detail and block.name in _LOOKING and block.status == "ok":
                return []
            case TextBlock() if shown.style in ("warning", "error"):
                return fold(render_display(shown, width, palette), LIVE_LINES, 0, width, palette)
            case TodoBlock() | TableBlock() | ImageBlock():
                return fold(render_display(shown, width, palette), DIFF_LINES, 0, width, palette)
            case _:
                return fold(render_display(shown, width, palette), LIVE_LINES, 0, width, palette)

    return render_displays(blocks, width, palette, whole if expanded else folded)


def _shortened(shown: TerminalBlock, width: int, palette: Palette) -> list[Row]:
    return Styled(SafeText("output was shortened"), palette.dim).rows(width) if shown.truncated else []


def _names_file(block: ToolBlock, shown: DiffBlock, blocks: tuple[DisplayBlock, ...]) -> bool:
    return len(blocks) > 1 or not block.title.endswith(shown.path)
