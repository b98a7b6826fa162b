"""The lines of the greeting."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from swecli.core.engine.session_view import SessionView
from swecli.tui.greeting import MOST_FILES, greeting
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import SessionBlock
from swecli.tui.transcript.palette import DARK
from tests.support.fake_session import FakeView


def test_many_instruction_files_do_not_fill_the_screen() -> None:
    view = FakeView()
    view.instructions = tuple(str(Path(view.cwd) / f".claude/rules/{n}.md") for n in range(MOST_FILES + 3))
    lines = dict(greeting(cast("SessionView", view), (), lambda action: action, 0.0, ""))
    assert lines["Instructions"].endswith(".claude/rules/5.md, and 3 more")
    view.instructions = view.instructions[:MOST_FILES]
    lines = dict(greeting(cast("SessionView", view), (), lambda action: action, 0.0, ""))
    assert "more" not in lines["Instructions"]


def test_a_narrow_window_keeps_the_labels_without_their_column() -> None:
    lines = (("Folder", "/home/me/project"), ("Mode (Shift+Tab)", "default"), ("Instructions", "none"), ("", "A hint."))
    block = SessionBlock("s", "a/b", "/home/me/project", "default", "0.1.0", lines=lines)

    def shown(width: int) -> list[str]:
        return [row.body.rstrip() for row in render_block(block, width, DARK)]

    assert shown(80)[3:] == ["Instructions      none", "A hint."]
    assert shown(40) == ["swecli 0.1.0", "Folder /home/me/project", "Mode default", "Instructions none", "A hint."]
    assert shown(20)[2:] == ["default", "none", "A hint."]
