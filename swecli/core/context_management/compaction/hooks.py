"""The word that a program has before a compaction, and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactionOptions,
    CompactResult,
    Trigger,
)
from swecli.core.protocol.events import Budget


@dataclass(frozen=True, slots=True)
class Wishes:
    """What holds for one compaction after its hook was asked. ``declined`` says why there is to be none; empty when
    it goes on. ``notes`` are for the user."""

    focus: str = ""
    summary: str = ""
    declined: str = ""
    notes: tuple[str, ...] = ()


async def ask_before(
    options: CompactionOptions,
    trigger: Trigger,
    focus: str,
    before: Budget,
    messages: int,
    target: int,
    *,
    forced: bool,
) -> Wishes:
    """Ask the hook. A cancel is honoured unless no request fits any more; a hook that fails has no say.

    ``messages`` is their number, ``target`` the size in tokens that is aimed at.
    """
    hook = options.on_pre_compact
    if hook is None:
        return Wishes(focus)
    context = CompactContext("manual" if trigger == "manual" else "auto", before.used, target, messages, focus or None)
    try:
        decision = await hook(context)
    except Exception as error:  # noqa: BLE001 - a program of the user's may raise anything; it is told and has no say
        return Wishes(focus, notes=(f"the hook before it failed ({_named(error)}) and was passed over",))
    notes: Sequence[str] = ()
    if decision.cancel:
        why = f": {decision.reason}" if decision.reason else ""
        if not forced:
            return Wishes(declined=f"cancelled by a hook{why}")
        full = f"{before.upper:,} of {before.effective:,} tokens are in use"
        notes = (f"a hook wanted to cancel it{why}, but without it no request fits any more ({full})",)
    words = "\n".join(text for text in (focus, decision.custom_instructions) if text)
    return Wishes(words, (decision.custom_summary or "").strip(), notes=tuple(notes))


async def tell_after(options: CompactionOptions, result: CompactResult) -> str:
    """Tell the hook what was done. Returns what the user should know of it, empty when all went well."""
    if options.on_post_compact is None:
        return ""
    try:
        await options.on_post_compact(result)
    except Exception as error:  # noqa: BLE001 - what is done is done: the failure is told
        return f"the hook after it failed ({_named(error)})"
    return ""


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
