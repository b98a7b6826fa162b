"""What /help shows: keys and commands as display blocks."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.commands.base import SlashCommand
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock

KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send; while the model works: steer it at its next step"),
    ("Tab", "complete; while the model works: queue for after this turn"),
    ("Tab, on an empty prompt", "walk through the transcript: Up Down, Enter opens, y copies, Esc back"),
    ("Shift+Enter, Ctrl+J, \\ Enter", "new line"),
    ("Esc", "close what is open, clear the selection, interrupt"),
    ("Ctrl+C", "copy the selection, interrupt or clear; twice quits"),
    ("Ctrl+D", "quit, on an empty prompt"),
    ("Shift+Tab", "next mode: default, accept-edits, plan, auto"),
    ("Up, Down", "history at the first and last line; Up takes a waiting message back"),
    ("Ctrl+R", "search the history"),
    ("Ctrl+O", "show everything in full, or short again"),
    ("Ctrl+T", "todos"),
    ("Ctrl+F", "search the transcript"),
    ("PgUp, PgDn, Home, End", "scroll; End follows again"),
    ("Ctrl+A E K U W Y, Alt+B F D", "edit the line; Ctrl+_ takes back"),
    ("Ctrl+L, Ctrl+Z", "redraw, suspend"),
    ("/ @ !", "commands, files, run a shell command yourself"),
)


def blocks(commands: Sequence[SlashCommand]) -> tuple[DisplayBlock, ...]:
    """Tables of keys and commands."""
    rows = tuple(
        (
            f"/{command.name} {command.arguments}".rstrip(),
            command.summary + (f" ({', '.join('/' + alias for alias in command.aliases)})" if command.aliases else ""),
        )
        for command in commands
    )
    return (
        TableBlock(("Key", "What it does"), KEYS, "Keys"),
        TableBlock(("Command", "What it does"), rows, "Commands"),
        TextBlock("In an approval: y once, a always for this session, n no with a word, Esc no.", "dim"),
    )
