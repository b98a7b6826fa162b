"""What a command printed: colours are kept, progress bars show their last state, the rest is sanitised."""

from __future__ import annotations

import re
from typing import Final

from rich.color import Color
from rich.style import Style
from textual.content import Content
from textual.style import Style as VisualStyle

from swecli.core.protocol.blocks import TerminalBlock
from swecli.safe_text import TAB_SIZE, SafeText, safe_line, sanitise
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import NO_STYLE, Gutter, Row, Styled, plain_rows, segment

MAX_OUTPUT: Final = 1_000_000
"""Characters that are drawn at all; tools bound their output far below."""
MAX_LINE: Final = 8_000
"""Characters of one line that are drawn."""

_SGR: Final = re.compile("\x1b\\[([0-9;:]{0,60})m")
_ERASURES: Final = re.compile("\x1b\\[[0-3]?[JK]|\x1b\\[\\?[0-9;]{1,12}[hl]|\x1b\\[[0-9]{0,4}[ABCDEFG]|\x1b\\(B")
"""Sequences of progress bars that say nothing where each line is drawn once: erasing, moving, modes."""
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
    """Command, output and how it ended."""
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
    """How the command ended, in words."""
    parts: list[str] = []
    if block.exit_status is not None:
        parts.append(f"exit {block.exit_status}")
    if block.duration is not None:
        parts.append(f"{block.duration:.1f}s")
    if block.truncated:
        parts.append("output was shortened")
    return " · ".join(parts)


def output_rows(output: str, width: int, palette: Palette) -> list[Row]:
    """The rows of a command's output."""
    out: list[Row] = []
    if len(output) > MAX_OUTPUT:
        left_out = len(output) - MAX_OUTPUT
        out += Styled(SafeText(f"… {left_out:,} characters before this are not shown"), palette.dim).rows(width)
        output = output[-MAX_OUTPUT:]
    for line in output_lines(output, palette):
        out += line.rows(width, words=False)
    return out


def content_line(line: str, palette: Palette) -> Content:
    """One line of output with its colours, for a widget."""
    out = Content("")
    for styled in output_lines(line.replace("\n", " "), palette)[:1]:
        for text, style, _ in styled.segments():
            out += Content(text) if style is None else Content(text).stylize(VisualStyle.from_rich_style(style))
    return out


def output_lines(output: str, palette: Palette) -> list[Styled]:
    """The lines of a command's output, without a last empty one."""
    text = output.replace("\r\n", "\n").removesuffix("\n")
    if not text:
        return []
    if "\x1b" not in text and "\r" not in text and "\b" not in text:
        return [_plain(line, palette) for line in text.split("\n")]
    out: list[Styled] = []
    style = NO_STYLE
    for raw in _ERASURES.sub("", text).split("\n"):
        line, style = _coloured(_last_state(raw), style, palette)
        out.append(line)
    return out


def _plain(line: str, palette: Palette) -> Styled:
    styled = Styled(sanitise(line[:MAX_LINE]), palette.text)
    return _shortened(styled, len(line) - MAX_LINE, palette)


def _coloured(line: str, style: Style, palette: Palette) -> tuple[Styled, Style]:
    styled = Styled()
    place = 0
    left_out = len(line) - MAX_LINE
    shown = line[:MAX_LINE].expandtabs(TAB_SIZE)
    for match in _SGR.finditer(shown):
        styled.add(sanitise(shown[place : match.start()]), palette.text + style)
        style = _apply(style, match[1])
        place = match.end()
    styled.add(sanitise(shown[place:]), palette.text + style)
    for match in _SGR.finditer(line, MAX_LINE):
        style = _apply(style, match[1])
    return _shortened(styled, left_out, palette), style


def _shortened(styled: Styled, left_out: int, palette: Palette) -> Styled:
    if left_out > 0:
        styled.add(SafeText(f" … {left_out:,} more characters"), palette.dim)
    return styled


def _last_state(line: str) -> str:
    """What is left of a line after its carriage returns and backspaces. Colours set before stay in force."""
    if "\r" in line:
        parts = [part for part in line.split("\r") if part]
        shown = next((part for part in reversed(parts) if _SGR.sub("", part).strip()), parts[-1] if parts else "")
        before = line[: line.rfind(shown)] if shown else ""
        line = "".join(match[0] for match in _SGR.finditer(before)) + shown
    if "\b" in line:
        kept: list[str] = []
        for character in line:
            if character == "\b":
                if kept:
                    kept.pop()
            else:
                kept.append(character)
        line = "".join(kept)
    return line


def _apply(style: Style, codes: str) -> Style:
    """A style after a colour sequence. Blinking and hidden text are not honoured."""
    numbers = [int(code) if code else 0 for code in codes.replace(":", ";").split(";")]
    place = 0
    while place < len(numbers):
        code = numbers[place]
        place += 1
        if code == 0:
            style = NO_STYLE
        elif code in _ATTRIBUTES:
            style += Style.parse(_ATTRIBUTES[code])
        elif code in _ATTRIBUTES_OFF:
            style += Style.parse(" ".join(f"not {name}" for name in _ATTRIBUTES_OFF[code]))
        elif code in (38, 48):
            colour, used = _extended(numbers[place:])
            place += used
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
    """A colour of 256 or of 16 million, and how many numbers it took."""
    if len(numbers) >= 2 and numbers[0] == 5:
        return (Color.from_ansi(numbers[1]) if numbers[1] < 256 else None), 2
    if len(numbers) >= 4 and numbers[0] == 2:
        red, green, blue = numbers[1:4]
        return (Color.from_rgb(red, green, blue) if max(red, green, blue) < 256 else None), 4
    return None, len(numbers)
