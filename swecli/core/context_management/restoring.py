"""The snapshot's copy of the model's view, and its use if the record has gaps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from swecli.core.context_management.ledger import RESULT, Entry, Ledger, is_what_it_says, with_entries, without_added
from swecli.core.context_management.projection import is_nothing, project, sent_parts
from swecli.core.ports import Snapshot
from swecli.core.protocol.context_events import ModelView, ViewEntry
from swecli.core.protocol.events import MAIN, ContextEdited, ContextRestored, Event
from swecli.core.protocol.messages import Message, Part, ToolCallPart, ToolResultPart


def view_of(ledger: Ledger, messages: Sequence[Message]) -> ModelView:
    """The ledger's view, with names for ``messages``, which are its projection."""
    spoken: dict[str, list[str]] = {}
    for shown in ledger.view:
        entry = ledger.entries.get(shown.id)
        if entry is None or shown.kind == "dropped" or entry.kind in ("user", "note", "attachment", "result"):
            continue
        parts = [part for part in sent_parts(entry, shown) if not is_nothing(part)]
        spoken.setdefault(entry.message, []).extend(shown.id for _ in parts)
    names: list[tuple[str, ...]] = []
    calls: list[str] = []
    for message in messages:
        match message.role:
            case "user":
                names.append((message.id,))
            case "assistant":
                left = spoken.get(message.id, [])
                mine = left[: len(message.parts)]
                del left[: len(message.parts)]
                pairs = zip(mine, message.parts, strict=False)
                calls = [name for name, part in pairs if isinstance(part, ToolCallPart)]
                names.append(tuple(mine))
            case "tool":
                names.append(tuple(name + RESULT for name in calls))
    return ModelView(ledger.view, tuple(names), tuple(sorted(ledger.pinned)), tuple(sorted(ledger.dropped)))


def restoration(item: str, snapshot: Snapshot, facts: Iterable[Event], ledger: Ledger) -> ContextRestored | None:
    """Replacement for a view built from events some of which can't be read; None if these did not matter.

    ``ledger`` is the reduction of the ``facts``. Ids stay; still readable entries are used as they are.
    """
    seq, before = snapshot.measure.seq, Ledger()
    later_edits: list[ContextEdited] = []
    for event in facts:
        if event.agent == MAIN and event.seq <= seq:
            before.apply(event)
        elif event.agent == MAIN and isinstance(event.body, ContextEdited):
            later_edits.append(event.body)
    view, messages = snapshot.view, snapshot.messages
    if view is None:
        later = _since(before, ledger, ())
        return ContextRestored(item, messages, later, seq) if project(before) != messages else None
    same = before.view == view.entries and before.pinned == {*view.pinned} and before.dropped == {*view.dropped}
    if same and project(before) == messages:
        return None
    lost, names = _lost(snapshot, view, before, ledger)
    entries = _readable(view.entries, {name for each in names for name in each}, ledger)
    restored = ModelView((*entries, *_since(before, ledger, view.entries)), names, view.pinned, view.dropped)
    for edit in later_edits:
        restored = _with_edit(restored, edit, ledger)
    return ContextRestored(item, lost, (), seq, restored)


def _since(before: Ledger, ledger: Ledger, shown: Sequence[ViewEntry]) -> tuple[ViewEntry, ...]:
    """Entries added to the view after the snapshot."""
    known = {entry.id for entry in (*before.view, *shown)}
    known |= before.entries.keys() | before.items.keys() | before.open.keys()
    return tuple(
        entry
        for entry in ledger.view
        if entry.id not in known and (entry.id not in ledger.entries or ledger.entries[entry.id].item not in known)
    )


def _lost(
    snapshot: Snapshot, view: ModelView, before: Ledger, ledger: Ledger
) -> tuple[tuple[Message, ...], tuple[tuple[str, ...], ...]]:
    """The messages, or parts of them, that the record does not show as the model saw them; and their names."""
    known = [entry for entry in view.entries if entry.kind == "summary" or entry.id in before.entries]
    there = {message.id: message for message in project(before, known)}
    forms = {entry.id: entry for entry in view.entries}
    lost: list[Message] = []
    names: list[tuple[str, ...]] = []
    made: set[str] = set()
    for message, mine in zip(snapshot.messages, view.names, strict=True):
        form = forms.get(mine[0]) if mine else None
        if there.get(message.id) == message or (form is not None and form.kind == "summary"):
            continue
        parts = without_added(message, ledger.environment).parts
        each = mine * len(parts) if message.role == "user" else mine
        missing: list[tuple[str, Part]] = []
        for name, group in groupby(zip(each, parts, strict=False), key=lambda pair: pair[0]):
            expected = [part for _, part in group]
            told = name.removesuffix(RESULT) not in made  # a result is rebuilt together with its call
            if name in forms and not (told and _tells(ledger.entries.get(name), forms[name], message, expected)):
                missing += [(name, _with_id_of_call(part, ledger, name) if told else part) for part in expected]
                made.add(name)
        if missing:
            lost.append(replace(message, parts=tuple(part for _, part in missing)))
            names.append(tuple(name for name, _ in missing))
    return tuple(lost), tuple(names)


def _tells(entry: Entry | None, form: ViewEntry, message: Message, expected: Sequence[Part]) -> bool:
    """Whether an entry, as readable now, gives these parts of a message."""
    if entry is None or not is_what_it_says(entry):
        return False
    owner = f"{entry.message}.results" if entry.kind == "result" else entry.message
    sent = [_nameless(part) for part in sent_parts(entry, form) if not is_nothing(part)]
    return owner == message.id and sent == [_nameless(part) for part in expected]


def _with_id_of_call(part: Part, ledger: Ledger, name: str) -> Part:
    """A result with the id of its call in the record, which a projection may have changed."""
    call = ledger.entries.get(name.removesuffix(RESULT))
    if not isinstance(part, ToolResultPart) or call is None:
        return part
    return next(
        (replace(part, call_id=call_part.call_id) for call_part in call.parts if isinstance(call_part, ToolCallPart)),
        part,
    )


def _nameless(part: Part) -> Part:
    """The part without its call id, which a projection may change."""
    return replace(part, call_id="") if isinstance(part, ToolCallPart | ToolResultPart) else part


def _readable(entries: Iterable[ViewEntry], replaced: frozenset[str] | set[str], ledger: Ledger) -> Iterable[ViewEntry]:
    """The readable entries of the view. The stub of a lost offloaded text stays, as the only text left; a lost dropped
    entry vanishes for good, with the other half of its pair."""
    for entry in entries:
        if entry.id in replaced:
            yield ViewEntry("live", entry.id)
        elif entry.kind == "summary" or all(
            half is not None and is_what_it_says(half) for half in _halves(ledger, entry, replaced)
        ):
            yield entry


def _halves(ledger: Ledger, entry: ViewEntry, replaced: Iterable[str]) -> Iterable[Entry | None]:
    known = ledger.entries.get(entry.id)
    if entry.kind != "dropped" or known is None or known.kind not in ("call", "result"):
        return (known,)
    return tuple(ledger.entries.get(name) for name in (known.item, known.item + RESULT) if name not in replaced)


def _with_edit(view: ModelView, edit: ContextEdited, ledger: Ledger) -> ModelView:
    """The view with the user's choices after the snapshot, as far as they can be read."""
    present = {entry.id for entry in view.entries}
    order = {name: number for number, name in enumerate(ledger.entries)}
    forms = tuple(entry for entry in edit.entries if entry.id in present or entry.id in ledger.entries)
    dropped = {*view.dropped, *(entry.id for entry in forms if entry.kind == "dropped")}
    return replace(
        view,
        entries=with_entries(view.entries, forms, order),
        pinned=tuple(sorted({*view.pinned, *edit.pinned} - {*edit.unpinned})),
        dropped=tuple(sorted(dropped - {entry.id for entry in forms if entry.kind != "dropped"})),
    )
