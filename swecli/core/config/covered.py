"""What trust in a workspace would make swecli read: names only, nothing is opened."""

from __future__ import annotations

import os
from pathlib import Path

from swecli.core.config.paths import PROJECT_FOLDER
from swecli.core.config.trust import trust_key

INSTRUCTION_FILES = ("OPENCLI.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md")
OTHER_FILES = (".mcp.json",)
MAX_NAMES = 200
_HARMLESS = frozenset((".gitignore", "logs"))


def covered_by_trust(directory: Path) -> tuple[str, ...]:
    """Relative names of the settings, instructions, hooks and the like of the workspace, for the user to see before
    the question. Empty where trust would make no difference. Links are named and not followed."""
    key = trust_key(directory)
    start = Path(os.path.realpath(directory))
    folders = [start]
    while folders[-1] != key and key in folders[-1].parents:
        folders.append(folders[-1].parent)
    found: list[str] = []
    for folder in reversed(folders):
        found += (os.path.relpath(folder / name, start) for name in _in(folder))
    return tuple(found[:MAX_NAMES])


def _in(folder: Path) -> list[str]:
    entries = _entries(folder, (*INSTRUCTION_FILES, *OTHER_FILES, PROJECT_FOLDER))
    names: list[str] = []
    for name, is_directory in sorted(entries.items()):
        if name == PROJECT_FOLDER and is_directory:
            names += (f"{name}/{inner}" for inner in _inside(folder / name))
        else:
            names.append(name)
    return names


def _inside(folder: Path) -> list[str]:
    """The project's own folder, with how many there are in each folder of it."""
    names: list[str] = []
    for name, is_directory in sorted(_entries(folder, None).items()):
        if name in _HARMLESS:
            continue
        count = len(_entries(folder / name, None)) if is_directory else 0
        if count or not is_directory:
            names.append(f"{name}/ ({count})" if is_directory else name)
    return names


def _entries(folder: Path, wanted: tuple[str, ...] | None) -> dict[str, bool]:
    """Names in a directory, each with whether it is a directory itself."""
    found: dict[str, bool] = {}
    try:
        if wanted is not None:
            for name in wanted:
                path = folder / name
                if os.path.lexists(path):
                    found[name] = path.is_dir() and not path.is_symlink()
            return found
        with os.scandir(folder) as entries:
            for entry in entries:
                if len(found) >= MAX_NAMES:
                    break
                found[entry.name] = entry.is_dir(follow_symlinks=False)
    except OSError:
        return {}
    return found
