"""Bounds, what becomes of a bullet by its outcomes, and how records of the same bullet are merged."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.playbook.bullet import Bullet, Guard, Source, Trigger, wilson
from swecli.core.playbook.learning import learn
from swecli.core.playbook.novelty import Known
from swecli.core.playbook.playbook import (
    DECAY,
    MOST_ARCHIVED,
    MOST_IN_SECTION,
    MOST_LIVE,
    SLACK,
    Playbook,
    deleted,
    merged,
    settle,
    taken_in,
    verdict_on,
)
from tests.support.thorough import examples

NOW = 1_000_000_000.0


def bullet(content: str = "Use `x/y.sh` on port 4711.", **values: Any) -> Bullet:
    made = Bullet("tes-00001", "testing", content, created_at=NOW)
    return replace(made, **values)


def test_thousands_of_candidates_leave_a_bounded_playbook() -> None:
    playbook = Playbook()
    candidates = (
        Bullet("", f"section {n % 9}", f"Run `tools/t{n}.sh` with `--n{n}` here, or it fails.")
        for n in range(examples(2_000, 10_000))
    )
    seen = 0
    for start in candidates:
        made = playbook.add_bullet(start.section, start.content, replace(start, created_at=NOW + seen))
        assert made.live
        seen += 1
    live = playbook.live()
    assert len(live) <= MOST_LIVE
    assert all(
        sum(one.section == section for one in live) <= MOST_IN_SECTION for section in {one.section for one in live}
    )
    assert len(playbook.all()) <= MOST_LIVE + MOST_ARCHIVED + SLACK
    assert playbook.forgotten == seen - len(playbook.all())


def test_what_is_worth_least_goes_first_and_frozen_ones_stay() -> None:
    playbook = Playbook()
    for n in range(MOST_IN_SECTION):
        playbook.add_bullet("testing", f"Use `t{n}.sh`.", Bullet("", "", "", helpful=int(n != 5), frozen=n == 6))
    playbook.add_bullet("testing", "Use `new.sh`.")
    (gone,) = (one for one in playbook.all() if one.status == "archived")
    assert gone.content == "Use `t5.sh`."
    assert playbook.add_bullet("testing", "Use `t5.sh`.").status == "probation"


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({}, "probation"),
        ({"exposures": 3}, "active"),
        ({"helpful": 3, "exposures": 3}, "active"),
        ({"helpful": 4, "exposures": 4}, "core"),
        ({"helpful": 5, "harmful": 4, "exposures": 9}, "active"),
        ({"harmful": 2, "helpful": 1, "exposures": 3}, "archived"),
        ({"harmful": 2, "helpful": 2, "exposures": 3}, "active"),
        ({"helpful": 9, "exposures": 9, "created_at": NOW - DECAY - 1}, "archived"),
        ({"helpful": 9, "exposures": 9, "created_at": NOW - DECAY - 1, "verified_at": NOW - 5}, "core"),
    ],
)
def test_outcomes_and_time_decide(values: dict[str, Any], status: str) -> None:
    assert verdict_on(bullet(**values), NOW).status == status


def test_a_frozen_bullet_is_not_judged() -> None:
    playbook = Playbook()
    playbook.put(bullet(harmful=9, frozen=True))
    assert settle(playbook, NOW + 2 * DECAY) == []
    assert playbook.live()


def test_the_bound_rises_with_good_outcomes_and_falls_with_bad_ones() -> None:
    assert wilson(0, 0) < wilson(3, 0) < 0.6 < wilson(4, 0) < wilson(40, 0) < 1
    assert wilson(4, 4) < wilson(4, 1)


def test_two_records_of_one_bullet_become_one_with_nothing_lost() -> None:
    one, other = bullet(helpful=3, exposures=5), bullet(helpful=1, harmful=2, last_used=NOW + 9)
    both = merged(one, other)
    assert (both.helpful, both.harmful, both.exposures, both.last_used) == (3, 2, 5, NOW + 9)
    assert merged(other, one) == both
    assert merged(one, replace(other, status="off")).status == "off"


def test_bullets_of_two_branches_stay_both_even_under_one_id() -> None:
    playbook = Playbook()
    taken_in(playbook, bullet("Use `a.sh`."))
    taken_in(playbook, bullet("Use `b.sh`."))
    taken_in(playbook, bullet("Use `a.sh`.", helpful=2))
    assert sorted((one.content, one.helpful) for one in playbook.bullets()) == [("Use `a.sh`.", 2), ("Use `b.sh`.", 0)]


def fixed(failed: str, worked: str) -> Bullet:
    text = f"`{failed}` fails here (No module named 'basket'); use `{worked}`."
    return Bullet("", "testing", text, type="command", trigger=Trigger((), (failed,)), guard=Guard(worked))


@pytest.mark.parametrize(
    ("failed", "worked", "taken"),
    [
        ("pytest -q tests", "PYTHONPATH=src python -m pytest -q tests", False),
        ("pytest tests/test_cart.py", "python -m pytest tests/test_cart.py -x", False),
        ("pytest -q", "./tools/check-basket.sh", True),
        ("ruff check src", "python -m pytest -q tests", True),
    ],
)
def test_a_deleted_lesson_covers_other_words_of_its_commands(failed: str, worked: str, taken: bool) -> None:
    playbook = Playbook()
    playbook.put(deleted(replace(fixed("pytest", "python -m pytest"), id="tes-00001"), NOW))
    (result,) = learn(playbook, [fixed(failed, worked)], Known(), NOW)
    assert (result.refused, result.new) == (("", True) if taken else ("the user does not want it", False))


@pytest.mark.parametrize(("failed", "error", "new"), [("pytset -q b.py", "x", False), ("pytset b.py", "y", True)])
def test_the_same_error_of_the_same_program_is_one_lesson(failed: str, error: str, new: bool) -> None:
    def lesson(command: str, signature: str) -> Bullet:
        made = fixed(command, "python -m pytest")
        return replace(made, trigger=Trigger((), (command,), (signature,)))

    playbook = Playbook()
    learn(playbook, [lesson("pytset -q a.py", "x")], Known(), NOW)
    (result,) = learn(playbook, [lesson(failed, error)], Known(), NOW)
    assert (result.new, len(playbook.bullets())) == (new, 1 + new)
    (another,) = learn(playbook, [lesson("yarn b.py", "x")], Known(), NOW)
    assert another.new


def test_a_deleted_lesson_about_a_file_covers_that_file_only() -> None:
    def edits(path: str, count: int) -> Bullet:
        text = f"Edits of `{path}` did not apply {count} times; read its current lines right before each edit."
        source = (Source("s", (), "", "edit did not apply"),)
        return Bullet("", "file_operations", text, type="gotcha", guard=Guard(path=path), evidence=source)

    playbook = Playbook()
    playbook.put(deleted(replace(edits("src/a.py", 3), id="fil-00001"), NOW))
    found = learn(playbook, [edits("src/a.py", 5), edits("src/b.py", 5)], Known(), NOW)
    assert [one.refused for one in found] == ["the user does not want it", ""]


def test_what_the_user_deleted_stays_deleted_and_is_not_learned_again() -> None:
    there = bullet()
    gone = deleted(there, NOW)
    for first, second in ((gone, there), (there, gone)):
        playbook = Playbook()
        taken_in(playbook, first)
        taken_in(playbook, second)
        assert playbook.bullets() == []
        (result,) = learn(playbook, [replace(there, id="")], Known(), NOW)
        assert result.refused == "the user does not want it"
    assert there.content not in str(Playbook.to_dict(playbook))
