"""Events: everything that happens in a session, as one closed union."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct, structs

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    Opaque,
    Origin,
    Part,
    ProviderReport,
    ReasoningPart,
    Stop,
    Tagged,
    TextPart,
    Usage,
)
from swecli.core.protocol.modes import Mode


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


ItemKind = Literal["user", "text", "reasoning", "tool", "opaque", "compaction", "attachment", "note"]
"""``opaque`` items are provider data kept for the next request and never shown. ``attachment`` items are files that the
user mentioned with ``@``: tool calls made by the user, with results that join the message. ``note`` items are messages
from swecli to the model; their title is for the user."""

CITED_SOURCES = "cited_sources"
"""Name of an item that is shown like a tool call and is none: the pages that the answer before it cites."""

ItemStatus = Literal["ok", "error", "rejected", "interrupted"]


class ItemStarted(Tagged, frozen=True, tag="item_started"):
    """An item begins. ``name`` is the tool's name for a tool call, otherwise empty."""

    type: ClassVar[Literal["item_started"]] = "item_started"
    item: str
    kind: ItemKind
    name: str = ""
    title: str = ""
    """Target of a tool call once it is known (a path, a command), else empty."""

    @property
    def typed(self) -> str:
        """The user's input if the model gets a different text; empty for a plain message."""
        if self.kind != "user":
            return ""
        return {"command": self.title, "shell": f"!{self.title}" if self.title else ""}.get(self.name, "")


class ItemDelta(Tagged, frozen=True, tag="item_delta"):
    """A piece of text (of text and reasoning items), of arguments or of live output (of tool items)."""

    type: ClassVar[Literal["item_delta"]] = "item_delta"
    item: str
    text: str
    channel: Literal["text", "arguments", "output"] = "text"


class ItemCheckpointed(Tagged, frozen=True, tag="item_checkpointed"):
    """Content of the item so far; stored at least every 500 ms while an answer streams. Of a text only what is new:
    ``part`` follows the first ``begins`` characters, which earlier checkpoints have.

    For a tool call it is stored once, with the complete ``ToolCallPart``, before the tool can run. A later
    checkpoint with ``running`` set marks the start of execution. Until then ``awaits`` names, as a clause, the reason
    for waiting.
    """

    type: ClassVar[Literal["item_checkpointed"]] = "item_checkpointed"
    item: str
    part: Part
    title: str = ""
    running: bool = False
    awaits: str = ""
    begins: int = 0

    def whole_part(self, before: str) -> Part:
        """The content so far; ``before`` is the text of earlier checkpoints, or more of it."""
        if not self.begins or not isinstance(self.part, TextPart | ReasoningPart):
            return self.part
        return structs.replace(self.part, text=before[: self.begins] + self.part.text)


class ItemCompleted(Tagged, frozen=True, tag="item_completed"):
    """Terminal event of an item. ``parts`` is its final content.

    User items have text and images. A user item named "shell" is a ``!command`` of the user: it has a
    ``TerminalBlock`` and the text that joins the context. One named "command" calls a Markdown command or skill; its
    title is the typed line. Text and reasoning items have one part; ``detail`` is the reason if they broke off. Tool
    calls have one ``ToolResultPart`` (the call itself is in the checkpoint); searches of the provider's own web search,
    and ``CITED_SOURCES``, look like calls but have no checkpoint and no parts. ``blocks`` are shown to the user;
    ``detail`` is a short result ("15 matches in 4 files", "+3 -1", "exit 1"). ``title`` is the target of a call that
    never arrived completely, and so has no checkpoint.
    """

    type: ClassVar[Literal["item_completed"]] = "item_completed"
    item: str
    status: ItemStatus
    parts: tuple[Part, ...] = ()
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    duration: float | None = None
    title: str = ""


class Hunk(Struct, frozen=True):
    """One change that the user can accept or reject by itself. ``block`` is the index of its diff among the request's
    blocks, from 0. Lines count from 1 in the whole file; for an empty side, ``start`` is the line where its text would
    begin."""

    block: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class EditedText(Struct, frozen=True):
    """The user's replacement for the new text of diff ``block``: the same part of the file that the block shows."""

    block: int
    text: str


def hunk_texts(block: DiffBlock, hunk: Hunk) -> tuple[list[str], list[str]]:
    """The removed and the added lines of a hunk, from the texts of its block."""
    old, new = (text.split("\n") if text else [] for text in (block.old, block.new))
    i, j = hunk.old_start - block.first_line, hunk.new_start - block.first_line
    return old[i : i + hunk.old_lines], new[j : j + hunk.new_lines]


class RefusedEdit(Struct, frozen=True):
    """The user's edited arguments, refused for ``reason``; the call is unchanged."""

    arguments: Mapping[str, Any]
    reason: str


class PermissionRequested(Tagged, frozen=True, tag="permission_requested"):
    """A call waits for approval. An approval covers exactly what is shown: ``binding`` is the SHA-256 of tool,
    arguments, working directory and target, and is recomputed before execution."""

    type: ClassVar[Literal["permission_requested"]] = "permission_requested"
    request: str
    item: str
    tool: str
    title: str
    blocks: tuple[DisplayBlock, ...]
    reason: str
    binding: str
    rule: str | None = None
    """The rules that "always" would add, as shown and separated by commas; None if "always" is not offered."""
    evidence: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    """Changes of the blocks that can be accepted one by one."""
    facts: tuple[str, ...] = ()
    """Short phrases: where it runs, what it creates or overwrites, sizes."""
    warnings: tuple[str, ...] = ()
    """Facts to read before any answer, such as effects that cannot be undone."""
    arguments: Mapping[str, Any] | None = None
    """Arguments that a reply may replace; None if it can only choose hunks, approve or reject."""
    refused: RefusedEdit | None = None
    """The user's previous edit of the arguments, if it was refused."""
    rules: tuple[str, ...] = ()
    """The rules in ``rule``, one by one; empty if it is None, and in events of earlier versions (a single rule)."""
    rule_note: str = ""
    """A sentence: what else these rules would allow, or why no rule is offered."""
    danger: str = ""
    """A clause: what the call would destroy and whether that can be undone; empty for harmless calls."""
    acceptable: bool = False
    """Whether the call is a file change that accept-edits mode runs without approval."""

    @property
    def offered(self) -> tuple[str, ...]:
        return self.rules or ((self.rule,) if self.rule is not None else ())


PermissionChoice = Literal["once", "always", "reject", "edit"]
"""``edit`` neither approves nor rejects: the changed call is decided again."""

GrantSpan = Literal["turn", "session", "week", "project"]
"""Lifetime of "always": this turn, this session, seven days, or until revoked. The last two apply to this workspace
only."""


class PermissionResolved(Tagged, frozen=True, tag="permission_resolved"):
    type: ClassVar[Literal["permission_resolved"]] = "permission_resolved"
    request: str
    choice: PermissionChoice | Literal["cancelled"]
    by: Literal["user", "headless", "engine"] = "user"
    """``engine``: a new mode or rule settled the request; ``note`` names it."""
    note: str = ""
    """The user's note to the model."""
    span: GrantSpan = "session"
    """Lifetime of the choice "always"."""
    arguments: Mapping[str, Any] | None = None
    """The arguments, if the user replaced them."""
    hunks: tuple[int, ...] | None = None
    """The accepted hunks, if the user chose some."""
    texts: tuple[EditedText, ...] = ()


class RuleApplied(Tagged, frozen=True, tag="rule_applied"):
    """A rule decided a call: it runs, asks, or is refused."""

    type: ClassVar[Literal["rule_applied"]] = "rule_applied"
    item: str
    effect: Literal["allow", "ask", "deny"]
    rule: str
    scope: str
    origin: str = ""


class RuleRevoked(Tagged, frozen=True, tag="rule_revoked"):
    """The user revoked a rule that "always" had added for this session or turn."""

    type: ClassVar[Literal["rule_revoked"]] = "rule_revoked"
    rule: str


class Option(Struct, frozen=True):
    label: str
    description: str = ""


class Question(Struct, frozen=True):
    """One question from the model; without options it asks for free text. ``closed`` accepts only the options.
    ``blank`` is the meaning of an empty line, such as "leaves it out"; if empty, an empty line is not an answer."""

    text: str
    options: tuple[Option, ...] = ()
    multiple: bool = False
    header: str = ""
    closed: bool = False
    blank: str = ""


class UntrustedContent(Tagged, frozen=True, tag="untrusted_content"):
    """The item brought untrusted text into the conversation, from a host or a file outside the workspace. Until the
    user approves a call, calls that would send data out of the workspace without asking now ask."""

    type: ClassVar[Literal["untrusted_content"]] = "untrusted_content"
    item: str
    origin: str


class QuestionAsked(Tagged, frozen=True, tag="question_asked"):
    type: ClassVar[Literal["question_asked"]] = "question_asked"
    request: str
    item: str
    questions: tuple[Question, ...]


class QuestionAnswered(Tagged, frozen=True, tag="question_answered"):
    """One tuple of chosen labels or free text per question; ``answers`` is empty if the user dismissed them."""

    type: ClassVar[Literal["question_answered"]] = "question_answered"
    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless", "engine"] = "user"


TurnOutcome = Literal["done", "interrupted", "blocked", "limit", "error"]

NoticeLevel = Literal["info", "warning", "error"]


class ListedCommand(Struct, frozen=True):
    """A Markdown command, or a skill that users may call. ``arguments`` is a hint such as ``[file]``."""

    name: str
    description: str = ""
    arguments: str = ""


class SessionStarted(Tagged, frozen=True, tag="session_started"):
    """First event of a session, and again at each resume (``resumed`` set)."""

    type: ClassVar[Literal["session_started"]] = "session_started"
    cwd: str
    model: str
    mode: Mode
    swecli: str
    """Version of swecli."""
    resumed: bool = False
    environment: str = ""
    """Date, directory and platform for the model; precedes the first user message."""
    address: str = ""
    """Base URL of the model's server; empty for the provider's own, or if unknown."""
    commands: tuple[ListedCommand, ...] = ()
    """Markdown commands and skills available to ``invoke`` at the start."""


class TurnStarted(Tagged, frozen=True, tag="turn_started"):
    """Work on a user message begins. ``item`` is the user item that opened the turn."""

    type: ClassVar[Literal["turn_started"]] = "turn_started"
    item: str
    allowed: tuple[str, ...] = ()
    """Allow rules for this turn, from the Markdown command that began it."""


class StepStarted(Tagged, frozen=True, tag="step_started"):
    """A step begins: one model request and its tool calls. ``step`` counts from 1 within the turn."""

    type: ClassVar[Literal["step_started"]] = "step_started"
    step: int
    budget: Budget


class ModelResponded(Tagged, frozen=True, tag="model_responded"):
    """The model's answer in this step is final: the named items, in order, form one assistant message.

    Written before any of its tools starts. ``complete`` is False for a cut, failed or interrupted stream; its calls
    are never executed.
    """

    type: ClassVar[Literal["model_responded"]] = "model_responded"
    message: str
    """Ledger id of the assistant message."""
    items: tuple[str, ...]
    origin: Origin
    stop: Stop = Stop()
    usage: Usage | None = None
    response_id: str | None = None
    complete: bool = True
    first_token_ms: int | None = None
    duration_ms: int | None = None
    report: ProviderReport | None = None
    effort: str | None = None
    """Reasoning effort of the request; None: the provider's default, or unknown."""


class StepEnded(Tagged, frozen=True, tag="step_ended"):
    """The step and its tools have ended. ``cost`` is US dollars as a decimal string; None = unknown.

    ``estimated``: the answer broke off before the provider reported usage, so usage and cost are estimates.
    """

    type: ClassVar[Literal["step_ended"]] = "step_ended"
    step: int
    usage: Usage | None = None
    cost: str | None = None
    estimated: bool = False


class ContextRetrieved(Tagged, frozen=True, tag="context_retrieval"):
    """Retrieval added likely files after the user's message. ``actions`` are phrases such as "read src/a.py" and
    "point to src/b.py:12 login"; ``tokens_added`` is an estimate."""

    type: ClassVar[Literal["context_retrieval"]] = "context_retrieval"
    actions: tuple[str, ...]
    tokens_added: int


class SideAnswered(Tagged, frozen=True, tag="side_answered"):
    """The model answered a question beside the conversation. ``purpose`` is one word; ``cost`` as in StepEnded."""

    type: ClassVar[Literal["side_answered"]] = "side_answered"
    purpose: str
    model: str
    usage: Usage | None = None
    cost: str | None = None


class Price(Struct, frozen=True):
    """US dollars per million tokens, as decimal strings. Without ``cached``, cached tokens cost as much as other
    input."""

    input: str
    output: str
    cached: str | None = None

    def of(self, usage: Usage) -> Decimal | None:
        """US dollars of a response; None if the provider reported no sizes."""
        if usage.input_total is None or usage.output_total is None:
            return None
        read = min(usage.cache_read or 0, usage.input_total)
        try:
            plain, answer = Decimal(self.input), Decimal(self.output)
            cached = plain if self.cached is None else Decimal(self.cached)
        except InvalidOperation:  # a record edited by hand
            return None
        return ((usage.input_total - read) * plain + read * cached + usage.output_total * answer) / 1_000_000


class PriceSet(Tagged, frozen=True, tag="price_set"):
    """The user set the price of a model (``provider/name``). It applies from now on, and to earlier requests of the
    session with an unknown price."""

    type: ClassVar[Literal["price_set"]] = "price_set"
    model: str
    price: Price


class RetryScheduled(Tagged, frozen=True, tag="retry_scheduled"):
    """A failed request will be retried after ``delay`` seconds; Esc cancels the wait. ``limit`` is 0 if time, not the
    number of attempts, ends it. ``unreached`` is the server's address if it answered before and is unreachable now."""

    type: ClassVar[Literal["retry_scheduled"]] = "retry_scheduled"
    attempt: int
    limit: int
    delay: float
    kind: str
    reason: str
    unreached: str = ""


class PromptProgress(Tagged, frozen=True, tag="prompt_progress"):
    """The model's server has read so many tokens of the prompt, those in its cache included. ``total`` is 0 while the
    server works on earlier requests."""

    type: ClassVar[Literal["prompt_progress"]] = "prompt_progress"
    read: int = 0
    total: int = 0
    slots: int = 0
    """How many requests the server works on at once, all of them earlier ones; 0 if it does not say."""


class TurnEnded(Tagged, frozen=True, tag="turn_ended"):
    """``reason`` is one sentence for the user; ``error_kind`` classifies the outcome "error"."""

    type: ClassVar[Literal["turn_ended"]] = "turn_ended"
    outcome: TurnOutcome
    reason: str = ""
    error_kind: str = ""
    duration: float = 0.0
    """Seconds."""
    usage: Usage | None = None
    """Sum over the turn's steps."""
    waited: float = 0.0
    """Seconds of the duration spent waiting for the user."""
    estimated: bool = False
    """Whether an answer broke off before the provider reported its usage, so a part of ``usage`` is an estimate."""


CHOSEN = "chosen by the user"
"""Reason of a mode change by the user's own key or command, which needs no further explanation."""


class ModeChanged(Tagged, frozen=True, tag="mode_changed"):
    type: ClassVar[Literal["mode_changed"]] = "mode_changed"
    mode: Mode
    reason: str = ""


class ModelChanged(Tagged, frozen=True, tag="model_changed"):
    """The current model, its reasoning effort, and its context window in tokens. ``switched`` is False if only details
    of the same model became known. ``address`` is the base URL, empty for the provider's own. ``replaces`` is the
    user's model if this one answers in its place for the rest of the turn."""

    type: ClassVar[Literal["model_changed"]] = "model_changed"
    model: str
    effort: str | None = None
    window: int | None = None
    switched: bool = True
    address: str = ""
    replaces: str = ""


class Queued(Struct, frozen=True):
    """A waiting message. With ``steer`` it joins the turn at the next tool boundary, otherwise it follows the turn.
    ``mentions`` as in the command that sent it."""

    id: str
    text: str
    steer: bool = False
    images: tuple[ImagePart, ...] = ()
    mentions: tuple[str, ...] | None = None
    invokes: bool = False
    """Whether ``text`` calls a Markdown command or skill."""


class QueueChanged(Tagged, frozen=True, tag="queue_changed"):
    type: ClassVar[Literal["queue_changed"]] = "queue_changed"
    queue: tuple[Queued, ...]


RewindScope = Literal["conversation", "files", "both"]


class Rewound(Tagged, frozen=True, tag="rewound"):
    """The conversation continues from before ``item``; later items leave the view. ``text`` is the user's message, to
    change and send again. A rewind that the user asked for has a ``name``, by which it can be undone. With the scope
    "files" only files change, not the view."""

    type: ClassVar[Literal["rewound"]] = "rewound"
    item: str
    reason: str = ""
    text: str = ""
    scope: RewindScope = "conversation"
    name: str = ""


class RewindUndone(Tagged, frozen=True, tag="rewind_undone"):
    """A rewind was undone: the view returns to its state before the rewind. ``reason`` reports the effect on files
    and on compactions made since."""

    type: ClassVar[Literal["rewind_undone"]] = "rewind_undone"
    name: str
    reason: str = ""


ANSWER_CUT = "answer_cut"
"""Error kind of a turn whose last answer was cut at the output limit or the end of the window."""
CHOICE = "choice"
"""Topic of a notice about an automatic choice: the model that answers if none was named."""


class Notice(Tagged, frozen=True, tag="notice"):
    """A line for the user, outside any item. ``topic`` names the subsystem; ``hint`` is the next action. ``about``
    identifies what is told once in a session, however often it is found; empty for what may be told again."""

    type: ClassVar[Literal["notice"]] = "notice"
    text: str
    level: NoticeLevel = "info"
    topic: str = ""
    hint: str = ""
    about: str = ""

    @property
    def line(self) -> str:
        """Text and hint, as sentences."""
        if not self.hint:
            return self.text
        return f"{self.text}{'' if self.text.endswith(('.', '!', '?', ':', '…')) else '.'} {self.hint}"


class FileChanged(Tagged, frozen=True, tag="file_changed"):
    """swecli changed a file. Hashes are SHA-256 of the bytes; None = no such file before or after."""

    type: ClassVar[Literal["file_changed"]] = "file_changed"
    path: str
    before: str | None
    after: str | None
    item: str = ""


Restoration = Literal["restored", "brought back", "removed", "mode restored", "link restored"]


class RestoredFile(Struct, frozen=True):
    """A file (absolute path) that an undo or redo changed. ``added`` and ``removed`` are lines of the change that was
    undone or redone; both 0 if they are unknown."""

    path: str
    how: Restoration
    added: int = 0
    removed: int = 0

    def __post_init__(self) -> None:
        if self.how == "brought back":  # earlier versions, for a deleted file
            structs.force_setattr(self, "how", "restored")


class LeftFile(Struct, frozen=True):
    """A file that was left unchanged, and the reason."""

    path: str
    why: str


class FilesRestored(Tagged, frozen=True, tag="files_restored"):
    """The user undid or redid file changes. ``operations`` are the edits and commands concerned. Files in ``conflicts``
    have changed since; those in ``not_covered`` were never recorded. ``reason`` explains why nothing was done."""

    type: ClassVar[Literal["files_restored"]] = "files_restored"
    direction: Literal["undo", "redo"]
    operations: tuple[str, ...] = ()
    files: tuple[RestoredFile, ...] = ()
    conflicts: tuple[LeftFile, ...] = ()
    not_covered: tuple[LeftFile, ...] = ()
    reason: str = ""


class FileRead(Tagged, frozen=True, tag="file_read"):
    """The model saw lines ``first`` to ``last`` (from 1) of a file; ``sha256`` hashes its bytes."""

    type: ClassVar[Literal["file_read"]] = "file_read"
    path: str
    sha256: str
    first: int
    last: int
    item: str = ""


class TodosChanged(Tagged, frozen=True, tag="todos_changed"):
    type: ClassVar[Literal["todos_changed"]] = "todos_changed"
    todos: tuple[Todo, ...]


class ScratchpadChanged(Tagged, frozen=True, tag="scratchpad_changed"):
    """The model's complete scratchpad; empty after clearing."""

    type: ClassVar[Literal["scratchpad_changed"]] = "scratchpad_changed"
    text: str


class MemoryLoaded(Tagged, frozen=True, tag="memory_loaded"):
    """Memory of earlier sessions in the system prompt, fixed for this session; ``lean`` is the version for small
    windows."""

    type: ClassVar[Literal["memory_loaded"]] = "memory_loaded"
    text: str
    lean: str = ""


class PlanChanged(Tagged, frozen=True, tag="plan_changed"):
    """The model proposed a plan, or the user accepted its current text. ``path`` is the plan's file, relative to the
    working directory; empty if it has none."""

    type: ClassVar[Literal["plan_changed"]] = "plan_changed"
    text: str
    path: str = ""
    accepted: bool = False


class SandboxChanged(Tagged, frozen=True, tag="sandbox_changed"):
    """State of the sandbox on this machine. ``layer`` is its mechanism ("bwrap", "landlock", "seatbelt", "none"),
    ``reason`` explains a missing or partial sandbox, ``uncovered`` lists what a partial one leaves open."""

    type: ClassVar[Literal["sandbox_changed"]] = "sandbox_changed"
    level: Literal["off", "partial", "full"]
    layer: str
    reason: str = ""
    uncovered: tuple[str, ...] = ()
    label: str = ""
    """The state in one or two words."""
    contains: bool = False
    """Whether auto mode runs commands in it without approval; always true for level "full"."""
    masked: tuple[str, ...] = ()
    """Some of the files and folders that commands can't read because of what they may hold; those of the workspace
    first and relative to it, those of the home directory with a tilde."""
    masked_count: int = 0
    """How many there are."""


class JobChanged(Tagged, frozen=True, tag="job_changed"):
    """State of a background job."""

    type: ClassVar[Literal["job_changed"]] = "job_changed"
    job: str
    command: str
    status: Literal["running", "exited", "killed"]
    exit_status: int | None = None
    size: int = 0
    """Bytes of output."""
    note: str = ""
    """What stopped the job, if known."""


MAIN = "main"
"""The agent that the user talks to."""


class AgentStarted(Tagged, frozen=True, tag="agent_started"):
    """A subagent begins to work for the call ``item``. Its events follow with ``agent`` in their envelope, without text
    deltas; their item ids are unique across agents."""

    type: ClassVar[Literal["agent_started"]] = "agent_started"
    agent: str
    item: str
    title: str
    profile: str
    model: str
    background: bool = False
    """Whether the call ends at once and the result arrives as a note."""
    folder: str = ""
    """Its own git worktree; empty if it works in the session's folder."""


class AgentEnded(Tagged, frozen=True, tag="agent_ended"):
    """A subagent and everything it started have ended. ``folder`` is its git worktree, if kept."""

    type: ClassVar[Literal["agent_ended"]] = "agent_ended"
    agent: str
    outcome: TurnOutcome
    reason: str = ""
    steps: int = 0
    tokens: int = 0
    """Input and output tokens of all its requests."""
    cost: str | None = None
    """US dollars as a decimal string; None = unknown."""
    duration: float = 0.0
    folder: str = ""


class HookRan(Tagged, frozen=True, tag="hook_ran"):
    """A hook ran for an event. ``outcome`` is "ok"; "blocked" or "asked" at its request; "context" if it added text for
    the model; "stopped" if it ended the work; "problem" if it failed, did not start, or timed out; "skipped" by the
    user. ``text`` is its reason, message or problem for the user, or empty."""

    type: ClassVar[Literal["hook_ran"]] = "hook_ran"
    event: str
    command: str
    outcome: Literal["ok", "blocked", "asked", "context", "stopped", "problem", "skipped"]
    text: str = ""
    item: str = ""
    """The tool call concerned."""
    matcher: str = ""
    origin: str = ""
    """Settings file, with the line if known."""
    exit_status: int | None = None
    duration: float = 0.0
    """Seconds."""


class HooksRunning(Tagged, frozen=True, tag="hooks_running"):
    """Work waits for slow hooks of an event. Emitted again, without ``commands``, when they have ended; ``run``
    identifies the wait."""

    type: ClassVar[Literal["hooks_running"]] = "hooks_running"
    run: int
    event: str
    commands: tuple[str, ...] = ()


class BulletLearned(Tagged, frozen=True, tag="bullet_learned"):
    """The playbook gained a bullet, supported by ``evidence``: items of this session."""

    type: ClassVar[Literal["bullet_learned"]] = "bullet_learned"
    bullet: str
    section: str
    content: str
    evidence: tuple[str, ...] = ()


class BulletsTold(Tagged, frozen=True, tag="bullets_told"):
    """The model received playbook bullets: in its prompt, with a user message, or with a failed result (``item``).
    ``withheld``: earlier versions left some out, to compare."""

    type: ClassVar[Literal["bullets_told"]] = "bullets_told"
    place: Literal["prompt", "message", "result"]
    told: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    item: str = ""


class ToolDefinition(Struct, frozen=True):
    """A tool from a source, as the model sees it. ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    source: str


class ToolsChanged(Tagged, frozen=True, tag="tools_changed"):
    """The external tools change from the next request on. ``added`` are appended in this order; one with a name already
    in the list replaces that entry. ``reason`` is a clause for the user, or empty if obvious. ``note`` is the item that
    announces ``added`` to a model that reads new tools in the middle of a conversation, else empty.

    The list, with which every request begins, keeps tools that ``note`` tells the model to be ``withdrawn``;
    ``redefined`` ones are back after that, or have changed."""

    type: ClassVar[Literal["tools_changed"]] = "tools_changed"
    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()
    reason: str = ""
    note: str = ""
    withdrawn: tuple[str, ...] = ()
    redefined: tuple[ToolDefinition, ...] = ()


PROTOCOL_VERSION = 1


class Unknown(Struct, frozen=True):
    """Body of an event from a later version, kept complete so that a replay loses nothing; ``tag`` is its type
    there."""

    type: ClassVar[Literal["unknown"]] = "unknown"
    tag: str
    data: Mapping[str, Any]


Body = (
    SessionStarted
    | TurnStarted
    | StepStarted
    | ModelResponded
    | StepEnded
    | SideAnswered
    | ContextRetrieved
    | PriceSet
    | RetryScheduled
    | PromptProgress
    | TurnEnded
    | ModeChanged
    | ModelChanged
    | QueueChanged
    | Rewound
    | RewindUndone
    | Notice
    | ItemStarted
    | ItemDelta
    | ItemCheckpointed
    | ItemCompleted
    | PermissionRequested
    | PermissionResolved
    | RuleApplied
    | RuleRevoked
    | UntrustedContent
    | QuestionAsked
    | QuestionAnswered
    | ContextMeasured
    | CompactionStarted
    | CompactionCompleted
    | CompactionFailed
    | CompactionUndone
    | CompactionRedone
    | ContextEdited
    | ContextEditPlanned
    | ModelPlanned
    | ContextSuggested
    | ItemsOffloaded
    | ContextRestored
    | PromptPrefix
    | SystemPromptSent
    | CacheBreak
    | FileChanged
    | FilesRestored
    | FileRead
    | TodosChanged
    | ScratchpadChanged
    | MemoryLoaded
    | PlanChanged
    | JobChanged
    | SandboxChanged
    | HookRan
    | HooksRunning
    | BulletLearned
    | BulletsTold
    | ToolsChanged
    | AgentStarted
    | AgentEnded
)
"""The closed union of known bodies, discriminated by ``type``."""

DELTAS: tuple[type, ...] = (ItemDelta, RetryScheduled, PromptProgress, ContextMeasured, HooksRunning)
"""Bodies that are shown but never stored."""


def tag_of(body: Body | Unknown) -> str:
    """The type of an event in its stored form."""
    return body.tag if isinstance(body, Unknown) else body.type


def is_fact(body: Body | Unknown) -> bool:
    """Whether the body is stored, which happens before the next model call."""
    return not isinstance(body, DELTAS)


class Event(Struct, frozen=True):
    """Envelope. ``seq`` rises by one within a session, over facts and deltas alike; ``ts`` is Unix seconds;
    ``turn`` counts from 1 (0 outside of turns); ``agent`` is "main" or a subagent's id."""

    seq: int
    ts: float
    session: str
    turn: int
    body: Body | Unknown
    agent: str = MAIN
    v: int = PROTOCOL_VERSION


def begins_turn(event: Event) -> bool:
    """Whether the event begins a turn of the main agent."""
    return isinstance(event.body, TurnStarted) and event.agent == MAIN


def grounds(request: PermissionRequested) -> tuple[str, ...]:
    """Lines with the request's reason and evidence, without repetition. Empty for a file change that asks only because
    it changes a file, if the facts or the diff (of a file that has this content already) say so."""
    reason = request.reason
    told = bool(request.facts) or any(isinstance(block, DiffBlock) for block in request.blocks)
    if told and reason in {f"This would change {path}." for path in request.evidence}:
        return ()
    more = [line for line in request.evidence if line not in reason]
    repeated = [line for line in more if _repeats(line, reason)]
    if len(repeated) == 1:  # several lines name the parts of a command that the reason concerns
        more.remove(repeated[0])
    return tuple(line for line in (reason, *more) if line)


FOR_SESSION = "Allowing it for the session"
"""The answer that adds a rule, for clients that name their options themselves."""


def rule_words(request: PermissionRequested, answer: str) -> str:
    """What the offered rule covers, as a sentence about the ``answer`` that adds it; or why no rule is offered."""
    note = request.rule_note
    return f"{answer} {note[:1].lower()}{note[1:]}" if note and request.rule is not None else note


def _repeats(line: str, reason: str) -> bool:
    """Whether a line of the form "words of a command: why" gives only the reason again."""
    places = (index for index in range(len(line)) if line.startswith(": ", index))
    whys = [line[index + 2 :] for index in places]
    return any(f": {why}." in reason or reason[1:].startswith(f"{why[1:]}, so it needs") for why in whys)


ResultKind = Literal["page", "output", "stored"]
"""``page``: the tool bounds its result and can return other parts (files, listings, edits). ``output``: text of any
length from a program or server. ``stored``: a result that reads offloaded content and is never offloaded
itself."""
