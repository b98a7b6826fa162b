"""Events: everything that happens in a session, as one closed union. Those of the context and of requests to the user
are defined in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Literal

from msgspec import Struct, structs

from swecli.core.protocol.blocks import DisplayBlock, Todo
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.context_events import (
    CacheBreak,
    CompactionCompleted,
    CompactionFailed,
    CompactionRedone,
    CompactionStarted,
    CompactionUndone,
    ContextEdited,
    ContextEditPlanned,
    ContextMeasured,
    ContextRestored,
    ContextSuggested,
    ItemsOffloaded,
    ModelPlanned,
    PromptPrefix,
    SystemPromptSent,
)
from swecli.core.protocol.messages import (
    ImagePart,
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
from swecli.core.protocol.request_events import (
    PermissionRequested,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    RuleApplied,
    RuleRevoked,
    UntrustedContent,
)

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
    """The model's server has read so many tokens of the prompt, those in its cache included. ``total`` is 0 until
    it begins: it works on earlier requests if it has told its ``slots``, otherwise it may also have stopped."""

    type: ClassVar[Literal["prompt_progress"]] = "prompt_progress"
    read: int = 0
    total: int = 0
    slots: int = 0
    """How many requests the server works on at once, all of them earlier ones; 0 if it does not say."""


class CallProgress(Tagged, frozen=True, tag="call_progress"):
    """The model writes a call as text, ``characters`` of it so far; its item begins when it is whole. ``name`` is that
    of its tool, empty until the model has written it."""

    type: ClassVar[Literal["call_progress"]] = "call_progress"
    name: str = ""
    characters: int = 0


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
    | CallProgress
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

DELTAS: tuple[type, ...] = (
    *(ItemDelta, RetryScheduled, PromptProgress, CallProgress),
    *(ContextMeasured, HooksRunning),
)
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


ResultKind = Literal["page", "output", "stored"]
"""``page``: the tool bounds its result and can return other parts (files, listings, edits). ``output``: text of any
length from a program or server. ``stored``: a result that reads offloaded content and is never offloaded
itself."""
