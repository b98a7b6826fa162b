"""Files, and places in files such as the matches of a search."""

from __future__ import annotations

from swecli.core.protocol.blocks import FileEntry, FileListBlock
from swecli.safe_text import SafeText, safe_line
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Row, Styled
from swecli.tui.transcript.wrap import cells, cut

MAX_MATCH = 2_000
"""Characters of a matching line that are looked at."""


def render_files(block: FileListBlock, width: int, palette: Palette) -> list[Row]:
    """One row per entry; matches are grouped under the name of their file."""
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
        out += Styled(SafeText(f"… {hidden:,} more are not listed"), palette.dim).rows(width)
    return out or Styled(SafeText("no files"), palette.dim).rows(width)


def _name(entry: FileEntry, width: int, palette: Palette) -> list[Row]:
    name = safe_line(entry.path + ("/" if entry.is_dir and not entry.path.endswith("/") else ""))
    style = palette.accent if entry.is_dir else palette.strong if entry.line is not None else palette.text
    return Styled(name, style).rows(width, words=False)
