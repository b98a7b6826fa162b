"""Loading what the first answer needs before it comes."""

from __future__ import annotations

from swecli.tui.transcript.markdown import markdown_rows
from swecli.tui.transcript.palette import DARK


def warm() -> None:
    """Import the markdown parser and the highlighter by using them once. For a thread, after the first frame;
    without it the first answer takes about a tenth of a second longer."""
    for row in markdown_rows("# a\n\n- b\n\n```python\nc = 1\n```\n\n|a|\n|-|\n|b|\n", 40, DARK):
        row.segments()
