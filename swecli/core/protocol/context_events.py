"""Events of the context: measures, compactions, the user's edits of items, and the prefix of requests."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from msgspec import Struct

from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import Message, Opaque, Tagged, Usage


class ContextMeasured(Tagged, frozen=True, tag="context_measured"):
    """The one number that meter, gate, ``/context`` and JSON output share."""

    type: ClassVar[Literal["context_measured"]] = "context_measured"
    budget: Budget


class CompactionStarted(Tagged, frozen=True, tag="compaction_started"):
    type: ClassVar[Literal["compaction_started"]] = "compaction_started"
    item: str
    trigger: Literal["manual", "auto", "overflow", "model"]
    strategy: str
    tokens_before: int
    effective: int = 0
    """Effective window in tokens; 0 = unknown."""


BY_HAND: Final = "by hand"
"""``ViewEntry.rule`` of an item that the user edited by itself."""


class ProviderSummary(Struct, frozen=True):
    """A summary that the provider wrote and signed. ``opaque`` goes back to it as it came, at the beginning of the
    conversation; thoughts behind the summarised part stay valid. ``stands_for`` identifies that part, in each form that
    later thoughts may follow."""

    opaque: Opaque
    stands_for: tuple[int, ...] = ()
    sealed: bool = False
    """Whether only the provider can read it."""


class ViewEntry(Struct, frozen=True):
    """One entry of the model's view: a live ledger item, its stub, a summary of several items, or an empty placeholder
    for an item that the user dropped."""

    kind: Literal["live", "stub", "summary", "dropped"]
    id: str
    text: str = ""
    """Replacement text of a stub or summary; for a dropped item, its text before the drop."""
    sources: tuple[str, ...] = ()
    """Ledger ids that a summary replaces."""
    rule: str = ""
    """The user's rule that removed the item, or ``BY_HAND``; otherwise empty."""
    provider: ProviderSummary | None = None
    """The original of a summary by the provider, of which ``text`` is what another model gets."""


class CompactionCompleted(Tagged, frozen=True, tag="compaction_completed"):
    """Commit of a compaction: ``view`` replaces the model's view in one step. ``strategies`` is ("clearing",) for a
    batch that only cleared old results."""

    type: ClassVar[Literal["compaction_completed"]] = "compaction_completed"
    item: str
    view: tuple[ViewEntry, ...]
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    strategies: tuple[str, ...]
    summary: str = ""
    usage: Usage | None = None
    """Usage of the model calls that wrote the summary."""
    cost: str | None = None
    """US dollars of these calls as a decimal string; None = no calls or an unknown price."""
    effective: int = 0
    """Effective window in tokens; 0 = unknown."""
    cleared: int = 0
    """Results and arguments that became stubs."""
    anchors: int = 0
    """Facts worth keeping found in the replaced items, such as the user's demands and changed files."""
    anchors_kept: int = 0
    """Anchors that the new view still contains."""
    anchors_written: int = 0
    """Anchors that the model's own summary contains."""
    undo: str = ""
    """What an undo would bring back right after it, as a clause; empty: not known."""
    rewritten: int = 0
    """Tokens after it that the provider's cache can't have."""
    thoughts: int = 0
    """Thoughts of the model that are lost."""


class CompactionFailed(Tagged, frozen=True, tag="compaction_failed"):
    """A compaction that changed nothing."""

    type: ClassVar[Literal["compaction_failed"]] = "compaction_failed"
    item: str
    reason: str


class CompactionUndone(Tagged, frozen=True, tag="compaction_undone"):
    type: ClassVar[Literal["compaction_undone"]] = "compaction_undone"
    item: str
    view: tuple[ViewEntry, ...] = ()
    """The model's view, if the one before the compaction had no room; empty: exactly that one."""


class CompactionRedone(Tagged, frozen=True, tag="compaction_redone"):
    type: ClassVar[Literal["compaction_redone"]] = "compaction_redone"
    item: str


class Offloaded(Struct, frozen=True):
    """One item moved out of the context; ``ref`` reads it back."""

    item: str
    ref: str
    tokens: int
    reason: str


class ContextChange(Struct, frozen=True):
    """One edit of a ledger entry by the user. ``pin`` protects it from any removal; ``drop`` removes it; ``offload``
    replaces it with a line that has its id; ``restore`` puts the original text back in its place."""

    action: Literal["pin", "unpin", "drop", "offload", "restore"]
    id: str


class ContextEdited(Tagged, frozen=True, tag="context_edited"):
    """The user edited the model's view: each of ``entries`` replaces the entry with its id, or returns to its original
    place if it was missing. Tokens measure the whole request."""

    type: ClassVar[Literal["context_edited"]] = "context_edited"
    changes: tuple[ContextChange, ...]
    entries: tuple[ViewEntry, ...] = ()
    pinned: tuple[str, ...] = ()
    unpinned: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0


class ContextEditPlanned(Tagged, frozen=True, tag="context_edit_planned"):
    """Changes that wait for the next compaction, all of them; none once they were made."""

    type: ClassVar[Literal["context_edit_planned"]] = "context_edit_planned"
    changes: tuple[ContextChange, ...] = ()


class ModelPlanned(Tagged, frozen=True, tag="model_planned"):
    """The user's model (``provider/name``) from the next compaction on; empty if none waits."""

    type: ClassVar[Literal["model_planned"]] = "model_planned"
    model: str = ""


RotKind = Literal["contradiction", "reverted", "failing", "reread", "stale", "summaries", "repeated"]
"""Sign of a degrading conversation: contradicting demands; edits that were reverted; a command that keeps failing the
same way; an unchanged file that was reread; old, unused results; a summary of a summary; a demand that the user
had to repeat."""


class ContextSuggested(Tagged, frozen=True, tag="context_suggested"):
    """A suggested remedy for the conversation; swecli applies it only when the user accepts. ``cause`` identifies it
    among suggestions of its kind; ``count`` is its severity (repetitions, or tokens of old results). ``reason`` and
    ``action`` are clauses. Exactly one of the last three fields is set: context changes, the message to branch before
    (with a handoff), or the summaries to replace with the original record."""

    type: ClassVar[Literal["context_suggested"]] = "context_suggested"
    kind: RotKind
    cause: str
    count: int
    reason: str
    action: str
    tokens_before: int = 0
    tokens_after: int = 0
    """Size of the whole request after the remedy."""
    changes: tuple[ContextChange, ...] = ()
    branch: str = ""
    summaries: tuple[str, ...] = ()

    @property
    def freed(self) -> int:
        return max(0, self.tokens_before - self.tokens_after)


class ItemsOffloaded(Tagged, frozen=True, tag="items_offloaded"):
    type: ClassVar[Literal["items_offloaded"]] = "items_offloaded"
    items: tuple[Offloaded, ...]


class ModelView(Struct, frozen=True):
    """The model's view and the user's edits of single items. ``names`` accompanies a list of messages: for each
    message the ledger ids of its parts, or one id if the message is one item."""

    entries: tuple[ViewEntry, ...]
    names: tuple[tuple[str, ...], ...] = ()
    pinned: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class ContextRestored(Tagged, frozen=True, tag="context_restored"):
    """The model's view was restored from a snapshot because some of its events are unreadable. With ``view``, that is
    the current view and ``messages`` are its unreadable parts. Without it (snapshots of earlier versions),
    ``messages`` replace everything up to event ``snapshot`` and the entries of ``later`` follow; ids of entries made
    from them begin with ``item``."""

    type: ClassVar[Literal["context_restored"]] = "context_restored"
    item: str
    messages: tuple[Message, ...]
    later: tuple[ViewEntry, ...]
    snapshot: int
    view: ModelView | None = None


class PromptPart(Struct, frozen=True):
    """One part of the request prefix: a tool, or a block of the system prompt named by its component. ``digest``
    hashes its text; ``source`` is the provider of the tool."""

    name: str
    digest: str
    source: str = ""


class PromptPrefix(Tagged, frozen=True, tag="prompt_prefix"):
    """The newest request's prefix (everything before the conversation), in order. Emitted only when it changes, so that
    a resumed session can detect further changes."""

    type: ClassVar[Literal["prompt_prefix"]] = "prompt_prefix"
    tools: tuple[PromptPart, ...] = ()
    system: tuple[PromptPart, ...] = ()
    effort: str | None = None


class SentSection(Struct, frozen=True):
    """A section of a system prompt. ``digest`` hashes its text; ``text`` is empty if an earlier event has it."""

    name: str
    digest: str
    text: str = ""


class SystemPromptSent(Tagged, frozen=True, tag="system_prompt_sent"):
    """The system prompt of requests to a model (``provider/name``), in order, so that a resumed session can send the
    same bytes. ``sources`` are the files behind it: their names, digests and components. ``window`` (tokens) and
    ``tools`` (a digest) are what it was made for, ``folder`` is its working directory. ``trusted``: the folder's files
    counted as instructions."""

    type: ClassVar[Literal["system_prompt_sent"]] = "system_prompt_sent"
    model: str
    sections: tuple[SentSection, ...]
    sources: tuple[PromptPart, ...] = ()
    window: int = 0
    tools: str = ""
    folder: str = ""
    trusted: bool = False


class CacheBreak(Tagged, frozen=True, tag="cache_break"):
    """The provider reprocessed ``tokens`` that its cache should have covered. ``cause`` is a clause, ``kind`` its
    category.

    ``component`` and ``part`` name the first change in the prompt: a component of the context, and within it a tool or
    a conversation item. Both are empty if nothing changed. Earlier versions did not record these three fields."""

    type: ClassVar[Literal["cache_break"]] = "cache_break"
    cause: str
    tokens: int
    kind: str = ""
    component: str = ""
    part: str = ""
