"""The command line's request as one value, and the error of a failed start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.protocol.modes import Mode
from swecli.exit_codes import ExitCode

if TYPE_CHECKING:
    from swecli.core.config.load import Loaded
    from swecli.core.config.paths import Paths
    from swecli.core.config.trust import TrustReading
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.extensions.watch import ExtensionFiles
    from swecli.core.hooks.hook import Hook
    from swecli.core.mcp.definitions import ServerDefinition
    from swecli.core.sandbox.sandbox import Sandbox

OutputFormat = Literal["text", "json", "stream-json", "transcript"]
InputFormat = Literal["text", "stream-json"]


class StartError(Exception):
    """The program can't start. The message is one line for the user: the problem and the remedy."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILURE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class LaunchOptions(Struct, frozen=True):
    """Options of a run with a session. None and empty values mean: from the settings.

    ``cwd`` and ``add_dirs`` are absolute and exist. ``prompt`` is the first message, empty for none.
    """

    cwd: Path
    add_dirs: tuple[Path, ...] = ()
    prompt: str = ""

    needs_model: bool = True
    """Headless only: whether the run is useless without a model; a slash command is not."""
    mentions: tuple[str, ...] | None = None
    """Parts of the workspace that the prompt attaches; None: its mentions with ``@``. Piped text mentions nothing."""

    headless: bool = False
    """No screen: the run is unattended unless ``input_format`` supplies answers."""
    plain: bool = False
    """Lines instead of a screen."""
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"

    model: str | None = None
    """``provider/name``."""
    base_url: str | None = None
    address: str = ""
    """Address of ``model`` in the session that this one replaces."""
    effort: str | None = None

    mode: Mode | None = None
    yolo: bool = False
    allowed_tools: tuple[str, ...] = ()
    """Permission rules that allow."""
    disallowed_tools: tuple[str, ...] = ()
    """Permission rules that deny."""

    trust: Literal["session", "declined"] | None = None
    """Replaces the stored trust in the workspace for this run."""
    asked: bool = False
    """A person was asked about trust and the project's other requests: those not allowed remain pending."""

    worktree: str | None = None
    """Work in a git work tree of this name instead of ``cwd``; empty for an automatic name."""
    continue_newest: bool = False
    """Continue the newest session of this workspace."""
    resume: str | None = None
    """Session to continue: its id or the beginning of it."""
    bundle: Path | None = None
    """A handoff bundle that a new session continues from."""
    fork: bool = False
    """Continue a copy of the session under its own id; the session itself stays unchanged."""
    pick_session: bool = False
    """Begin with the list of stored sessions."""
    all_folders: bool = False
    """The list begins with sessions of all folders rather than of this one."""
    compact_dry_run: bool = False
    """Headless only: print the effect of a compaction, and change nothing."""
    dry_run: bool = False
    """Headless only: print the request for the prompt, and send nothing."""
    look_only: bool = False
    """Look at a stored session without continuing or changing it."""
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
    """Ignore the project's settings, and the user's keys, themes and status line command."""

    system_prompt: str | None = None
    """Replaces the system prompt."""
    append_system_prompt: str | None = None
    """Appended to the system prompt."""

    servers: tuple[ServerDefinition, ...] = ()
    """MCP servers besides those of settings and files, with precedence over them."""
    servers_later: frozenset[str] = frozenset()
    """Servers of the project about which the user postponed the decision: they remain pending."""
    settled: tuple[str, ...] = ()
    """Files that commands of a killed swecli had planted and that were removed or restored at this start."""
    json_schema: str | None = None
    """Headless only: the JSON Schema for the answer, as JSON text."""

    debug: bool = False
    """Show internal failures with their traceback."""
    script: Path | None = None
    """Script for the scripted model, which replaces a provider."""
    banner: str = ""
    """Shown once at the start."""
    approve_all: bool = False
    """Headless only: approve each permission request (the demonstration, on its own copy)."""


class Launch(Struct, frozen=True):
    """A run as its features see it: what the user wants, and what was read at the start."""

    options: LaunchOptions
    paths: Paths
    loaded: Loaded
    trust: TrustReading
    environment: Mapping[str, str]
    """That of the process."""
    child_environment: Mapping[str, str]
    """That of programs which it starts: without secrets, and marked."""
    sandbox: Sandbox
    sandbox_for: Callable[[Path], Sandbox]
    """The same for another folder."""
    extension_files: ExtensionFiles
    secrets: frozenset[str]
    """Values that must never be written."""
    hooks: Sequence[Hook] = ()
    """Those of all settings, with what the user allowed."""
    plugins: Sequence[Plugin] = ()
    """Those that the user added."""


def folder_option(folder: Path) -> str:
    """How a command line names the folder of a session, with a space before; empty for the present one."""
    if folder == Path.cwd():
        return ""
    import shlex

    return f" -C {shlex.quote(str(folder))}"


def fresh_start(options: LaunchOptions) -> LaunchOptions:
    """Options for a new session of the same run, without those for the beginning of the first one."""
    return replace(options, prompt="", resume=None, continue_newest=False, fork=False, bundle=None, pick_session=False)
