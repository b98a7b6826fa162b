"""What /keys shows: keys as display blocks."""

from __future__ import annotations

from collections.abc import Mapping

from swecli.core.config.key_actions import ACTIONS, Place
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.tui.keymap import Keymap

PLACES: Mapping[Place, str] = {
    "everywhere": "Everywhere",
    "prompt": "In the prompt",
    "list": "In lists",
    "screen": "In a screen such as settings",
    "transcript": "Walking through the transcript (Tab on an empty prompt)",
    "approval": "In an approval",
}


def key_blocks(keymap: Keymap, words: str = "") -> tuple[DisplayBlock, ...]:
    """Every action with its name in the settings; with ``words`` only those that contain them."""
    needle = words.casefold()
    tables: list[DisplayBlock] = []
    for place, title in PLACES.items():
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
