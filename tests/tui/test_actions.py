"""What slash commands open."""

from __future__ import annotations

from typing import get_args

import pytest

from swecli.commands.base import Screen
from swecli.core.protocol.blocks import TextBlock
from tests.support.inspected import Inspected
from tests.tui.screens.test_context_screens import prepared
from tests.tui.support import running


@pytest.mark.parametrize("name", get_args(Screen))
async def test_everything_that_a_command_can_ask_for_is_there(name: Screen) -> None:
    async with running(session=prepared(Inspected().fill(8))) as it:
        it.app.main.transcript.show((TextBlock("What /clear takes away."),))
        await it.shows("What /clear takes away.")
        before = it.screen()
        it.app.actions.open(name)
        await it.until(lambda: it.screen() != before or not it.app.is_running)
