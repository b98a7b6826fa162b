"""Which bullets are told, how much room they take, and what their outcomes are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from swecli.core.context_management.counter import PLAYBOOK_NOTE
from swecli.core.context_management.prompts import note
from swecli.core.playbook.bullet import Bullet, Guard, Trigger
from swecli.core.playbook.selection import (
    MOST,
    MOST_TOKENS,
    bullets_text,
    fitting,
    for_failure,
    for_message,
    proven,
    tokens_of,
)
from swecli.core.playbook.trials import Count, Step, Trials, verdict_of

TESTS = Bullet(
    "tes-00001",
    "testing",
    "`pytest` fails here (No module named 'basket'); use `python -m pytest`.",
    type="command",
    trigger=Trigger((), ("pytest",), ("No module named 'basket'",), ("test", "suite", "pytest", "receipt")),
    guard=Guard("python -m pytest"),
)
CSS = Bullet(
    "fil-00002",
    "file_operations",
    "Edits of `web/app.css` did not apply 3 times; read its current lines right before each edit.",
    type="gotcha",
    trigger=Trigger(("web/app.css",), keywords=("css", "web", "app")),
    guard=Guard(path="web/app.css"),
)
PORT = Bullet("err-00003", "error_handling", "Integration tests of `billing` need Redis on port 6380.")
ALL = [TESTS, CSS, PORT]


@pytest.mark.parametrize(
    ("message", "ids"),
    [
        ("Run the tests please", ["tes-00001"]),
        ("run the test suite again", ["tes-00001"]),
        ("why does `pytest` not work", ["tes-00001"]),
        ("it says No module named 'basket'", ["tes-00001"]),
        ("change the colour in web/app.css", ["fil-00002"]),
        ("make @app.css darker", ["fil-00002"]),
        ("do the billing integration tests need redis?", ["err-00003"]),
        ("hi", []),
        ("explain what this project does", []),
        ("Write a poem about the sea", []),
        ("", []),
    ],
)
def test_what_a_message_sets_off_is_told_and_nothing_else(message: str, ids: list[str]) -> None:
    found = [bullet.id for bullet in for_message(ALL, message)]
    assert found[: len(ids)] == ids
    assert bool(found) == bool(ids)


def test_what_was_told_is_not_told_again_and_what_is_off_is_not_told() -> None:
    assert for_message(ALL, "Run the tests", known={"tes-00001"}) == []
    assert for_message([replace(TESTS, status="off")], "Run the tests") == []


def test_a_failure_brings_what_applies_to_it() -> None:
    assert [one.id for one in for_failure(ALL, "pytest -q", "anything")] == ["tes-00001"]
    assert [one.id for one in for_failure(ALL, "tox", "No module named 'basket'")] == ["tes-00001"]
    assert for_failure(ALL, "make docs", "No module named 'basket'") == []
    assert for_failure(ALL, "python -m pytest", "1 failed") == []
    assert for_failure(ALL, "pytester", "boom") == []
    assert [one.id for one in for_failure(ALL, "", "", "web/app.css")] == ["fil-00002"]


def test_no_more_is_told_than_has_room() -> None:
    many = [replace(TESTS, id=f"tes-{n:05d}") for n in range(30)]
    kept = fitting(many)
    assert 0 < len(kept) <= MOST
    assert tokens_of(bullets_text(kept)) <= MOST_TOKENS
    long = [replace(one, content="`x/y` " + "é" * 190) for one in many]
    assert tokens_of(bullets_text(fitting(long))) <= MOST_TOKENS
    assert bullets_text([]) == ""
    assert note(bullets_text(kept)).startswith(PLAYBOOK_NOTE)


def test_the_prompt_has_the_proven_ones_in_the_same_bytes() -> None:
    core = [replace(TESTS, status="core", helpful=5), replace(CSS, status="core", helpful=4), PORT]
    text, ids = proven(core)
    assert ids == {"tes-00001", "fil-00002"}
    assert text.startswith("## Learned Strategies\n\n### File Operations\n- [fil-00002]")
    assert proven(reversed(core)) == (text, ids)
    assert proven(ALL) == ("", frozenset())


@pytest.mark.parametrize(
    ("bullet", "step", "verdict"),
    [
        (TESTS, Step("command", "python -m pytest -q", "ok"), "helpful"),
        (TESTS, Step("command", "python -m pytest", "error"), "helpful"),
        (TESTS, Step("command", "python -m pytest", "error", "python: command not found"), "harmful"),
        (TESTS, Step("command", "python -m pytest", "rejected"), "harmful"),
        (TESTS, Step("command", "pytest", "error", "No module named 'basket'"), "neutral"),
        (TESTS, Step("command", "ls", "ok"), None),
        (TESTS, Step("edit", "web/app.css", "ok"), None),
        (CSS, Step("edit", "web/app.css", "ok"), "helpful"),
        (CSS, Step("edit", "web/app.css", "error"), "harmful"),
        (CSS, Step("read", "web/app.css", "ok"), None),
        (replace(CSS, type="location"), Step("read", "web/app.css", "ok"), "helpful"),
    ],
)
def test_outcomes(bullet: Bullet, step: Step, verdict: str | None) -> None:
    assert verdict_of(bullet, step) == verdict


def test_a_trial_is_decided_once() -> None:
    trials = Trials()
    assert trials.begin([TESTS, CSS]) == [Count("tes-00001", "exposures"), Count("fil-00002", "exposures")]
    assert trials.begin([TESTS]) == []
    ran = Step("command", "python -m pytest", "ok")
    assert trials.observe(ran) == [Count("tes-00001", "helpful")]
    assert trials.observe(ran) == []
    assert trials.end_turn() == [Count("fil-00002", "neutral")]
    assert trials.open == {}
