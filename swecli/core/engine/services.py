"""What a session needs from outside, as one value that ``app.py`` fills."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.context_management.budget import BLOCK_ADVICE, COMPACT_ADVICE, Limits
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.instructions import Instructions
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.engine.spending_limits import SpendingLimits
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelClient, ModelInfo, ProviderError
from swecli.core.memory.places import MemoryPlaces
from swecli.core.permissions.types import Call, Decision, Policy, Rule
from swecli.core.ports import Asker, BlobStore, CodeServers, EditorFiles, Snapshots
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.events import Mode, NoticeLevel, Price, RotKind
from swecli.core.protocol.messages import Usage
from swecli.core.retrieval.project import ProjectIndex
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.tools.registry import ToolRegistry
from swecli.core.tools.run_command import TIMEOUT, RunCommand
from swecli.core.workspace.process_limit import PROCESSES

if TYPE_CHECKING:
    from swecli.core.hooks.hook import Hook
    from swecli.core.hooks.runner import Hooks
    from swecli.core.playbook.store import Playbooks

ModelFactory = Callable[[str], ModelClient]
"""Makes a client for ``provider/name`` or an alias. Raises ``ModelUnavailable`` with what to do."""


class ModelUnavailable(Exception):
    """No client can be made: no such provider, no key. The message says what to do."""


class WindowKnowledge(Protocol):
    """What can be found out about a model's context window while a session runs. What is found is in the client's
    ``info`` when a method returns."""

    def may_tell(self, client: ModelClient) -> bool:
        """Whether asking the model's server may bring anything."""
        ...

    async def ask(self, client: ModelClient) -> bool:
        """Ask the model's server, if that may bring anything. True when more is known than before."""
        ...

    def recall(self, client: ModelClient, window: int) -> None:
        """The server told this window in an earlier run: it holds until the server is asked, unless better is known."""
        ...

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        """Take in the numbers of an error. Returns a sentence for the user, empty when there is no news."""
        ...


class NoWindowKnowledge:
    """Nothing can be found out."""

    def may_tell(self, client: ModelClient) -> bool:
        return False

    async def ask(self, client: ModelClient) -> bool:
        return False

    def recall(self, client: ModelClient, window: int) -> None:
        """Not of use."""

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        return ""


class PromptError(Exception):
    """A prompt can't be made; the message is one sentence that says why."""


class PromptTemplate(Struct, frozen=True):
    """A prompt that an extension has, sent by a slash command of this name. ``render`` gives its text for what follows
    the name, and raises ``PromptError``; ``arguments`` is a hint such as "<what> [where]"."""

    name: str
    summary: str
    render: Callable[[str], Awaitable[str]]
    arguments: str = ""
    aliases: tuple[str, ...] = ()


class Mentionable(Struct, frozen=True):
    """Something besides files that a message can attach with ``@word``: by a call of this tool."""

    word: str
    tool: str
    arguments: Mapping[str, str]
    about: str = ""
    size: int | None = None
    """Bytes, as far as whoever has it says so beforehand."""


class Extension(Protocol):
    """Something that runs beside a session and brings tools: it tells the registry which source it expects, and later
    which tools that has."""

    def start(self, host: ExtensionHost) -> None:
        """The session has begun; called on the event loop. What takes time goes on in tasks of its own."""
        ...

    async def close(self) -> None:
        """The session ends: no process, task or connection may be left."""
        ...


class ExtensionHost(Protocol):
    """What a session gives to its extensions."""

    @property
    def tools(self) -> ToolRegistry: ...

    @property
    def asker(self) -> Asker: ...

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """A line for the user."""
        ...

    def tell_model(self, title: str, text: str) -> None:
        """Append a note to the conversation, before the next request; at once while nothing runs: ``text`` for the
        model, ``title`` for the user."""
        ...

    def offer(
        self, source: str, prompts: Sequence[PromptTemplate] = (), mentionables: Sequence[Mentionable] = ()
    ) -> None:
        """These are the prompts of a source, and what of it can be mentioned, in place of those before."""
        ...


async def no_offers() -> Sequence[ModelOffer]:
    return ()


async def nothing_to_examine(model: ModelInfo | None, online: bool) -> Sequence[DisplayBlock]:
    return ()


def no_price(model: str, usage: Usage) -> str | None:
    """Price of a response where no price is known: what the provider itself reported, else None."""
    return str(usage.cost) if usage.cost is not None else None


class Workspace(Struct, frozen=True):
    """Where a session works. ``environment`` is for child processes, already scrubbed."""

    cwd: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]


class MemoryOptions(Struct, frozen=True):
    """``notes`` is the folder in which session notes are kept; None: they are not, and ``why_no_notes`` says why where
    there would be some. ``title`` begins a new file of them; ``cover`` hides keys and passwords."""

    places: MemoryPlaces = MemoryPlaces(None, None)
    notes: Path | None = None
    why_no_notes: str = ""
    title: str = ""
    cover: Callable[[str], str] = str
    turn_on: Callable[[], tuple[str, MemoryOptions | None]] = lambda: ("This folder can't be trusted from here.", None)
    """Trusts the folder, where nothing but its memories hangs on that. Returns what was done, as a sentence, and what
    holds from now on; None where nothing changes. Waits for the disk."""
    max_file_bytes: int = 65_536
    plans: Path | None = None
    """Where plans are written, in the project; None where none may be."""


class InstructionFiles(Struct, frozen=True):
    """The instruction files of the prompt, and how to look for them again. ``folders`` are those that may have one,
    ``root`` the project's. ``quoted``: what folders below say is information. ``watch``: changes are reported.
    ``off`` is why files of the project don't count, and what changes that; empty where they do."""

    loaded: Instructions = Instructions()
    read: Callable[[], Instructions] = Instructions
    cwd: Path = Path()
    root: Path = Path()
    folders: Sequence[Path] = ()
    quoted: bool = False
    watch: bool = False
    off: str = ""


class TurnLimits(Struct, frozen=True):
    """Caps of one run; None = no cap."""

    max_steps: int | None = None
    max_tokens: int | None = None
    """Input and output tokens of the whole session."""
    max_price: Decimal | None = None
    """US dollars of the whole session. Once a price is unknown, nothing more is asked."""
    max_retries: int = 5
    spending: SpendingLimits = SpendingLimits()
    """Budgets that the user is asked about."""


class AgentProfile(Struct, frozen=True):
    """A subagent's prompt, and what it has. ``tools`` are names of tools, None for all; ``mode`` is None for that
    of the session, ``model`` empty for that of the session. ``worktree``: it works in a git work tree of its own."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    worktree: bool = False


class SubagentOptions(Struct, frozen=True):
    """``at_once`` subagents work at the same time. Each may make ``max_steps`` requests of ``max_tokens`` and
    ``max_price`` (US dollars) in all, None = no cap; ``result_tokens`` of what it reports come back. ``model`` answers
    for them where their profile names none; None = that of the session."""

    at_once: int = 4
    max_steps: int | None = 50
    max_tokens: int | None = 3_000_000
    max_price: Decimal | None = None
    result_tokens: int = 1_500
    model: str | None = None


class SentinelOptions(Struct, frozen=True):
    """Whether the context is watched, and what the user wants to hear of no more."""

    enabled: bool = True
    silenced: tuple[RotKind, ...] = ()


class Adjustable(Struct, frozen=True):
    """What a session takes over from changed settings while it runs. A turn goes on with it from its next step on;
    subagents that work keep what they began with, but for the rules."""

    context: Limits = Limits()
    advice: tuple[str, ...] = (COMPACT_ADVICE, *BLOCK_ADVICE)
    """What the user can do about a full context, as clauses."""
    compaction: CompactionOptions = CompactionOptions()
    max_steps: int | None = None
    offload_threshold: int = 4_096
    process_limit: int = PROCESSES
    command_timeout: float = TIMEOUT
    tool_deferral: float = 0.1
    subagents: SubagentOptions = SubagentOptions()
    attribution: bool = False
    rules: tuple[Rule, ...] = ()
    """Of files and flags, without what was granted."""
    fallback: tuple[str, ...] = ()
    side_models: Mapping[str, str] = field(default_factory=lambda: {})
    sentinel: SentinelOptions = SentinelOptions()


def agent_context(tools: ToolRegistry, prompt: str) -> ContextManager:
    return ContextManager(tools.schemas(), PromptTexts(append=prompt), special_tools=tools.special)


class OuterLimits(Struct, frozen=True):
    """What a subagent's session has of the limits of the session that it works in. ``cap`` gives the cap that is
    reached there, as a reason and its kind, ``budget`` the budget that is used up, as a clause, empty while none is;
    ``tokens`` gives those that may still be used, None for no cap."""

    cap: Callable[[], tuple[str, str] | None]
    budget: Callable[[], Awaitable[str]]
    tokens: Callable[[], int | None]


class Services(Struct):
    """Everything besides the history. Time and sleep are injected for tests. Only ``adjust`` changes it."""

    workspace: Workspace
    tools: ToolRegistry
    context: ContextManager
    make_client: ModelFactory
    decide: Callable[[Policy, Call], Decision]
    policy: Policy = Policy()
    """Rules, trust and sandbox; the mode in it is the session's mode at start."""
    inherited: Callable[[Policy], Policy] = lambda policy: policy
    """A policy with what holds here from elsewhere: a subagent's has the rules of its session as they are now."""
    limits: TurnLimits = TurnLimits()
    compaction: CompactionOptions = CompactionOptions()
    blobs: BlobStore | None = None
    """Where results go that are too large for the context; without it they are cut."""
    snapshots: Snapshots | None = None
    """Where the conversation is kept as the model sees it; without it a session resumes from its record alone."""
    cover: Callable[[str], str] = lambda text: text
    """Puts stars in place of keys in what leaves the session for a file."""
    offload_threshold: int = 4_096
    """Bytes up to which output stays in the context."""
    process_limit: int = PROCESSES
    """Processes and threads that a command may have at the same time."""
    editor: EditorFiles | None = None
    """The user's editor, where it has files open that may not be saved."""
    code: CodeServers | None = None
    """Tells what an edit broke, and where names are; None where no language server can be."""
    checkpoints: Checkpoints | None = None
    """The record of changed files; without it nothing can be taken back."""
    keep_rule: Callable[[str, Literal["week", "project"]], str] = lambda rule, span: "Rules are not stored here."
    """Keeps an allow rule beyond the session. Returns a sentence where that failed."""
    keep_file: Callable[[str, str], str] = lambda path, sha256: ""
    """Remembers that the user approved a file of the project with this content, so that later runs need not ask what it
    is. Returns a sentence where that failed."""
    reached: set[str] = field(default_factory=set[str])
    """Servers of models that answered in this run, whatever they said. Subagents share it."""
    price: Callable[[str, Usage], str | None] = no_price
    keep_price: Callable[[str, Price], str] | None = None
    """Writes the price of a model (``provider/name``) into the user's settings, where it counts from now on. Returns
    where it was written; raises ValueError. None: prices can't be set here."""
    sentinel: SentinelOptions = SentinelOptions()
    keep_silenced: Callable[[Sequence[RotKind]], str] | None = None
    """Writes into the user's settings what the sentinel suggests no more, in any session. Returns where it was written;
    raises ValueError. May take the time of a disk. None: it can't be set here."""
    windows: WindowKnowledge = field(default_factory=NoWindowKnowledge)
    effort: Callable[[str], str | None] = lambda model: None
    """How much the user wants a model (``provider/name``) to think; None = as the provider does."""
    offers: Callable[[], Awaitable[Sequence[ModelOffer]]] = no_offers
    """Models that the user can choose from."""
    unlisted: Callable[[], Sequence[str]] = lambda: ()
    """Sentences about servers that named no models when ``offers`` was asked last."""
    examine: Callable[[ModelInfo | None, bool], Awaitable[Sequence[DisplayBlock]]] = nothing_to_examine
    """What works and what does not, for the current model. The flag: providers are asked, too."""
    fallback: Sequence[str] = ()
    """Models (``provider/name``) that answer in this order while the user's own is overloaded."""
    side_models: Mapping[str, str] = field(default_factory=lambda: {})
    """Models for work beside the conversation, by the work's name: "summary" and "small"."""
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = lambda: 0.5
    """0..1, full jitter of retry delays."""
    version: str = ""
    sandbox: Sandbox = field(default_factory=Sandbox.none)
    """What commands are contained with."""
    sandbox_early: bool = False
    """Whether it is looked for when the session starts, and not only when a command needs it."""
    rename: Callable[[str], str] | None = None
    """Gives the session a name, and returns it as it is kept; None where it is not stored. May take the time of a disk.

    Raises:
        ValueError: it can't have that name; a sentence.
    """
    name: Callable[[], str] = lambda: ""
    """What the user called the session; empty where it has no name. May take the time of a disk."""
    output_folder: Path | None = None
    """Where long output of commands is kept while they run, in files without names; None for the system's place."""
    end_processes: Callable[[], object] = lambda: None
    """Ends what commands left running; called in a thread when the session closes."""
    report_defect: Callable[[BaseException], None] = lambda error: None
    """Where an internal failure is written with its traceback."""
    safe_mode: bool = False
    """Whether the user left out what files besides swecli's own settings bring."""
    instruction_files: InstructionFiles = InstructionFiles()
    memory: MemoryOptions = MemoryOptions()
    hooks: Hooks | None = None
    """The user's programs that run at events of the session; None where there are none, and then they cost nothing."""
    adjustable: Callable[[], Adjustable] | None = None
    """Reads the settings again; called in a thread. None where nothing can be changed.

    Raises:
        ValueError: they can't be read; a sentence.
    """
    allow_hook: Callable[[Hook], Hook] = lambda hook: hook
    """Remembers that the user lets a hook run as it is now, and gives it back so. May take the time of a disk.

    Raises:
        OSError: it can't be kept.
    """
    extensions: Sequence[Extension] = ()
    """What brings tools, and runs as long as the session."""
    attribution: bool = False
    """Whether commits name swecli and the model."""
    playbook: Callable[[], Playbooks] | None = None
    """Gives what was learned about the project, called in a thread; None where nothing is to be told or learned."""
    project: ProjectIndex | None = None
    """The index of the workspace, from which messages of the user get pointers; None where that is off."""
    retrieval_model: bool = False
    """Whether the small model names words to look for besides those of the message."""
    extension_files: ExtensionFiles | None = None
    """Skills, Markdown commands and agent profiles."""
    tool_deferral: float = 0.1
    """Share of the effective window that descriptions of tools may take before some are withheld."""
    tools_wait: float = 30.0
    """Seconds that a request waits for expected tools."""
    subagents: SubagentOptions = SubagentOptions()
    profiles: Callable[[], Sequence[AgentProfile]] = tuple
    """The agents that a task can be given to, as they are now."""
    context_for: Callable[[ToolRegistry, str], ContextManager] = agent_context
    """The context of a subagent with these tools, whose prompt has this besides what every agent's has."""
    sandbox_for: Callable[[Path], Sandbox] = lambda folder: Sandbox.none()
    """What contains the commands of a subagent that works in this folder."""
    worktrees: Path | None = None
    """Where work trees of subagents are made; None where none can be."""
    outer: OuterLimits | None = None
    """In a subagent: the limits of its session."""

    def adjust(self, values: Adjustable) -> None:
        """Take over changed settings; the context and the tool for commands are adjusted with it."""
        self.context.adjust(values.context, values.advice)
        self.compaction = values.compaction
        self.limits = replace(self.limits, max_steps=values.max_steps)
        self.offload_threshold = values.offload_threshold
        self.process_limit = values.process_limit
        self.tool_deferral = values.tool_deferral
        self.subagents = values.subagents
        self.attribution = values.attribution
        self.policy = replace(self.policy, rules=values.rules)
        self.fallback = values.fallback
        self.side_models = values.side_models
        self.sentinel = values.sentinel
        command = self.tools.get(RunCommand.name)
        if isinstance(command, RunCommand):
            command.seconds = values.command_timeout

    def adopt_memory(self, options: MemoryOptions) -> None:
        """Take over other places of memory, for the model's tool too."""
        from swecli.core.tools.memory import MemoryTool

        self.memory = options
        tool = self.tools.get(MemoryTool.name)
        if isinstance(tool, MemoryTool):
            tool.places = options.places


class Connection:
    """Holds the client of the model that answers, and those of models for work beside the conversation. A new
    model replaces the one before, whose client is closed in the background."""

    def __init__(self, make_client: ModelFactory, side_models: Mapping[str, str] | None = None) -> None:
        self._make_client = make_client
        self._side_models = dict(side_models or {})
        self._side: dict[str, ModelClient] = {}
        self._replaced: list[ModelClient] = []
        """Clients for work beside that other models do now; one may still be answering."""
        self._closing: set[asyncio.Task[None]] = set()
        self.client: ModelClient | None = None

    def connect(self, model: str) -> str | None:
        """Use ``provider/name`` from now on. Returns what is wrong, or None when it worked; the previous
        model stays when it did not."""
        try:
            client = self._make_client(model)
        except ModelUnavailable as error:
            return str(error)
        previous, self.client = self.client, client
        if previous is not None:
            task = asyncio.create_task(previous.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return None

    def beside(self, work: str) -> ModelClient | None:
        """The client for work of this name, if it has a model of its own. It stays open for the session.

        Raises:
            ModelUnavailable: it has one, and no client can be made.
        """
        model = self._side_models.get(work)
        if model is not None and work not in self._side:
            self._side[work] = self._make_client(model)
        return self._side.get(work)

    def use_beside(self, side_models: Mapping[str, str]) -> None:
        """Use these models for work beside the conversation from now on."""
        for work in [work for work in self._side if side_models.get(work) != self._side_models.get(work)]:
            self._replaced.append(self._side.pop(work))
        self._side_models = dict(side_models)

    async def close(self) -> None:
        clients = [*self._side.values(), *self._replaced, *([self.client] if self.client is not None else [])]
        await asyncio.gather(*(client.close() for client in clients), *self._closing, return_exceptions=True)
