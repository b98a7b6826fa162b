"""Settings that are right one by one and make no sense together. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from swecli.core.config.model_names import expand
from swecli.core.config.settings import Settings

Key = tuple[str, ...]


def contradictions(settings: Settings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Keys that contradict each other, the one that is most likely wrong first, and why."""
    agent, context = settings.agent, settings.context
    block, trigger = ("agent", "hard_block"), ("agent", "compact_trigger")
    if agent.compact_trigger > agent.hard_block:
        yield (
            (trigger, block),
            f"{agent.compact_trigger:g} must not be above agent.hard_block {agent.hard_block:g}: "
            "requests would be refused before room is made",
        )
    if context.warn > agent.compact_trigger:
        yield (
            (("context", "warn"), trigger),
            f"{context.warn:g} must not be above agent.compact_trigger {agent.compact_trigger:g}: "
            "the conversation would be compacted before the warning",
        )
    yield from _sizes(settings)
    if context.min_score_threshold > max(
        context.user_message_score, context.assistant_message_score, context.tool_use_score
    ):
        yield (
            (("context", "min_score_threshold"),),
            f"{context.min_score_threshold:g} must not be above every score: no older message could stay",
        )


def _sizes(settings: Settings) -> Iterator[tuple[tuple[Key, ...], str]]:
    agent, context = settings.agent, settings.context
    window, where = _window(settings)
    budget, budget_key = agent.context_budget, ("agent", "context_budget")
    if budget is not None and window is not None and budget > window:
        yield (
            (budget_key, where),
            f"{budget:,} must not be above the window of the model, which {'.'.join(where)} says is {window:,} tokens",
        )
    total, key = (budget, budget_key) if budget is not None else (window, where)
    if total is None:
        return
    for name, size in (
        (("agent", "max_output_tokens"), agent.max_output_tokens),
        (("context", "target_tokens"), context.target_tokens),
        (("context", "keep_recent_tokens"), context.keep_recent_tokens),
        (("context", "max_summary_tokens"), context.max_summary_tokens),
    ):
        if size is not None and size >= total and (name[1] != "target_tokens" or size > total):
            yield (name, key), f"{size:,} leaves no room in {'.'.join(key)} {total:,}"


def _window(settings: Settings) -> tuple[int | None, Key]:
    """The main model's window, as far as the settings name it, and the key that does."""
    name = expand(settings.model.name, settings) if settings.model.name else ""
    if name in settings.models.window:
        return settings.models.window[name], ("models", "window")
    provider = name.partition("/")[0]
    own = settings.providers.get(provider)
    return (own.window if own is not None else None), ("providers", provider, "window")
