"""The sandbox of a run from its settings, and what is said of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.config.paths import workspace_key
from swecli.core.config.settings import SandboxSettings
from swecli.core.protocol.blocks import TextBlock
from swecli.core.sandbox.plan import SandboxOptions, SandboxState
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox, own_code
from swecli.launch import LaunchOptions


def build_sandbox(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> Sandbox:
    """The sandbox from the settings. ``environment`` is that of commands."""
    home = os.path.realpath(Path.home())
    workspace = SandboxWorkspace(
        roots=tuple(os.path.realpath(root) for root in (options.cwd, *options.add_dirs)),
        home=home,
        environment=environment,
        own_dirs=tuple(str(path) for path in startup.paths.all),
        own_code=tuple(own_code()),
        key=workspace_key(options.cwd),
        own_names=startup.loaded.settings.approval.secret_names,
    )
    folders = Folders(startup.paths.state, startup.paths.cache if options.store else None)
    ways = sandbox_options(startup.loaded.settings.sandbox, home, ask=not options.headless)
    sandbox = Sandbox(ways, workspace, folders)
    sandbox.settled = options.settled
    return sandbox


def sandbox_options(settings: SandboxSettings, home: str, *, ask: bool) -> SandboxOptions:
    """The settings in the sandbox's form. ``ask``: whether somebody can be asked."""
    return SandboxOptions(
        mode=settings.mode,
        network=settings.network,
        unix_sockets=settings.unix_sockets,
        writable=tuple(_expanded(path, home) for path in settings.writable),
        hide=tuple(_expanded(path, home) for path in settings.hide),
        ask_outside=settings.ask_outside and ask,
    )


def examine_sandbox(options: LaunchOptions, startup: Startup) -> TextBlock:
    """One line about the sandbox of a folder; an error if it is required and not full."""
    state = sandbox_state(options, startup)
    if startup.loaded.settings.sandbox.required and state.level != "full":
        return TextBlock(
            f"Sandbox: {state.text}. swecli does not start here, because your settings require a full sandbox.", "error"
        )
    asks = "" if state.contains else ". Auto mode asks before every command that is not proven read-only."
    advice = f"{'' if asks else '.'} {state.advice}" if state.advice else ""
    return TextBlock(f"Sandbox: {state.text}{asks}{advice}", "plain" if state.contains else "warning")


def sandbox_state(options: LaunchOptions, startup: Startup) -> SandboxState:
    """Confinement of a session's commands in this folder. Takes a moment."""
    sandbox = build_sandbox(options, startup, startup.child_environment)
    state = sandbox.check()
    sandbox.close()
    return state


def _expanded(path: str, home: str) -> str:
    return os.path.normpath(home + path[1:] if path.startswith("~/") else path)
