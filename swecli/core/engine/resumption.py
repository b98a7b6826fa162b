"""What a session that is continued knows of the size of its context: the newest figure that was reported or measured,
so that the meter goes on where it was. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from swecli.core.protocol.budget import TAIL
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    Event,
    ModelChanged,
    ModelResponded,
    SessionStarted,
    StepStarted,
    ViewEntry,
)
from swecli.core.protocol.usage import Usage


@dataclass(frozen=True, slots=True)
class KnownSize:
    """A request over the first ``entries`` of the view, without its tail, had the size in ``usage``."""

    entries: int
    usage: Usage
    seq: int = 0
    """The event that told it."""


def known_size(events: Sequence[Event], view: Sequence[ViewEntry], names: Collection[str]) -> KnownSize | None:
    """The newest size that is known of a beginning of the view; None where the view or the model is another one.

    ``names`` are those of the model at hand.
    """
    places = {entry.id: place for place, entry in enumerate(view) if entry.kind == "live"}
    answer: tuple[int, Usage] | None = None
    found: KnownSize | None = None
    for event in reversed(events):
        match event.body:
            case SessionStarted(model=named) | ModelChanged(model=named) if found is not None:
                return found if named in names else None
            case _ if found is not None:
                continue
            case CompactionUndone() | CompactionRedone():
                return None
            case CompactionCompleted(view=compacted, tokens_after=tokens):
                if tuple(view[: len(compacted)]) != compacted or tokens <= 0:
                    return None
                found = KnownSize(len(compacted), Usage(input_total=tokens), event.seq)
            case ModelResponded(items=items, usage=usage) if usage is not None and usage.input_total:
                first = min((places[item] for item in items if item in places), default=0)
                answer = (first, usage) if first else None
            case StepStarted(budget=budget) if answer is not None:
                entries, usage = answer
                tail = sum(part.tokens for part in budget.components if part.name == TAIL)
                told = max(1, usage.prompt - tail)
                told_by = Usage(input_total=told, output_total=usage.output_total, reasoning=usage.reasoning)
                found = KnownSize(entries, told_by, event.seq)
            case _:
                pass
    return None
