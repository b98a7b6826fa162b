"""What the user has set for the interface, as plain values. The composition root reads them from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Preferences:
    """Everything has the value that it has without any settings."""

    theme: str = "auto"
    """A theme's name, the name of a pair of themes, or "auto"."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of the actions that were changed."""
    theme_folders: tuple[Path, ...] = ()
    """Folders with theme files; of two themes with the same name the one of the earlier folder counts."""
