"""The lines of the greeting."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from swecli.core.engine.session_view import SessionView
from swecli.tui.backend import StoredSession
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


def test_a_wide_window_says_three_things_in_its_middle() -> None:
    view, earlier = FakeView(), StoredSession("s1", "Fix the · login", "/proj", 0.0, 3, 100)
    keys = {"continue_session": "Ctrl+N", "next_mode": "Shift+Tab"}
    lines = greeting(cast("SessionView", view), (earlier,), lambda action: keys.get(action, action), 7200.0, "")
    block = SessionBlock("s", "a/b", "/proj", "default", "0.1.0", lines=lines)
    rows = [row.body.rstrip() for row in render_block(block, 118, DARK)]
    texts = [row.strip() for row in rows if row.strip()]
    assert texts == [
        "▟▙ swecli 0.1.0",
        "fake/model · /proj",
        "Describe a task below, for example: explain what this project does",
        "Ctrl+N continues “Fix the · login” (2 h ago)",
    ]
    for row in rows:
        assert not row or abs(len(row) - len(row.strip()) - (118 - len(row.strip())) // 2) <= 1
    narrow = [row.body for row in render_block(block, 78, DARK)]
    assert narrow[1].startswith("Folder")
    assert len(narrow) < 8


def test_a_narrow_window_keeps_the_labels_without_their_column() -> None:
    lines = (("Folder", "/home/me/project"), ("Mode (Shift+Tab)", "default"), ("Instructions", "none"), ("", "A hint."))
    block = SessionBlock("s", "a/b", "/home/me/project", "default", "0.1.0", lines=lines)

    def shown(width: int) -> list[str]:
        return [row.body.rstrip() for row in render_block(block, width, DARK)]

    assert shown(80)[3:] == ["Instructions      none", "A hint."]
    assert shown(40) == ["swecli 0.1.0", "Folder /home/me/project", "Mode default", "Instructions none", "A hint."]
    assert shown(20)[2:] == ["default", "none", "A hint."]
