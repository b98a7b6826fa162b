"""The lines of the greeting."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from swecli.assembly.session_list import StoredSession
from swecli.core.engine.session_view import SessionView
from swecli.tui.greeting import MOST_FILES, greeting
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import NoticeBlock, Put, Remove, SessionBlock
from swecli.tui.transcript.page import Page
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
    rows = [row.text.rstrip() for row in render_block(block, 118, DARK)]
    texts = [row.strip() for row in rows if row.strip()]
    assert texts == [
        "▟▙ swecli 0.1.0",
        "fake/model · /proj",
        "Describe a task below, for example: explain what this project does",
        "Ctrl+N continues “Fix the · login” (2 h ago)",
    ]
    for row in rows:
        assert not row or abs(len(row) - len(row.strip()) - (118 - len(row.strip())) // 2) <= 1
    assert [row.body.strip() for row in render_block(block, 97, DARK)] == [row.strip() for row in rows]
    narrow = [row.body for row in render_block(block, 78, DARK)]
    assert narrow[0].split() == ["swecli", "0.1.0", "/proj"]
    assert len(narrow) == 6


def test_a_greeting_stands_in_the_middle_of_a_wide_window_until_something_follows() -> None:
    page = Page()
    page.configure(width=118, window=40)
    page.apply(Put(SessionBlock("s", "a/b", "/proj", "default", "0.1.0", lines=(("Folder", "/proj"), ("", "A hint.")))))
    page.measure(0)
    texts = [row.body.strip() for row in page.rows(0)]
    first = texts.index("▟▙ swecli 0.1.0")
    last = max(place for place, text in enumerate(texts) if text)
    assert abs(first - (40 - 1 - last)) <= 1
    page.configure(window=20)
    assert page.index.total == len(page.rows(0)) == len(texts) - 10
    page.apply(Put(NoticeBlock("n", "Something")))
    assert page.rows(0)[1].body.strip() == texts[first]
    assert page.index.top(1) == len(page.rows(0))
    page.apply(Remove("n"))
    assert page.index.total == len(texts) - 10
    page.configure(width=78)
    assert page.rows(0)[0].body.startswith("swecli 0.1.0")


def test_a_narrow_window_keeps_the_labels_without_their_column() -> None:
    lines = (("Folder", "/home/me/project"), ("Mode (Shift+Tab)", "default"), ("Instructions", "none"), ("", "A hint."))
    block = SessionBlock("s", "a/b", "/home/me/project", "default", "0.1.0", lines=lines)

    def shown(width: int) -> list[str]:
        return [row.body.rstrip() for row in render_block(block, width, DARK)]

    assert shown(80)[0] == "swecli 0.1.0      /home/me/project"
    assert shown(80)[2:] == ["Instructions      none", "A hint."]
    assert shown(40) == ["swecli 0.1.0 /home/me/project", "Mode default", "Instructions none", "A hint."]
    assert shown(20)[1:] == ["default", "none", "A hint."]
