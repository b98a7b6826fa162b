"""Settings that are each possible but not together, or that name what does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from swecli.core.config.settings import Key, Settings, expand


def unknown_references(settings: Settings) -> Iterator[tuple[Key, str, str]]:
    """Keys whose value names no provider, alias or set role; what it stands for; and the problem."""
    model = settings.model
    named: dict[Key, tuple[str | None, ...]] = {
        ("model", "name"): (model.name,),
        ("model", "summary"): (model.summary,),
        ("model", "small"): (model.small,),
        ("model", "fallback"): model.fallback,
        ("subagents", "model"): (settings.subagents.model,),
    }
    known = ", ".join(sorted(settings.models.aliases)) or "none"
    for key, references in named.items():
        for reference in references:
            if reference is not None and "/" not in (name := expand(reference, settings)):
                problem = f'must be "provider/model" or an alias (known: {known}), not {reference!r}'
                yield key, name, f"{problem}; `swecli models {reference}` lists matching models"


def contradictions(settings: Settings) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Contradictory keys, the most likely culprit first, and the reason."""
    agent, context = settings.agent, settings.context
    block, trigger = ("agent", "hard_block"), ("agent", "compact_trigger")
    if agent.compact_trigger > agent.hard_block:
        yield (
            (trigger, block),
            f"{agent.compact_trigger:g} must not exceed agent.hard_block {agent.hard_block:g}: swecli would block "
            "requests before it compacts",
        )
    if context.warn > agent.compact_trigger:
        yield (
            (("context", "warn"), trigger),
            f"{context.warn:g} must not exceed agent.compact_trigger {agent.compact_trigger:g}: swecli would "
            "compact before the warning",
        )
    yield from _sizes(settings)
    search = settings.web_search
    if search.allowed_domains and search.blocked_domains:
        yield (
            (("web_search", "blocked_domains"), ("web_search", "allowed_domains")),
            "must not be set together with web_search.allowed_domains: providers take one of the lists",
        )
    if context.min_score_threshold > max(
        context.user_message_score, context.assistant_message_score, context.tool_use_score
    ):
        yield (
            (("context", "min_score_threshold"),),
            f"{context.min_score_threshold:g} must not exceed every score: no older message could be kept",
        )


def _sizes(settings: Settings) -> Iterator[tuple[tuple[Key, ...], str]]:
    agent, context = settings.agent, settings.context
    main = expand(settings.model.name, settings) if settings.model.name else ""
    window, where = window_setting(settings, main)
    budget, budget_key = agent.context_budget, ("agent", "context_budget")
    if budget is not None and window is not None and budget > window:
        yield (
            (budget_key, where),
            f"{budget:,} must not exceed the model's window, which is {window:,} tokens in {'.'.join(where)}",
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
            yield (name, key), f"{size:,} leaves no space in {'.'.join(key)} {total:,}"


def window_setting(settings: Settings, name: str) -> tuple[int | None, Key]:
    """The window that the settings name for ``provider/name``, and its key."""
    if name in settings.models.window:
        return settings.models.window[name], ("models", "window")
    provider = name.partition("/")[0]
    own = settings.providers.get(provider)
    return (own.window if own is not None else None), ("providers", provider, "window")
