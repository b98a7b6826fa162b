"""What the model no longer sees leaves memory, and is the same when it comes back."""

from __future__ import annotations

import threading

import pytest

from swecli.core.context_management.entry_bodies import LONG, Bodies, EntryBody, stubbed
from swecli.core.context_management.projection import project
from swecli.core.context_management.recall import Recall
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import CompactionCompleted, CompactionRedone, CompactionUndone
from swecli.core.protocol.messages import (
    ImagePart,
    Opaque,
    Origin,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.core.spill import SpillStore
from tests.support.said import Said

TEXT = "a line \udc80 with a lone surrogate, and 漢字\n" * 100
OPAQUE = Opaque(Origin("p", "h", "m"), {"signature": ["abc", 1, None]})
PARTS: tuple[Part, ...] = (
    TextPart(TEXT, OPAQUE),
    ReasoningPart(TEXT, "summary", OPAQUE),
    ToolCallPart("c1", "write_file", '{"content": "…"}', OPAQUE),
    ToolResultPart("c1", "write_file", TEXT, is_error=True, images=(ImagePart("image/png", "AAAA", "a.png"),)),
)


@pytest.mark.parametrize("in_memory", [0, 10_000_000], ids=["file", "memory"])
def test_a_body_is_the_same_away_and_back(in_memory: int) -> None:
    spill = SpillStore[tuple[Part, ...]](in_memory)
    body = EntryBody(PARTS)
    body.evict(spill)
    body.evict(spill)
    assert body.parts == PARTS
    assert TEXT not in str(body.outline)
    assert [stubbed(part, "[cleared]") for part in body.outline] == [stubbed(part, "[cleared]") for part in PARTS]
    body.restore()
    assert body.outline == body.parts == PARTS
    assert spill.in_memory == 0
    spill.close()


def test_threads_read_what_is_away() -> None:
    spill = SpillStore[tuple[Part, ...]](0)
    bodies = [EntryBody((TextPart(f"{number} " * 1_000),)) for number in range(50)]
    for body in bodies:
        body.evict(spill)
    wrong: list[int] = []

    def read() -> None:
        wrong.extend(n for n, body in enumerate(bodies) if body.parts != (TextPart(f"{n} " * 1_000),))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    spill.close()


def test_what_can_not_be_read_back_says_so_and_fits_its_call() -> None:
    spill = SpillStore[tuple[Part, ...]](0)
    body = EntryBody(PARTS)
    body.evict(spill)
    spill.close()
    text, _, call, result = body.parts
    assert isinstance(text, TextPart)
    assert "cannot read this back" in text.text
    assert isinstance(call, ToolCallPart)
    assert isinstance(result, ToolResultPart)
    assert call.call_id == result.call_id == "c1"
    assert call.arguments.startswith('{"unreadable"')


def _session() -> tuple[Said, str, str, str]:
    said = Said()
    user = said.user("Please. " + "x" * LONG)
    tool = said.call("write_file", {"path": "a.py", "content": TEXT}, "needle in the result\n" + TEXT)
    last = said.user("short")
    return said, user, tool, last


def _settle(said: Said) -> None:
    for _ in range(10):
        said.ledger.evict()


def test_a_compaction_puts_away_what_it_took_and_an_undo_brings_it_back() -> None:
    said, user, tool, last = _session()
    ledger = said.ledger
    before, call, result = project(ledger), ledger.items[tool].call, ledger.items[tool].parts
    stub = ViewEntry("stub", f"{tool}.result", "[cleared]")
    view = (ViewEntry("live", user), ViewEntry("live", tool), stub, ViewEntry("live", last))
    said.tell(CompactionCompleted("k1", view, 0, 0, 0, 0, ()))
    said.tell(CompactionCompleted("k2", (ViewEntry("summary", "k2", "so far", (user, tool)), view[-1]), 0, 0, 0, 0, ()))
    _settle(said)
    for name in (user, tool, f"{tool}.result"):
        entry = ledger.entries[name]
        assert entry.body.outline != entry.parts, name
        assert TEXT not in str(entry.body.outline)
    assert (ledger.items[tool].call, ledger.items[tool].parts) == (call, result)
    assert ledger.entries[last].body.outline == (TextPart("short"),)
    assert Recall(ledger).search("needle", 3)[0].item == f"{tool}.result"

    said.tell(CompactionUndone("k2"))
    stubbed_once = project(ledger)
    _settle(said)
    assert project(ledger) == stubbed_once
    assert ledger.entries[user].body.outline == ledger.entries[user].parts
    assert ledger.entries[f"{tool}.result"].body.outline != result
    said.tell(CompactionUndone("k1"))
    _settle(said)
    assert project(ledger) == before
    assert ledger.entries[f"{tool}.result"].body.outline == result
    said.tell(CompactionRedone("k1"))
    _settle(said)
    assert project(ledger) == stubbed_once


def test_short_texts_stay() -> None:
    said = Said()
    user = said.user("short")
    said.tell(CompactionCompleted("k", (ViewEntry("summary", "k", "so far", (user,)),), 0, 0, 0, 0, ()))
    _settle(said)
    assert said.ledger.entries[user].body.outline == (TextPart("short"),)


def test_a_body_that_can_t_be_read_for_a_moment_is_read_later() -> None:
    troubles = [OSError("database is locked")]

    def read(seq: int) -> tuple[Part, ...]:
        if troubles:
            raise troubles.pop()
        return PARTS

    body, bodies = EntryBody.of_record(tuple(stubbed(part, "") for part in PARTS), 7, read), Bodies()
    bodies.add("e1", body)
    bodies.see({"e1"})
    assert body.away
    bodies.see({"e1"})
    assert not body.away
    assert body.parts == PARTS
