"""Images: named, not drawn."""

from __future__ import annotations

from swecli.core.protocol.blocks import ImageBlock
from swecli.safe_text import SafeText, safe_line
from swecli.tui.transcript.palette import Palette
from swecli.tui.transcript.rows import Row, Styled


def render_image(block: ImageBlock, width: int, palette: Palette) -> list[Row]:
    """Name, type and size."""
    line = Styled(SafeText("▣ "), palette.accent).add(safe_line(block.name or "image"), palette.text)
    line.add(SafeText(f"  {safe_line(block.media_type)}, {size_text(block.byte_size)}"), palette.dim)
    return line.rows(width)


def size_text(count: int) -> str:
    """A number of bytes for people."""
    if count < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in ("KiB", "MiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} GiB"
