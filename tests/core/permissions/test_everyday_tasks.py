"""How often everyday tasks ask, through the real session: the figures of docs/measurements.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.everyday import Asked, figures, measure, read_tasks
from swecli.core.protocol.events import Mode
from tests.support.thorough import examples

STEP = examples(5, 1)
"""Every fifth task; ``make soak`` does all."""
TASKS = read_tasks()[::STEP]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_there_are_forty_tasks_of_two_requests() -> None:
    tasks = read_tasks()
    assert len(tasks) == 40
    assert all(task.first and task.then for task in tasks)


async def test_default_asks_once_for_each_kind_of_thing() -> None:
    found = await measure(TASKS, "default")
    first, _, then, then_sum = figures(found)
    assert (first <= 3, then <= 1, then_sum <= 10) == (True, True, True), found


@pytest.mark.parametrize(("mode", "bubblewrap"), [("accept-edits", True), ("auto", False)])
async def test_without_new_commands_the_other_modes_ask_nothing_more(mode: Mode, bubblewrap: bool) -> None:
    found = await measure(TASKS, mode, bubblewrap=bubblewrap)
    new = [title for one in found for title in one.then if not _known(title, one)]
    assert sum(len(one.then) for one in found) == len(new) <= 1, found


def _known(title: str, one: Asked) -> bool:
    """Whether the first request asked about something that begins alike."""
    return any(title.split()[:4] == before.split()[:4] for before in one.first)
