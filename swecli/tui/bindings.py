"""Keys that mean the same everywhere, as Textual's bindings. What only the prompt or a panel knows is handled there."""

from __future__ import annotations

from textual.binding import Binding

from swecli.tui.keymap import Keymap

_EVERYWHERE = {
    "cancel": "cancel",
    "close": "escape",
    "next_mode": "next_mode",
    "expand": "expand",
    "todos": "todos",
    "background": "background",
    "find": "find",
    "external_editor": "external_editor",
    "redraw": "redraw",
    "mouse": "mouse",
    "suspend": "suspend_process",
    "page_up": "scroll('page_up')",
    "page_down": "scroll('page_down')",
    "scroll_home": "scroll('home')",
    "scroll_end": "scroll('end')",
}
"""What the app does for an action of the key table."""

_AFTER_OTHERS = frozenset(("close", "page_up", "page_down", "scroll_home", "scroll_end"))
"""Actions that whatever has the focus may take first."""

_TRANSCRIPT = {
    "block_previous": "cursor_previous",
    "block_next": "cursor_next",
    "block_toggle": "toggle_block",
    "block_copy": "copy_block",
    "block_editor": "edit_block",
    "find_next": "find_next",
    "find_previous": "find_previous",
    "transcript_page_up": "page_up",
    "transcript_page_down": "page_down",
    "transcript_home": "scroll_home",
    "transcript_end": "scroll_end",
}


def everywhere(keymap: Keymap) -> list[Binding]:
    """The bindings of the app."""
    return [
        Binding(key, action, show=False, priority=name not in _AFTER_OTHERS)
        for name, action in _EVERYWHERE.items()
        for key in keymap.keys(name)
    ]


def transcript(keymap: Keymap) -> list[Binding]:
    """The bindings of the transcript while it has the focus."""
    keys = [(key, action) for name, action in _TRANSCRIPT.items() for key in keymap.keys(name)]
    keys += [(key, "leave") for key in keymap.keys("close")]
    return [Binding(key, action, show=False) for key, action in keys]
