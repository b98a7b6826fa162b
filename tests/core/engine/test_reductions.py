"""What the events of a session come to is written down and taken back whole, and only by the code that wrote it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from swecli.core.engine import reductions
from swecli.core.engine.reductions import FIELDS, UNWRITTEN, Reductions, StaleState, decode_reductions, written
from swecli.core.protocol.commands import ChangeContext, Rewind, UndoCompaction, UndoRewind
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import CompactionCompleted, ContextEdited, Event, Rewound
from swecli.core.protocol.messages import Part
from tests.core.engine.support import bench, until
from tests.core.engine.test_compaction import BIG, fill_and_compact
from tests.support.reduced import Record, check_written


async def conversation(folder: Path, *, undone: bool = True) -> list[Event]:
    """Turns, a compaction, that undone, items that the user chose, a rewind and that taken back."""
    async with bench(BIG, folder) as b:
        await fill_and_compact(b)
        assert b.bodies(CompactionCompleted)
        compacted = len(b.facts)
        ledger = b.session._recorder.ledger  # pyright: ignore[reportPrivateUsage]
        if undone:
            b.send(UndoCompaction())
            await until(lambda: ledger.undoable is None, "undo")
        shown = [ledger.entries[entry.id] for entry in ledger.view if entry.kind == "live"]
        results = [entry.id for entry in shown if entry.kind == "result"]
        users = [entry.id for entry in shown if entry.kind == "user"]
        for verb, name in (("pin", results[0]), ("drop", results[1])):
            b.send(ChangeContext((ContextChange(verb, name),)))  # type: ignore[arg-type]
        await until(lambda: len(b.bodies(ContextEdited)) == 2, "two edits")
        b.send(Rewind(users[-1]))
        await until(lambda: bool(b.bodies(Rewound)), "rewind")
        b.send(UndoRewind())
        await until(lambda: not b.session.rewinds.undoable, "that taken back")
        assert compacted < len(b.facts)
        return b.facts


async def test_wherever_it_is_written_the_rest_comes_to_the_same(tmp_path: Path) -> None:
    facts = await conversation(tmp_path)
    records = [check_written(facts, cut) for cut in (*range(0, len(facts), 7), len(facts))]
    assert any(record.reads for record in records), "long texts out of sight are left to the record"


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_no_attribute_is_forgotten(kind: type) -> None:
    """Who adds one decides here whether it is written or follows from the others."""
    assert vars(kind()).keys() == {*FIELDS[kind].__struct_fields__} | UNWRITTEN[kind]


def none(seq: int) -> tuple[Part, ...]:
    raise AssertionError(seq)


async def test_what_other_code_wrote_or_a_disk_damaged_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduced = Reductions()
    for event in await conversation(tmp_path):
        reduced.apply(event)
    text = written(reduced)
    decode_reductions(text, none)
    fields = msgspec.json.decode(text)
    fields["ledger"]["entries"] = {"u1": {"id": 5}}
    for broken in (b"", text[:-40], b"[]", msgspec.json.encode(fields)):
        with pytest.raises(StaleState):
            decode_reductions(broken, none)
    monkeypatch.setattr(reductions, "code", lambda: "other")
    with pytest.raises(StaleState, match="another version"):
        decode_reductions(text, none)


async def test_a_text_that_the_record_does_not_give_says_so(tmp_path: Path) -> None:
    facts = await conversation(tmp_path)
    reduced, record = Reductions(), Record(facts)
    for event in facts:
        reduced.apply(event)
    rewound = reduced.ledger
    rewound.apply(Event(reduced.state.seq + 1, 0.0, "s", 1, Rewound(next(iter(rewound.entries)))))

    def failing(seq: int) -> tuple[Part, ...]:
        raise OSError("the disk is gone")

    text = written(reduced)
    lost, whole = (decode_reductions(text, read)[0].ledger for read in (failing, record.parts))
    away = [name for name, entry in lost.entries.items() if entry.body.away]
    assert away
    assert all("the disk is gone" in repr(lost.entries[name].parts) for name in away)
    assert [whole.entries[name].parts for name in away] == [rewound.entries[name].parts for name in away]
