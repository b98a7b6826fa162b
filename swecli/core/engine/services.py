"""External dependencies of a session, as one value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field

from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.instructions import Instructions
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.context_management.stored_prompt import Conditions
from swecli.core.engine.model_access import ModelAccess, ModelCatalog
from swecli.core.engine.settings import Adjustable, Settings
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.llm.types import ModelInfo
from swecli.core.permissions.types import Call, Decision, Policy, Rule
from swecli.core.ports import Asker, BlobStore, EditorFiles, Snapshots
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.events import NoticeLevel
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.tools.registry import ToolRegistry
from swecli.core.tools.run_command import RunCommand

if TYPE_CHECKING:
    from swecli.core.protocol.result import Kept


class PromptError(Exception):
    """A prompt can't be rendered; the message is one sentence that says why."""


class PromptTemplate(Struct, frozen=True):
    """An extension's prompt, sent by a slash command of this name. ``render`` turns the text after the name into the
    prompt's text, or raises ``PromptError``; ``arguments`` is a hint such as "<what> [where]"."""

    name: str
    summary: str
    render: Callable[[str], Awaitable[str]]
    arguments: str = ""
    aliases: tuple[str, ...] = ()


class Mentionable(Struct, frozen=True):
    """Something besides files that a message can attach with ``@word``, by a call of this tool."""

    word: str
    tool: str
    arguments: Mapping[str, str]
    about: str = ""
    size: int | None = None
    """Size in bytes, if its owner reports one."""


class Extension(Protocol):
    """A companion of a session that brings tools: it announces its sources to the registry, and later their tools."""

    def start(self, host: ExtensionHost) -> None:
        """Start with the session; called on the event loop. Long work runs in tasks of its own."""
        ...

    async def close(self) -> None:
        """End with the session: no process, task or connection may be left."""
        ...


class ExtensionHost(Protocol):
    """A session as seen by its extensions."""

    @property
    def tools(self) -> ToolRegistry: ...

    @property
    def asker(self) -> Asker: ...

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """Show a line to the user."""
        ...

    def tell_model(self, title: str, text: str) -> None:
        """Append a note to the conversation before the next request, or at once while idle: ``text`` for the model,
        ``title`` for the user."""
        ...

    def instruct(self, source: str, text: str) -> None:
        """Keep the instructions of a source in the conversation from the next request on; empty for none."""
        ...

    def offer(
        self, source: str, prompts: Sequence[PromptTemplate] = (), mentionables: Sequence[Mentionable] = ()
    ) -> None:
        """Replace the prompts and mentionables of a source."""
        ...


async def nothing_to_examine(model: ModelInfo | None, online: bool) -> Sequence[DisplayBlock]:
    return ()


class Time(Struct, frozen=True):
    """Time of a session, which tests replace."""

    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = lambda: 0.5
    """Full jitter of retry delays, 0..1."""


class Workspace(Struct, frozen=True):
    """Working folder of a session, and what is particular to it."""

    cwd: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]
    """For child processes, already scrubbed."""
    editor: EditorFiles | None = None
    """The user's editor, which may have unsaved files open."""
    checkpoints: Checkpoints | None = None
    """Record of changed files; without it nothing can be undone."""
    sandbox: Sandbox = field(default_factory=Sandbox.none)
    """Sandbox for commands."""
    sandbox_early: bool = False
    """Whether the sandbox is checked when the session starts rather than when a command needs it."""
    output_folder: Path | None = None
    """Folder of unnamed files with the long output of running commands; None for the system's default."""
    end_processes: Callable[[], object] = lambda: None
    """Ends leftover processes of commands; called in a thread when the session closes."""


class Store(Struct, frozen=True):
    """What is stored of a session besides its events."""

    blobs: BlobStore | None = None
    """Store of results too large for the context; without it they are cut."""
    snapshots: Snapshots | None = None
    """Store of the conversation as the model sees it; without it a session resumes from its record alone."""
    cover: Callable[[str], str] = lambda text: text
    """Masks keys in text that leaves the session for a file."""
    version: str = ""
    rename: Callable[[str], str] | None = None
    """Names the session and returns the stored name; None if the session is not stored. Blocks on the disk.

    Raises:
        ValueError: the name is not possible; a sentence.
    """
    name: Callable[[], str] = lambda: ""
    """The user's name for the session; empty without one. Blocks on the disk."""
    kept: Callable[[], Kept] = lambda: "nothing"
    """What of the session can be continued after the end of the program."""
    report_defect: Callable[[BaseException], None] = lambda error: None
    """Records an internal failure with its traceback."""


class Permissions(Struct, frozen=True):
    """What the model may do."""

    decide: Callable[[Policy, Call], Decision]
    policy: Policy = Policy()
    """Trust and sandbox, and rules that no settings change; its mode is the session's mode at start."""
    inherited: Callable[[Policy], Policy] = lambda policy: policy
    """Adds inherited settings to a policy: a subagent's gets the current rules of its session."""
    keep_rule: Callable[[str, Literal["week", "project"]], str] = lambda rule, span: "Rules are not stored here."
    """Keeps an allow rule beyond the session. Returns a sentence if that failed."""
    keep_file: Callable[[str, str], str] = lambda path, sha256: ""
    """Remembers the user's approval of a project file with this content, so that later runs need not ask again. Returns
    a sentence if that failed."""
    readable: Callable[[], tuple[str, ...]] = tuple
    """Folders outside the workspace whose files may be read unasked: those of skills."""

    def rules(self, now: Adjustable) -> tuple[Rule, ...]:
        """The rules besides those that the user granted in the session."""
        return (*self.policy.rules, *now.rules)


class InstructionFiles(Struct, frozen=True):
    """Instruction files of the prompt, and the places to look for them again. ``folders`` are those that may have one,
    ``root`` is the project's. ``quoted``: text from nested folders counts as information only. ``rules``: their rules
    count, too. ``watch``: changes are reported. ``off`` is the reason why project files are ignored, with a remedy;
    empty if they count."""

    loaded: Instructions = Instructions()
    read: Callable[[], Instructions] = Instructions
    cwd: Path = Path()
    root: Path = Path()
    folders: Sequence[Path] = ()
    quoted: bool = False
    rules: bool = True
    watch: bool = False
    off: str = ""
    own_names: tuple[str, ...] = ()
    """Patterns of the user's for names of files that are not imported."""


def agent_context(tools: ToolRegistry, prompt: str) -> ContextManager:
    return ContextManager(tools.schemas(), PromptTexts(append=prompt), special_tools=tools.special)


class Toolset(Struct, frozen=True):
    """The model's tools, and the context that its requests are made with: a part of each describes the tools."""

    tools: ToolRegistry
    context: ContextManager

    def adjust(self, now: Adjustable) -> None:
        """Adopt the settings from which they were made."""
        self.context.adjust(now.context_limits, now.advice)
        command = self.tools.get(RunCommand.name)
        if isinstance(command, RunCommand):
            command.seconds = now.command_timeout


class Services(Struct, frozen=True):
    """Everything besides the history."""

    workspace: Workspace
    toolset: Toolset
    access: ModelAccess
    permissions: Permissions
    store: Store = Store()
    settings: Settings = field(default_factory=Settings)
    catalog: ModelCatalog = ModelCatalog()
    examine: Callable[[ModelInfo | None, bool], Awaitable[Sequence[DisplayBlock]]] = nothing_to_examine
    """Report on what works and what does not, for the current model. The flag also contacts the providers."""
    time: Time = Time()
    instruction_files: InstructionFiles = InstructionFiles()
    prompt_conditions: Conditions = Conditions()
    """What decides whether a resumed session keeps its system prompt."""
    extensions: Sequence[Extension] = ()
    """Extensions that bring tools and run as long as the session."""
    extension_files: ExtensionFiles | None = None
    """Skills, Markdown commands and agent profiles."""
    context_for: Callable[[ToolRegistry, str], ContextManager] = agent_context
    """Context of a subagent with these tools and this addition to the common agent prompt."""
    parents_tokens: Callable[[], int | None] | None = None
    """In a subagent, the tokens left under the caps of its parent session; None without a cap."""
