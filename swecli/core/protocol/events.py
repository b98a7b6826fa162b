"""Events: everything that happens in a session, as one closed union."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.budget import Component as Component
from swecli.core.protocol.budget import ContextLevel as ContextLevel
from swecli.core.protocol.messages import ImagePart, Message, Origin, Part, Stop, Usage
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
    effective: int = 0
    """Tokens that the model has room for; 0 = not known."""
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
    """The transaction's commit: ``view`` replaces the model's view in one step. ``strategies`` of a batch that only
    cleared old results are ("clearing",)."""

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
    effective: int = 0
    """Tokens that the model has room for; 0 = not known."""
    cleared: int = 0
    """Results and arguments that became stubs."""
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
class CacheBreak:
    """The prompt prefix changed, so the provider's cache is missed from there on."""

    cause: str
    tokens: int
    type: Literal["cache_break"] = field(default="cache_break", kw_only=True)


ItemKind = Literal["user", "text", "reasoning", "tool", "opaque", "compaction", "attachment"]
"""``opaque`` items are provider data that nobody needs to see; they are kept for the next request. ``attachment`` items
are files that the user mentioned with ``@``: a call of a tool that the user made, whose result joins the message."""

ItemStatus = Literal["ok", "error", "rejected", "interrupted"]


@value
class ItemStarted:
    """Something begins to appear. ``name`` is the tool's name for a tool call, else empty."""

    item: str
    kind: ItemKind
    name: str = ""
    title: str = ""
    """Target of a tool call once it is known (a path, a command), else empty."""
    type: Literal["item_started"] = field(default="item_started", kw_only=True)


@value
class ItemDelta:
    """A piece of text (of text and reasoning items), of arguments or of live output (of tool items)."""

    item: str
    text: str
    channel: Literal["text", "arguments", "output"] = "text"
    type: Literal["item_delta"] = field(default="item_delta", kw_only=True)


@value
class ItemCheckpointed:
    """What the item holds so far, whole: stored at least every 500 ms of a running answer.

    For a tool call it is stored once, with the complete ``ToolCallPart``, before the tool can run. A later
    checkpoint with ``running`` set marks that execution has begun. ``awaits`` says, as a clause, what it waits for
    before that.
    """

    item: str
    part: Part
    title: str = ""
    running: bool = False
    awaits: str = ""
    type: Literal["item_checkpointed"] = field(default="item_checkpointed", kw_only=True)


@value
class ItemCompleted:
    """Terminal event of an item. ``parts`` is its final content.

    User items: their text and images; one named "shell" is the user's own ``!command``, with a
    ``TerminalBlock`` to show and the text that joins the context. Text and reasoning: the one part; ``detail`` is why
    it broke off, if it did. Tool calls: the one
    ``ToolResultPart`` (the call itself is in the checkpoint). ``blocks`` is what a person sees, ``detail``
    one short phrase of result ("15 matches in 4 files", "+3 -1", "exit 1").
    """

    item: str
    status: ItemStatus
    parts: tuple[Part, ...] = ()
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    duration: float | None = None
    type: Literal["item_completed"] = field(default="item_completed", kw_only=True)


@value
class Hunk:
    """One change that can be accepted or rejected by itself. ``block`` is the place of its diff among the blocks of
    the request, from 0. Lines count from 1 in the whole file; where there are none of a side, ``start`` is the line
    that they would be at."""

    block: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


@value
class EditedText:
    """What the new text of a diff is to be instead: of ``block``, as much as that block shows of the file."""

    block: int
    text: str


def hunk_texts(block: DiffBlock, hunk: Hunk) -> tuple[list[str], list[str]]:
    """The removed and the added lines of a hunk, from the texts of its block."""
    old, new = (text.split("\n") if text else [] for text in (block.old, block.new))
    i, j = hunk.old_start - block.first_line, hunk.new_start - block.first_line
    return old[i : i + hunk.old_lines], new[j : j + hunk.new_lines]


@value
class RefusedEdit:
    """Arguments of a user that may not run, and why. The call is as it was before."""

    arguments: Mapping[str, Any]
    reason: str


@value
class PermissionRequested:
    """A call waits for consent. What is shown is what will run: ``binding`` is the SHA-256 of tool,
    arguments, working directory and target, recomputed before execution."""

    request: str
    item: str
    tool: str
    title: str
    blocks: tuple[DisplayBlock, ...]
    reason: str
    binding: str
    rule: str | None = None
    """The rule that "always" would add for this session; None where always is not offered."""
    evidence: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    """Changes of the blocks that can be accepted singly."""
    facts: tuple[str, ...] = ()
    """Short phrases: where it runs, what it creates or overwrites, sizes."""
    warnings: tuple[str, ...] = ()
    """What has to be seen before any answer, such as what could not be taken back."""
    arguments: Mapping[str, Any] | None = None
    """What a reply can replace, as it would run; None where it can only choose among hunks, or say yes or no."""
    refused: RefusedEdit | None = None
    """What the user had put in place of the arguments before this question, where that was refused."""
    type: Literal["permission_requested"] = field(default="permission_requested", kw_only=True)


PermissionChoice = Literal["once", "always", "reject", "edit"]
"""``edit``: neither yes nor no; the call is changed and judged anew."""

GrantSpan = Literal["turn", "session", "week", "project"]
"""How long "always" holds: this turn, this session, seven days, or until it is revoked; the last two in this workspace
only."""


@value
class PermissionResolved:
    request: str
    choice: PermissionChoice | Literal["cancelled"]
    by: Literal["user", "headless", "engine"] = "user"
    note: str = ""
    """The user's word to the model."""
    span: GrantSpan = "session"
    """For the choice "always"."""
    arguments: Mapping[str, Any] | None = None
    """The arguments, where the user replaced them."""
    hunks: tuple[int, ...] | None = None
    """The hunks that were accepted, where the user chose among them."""
    texts: tuple[EditedText, ...] = ()
    type: Literal["permission_resolved"] = field(default="permission_resolved", kw_only=True)


@value
class RuleApplied:
    """A rule decided about a call: by it the call runs, asks, or is refused."""

    item: str
    effect: Literal["allow", "ask", "deny"]
    rule: str
    scope: str
    origin: str = ""
    type: Literal["rule_applied"] = field(default="rule_applied", kw_only=True)


@value
class Option:
    label: str
    description: str = ""


@value
class Question:
    """One question of the model to the user; without options it asks for free text."""

    text: str
    options: tuple[Option, ...] = ()
    multiple: bool = False
    header: str = ""


@value
class UntrustedContent:
    """Text of strangers came into the conversation with this item: from a host, or from a file outside the workspace.
    Until the user consents to a call, what would leave the workspace unasked asks."""

    item: str
    origin: str
    type: Literal["untrusted_content"] = field(default="untrusted_content", kw_only=True)


@value
class QuestionAsked:
    request: str
    item: str
    questions: tuple[Question, ...]
    type: Literal["question_asked"] = field(default="question_asked", kw_only=True)


@value
class QuestionAnswered:
    """One tuple of chosen labels or free text for each question; empty when it was dismissed."""

    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless", "engine"] = "user"
    type: Literal["question_answered"] = field(default="question_answered", kw_only=True)


Mode = Literal["default", "accept-edits", "plan", "auto"]
"""Permission modes; they are enforced where calls are executed."""

TurnOutcome = Literal["done", "interrupted", "blocked", "limit", "error"]

NoticeLevel = Literal["info", "warning", "error"]


@value
class SessionStarted:
    """First event of a session, and again at each resume (``resumed`` set)."""

    cwd: str
    model: str
    mode: Mode
    swecli: str
    """Version of swecli."""
    resumed: bool = False
    environment: str = ""
    """What the model is told about date, directory and platform; it goes in front of the first user message."""
    address: str = ""
    """Base URL where the model is asked; empty where that is its provider's own, or not known."""
    type: Literal["session_started"] = field(default="session_started", kw_only=True)


@value
class TurnStarted:
    """The user's message is accepted and work on it begins. ``item`` is the user item that opened it."""

    item: str
    type: Literal["turn_started"] = field(default="turn_started", kw_only=True)


@value
class StepStarted:
    """One model request and the tools that it calls. ``step`` counts from 1 within the turn."""

    step: int
    budget: Budget
    type: Literal["step_started"] = field(default="step_started", kw_only=True)


@value
class ModelResponded:
    """The model's answer of one step is final: the named items, in order, form one assistant message.

    Written before any of its tools starts. ``complete`` is False for a cut, failed or interrupted stream,
    whose calls are never executed.
    """

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
    type: Literal["model_responded"] = field(default="model_responded", kw_only=True)


@value
class StepEnded:
    """The step's tools have ended as well. ``cost`` is US dollars as a decimal string; None = unknown.

    ``estimated``: the answer broke off before the provider told its usage, so usage and cost are guesses.
    """

    step: int
    usage: Usage | None = None
    cost: str | None = None
    estimated: bool = False
    type: Literal["step_ended"] = field(default="step_ended", kw_only=True)


@value
class SideAnswered:
    """The model answered a question beside the conversation. ``purpose`` is one word; ``cost`` as in StepEnded."""

    purpose: str
    model: str
    usage: Usage | None = None
    cost: str | None = None
    type: Literal["side_answered"] = field(default="side_answered", kw_only=True)


@value
class RetryScheduled:
    """A failed request is tried again after ``delay`` seconds; Esc cancels the wait. ``limit`` is 0 where time, and no
    number of attempts, ends it."""

    attempt: int
    limit: int
    delay: float
    kind: str
    reason: str
    type: Literal["retry_scheduled"] = field(default="retry_scheduled", kw_only=True)


@value
class TurnEnded:
    """``reason`` is one sentence for the user; ``error_kind`` the error taxonomy's word for outcome error."""

    outcome: TurnOutcome
    reason: str = ""
    error_kind: str = ""
    duration: float = 0.0
    """Seconds."""
    usage: Usage | None = None
    """Sum over the turn's steps."""
    type: Literal["turn_ended"] = field(default="turn_ended", kw_only=True)


@value
class ModeChanged:
    mode: Mode
    reason: str = ""
    type: Literal["mode_changed"] = field(default="mode_changed", kw_only=True)


@value
class ModelChanged:
    """Which model answers from now on, how much it thinks, and its context window in tokens. ``switched`` is false
    where only more has become known of the model that answers anyway. ``address`` is the base URL where it is asked,
    empty where that is its provider's own."""

    model: str
    effort: str | None = None
    window: int | None = None
    switched: bool = True
    address: str = ""
    type: Literal["model_changed"] = field(default="model_changed", kw_only=True)


@value
class Queued:
    """A message that waits: ``steer`` goes in at the next tool boundary, otherwise after the turn. ``mentions`` as in
    the command that sent it."""

    id: str
    text: str
    steer: bool = False
    images: tuple[ImagePart, ...] = ()
    mentions: tuple[str, ...] | None = None


@value
class QueueChanged:
    queue: tuple[Queued, ...]
    type: Literal["queue_changed"] = field(default="queue_changed", kw_only=True)


@value
class Rewound:
    """The conversation continues from before ``item``; what came after it is no longer in the view. ``text`` is a
    message of the user that could not be sent, for them to change and send again."""

    item: str
    reason: str = ""
    text: str = ""
    type: Literal["rewound"] = field(default="rewound", kw_only=True)


@value
class Notice:
    """A line for the user that belongs to no item. ``topic`` names the subsystem; ``hint`` what to do next."""

    text: str
    level: NoticeLevel = "info"
    topic: str = ""
    hint: str = ""
    type: Literal["notice"] = field(default="notice", kw_only=True)


@value
class FileChanged:
    """swecli changed a file. Hashes are SHA-256 of the bytes; None = the file did or does not exist."""

    path: str
    before: str | None
    after: str | None
    item: str = ""
    type: Literal["file_changed"] = field(default="file_changed", kw_only=True)


@value
class RestoredFile:
    """A file (absolute path) that an undo or redo changed."""

    path: str
    how: Literal["restored", "brought back", "removed", "mode restored", "link restored"]


@value
class LeftFile:
    """A file that was left as it is, and why."""

    path: str
    why: str


@value
class FilesRestored:
    """The user took changes of files back, or brought them back. ``operations`` are the edits and commands in
    question. Files in ``conflicts`` were changed since; those in ``not_covered`` were never recorded. ``reason`` says
    why nothing was done, where nothing could be done."""

    direction: Literal["undo", "redo"]
    operations: tuple[str, ...] = ()
    files: tuple[RestoredFile, ...] = ()
    conflicts: tuple[LeftFile, ...] = ()
    not_covered: tuple[LeftFile, ...] = ()
    reason: str = ""
    type: Literal["files_restored"] = field(default="files_restored", kw_only=True)


@value
class FileRead:
    """The model was shown lines ``first`` to ``last`` (from 1) of a file whose bytes have this SHA-256."""

    path: str
    sha256: str
    first: int
    last: int
    item: str = ""
    type: Literal["file_read"] = field(default="file_read", kw_only=True)


@value
class TodosChanged:
    todos: tuple[Todo, ...]
    type: Literal["todos_changed"] = field(default="todos_changed", kw_only=True)


@value
class SandboxChanged:
    """How far commands are contained on this machine. ``layer`` is what holds them ("bwrap", "landlock", "seatbelt",
    "none"), ``reason`` why there is no or only a partial sandbox, ``uncovered`` what a partial one leaves open."""

    level: Literal["off", "partial", "full"]
    layer: str
    reason: str = ""
    uncovered: tuple[str, ...] = ()
    label: str = ""
    """The state in one or two words."""
    type: Literal["sandbox_changed"] = field(default="sandbox_changed", kw_only=True)


@value
class JobChanged:
    """A command that runs in the background."""

    job: str
    command: str
    status: Literal["running", "exited", "killed"]
    exit_status: int | None = None
    size: int = 0
    """Bytes of output."""
    note: str = ""
    """What stopped it, where that is known."""
    type: Literal["job_changed"] = field(default="job_changed", kw_only=True)


PROTOCOL_VERSION = 1


@value
class Unknown:
    """A body of a later version: its type and the whole body, kept so that a replay loses nothing."""

    type: str
    data: Mapping[str, Any]


Body = (
    SessionStarted
    | TurnStarted
    | StepStarted
    | ModelResponded
    | StepEnded
    | SideAnswered
    | RetryScheduled
    | TurnEnded
    | ModeChanged
    | ModelChanged
    | QueueChanged
    | Rewound
    | Notice
    | ItemStarted
    | ItemDelta
    | ItemCheckpointed
    | ItemCompleted
    | PermissionRequested
    | PermissionResolved
    | RuleApplied
    | UntrustedContent
    | QuestionAsked
    | QuestionAnswered
    | ContextMeasured
    | CompactionStarted
    | CompactionCompleted
    | CompactionFailed
    | CompactionUndone
    | CompactionRedone
    | ItemsOffloaded
    | ContextRestored
    | CacheBreak
    | FileChanged
    | FilesRestored
    | FileRead
    | TodosChanged
    | JobChanged
    | SandboxChanged
)
"""The closed union of known bodies, discriminated by ``type``."""

DELTAS: tuple[type, ...] = (ItemDelta, RetryScheduled, ContextMeasured)
"""Bodies that are shown but not stored."""


def is_fact(body: Body | Unknown) -> bool:
    """Whether the body is stored before the next model call."""
    return not isinstance(body, DELTAS)


@value
class Event:
    """Envelope. ``seq`` rises by one within a session, over facts and deltas alike; ``ts`` is Unix seconds;
    ``turn`` counts from 1 (0 outside of turns); ``agent`` is "main" or a subagent's id."""

    seq: int
    ts: float
    session: str
    turn: int
    body: Body | Unknown
    agent: str = "main"
    v: int = PROTOCOL_VERSION


def grounds(request: PermissionRequested) -> tuple[str, ...]:
    """The reason and what it rests on, as lines: each thing is said once. A change of files that is asked about only
    because it is one has none where the facts tell of it."""
    reason = request.reason
    if request.facts and reason in {f"This would change {path}." for path in request.evidence}:
        return ()
    told = [line for line in request.evidence if line not in reason]
    repeated = [line for line in told if _repeats(line, reason)]
    if len(repeated) == 1:  # several tell which parts of a command the reason is about
        told.remove(repeated[0])
    return tuple(line for line in (reason, *told) if line)


def _repeats(line: str, reason: str) -> bool:
    """Whether a line, "words of a command: why", has no other why than the reason."""
    places = (index for index in range(len(line)) if line.startswith(": ", index))
    return any(f"{before}{line[index + 2 :]}." in reason for index in places for before in (": ", "because "))


ResultKind = Literal["page", "output", "stored"]
"""``page``: the tool bounds itself and can be asked for another part (files, listings, edits). ``output``: what
some program or server wrote, of any length. ``stored``: it reads what left the context, so it never leaves it
again on its own."""
