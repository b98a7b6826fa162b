"""What Esc and Ctrl+C do next: the first of several things that there is to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

QUIT_WINDOW = 1.0
"""Seconds in which a second Ctrl+C on an empty prompt quits."""

EscapeStep = Literal["overlay", "panel", "selection", "interrupt", "nothing"]
CancelStep = Literal["copy", "quit", "overlay", "panel", "interrupt", "clear", "arm"]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is open, selected, typed and running. ``armed`` is how many seconds ago Ctrl+C was pressed on an
    empty prompt, None if it was not or something happened since."""

    overlay: bool = False
    panel: bool = False
    approval: bool = False
    selection: bool = False
    busy: bool = False
    text: bool = False
    armed: float | None = None


def escape(now: Situation) -> EscapeStep:
    """Esc never does two things: it closes, then clears, and only then interrupts."""
    if now.overlay:
        return "overlay"
    if now.panel:
        return "panel"
    if now.selection:
        return "selection"
    return "interrupt" if now.busy else "nothing"


def cancel(now: Situation) -> CancelStep:
    """Ctrl+C copies a selection; twice on an empty prompt it quits, whatever the session does."""
    if now.selection:
        return "copy"
    if now.armed is not None and now.armed <= QUIT_WINDOW and not now.text:
        return "quit"
    if now.overlay:
        return "overlay"
    if now.panel and not now.approval:
        return "panel"
    if now.busy:
        return "interrupt"
    return "clear" if now.text else "arm"
