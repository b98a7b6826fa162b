"""The context manager for programs: questions about any history, and compaction without a session."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import swecli
from swecli.core.context_management.budget import Limits, level_of
from swecli.core.context_management.compaction.options import CompactionOptions, StrategyName, TruncationStrategy
from swecli.core.context_management.projection import project
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.library.context_manager import ContextConfig, ContextManager, ledger_of
from swecli.library.documents import Message as Document
from swecli.library.figures import TokenUsage
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import bench, call

INFO = ModelInfo("test", "model", 20_000, 2_000)
SUMMARY = "## Goal\\nRead the files.\\n## Done\\nRead many of them and found nothing."


def history(steps: int, size: int = 300) -> tuple[Message, ...]:
    messages = [Message("user", (TextPart("Read the files; never touch config.py."),), "u0")]
    for step in range(steps):
        part = ToolCallPart(f"c{step}", "read_file", f'{{"path": "f{step}.py"}}')
        messages.append(Message("assistant", (TextPart("Next."), part), f"a{step}"))
        text = f"file {step}\n" + "some words of it\n" * size
        messages.append(Message("tool", (ToolResultPart(f"c{step}", "read_file", text),), f"a{step}.results"))
    return tuple(messages)


def client(script: str = f'window = 20000\nmax_output = 2000\n[[step]]\ntext = "{SUMMARY}"') -> ScriptedModel:
    return ScriptedModel(parse_script(script))


def test_questions_about_a_history() -> None:
    context = ContextManager()
    assert context.count_tokens("one word") > 0  # without a model
    short, long = history(1), history(20)
    assert context.should_compact(long, INFO)
    assert not context.should_compact(short)
    assert context.count_tokens(long) > context.count_tokens(short) > context.count_tokens("one word")
    stats = context.get_stats(short)
    assert (stats.message_count, stats.max_tokens) == (3, 18_000)
    assert stats.current_usage == context.count_tokens(short)
    assert not context.needs_compaction()
    context.prepare(long, info=INFO)
    assert context.needs_compaction()
    assert context.is_blocked()
    assert context.exceeds_budget()
    context.prepare(short, info=INFO)
    assert not context.needs_compaction()
    assert not context.is_blocked()
    assert not context.exceeds_budget()


def test_the_forecast_of_what_is_being_typed() -> None:
    context = ContextManager()
    now = context.predict_next(history(2), info=INFO)
    assert not now.measured
    assert now.low < now.tokens < now.high
    request = context.prepare(history(2), info=INFO).request
    context.update_usage(request, Usage(input_total=3_000, output_total=10), INFO)
    anchored = context.predict_next(history(2))
    assert anchored.measured
    assert anchored.tokens == 3_000
    more = context.predict_next(history(2), "word " * 500)
    assert more.tokens == pytest.approx(3_500, rel=0.1)
    assert more.level == "ok"


async def test_a_history_is_compacted_by_each_strategy() -> None:
    long = history(20)
    for options in (
        None,
        CompactionOptions(strategy="truncation", truncation=TruncationStrategy(keep_recent=4)),
        CompactionOptions(strategy="summarization"),
    ):
        context = ContextManager()
        done = await context.compact(long, options, client())
        assert done.result is not None
        assert done.result.after_tokens < 0.5 * done.result.before_tokens
        assert done.result.before_msg_count - done.result.after_msg_count == len(long) - len(done.messages)
        check_valid(done.messages)
        assert "never touch config.py" in "\n".join(message.text for message in done.messages)
        assert context.count_tokens(done.messages, INFO) == pytest.approx(done.result.after_tokens, abs=3)


@pytest.mark.parametrize("name", ["preserve_system", "preserve_tool_chains"])
def test_what_always_stays_can_not_be_given_up(name: str) -> None:
    assert TruncationStrategy(preserve_system=True, preserve_tool_chains=True) == TruncationStrategy()
    with pytest.raises(ValueError, match=f"{name} must be True"):
        TruncationStrategy(**{name: False})  # pyright: ignore[reportArgumentType]


async def test_a_compacted_history_can_be_compacted_again() -> None:
    context = ContextManager()
    first = await context.compact(history(20), client=client())
    more = tuple(
        Message(message.role, message.parts, f"x{message.id}") if message.id != "u0" else message
        for message in history(20)[1:]
    )
    second = await context.compact((*first.messages, *more), client=client())
    assert second.result is not None
    check_valid(second.messages)
    assert "never touch config.py" in "\n".join(message.text for message in second.messages)


async def test_what_can_not_be_shortened_stays_and_the_reason_is_told() -> None:
    short = history(0)
    done = await ContextManager().compact(short, client=client())
    assert (done.messages, done.result) == (short, None)
    assert done.reason


PARTS = st.lists(st.tuples(st.sampled_from(["user", "text", "call", "orphan"]), st.text(max_size=20)), max_size=20)


@settings(deadline=None, max_examples=60)
@given(PARTS)
def test_a_ledger_over_any_history_projects_to_a_valid_one(parts: list[tuple[str, str]]) -> None:
    messages: list[Message] = []
    for number, (kind, text) in enumerate(parts):
        name = f"m{number}"
        if kind == "user":
            messages.append(Message("user", (TextPart(text),), name))
        elif kind == "text":
            messages.append(Message("assistant", (TextPart(text),), name))
        elif kind == "call":
            messages.append(Message("assistant", (ToolCallPart(name, "read_file", text),), name))
            messages.append(Message("tool", (ToolResultPart(name, "read_file", text),), f"{name}.results"))
        else:
            messages.append(Message("tool", (ToolResultPart("nowhere", "read_file", text),), name))
    projected = project(ledger_of(messages))
    check_valid(projected)
    assert project(ledger_of(projected)) == projected


async def test_the_ledger_of_a_sessions_messages_projects_to_the_same(tmp_path: Path) -> None:
    script = f'[[step]]\ntext = "I look."\ncall = [{call("read_file", "a")}]\n[[step]]\ntext = "Done."'
    async with bench(script, tmp_path) as b:
        await b.say("Look.")
        messages = tuple(b.session.view.messages)
    again = project(ledger_of(messages))
    assert [(message.role, message.parts) for message in again] == [(m.role, m.parts) for m in messages]


def test_an_absolute_size_is_a_trigger_too() -> None:
    limits = Limits(target_tokens=5_000)
    assert level_of(4_999, 18_000, limits) == "ok"
    assert level_of(5_000, 18_000, limits) == "compact"
    assert level_of(17_900, 18_000, limits) == "block"
    assert level_of(17_200, 18_000, Limits(target_tokens=17_900)) == "compact"
    with pytest.raises(ValueError, match="target_tokens must be at least 1"):
        Limits(target_tokens=0)
    with pytest.raises(ValueError, match="not be above context_budget"):
        Limits(context_budget=100, target_tokens=101)


def test_any_form_of_a_history_is_measured_and_judged() -> None:
    context = ContextManager(ContextConfig(max_context_tokens=8_000))
    plain = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read a.py."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "r", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "name": "r", "content": "text " * 500},
    ]
    documents = [Document(role="user", content="Read a.py."), Document(role="assistant", content="word " * 500)]
    for messages in (plain, documents, history(1)):
        stats = context.get_stats(messages)
        assert (stats.message_count, stats.max_tokens) == (len(messages), 6_400)
        assert stats.current_usage == context.count_tokens(messages) > 300
        assert not context.should_compact(messages)
    with pytest.raises(ValueError, match="no known role"):
        context.get_stats([{"content": "x"}])


async def test_a_plain_history_is_compacted() -> None:
    said = [{"role": "user" if number % 2 else "assistant", "content": f"{number} " * 900} for number in range(1, 30)]
    made = await ContextManager(client=client()).compact(said, swecli.CompactionOptions(strategy="truncation"))
    assert made.result is not None
    assert len(made.messages) < len(said)


@pytest.mark.parametrize("strategy", ["truncation", "importance", "summarization", "chain"])
async def test_without_a_model_a_history_is_compacted_without_a_summary(strategy: StrategyName) -> None:
    said = [{"role": "user" if number % 2 else "assistant", "content": f"{number} " * 900} for number in range(1, 30)]
    context = ContextManager(ContextConfig(max_context_tokens=12_000, strategy=strategy))
    made = await context.compact(said)
    assert made.result is not None
    assert made.result.after_tokens < made.result.before_tokens / 2
    assert len(made.messages) < len(said)
    assert made.result.summary == ""


@pytest.mark.parametrize(("long", "left"), [(3, 3), (60, 0)], ids=["the short ones", "also the next ones"])
async def test_the_least_important_messages_go_first_and_as_many_as_needed(long: int, left: int) -> None:
    said: list[dict[str, str]] = []
    for number in range(60):
        answer = f"{number} " * 200 if number < long else f"{number} " * 100
        said += [{"role": "user", "content": f"Question {number}?"}, {"role": "assistant", "content": answer}]
    context = ContextManager(ContextConfig(max_context_tokens=12_000, strategy="importance"))
    made = await context.compact(said)
    assert made.result is not None
    assert made.result.strategies_run == ("importance",)
    older = [message.text for message in made.messages[:-10]]
    assert [text for text in older if "?" in text] == [f"Question {number}?" for number in range(55)]
    assert len([text for text in older if "?" not in text]) == left


@pytest.mark.parametrize("strategy", ["truncation", "importance", "chain"])
async def test_the_system_prompt_of_a_history_survives_every_compaction(strategy: StrategyName) -> None:
    said: list[dict[str, str]] = [{"role": "system", "content": "Answer in French."}]
    turns = [{"role": "user" if number % 2 else "assistant", "content": f"{number} " * 900} for number in range(1, 30)]
    context = ContextManager(ContextConfig(max_context_tokens=12_000, strategy=strategy))
    first = await context.compact([*said, *turns])
    assert first.result is not None
    assert first.messages[0].text == "Answer in French."
    second = await context.compact([*first.messages, *turns])
    assert second.result is not None
    assert [message.text for message in second.messages].count("Answer in French.") == 1
    assert second.messages[0].text == "Answer in French."


def test_a_program_that_sends_its_own_requests_reports_their_usage() -> None:
    context = ContextManager("openai", "gpt-4o")
    empty = context.get_stats()
    assert (empty.message_count, empty.max_tokens > 100_000) == (0, True)
    assert not context.needs_compaction()
    context.update_usage(TokenUsage(prompt=50_000, completion=1_000))
    assert context.get_stats().current_usage == 51_000
    assert not context.needs_compaction()
    context.update_usage(TokenUsage(prompt=empty.max_tokens, completion=10))
    assert context.needs_compaction()
    assert context.exceeds_budget()
    assert context.get_stats().usage_percent > 100
    context.count_tokens(history(2))
    assert context.get_stats().message_count == 5


def test_the_content_of_one_message_is_counted_like_its_text() -> None:
    context = ContextManager()
    text = "a few words that fill a line " * 20
    parts = [{"type": "text", "text": text}, {"type": "text", "text": text}]
    assert context.count_tokens(parts) == pytest.approx(2 * context.count_tokens(text), rel=0.02)
    assert context.count_tokens([]) == context.count_tokens(()) > 0  # a request without messages has a system prompt


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("swecli.core.context_engine", "ContextState"),
        ("swecli.core.token_monitor", "TokenMonitor"),
        ("swecli.core.context_retriever", "ContextRetriever"),
        ("swecli.core.agent", "Agent"),
        ("swecli.commands.init_command", "INIT"),
        ("swecli.commands.compact_command", "COMPACT"),
        ("swecli.models.context_models", "CodebaseSummary"),
        ("swecli.core.context_management.playbook", "Bullet"),
        ("swecli.core.context_management.reflection", "ExecutionReflector"),
        ("swecli.core.context_management.reflection.reflector", "ToolCall"),
    ],
)
def test_the_modules_that_the_design_names_can_be_imported(module: str, name: str) -> None:
    assert hasattr(import_module(module), name)
