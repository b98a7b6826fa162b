"""A half answer, stored in pieces, is whole wherever it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.acp.updates import Updates
from swecli.core.context_management.ledger import Ledger
from swecli.core.engine.snapshots import recover
from swecli.core.engine.state import SessionState
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    TurnStarted,
)
from swecli.core.protocol.messages import ReasoningPart, TextPart
from swecli.export.transcript import transcript_of
from swecli.headless.outcome import Outcome
from swecli.tui.transcript.blocks import AnswerBlock
from swecli.tui.transcript.reducer import Reducer

PIECES = ("The first ", "half, and ", "the rest")
WHOLE = "".join(PIECES)


def stored() -> list[Body]:
    """What the store has of the answer."""
    begins = [sum(map(len, PIECES[:number])) for number in range(len(PIECES))]
    pieces = [
        ItemCheckpointed("a1", TextPart(piece), begins=begin) for piece, begin in zip(PIECES, begins, strict=True)
    ]
    return [TurnStarted("u1"), ItemStarted("a1", "text"), *pieces]


def shown() -> list[Body]:
    """The same while it streams, when text is shown before it is stored."""
    bodies = stored()
    for place, piece in reversed(list(enumerate(PIECES, 2))):
        bodies.insert(place, ItemDelta("a1", piece))
    return bodies


def events(bodies: list[Body]) -> list[Event]:
    return [Event(number, float(number), "s", 1, body) for number, body in enumerate(bodies, 1)]


@pytest.fixture(params=[stored, shown], ids=["stored", "shown"])
def said(request: pytest.FixtureRequest) -> list[Event]:
    return events(request.param())


def test_after_a_kill(said: list[Event]) -> None:
    ledger, state = Ledger(), SessionState()
    for event in said:
        ledger.apply(event)
        state.apply(event)
    ended = [body for body in recover(ledger, state) if isinstance(body, ItemCompleted)]
    assert [body.parts for body in ended] == [(TextPart(WHOLE),)]


def test_on_the_screen(said: list[Event]) -> None:
    reducer = Reducer()
    reducer.reduce(said)
    block = reducer.block("a1")
    assert isinstance(block, AnswerBlock)
    assert block.text == WHOLE


def test_in_an_export(said: list[Event]) -> None:
    transcript = transcript_of(said)
    texts = [entry.text for turn in transcript.turns for entry in turn.entries]
    assert texts == [WHOLE]


def test_without_a_screen(said: list[Event]) -> None:
    outcome = Outcome()
    for event in said:
        outcome.apply(event)
    assert outcome.text == WHOLE


def test_in_an_editor(said: list[Event]) -> None:
    updates = Updates(Path("/w"))
    sent = [update for event in said for update in updates.apply(event)]
    assert "".join(str(getattr(update.content, "text", "")) for update in sent if hasattr(update, "content")) == WHOLE


def test_a_checkpoint_of_an_earlier_version_has_all_of_it() -> None:
    old = ItemCheckpointed("a1", TextPart(WHOLE))
    assert old.whole_part(PIECES[0]) == TextPart(WHOLE)
    thought = ItemCheckpointed("r1", ReasoningPart("world"), begins=6)
    assert thought.whole_part("Hello and more") == ReasoningPart("Hello world")
