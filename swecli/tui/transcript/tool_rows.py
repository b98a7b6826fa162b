"""Rows of a tool call and of every type of display block: terminal output, files, diffs, todos, images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace
from rich.color import Color
from rich.style import Style
from textual.content import Content
from textual.style import Style as VisualStyle

from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileEntry,
    FileListBlock,
    ImageBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    TodoBlock,
)
from swecli.core.protocol.messages import target_of
from swecli.core.workspace.command_output import COLOURS, last_states
from swecli.figures import BAR, duration, narrowed_bars, plural
from swecli.safe_text import TAB_SIZE, SafeText, safe_line, sanitise
from swecli.tool_words import words_for
from swecli.tui.transcript.blocks import AgentFigures, ToolBlock
from swecli.tui.transcript.diff import render_diff
from swecli.tui.transcript.markdown import render_markdown, render_table
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import (
    NO_STYLE,
    SHOWS_ALL,
    Gutter,
    Row,
    Styled,
    blank,
    cells,
    closed_up,
    cut,
    hanging,
    indent,
    label_width,
    plain_rows,
    segment,
)

MAX_OUTPUT: Final = 1_000_000
"""Maximum characters drawn; tools limit their output far below."""
MAX_LINE: Final = 8_000
"""Maximum characters drawn of a line."""

_ATTRIBUTES: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_ATTRIBUTES_OFF: Final = {
    21: ("bold",),
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
}


def render_terminal(block: TerminalBlock, width: int, palette: Palette) -> list[Row]:
    """Command, output and exit."""
    out: list[Row] = []
    if block.command:
        mark: Gutter = (segment(SafeText("$ "), palette.dim),)
        rest: Gutter = (segment(SafeText("  ")),)
        out += plain_rows(sanitise(block.command), max(1, width - 2), palette.strong, mark, rest)
    out += output_rows(block.output, width, palette)
    ended = ending(block)
    if ended:
        failed = block.exit_status not in (0, None)
        out += Styled(safe_line(ended), palette.error if failed else palette.dim).rows(width)
    return out


def ending(block: TerminalBlock) -> str:
    """The command's exit in words."""
    parts: list[str] = []
    if block.exit_status is not None:
        parts.append(f"exit {block.exit_status}")
    if block.duration is not None:
        parts.append(duration(block.duration))
    if block.truncated:
        parts.append("output shortened")
    return " · ".join(parts)


def output_rows(output: str, width: int, palette: Palette, *, words: bool = False) -> list[Row]:
    """Rows of output; ``words`` breaks between words."""
    out: list[Row] = []
    if len(output) > MAX_OUTPUT:
        left_out = len(output) - MAX_OUTPUT
        out += Styled(SafeText(f"… {left_out:,} earlier characters not shown"), palette.dim).rows(width)
        output = output[-MAX_OUTPUT:]
    for line in output_lines(output, palette):
        out += line.rows(width, words=words)
    return out


def content_line(line: str, palette: Palette) -> Content:
    """One line of output with its colours, for a widget."""
    out = Content("")
    for styled in output_lines(line.replace("\n", " "), palette)[:1]:
        for text, style, _ in styled.segments():
            out += Content(text) if style is None else Content(text).stylize(VisualStyle.from_rich_style(style))
    return out


def output_lines(output: str, palette: Palette) -> list[Styled]:
    """Lines of a command's output, without a trailing empty one."""
    text = output.replace("\r\n", "\n")
    acts = "\x1b" in text or "\r" in text or "\b" in text
    text = (last_states(text) if acts else text).removesuffix("\n")
    if not text:
        return []
    if not acts:
        return [_plain(line, palette) for line in text.split("\n")]
    out: list[Styled] = []
    style, raw = NO_STYLE, ""
    for raw in text.split("\n"):
        line, style = _coloured(raw, style, palette)
        out.append(line)
    if raw and not out[-1].text:  # colours are reset after the last line break
        out.pop()
    return out


def _plain(line: str, palette: Palette) -> Styled:
    styled = Styled(sanitise(line[:MAX_LINE]), palette.text)
    return _shortened_output(styled, len(line) - MAX_LINE, palette)


def _coloured(line: str, style: Style, palette: Palette) -> tuple[Styled, Style]:
    styled = Styled()
    position = 0
    left_out = len(line) - MAX_LINE
    shown = line[:MAX_LINE].expandtabs(TAB_SIZE)
    for match in COLOURS.finditer(shown):
        styled.add(sanitise(shown[position : match.start()]), palette.text + _legible(style, palette))
        style = _apply(style, match[1])
        position = match.end()
    styled.add(sanitise(shown[position:]), palette.text + _legible(style, palette))
    for match in COLOURS.finditer(line, MAX_LINE):
        style = _apply(style, match[1])
    return _shortened_output(styled, left_out, palette), style


_ALIKE: Final = 32
"""Steps of 256 by which each part of two colours differs at most that nobody can tell apart."""


def _legible(style: Style, palette: Palette) -> Style:
    """The style without its colours if they would hide the text, which the model reads, on its own ground."""
    text, ground = style.color or palette.user.color, style.bgcolor or palette.bar_ends.color
    if text is None or ground is None or text.is_default or ground.is_default:
        return style
    pairs = zip(text.get_truecolor(), ground.get_truecolor(), strict=True)
    return style.without_color if all(abs(channel - other) <= _ALIKE for channel, other in pairs) else style


def _shortened_output(styled: Styled, left_out: int, palette: Palette) -> Styled:
    if left_out > 0:
        styled.add(SafeText(f" … {left_out:,} more characters"), palette.dim)
    return styled


def _apply(style: Style, codes: str) -> Style:
    """A style after an SGR colour sequence. Blinking and hidden text are ignored."""
    numbers = [int(code) if code else 0 for code in codes.replace(":", ";").split(";")]
    position = 0
    while position < len(numbers):
        code = numbers[position]
        position += 1
        if code == 0:
            style = NO_STYLE
        elif code in _ATTRIBUTES:
            style += Style.parse(_ATTRIBUTES[code])
        elif code in _ATTRIBUTES_OFF:
            style += Style.parse(" ".join(f"not {name}" for name in _ATTRIBUTES_OFF[code]))
        elif code in (38, 48):
            colour, used = _extended(numbers[position:])
            position += used
            if colour is not None:
                style += Style(color=colour) if code == 38 else Style(bgcolor=colour)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style += Style(color=Color.from_ansi(code - 30 if code < 40 else code - 82))
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style += Style(bgcolor=Color.from_ansi(code - 40 if code < 50 else code - 92))
        elif code == 39:
            style += Style(color=Color.default())
        elif code == 49:
            style += Style(bgcolor=Color.default())
    return style


def _extended(numbers: list[int]) -> tuple[Color | None, int]:
    """A 256-colour or true colour value, and the count of numbers consumed."""
    if len(numbers) >= 2 and numbers[0] == 5:
        return (Color.from_ansi(numbers[1]) if numbers[1] < 256 else None), 2
    if len(numbers) >= 4 and numbers[0] == 2:
        red, green, blue = numbers[1:4]
        return (Color.from_rgb(red, green, blue) if max(red, green, blue) < 256 else None), 4
    return None, len(numbers)


def render_todos(block: TodoBlock, width: int, palette: Palette) -> list[Row]:
    """One entry per todo; its glyph shows its state, so colour is not the only indicator."""
    out: list[Row] = []
    for todo in block.todos:
        sign, sign_style, style = {
            "pending": ("☐ ", palette.dim, palette.text),
            "in_progress": ("▶ ", palette.accent, palette.strong),
            "completed": ("☑ ", palette.success, palette.dim),
        }[todo.status]
        gutter: Gutter = (segment(SafeText(sign), sign_style),)
        out += Styled(safe_line(todo.text), style).rows(max(1, width - 2), gutter, (segment(SafeText("  ")),))
    return out or Styled(SafeText("no todos"), palette.dim).rows(width)


def render_image(block: ImageBlock, width: int, palette: Palette) -> list[Row]:
    line = Styled(SafeText("▣ "), palette.accent).add(safe_line(block.name or "image"), palette.text)
    line.add(SafeText(f"  {safe_line(block.media_type)}, {size_text(block.byte_size)}"), palette.dim)
    return line.rows(width)


def size_text(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in ("KiB", "MiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} GiB"


MAX_MATCH = 2_000
"""Characters of a matching line to examine."""


def render_files(block: FileListBlock, width: int, palette: Palette) -> list[Row]:
    """One row per entry; matches are grouped by file."""
    out: list[Row] = []
    last = ""
    digits = max((len(str(entry.line)) for entry in block.entries if entry.line is not None), default=1)
    for entry in block.entries:
        if entry.line is None:
            out += _name(entry, width, palette)
            continue
        if entry.path != last:
            out += _name(entry, width, palette)
            last = entry.path
        line = Styled(SafeText(f"  {entry.line:>{digits}}  "), palette.line_number)
        text = safe_line(entry.text[:MAX_MATCH].strip())
        line.add(cut(text, width - digits - 4), palette.text)
        out += line.rows(max(width, cells(line.text)), words=False)
    hidden = block.total - len(block.entries)
    if hidden > 0:
        out += Styled(SafeText(f"… {hidden:,} more"), palette.dim).rows(width)
    return out or Styled(SafeText("no files"), palette.dim).rows(width)


def _name(entry: FileEntry, width: int, palette: Palette) -> list[Row]:
    name = safe_line(entry.path + ("/" if entry.is_dir and not entry.path.endswith("/") else ""))
    style = palette.accent if entry.is_dir else palette.strong if entry.line is not None else palette.text
    return Styled(name, style).rows(width, words=False)


def render_text(block: TextBlock, width: int, palette: Palette) -> list[Row]:
    """Wrapped text; the value beside a label continues below its start."""
    style = {"plain": palette.text, "dim": palette.dim, "warning": palette.warning, "error": palette.error}
    text = sanitise(block.text.rstrip("\n"))
    if "▕" in text:
        fitting = (SafeText(narrowed_bars(line, width)) for line in text.split("\n"))
        lines = (_with_bars(line, style[block.style], palette) for line in fitting)
        return [row for line in lines for row in line.rows(width)]
    lines = [Styled(closed_up(SafeText(line), width), style[block.style]) for line in text.split("\n")]
    return [row for line in lines for row in hanging(line, width, label_width(line.text, width))]


def _with_bars(line: SafeText, style: Style, palette: Palette) -> Styled:
    """A line of text with its bars drawn on their background."""
    styled = Styled()
    position = 0
    for match in BAR.finditer(line):
        start, end = match.span()
        styled.add(SafeText(line[position:start]), style)
        styled.add(SafeText(line[start : start + 1]), palette.bar_ends)
        styled.add(SafeText(line[start + 1 : end - 1]), palette.bar)
        styled.add(SafeText(line[end - 1 : end]), palette.bar_ends)
        position = end
    return styled.add(SafeText(line[position:]), style)


def render_display(block: DisplayBlock, width: int, palette: Palette) -> list[Row]:
    """All rows of a display block at a width in cells."""
    match block:
        case TextBlock():
            return render_text(block, width, palette)
        case MarkdownBlock():
            return render_markdown(block, width, palette)
        case DiffBlock():
            return render_diff(block, width, palette)
        case TerminalBlock():
            return render_terminal(block, width, palette)
        case FileListBlock():
            return render_files(block, width, palette)
        case TodoBlock():
            return render_todos(block, width, palette)
        case TableBlock():
            return render_table(block, width, palette)
        case ImageBlock():
            return render_image(block, width, palette)


def render_displays(
    blocks: Sequence[DisplayBlock],
    width: int,
    palette: Palette,
    render: Callable[[DisplayBlock, int, Palette], list[Row]] = render_display,
) -> list[Row]:
    """Rows of several blocks, separated by empty rows."""
    out: list[Row] = []
    for block in blocks:
        rows = render(block, width, palette)
        if out and rows:
            out.append(blank())
        out += rows
    return out


def fold(rows: list[Row], head: int, tail: int, width: int, palette: Palette, gutter: Gutter = ()) -> list[Row]:
    """The first and last rows, with a line that counts the hidden ones between them. All rows if hiding would save
    none."""
    hidden = len(rows) - head - tail
    if hidden <= 1:
        return rows
    text = SafeText(f"… {hidden:,} lines hidden, {palette.expand} {SHOWS_ALL}")
    return [*rows[:head], *Styled(text, palette.dim).rows(width, gutter), *rows[len(rows) - tail :]]


LIVE_LINES: Final = 8
"""Number of rows of live output."""
DIFF_LINES: Final = 12
INDENT: Final[Gutter] = (segment(SafeText("  ")),)
_GAP: Final = SafeText("   ")
_LOOKING: Final = frozenset(("read_file", "list_files", "search", "symbols", "web_fetch"))
"""Tools whose own line shows the result."""
_NOTHING: Final = "{}"
"""Arguments of a call that takes none."""
_SLOW: Final = 1.0
"""Seconds from which a call's duration is shown."""
_TIMED: Final = 0.05
"""Same for a command."""


def tool_rows(block: ToolBlock, width: int, palette: Palette, *, expanded: bool, short: bool = False) -> list[Row]:
    """All rows of a tool call; ``short`` keeps only its line."""
    words = words_for(block.name)
    unknown = block.status == "pending" and block.arguments != _NOTHING
    target = block.title or target_of(block.arguments) or ("…" if unknown else "")
    state, style = _state(block if short else _without_repetition(block), palette)
    out = head_rows(words.sign, words.verb, target, state, style, width, palette)
    if short:
        return out
    body = _body(block, max(1, width - 2), palette, expanded=expanded)
    return out + indent(body, INDENT)


def _unrun(block: ToolBlock) -> bool:
    """Whether the call failed before it ran: errors in its arguments are for the model, which retries."""
    return block.status == "error" and block.result.partition("\n")[0].casefold().endswith("nothing was run.")


def _without_repetition(block: ToolBlock) -> ToolBlock:
    """The block without a detail that only repeats the start of the error below it."""
    if block.status != "error" or block.blocks or not block.result or _unrun(block):
        return block
    begins = " ".join(block.result.split()).startswith(" ".join(block.detail.removesuffix("…").split()))
    return replace(block, detail="") if begins else block


def head_rows(
    sign: str, verb: str, target: str, state: str, state_style: Style, width: int, palette: Palette
) -> list[Row]:
    """``✎ Edit src/a.py   +3 -1`` in one row if it fits; the target is cut before the state, and in a row too narrow
    for both the state has a row of its own."""
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
        line.add(SafeText(" " if verb else "")).add(cut(aim, room, "end" if _is_path(aim) else "start"), palette.target)
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
        "asking": palette.warning,
    }.get(status, palette.dim)


def _state(block: ToolBlock, palette: Palette) -> tuple[str, Style]:
    """Result and state in words, so that colour is not the only indicator."""
    style = _style_of(block.status, palette)
    if block.agent is not None and (block.status == "running" or (block.agent.background and block.status == "ok")):
        return _agent_state(block, block.agent, palette)
    if block.status == "pending":
        return (f"writing · {len(block.arguments):,} characters" if len(block.arguments) > 400 else "", style)
    if block.status == "waiting":
        return "waiting for your approval", style
    if block.status == "asking":
        return "waiting for an answer", style
    if block.status == "running":
        return (duration(block.elapsed) if block.elapsed else "running", style)
    took = block.duration or 0.0
    slow = took >= (_TIMED if block.name == "run_command" else _SLOW)
    exited = block.detail.startswith("exit ")
    if exited and block.detail != "exit 0" and block.status == "ok":
        style = palette.error
    word = "" if exited and block.status == "error" else _word(block.status)
    timing = duration(took) if slow else ""
    told = block.detail.casefold()  # the detail may contain the other words
    if block.status == "rejected" and told.startswith(("blocked by ", "refused by ")):
        word = ""  # the detail already names who did it
    word, note = ("" if part.casefold() in told else part for part in (word, block.note))
    return (" · ".join(filter(None, (word, block.detail, note, timing))), style)


def _agent_state(block: ToolBlock, agent: AgentFigures, palette: Palette) -> tuple[str, Style]:
    """The subagent's name, progress and usage."""
    cost = f"${agent.cost:.4f}" if agent.cost else ""
    parts = (
        f"{agent.id} {agent.profile}",
        "in the background" if agent.background and not agent.outcome else agent.outcome,
        plural(agent.steps, "step") if agent.steps else "",
        f"{agent.tokens:,} tokens" if agent.tokens else "",
        cost,
        duration(block.elapsed) if block.elapsed else "",
        "waiting for your approval" if agent.asks else "",
    )
    style = palette.warning if agent.asks else _style_of("error" if agent.outcome == "error" else "", palette)
    return " · ".join(filter(None, parts)), style


def _agent_rows(agent: AgentFigures, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    """A subagent's current activity, which is the call of its oldest open question if it has one; expanded, also its
    past calls."""
    asked = agent.open[0][1] if agent.open else ""
    lines = [f"… {agent.earlier:,} earlier calls"] if expanded and agent.earlier else []
    lines += (call for call in agent.calls if call != asked) if expanded else ()
    doing = asked or agent.doing
    if doing and lines[-1:] != [doing]:
        lines.append(doing)
    return [row for line in lines for row in Styled(cut(safe_line(line), width), palette.dim).rows(width)]


def _body(block: ToolBlock, width: int, palette: Palette, *, expanded: bool) -> list[Row]:
    agent = block.agent
    if agent is not None and (block.status == "running" or not agent.outcome):
        return _agent_rows(agent, width, palette, expanded=expanded)
    if block.status in ("waiting", "asking"):
        return _preview(block, width, palette) if expanded else []
    if block.status == "running" or (block.status == "pending" and block.output):
        rows = output_rows(block.output, width, palette)
        return rows[-LIVE_LINES:]
    out: list[Row] = []
    if expanded:
        out += _command(block, width, palette)
        out += _agent_rows(agent, width, palette, expanded=True) if agent is not None else []
    out += _displays(block, block.blocks, width, palette, expanded=expanded)
    result = block.result if agent is None else agent.reason  # a subagent's result is written for the model
    if not block.blocks and result and (expanded or (block.status == "error" and not _unrun(block))):
        # Failure reasons are swecli's own sentences, except for command output.
        told = block.status == "error" and block.name != "run_command"
        rows = output_rows(result, width, palette, words=told)
        out += rows if expanded else fold(rows, LIVE_LINES, 0, width, palette)
    return out


def _preview(block: ToolBlock, width: int, palette: Palette) -> list[Row]:
    """Subject of the consent request; folded, only the approval panel shows it."""
    reason = Styled(safe_line(block.note), palette.warning).rows(width) if block.note else []
    return reason + _displays(block, block.preview, width, palette, expanded=True)


def _command(block: ToolBlock, width: int, palette: Palette) -> list[Row]:
    """Details that the head lacks: a long target in full, or the arguments of an unknown tool."""
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
            case TodoBlock() if any(todo.status == "completed" for todo in shown.todos):
                return []  # an update: the call's line counts, Ctrl+T and Enter list
            case TodoBlock() | TableBlock() | ImageBlock():
                return fold(render_display(shown, width, palette), DIFF_LINES, 0, width, palette)
            case _:
                return fold(render_display(shown, width, palette), LIVE_LINES, 0, width, palette)

    return render_displays(blocks, width, palette, whole if expanded else folded)


def _shortened(shown: TerminalBlock, width: int, palette: Palette) -> list[Row]:
    return Styled(SafeText("output shortened"), palette.dim).rows(width) if shown.truncated else []


def _names_file(block: ToolBlock, shown: DiffBlock, blocks: tuple[DisplayBlock, ...]) -> bool:
    """Whether the head of the call does not say which file this is."""
    return sum(isinstance(other, DiffBlock) for other in blocks) > 1 or not block.title.endswith(shown.path)
