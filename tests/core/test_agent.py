"""The agent as a library: the examples of the documentation, over the real engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from swecli import ContextConfig
from swecli.core.agent import AgentError, AgentOptions, Client
from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactDecision,
    CompactResult,
    ImportanceStrategy,
    SummarizationStrategy,
    TruncationStrategy,
)
from swecli.core.engine.recorder import KEPT
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.protocol.events import Event, PermissionRequested, TurnEnded
from swecli.core.protocol.messages import Message, Part, TextPart, ToolCallPart, ToolResultPart
from swecli.core.tools.base import AnyTool
from swecli.library.counting import TokenCounter
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Gates, Peek, Poke, call
from tests.support.held import held_by
from tests.support.loopback import LoopbackServer

ANSWER = "A longer answer about the question with some words in it that nobody needs to read. " * 22
TALK = "\n".join(f'[[step]]\nchunk = 200\ntext = "{number}: {ANSWER}"' for number in range(100))
"""A hundred answers of about 400 tokens."""
SUMMARY = "## Goal\\nTalk about many things.\\n## Done\\nTalked about most of them in some depth."


def model(script: str) -> ScriptedModel:
    return ScriptedModel(parse_script(script))


async def talk(client: Client, turns: int) -> None:
    for number in range(turns):
        await client.query(f"Message {number}")
        async for _ in client.receive_messages():
            pass


async def say(client: Client, text: str) -> list[Part]:
    await client.query(text)
    return [part async for part in client.receive_messages()]


async def test_the_state_says_what_the_guide_to_the_project_says(tmp_path: Path) -> None:
    (tmp_path / "OPENCLI.md").write_text(
        "# Shop\n\nA shop.\n\n## Overview\n\nSells pens.\n\n## Key files\n\n- `shop/price.py`: prices\n\n"
        "## Patterns\n\n- Tests: `tests/test_price.py`\n\n## Structure\n\n- `shop/`: 3 files\n"
    )
    async with Client(AgentOptions(model_client=model(TALK), cwd=tmp_path, environment={})) as client:
        codebase = client.state.codebase_summary
    assert codebase is not None
    assert codebase.summary == "A shop. Sells pens."
    assert codebase.key_files == ["shop/price.py"]
    assert codebase.patterns == {"Tests": "tests/test_price.py"}
    assert codebase.project_structure == {"shop": ["price.py"]}
    assert codebase.tokens > 10


async def test_a_hundred_messages_to_a_local_server_are_compacted_on_the_way(tmp_path: Path) -> None:
    with LoopbackServer(parse_script(TALK), "openai") as server:
        options = AgentOptions(
            model="qwen2.5-32b",
            base_url=f"{server.url}/v1",
            cwd=tmp_path,
            environment={},
            context=ContextConfig(
                max_context_tokens=32_000,
                target_tokens=28_000,
                strategy="truncation",
                truncation_options=TruncationStrategy(keep_recent=10),
            ),
        )
        async with Client(options) as client:
            await talk(client, 100)
            assert len(client.history) < 100
            check_valid(client.history)
            assert client.state.compaction_count >= 1
            assert client.state.last_compacted is not None
        assert len(server.asked) == 100
        assert all(request.body["model"] == "qwen2.5-32b" for request in server.asked)


async def test_the_hook_is_told_before_each_compaction_and_may_allow_it(tmp_path: Path) -> None:
    seen: list[CompactContext] = []

    async def on_compact(ctx: CompactContext) -> CompactDecision:
        seen.append(ctx)
        return CompactDecision(cancel=False)

    done: list[CompactResult] = []

    async def after(result: CompactResult) -> None:
        done.append(result)

    context = ContextConfig(
        max_context_tokens=16_000, strategy="truncation", on_pre_compact=on_compact, on_post_compact=after
    )
    async with Client(AgentOptions(model_client=model(TALK), cwd=tmp_path, context=context)) as client:
        await talk(client, 60)
        assert len(client.history) < 120
        assert len(done) == client.state.compaction_count
    assert seen
    assert all(result.after_tokens < result.before_tokens for result in done)
    assert {ctx.trigger for ctx in seen} == {"auto"}
    assert all(ctx.current_tokens > ctx.target_tokens for ctx in seen)
    assert all(ctx.message_count > 10 for ctx in seen)


async def test_the_hook_is_told_the_size_that_the_settings_ask_for(tmp_path: Path) -> None:
    seen: list[CompactContext] = []

    async def on_compact(ctx: CompactContext) -> CompactDecision:
        seen.append(ctx)
        return CompactDecision()

    context = ContextConfig(
        max_context_tokens=16_000, target_tokens=4_000, strategy="truncation", on_pre_compact=on_compact
    )
    async with Client(AgentOptions(model_client=model(TALK), cwd=tmp_path, context=context)) as client:
        await talk(client, 30)
    assert seen
    assert all(ctx.target_tokens == 4_000 for ctx in seen)


async def test_the_hook_can_cancel_as_long_as_a_request_fits(tmp_path: Path) -> None:
    cancelled = 0

    async def never(ctx: CompactContext) -> CompactDecision:
        nonlocal cancelled
        cancelled += 1
        return CompactDecision(cancel=True)

    context = ContextConfig(max_context_tokens=16_000, strategy="truncation", on_pre_compact=never)
    async with Client(AgentOptions(model_client=model(TALK), cwd=tmp_path, context=context)) as client:
        await talk(client, 30)
        assert cancelled >= 1
        assert client.state.compaction_count >= 1
        assert client.stats.usage_percent < 98


@pytest.mark.parametrize(
    "context",
    [
        ContextConfig(max_context_tokens=16_000, strategy="importance", importance_options=ImportanceStrategy(4)),
        ContextConfig(
            max_context_tokens=16_000, strategy="importance", importance_options=ImportanceStrategy(4, 0.2, 0.2, 0.2)
        ),
        ContextConfig(max_context_tokens=16_000, target_tokens=9_000, strategy="truncation"),
        ContextConfig(max_context_tokens=16_000, token_counter=TokenCounter("chars"), strategy="truncation"),
    ],
    ids=["importance", "low scores", "target", "custom counter"],
)
async def test_every_strategy_keeps_a_long_talk_going(tmp_path: Path, context: ContextConfig) -> None:
    async with Client(AgentOptions(model_client=model(TALK), cwd=tmp_path, context=context)) as client:
        await talk(client, 60)
        assert len(client.history) < 120
        check_valid(client.history)
        assert client.history[-1].text.startswith("59:")
        assert client.stats.usage_percent < 98
        assert client.stats.message_count == len(client.history)


async def test_an_own_model_writes_the_summary(tmp_path: Path) -> None:
    other = model(f'aside = "{SUMMARY}"\n[[step]]\ntext = "{SUMMARY}"')
    context = ContextConfig(
        max_context_tokens=16_000,
        strategy="summarization",
        summarization_options=SummarizationStrategy(summarize_with=other, max_summary_tokens=300),
    )
    mine = model(TALK)
    async with Client(AgentOptions(model_client=mine, cwd=tmp_path, context=context)) as client:
        await talk(client, 40)
        assert client.state.compaction_count >= 1
        assert "Talk about many things." in client.history[0].text
    assert len(mine.requests) == 40
    # A conversation that is too long for one request is told to it in parts.
    assert client.state.compaction_count <= len(other.requests) <= 3 * client.state.compaction_count


async def test_what_the_agent_says_and_does_comes_in_order(tmp_path: Path) -> None:
    gates = Gates()
    script = f"""
[[step]]
reasoning = "Where is it?"
text = "I look."
call = [{call("read_file", "a.py")}, {call("write_file", "b.py")}]
[[step]]
text = "Done."
"""
    asked: list[str] = []

    async def approve(request: PermissionRequested) -> bool:
        asked.append(request.title)
        return True

    tools: list[AnyTool] = [Peek(gates), Poke(gates)]
    options = AgentOptions(model_client=model(script), cwd=tmp_path, tools=tools, approve=approve)
    async with Client(options) as client:
        parts = await say(client, "Change it.")
        assert [type(part).__name__ for part in parts] == [
            "ReasoningPart",
            "TextPart",
            "ToolCallPart",
            "ToolCallPart",
            "ToolResultPart",
            "ToolResultPart",
            "TextPart",
        ]
        assert [part.text for part in parts if isinstance(part, ToolResultPart)] == [
            "read_file a.py done",
            "write_file b.py done",
        ]
        assert [part.name for part in parts if isinstance(part, ToolCallPart)] == ["read_file", "write_file"]
        assert asked == ["b.py"]


async def test_without_anybody_to_ask_writes_are_refused(tmp_path: Path) -> None:
    gates = Gates()
    script = f'[[step]]\ncall = [{call("write_file", "b.py")}]\n[[step]]\ntext = "I may not."'
    async with Client(AgentOptions(model_client=model(script), cwd=tmp_path, tools=[Poke(gates)])) as client:
        parts = await say(client, "Change it.")
        assert any(isinstance(part, ToolResultPart) and part.is_error for part in parts)
        assert gates.started == []


async def test_a_compaction_by_hand(tmp_path: Path) -> None:
    script = "\n".join(TALK.splitlines()[:36]) + f'\n[[step]]\ntext = "{SUMMARY}"\n[[step]]\ntext = "Here."'
    async with Client(AgentOptions(model_client=model(script), cwd=tmp_path)) as client:
        await talk(client, 12)
        before = client.context_manager.count_tokens(client.history)
        done = await client.compact("the questions")
        assert done is not None
        assert isinstance(done, CompactResult)
        assert done.after_tokens < 0.6 * done.before_tokens
        assert done.after_msg_count < done.before_msg_count
        assert done.strategies_run == ("summary",)
        assert client.context_manager.count_tokens(client.history) == pytest.approx(done.after_tokens, abs=3)
        assert before == pytest.approx(done.before_tokens, rel=0.02)
        assert [part.text for part in await say(client, "Still there?") if isinstance(part, TextPart)] == ["Here."]


async def test_the_state_is_a_document(tmp_path: Path) -> None:
    async with Client(AgentOptions(model_client=model('[[step]]\ntext = "Hello."'), cwd=tmp_path)) as client:
        await say(client, "Hi.")
        state = client.state
        assert [(message.role, message.content) for message in state.messages] == [
            ("user", "Hi."),
            ("assistant", "Hello."),
        ]
        assert state.started_at <= state.messages[-1].timestamp
        assert state.working_dir == str(tmp_path)
        assert type(state).model_validate_json(state.model_dump_json()) == state
        assert state.total_tokens > 0
        assert not state.needs_compaction()
        assert client.stats.oldest_message_age is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": ""}, "provider"),
        ({"model": "nobody/x"}, "Provider 'nobody' is unknown"),
        ({"model": "openai/gpt-5"}, "OPENAI_API_KEY"),
        ({"model": "x", "base_url": "ftp://host"}, "127.0.0.1"),
    ],
)
async def test_a_model_that_can_not_be_had_is_told(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(AgentError, match=words):
        async with Client(AgentOptions(cwd=tmp_path, environment={}, **options)):
            pass


async def test_outside_of_a_block_the_first_message_connects(tmp_path: Path) -> None:
    client = Client(AgentOptions(model_client=model(TALK), cwd=tmp_path))
    assert client.message_history == []
    with pytest.raises(AgentError, match="async with"):
        _ = client.history
    await client.query("hi")
    _ = [part async for part in client.receive_messages()]
    assert client.message_history[0]["role"] == "user"
    assert client.message_history[0]["content"] == "hi"
    await client.close()


async def test_a_client_may_write_the_summaries_of_another(tmp_path: Path) -> None:
    other = Client(AgentOptions(model_client=model(f'[[step]]\ntext = "{SUMMARY}"'), cwd=tmp_path))
    context = ContextConfig(
        strategy="summarization", summarization_options=SummarizationStrategy(keep_recent=1, summarize_with=other)
    )
    own = model("window = 20000\nmax_output = 2000\n" + f'[[step]]\ntext = "{"word " * 900}"\n' * 12)
    async with Client(AgentOptions(model_client=own, cwd=tmp_path, context=context)) as client:
        await talk(client, 8)
        await client.compact()
        await say(client, "Still there?")
    asked = other.model_client()
    assert isinstance(asked, ScriptedModel)
    assert asked.requests


async def test_a_failed_turn_raises_and_the_talk_goes_on(tmp_path: Path) -> None:
    script = '[[step]]\nfault = { kind = "bad_request" }\n[[step]]\ntext = "Now."'
    async with Client(AgentOptions(model_client=model(script), cwd=tmp_path)) as client:
        with pytest.raises(AgentError, match="invalid"):
            await say(client, "hi")
        assert [part.text for part in await say(client, "again") if isinstance(part, TextPart)] == ["Now."]


@pytest.mark.parametrize(
    "config",
    [{"max_context_tokens": 0}, {"target_tokens": -1}, {"max_context_tokens": 10, "target_tokens": 20}],
)
def test_sizes_that_make_no_sense_are_refused(config: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="token"):
        Client(AgentOptions(context=ContextConfig(**config)))


def test_messages_are_plain_values() -> None:
    assert Message("user", (TextPart("a"),), "u1") == Message("user", (TextPart("a"),), "u1")


async def test_a_long_conversation_keeps_few_of_its_events_in_memory(tmp_path: Path) -> None:
    options = AgentOptions(
        model="m",
        model_client=model(TALK),
        cwd=tmp_path,
        environment={},
        context=ContextConfig(max_context_tokens=16_000, target_tokens=12_000, strategy="truncation"),
    )
    async with Client(options) as client:
        await talk(client, 50)
        early = held_by(client)
        await talk(client, 50)
        late = held_by(client)
        session = client._session  # pyright: ignore[reportPrivateUsage]
        assert session is not None
        facts = session._recorder.facts  # pyright: ignore[reportPrivateUsage]
        assert len(facts.held) <= 2 * KEPT < len(facts)
        shown = [event async for event in first(session.subscribe(replay=True), len(facts))]
    assert [event.seq for event in shown] == sorted({event.seq for event in shown})
    assert [event.body for event in shown if isinstance(event.body, TurnEnded)][99].outcome == "done"
    assert (late.count - early.count) / 50 < 90, (late.objects - early.objects).most_common(8)


async def first(events: AsyncIterator[Event], count: int) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        count -= 1
        if not count:
            return
