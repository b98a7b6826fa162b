"""The sentinel in a run: its companion, its command, and the settings file that it writes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.core.protocol.context_events import RotKind
    from swecli.features.sentinel.companion import Keep, Sentinel


def feature(keep_silenced: Keep | None = None) -> Feature:
    """``keep_silenced`` as ``keep`` of ``Sentinel``."""
    from swecli.core.engine.feature import Feature
    from swecli.features.sentinel.companion import Sentinel

    def companions(core: Core) -> Sequence[Sentinel]:
        parts = core.recorder, core.services.toolset.context, core.connection, core.plans
        return (Sentinel(*parts, core.services.settings, core.session.follow_settings, keep_silenced),)

    return Feature(companions)


def _keep(environment: Mapping[str, str], kinds: Sequence[RotKind]) -> str:
    from swecli.core.config.change import set_value  # only to silence suggestions
    from swecli.core.config.load import ConfigError
    from swecli.core.config.paths import user_file

    file = user_file(environment)
    try:
        set_value(file, "context.sentinel_silenced", list(kinds))
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return str(file)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.sentinel.command import SENTINEL

    return (SENTINEL,)


WIRING = Wiring(lambda launch: feature(partial(_keep, launch.environment)), _commands)
