"""Keys that mean the same everywhere. What only the prompt or a panel knows is handled there."""

from __future__ import annotations

from textual.binding import Binding, BindingType

BINDINGS: list[BindingType] = [
    Binding("ctrl+c", "cancel", show=False, priority=True),
    Binding("escape", "escape", show=False),
    Binding("shift+tab", "next_mode", show=False, priority=True),
    Binding("ctrl+l", "redraw", show=False, priority=True),
    Binding("ctrl+o", "expand", show=False, priority=True),
    Binding("ctrl+t", "todos", show=False, priority=True),
    Binding("ctrl+f", "find", show=False, priority=True),
    Binding("ctrl+z", "suspend_process", show=False, priority=True),
    Binding("pageup", "scroll('page_up')", show=False),
    Binding("pagedown", "scroll('page_down')", show=False),
    Binding("home", "scroll('home')", show=False),
    Binding("end", "scroll('end')", show=False),
]
