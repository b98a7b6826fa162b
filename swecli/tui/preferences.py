"""What the user has set for the interface, as plain values. The composition root reads them from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class Preferences:
    """Everything has the value that it has without any settings."""

    theme: str = "auto"
    """A theme's name, the name of a pair of themes, or "auto"."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of the actions that were changed."""
    theme_folders: tuple[Path, ...] = ()
    """Folders with theme files; of two themes with the same name the one of the earlier folder counts."""
    reduced_motion: bool = False
    """Nothing turns or moves by itself."""
    density: Density = "usual"
    diff: DiffForm = "auto"
    notify: Notify = "auto"
    mouse: bool = True
    title: bool = True
    progress: Progress = "auto"
    status_line: str | None = None
    """A shell command whose output replaces the status bar."""
    status_line_timeout: float = 2.0
    """Seconds."""
