from __future__ import annotations

from datetime import date

from swecli.core.context_management.note_topics import form_of, todo_text, usage_text
from swecli.core.context_management.prompt import environment_note
from swecli.core.protocol.blocks import Todo


def test_only_own_words_may_get_the_rank_of_a_system_message() -> None:
    assert [form_of(topic) for topic in ("mode", "presence", "usage", "tools")] == ["stays"] * 4
    assert [form_of(topic) for topic in ("loop", "empty answer")] == ["this turn"] * 2
    assert [form_of(topic) for topic in ("", "todos", "scratchpad", "jobs j1", "changed files")] == ["quoted"] * 5


def test_a_todo_list_is_told_until_all_of_it_is_done() -> None:
    todos = [Todo("read", "completed"), Todo("fix", "in_progress"), Todo("test")]
    assert todo_text(todos) == "Your todo list:\n[x] read\n[>] fix\n[ ] test"
    assert todo_text([Todo("read", "completed")]) == ""
    assert todo_text([]) == ""


def test_the_model_is_told_of_its_tool_only_where_it_has_it() -> None:
    assert "80%" in usage_text(0.8, can_compact=False)
    assert "compact_context" in usage_text(0.8, can_compact=True)
    assert "compact_context" not in usage_text(0.8, can_compact=False)


def test_the_environment_is_a_few_plain_lines() -> None:
    note = environment_note(today=date(2025, 10, 7), cwd="/w\nx\udcff", platform="Linux 6.1", shell="bash", git=True)
    assert note.splitlines() == [
        "<environment>",
        "Date: 2025-10-07",
        "Working directory: /w?x?",
        "Platform: Linux 6.1",
        "Shell: bash",
        "Git work tree: yes",
        "</environment>",
    ]
    without = environment_note(today=date(2025, 1, 2), cwd="/w", platform="Darwin", shell="", git=False)
    assert "Shell" not in without
    assert "Git work tree: no" in without
