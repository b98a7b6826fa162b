"""The section [ui]: how the terminal interface looks and what it tells the terminal."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from swecli.core.config.section import Section, Word

Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]


class UiSettings(Section):
    """The terminal interface."""

    theme: Word = "auto"
    """A theme's name; "auto" follows the terminal."""
    reduced_motion: bool = False
    """Whether nothing turns or moves by itself: no spinner, and the seconds of a turn once a second."""
    density: Density = "usual"
    """How much is shown of everything at first; Ctrl+O goes on from there."""
    diff: DiffForm = "auto"
    """split shows old and new text side by side, unified one below the other; auto splits from 160 columns on."""
    notify: Notify = "auto"
    """How the terminal is told, while it has not the focus, that a turn has ended or a question waits; auto takes what
    the terminal is known to show, or else its bell."""
    mouse: bool = True
    """Whether the program has the mouse (wheel, selection); without it the terminal selects text by itself. Alt+M
    changes it meanwhile."""
    title: bool = True
    """Whether the terminal's title shows the folder and what is going on."""
    progress: Progress = "auto"
    """Whether the terminal shows in its own bar that work is going on; auto where it is known to."""
    status_line: str | None = None
    """A shell command whose first line of output replaces the status bar; it gets the state as JSON."""
    status_line_timeout: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 2.0
    """Seconds that this command may take."""
