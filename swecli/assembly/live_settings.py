"""The settings that a running session applies, from those of the files."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from swecli.assembly.policy import policy_rules
from swecli.assembly.requirements import require_rules
from swecli.assembly.startup import Startup, startup_of
from swecli.core.config.paths import project_folder
from swecli.core.config.settings import (
    ContextSettings,
    Settings,
    SubagentSettings,
    WebSearchSettings,
    fallback_models,
    side_models,
)
from swecli.core.context_management.budget import BLOCK_ADVICE, COMPACT_ADVICE, MANUAL_ADVICE, ComponentLimits, Limits
from swecli.core.context_management.compaction.options import CompactionOptions, ImportanceStrategy, TruncationStrategy
from swecli.core.engine.settings import Adjustable, SentinelOptions, SubagentOptions, TurnLimits
from swecli.core.llm.types import ServerClearing
from swecli.core.llm.types import WebSearch as ProviderSearch
from swecli.core.permissions.types import MEMORY_TOOL
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.assembly.models import ModelSupply

PLANS = "plans"
"""Folder of written plans, in the project's own."""


def context_limits(settings: Settings) -> Limits:
    agent, context = settings.agent, settings.context
    return Limits(
        context.warn,
        agent.compact_trigger,
        agent.hard_block,
        agent.context_budget,
        agent.max_output_tokens,
        context.target_tokens,
        ComponentLimits(**asdict(context.limits)),
        _server_clearing(context),
    )


def provider_search(wish: WebSearchSettings) -> ProviderSearch | None:
    """The provider's search, unless the user has a search engine."""
    if not wish.enabled or wish.url is not None:
        return None
    return ProviderSearch(wish.allowed_domains, wish.blocked_domains, wish.max_per_turn, wish.max_per_turn)


def _server_clearing(context: ContextSettings) -> ServerClearing | None:
    wish = context.server_clearing
    exclude = tuple(dict.fromkeys((*wish.exclude_tools, MEMORY_TOOL)))
    return ServerClearing(wish.trigger_tokens, wish.keep_tool_uses, exclude) if wish.enabled else None


def compaction_options(context: ContextSettings) -> CompactionOptions:
    return CompactionOptions(
        strategy=context.strategy,
        auto=context.auto_compact,
        keep_recent=context.keep_recent,
        keep_recent_tokens=context.keep_recent_tokens,
        max_summary_tokens=context.max_summary_tokens,
        provider_summary=context.provider_summary,
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


def adjustable(options: LaunchOptions, startup: Startup) -> Adjustable:
    """Settings that a running session applies when they change."""
    settings = startup.loaded.settings
    agent, tools = settings.agent, settings.tools
    return Adjustable(
        context_limits=context_limits(settings),
        advice=(COMPACT_ADVICE, *BLOCK_ADVICE) if settings.context.auto_compact else MANUAL_ADVICE,
        compaction=compaction_options(settings.context),
        limits=TurnLimits(agent.max_steps, max_tokens=options.max_tokens, max_price=options.max_price),
        offload_threshold=agent.result_offload_threshold,
        process_limit=tools.process_limit,
        command_timeout=tools.command_timeout,
        tool_deferral=tools.tool_deferral_threshold,
        subagents=subagent_options(settings.subagents),
        attribution=tools.attribution,
        rules=policy_rules(options, startup),
        fallback=fallback_models(settings),
        side_models=side_models(settings),
        sentinel=SentinelOptions(settings.context.sentinel, settings.context.sentinel_silenced),
        plans=project_folder(options.cwd) / PLANS if startup.trust.trusts and options.store else None,
    )


def read_again(options: LaunchOptions, environment: Mapping[str, str], models: ModelSupply) -> Adjustable:
    """Present settings that a running session applies.

    Raises:
        ValueError: they can't be read; a sentence.
    """
    try:
        startup = startup_of(options, environment)
        require_rules(options, startup)
    except StartError as error:
        raise ValueError(str(error)) from None
    models.adopt(startup.loaded.settings)
    return adjustable(options, startup)


def subagent_options(settings: SubagentSettings) -> SubagentOptions:
    return SubagentOptions(
        settings.at_once,
        settings.max_steps,
        settings.max_tokens,
        Decimal(str(settings.max_price)) if settings.max_price is not None else None,
        settings.result_tokens,
        settings.model,
    )
