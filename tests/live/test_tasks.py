"""Four small tasks for a real model: a bug, a rename, a question, and a plan."""

from __future__ import annotations

import pytest

from swecli import demo
from tests.live.conftest import Live

pytestmark = pytest.mark.live


def test_the_bug_of_the_demonstration_is_fixed_and_the_tests_are_left_alone(live: Live) -> None:
    before = live.sources()
    assert live.checks().returncode != 0
    ended = live.run(demo.PROMPT, "--yolo")
    checks = live.checks()
    assert checks.returncode == 0, checks.stdout + ended.stdout
    assert live.sources()["test_basket.py"] == before["test_basket.py"]


def test_a_function_is_renamed_everywhere(live: Live) -> None:
    live.run(
        "Rename the function quantity_discount to discount_percent in the whole project. Change nothing else.", "--yolo"
    )
    sources = live.sources()
    assert not any("quantity_discount" in text for text in sources.values())
    assert sum("discount_percent" in text for text in sources.values()) >= 1
    assert "passed" in live.checks().stdout


def test_a_question_is_answered_from_the_code_and_changes_nothing(live: Live) -> None:
    before = live.sources()
    ended = live.run("From which order total on is shipping free? Name the file and line that decides it.", "--yolo")
    assert "50" in ended.result["text"]
    assert "pricing.py" in ended.result["text"]
    assert live.sources() == before


def test_plan_mode_ends_with_a_plan(live: Live) -> None:
    before = live.sources()
    ended = live.run(demo.PROMPT, "--permission-mode", "plan")
    assert live.sources() == before
    assert "pricing.py" in ended.result["text"]
