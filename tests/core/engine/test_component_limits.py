"""Limits of components in a session: told at the start, kept for each result."""

from __future__ import annotations

from pathlib import Path

from swecli.core.context_management.budget import ComponentLimits, Limits
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.protocol.events import ContextMeasured, ItemsOffloaded, Notice
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_results import blobs
from tests.support.instructions import instructions


def told(b: Bench) -> list[Notice]:
    return [body for body in b.bodies(Notice) if body.topic == "context"]


def context(components: ComponentLimits, texts: PromptTexts | None = None) -> ContextManager:
    return ContextManager((), texts, Limits(components=components))


async def test_fixed_parts_without_room_are_an_error_at_the_start(tmp_path: Path) -> None:
    manager = ContextManager((), PromptTexts(base="A rule. " * 4_000))
    script = 'window = 8000\n[[step]]\ntext = "never"'
    async with bench(script, tmp_path, context=manager) as b:
        await until(lambda: bool(told(b)))
        (notice,) = told(b)
        assert notice.level == "error"
        assert "The largest part is system prompt" in notice.text
        end = await b.say("hi")
        assert end.outcome == "blocked"
        assert b.model.requests == []
        assert [one.text for one in told(b)].count(notice.text) == 1


async def test_a_component_over_its_limit_is_told_once_and_shown(tmp_path: Path) -> None:
    manager = context(
        ComponentLimits(instructions=0.05), PromptTexts(base="Short.", files=instructions("A rule. " * 300))
    )
    script = 'window = 8000\n[[step]]\ntext = "hello"\n[[step]]\ntext = "again"'
    async with bench(script, tmp_path, context=manager) as b:
        assert (await b.say("hi")).outcome == "done"
        assert (await b.say("hi")).outcome == "done"
        texts = [one.text for one in told(b) if one.level == "warning"]
        assert len(texts) == 1
        assert texts[0].startswith("project instructions: ")
        assert "its limit is 320." in texts[0]
        shown = {part.name: part.limit for part in b.bodies(ContextMeasured)[-1].budget.components}
        assert shown["project instructions"] == 320
        assert shown["user messages"] is None


async def test_a_result_over_its_own_limit_is_stored(tmp_path: Path) -> None:
    script = f'window = 200000\n[[step]]\ncall = [{call("read_file", "a")}]\n[[step]]\ntext = "seen"'
    for limit, stored in ((None, 0), (500, 1), (0.01, 1), (0.2, 0)):
        manager = context(ComponentLimits(tool_result=limit))
        async with bench(script, tmp_path, context=manager, blobs=blobs()) as b:
            b.gates.outputs["a"] = "a line of words in a file\n" * 600
            assert (await b.say("read")).outcome == "done"
            assert len(b.bodies(ItemsOffloaded)) == stored, limit
