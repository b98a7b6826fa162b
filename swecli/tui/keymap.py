"""Key bindings: the table of actions with the user's changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.binding import Binding

from swecli.core.config.key_actions import ACTIONS, BY_NAME, Place, resolve

if TYPE_CHECKING:
    from textual.widget import Widget

    from swecli.core.protocol.blocks import DisplayBlock


_SHOWN = {
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "escape": "Esc",
    "underscore": "_",
    "alt+backspace": "Alt+Backspace",
}


_LINE_EDITING = frozenset(("alt+b", "alt+f", "alt+d", "alt+backspace", "alt+delete", "alt+enter"))
"""Keys of all lines that are edited, whatever the settings bind."""


class Keymap:
    """Keys by action and actions by key; starts with the defaults until settings are read."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, ...]] = {}
        self._actions: dict[Place, dict[str, str]] = {}
        self.adopt({})

    def adopt(self, changes: Mapping[str, Sequence[str]]) -> None:
        """Apply the settings' key changes."""
        self._keys = resolve({name: tuple(keys) for name, keys in changes.items()})
        actions: dict[Place, dict[str, str]] = {}
        for name, keys in self._keys.items():
            for key in keys:
                actions.setdefault(BY_NAME[name].place, {}).setdefault(event_name(key), name)
        self._actions = actions  # at once: the thread that reads keys looks too

    def action(self, place: Place, key: str) -> str | None:
        """Action of a key (as events name it) in a place. Enter with other modifiers than the usual ones is a line
        break too, so that no terminal's form of it is lost."""
        newline = place == "prompt" and key.endswith("+enter") and self._keys["newline"]
        if newline and key not in BY_NAME["newline"].keys and not any(key in keys for keys in self._actions.values()):
            return "newline"
        return self._actions.get(place, {}).get(key)

    def is_bound(self, key: str) -> bool:
        """Whether the key has an action anywhere."""
        return key in _LINE_EDITING or any(key in actions for actions in self._actions.values())

    def before_others(self, key: str) -> bool:
        """Whether the key acts before the focused widget gets it."""
        action = self.action("everywhere", key)
        return action is not None and action not in _AFTER_OTHERS

    def freed(self, place: Place, key: str) -> bool:
        """Whether the key had an action in this place until the user unbound it."""
        return self.action(place, key) is None and any(
            key in map(event_name, action.keys) for action in ACTIONS if action.place == place
        )

    def keys(self, action: str) -> tuple[str, ...]:
        """Keys of an action, as events name them."""
        return tuple(event_name(key) for key in self._keys[action])

    def shown(self, action: str) -> str:
        """Keys of an action for display: "Ctrl+J, Shift+Enter"; "(no key)" if it has none."""
        return ", ".join(shown(key) for key in self._keys[action]) or "(no key)"


def keymap_of(widget: Widget) -> Keymap:
    """The application's keys, or the defaults if it has none."""
    keymap = getattr(widget.app, "keymap", None)
    return keymap if isinstance(keymap, Keymap) else Keymap()


def event_name(key: str) -> str:
    """Event name of a key in the settings."""
    *modifiers, name = key.split("+") if key != "+" else [key]
    if len(name) == 1 and not name.isalnum():
        import unicodedata

        name = unicodedata.name(name).lower().replace("-", "_").replace(" ", "_")
        name = {
            "solidus": "slash",
            "low_line": "underscore",
            "commercial_at": "at",
            "hyphen_minus": "minus",
            "plus_sign": "plus",
        }.get(name, name)
    return "+".join((*modifiers, name))


def shown(key: str) -> str:
    """Display name of a key: Ctrl+O, PgUp, y."""
    if key in _SHOWN:
        return _SHOWN[key]
    if len(key) == 1:
        return key
    *modifiers, name = key.split("+")
    name = _SHOWN.get(name) or (name.upper() if len(name) == 1 or re.fullmatch(r"f\d+", name) else name.capitalize())
    return "+".join([*(part.capitalize() for part in modifiers), name])


_EVERYWHERE = {
    "cancel": "cancel",
    "close": "escape",
    "next_mode": "next_mode",
    "expand": "expand",
    "todos": "todos",
    "background": "background",
    "find": "find",
    "take_suggestion": "take_suggestion",
    "silence_suggestion": "silence_suggestion",
    "external_editor": "external_editor",
    "redraw": "redraw",
    "mouse": "mouse",
    "suspend": "suspend_process",
    "page_up": "scroll('page_up')",
    "page_down": "scroll('page_down')",
    "scroll_home": "scroll('home')",
    "scroll_end": "scroll('end')",
    "turn_previous": "scroll('turn_previous')",
    "turn_next": "scroll('turn_next')",
}
"""App action for each key table action that works everywhere."""

_AFTER_OTHERS = frozenset(("close", "page_up", "page_down", "scroll_home", "scroll_end"))
"""Actions that the focused widget may handle first."""

_TRANSCRIPT = {
    "block_previous": "cursor_previous",
    "block_next": "cursor_next",
    "block_toggle": "toggle_block",
    "block_copy": "copy_block",
    "block_editor": "edit_block",
    "block_undo": "undo_block",
    "block_context": "context_of_block",
    "find_next": "find_next",
    "find_previous": "find_previous",
    "transcript_page_up": "page_up",
    "transcript_page_down": "page_down",
    "transcript_turn_previous": "turn_previous",
    "transcript_turn_next": "turn_next",
    "transcript_home": "scroll_home",
    "transcript_end": "scroll_end",
}


def everywhere(keymap: Keymap) -> list[Binding]:
    return [
        Binding(key, action, show=False, priority=name not in _AFTER_OTHERS)
        for name, action in _EVERYWHERE.items()
        for key in keymap.keys(name)
    ]


def transcript(keymap: Keymap) -> list[Binding]:
    keys = [(key, action) for name, action in _TRANSCRIPT.items() for key in keymap.keys(name)]
    keys += [(key, "leave") for key in keymap.keys("close")]
    return [Binding(key, action, show=False) for key, action in keys]


PLACES: Mapping[Place, str] = {
    "everywhere": "Everywhere",
    "prompt": "In the prompt",
    "list": "In lists",
    "screen": "In screens such as settings",
    "context": "In /context, /compact and /wire",
    "transcript": "Browsing the transcript (Tab on an empty prompt)",
    "approval": "In an approval",
}


def key_blocks(keymap: Keymap, words: str = "") -> tuple[DisplayBlock, ...]:
    """Every action with its settings name; with ``words`` only the matching ones."""
    from swecli.core.protocol.blocks import TableBlock, TextBlock  # not needed by the first frame

    needle = words.casefold()
    tables: list[DisplayBlock] = []
    for context, title in PLACES.items():
        rows = tuple(
            (keymap.shown(action.name), action.name, action.meaning)
            for action in ACTIONS
            if action.place == context
            and needle in f"{keymap.shown(action.name)} {action.name} {action.meaning}".casefold()
        )
        if rows:
            tables.append(TableBlock(("Key", "Name", "What it does"), rows, title))
    hint = 'Change them in the [keys] settings, for example: expand = ["f2", "ctrl+o"]'
    return (*tables, TextBlock(hint, "dim")) if tables else (TextBlock(f"No key matches {words}."),)
