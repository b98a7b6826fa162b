"""Data read once at start: paths, settings, trust, and notices about them for the user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.config.load import ConfigError, Loaded, load
from swecli.core.config.paths import Paths, project_folder, user_paths
from swecli.core.config.trust import PendingItem, TrustReading, TrustState, read_trust
from swecli.core.hooks.reading import HookReading, read_hooks
from swecli.core.workspace.process import scrubbed_environment, secret_values
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.core.extensions.plugins import Plugin


class Startup(Struct, frozen=True):
    """``environment`` is the process environment at start."""

    paths: Paths
    loaded: Loaded
    trust: TrustReading
    environment: Mapping[str, str]
    hooks: HookReading = HookReading()
    plugins: tuple[Plugin, ...] = ()
    """Those that the user added, as allowed."""
    plugin_problems: tuple[str, ...] = ()

    @property
    def notices(self) -> tuple[str, ...]:
        trust = [self.trust.notice] if self.trust.notice else []
        return (*trust, *self.loaded.notices, *self.plugin_problems, *self.hooks.notices)

    @property
    def pending(self) -> tuple[PendingItem, ...]:
        """Requests of the project's settings without the user's consent."""
        return (*self.loaded.pending, *self.hooks.pending)

    @property
    def key_variables(self) -> frozenset[str]:
        """Variables that hold a provider's key according to the settings, whatever their names."""
        providers = self.loaded.settings.providers.values()
        return frozenset(provider.api_key_env for provider in providers if provider.api_key_env)

    @property
    def child_environment(self) -> dict[str, str]:
        """Environment of programs that swecli starts."""
        return scrubbed_environment(self.environment, keys=self.key_variables)

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must never be written: secrets of the environment, and values of providers' headers."""
        providers = self.loaded.settings.providers.values()
        headers = (value for provider in providers for value in provider.headers.values())
        return secret_values(self.environment, self.key_variables) | frozenset(headers)


def read_startup(
    cwd: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    *,
    trust: TrustState | None = None,
    more: Path | None = None,
    safe: bool = False,
    vouched: bool = False,
) -> Startup:
    """Read everything for a workspace. ``trust`` replaces the stored one for this run; ``more`` is a settings file for
    it, and ``safe`` omits everything that could prevent a start. ``vouched``: trust covers hooks, too.

    Raises:
        StartError: a settings file is broken; the message names file and line.
    """
    paths = user_paths(environment)
    reading = read_trust(paths.data, cwd)
    if trust is not None:
        reading = replace(reading, state=trust)
    try:
        loaded = load(
            paths,
            cwd,
            environment=environment,
            trusted=reading.trusts,
            accepted=reading.accepted,
            flags=flags,
            more=more,
            safe=safe,
        )
    except ConfigError as error:
        raise StartError(_explained(error), ExitCode.CONFIG) from error
    plugins, problems = ((), ()) if safe else _plugins(paths)
    home = environment.get("HOME", "")
    hooks = read_hooks(cwd, loaded, reading, paths, home, plugins=plugins, safe=safe, vouched=vouched)
    return Startup(paths, loaded, reading, environment, hooks, plugins, problems)


def _explained(error: ConfigError) -> str:
    """The error, and for settings that can't be read why swecli does not go on without them."""
    if not any(problem.unreadable for problem in error.problems):
        return str(error)
    advice = "make it readable, or use --safe-mode to ignore the project's settings"
    return f"{error}\nSettings may hold rules that deny access, so swecli does not start without them: {advice}."


def _plugins(paths: Paths) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The plugins that the user added, and sentences about unusable ones. Imports nothing if there never was one."""
    if not os.path.lexists(paths.data / "plugins"):
        return (), ()
    from swecli.core.plugins.store import PluginStore

    return PluginStore(paths.data).installed()


def startup_of(options: LaunchOptions, environment: Mapping[str, str], *, with_flags: bool = True) -> Startup:
    """Startup for the options of a run; without their flags: as in the files.

    Raises:
        StartError: a settings file is broken.
    """
    flags = flags_of(options) if with_flags else {}
    unasked = (options.headless or options.plain) and not options.asked
    return read_startup(
        options.cwd,
        environment,
        flags,
        trust=options.trust,
        more=options.settings,
        safe=options.safe_mode,
        vouched=unasked and options.trust == "session",
    )


def flags_of(options: LaunchOptions) -> dict[str, object]:
    """The settings that the command line overrides, as dotted keys."""
    flags: dict[str, object] = {
        "model.name": options.model,
        "model.effort": options.effort,
        "approval.mode": options.mode,
        "agent.max_steps": options.max_steps,
    }
    return {key: value for key, value in flags.items() if value is not None}


def theme_folders(options: LaunchOptions, startup: Startup) -> tuple[Path, ...]:
    """Folders of the user's themes and of a trusted project's; of two themes with the same name the first counts."""
    if options.safe_mode:
        return ()
    project = (project_folder(options.cwd) / "themes",) if startup.trust.trusts else ()
    return (startup.paths.config / "themes", *project)
