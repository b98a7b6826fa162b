"""Typed changes of the context that cost thoughts of the model: the price first, then the user's yes."""

from __future__ import annotations

from typing import cast

import pytest

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult, run_command
from swecli.commands.registry import find
from swecli.core.context_management.edit_effects import price_words
from swecli.core.context_management.edits import Effect
from swecli.core.engine.session import Session
from swecli.core.protocol.commands import (
    ChangeContext,
    Command,
    Compact,
    RedoCompaction,
    SetModel,
    UndoCompaction,
    UndoRewind,
)
from swecli.core.protocol.context_events import ContextChange
from tests.commands.support import CommandSession

COSTLY = Effect(20_000, 14_040, 15_000, "0.05", "0.01", thoughts=12)
DROP = (ContextChange("drop", "t4"),)


async def typed(made: CommandSession, line: str) -> CommandResult:
    name, _, words = line.partition(" ")
    command = find(name)
    assert command is not None
    return await run_command(command, cast(Session, made), words)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("compact undo k1", UndoCompaction("k1")),
        ("compact redo", RedoCompaction("")),
        ("compact free", Compact(without_model=True)),
        ("context drop t4", ChangeContext(DROP)),
        ("rewind undo", UndoRewind()),
        ("model other/one", SetModel("other/one")),
    ],
)
async def test_the_price_comes_first_if_thoughts_are_lost(line: str, command: Command) -> None:
    made = CommandSession()
    made.rewinds.undoable = True
    made.prices.effect = COSTLY
    result = await typed(made, line)
    assert made.commands == []
    assert result.offer is not None
    assert result.offer.command == command
    said = "\n".join([result.offer.title, *(line for block in result.blocks for line in block_lines(block))])
    assert price_words(COSTLY) in said
    waits = {"context drop t4": ChangeContext(DROP, later=True), "model other/one": SetModel("other/one", later=True)}
    assert result.offer.later == waits.get(line)


@pytest.mark.parametrize("effect", [None, Effect(20_000, 14_040, 15_000, None, None, regained=3)])
async def test_what_costs_no_thoughts_happens_at_once(effect: Effect | None) -> None:
    made = CommandSession()
    made.prices.effect = effect
    for line in ("compact undo", "context drop t4", "context drop t4 later"):
        assert (await typed(made, line)).offer is None
    assert made.commands == [UndoCompaction(""), ChangeContext(DROP), ChangeContext(DROP, later=True)]


def test_a_price_in_words() -> None:
    assert price_words(COSTLY) == "-5,960 tokens · 15K leave the cache · costs $0.05 once · 12 thoughts are lost"
    assert price_words(Effect(5, 6, 0, None, None, thoughts=1, regained=1)) == (
        "+1 token · 1 thought is lost · 1 thought comes back"
    )
