"""A stored session under other settings: the same curve with the same ones, the same result each time, no socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import to_builtins

from swecli.assembly.live_settings import compaction_options, context_limits
from swecli.command_line.lab import _shown, lab
from swecli.core.config.paths import user_paths
from swecli.core.config.settings import Settings
from swecli.core.protocol.events import Event, StepStarted, Unknown
from swecli.core.sessions.database import DATABASE, open_database
from swecli.core.sessions.store import SessionStore
from swecli.core.validation import validated
from swecli.features.lab.recording import NotReplayable, Recording
from swecli.features.lab.replay import Replayed, Strategy, replay
from swecli.features.lab.report import document
from swecli.features.lab.strategies import PRESETS, Tried, changes_of, propose, with_changes
from swecli.launch import StartError
from tests.features.lab.recorded_session import record
from tests.support.thorough import examples

TURNS = examples(18, 40)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    base = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWECLI_HOME", str(base / "home"))
        patch.delenv("SWECLI_CONFIG", raising=False)
        asyncio.run(record(base, turns=TURNS))
        yield base


@pytest.fixture(scope="module")
def events(base: Path) -> list[Event]:
    file = user_paths({"SWECLI_HOME": str(base / "home")}).workspace_data(base / "work") / DATABASE
    with closing(SessionStore(open_database(file))) as store:
        return store.load(store.list()[0].id)


def strategy(name: str) -> Strategy:
    settings = validated(Settings, with_changes(to_builtins(Settings()), PRESETS[name]))
    return Strategy(name, context_limits(settings), compaction_options(settings.context))


@pytest.fixture(scope="module")
def results(events: Sequence[Event]) -> list[Replayed]:
    recording = Recording.of("s", events)
    return asyncio.run(replay(recording, [strategy("current"), strategy("half"), strategy("truncation")]))


def test_the_settings_of_the_recording_give_its_curve(events: Sequence[Event], results: Sequence[Replayed]) -> None:
    recorded = [event.body.budget.used for event in events if isinstance(event.body, StepStarted)]
    assert [point.used for point in results[0].points] == recorded
    errors = [abs(point.used - size) / size for point, size in zip(results[1].points, recorded, strict=True)]
    assert max(errors) <= 0.01
    assert results[1].compactions + results[1].clearings == results[0].compactions + results[0].clearings >= 4


def test_other_settings_make_another_session_of_it(results: Sequence[Replayed]) -> None:
    recorded, _, half, truncation = results
    assert half.peak < 0.85 * recorded.peak
    assert half.compactions + half.clearings > recorded.compactions + recorded.clearings
    assert half.needed_again > recorded.needed_again
    assert truncation.cost != recorded.cost
    assert not any(one.blocked for one in results)


def test_two_runs_are_the_same_and_open_no_socket(
    events: Sequence[Event], results: Sequence[Replayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording.of("s", events)
    loop = asyncio.new_event_loop()
    opened: list[object] = []
    monkeypatch.setattr(socket, "socket", lambda *given, **named: opened.append(given))
    try:
        again = loop.run_until_complete(replay(recording, [strategy("current")]))
    finally:
        monkeypatch.undo()
        loop.close()
    names = ["recorded", "current"]
    assert opened == []
    assert document(recording, names, again) == document(recording, names, results[:2])


def test_events_that_cannot_be_read_are_left_out_and_counted(events: Sequence[Event]) -> None:
    lost = [one for one in events if one.seq % 9 == 0]
    broken = [Event(one.seq, one.ts, one.session, one.turn, Unknown("x", {})) if one in lost else one for one in events]
    recording = Recording.of("s", broken)
    assert recording.skipped == len(lost)
    assert asyncio.run(replay(recording, [strategy("current")]))[1].points


def test_a_session_without_a_request_says_so(events: Sequence[Event]) -> None:
    with pytest.raises(NotReplayable, match="no model request"):
        Recording.of("s", [event for event in events if not isinstance(event.body, StepStarted)])
    with pytest.raises(NotReplayable, match="no model request"):
        Recording.of("s", [])


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_compares(base: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab(["replay", "-C", str(base / "work"), "--strategy", "current,context.keep_recent=4"]) == 0
    out = capsys.readouterr().out
    assert "recorded" in out
    assert "context.keep_recent=4" in out
    monkeypatch.setattr(SessionStore, "holder", lambda store, session: store)  # one that is open elsewhere is read too
    assert lab(["replay", "-C", str(base / "work"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["strategies"]] == ["recorded", "current", "early", "truncation"]
    assert all(len(one["curve"]) == len(found["strategies"][0]["curve"]) for one in found["strategies"])


def test_a_single_request_is_one_request(events: Sequence[Event]) -> None:
    first = next(event.seq for event in events if isinstance(event.body, StepStarted))
    rest = [event for event in events if event.seq <= first or not isinstance(event.body, StepStarted)]
    recording = Recording.of("s", rest)
    assert ": 1 request, effective window" in _shown(recording, ["recorded"], asyncio.run(replay(recording, [])))[0]


def test_settings_are_proposed_and_not_written(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path for path in (base / "home").rglob("*.toml"))
    assert lab(["tune", "-C", str(base / "work"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sessions"] == 1
    assert found["tried"][0]["name"] == "current"
    assert found["reason"]
    assert sorted(path for path in (base / "home").rglob("*.toml")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay", "nope"], "No session 'nope'"),
        (["replay", "--strategy", "foo"], "unknown strategy 'foo'"),
        (["replay", "--strategy", "agent.compact_trigger=7"], "agent.compact_trigger"),
        (["replay", "--strategy", "agent.nothing=7"], "agent.nothing"),
        (["replay", "--strategy", "nothing.at_all=7"], "nothing"),
        (["tune", "--sessions", "0"], "whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(base: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(StartError, match=said):
        lab([*arguments, "-C", str(base / "work")])


def test_a_folder_without_sessions_says_so(base: Path, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"No sessions are stored for .*; swecli sessions list --all shows others"):
        lab(["replay", "-C", str(tmp_path)])


# --- decisions ----------------------------------------------------------------------------------------------


def test_only_what_is_cheaper_and_loses_nothing_is_proposed() -> None:
    current = Tried("current", 100.0, 2, 5, 0)
    assert propose(current, [Tried("half", 50.0, 3, 5, 0), Tried("early", 60.0, 2, 6, 0)]).best is None
    assert propose(current, [Tried("half", 99.0, 0, 0, 0)]).best is None
    found = propose(current, [Tried("half", 80.0, 2, 5, 0), Tried("early", 70.0, 2, 4, 0)])
    assert found.best is not None
    assert found.toml == "[agent]\ncompact_trigger = 0.8\n[context]\nwarn = 0.7"


def test_a_lower_trigger_brings_the_warning_with_it() -> None:
    changes = changes_of("agent.compact_trigger=0.7+context.keep_recent=4", lambda key, text: json.loads(text))
    changed = with_changes(to_builtins(Settings()), changes)
    assert changed["context"]["warn"] == 0.7
    assert changed["context"]["keep_recent"] == 4
