"""What typed lines mean as answers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from swecli.commands.base import Offer
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.commands import Compact, ReplyPermission, UndoCompaction
from swecli.core.protocol.events import PermissionRequested
from swecli.core.protocol.request_events import Hunk, Option, Question
from swecli.plain.front_end import (
    NotUnderstood,
    accepted,
    answer,
    approval_hint,
    hunk_lines,
    offer_lines,
    question_lines,
    reply,
)

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
        "Answer with a number, or in your own words.",
    ]


COMMAND = PermissionRequested(
    "p1", "t1", "run_command", "ls", (), "Asks.", "hash", arguments={"command": "make x", "timeout": 5}
)
HUNKS = PermissionRequested(
    "p1",
    "t1",
    "edit_file",
    "f",
    (DiffBlock("f", "a\nb\nc\n", "A\nb\nC\n"),),
    "Asks.",
    "hash",
    hunks=(Hunk(0, 1, 1, 1, 1), Hunk(0, 3, 1, 3, 1)),
)


MOVED = (Hunk(0, 1, 0, 1, 1), Hunk(0, 3, 1, 4, 0))
"""A line is added before one that is deleted."""


def test_another_command_is_shown_for_approval_first() -> None:
    changed = {"command": "make y, z", "timeout": 5}
    assert reply(COMMAND, "e make y, z") == ReplyPermission("p1", "edit", arguments=changed)
    with pytest.raises(NotUnderstood, match="another command"):
        reply(COMMAND, "e")


def test_changes_are_chosen_by_their_numbers() -> None:
    assert hunk_lines(HUNKS) == ["2 changes:", "1. f, line 1", "-a", "+A", "2. f, line 3", "-c", "+C"]
    moved = replace(HUNKS, blocks=(DiffBlock("f", "a\nb\nc\n", "+\na\nb\n"),), hunks=MOVED)
    assert hunk_lines(moved)[3:] == ["2. f, line 3", "-c"]
    assert reply(HUNKS, "e 2") == ReplyPermission("p1", "once", hunks=(2,))
    assert reply(HUNKS, "e 2, 1") == ReplyPermission("p1", "once", hunks=(1, 2))
    for line in ("e", "e 3", "e 0", "e 1 x", "e -1"):
        with pytest.raises(NotUnderstood, match="1 to 2"):
            reply(HUNKS, line)


OFFER = Offer("Compact?", Compact(), ("Apply", "/compact undo restores it"), ("Cancel", "nothing changes"))


def test_an_offer_is_accepted_by_a_clear_yes_only() -> None:
    assert list(offer_lines(OFFER)) == [
        "Compact?",
        "Answer with y apply (/compact undo restores it), or n cancel (nothing changes).",
    ]
    assert [accepted(OFFER, line) for line in ("y", " Yes. ", "n", "NO")] == [OFFER.command, OFFER.command, None, None]
    for line in ("", "  ", "yy", "yes please", "always", "1"):
        with pytest.raises(NotUnderstood, match=r"Nothing was changed\. Answer with y apply"):
            accepted(OFFER, line)


def test_an_offer_that_can_wait_has_a_third_answer() -> None:
    offer = replace(OFFER, later=UndoCompaction())
    assert "l at the next compaction (costs no thoughts then), or n cancel" in offer_lines(offer)[1]
    assert [accepted(offer, line) for line in ("l", "Later.", "y", "n")] == [
        offer.later,
        offer.later,
        offer.command,
        None,
    ]
    with pytest.raises(NotUnderstood):
        accepted(OFFER, "later")
