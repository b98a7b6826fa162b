"""What typed lines mean as answers."""

from __future__ import annotations

import pytest

from swecli.core.protocol.events import Option, PermissionRequested, Question
from swecli.plain.answers import NotUnderstood, answer, approval_hint, question_lines, reply

ASK = PermissionRequested("p", "t", "run_command", "make", (), "Commands ask.", "hash", "Bash(make)")
CHOICE = Question("Which price?", (Option("95", "as in the README"), Option("90")), header="Price")
SEVERAL = Question("Which files?", (Option("a.py"), Option("b.py"), Option("c.py")), multiple=True)


@pytest.mark.parametrize(
    ("line", "choice", "note"),
    [
        ("y", "once", ""),
        ("  Yes. ", "once", ""),
        ("a", "always", ""),
        ("n", "reject", ""),
        ("no use integers instead", "reject", "use integers instead"),
    ],
)
def test_replies(line: str, choice: str, note: str) -> None:
    found = reply(ASK, line)
    assert (found.request, found.choice, found.note) == ("p", choice, note)


@pytest.mark.parametrize("line", ["", "   ", "maybe", "yes please do", "yy", "always run it", "\x1b"])
def test_nothing_else_decides(line: str) -> None:
    with pytest.raises(NotUnderstood, match="Nothing was run"):
        reply(ASK, line)


def test_always_is_refused_where_no_rule_is_offered() -> None:
    ask = PermissionRequested("p", "t", "run_command", "make", (), "Commands ask.", "hash")
    assert "always" not in approval_hint(ask)
    with pytest.raises(NotUnderstood):
        reply(ask, "a")


@pytest.mark.parametrize(
    ("question", "line", "chosen"),
    [
        (CHOICE, "1", ("95",)),
        (CHOICE, "90", ("90",)),
        (CHOICE, "neither", ("neither",)),
        (SEVERAL, "3, 1,3", ("c.py", "a.py")),
        (SEVERAL, "A.py, b.py", ("a.py", "b.py")),
        (Question("Name?"), "1", ("1",)),
    ],
)
def test_answers(question: Question, line: str, chosen: tuple[str, ...]) -> None:
    assert answer(question, line) == chosen


@pytest.mark.parametrize("line", ["", "0", "3"])
def test_what_is_no_answer_is_asked_again(line: str) -> None:
    with pytest.raises(NotUnderstood):
        answer(CHOICE, line)


def test_a_question_is_read_from_top_to_bottom() -> None:
    assert list(question_lines(CHOICE, 1, 2)) == [
        "Question 1 of 2: Price: Which price?",
        "1. 95: as in the README",
        "2. 90",
        "Answer with a number, or with words of your own.",
    ]
