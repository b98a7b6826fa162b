"""What is read once at start: paths, settings, trust, and what the user has to be told about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swecli.core.config.load import ConfigError, Loaded, load
from swecli.core.config.paths import Paths, user_paths
from swecli.core.config.trust import TrustReading, read_trust
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError


@dataclass(frozen=True, slots=True)
class Startup:
    """``environment`` is the process environment as it was at start."""

    paths: Paths
    loaded: Loaded
    trust: TrustReading
    environment: Mapping[str, str]

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for the user."""
        return (*([self.trust.notice] if self.trust.notice else []), *self.loaded.notices)


def read_startup(cwd: Path, environment: Mapping[str, str], flags: Mapping[str, object]) -> Startup:
    """Read everything for a workspace.

    Raises:
        StartError: a settings file is broken; the message names file and line.
    """
    paths = user_paths(environment)
    trust = read_trust(paths.data, cwd)
    try:
        loaded = load(paths, cwd, environment=environment, trusted=trust.state == "trusted", flags=flags)
    except ConfigError as error:
        raise StartError(str(error), ExitCode.CONFIG) from error
    return Startup(paths, loaded, trust, environment)


def flags_of(options: LaunchOptions) -> dict[str, object]:
    """The settings that the command line overrides, as dotted keys."""
    flags: dict[str, object] = {
        "model.name": options.model,
        "model.effort": options.effort,
        "approval.mode": options.mode,
        "agent.max_steps": options.max_steps,
    }
    return {key: value for key, value in flags.items() if value is not None}
