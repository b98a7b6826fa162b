"""Tool results that the provider leaves out by itself: asked for, told, and in the meter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from msgspec.structs import replace

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import Finished, ModelRequest, ServerClearing, StreamEvent
from swecli.core.protocol.events import ModelResponded, Notice
from tests.core.engine.support import bench, until
from tests.core.engine.test_compaction import BIG, fill

WISH = ServerClearing(20_000, 3)


class Clearing(ScriptedModel):
    """A model whose provider leaves out a part of every prompt from the wished size on."""

    def __init__(self, script: str, cleared: int) -> None:
        super().__init__(parse_script(script))
        self.cleared = cleared

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        async for event in super().stream(request):
            if isinstance(event, Finished) and event.message.response and event.message.response.usage:
                usage = event.message.response.usage
                if usage.prompt > 10_000:
                    usage = replace(usage, input_total=usage.prompt - self.cleared, cleared=self.cleared)
                response = replace(event.message.response, usage=usage)
                yield Finished(replace(event.message, response=response))
            else:
                yield event


async def used(folder: Path, cleared: int) -> tuple[int, list[str], ModelResponded]:
    model = Clearing(BIG, cleared)
    context = ContextManager((), limits=Limits(server_clearing=WISH))
    async with bench(BIG, folder, make_client=lambda _name: model, context=context) as b:
        fill(b, 12)
        await b.say("Read the files f0 to f11.")
        await until(lambda: b.session.view.budget is not None)
        assert all(request.server_clearing == WISH for request in model.requests)
        assert b.session.view.budget is not None
        notices = [body.text for body in b.bodies(Notice) if isinstance(body, Notice)]
        answer = b.bodies(ModelResponded)[-1]
        assert isinstance(answer, ModelResponded)
        components = b.session.view.budget.components
        assert sum(part.tokens for part in components) == b.session.view.budget.used
        return b.session.view.budget.used, notices, answer


async def test_what_the_provider_leaves_out_is_recorded_told_once_and_not_in_the_meter(tmp_path: Path) -> None:
    whole, silent, _ = await used(tmp_path, 0)
    less, told, answer = await used(tmp_path, 6_000)
    assert abs(whole - less - 6_000) <= 0.01 * whole
    assert [text for text in told if "6,000 tokens of old tool results" in text] == [
        "The provider removed about 6,000 tokens of old tool results."
    ]
    assert not any("provider itself" in text for text in silent)
    assert answer.usage is not None
    assert answer.usage.cleared == 6_000
