"""Loading modules beside the event loop."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module


def warm() -> None:
    """Import the markdown parser and the highlighter by using them once. For a thread, after the first frame;
    without it the first answer takes about a tenth of a second longer."""
    from swecli.tui.transcript.markdown import markdown_rows
    from swecli.tui.transcript.palette import DARK

    for row in markdown_rows("# a\n\n- b\n\n```python\nc = 1\n```\n\n|a|\n|-|\n|b|\n", 40, DARK):
        row.segments()


def load(names: Iterable[str]) -> None:
    """Import modules. To be called in a thread: what is imported by its usual statement afterwards is there already."""
    for name in names:
        import_module(name)
