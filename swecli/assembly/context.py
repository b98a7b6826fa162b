"""From the settings to limits and options of the context."""

from __future__ import annotations

from swecli.core.config.context_settings import ContextSettings
from swecli.core.config.settings import Settings
from swecli.core.context_management.budget import Limits
from swecli.core.context_management.compaction.options import CompactionOptions, ImportanceStrategy, TruncationStrategy
from swecli.core.context_management.component_limits import ComponentLimits
from swecli.core.llm.types import ServerClearing


def context_limits(settings: Settings) -> Limits:
    """The context limits of the settings."""
    agent, context = settings.agent, settings.context
    return Limits(
        context.warn,
        agent.compact_trigger,
        agent.hard_block,
        agent.context_budget,
        agent.max_output_tokens,
        context.target_tokens,
        ComponentLimits(**context.limits.model_dump()),
        _server_clearing(context),
    )


def _server_clearing(context: ContextSettings) -> ServerClearing | None:
    wish = context.server_clearing
    return ServerClearing(wish.trigger_tokens, wish.keep_tool_uses, wish.exclude_tools) if wish.enabled else None


def compaction_options(context: ContextSettings) -> CompactionOptions:
    """What the settings choose about compaction."""
    return CompactionOptions(
        strategy=context.strategy,
        auto=context.auto_compact,
        keep_recent=context.keep_recent,
        keep_recent_tokens=context.keep_recent_tokens,
        max_summary_tokens=context.max_summary_tokens,
        retention=context.retention,
        truncation=TruncationStrategy(keep_recent=context.keep_recent),
        importance=ImportanceStrategy(
            context.keep_recent,
            context.user_message_score,
            context.assistant_message_score,
            context.tool_use_score,
            context.min_score_threshold,
        ),
    )
