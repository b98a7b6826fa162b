"""The themes that a setting can name: only the interface knows them."""

from __future__ import annotations

from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.config.paths import project_folder
from swecli.launch import LaunchOptions


def theme_folders(options: LaunchOptions, startup: Startup) -> tuple[Path, ...]:
    """Where themes of the user and of a trusted project are; of two with the same name the first counts."""
    if options.safe_mode:
        return ()
    project = (project_folder(options.cwd) / "themes",) if startup.trust.trusts else ()
    return (startup.paths.config / "themes", *project)


def unknown_theme(name: str, options: LaunchOptions, startup: Startup) -> str:
    """What is wrong with a theme's name, going on after the setting's; empty where there is such a theme."""
    from difflib import get_close_matches

    from swecli.tui.themes.files import known, read_folders
    from swecli.tui.themes.library import AUTO, Library

    library = Library()
    library.add((*known(), *read_folders(theme_folders(options, startup))[0]))
    if any(library.resolve(name, dark) is not None for dark in (True, False)):
        return ""
    near = get_close_matches(name, [AUTO, *library.names], 1, 0.6)
    meant = f" Did you mean {near[0]}?" if near else ""
    return (
        f"must be a theme's name, and there is no theme {name!r}.{meant} There are {', '.join([AUTO, *library.names])}"
    )
