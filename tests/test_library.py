"""The context as a document, and its figures."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import pytest
from pydantic import ValidationError

import swecli
from swecli import library
from swecli.core.context_management.budget import Limits
from swecli.core.context_management.compaction.options import CompactResult
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_retriever import TaskContext
from swecli.core.protocol import messages as protocol
from swecli.core.protocol.budget import Budget, Component
from swecli.core.protocol.messages import Usage
from swecli.library.context_manager import ContextConfig, ContextManager
from swecli.library.counting import TokenMonitor
from swecli.library.documents import CodebaseSummary, ContextState, Message, context_state, message_document
from swecli.library.figures import (
    CompactionResult,
    ContextBudget,
    ContextLimits,
    ContextStats,
    TokenUsage,
)

ROOT = Path(__file__).resolve().parent.parent


def state(**changes: object) -> ContextState:
    return ContextState.model_validate({"session_id": "s1", "working_dir": "/proj", **changes})


def test_a_fresh_state_has_the_usual_limits() -> None:
    fresh = state()
    assert (fresh.context_limit, fresh.compaction_threshold) == (256_000, 0.95)
    assert (fresh.total_tokens, fresh.compaction_count, fresh.last_compacted) == (0, 0, None)
    assert fresh.get_available_tokens() == 256_000
    assert not fresh.needs_compaction()
    assert fresh.estimate_tokens("hello world") == 2
    assert datetime.now(UTC) - fresh.started_at < timedelta(minutes=1)


@pytest.mark.parametrize(("tokens", "needed"), [(949, False), (950, True), (1_200, True)])
def test_the_threshold_is_reached_at_its_edge(tokens: int, needed: bool) -> None:
    full = state(context_limit=1_000, total_tokens=tokens)
    assert full.needs_compaction() is needed
    assert full.get_available_tokens() == 1_000 - tokens


def test_the_monitor_counts_each_message_once_and_adds_up() -> None:
    monitor = TokenMonitor(counter=CharCounter(1))
    context = state(
        context_limit=1_000,
        messages=[
            Message(role="user", content="x" * 100),
            Message(role="assistant", content="y" * 50, tool_calls=[{"id": "1", "name": "read", "arguments": "{}"}]),
            Message(role="tool", tool_results=[{"id": "1", "text": "z" * 30}]),
            Message(role="user", content="counted", tokens=7),
        ],
        codebase_summary=CodebaseSummary(summary="s" * 200, key_files=["a.py"], patterns={"auth": "src/auth.py"}),
        current_task=TaskContext(task_description="t" * 20),
    )
    monitor.update_context_state(context)
    counts = [message.tokens for message in context.messages]
    assert counts[0] == 100
    assert counts[1] > 50 + len('{"id": "1"')
    assert counts[2] > 30
    assert counts[3] == 7
    stats = monitor.get_usage_stats(context)
    assert stats["breakdown"] == {
        "messages": sum(counts),
        "codebase_summary": context.codebase_summary.tokens if context.codebase_summary else 0,
        "current_task": 20,
    }
    assert stats["total_tokens"] == context.total_tokens == sum(stats["breakdown"].values())
    assert stats["usage_percent"] == pytest.approx(context.total_tokens / 10)
    assert stats["available_tokens"] == 1_000 - context.total_tokens
    assert (stats["limit"], stats["message_count"], stats["compaction_count"]) == (1_000, 4, 0)
    assert stats["needs_compaction"] is False
    monitor.update_context_state(context)
    assert [message.tokens for message in context.messages] == counts


def test_documents_survive_json_and_refuse_what_they_do_not_know() -> None:
    context = state(messages=[Message(role="system", content="rules")], current_task=TaskContext(task_description="t"))
    assert ContextState.model_validate_json(context.model_dump_json()) == context
    with pytest.raises(ValidationError):
        state(context_limit=0)
    with pytest.raises(ValidationError):
        state(unknown=1)
    with pytest.raises(ValidationError):
        Message.model_validate({"role": "robot"})


def test_a_message_of_a_session_becomes_a_document() -> None:
    message = protocol.Message(
        "assistant",
        (
            protocol.ReasoningPart("why"),
            protocol.TextPart("I look."),
            protocol.ToolCallPart("c1", "read_file", '{"path": 1'),
        ),
        "m1",
    )
    document = message_document(message, datetime(2026, 1, 1, tzinfo=UTC))
    assert (document.role, document.content, document.reasoning) == ("assistant", "I look.", "why")
    assert document.tool_calls == [{"id": "c1", "name": "read_file", "arguments": '{"path": 1'}]
    assert document.tool_results is None


def test_the_state_of_a_session() -> None:
    budget = Budget((Component("system prompt", 10),), 50, 60, 900, 1_000, 100, "ok")
    messages = [
        protocol.Message("user", (protocol.TextPart("hi"),), "u1"),
        protocol.Message("assistant", (protocol.ToolCallPart("c", "read_file", "{}"),), "m2"),
        protocol.Message("tool", (protocol.ToolResultPart("c", "read_file", "text"),), "m2.results"),
    ]
    made = context_state(
        messages,
        budget,
        session_id="s",
        working_dir="/w",
        created={"u1": 100.0, "m2": 160.0},
        compactions=(170.0, 180.0),
    )
    assert [message.timestamp.timestamp() for message in made.messages] == [100, 160, 160]
    assert (made.total_tokens, made.context_limit, made.compaction_count) == (50, 900, 2)
    assert made.last_compacted == datetime.fromtimestamp(180, UTC)
    assert made.started_at == datetime.fromtimestamp(100, UTC)
    empty = context_state([], None, session_id="s", working_dir="/w", created={})
    assert (empty.messages, empty.total_tokens, empty.context_limit) == ([], 0, 256_000)


def test_one_class_for_each_thing_however_it_is_called() -> None:
    assert issubclass(ContextBudget, Budget)
    assert issubclass(ContextLimits, Limits)
    usage = TokenUsage.of(Usage(input_total=100, output_total=20))
    assert usage == TokenUsage(prompt=100, completion=20)
    assert (usage.prompt, usage.completion, usage.total) == (100, 20, 120)
    assert (TokenUsage().prompt, TokenUsage().total) == (0, 0)
    limits = ContextLimits(max_context_tokens=9_000)
    assert (limits.max_context_tokens, limits.max_output_tokens) == (9_000, None)
    assert (limits.warning_threshold, limits.compaction_threshold) == (0.80, 0.95)
    result = CompactionResult.of(CompactResult(100, 40, 30, 10, ("summary",), "short"))
    assert result == CompactionResult(removed_messages=20, saved_tokens=60, summary="short")
    assert ContextStats(1, 2, 50.0, 3).oldest_message_age is None


def test_the_budget_by_component() -> None:
    components = (
        Component("system prompt", 1_000),
        Component("project instructions", 500),
        Component("memory", 100),
        Component("skills", 50),
        Component("tool descriptions", 2_000),
        Component("user messages", 300),
        Component("tool results", 700),
    )
    budget = ContextBudget(components, 4_650, 5_000, 8_000, 10_000, 2_000, "ok")
    assert (budget.system_prompt, budget.skill_prompts, budget.tool_descriptions) == (1_600, 50, 2_000)
    assert budget.conversation == 1_000
    assert (budget.total, budget.max_output_tokens) == (10_000, 2_000)
    assert (budget.effective_window(), budget.used_tokens(), budget.remaining_tokens()) == (8_000, 4_650, 3_350)
    assert budget.used_percentage() == pytest.approx(58.125)
    assert not budget.exceeds_budget()
    full = ContextBudget((), 9_000, 9_000, 8_000, 10_000, 2_000, "block")
    assert full.exceeds_budget()
    assert full.remaining_tokens() == -1_000


def test_limits_of_models_come_from_the_catalogue() -> None:
    limits = {
        "openai/gpt-4": 8_192,
        "openai/gpt-4-turbo": 128_000,
        "openai/gpt-4o": 128_000,
        "anthropic/claude-3-opus": 200_000,
        "anthropic/claude-3-sonnet": 200_000,
        "anthropic/claude-3-haiku": 200_000,
        "google/gemini-1.5-pro": 2_000_000,
        "google/gemini-1.5-flash": 1_000_000,
    }
    assert {name: ContextManager.get_context_limit(*name.split("/")) for name in limits} == limits
    assert ContextManager.get_context_limit("nobody", "nothing") == 32_000


def test_constructors_take_what_the_documents_show() -> None:
    monitor = TokenMonitor(context_limit=128_000)
    counted = state(messages=[Message(role="user", content="hello world")])
    monitor.update_context_state(counted)
    assert monitor.get_usage_stats(counted)["limit"] == 128_000
    assert counted.total_tokens == monitor.count_message_tokens(counted.messages[0]) == 2
    config = ContextConfig(max_context_tokens=32_000, target_tokens=28_000, strategy="truncation")
    assert ContextManager(config).limits.target_tokens == 28_000
    assert ContextManager("openai", "gpt-4").count_tokens("hello world") > 0
    assert ContextConfig().strategy == "chain"


def test_the_package_gives_every_name_and_loads_none_before_it_is_asked_for() -> None:
    from swecli import Agent, Client

    assert Agent is Client
    for name in swecli.__all__:
        assert getattr(swecli, name).__module__.startswith("swecli.")
        assert name in dir(swecli)
    for name in library.__all__:
        assert getattr(library, name).__name__ == name
        assert name not in swecli.__all__ or getattr(library, name) is getattr(swecli, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        swecli.__getattr__("nothing")
    code = "import sys, swecli; print(sorted(name for name in sys.modules if name.startswith(('swecli.', 'typing'))))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_type_checkers_of_users_read_the_annotations() -> None:
    assert files("swecli").joinpath("py.typed").is_file()
