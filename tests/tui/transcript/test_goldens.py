"""How everything looks, at four widths. Each row is closed by a bar, so that its end is seen."""

from __future__ import annotations

import pytest

from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import ToolBlock
from swecli.tui.transcript.palette import DARK
from swecli.tui.transcript.rows import Row, cells
from swecli.tui.transcript.tool_rows import render_display
from tests.tui.transcript.golden import check
from tests.tui.transcript.samples import DISPLAYS, blocks

WIDTHS = [20, 40, 78, 200]


def picture(parts: dict[str, list[Row]], width: int) -> str:
    lines: list[str] = []
    for name, rows in parts.items():
        lines.append(f"=== {name}")
        for row in rows:
            assert cells(row.text) <= width, (name, row.text)
            assert "".join(part.text for part in row.segments()) == row.text
            lines.append(f"{row.text}|")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("width", WIDTHS)
def test_display_blocks(width: int) -> None:
    check(f"displays-{width}", picture({n: render_display(b, width, DARK) for n, b in DISPLAYS.items()}, width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("form", ["short", "long"])
def test_blocks(width: int, form: str) -> None:
    drawn = {n: render_block(b, width, DARK, expanded=form == "long") for n, b in blocks().items()}
    check(f"blocks-{form}-{width}", picture(drawn, width))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 9])
def test_no_width_is_too_small(width: int) -> None:
    for block in blocks().values():
        for expanded in (False, True):
            for row in render_block(block, width, DARK, expanded=expanded):
                assert row.segments() is not None
    for display in DISPLAYS.values():
        assert all("\n" not in row.text for row in render_display(display, width, DARK))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_short_form_of_work_is_one_line(width: int) -> None:
    for name, block in blocks().items():
        if isinstance(block, ToolBlock):
            rows = render_block(block, width, DARK, short=True)
            assert len(rows) <= (1 if width >= 78 else 3), name
            assert rows[0].text == render_block(block, width, DARK)[0].text
