"""Grants that outlive a session."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from swecli.core.config.trust import GRANTS_FILE, WEEK, GrantStore


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> GrantStore:
    return GrantStore(tmp_path / "data" / GRANTS_FILE, clock)


def _rules(store: GrantStore) -> list[str]:
    return [grant.rule for grant in store.active()]


def test_a_grant_survives_a_restart_and_expires(store: GrantStore, clock: Clock, tmp_path: Path) -> None:
    store.add("Bash(npm test *)", "week")
    store.add("Bash(make *)", "project")
    again = GrantStore(tmp_path / "data" / GRANTS_FILE, clock)
    assert _rules(again) == ["Bash(npm test *)", "Bash(make *)"]
    clock.now += WEEK - 1
    assert len(again.active()) == 2
    clock.now += 1
    assert _rules(again) == ["Bash(make *)"]
    clock.now += 100 * WEEK
    assert _rules(again) == ["Bash(make *)"]


def test_the_file_is_for_the_user_alone(store: GrantStore, tmp_path: Path) -> None:
    store.add("Bash(make *)", "project")
    assert stat.S_IMODE((tmp_path / "data" / GRANTS_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_revoking_holds_in_other_processes_at_once(store: GrantStore, clock: Clock, tmp_path: Path) -> None:
    other = GrantStore(tmp_path / "data" / GRANTS_FILE, clock)
    grant = store.add("Bash(make *)", "project")
    store.add("Bash(npm test *)", "week")
    assert len(other.active()) == 2
    assert store.revoke(grant.id) == (grant,)
    assert _rules(other) == ["Bash(npm test *)"]
    assert [each.rule for each in other.revoke("Bash(npm test *)")] == ["Bash(npm test *)"]
    assert store.active() == ()
    assert store.revoke("nothing") == ()


def test_the_same_rule_is_kept_once_with_its_newest_span(store: GrantStore, clock: Clock) -> None:
    store.add("Bash(make *)", "week")
    store.add("Bash(make *)", "project")
    clock.now += 2 * WEEK
    assert _rules(store) == ["Bash(make *)"]


def test_a_clock_that_was_set_back_gives_nothing_away(store: GrantStore, clock: Clock) -> None:
    store.add("Bash(make *)", "week")
    clock.now -= WEEK
    assert store.active() == ()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"grants": 3}',
        '{"grants": [1, {"id": 2}, {"id": "a", "rule": "x", "since": "now"}]}',
        "[" * 9_999,
    ],
)
def test_a_damaged_file_grants_nothing_and_takes_new_ones(store: GrantStore, tmp_path: Path, content: str) -> None:
    path = tmp_path / "data" / GRANTS_FILE
    path.parent.mkdir()
    path.write_text(content)
    assert store.active() == ()
    store.add("Bash(make *)", "project")
    assert _rules(store) == ["Bash(make *)"]
    assert json.loads(path.read_text())["version"] == 1


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "data").write_text("a file")
    store = GrantStore(tmp_path / "data" / GRANTS_FILE, clock)
    assert store.active() == ()
    with pytest.raises(OSError, match="data"):
        store.add("Bash(make *)", "project")
