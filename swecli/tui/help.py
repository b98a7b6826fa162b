"""What /help and /keys show: keys and commands as display blocks."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.commands.base import SlashCommand
from swecli.core.config.key_actions import ACTIONS, Place
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.tui.keymap import Keymap

_PLACES: dict[Place, str] = {
    "everywhere": "Everywhere",
    "prompt": "In the prompt",
    "list": "In lists",
    "transcript": "Walking through the transcript (Tab on an empty prompt)",
    "approval": "In an approval",
}


def blocks(commands: Sequence[SlashCommand], keymap: Keymap) -> tuple[DisplayBlock, ...]:
    """Keys and commands."""
    rows = tuple(
        (
            f"/{command.name} {command.arguments}".rstrip(),
            command.summary + (f" ({', '.join('/' + alias for alias in command.aliases)})" if command.aliases else ""),
        )
        for command in commands
    )
    return (
        *_keys(keymap, ("everywhere", "prompt", "transcript", "approval")),
        TableBlock(("Command", "What it does"), rows, "Commands"),
        TextBlock("/ commands · @ files · ! runs a shell command yourself · /keys tells how to change keys", "dim"),
    )


def key_blocks(keymap: Keymap, words: str = "") -> tuple[DisplayBlock, ...]:
    """Every action with its name in the settings; with ``words`` only those that contain them."""
    needle = words.casefold()
    tables: list[DisplayBlock] = []
    for place, title in _PLACES.items():
        rows = tuple(
            (keymap.shown(action.name), action.name, action.meaning)
            for action in ACTIONS
            if action.place == place
            and needle in f"{keymap.shown(action.name)} {action.name} {action.meaning}".casefold()
        )
        if rows:
            tables.append(TableBlock(("Key", "Name", "What it does"), rows, title))
    hint = 'The section [keys] of the settings changes them, for example: expand = ["f2", "ctrl+o"]'
    return (*tables, TextBlock(hint, "dim")) if tables else (TextBlock(f"No key does anything with {words}."),)


def _keys(keymap: Keymap, places: Sequence[Place]) -> list[DisplayBlock]:
    return [
        TableBlock(
            ("Key", "What it does"),
            tuple((keymap.shown(action.name), action.meaning) for action in ACTIONS if action.place == place),
            _PLACES[place],
        )
        for place in places
    ]
