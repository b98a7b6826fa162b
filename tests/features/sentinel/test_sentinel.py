"""The sentinel in a session: one suggestion at the end of a turn, which frees what it says, is taken back like other
changes, and does not come again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from swecli.core.context_management.rot import Rot, command_of, undo_of
from swecli.core.engine.settings import Adjustable, SentinelOptions
from swecli.core.engine.state import SessionState
from swecli.core.protocol.commands import ChangeContext, Rewind, SetMode, Submit, UndoCompaction, UndoRewind
from swecli.core.protocol.context_events import ContextChange, RotKind
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionUndone,
    ContextEdited,
    ContextSuggested,
    Event,
    RewindUndone,
    Rewound,
    TurnStarted,
)
from swecli.features.sentinel.command import SENTINEL
from swecli.features.sentinel.companion import Sentinel
from tests.core.engine.support import Bench, bench, call, until
from tests.support.rotten import HEALTHY, ROTTEN, Talk, failing, reread, stale

SCRIPT = "window = 200_000\nmax_output = 2_000\n" + '[[step]]\ntext = "Yes."\n' * 8


def used(b: Bench) -> int:
    picture = b.session.inspection.picture()
    assert picture is not None
    return picture.budget.used


def sentinel_of(b: Bench) -> Sentinel:
    sentinel = b.session.companion(Sentinel)
    assert sentinel is not None
    return sentinel


def suggested(b: Bench) -> list[ContextSuggested]:
    return b.bodies(ContextSuggested)


async def taken(b: Bench, told: ContextSuggested) -> None:
    """Carry a suggestion out, and wait until that is done."""
    done: type[Any] = Rewound if told.branch else CompactionCompleted if told.summaries else ContextEdited
    count = len(b.bodies(done))
    b.send(command_of(told))
    await until(lambda: len(b.bodies(done)) > count and not b.session.view.busy)


async def taken_back(b: Bench, told: ContextSuggested) -> None:
    done: type[Any] = RewindUndone if told.branch else CompactionUndone if told.summaries else ContextEdited
    count = len(b.bodies(done))
    back = undo_of(told) or (UndoRewind() if told.branch else UndoCompaction())
    b.send(back)
    await until(lambda: len(b.bodies(done)) > count and not b.session.view.busy)


@pytest.mark.parametrize("name", ROTTEN)
async def test_a_suggestion_frees_what_it_says_and_is_taken_back(name: str, tmp_path: Path) -> None:
    kind, make = ROTTEN[name]
    async with bench(SCRIPT, tmp_path, history=make().events) as b:
        assert (await b.say("Go on.")).outcome == "done"
        (told,) = suggested(b)
        assert told.kind == kind
        before = used(b)
        assert told.tokens_before == before
        wire = b.session.inspection.wire()
        await taken(b, told)
        freed = max(0, before - used(b))
        assert abs(freed - told.freed) <= max(1, 0.01 * told.freed), (freed, told.freed)
        assert freed >= 100 or told.action.startswith("pin") or kind == "contradiction"
        await taken_back(b, told)
        after = b.session.inspection.wire()
        assert wire is not None
        assert after is not None
        assert after.body == wire.body


@pytest.mark.parametrize("name", HEALTHY)
async def test_a_session_that_is_well_hears_nothing(name: str, tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, history=HEALTHY[name]().events) as b:
        await b.say("Go on.")
        assert suggested(b) == []


async def test_the_same_is_not_suggested_again_unless_it_got_much_worse(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, history=failing(3, turns=False, edits=False).events) as b:
        await b.say("Go on.")
        assert b.session.view.suggestion == suggested(b)[0]
        await b.say("Go on.")
        assert len(suggested(b)) == 1
        assert b.session.view.suggestion is None
        history = list(b.facts)
    async with bench(SCRIPT, tmp_path, history=history) as b:
        await b.say("Go on.")
        assert suggested(b) == []
        assert (await sentinel_of(b).suggestion()) is not None
        result = await SENTINEL.run(b.session, "take")
        assert result.offer is not None
        b.send(result.offer.command)
        await until(lambda: len(b.bodies(ContextEdited)) == 1)
        assert b.session.view.taken_up == suggested(b)[0]
    worse = Talk()
    worse.events = []
    for event in failing(6, turns=False, edits=False).events:
        worse.events.append(event)
    told = next(event for event in history if isinstance(event.body, ContextSuggested))
    async with bench(SCRIPT, tmp_path, history=[*worse.events, _again(told, worse.events)]) as b:
        await b.say("Go on.")
        assert [one.count for one in suggested(b)] == [6]


def _again(told: Event, events: Sequence[Event]) -> Event:
    last = events[-1]
    return Event(last.seq + 1, last.ts + 1, "s", last.turn, told.body)


def test_of_what_was_taken_up_the_next_of_its_kind_is_new() -> None:
    changes = (ContextChange("offload", "t1.result"),)
    state = SessionState()
    state.apply(Event(1, 1.0, "s", 1, ContextSuggested("stale", "", 9_000, "", "", changes=changes)))
    state.apply(Event(2, 2.0, "s", 1, TurnStarted("u2")))
    assert state.suggested == {"stale": {"": 9_000}}
    state.apply(Event(3, 3.0, "s", 1, ContextSuggested("stale", "", 19_000, "", "", changes=changes)))
    state.apply(Event(4, 4.0, "s", 1, ContextEdited(changes)))
    assert (state.suggested, state.suggestion) == ({"stale": {}}, None)


async def test_what_was_taken_up_is_taken_back_by_one_command_and_then_left_alone(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, history=stale(6, 8).events) as b:
        await b.say("Go on.")
        (told,) = suggested(b)
        assert b.session.view.taken_up is None
        await taken(b, told)
        assert b.session.view.suggestion is None
        assert b.session.view.taken_up == told
        assert await sentinel_of(b).suggestion() is None
        result = await SENTINEL.run(b.session, "undo")
        assert result.blocks == ()
        await until(lambda: len(b.bodies(ContextEdited)) == 2)
        assert used(b) == told.tokens_before
        assert await sentinel_of(b).suggestion() is None  # the user has decided


async def test_a_branch_tells_the_model_what_was_done_since(tmp_path: Path) -> None:
    _, make = ROTTEN["edits to and fro over turns"]
    async with bench(SCRIPT, tmp_path, history=make().events) as b:
        await b.say("Go on.")
        (told,) = suggested(b)
        assert told.action == "branch from turn 2 with handoff"
        assert command_of(told) == Rewind(told.branch, handoff=True)
        await taken(b, told)
        said = b.session.view.messages[-1].text
        assert said.startswith("<swecli-note>")
        assert "The user went back to before an earlier message" in said
        assert "Now fix the discount." in said
        assert "src/shop.py: read, edited" in said
        assert "`make check` -> exit 0" in said
        assert b.bodies(Rewound)[-1].text == "Now fix the discount."


async def test_nothing_is_suggested_while_off_or_silenced_or_while_messages_wait(tmp_path: Path) -> None:
    for options in (SentinelOptions(enabled=False), SentinelOptions(silenced=("reread",))):
        async with bench(SCRIPT, tmp_path, history=reread(3, 0).events, sentinel=options) as b:
            await b.say("Go on.")
            assert suggested(b) == []


async def test_silencing_counts_at_once_and_in_the_next_session(tmp_path: Path) -> None:
    kept: list[RotKind] = []

    def keep(kinds: Sequence[RotKind]) -> str:
        kept[:] = kinds
        return "/home/me/config.toml"

    def settings() -> Adjustable:
        return Adjustable(sentinel=SentinelOptions(silenced=tuple(kept)))

    history = reread(3, 0).events
    async with bench(SCRIPT, tmp_path, history=history, keep_silenced=keep, read=settings) as b:
        await b.say("Go on.")
        assert b.session.view.suggestion is not None
        said = await SENTINEL.run(b.session, "silence")
        assert "/home/me/config.toml" in said.blocks[0].text  # type: ignore[union-attr]
        assert kept == ["reread"]
        assert b.session.view.suggestion is None
        said = await SENTINEL.run(b.session, "unsilence reread")
        assert kept == []
        assert b.session.view.suggestion is not None
        await SENTINEL.run(b.session, "silence reread")
    silent = SentinelOptions(silenced=tuple(kept))
    async with bench(SCRIPT, tmp_path, history=history, sentinel=silent) as b:
        await b.say("Go on.")
        assert suggested(b) == []


async def test_a_setting_that_counts_before_the_users_own_is_named(tmp_path: Path) -> None:
    async with bench(
        SCRIPT,
        tmp_path,
        history=reread(3, 0).events,
        keep_silenced=lambda kinds: "/home/me/config.toml",
        read=Adjustable,
    ) as b:
        await b.say("Go on.")
        said = await SENTINEL.run(b.session, "silence")
        assert "takes precedence" in said.blocks[0].text  # type: ignore[union-attr]
        assert b.session.view.suggestion is not None


async def test_the_command_shows_what_it_would_do_before_it_does(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, history=stale(6, 8).events) as b:
        await b.say("Go on.")
        (told,) = suggested(b)
        result = await SENTINEL.run(b.session, "take")
        assert result.offer is not None
        assert result.offer.command == ChangeContext(told.changes)
        assert result.offer.title == "Offload 8 stale outputs?"
        assert not result.offer.named
        table: Any = result.blocks[0]
        rows = dict(row[:2] for row in table.rows)
        assert rows["whole request, before and after"] == f"{told.tokens_before:,} -> {told.tokens_after:,}"
        assert b.bodies(ContextEdited) == []
        status = (await SENTINEL.run(b.session, "")).blocks[0].text  # type: ignore[union-attr]
        assert "is old and unused. /sentinel take: offload 8" in status
        assert "offload 8 stale outputs, -" in status


async def test_the_command_can_take_what_it_just_showed(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, history=stale(6, 8).events) as b:
        await b.say("Go on.")
        await b.say("Go on.")
        assert b.session.view.suggestion is None
        status = (await SENTINEL.run(b.session, "")).blocks[0].text  # type: ignore[union-attr]
        shown = b.session.view.suggestion
        assert shown is not None
        assert shown.reason in status
        assert command_of(shown) == ChangeContext(shown.changes)
        await taken(b, shown)
        assert b.session.view.taken_up == shown


async def test_a_contradiction_frees_what_its_messages_take(tmp_path: Path) -> None:
    talk = Talk()
    for said in ("Always use tabs.", "Always use tabs.", "Never use tabs."):
        talk.user(said)
        talk.answer("All right.")
    async with bench(SCRIPT, tmp_path, history=talk.ended().events) as b:
        await b.say("Go on.")
        (told,) = suggested(b)
        assert told.action == "drop 2 older messages"
        picture = b.session.inspection.picture()
        assert picture is not None
        sizes = {item.id: item.tokens for item in picture.items}
        result = await SENTINEL.run(b.session, "take")
        rows = [row[0] for row in result.blocks[0].rows]  # type: ignore[union-attr]
        assert [row for row in rows if row.startswith("drop ")] == [f"drop {sizes[c.id]}" for c in told.changes]
        before = used(b)
        await taken(b, told)  # the environment, which the first message told, is told by what stays
        assert before - used(b) == told.freed > 0


async def test_nothing_is_suggested_by_a_turn_that_goes_on_or_before_a_waiting_message(tmp_path: Path) -> None:
    steps = f"[[step]]\ncall = [{call('read_file', 'f')}]\n" + '[[step]]\ntext = "Yes."\n' * 3
    async with bench(f"window = 200_000\n{steps}", tmp_path, history=reread(3, 0).events) as b:
        b.gates.held.add("f")
        b.send(Submit("Go on."))
        await until(lambda: b.gates.started == ["f"])
        assert suggested(b) == []
        b.send(SetMode("plan"))
        b.send(Submit("And then this."))
        b.gates.release("f")
        await until(lambda: b.session.view.totals.turns == 3 and not b.session.view.busy)
        await until(lambda: suggested(b) != [])
        assert [event.turn for event in b.events if isinstance(event.body, ContextSuggested)] == [3]


async def test_a_remedy_that_is_not_worth_it_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To measure it costs more than the rest of a turn, and grows with the session."""
    measured: list[str] = []

    def vain(_: Sentinel, rot: Rot, __: object) -> None:
        measured.append(rot.cause)

    monkeypatch.setattr(Sentinel, "_by_change", vain)
    async with bench(SCRIPT, tmp_path, history=reread(3, apart=0).events) as b:
        for _ in range(3):
            await b.say("Go on.")
        assert suggested(b) == []
        assert measured
        assert len(measured) == len(set(measured))
