"""What events come to, written down in the middle of them and taken back, against the same without that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swecli.core.context_management.ledger import Entry, ItemRecord, Ledger
from swecli.core.context_management.projection import project
from swecli.core.context_management.view_stack import ViewStack
from swecli.core.context_management.work_log import WorkLog
from swecli.core.engine.reductions import Reductions, decode_reductions, written
from swecli.core.protocol.codec import decode_body, encode_body
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted
from swecli.core.protocol.messages import Part


class Record:
    """Facts as a store would give them back, one by one."""

    def __init__(self, facts: Sequence[Event]) -> None:
        self._bodies = {event.seq: encode_body(event.body) for event in facts}
        self.reads = 0

    def parts(self, seq: int) -> tuple[Part, ...]:
        self.reads += 1
        body = decode_body(self._bodies[seq])
        if isinstance(body, ItemCheckpointed):
            return (body.part,)
        assert isinstance(body, ItemCompleted), body
        return body.parts


def check_written(facts: Sequence[Event], cut: int) -> Record:
    """Both ways come to the same at the cut and at the end."""
    plain, record = Reductions(), Record(facts)
    for event in facts[:cut]:
        plain.apply(event)
    back, seq = decode_reductions(written(plain), record.parts)
    assert seq == plain.state.seq
    assert record.reads == 0, "nothing is read that is not asked for"
    project(back.ledger)
    assert record.reads == 0, "what the model sees was written down whole"
    _require_same(plain, back)
    for event in facts[cut:]:
        plain.apply(event)
        back.apply(event)
        plain.ledger.evict()
        back.ledger.evict()
    _require_same(plain, back)
    return record


def _require_same(one: Reductions, other: Reductions) -> None:
    assert one.state == other.state
    assert project(one.ledger) == project(other.ledger)
    assert _told(one.ledger) == _told(other.ledger)
    for each in (one, other):
        each.work.absorb(each.ledger)
    assert _work(one.work) == _work(other.work)
    for name in ("cache", "timeline", "trend"):
        assert vars(getattr(one, name)) == vars(getattr(other, name))


def _work(log: WorkLog) -> list[object]:
    told = [getattr(log, name) for name in WorkLog.__slots__ if name != "_checks"]
    runs = log._checks.items()  # pyright: ignore[reportPrivateUsage]
    return [*told, [(command, [_item(record) for record in records]) for command, records in runs]]


def _told(ledger: Ledger) -> dict[str, Any]:
    plain = {name: value for name, value in vars(ledger).items() if name not in _COMPARED_OTHERWISE}
    return plain | {
        "entries": [_entry(one) for one in ledger.entries.values()],
        "items": [_item(one) for one in ledger.items.values()],
        "files": vars(ledger.files),
        "view": ledger.view,
        "stacks": [_stack(ledger._undo), _stack(ledger._redo)],  # pyright: ignore[reportPrivateUsage]
        "rewinds": {
            name: (views.view, _stack(views.undo), _stack(views.redo))
            for name, views in ledger._rewinds.items()  # pyright: ignore[reportPrivateUsage]
        },
    }


_COMPARED_OTHERWISE = frozenset(
    (
        "entries",
        "items",
        "files",
        "projected",
        "_left",
        "_view",
        "_frozen",
        "_undo",
        "_redo",
        "_rewinds",
        "_bodies",
        "_seen",
    )
)


def _entry(one: Entry) -> tuple[object, ...]:
    return (one.id, one.kind, one.item, one.message, one.parts, one.source, one.turn, one.created)


def _item(one: ItemRecord) -> tuple[object, ...]:
    return (one.id, one.kind, one.name, one.status, one.call, one.parts, one.turn, one.exit_status)


def _stack(stack: ViewStack) -> object:
    return stack.all()
