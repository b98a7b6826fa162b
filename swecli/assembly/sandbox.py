"""From settings to the sandbox of a session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.config.paths import workspace_key
from swecli.core.config.sandbox_settings import SandboxSettings
from swecli.core.protocol.blocks import TextBlock
from swecli.core.sandbox.machine import Folders, Ground
from swecli.core.sandbox.sandbox import CommandSandbox, Sandbox, own_code
from swecli.core.sandbox.values import Options, SandboxState
from swecli.core.workspace.environment import scrubbed_environment
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError


def build_sandbox(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> CommandSandbox:
    """The sandbox that the settings ask for. ``environment`` is what commands get."""
    home = os.path.realpath(Path.home())
    ground = Ground(
        roots=tuple(os.path.realpath(root) for root in (options.cwd, *options.add_dirs)),
        home=home,
        environment=environment,
        own_dirs=tuple(str(path) for path in startup.paths.all),
        own_code=tuple(own_code()),
        key=workspace_key(options.cwd),
    )
    folders = Folders(startup.paths.state, startup.paths.cache if options.store else None)
    return Sandbox(wishes(startup.loaded.settings.sandbox, home, ask=not options.headless), ground, folders)


def wishes(settings: SandboxSettings, home: str, *, ask: bool) -> Options:
    """The settings as the sandbox takes them. ``ask``: whether there is anybody to ask."""
    return Options(
        mode=settings.mode,
        network=settings.network,
        writable=tuple(_expanded(path, home) for path in settings.writable),
        hide=tuple(_expanded(path, home) for path in settings.hide),
        ask_outside=settings.ask_outside and ask,
    )


def require_sandbox(options: LaunchOptions, startup: Startup) -> None:
    """Refuse to start where the user demands a full sandbox and there is none. Takes a moment, if so.

    Raises:
        StartError: it is off or only partial.
    """
    if not startup.loaded.settings.sandbox.required:
        return
    state = sandbox_state(options, startup)
    if state.level != "full":
        raise StartError(
            f"sandbox.required is set, and the sandbox is {state.text}. Nothing was started. `swecli doctor` tells "
            "more; docs/sandbox.md says what each system needs.",
            ExitCode.SANDBOX,
        )


def examine_sandbox(options: LaunchOptions, startup: Startup) -> TextBlock:
    """One line about the sandbox of a folder; an error where it is required and not full."""
    state = sandbox_state(options, startup)
    if startup.loaded.settings.sandbox.required and state.level != "full":
        return TextBlock(f"Sandbox: {state.text}. It is required, so swecli does not start here.", "error")
    asks = "" if state.level == "full" else ". Auto mode asks before every command that is not proven to only read."
    return TextBlock(f"Sandbox: {state.text}{asks}", "plain" if state.level == "full" else "warning")


def sandbox_state(options: LaunchOptions, startup: Startup) -> SandboxState:
    """How far commands of a session in this folder would be contained. Takes a moment."""
    sandbox = build_sandbox(options, startup, scrubbed_environment(startup.environment))
    state = sandbox.check()
    sandbox.close()
    return state


def _expanded(path: str, home: str) -> str:
    return os.path.normpath(home + path[1:] if path.startswith("~/") else path)
