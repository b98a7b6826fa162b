"""A conversation that is too long for one request is summarised in steps."""

from __future__ import annotations

from collections.abc import AsyncIterator

from swecli.core.context_management.compaction.options import SummarizationStrategy
from swecli.core.context_management.compaction.summary import BOUNDED_SHARE, CHARACTERS_PER_TOKEN, Summarizer, chunked
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import Failed, ModelRequest, ProviderError, StreamEvent, SystemBlock
from swecli.core.protocol.messages import Message, TextPart

HISTORY = tuple(
    Message("user" if number % 2 == 0 else "assistant", (TextPart(f"word{number} " * 20),), f"m{number}")
    for number in range(40)
)
STEPS = "\n".join(f'[[step]]\ntext = "## Goal\\nSummary number {number}, which is long enough."' for number in range(4))


class Overflowing(ScriptedModel):
    """Refuses the first request as too long."""

    asked: list[ModelRequest]

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked = [*getattr(self, "asked", []), request]
        if len(self.asked) == 1:
            yield Failed(ProviderError("context_overflow", "too long"))
            return
        async for event in super().stream(request):
            yield event


async def no_sleep(_seconds: float) -> None:
    return None


def test_groups_stay_together_and_the_oldest_go_first() -> None:
    texts = chunked(HISTORY, 10, 2_000, 3)
    assert len(texts) == 3
    assert texts[0].startswith("(The beginning is left out.)")
    assert "word39" in texts[-1]
    whole = chunked(HISTORY, 10, 10**6, 3)
    assert len(whole) == 1
    assert all(f"word{number} " in whole[0] for number in range(40))
    assert all("word19" not in text or "word10 " in text for text in chunked(HISTORY, 10, 1_800, 9))


async def test_every_step_carries_on_the_summary_before() -> None:
    model = Overflowing(parse_script(STEPS))
    summarizer = Summarizer(
        RequestGateway(ContextManager(()), sleep=no_sleep), model, SummarizationStrategy(summarize_chunk_size=10)
    )
    effective = int(3_600 / BOUNDED_SHARE / CHARACTERS_PER_TOKEN)
    request = ModelRequest((SystemBlock("s"),), (), HISTORY)
    summary = await summarizer.summarize(request, "", 500, effective)
    assert len(model.asked) == 3
    assert "Summary number 1" in summary.text
    last = model.asked[-1].messages[-1].text
    assert "Summary number 0" in last
    assert "word39" in last
    assert "word39" not in model.asked[-2].messages[-1].text
    assert len(summary.usage) == 2
