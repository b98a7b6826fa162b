"""A large fixed part (system prompt, tools, instructions) leaves less room, and never wedges a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.context_management.budget import Limits, fixed_tokens, much_fixed
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.context_management.instructions import load_instructions
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.protocol.budget import Budget, Component
from swecli.core.protocol.events import CompactionCompleted, Event, Notice
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.tools.registry import ToolRegistry, builtin_tools, small_schemas
from tests.core.engine.support import bench
from tests.support.instructions import instructions as of_project
from tests.support.thorough import examples

RULE = "- Keep the public interface of the package as it is, and say what you changed.\n"
TURNS = examples(20, 60)


def context(instructions: int, appended: int = 0) -> ContextManager:
    """With so many tokens of project instructions, and of a text added to the system prompt."""
    registry = ToolRegistry(builtin_tools())
    rules, added = (RULE * (tokens // PieceEstimator().count(RULE)) for tokens in (instructions, appended))
    texts = PromptTexts(append=added, files=of_project(rules))
    return ContextManager(registry.schemas(), texts, small_tools=small_schemas(registry))


def script(window: int, answers: int) -> str:
    words = "I looked at it and found nothing that matters for the task at hand. " * 8
    return f"window = {window}\n" + f'[[step]]\ntext = "{words}"\n' * answers


@pytest.mark.parametrize(("window", "instructions"), [(8_000, 1_500), (8_192, 1_500), (32_000, 8_000)])
async def test_many_turns(tmp_path: Path, window: int, instructions: int) -> None:
    async with bench(script(window, 3 * TURNS), tmp_path, context=context(instructions)) as b:
        for number in range(TURNS):
            end = await b.say(f"Question {number}: " + "what about this part of the program? " * (window // 400))
            assert end.outcome == "done", (number, end.reason)
        assert b.bodies(CompactionCompleted)
        assert [body for body in b.bodies(Notice) if "The fixed part of every request takes" in body.text]


@pytest.mark.parametrize("window", [8_000, 14_000])
async def test_long_instructions_leave_room_for_the_conversation(tmp_path: Path, window: int) -> None:
    (tmp_path / "AGENTS.md").write_text("".join(f"# Part {part}\n{RULE * 40}" for part in range(12)))
    registry = ToolRegistry(builtin_tools())
    files = load_instructions(tmp_path)
    assert sum(file.tokens for file in files.files) > 8_000
    manager = ContextManager(registry.schemas(), PromptTexts(files=files), small_tools=small_schemas(registry))
    async with bench(script(window, 3 * TURNS), tmp_path, context=manager) as b:
        for number in range(TURNS):
            end = await b.say(f"Question {number}: " + "what about this part of the program? " * 20)
            assert end.outcome == "done", (number, end.reason)
        part = next(part for part in manager.measure((), b.model.info).components if "instructions" in part.name)
        assert part.tokens <= 0.35 * b.session.view.budget.effective  # type: ignore[union-attr]
        told = [body for body in b.bodies(Notice) if "too many for this model's window" in body.text]
        assert len(told) == 1
        assert "from line" in b.model.requests[0].system[-1].text


async def test_runs_that_each_continue_warn_once_in_all(tmp_path: Path) -> None:
    facts: list[Event] = []
    for number in range(4):
        async with bench(script(32_000, 3), tmp_path, history=facts, context=context(8_500, 6_000)) as b:
            assert (await b.say(f"Question {number}: {'what about it? ' * 60}")).outcome == "done"
        facts = list(b.facts)
    warned = [event.body for event in facts if isinstance(event.body, Notice) and event.body.level == "warning"]
    abouts = [body.about for body in warned]
    assert "context is filling" in abouts
    assert len(abouts) == len(set(abouts)), [body.text for body in warned]


async def test_many_runs_that_each_continue(tmp_path: Path) -> None:
    facts: list[Event] = []
    for number in range(TURNS):
        async with bench(script(8_000, 3), tmp_path, history=facts, context=context(1_500)) as b:
            end = await b.say(f"Question {number}: " + "what about this part of the program? " * 20)
            assert end.outcome == "done", (number, end.reason)
        facts = list(b.facts)


def budget(fixed: int, said: int, effective: int = 6_400) -> Budget:
    parts = (
        Component("system prompt", fixed - 100),
        Component("tool descriptions", 100),
        Component("user messages", said),
    )
    used = fixed + said
    return Budget(parts, used, used, effective, 8_000, 1_600, "ok", "measured", "user")


def test_the_warning_about_the_fixed_part() -> None:
    assert fixed_tokens(budget(1_000, 5_000)) == 1_000
    assert much_fixed(budget(2_000, 4_000)) == ""
    told = much_fixed(budget(2_500, 0))
    assert "2,500 of the 6,400 tokens" in told
    assert "39%" in told


async def test_a_block_names_compact_only_where_it_was_not_tried(tmp_path: Path) -> None:
    huge = "one message that is larger than the window " * 1_200
    for manager in (ContextManager(()), ContextManager((), limits=Limits(0.5, 0.6, 0.7))):
        async with bench(script(8_000, 2), tmp_path, context=manager) as b:
            end = await b.say(huge)
            assert end.outcome == "blocked"
            assert "/compact" not in end.reason
            assert "/clear" in end.reason
            prepared = manager.prepare((Message("user", (TextPart(huge),), "u9"),), info=b.model.info)
            assert "/compact" in prepared.reason


async def test_an_exact_count_is_an_estimate_while_a_server_starts(tmp_path: Path) -> None:
    async with bench(script(32_000, 2), tmp_path, context=context(500)) as b:
        await b.say("What is this?")
        budget = b.session.view.budget
        assert budget is not None
        assert budget.source == "measured"
        meter = b.session._context_parts.meter  # pyright: ignore[reportPrivateUsage]
        b.session.tools.expect("a server")
        meter.in_doubt = True
        await meter.count_in_doubt()
        counted = b.session.view.budget
        assert counted is not None
        assert (counted.source, meter.in_doubt) == ("estimated", False)
        b.session.tools.drop("a server")
