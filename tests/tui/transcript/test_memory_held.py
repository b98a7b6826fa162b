"""The transcript of a long session keeps its shape in memory, not its texts, and loses nothing."""

from __future__ import annotations

from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import Body, Event, ItemCheckpointed, ItemCompleted, ItemStarted, TurnEnded
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.spill import SpillStore
from swecli.tui.transcript.blocks import BlockList
from swecli.tui.transcript.finder import matching_blocks
from swecli.tui.transcript.page import Page
from swecli.tui.transcript.reducer import Reducer
from tests.support.held import held_by
from tests.support.thorough import examples

EARLY, TURNS = 120, examples(180, 300)
RESIDENT = 100_000
TEXT_PER_TURN = 100
"""Characters of long texts that a turn may leave behind; what it shows is 13,000."""
OBJECTS_PER_TURN = 30


def _turn(number: int) -> list[Body]:
    user, tool, answer = f"u{number}", f"t{number}", f"a{number}"
    call = ToolCallPart(f"c{number}", "run_command", '{"command": "make"}')
    output = f"needle-{number}.\n" + f"{number}: a line of output\n" * 400
    return [
        ItemStarted(user, "user"),
        ItemCompleted(user, "ok", (TextPart(f"Run part {number}. " + "Just like this. " * 150),)),
        ItemStarted(tool, "tool", "run_command"),
        ItemCheckpointed(tool, call),
        ItemCompleted(
            tool, "ok", (ToolResultPart(call.call_id, call.name, "ok"),), blocks=(TerminalBlock("make", output, 0),)
        ),
        ItemStarted(answer, "text"),
        ItemCompleted(answer, "ok", (TextPart(f"Turn {number} is done. " + "And so on. " * 200),)),
        TurnEnded("done"),
    ]


def test_turns_leave_their_shape_behind_and_every_text_is_found() -> None:
    page, shelf = Page(), SpillStore(0)
    page.blocks = BlockList(RESIDENT, shelf)
    reducer = Reducer(page.block)
    seq = 0

    def play(first: int, end: int) -> None:
        nonlocal seq
        for number in range(first, end):
            for body in _turn(number):
                seq += 1
                for operation in reducer.reduce([Event(seq, float(seq), "s", number, body)]):
                    place = page.apply(operation)
                    if place is not None:
                        page.measure(place)

    play(0, EARLY)
    early = held_by(page, reducer)
    play(EARLY, TURNS)
    late = held_by(page, reducer)
    turns = TURNS - EARLY
    most = (late.objects - early.objects).most_common(8)
    assert (late.long_texts - early.long_texts) / turns < TEXT_PER_TURN, most
    assert (late.count - early.count) / turns < OBJECTS_PER_TURN, most
    assert len(page.blocks) == 4 * TURNS
    assert matching_blocks(page.blocks, "needle-7.") == [4 * 7 + 1]
    shelf.close()
