"""Random sequences of pin, drop, offload, restore, compact and undo, with resumes in between: the request stays valid,
the items add up to the meter, what was dropped comes back byte for byte, and what is pinned is in every later request.

``SWECLI_HISTORIES`` is how many are tried, beginning with the one that ``SWECLI_HISTORY`` numbers.
"""

from __future__ import annotations

import os
import random

import pytest
from msgspec import structs

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.edits import Edited, edited
from swecli.core.context_management.items import items_of
from swecli.core.context_management.projection import project
from swecli.core.context_management.restoring import restoration, view_of
from swecli.core.llm.types import ModelInfo
from swecli.core.ports import Snapshot, SnapshotMeasure
from swecli.core.protocol.codec import decode_messages, encode_messages
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import ContextEdited, Unknown
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.sessions.database import open_in_memory
from swecli.core.sessions.snapshots import SnapshotStore
from swecli.core.sessions.store import SessionStore
from tests.core.context_management.test_projection import check_valid
from tests.properties.random_histories import History

COUNT = int(os.environ.get("SWECLI_HISTORIES", "32")) // 8
FIRST = int(os.environ.get("SWECLI_HISTORY", "0"))
ACTIONS = ("pin", "unpin", "drop", "offload", "restore")


def as_stored(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages as a store gives them back: without lone surrogates."""
    return decode_messages(encode_messages(messages))


def stored(snapshot: Snapshot) -> Snapshot:
    """A snapshot as a store gives it back."""
    store = SessionStore(open_in_memory())
    snapshots = SnapshotStore(store.database, store.create("/w", "m", "1").id)
    assert snapshots.save_snapshot(snapshot) == ""
    found = snapshots.get_snapshot()
    store.close()
    assert found is not None
    return found


class EditedHistory(History):
    """A long history in which a user works on single items."""

    def __init__(self, seed: int, items: int) -> None:
        super().__init__(seed)
        self.done = dict.fromkeys(ACTIONS, 0)
        self._wanted = items
        self.info = ModelInfo("p", "m", 32_000, 4_000)
        self.resumed = self.with_gaps = 0
        self.fragments: set[str] = set()
        """What gaps in the record left of entries that are not in the view: nothing shows them."""

    def play(self) -> None:
        self.said.user("Build it. Never touch port 7001.")
        while len(self.ledger.entries) < self._wanted and not self.blocked:
            self._answer()
            if self.chance.random() < 0.2:
                self._step()
        for _ in range(120):
            kind = self.chance.choices(
                ("step", "user", "edit", "compact", "undo", "redo", "there_and_back", "resume", "resume_with_gaps"),
                (50, 8, 40, 4, 4, 4, 6, 4, 2),
            )[0]
            getattr(self, f"_{kind}")()
            if self.blocked > 4:  # full of what is pinned: a user would unpin
                self._take_edits([ContextChange("unpin", name) for name in self.ledger.pinned])
                self.blocked = 0
            if self.chance.random() < 0.25:
                self._pinned_is_there()
                self._adds_up()

    def _sizes(self) -> EntrySizes:
        return EntrySizes(self.context.monitor, self.info)

    def _edit(self) -> None:
        names = [name for name in self.ledger.entries if name not in self.fragments]
        changes = [
            ContextChange(self.chance.choice(ACTIONS), self.chance.choice(names))  # type: ignore[arg-type]
            for _ in range(self.chance.choice([1, 1, 2, 5]))
        ]
        self._take_edits(changes)

    def _take_edits(self, changes: list[ContextChange]) -> Edited:
        done = edited(self.ledger, changes, self._sizes())
        assert len(done.made) + len(done.refusals) == len(changes)
        assert all(refusal.reason.endswith(".") for refusal in done.refusals)
        messages = project(self.ledger, done.view)
        check_valid(messages)
        if self.context.measure(messages, self.info).level == "block":
            return done  # the session refuses what does not fit
        if done.changes_anything:
            self.said.tell(ContextEdited(done.made, done.entries, done.pinned, done.unpinned))
            assert self.ledger.view == done.view
            assert project(self.ledger) == messages
            for change in done.made:
                self.done[change.action] += 1
        return done

    def _there_and_back(self) -> None:
        """Drop or offload something that is there whole, then restore it."""
        live = [one.id for one in self.ledger.view if one.kind == "live" and one.id in self.ledger.entries]
        before, view = project(self.ledger), self.ledger.view
        name = self.chance.choice(live)
        action = self.chance.choice(("drop", "offload"))
        done = self._take_edits([ContextChange(action, name)])  # type: ignore[arg-type]
        if done.refusals or self.ledger.view == view:
            return
        gone = [entry.id for entry in done.entries]
        self.said.tell(ContextEdited((), edited(self.ledger, [ContextChange("restore", name)], self._sizes()).entries))
        assert project(self.ledger) == before, (action, gone)

    def _resume(self) -> None:
        """Go on from the events."""
        before, old = as_stored(project(self.ledger)), self.ledger
        self.said = self.said.again(self.said.events)
        assert [(one.kind, one.id) for one in self.ledger.view] == [(one.kind, one.id) for one in old.view]
        assert (self.ledger.pinned, self.ledger.dropped) == (old.pinned, old.dropped)
        assert project(self.ledger) == before
        self.sent = None
        self.resumed += 1

    def _resume_with_gaps(self) -> None:
        """Go on from a snapshot, for some of the events can't be read any more."""
        before, old = as_stored(project(self.ledger)), self.ledger
        snapshot = stored(
            Snapshot(before, SnapshotMeasure(0, len(self.said.events), "p/m"), view_of(old, project(old)))
        )
        share = self.chance.choice((0.01, 0.1, 1.0))
        gone = Unknown("unreadable", {"type": "unreadable"})
        self.said = self.said.again(
            [structs.replace(one, body=gone) if self.chance.random() < share else one for one in self.said.events]
        )
        found = restoration("r", snapshot, self.said.events, self.ledger)
        self.sent = None
        if found is not None:
            self.said.tell(found)
            self.with_gaps += 1
        assert project(self.ledger) == before
        assert self.ledger.pinned == old.pinned
        sent = {name for each in view_of(old, project(old)).names for name in each}
        assert [one.id for one in self.ledger.view if one.id in sent] == [one.id for one in old.view if one.id in sent]
        assert {one.id for one in self.ledger.view} <= {one.id for one in old.view}
        kept = {one.id for one in self.ledger.view if one.kind == "dropped"}
        assert kept <= {one.id for one in old.view if one.kind == "dropped"}
        assert self.ledger.dropped <= old.dropped
        for name in kept | {one.id for one in self.ledger.view if one.kind == "stub"}:
            assert self.ledger.entries[name].parts == old.entries[name].parts
        self.fragments = self.ledger.entries.keys() - {*covered(self.ledger.view)}
        self.dropped |= self.fragments

    def _pinned_is_there(self) -> None:
        live = {entry.id for entry in self.ledger.view if entry.kind == "live"}
        assert self.ledger.pinned - self.rewound <= live
        messages = project(self.ledger)
        check_valid(messages)
        said = [part for message in messages for part in message.parts if isinstance(part, TextPart)]
        for name in self.ledger.pinned:
            if self.ledger.entries[name].kind == "text":
                assert self.ledger.entries[name].parts[0] in said

    def _adds_up(self) -> None:
        budget = self.context.measure(project(self.ledger), self.info)
        items = items_of(self.ledger, budget, self.context.monitor, self.info)
        assert sum(item.tokens for item in items) == budget.used
        ids = [item.id for item in items]
        assert len(ids) == len(set(ids))
        known = {item.id for item in items} | self.dropped
        assert known >= set(self.ledger.entries) - self.rewound


@pytest.mark.parametrize("part", range(2))
def test_random_edits(part: int) -> None:
    histories = [EditedHistory(seed, 300) for seed in range(FIRST + part, FIRST + max(2, COUNT), 2)]
    for history in histories:
        history.play()
    total = {action: sum(history.done[action] for history in histories) for action in ACTIONS}
    assert all(total.values()), total
    assert all(sum(getattr(one, name) for one in histories) for name in ("resumed", "with_gaps"))
    assert sum(history.compactions for history in histories) >= 2 * len(histories)


def test_a_pinned_item_is_in_every_request_over_five_compactions() -> None:
    history = EditedHistory(3, 0)
    chance = random.Random(3)
    history.info = ModelInfo("p", "m", 16_000, 2_000)
    history.said.user("Build it.")
    first = history.said.call("read_file", {"path": "src/ports.py"}, "PORT = 7001\n" * 30)
    history._take_edits([ContextChange("pin", f"{first}.result")])
    while history.compactions < 5:
        history._step()
        if chance.random() < 0.1:
            history._user()
        found = [result.text for message in project(history.ledger) for result in message.tool_results]
        assert any("PORT = 7001" in text for text in found)
