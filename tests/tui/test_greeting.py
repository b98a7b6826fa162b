"""The lines of the greeting."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from swecli.core.engine.session_view import SessionView
from swecli.tui.greeting import MOST_FILES, greeting
from tests.support.fake_session import FakeView


def test_many_instruction_files_do_not_fill_the_screen() -> None:
    view = FakeView()
    view.instructions = tuple(str(Path(view.cwd) / f".claude/rules/{n}.md") for n in range(MOST_FILES + 3))
    lines = dict(greeting(cast("SessionView", view), (), lambda action: action, 0.0, ""))
    assert lines["Instructions"].endswith(".claude/rules/5.md, and 3 more")
    view.instructions = view.instructions[:MOST_FILES]
    lines = dict(greeting(cast("SessionView", view), (), lambda action: action, 0.0, ""))
    assert "more" not in lines["Instructions"]
