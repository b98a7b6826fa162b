"""The session's hooks around a compaction: what the embedding program gave, then the hooks of the session."""

from __future__ import annotations

from dataclasses import asdict, replace

from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactDecision,
    CompactionOptions,
    CompactResult,
)
from swecli.core.ports import Hooks

BEFORE = "pre_compact"
AFTER = "post_compact"


def with_session_hooks(options: CompactionOptions, hooks: Hooks) -> CompactionOptions:
    """The options with hooks that ask both. A hook of the session that blocks cancels; its text is an instruction for
    the summary."""

    async def before(context: CompactContext) -> CompactDecision:
        own = options.on_pre_compact
        decision = await own(context) if own is not None else CompactDecision()
        if decision.cancel:
            return decision
        outcome = await hooks.fire(BEFORE, asdict(context))
        if outcome.block:
            return replace(decision, cancel=True, reason=outcome.reason)
        words = "\n".join(text for text in (decision.custom_instructions, outcome.context) if text)
        return replace(decision, custom_instructions=words or None)

    async def after(result: CompactResult) -> None:
        if options.on_post_compact is not None:
            await options.on_post_compact(result)
        await hooks.fire(AFTER, {**asdict(result), "saved_tokens": result.saved_tokens})

    return replace(options, on_pre_compact=before, on_post_compact=after)
