"""Which conversations count as gone bad: twenty that have, twenty that look like it and are well."""

from __future__ import annotations

import pytest

from swecli.core.config.settings import RetentionSettings
from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.entry_bodies import EntryBody
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.rot import Rot, signals
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.context_events import ContextChange, ViewEntry
from swecli.core.protocol.events import ContextEdited, ItemCompleted, ItemStarted, TurnEnded, TurnStarted
from swecli.core.protocol.messages import TextPart
from tests.support.rotten import HEALTHY, ROTTEN, Talk, contradicting, failing, repeated, reread, stale

INFO = ModelInfo("fake", "model", 64_000, 4_000)


def found(talk: Talk, *rules: RetentionSettings) -> list[Rot]:
    return list(signals(talk.ledger, talk.turn, EntrySizes(TokenMonitor(CharCounter()), INFO), 60_000, rules))


def test_at_least_18_of_20_rotten_and_at_most_1_of_20_healthy_sessions_are_flagged() -> None:
    assert len(ROTTEN) == len(HEALTHY) == 20
    flagged = [name for name, (kind, make) in ROTTEN.items() if [one.kind for one in found(make())][:1] == [kind]]
    false = [name for name, make in HEALTHY.items() if found(make())]
    assert len(flagged) >= 18, sorted(set(ROTTEN) - set(flagged))
    assert len(false) <= 1, false
    assert len({kind for kind, _ in ROTTEN.values()}) == 7


@pytest.mark.parametrize("name", ROTTEN)
def test_each_signal_is_found_in_the_session_that_has_it(name: str) -> None:
    kind, make = ROTTEN[name]
    assert [one.kind for one in found(make())] == [kind]


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_found_in_a_session_that_is_well(name: str) -> None:
    assert found(HEALTHY[name]()) == []


def test_what_the_user_decided_about_is_not_suggested_again() -> None:
    talk = repeated(*["Never change the public ports."] * 3)
    (rot,) = found(talk)
    talk.tell(ContextEdited((ContextChange("pin", rot.ids[0]),), pinned=rot.ids))
    assert found(talk) == []
    talk = failing(3, turns=False, edits=False)
    (rot,) = found(talk)
    entries = tuple(ViewEntry("live", name, rule="by hand") for name in rot.ids)
    talk.tell(ContextEdited(tuple(ContextChange("restore", name) for name in rot.ids), entries))
    assert found(talk) == []


def test_the_template_of_a_command_is_not_what_the_user_says() -> None:
    talk = Talk()
    for number in range(1, 4):
        talk.turn = number
        item = f"u{talk.next_id()}"
        talk.tell(TurnStarted(item), ItemStarted(item, "user", "command", "/review"))
        talk.tell(ItemCompleted(item, "ok", (TextPart("Never change the public ports."),)), TurnEnded("done"))
    assert found(talk) == []


def test_what_a_rule_keeps_is_not_to_go() -> None:
    assert found(stale(6, 8), RetentionSettings(tool="read_file", never_drop=True)) == []


def test_of_readings_the_one_stays_that_has_all_lines() -> None:
    talk = Talk()
    talk.user("Look.")
    small = talk.read("a.py", first=10, last=40)
    whole = talk.read("a.py")
    part = talk.read("a.py", first=20, last=50)
    (rot,) = found(talk)
    assert set(rot.ids) == {f"{small}.result", f"{part}.result"}
    assert f"{whole}.result" not in rot.ids


def test_a_message_that_says_more_is_not_dropped_for_a_contradiction() -> None:
    (rot,) = found(contradicting("Write the importer. Always use tabs.", "Never use tabs."))
    assert (rot.remedy, rot.ids) == ("pin", (next(e for e, one in reversed(contradicting_users())),))
    (rot,) = found(contradicting("Always use tabs.", "Never use tabs."))
    assert (rot.remedy, rot.ids) == ("drop", ("u1",))


def test_all_messages_that_a_newer_one_overrules_go() -> None:
    talk = Talk()
    for said in ("Always use tabs.", "Always use tabs.", "Always use tabs.", "Never use tabs."):
        talk.user(said)
        talk.answer("All right.")
    (rot,) = found(talk)
    users = [entry.id for entry in talk.ledger.entries.values() if entry.kind == "user"]
    assert (rot.remedy, rot.ids, rot.cause) == ("drop", tuple(users[:3]), f"{users[0]} {users[3]}")
    talk.tell(ContextEdited((), tuple(ViewEntry("dropped", name, rule="by hand") for name in rot.ids)))
    assert found(talk) == []


def test_of_a_demand_that_came_back_what_was_between_goes() -> None:
    talk = Talk()
    for said in ("Always use tabs.", "Never use tabs.", "Always use tabs."):
        talk.user(said)
        talk.answer("All right.")
    users = [entry.id for entry in talk.ledger.entries.values() if entry.kind == "user"]
    assert [rot.ids for rot in found(talk)] == [(users[1],)]


def contradicting_users() -> list[tuple[str, str]]:
    talk = contradicting("Write the importer. Always use tabs.", "Never use tabs.")
    return [(entry.id, entry.kind) for entry in talk.ledger.entries.values() if entry.kind == "user"]


def test_a_look_costs_the_same_in_a_session_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that are read are those of the newest calls and messages, in a session of 10,000 items as well."""
    read: list[int] = []
    parts = EntryBody.parts
    for turns in (500, 5_000):
        talk = reread(3, 0)
        for number in range(turns):
            talk.user(f"Step {number} of it.")
            talk.run("make check")
        sizes = EntrySizes(TokenMonitor(CharCounter()), INFO)
        list(signals(talk.ledger, talk.turn, sizes, 60_000))  # sizes are counted once, when an entry is new
        looked: list[EntryBody] = []

        def counted(body: EntryBody, looked: list[EntryBody] = looked) -> object:
            looked.append(body)
            return parts.fget(body)  # type: ignore[attr-defined]

        with monkeypatch.context() as patch:
            patch.setattr(EntryBody, "parts", property(counted))
            list(signals(talk.ledger, talk.turn, sizes, 60_000))
        read.append(len(looked))
    assert read[1] <= read[0] * 1.5, read
