"""What the command line asks for, as one value; and the error that a start can end in."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.exit_codes import ExitCode

if TYPE_CHECKING:
    from swecli.core.mcp.definitions import ServerDefinition

OutputFormat = Literal["text", "json", "stream-json", "transcript"]
InputFormat = Literal["text", "stream-json"]
PermissionMode = Literal["default", "accept-edits", "plan", "auto"]


class StartError(Exception):
    """The program can't start. The message is one line for the user: what happened and what to do."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class LaunchOptions(Struct, frozen=True):
    """Options of a run with a session. None and empty values mean: what the settings say.

    ``cwd`` and ``add_dirs`` are absolute and exist. ``prompt`` is the first message, empty for none.
    """

    cwd: Path
    add_dirs: tuple[Path, ...] = ()
    prompt: str = ""

    needs_model: bool = True
    """Headless only: whether the run can do nothing without a model, as all but slash commands."""
    mentions: tuple[str, ...] | None = None
    """What of the workspace the prompt attaches; None: what it mentions with ``@``. Text that was piped in mentions
    nothing."""

    headless: bool = False
    """No screen: nobody can be asked unless ``input_format`` brings answers."""
    plain: bool = False
    """Lines instead of a screen."""
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"

    model: str | None = None
    """``provider/name``."""
    base_url: str | None = None
    address: str = ""
    """Where ``model`` was asked by the session before this one, which it takes the place of."""
    effort: str | None = None

    mode: PermissionMode | None = None
    yolo: bool = False
    allowed_tools: tuple[str, ...] = ()
    """Permission rules that allow."""
    disallowed_tools: tuple[str, ...] = ()
    """Permission rules that deny."""

    trust: Literal["session", "declined"] | None = None
    """Stands in for the stored trust in the workspace, for this run."""
    asked: bool = False
    """A person was asked about trust, and about what the project wants besides: what they did not allow waits."""

    worktree: str | None = None
    """Work in a git work tree of this name instead of ``cwd``; empty for a name that is chosen."""
    continue_newest: bool = False
    """Continue the newest session of this workspace."""
    resume: str | None = None
    """Session to continue: its id or the beginning of it."""
    bundle: Path | None = None
    """A handoff bundle that a new session goes on from."""
    fork: bool = False
    """Continue a copy of the session under an id of its own; the session itself stays as it is."""
    pick_session: bool = False
    """Begin with the list of stored sessions."""
    all_folders: bool = False
    """The list begins with sessions of all folders, not only of this one."""
    compact_dry_run: bool = False
    """Headless only: print what a compaction would do, and change nothing."""
    dry_run: bool = False
    """Headless only: print the request that the prompt would lead to, and send nothing."""
    look_only: bool = False
    """Look at a stored session without continuing it: nothing of it is changed."""
    store: bool = True
    """False: nothing of the session is stored."""

    max_steps: int | None = None
    """Model steps of a turn."""
    max_tokens: int | None = None
    """Input and output tokens of the session."""
    max_price: Decimal | None = None
    """US dollars of the session."""

    settings: Path | None = None
    """A settings file for this run: above the others, below flags."""
    safe_mode: bool = False
    """Nothing of the project's settings counts, nor keys, themes and a status line command of one's own."""

    system_prompt: str | None = None
    """Replaces the system prompt."""
    append_system_prompt: str | None = None
    """Is added to the system prompt."""

    servers: tuple[ServerDefinition, ...] = ()
    """MCP servers beside those of settings and files, before which they count."""
    servers_later: frozenset[str] = frozenset()
    """Servers of the project that the user was asked about, and did not decide about: they wait."""
    json_schema: str | None = None
    """Headless only: the JSON Schema that the answer has to match, as JSON text."""

    debug: bool = False
    """Internal failures are shown with their traceback."""
    script: Path | None = None
    """Script for the scripted model, which then answers instead of a provider."""
    banner: str = ""
    """Shown once at the start."""
    approve_all: bool = False
    """Headless only: answer each permission question with yes (the demonstration, on its own copy)."""


def fresh_start(options: LaunchOptions) -> LaunchOptions:
    """The same for a new session of the same run: without what the first one began with."""
    return replace(options, prompt="", resume=None, continue_newest=False, fork=False, bundle=None, pick_session=False)
