"""Events of the context: measures, compactions, what left it and came back."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import Message
from swecli.core.protocol.usage import Usage
from swecli.core.protocol.value import value


@value
class ContextMeasured:
    """The one number that meter, gate, ``/context`` and JSON output share."""

    budget: Budget
    type: Literal["context_measured"] = field(default="context_measured", kw_only=True)


@value
class CompactionStarted:
    item: str
    trigger: Literal["manual", "auto", "overflow", "model"]
    strategy: str
    tokens_before: int
    type: Literal["compaction_started"] = field(default="compaction_started", kw_only=True)


@value
class ViewEntry:
    """One entry of the model's view: a live ledger item, its stub, or a summary that stands for several."""

    kind: Literal["live", "stub", "summary"]
    id: str
    text: str = ""
    """Replacement text of a stub or summary."""
    sources: tuple[str, ...] = ()
    """Ledger ids that a summary stands for."""
    rule: str = ""
    """The user's rule that took the item away; empty where none did."""


@value
class CompactionCompleted:
    """The transaction's commit: ``view`` replaces the model's view in one step."""

    item: str
    view: tuple[ViewEntry, ...]
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    strategies: tuple[str, ...]
    summary: str = ""
    usage: Usage | None = None
    """Of the model calls that wrote the summary."""
    cost: str | None = None
    """US dollars of these calls as a decimal string; None = no calls or an unknown price."""
    type: Literal["compaction_completed"] = field(default="compaction_completed", kw_only=True)


@value
class CompactionFailed:
    """Nothing was changed."""

    item: str
    reason: str
    type: Literal["compaction_failed"] = field(default="compaction_failed", kw_only=True)


@value
class CompactionUndone:
    item: str
    type: Literal["compaction_undone"] = field(default="compaction_undone", kw_only=True)


@value
class CompactionRedone:
    item: str
    type: Literal["compaction_redone"] = field(default="compaction_redone", kw_only=True)


@value
class Offloaded:
    """One item that left the context. ``ref`` finds it again."""

    item: str
    ref: str
    tokens: int
    reason: str


@value
class ItemsOffloaded:
    items: tuple[Offloaded, ...]
    type: Literal["items_offloaded"] = field(default="items_offloaded", kw_only=True)


@value
class ContextRestored:
    """The model's view was taken from a snapshot, for events that it came from can't be read any more: ``messages`` in
    place of everything up to event ``snapshot``, then the entries of ``later``. Ids of entries made of them begin with
    ``item``."""

    item: str
    messages: tuple[Message, ...]
    later: tuple[ViewEntry, ...]
    snapshot: int
    type: Literal["context_restored"] = field(default="context_restored", kw_only=True)


@value
class ContextEdited:
    """The user pinned, dropped, restored or offloaded ledger items."""

    action: Literal["pin", "unpin", "drop", "restore", "offload"]
    items: tuple[str, ...]
    type: Literal["context_edited"] = field(default="context_edited", kw_only=True)


@value
class CacheBreak:
    """The prompt prefix changed, so the provider's cache is missed from there on."""

    cause: str
    tokens: int
    type: Literal["cache_break"] = field(default="cache_break", kw_only=True)
