"""Which key does what: the table of actions with the user's changes, asked by place and by action."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from swecli.core.config.key_actions import ACTIONS, BY_NAME, Place, resolve

if TYPE_CHECKING:
    from textual.widget import Widget

_SHOWN = {
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "escape": "Esc",
    "underscore": "_",
    "alt+backspace": "Alt+Backspace",
}


class Keymap:
    """Keys by action and actions by key. It is made with the defaults before the settings are read."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, ...]] = {}
        self._actions: dict[Place, dict[str, str]] = {}
        self.adopt({})

    def adopt(self, changes: Mapping[str, Sequence[str]]) -> None:
        """Take over what the settings say of some actions."""
        self._keys = resolve({name: tuple(keys) for name, keys in changes.items()})
        self._actions = {}
        for name, keys in self._keys.items():
            for key in keys:
                self._actions.setdefault(BY_NAME[name].place, {}).setdefault(event_name(key), name)

    def action(self, place: Place, key: str) -> str | None:
        """What a key (as events name it) does in a place."""
        return self._actions.get(place, {}).get(key)

    def freed(self, place: Place, key: str) -> bool:
        """Whether the key did something in this place until the user gave it away."""
        return self.action(place, key) is None and any(
            key in map(event_name, action.keys) for action in ACTIONS if action.place == place
        )

    def keys(self, action: str) -> tuple[str, ...]:
        """The keys of an action, as events name them."""
        return tuple(event_name(key) for key in self._keys[action])

    def shown(self, action: str) -> str:
        """The keys of an action for people: "Ctrl+J, Shift+Enter"; "(no key)" where it has none."""
        return ", ".join(shown(key) for key in self._keys[action]) or "(no key)"


def keymap_of(widget: Widget) -> Keymap:
    """The application's keys; the defaults in an application that has none."""
    found = getattr(widget.app, "keymap", None)
    return found if isinstance(found, Keymap) else Keymap()


def event_name(key: str) -> str:
    """The name that key events have for a key of the settings."""
    *modifiers, name = key.split("+") if key != "+" else [key]
    if len(name) == 1 and not name.isalnum():
        import unicodedata

        name = unicodedata.name(name).lower().replace("-", "_").replace(" ", "_")
        name = {"solidus": "slash", "low_line": "underscore", "commercial_at": "at", "hyphen_minus": "minus"}.get(
            name, name
        )
    return "+".join((*modifiers, name))


def shown(key: str) -> str:
    """A key for people: Ctrl+O, PgUp, y."""
    if key in _SHOWN:
        return _SHOWN[key]
    if len(key) == 1:
        return key
    *modifiers, name = key.split("+")
    name = _SHOWN.get(name) or (name.upper() if len(name) == 1 or re.fullmatch(r"f\d+", name) else name.capitalize())
    return "+".join([*(part.capitalize() for part in modifiers), name])
