"""A word of a long answer costs the same wherever it stands, and little: counted in calls of functions."""

from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any

from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.text_tools import TextCallStream
from swecli.core.llm.types import TextDelta
from swecli.core.protocol.messages import Origin

MOST_CALLS = 65
"""Calls of Python functions for one event of a stream: framing, decoding, and the search for calls in the text."""


class Counted:
    """Counts calls of Python functions while the block runs."""

    def __enter__(self) -> Counted:
        self.calls = 0
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        self.calls += event == "call"


def test_a_word_costs_as_much_at_the_end_as_at_the_beginning() -> None:
    decoder, body = decoder_for("openai-chat", Origin("openai-chat", "h", "m")), BodyParser("text/event-stream")
    calls = TextCallStream(["read_file"])
    counts: list[float] = []
    text = ""
    for stretch in range(5):
        with Counted() as counted:
            for number in range(400):
                word = f"word{number} "
                delta = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": word}}]}
                for wire in body.feed(f"data: {json.dumps(delta)}\n\n".encode()):
                    for event in decoder.feed(wire):
                        for made in calls.feed(event):
                            text += made.text if isinstance(made, TextDelta) else ""
        counts.append(counted.calls / 400)
        assert text.count("word399 ") == stretch + 1
    assert max(counts) <= MOST_CALLS, counts
    assert max(counts[1:]) - min(counts[1:]) < 1, counts
