"""Recall over a ledger: only what left the context is searched, and every id resolves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.recall import Recall, gone
from swecli.core.ports import BlobError, BlobRef
from swecli.core.protocol.context_events import Offloaded, ViewEntry
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    CompactionUndone,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemsOffloaded,
    ItemStarted,
    ModelResponded,
    RewindUndone,
    Rewound,
)
from swecli.core.protocol.messages import Origin, TextPart, ToolCallPart, ToolResultPart

WORDS = ("alder", "birch", "cedar", "dogwood", "elder", "fir", "ginkgo", "hazel", "ivy", "juniper", "kapok", "larch")


class Blobs:
    def __init__(self, **contents: bytes) -> None:
        self.contents = contents

    def put(self, tool: str, content: bytes) -> BlobRef:
        raise AssertionError

    def get(self, ref: str) -> bytes | None:
        if self.contents.get(ref) == b"broken":
            raise BlobError("damaged")
        return self.contents.get(ref)


class Said:
    """A ledger that grows by short words."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.seq = 0

    def emit(self, body: Body) -> None:
        self.seq += 1
        self.ledger.apply(Event(self.seq, float(self.seq), "s", 1, body))

    def user(self, item: str, text: str) -> None:
        self.emit(ItemStarted(item, "user"))
        self.emit(ItemCompleted(item, "ok", (TextPart(text),)))

    def tool(self, item: str, command: str, result: str) -> None:
        call = ToolCallPart(f"call_{item}", "run_command", f'{{"command": "{command}"}}')
        self.emit(ItemStarted(item, "tool", "run_command"))
        self.emit(ItemCheckpointed(item, call))
        self.emit(ModelResponded(f"m{item}", (item,), Origin("", "", "m")))
        self.emit(ItemCompleted(item, "ok", (ToolResultPart(call.call_id, call.name, result),)))

    def summarise(self, summary: str, text: str, keep: int) -> None:
        view = self.ledger.view
        removed = view[: len(view) - keep]
        entry = ViewEntry("summary", summary, text, covered(removed))
        self.emit(CompactionCompleted(summary, (entry, *view[len(view) - keep :]), 0, 0, 0, 0, ("summary",)))


@pytest.fixture
def said() -> Said:
    made = Said()
    made.user("u1", "The database port is 5433, never 5432.")
    made.tool("t2", "make test", "FAILED test_billing with code E771")
    made.user("u3", "What did we decide about billing?")
    return made


def test_what_the_model_still_sees_is_not_found(said: Said) -> None:
    recall = Recall(said.ledger)
    assert recall.search("database port billing", 5) == []
    said.summarise("k4", "Tests fail.", 1)
    assert [hit.item for hit in recall.search("database port", 5)] == ["u1"]
    hit = recall.search("code of the billing failure", 5)[0]
    assert (hit.item, hit.about) == ("t2.result", "result of run_command make test, turn 1, summarised")
    assert "E771" in hit.excerpt
    assert "u3" not in {hit.item for hit in recall.search("decide billing", 5)}
    said.emit(CompactionUndone("k4"))
    assert recall.search("database port", 5) == []


def test_cleared_entries_are_found_but_what_a_rewind_took_back_is_not(said: Said) -> None:
    view = [ViewEntry("stub", e.id, "cleared") if e.id == "t2.result" else e for e in said.ledger.view]
    said.emit(CompactionCompleted("k4", tuple(view), 0, 0, 0, 0, ("clearing",)))
    recall = Recall(said.ledger)
    assert recall.search("E771", 5)[0].about.endswith("cleared")
    said.emit(Rewound("t2", name="w1"))
    assert recall.search("E771", 5) == []
    assert recall.search("decide", 5) == []
    assert "decide" in (recall.text("u3") or "")  # the transcript still shows it
    said.user("u4", "We decided nothing.")
    assert recall.search("decide", 5) == []
    said.emit(RewindUndone("w1"))
    assert recall.search("E771", 5)[0].about.endswith("cleared")
    assert recall.search("decided nothing", 5) == []


def test_stored_results_of_rewound_turns_are_not_found(said: Said) -> None:
    said.tool("t4", "make", "[run_command: 9,000 bytes]")
    said.emit(ItemsOffloaded((Offloaded("t4", "r1", 9, "large"),)))
    recall = Recall(said.ledger, Blobs(r1=b"undefined symbol quux\n"))
    assert recall.search("quux", 5)
    said.emit(Rewound("u3"))
    assert recall.search("quux", 5) == []


def test_what_three_compactions_summarised_is_found_and_every_id_resolves(said: Said) -> None:
    for number in range(3):
        said.summarise(f"k{number}", f"Summary {number}.", 1)
        said.user(f"u{number + 10}", f"Fact {number}: the token of service {number} is zeta{number}.")
    said.summarise("k9", "All summarised.", 0)
    recall = Recall(said.ledger)
    for query, wanted in (("database port", "u1"), ("E771", "t2.result"), ("zeta1", "u11"), ("service 2", "u12")):
        assert recall.search(query, 3)[0].item == wanted
    for summary in said.ledger.view:
        assert recall.text(summary.id) == "All summarised."
        for source in summary.sources:
            assert recall.text(source)


def test_ids_of_entries_items_messages_lists_and_ranges(said: Said) -> None:
    recall = Recall(said.ledger)
    assert recall.text("t2.result") == "FAILED test_billing with code E771"
    whole = recall.text("t2")
    assert whole is not None
    assert whole.startswith('run_command {"command": "make test"}')
    assert "E771" in whole
    assert recall.text("mt2") is not None
    both = recall.text("[u1, t2.result]")
    assert both is not None
    assert "5433" in both
    assert "E771" in both
    for reference in ("u1-u3", "u1–t2", "[u1 - mt2]"):
        spanned = recall.text(reference)
        assert spanned is not None
        assert "5433" in spanned
        assert "E771" in spanned
        assert ("decide" in spanned) is reference.endswith("u3")
    for unknown in ("t9", "u1-t9", "u1, t9", "", "-", "r0", "[]"):
        assert recall.text(unknown) is None


def test_stored_results_are_searched_whole_while_their_reference_is_in_view() -> None:
    said = Said()
    said.tool("t1", "make", "[run_command: 9,000 bytes]")
    said.tool("t2", "ls", "[run_command: 8,000 bytes]")
    said.emit(ItemsOffloaded((Offloaded("t1", "r1", 9, "large"), Offloaded("t2", "r2", 9, "large"))))
    recall = Recall(said.ledger, Blobs(r1=b"x\n" * 4_000 + b"undefined symbol quux\n", r2=b"broken"))
    hit, unread = recall.search("quux", 5)
    assert unread.about == "A stored result could not be searched: r2"
    assert (hit.item, hit.about) == ("r1", "result of run_command make, turn 1, stored (t1.result)")
    assert "undefined symbol quux" in hit.excerpt
    assert "quux" in (recall.text("r1") or "")
    assert "quux" in (recall.text("t1.result") or "")
    with pytest.raises(BlobError):
        recall.text("t2.result")
    said.summarise("k1", "gone", 0)
    assert recall.search("run_command 8,000", 5)[0].item == "t2.result"


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_in_the_context_or_gone_and_never_both(data: st.DataObject) -> None:
    said = Said()
    for number in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["user", "tool", "summary", "clear", "undo", "rewind"])):
            case "user":
                said.user(f"u{number}", WORDS[number])
            case "tool":
                said.tool(f"t{number}", "x", WORDS[number])
            case "summary":
                said.summarise(f"k{number}", "s", data.draw(st.integers(0, len(said.ledger.view))))
            case "clear":
                view = [
                    ViewEntry("stub", one.id, "c") if one.kind == "live" and data.draw(st.booleans()) else one
                    for one in said.ledger.view
                ]
                said.emit(CompactionCompleted(f"k{number}", tuple(view), 0, 0, 0, 0, ("clearing",)))
            case "undo":
                said.emit(CompactionUndone("k"))
            case _:
                if said.ledger.view:
                    said.emit(Rewound(data.draw(st.sampled_from(said.ledger.view)).id))
    live = {one.id for one in said.ledger.view if one.kind == "live"}
    left = gone(said.ledger, said.ledger.view)
    assert live | set(left) == set(said.ledger.entries)
    assert not live & set(left)
    recall = Recall(said.ledger)
    for entry in said.ledger.entries.values():
        if entry.kind in ("user", "result"):
            word = WORDS[int(entry.item[1:])]
            found = entry.id in left and entry.id not in said.ledger.rewound
            assert [hit.item for hit in recall.search(word, 3)] == ([entry.id] if found else [])
            assert word in (recall.text(entry.id) or "")
