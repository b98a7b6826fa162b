"""Slash commands without a screen: what they show becomes the text of the result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult, Screen
from swecli.commands.registry import COMMANDS, Invocation, UnknownCommand, parse
from swecli.commands.running import run_command
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command showed. ``failed``: it says itself that it is an error."""

    text: str
    failed: bool = False


def meaning(prompt: str) -> Invocation | UnknownCommand | None:
    """The slash command that a message is; None for text, such as one that begins with an existing path."""
    found = parse(prompt)
    return None if isinstance(found, UnknownCommand) and Path(f"/{found.name}").exists() else found


async def run(session: SessionPort, invocation: Invocation) -> Shown:
    """Run a command to its end."""
    result = await run_command(invocation.command, session, invocation.arguments)
    if result.offer is not None:
        session.send(result.offer.command)
    blocks = result.blocks or result.instead or _instead_of(result, session)
    text = "\n".join(line for block in blocks for line in block_lines(block))
    return Shown(text, any(isinstance(block, TextBlock) and block.style == "error" for block in blocks))


def _instead_of(result: CommandResult, session: SessionPort) -> tuple[DisplayBlock, ...]:
    """What stands for a screen that can't be shown here."""
    screens: dict[Screen, DisplayBlock] = {
        "help": TableBlock(("command", "what it does"), tuple((f"/{c.name}", c.summary) for c in COMMANDS)),
        "pick_mode": TextBlock(f"The mode is {session.view.mode}; --permission-mode chooses another one."),
    }
    return (screens[result.screen],) if result.screen in screens else ()
