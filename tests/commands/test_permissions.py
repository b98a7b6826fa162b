"""/permissions where there is no screen."""

from __future__ import annotations

from swecli.commands.screens import PERMISSIONS
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import TextBlock
from tests.commands.support import CommandSession


async def test_rules_that_answers_allowed_are_named() -> None:
    port = CommandSession()
    port.view.rules = (Rule("allow", "Edit(/notes.txt)", "session", "always, turn 1"),)
    shown = (await PERMISSIONS.run(port, "")).instead  # type: ignore[arg-type]
    texts = [block.text for block in shown if isinstance(block, TextBlock)]
    assert texts[0] == "Allowed by your answers in this session: Edit(/notes.txt)."
    assert "`swecli permissions` lists" in texts[1]
