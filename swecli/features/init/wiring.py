"""The command /init."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.init.command import INIT

    return (INIT,)


WIRING = Wiring(commands=_commands, before="context")
