"""Which errors are new, and how they are reported."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.language_servers.findings import LONGEST, Finding, brought, findings_text
from swecli.core.language_servers.protocol import Diagnostic, Position, Range


def error(line: int, message: str = "bad", code: str | int | None = "E1") -> Diagnostic:
    return Diagnostic(Range(Position(line, 0), Position(line, 1)), message, 1, code)


def lines(found: tuple[Finding, ...]) -> list[int]:
    return [one.line for one in found]


def test_an_error_that_only_moved_is_not_new() -> None:
    old, new = "a\nb\nc\n", "x\ny\na\nb\nc\n"
    assert brought("f", [error(1)], [error(3)], old, new) == ()
    assert brought("f", [error(1)], [error(2)], old.replace("\n", "\r\n"), "x\r\na\r\nb\r\nc\r\n") == ()


def test_of_several_with_the_same_words_the_one_at_the_new_place_is_told() -> None:
    old, new = "a\nb\n", "new\na\nb\n"
    assert lines(brought("f", [error(0)], [error(0), error(1)], old, new)) == [1]


def test_an_error_on_a_line_that_was_rewritten_is_old_if_there_was_one_like_it() -> None:
    assert brought("f", [error(0)], [error(0)], "a\n", "other\n") == ()
    assert lines(brought("f", [error(0)], [error(0, "worse")], "a\n", "other\n")) == [1]
    assert lines(brought("f", [error(0)], [error(0, code="E2")], "a\n", "a\n")) == [1]


def test_they_come_by_line_once_each() -> None:
    found = brought("f", [], [error(9), error(2), error(2)], "", "")
    assert lines(found) == [3, 10]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abc\n"), max_size=30).map("".join), st.lists(st.integers(0, 12), max_size=12))
def test_the_same_list_for_the_same_text_is_never_news(text: str, places: list[int]) -> None:
    errors = [error(place) for place in places]
    assert brought("f", errors, errors, text, text) == ()


def test_what_the_model_reads() -> None:
    found = [Finding("a.py", number, f"bad {number}", "E") for number in range(1, 4)]
    assert findings_text(found, 2, "pyright") == (
        "pyright reports 3 new errors:\na.py:1: bad 1 [E]\na.py:2: bad 2 [E]\nand 1 more"
    )
    assert findings_text((), 2, "pyright") == ""
    late = findings_text(found[:1], 2, "pyright", late=True)
    assert late.startswith("pyright reports 1 new error after an earlier edit:\n")


def test_a_long_message_with_line_breaks_is_one_short_line() -> None:
    (one,) = brought("f", [], [error(0, "so\n  wrong\r\n" * 100, None)], "", "x")
    assert len(one.message) == LONGEST
    assert one.message.startswith("so wrong so wrong")
    assert one.code == ""
