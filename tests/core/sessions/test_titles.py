"""Titles of sessions, made of the first message."""

from __future__ import annotations

import pytest

from swecli.core.sessions.titles import TITLE_LENGTH, line_of, title_from


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Please can you fix the login bug in auth.py? It crashes.", "Fix the login bug in auth.py"),
        ("fix it", "Fix it"),
        ("why does\nthis fail?", "Why does this fail?"),
        ("# Speed up the parser\n\nIt takes 3 s.", "Speed up the parser"),
        ("- first\n- second", "First"),
        ("```py\nx = 1\n```\nexplain **this**", "Explain this"),
        ("foo.py is wrong", "foo.py is wrong"),
        ("fix the bug in __init__.py", "Fix the bug in __init__.py"),
        ("why is mcp__weather__forecast slow", "Why is mcp__weather__forecast slow"),
        ("call __enter__ and __exit__", "Call __enter__ and __exit__"),
        ("日本語のコードを修正してください。お願いします", "日本語のコードを修正してください"),
        ("hi", "Hi"),
        ("hello there", "Hello there"),
        ("Hi there, fix the sum", "Fix the sum"),
        ("hello, there is a bug in auth.py", "There is a bug in auth.py"),
        ("???", "???"),
        ("   ", ""),
        ("name \udcff of a file", "Name ? of a file"),
    ],
)
def test_a_title_is_the_first_sentence_without_courtesies(text: str, title: str) -> None:
    assert title_from(text) == title


def test_a_long_one_is_cut_between_words() -> None:
    title = title_from("refactor " + "the whole module " * 20)
    assert len(title) <= TITLE_LENGTH
    assert title.endswith(("whole…", "module…", "the…"))
    assert len(line_of("x" * 500)) == TITLE_LENGTH
