"""/mode: what runs without asking."""

from __future__ import annotations

from typing import get_args

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.commands import SetMode
from swecli.core.protocol.events import Mode

MODE_MEANINGS: dict[Mode, str] = {
    "default": "what only reads the workspace runs, everything else asks",
    "accept-edits": "edits in the workspace run as well, commands ask",
    "plan": "reading only, everything that changes something is refused",
    "auto": "like accept-edits; commands run unasked only in a sandbox",
}


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    if not arguments:
        return CommandResult(screen="pick_mode")
    wanted = arguments.lower().replace("_", "-").replace(" ", "-")
    matches = [mode for mode in get_args(Mode) if mode == wanted] or [mode for mode in get_args(Mode) if wanted in mode]
    if len(matches) != 1:
        return CommandResult.text(f"There is no mode {arguments}. The modes are: {', '.join(get_args(Mode))}.", "error")
    mode: Mode = matches[0]
    port.send(SetMode(mode))
    return CommandResult.text(f"Mode {mode}: {MODE_MEANINGS[mode]}.")


MODE = SlashCommand("mode", "Show or set what runs without asking", _run, arguments="[mode]")
