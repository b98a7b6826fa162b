"""Events: everything that happens in a session, as one closed union."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

from msgspec import Struct, structs

from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import ImagePart, Message, Origin, Part, Stop, Tagged, Usage


class ContextMeasured(Tagged, frozen=True, tag="context_measured"):
    """The one number that meter, gate, ``/context`` and JSON output share."""

    budget: Budget


class CompactionStarted(Tagged, frozen=True, tag="compaction_started"):
    item: str
    trigger: Literal["manual", "auto", "overflow", "model"]
    strategy: str
    tokens_before: int
    effective: int = 0
    """Tokens that the model has room for; 0 = not known."""


BY_HAND: Final = "by hand"
"""``ViewEntry.rule`` of what the user chose for this one item."""


class ViewEntry(Struct, frozen=True):
    """One entry of the model's view: a live ledger item, its stub, a summary that stands for several, or an item that
    the user dropped, which keeps its place and says nothing."""

    kind: Literal["live", "stub", "summary", "dropped"]
    id: str
    text: str = ""
    """Replacement text of a stub or summary; of a dropped item the one that it had before."""
    sources: tuple[str, ...] = ()
    """Ledger ids that a summary stands for."""
    rule: str = ""
    """The user's rule that took the item away, or ``BY_HAND``; empty where neither did."""


class CompactionCompleted(Tagged, frozen=True, tag="compaction_completed"):
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
    anchors: int = 0
    """Things to keep that were found in what was replaced, such as demands of the user and changed files."""
    anchors_kept: int = 0
    """How many of them are in what took its place."""
    anchors_written: int = 0
    """How many of them the model's summary says itself."""


class CompactionFailed(Tagged, frozen=True, tag="compaction_failed"):
    """Nothing was changed."""

    item: str
    reason: str


class CompactionUndone(Tagged, frozen=True, tag="compaction_undone"):
    item: str


class CompactionRedone(Tagged, frozen=True, tag="compaction_redone"):
    item: str


class Offloaded(Struct, frozen=True):
    """One item that left the context. ``ref`` finds it again."""

    item: str
    ref: str
    tokens: int
    reason: str


class ContextChange(Struct, frozen=True):
    """What the user wants done with one ledger entry. ``pin``: it stays word for word whatever is removed; ``drop``: it
    leaves the conversation; ``offload``: a line with its id takes its place; ``restore``: it is word for word in its
    place again."""

    action: Literal["pin", "unpin", "drop", "offload", "restore"]
    id: str


class ContextEdited(Tagged, frozen=True, tag="context_edited"):
    """The user changed what the model sees: ``entries`` take the places of those with their ids, and come back to their
    places where they are not in the view. Tokens are of the whole request."""

    changes: tuple[ContextChange, ...]
    entries: tuple[ViewEntry, ...] = ()
    pinned: tuple[str, ...] = ()
    unpinned: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0


RotKind = Literal["contradiction", "reverted", "failing", "reread", "stale", "summaries", "repeated"]
"""What is wrong with a conversation: demands of the user that contradict each other; edits that were undone again; a
command that fails the same way; a file that is read again unchanged; results that are old and unused; a summary of a
summary; a demand that the user had to repeat."""


class ContextSuggested(Tagged, frozen=True, tag="context_suggested"):
    """One thing that would serve the conversation, and what would be done about it; nothing happens by itself.
    ``cause`` tells one from another of its kind, ``count`` how bad it is (times, or tokens of what is old). ``reason``
    and ``action`` are clauses. One of the last three is set: what is changed in the context, the message that the
    conversation goes back to before, with a handoff, or the summaries that the record takes the place of."""

    kind: RotKind
    cause: str
    count: int
    reason: str
    action: str
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the whole request, once it was done."""
    changes: tuple[ContextChange, ...] = ()
    branch: str = ""
    summaries: tuple[str, ...] = ()

    @property
    def freed(self) -> int:
        return max(0, self.tokens_before - self.tokens_after)


class ItemsOffloaded(Tagged, frozen=True, tag="items_offloaded"):
    items: tuple[Offloaded, ...]


class ModelView(Struct, frozen=True):
    """What the model sees, and what the user chose for single items of it. ``names`` go with a list of messages: of
    each, the ledger ids that its parts are, or one id where all of it is one."""

    entries: tuple[ViewEntry, ...]
    names: tuple[tuple[str, ...], ...] = ()
    pinned: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class ContextRestored(Tagged, frozen=True, tag="context_restored"):
    """The model's view was taken from a snapshot, for events that it came from can't be read any more. With a ``view``
    that is what there is now, and ``messages`` are those parts of it that can't be read. Else, as of a snapshot that an
    earlier version wrote, ``messages`` are in place of everything up to event ``snapshot``, then come the entries of
    ``later``; ids of entries made of them begin with ``item``."""

    item: str
    messages: tuple[Message, ...]
    later: tuple[ViewEntry, ...]
    snapshot: int
    view: ModelView | None = None


class PromptPart(Struct, frozen=True):
    """A part of what every request begins with: a tool, or a block of the system prompt by its component. ``digest`` is
    a hash of its text, ``source`` whose tool it is."""

    name: str
    digest: str
    source: str = ""


class PromptPrefix(Tagged, frozen=True, tag="prompt_prefix"):
    """What the newest request begins with before the conversation, in its order. Told where it differs from what was
    told before, so that a session that goes on later knows what has changed."""

    tools: tuple[PromptPart, ...] = ()
    system: tuple[PromptPart, ...] = ()
    effort: str | None = None


class CacheBreak(Tagged, frozen=True, tag="cache_break"):
    """The provider read ``tokens`` anew that it had read before. ``cause`` is a clause, ``kind`` its kind.

    ``component`` and ``part`` are what of the prompt changed first: a component of the context, and in it a tool or an
    item of the conversation. Both are empty where nothing changed. Earlier versions recorded none of the three."""

    cause: str
    tokens: int
    kind: str = ""
    component: str = ""
    part: str = ""


ItemKind = Literal["user", "text", "reasoning", "tool", "opaque", "compaction", "attachment", "note"]
"""``opaque`` items are provider data that nobody needs to see; they are kept for the next request. ``attachment`` items
are files that the user mentioned with ``@``: a call of a tool that the user made, whose result joins the message.
``note`` items are what swecli itself tells the model in the conversation; their title is for the user."""

ItemStatus = Literal["ok", "error", "rejected", "interrupted"]


class ItemStarted(Tagged, frozen=True, tag="item_started"):
    """Something begins to appear. ``name`` is the tool's name for a tool call, else empty."""

    item: str
    kind: ItemKind
    name: str = ""
    title: str = ""
    """Target of a tool call once it is known (a path, a command), else empty."""

    @property
    def typed(self) -> str:
        """What the user typed for this item, where the model gets another text; empty for a message as it is."""
        if self.kind != "user":
            return ""
        return {"command": self.title, "shell": f"!{self.title}" if self.title else ""}.get(self.name, "")


class ItemDelta(Tagged, frozen=True, tag="item_delta"):
    """A piece of text (of text and reasoning items), of arguments or of live output (of tool items)."""

    item: str
    text: str
    channel: Literal["text", "arguments", "output"] = "text"


class ItemCheckpointed(Tagged, frozen=True, tag="item_checkpointed"):
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


class ItemCompleted(Tagged, frozen=True, tag="item_completed"):
    """Terminal event of an item. ``parts`` is its final content.

    User items: their text and images; one named "shell" is the user's own ``!command``, with a
    ``TerminalBlock`` to show and the text that joins the context; one named "command" is a call of a Markdown command
    or skill, whose title is what was typed. Text and reasoning: the one part; ``detail`` is why
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


class Hunk(Struct, frozen=True):
    """One change that can be accepted or rejected by itself. ``block`` is the place of its diff among the blocks of
    the request, from 0. Lines count from 1 in the whole file; where there are none of a side, ``start`` is the line
    that they would be at."""

    block: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class EditedText(Struct, frozen=True):
    """What the new text of a diff is to be instead: of ``block``, as much as that block shows of the file."""

    block: int
    text: str


def hunk_texts(block: DiffBlock, hunk: Hunk) -> tuple[list[str], list[str]]:
    """The removed and the added lines of a hunk, from the texts of its block."""
    old, new = (text.split("\n") if text else [] for text in (block.old, block.new))
    i, j = hunk.old_start - block.first_line, hunk.new_start - block.first_line
    return old[i : i + hunk.old_lines], new[j : j + hunk.new_lines]


class RefusedEdit(Struct, frozen=True):
    """Arguments of a user that may not run, and why. The call is as it was before."""

    arguments: Mapping[str, Any]
    reason: str


class PermissionRequested(Tagged, frozen=True, tag="permission_requested"):
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
    """What "always" would add, as shown: one rule, or several with commas between them; None where always is not
    offered."""
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
    rules: tuple[str, ...] = ()
    """The rules of ``rule`` one by one; empty where it is None, and in events of earlier versions, where it is one."""
    rule_note: str = ""
    """A sentence: what these rules would also allow or, where no rule is offered, why."""
    danger: str = ""
    """What it would destroy and whether that can be undone, as a clause; empty for what is not dangerous."""
    acceptable: bool = False
    """A change of files that runs without approval in mode accept-edits."""

    @property
    def offered(self) -> tuple[str, ...]:
        return self.rules or ((self.rule,) if self.rule is not None else ())


PermissionChoice = Literal["once", "always", "reject", "edit"]
"""``edit``: neither yes nor no; the call is changed and judged anew."""

GrantSpan = Literal["turn", "session", "week", "project"]
"""How long "always" holds: this turn, this session, seven days, or until it is revoked; the last two in this workspace
only."""


class PermissionResolved(Tagged, frozen=True, tag="permission_resolved"):
    request: str
    choice: PermissionChoice | Literal["cancelled"]
    by: Literal["user", "headless", "engine"] = "user"
    """``engine``: a new mode or rule settled the question; ``note`` says which."""
    note: str = ""
    """The user's word to the model."""
    span: GrantSpan = "session"
    """For the choice "always"."""
    arguments: Mapping[str, Any] | None = None
    """The arguments, where the user replaced them."""
    hunks: tuple[int, ...] | None = None
    """The hunks that were accepted, where the user chose among them."""
    texts: tuple[EditedText, ...] = ()


class RuleApplied(Tagged, frozen=True, tag="rule_applied"):
    """A rule decided about a call: by it the call runs, asks, or is refused."""

    item: str
    effect: Literal["allow", "ask", "deny"]
    rule: str
    scope: str
    origin: str = ""


class RuleRevoked(Tagged, frozen=True, tag="rule_revoked"):
    """The user took back what "always" allowed in this session, or for this turn."""

    rule: str


class Option(Struct, frozen=True):
    label: str
    description: str = ""


class Question(Struct, frozen=True):
    """One question of the model to the user; without options it asks for free text. ``closed``: nothing but its options
    is an answer. ``blank``: what an empty line means, as "leaves it out"; without it, it is no answer."""

    text: str
    options: tuple[Option, ...] = ()
    multiple: bool = False
    header: str = ""
    closed: bool = False
    blank: str = ""


class UntrustedContent(Tagged, frozen=True, tag="untrusted_content"):
    """Text of strangers came into the conversation with this item: from a host, or from a file outside the workspace.
    Until the user consents to a call, what would leave the workspace unasked asks."""

    item: str
    origin: str


class QuestionAsked(Tagged, frozen=True, tag="question_asked"):
    request: str
    item: str
    questions: tuple[Question, ...]


class QuestionAnswered(Tagged, frozen=True, tag="question_answered"):
    """One tuple of chosen labels or free text for each question; empty when it was dismissed."""

    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless", "engine"] = "user"


Mode = Literal["default", "accept-edits", "plan", "auto"]
"""Permission modes; they are enforced where calls are executed."""

TurnOutcome = Literal["done", "interrupted", "blocked", "limit", "error"]

NoticeLevel = Literal["info", "warning", "error"]


class ListedCommand(Struct, frozen=True):
    """A Markdown command, or a skill that users may call. ``arguments`` is a hint such as ``[file]``."""

    name: str
    description: str = ""
    arguments: str = ""


class SessionStarted(Tagged, frozen=True, tag="session_started"):
    """First event of a session, and again at each resume (``resumed`` set)."""

    cwd: str
    model: str
    mode: Mode
    swecli: str
    """Version of swecli."""
    resumed: bool = False
    environment: str = ""
    """What the model learns about date, directory and platform; it goes in front of the first user message."""
    address: str = ""
    """Base URL where the model is asked; empty where that is its provider's own, or not known."""
    commands: tuple[ListedCommand, ...] = ()
    """Markdown commands and skills that ``invoke`` calls, as they are at the start."""


class TurnStarted(Tagged, frozen=True, tag="turn_started"):
    """The user's message is accepted and work on it begins. ``item`` is the user item that opened it."""

    item: str
    allowed: tuple[str, ...] = ()
    """Permission rules that allow something in this turn: those of the command that the user began it with."""


class StepStarted(Tagged, frozen=True, tag="step_started"):
    """One model request and the tools that it calls. ``step`` counts from 1 within the turn."""

    step: int
    budget: Budget


class ModelResponded(Tagged, frozen=True, tag="model_responded"):
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


class StepEnded(Tagged, frozen=True, tag="step_ended"):
    """The step's tools have ended as well. ``cost`` is US dollars as a decimal string; None = unknown.

    ``estimated``: the answer broke off before the provider told its usage, so usage and cost are guesses.
    """

    step: int
    usage: Usage | None = None
    cost: str | None = None
    estimated: bool = False


class ContextRetrieved(Tagged, frozen=True, tag="context_retrieval"):
    """What an index found for a message of the user joined the conversation behind it. ``actions`` are phrases such as
    "read src/a.py" and "point to src/b.py:12 login"; ``tokens_added`` is estimated."""

    actions: tuple[str, ...]
    tokens_added: int


class SideAnswered(Tagged, frozen=True, tag="side_answered"):
    """The model answered a question beside the conversation. ``purpose`` is one word; ``cost`` as in StepEnded."""

    purpose: str
    model: str
    usage: Usage | None = None
    cost: str | None = None


class Price(Struct, frozen=True):
    """US dollars per million tokens, as decimal strings. Tokens read from the cache cost what other input does where
    ``cached`` is None."""

    input: str
    output: str
    cached: str | None = None

    def of(self, usage: Usage) -> Decimal | None:
        """US dollars of a response; None where the provider told no sizes."""
        if usage.input_total is None or usage.output_total is None:
            return None
        read = min(usage.cache_read or 0, usage.input_total)
        try:
            plain, answer = Decimal(self.input), Decimal(self.output)
            cached = plain if self.cached is None else Decimal(self.cached)
        except InvalidOperation:  # of a record that was changed
            return None
        return ((usage.input_total - read) * plain + read * cached + usage.output_total * answer) / 1_000_000


class PriceSet(Tagged, frozen=True, tag="price_set"):
    """The user told what a model (``provider/name``) costs. It counts from now on, and for what the session has asked
    of it at an unknown price."""

    model: str
    price: Price


class RetryScheduled(Tagged, frozen=True, tag="retry_scheduled"):
    """A failed request is tried again after ``delay`` seconds; Esc cancels the wait. ``limit`` is 0 where time, and no
    number of attempts, ends it. ``unreached`` is the server, where it answered before and can't be reached now."""

    attempt: int
    limit: int
    delay: float
    kind: str
    reason: str
    unreached: str = ""


class TurnEnded(Tagged, frozen=True, tag="turn_ended"):
    """``reason`` is one sentence for the user; ``error_kind`` the error taxonomy's word for outcome error."""

    outcome: TurnOutcome
    reason: str = ""
    error_kind: str = ""
    duration: float = 0.0
    """Seconds."""
    usage: Usage | None = None
    """Sum over the turn's steps."""
    waited: float = 0.0
    """Seconds of the duration in which it waited for the user's answers."""


CHOSEN = "chosen by the user"
"""Reason of a mode that a key or a command of the user chose, which says so itself."""


class ModeChanged(Tagged, frozen=True, tag="mode_changed"):
    mode: Mode
    reason: str = ""


class ModelChanged(Tagged, frozen=True, tag="model_changed"):
    """Which model answers from now on, how much it thinks, and its context window in tokens. ``switched`` is false
    where only more has become known of the model that answers anyway. ``address`` is the base URL where it is asked,
    empty where that is its provider's own."""

    model: str
    effort: str | None = None
    window: int | None = None
    switched: bool = True
    address: str = ""


class Queued(Struct, frozen=True):
    """A message that waits: ``steer`` goes in at the next tool boundary, otherwise after the turn. ``mentions`` as in
    the command that sent it."""

    id: str
    text: str
    steer: bool = False
    images: tuple[ImagePart, ...] = ()
    mentions: tuple[str, ...] | None = None
    invokes: bool = False
    """``text`` is a call of a Markdown command or skill."""


class QueueChanged(Tagged, frozen=True, tag="queue_changed"):
    queue: tuple[Queued, ...]


RewindScope = Literal["conversation", "files", "both"]


class Rewound(Tagged, frozen=True, tag="rewound"):
    """The conversation continues from before ``item``; what came after it is no longer in the view. ``text`` is the
    message of the user, for them to change and send again. One that the user asked for has a ``name``, by which it can
    be taken back; with the scope "files" only files went back, and the view is as it was."""

    item: str
    reason: str = ""
    text: str = ""
    scope: RewindScope = "conversation"
    name: str = ""


class RewindUndone(Tagged, frozen=True, tag="rewind_undone"):
    """A rewind was taken back: the view is as before it, without what was said since. ``reason`` says what became of
    files."""

    name: str
    reason: str = ""


class Notice(Tagged, frozen=True, tag="notice"):
    """A line for the user that belongs to no item. ``topic`` names the subsystem; ``hint`` what to do next."""

    text: str
    level: NoticeLevel = "info"
    topic: str = ""
    hint: str = ""


class FileChanged(Tagged, frozen=True, tag="file_changed"):
    """swecli changed a file. Hashes are SHA-256 of the bytes; None = the file did or does not exist."""

    path: str
    before: str | None
    after: str | None
    item: str = ""


Restoration = Literal["restored", "brought back", "removed", "mode restored", "link restored"]


class RestoredFile(Struct, frozen=True):
    """A file (absolute path) that an undo or redo changed."""

    path: str
    how: Restoration

    def __post_init__(self) -> None:
        if self.how == "brought back":  # written by earlier versions for a file that was gone
            structs.force_setattr(self, "how", "restored")


class LeftFile(Struct, frozen=True):
    """A file that was left as it is, and why."""

    path: str
    why: str


class FilesRestored(Tagged, frozen=True, tag="files_restored"):
    """The user took changes of files back, or brought them back. ``operations`` are the edits and commands in
    question. Files in ``conflicts`` were changed since; those in ``not_covered`` were never recorded. ``reason`` says
    why nothing was done, where nothing could be done."""

    direction: Literal["undo", "redo"]
    operations: tuple[str, ...] = ()
    files: tuple[RestoredFile, ...] = ()
    conflicts: tuple[LeftFile, ...] = ()
    not_covered: tuple[LeftFile, ...] = ()
    reason: str = ""


class FileRead(Tagged, frozen=True, tag="file_read"):
    """The model was shown lines ``first`` to ``last`` (from 1) of a file whose bytes have this SHA-256."""

    path: str
    sha256: str
    first: int
    last: int
    item: str = ""


class TodosChanged(Tagged, frozen=True, tag="todos_changed"):
    todos: tuple[Todo, ...]


class ScratchpadChanged(Tagged, frozen=True, tag="scratchpad_changed"):
    """What the model noted for itself, whole; empty when it is cleared."""

    text: str


class MemoryLoaded(Tagged, frozen=True, tag="memory_loaded"):
    """What of earlier sessions is in the system prompt for as long as the session lasts; ``lean`` is for a model with a
    small window."""

    text: str
    lean: str = ""


class PlanChanged(Tagged, frozen=True, tag="plan_changed"):
    """A plan was proposed, or the user agreed to it as it is now. ``path`` is the file that it is written in, relative
    to the working directory; empty where it is written nowhere."""

    text: str
    path: str = ""
    accepted: bool = False


class SandboxChanged(Tagged, frozen=True, tag="sandbox_changed"):
    """How far commands are contained on this machine. ``layer`` is what holds them ("bwrap", "landlock", "seatbelt",
    "none"), ``reason`` why there is no or only a partial sandbox, ``uncovered`` what a partial one leaves open."""

    level: Literal["off", "partial", "full"]
    layer: str
    reason: str = ""
    uncovered: tuple[str, ...] = ()
    label: str = ""
    """The state in one or two words."""
    contains: bool = False
    """Whether auto mode runs commands in it unasked; so in every full one."""


class JobChanged(Tagged, frozen=True, tag="job_changed"):
    """A command that runs in the background."""

    job: str
    command: str
    status: Literal["running", "exited", "killed"]
    exit_status: int | None = None
    size: int = 0
    """Bytes of output."""
    note: str = ""
    """What stopped it, where that is known."""


MAIN = "main"
"""The agent that the user talks to."""


class AgentStarted(Tagged, frozen=True, tag="agent_started"):
    """A subagent begins to work for the call ``item``; its own events follow with ``agent`` in their envelope, without
    deltas of text. ``item`` of its events are unlike those of all others."""

    agent: str
    item: str
    title: str
    profile: str
    model: str
    background: bool = False
    """Whether the call ended when the work began; the result comes as a note."""
    folder: str = ""
    """Its own work tree; empty where it works in the session's folder."""


class AgentEnded(Tagged, frozen=True, tag="agent_ended"):
    """A subagent has ended, and nothing of it runs any more. ``folder`` is its work tree where that was kept."""

    agent: str
    outcome: TurnOutcome
    reason: str = ""
    steps: int = 0
    tokens: int = 0
    """Input and output of all its requests."""
    cost: str | None = None
    """US dollars as a decimal string; None = unknown."""
    duration: float = 0.0
    folder: str = ""


class HookRan(Tagged, frozen=True, tag="hook_ran"):
    """A hook ran for an event. ``outcome``: "ok"; "blocked" and "asked" as it wished; "context" where it told the model
    something; "stopped" where it ended the work; "problem" where it failed, was not started, or ran too long;
    "skipped" by the user. ``text`` is its reason, message or problem for the user, empty where there is none."""

    event: str
    command: str
    outcome: Literal["ok", "blocked", "asked", "context", "stopped", "problem", "skipped"]
    text: str = ""
    item: str = ""
    """The call that it was about."""
    matcher: str = ""
    origin: str = ""
    """File of the settings, with its line where that is known."""
    exit_status: int | None = None
    duration: float = 0.0
    """Seconds."""


class HooksRunning(Tagged, frozen=True, tag="hooks_running"):
    """Hooks of an event take longer than a moment and what goes on waits for them; told once more, without
    ``commands``, when they have ended. ``run`` tells such waits apart."""

    run: int
    event: str
    commands: tuple[str, ...] = ()


class BulletLearned(Tagged, frozen=True, tag="bullet_learned"):
    """The playbook has a sentence more. It rests on ``evidence``: items of this session."""

    bullet: str
    section: str
    content: str
    evidence: tuple[str, ...] = ()


class BulletsTold(Tagged, frozen=True, tag="bullets_told"):
    """The model gets bullets of the playbook: in its prompt, with a message of the user, or with a result that
    failed (``item``). ``withheld`` applied too and were kept back, to see what happens without them."""

    place: Literal["prompt", "message", "result"]
    told: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    item: str = ""


class ToolDefinition(Struct, frozen=True):
    """A tool of a source, as the model sees it. ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    source: str


class ToolsChanged(Tagged, frozen=True, tag="tools_changed"):
    """From the next request on the model sees other tools besides swecli's own. ``added`` come at the end of the
    list, in this order; one whose name is in the list takes the place of that one. ``reason`` is a clause for the user;
    empty where it goes without saying."""

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()
    reason: str = ""


PROTOCOL_VERSION = 1


class Unknown(Struct, frozen=True):
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
    | ContextRetrieved
    | PriceSet
    | RetryScheduled
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
    | ContextSuggested
    | ItemsOffloaded
    | ContextRestored
    | PromptPrefix
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

DELTAS: tuple[type, ...] = (ItemDelta, RetryScheduled, ContextMeasured, HooksRunning)
"""Bodies that are shown but not stored."""


def is_fact(body: Body | Unknown) -> bool:
    """Whether the body is stored before the next model call."""
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
    """Whether a turn of the conversation begins with it; those of subagents do not count."""
    return isinstance(event.body, TurnStarted) and event.agent == MAIN


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
    whys = [line[index + 2 :] for index in places]
    return any(f": {why}." in reason or reason[1:].startswith(f"{why[1:]}, so it needs") for why in whys)


ResultKind = Literal["page", "output", "stored"]
"""``page``: the tool bounds itself and can be asked for another part (files, listings, edits). ``output``: what
some program or server wrote, of any length. ``stored``: it reads what left the context, so it never leaves it
again on its own."""
