"""The settings of the interface, and those that it changes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from swecli.launch import LaunchOptions

Notify = Literal["auto", "bell", "osc9", "osc777", "off"]
Density = Literal["short", "usual", "full"]
DiffForm = Literal["auto", "unified", "split"]
Progress = Literal["auto", "on", "off"]
Glyphs = Literal["auto", "unicode", "ascii"]
Editing = Literal["usual", "vim"]


class Preferences(Struct, frozen=True):
    """Interface settings; the defaults are those of an empty configuration."""

    theme: str = "auto"
    """A theme's name, the name of a pair of themes, or "auto"."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Keys of rebound actions."""
    theme_folders: tuple[Path, ...] = ()
    """Folders with theme files; on equal names the earlier folder wins."""
    reduced_motion: bool = False
    """Suppresses animations."""
    glyphs: Glyphs = "auto"
    density: Density = "usual"
    diff: DiffForm = "auto"
    editing: Editing = "usual"
    key_variables: frozenset[str] = frozenset()
    """Variables that hold keys according to the settings, whatever their names."""
    large_message: float = 0.25
    """Share of the window above which sending a message asks first."""
    forecast: bool = True
    """Whether to forecast the next request while the user types."""
    notify: Notify = "auto"
    mouse: bool = True
    title: bool = True
    progress: Progress = "auto"
    status_line: str | None = None
    """A shell command whose output replaces the status bar."""
    status_line_timeout: float = 2.0
    """Seconds."""


def read_preferences(options: LaunchOptions) -> Preferences:
    """The user's settings of the interface; the defaults if they can't be read, an error that opening the session
    reports."""
    from swecli.assembly.startup import startup_of, theme_folders
    from swecli.launch import StartError

    try:
        startup = startup_of(options, dict(os.environ), with_flags=False)
    except StartError:
        return Preferences()
    ui = startup.loaded.settings.ui
    return Preferences(
        keys=startup.loaded.settings.keys.changes,
        theme=ui.theme,
        theme_folders=theme_folders(options, startup),
        reduced_motion=ui.reduced_motion,
        glyphs=ui.glyphs,
        density=ui.density,
        diff=ui.diff,
        editing=ui.editing,
        key_variables=startup.key_variables,
        large_message=ui.large_message,
        forecast=ui.forecast,
        notify=ui.notify,
        mouse=ui.mouse,
        title=ui.title,
        progress=ui.progress,
        status_line=ui.status_line,
        status_line_timeout=ui.status_line_timeout,
    )


def remember(key: str, value: str) -> str:
    """Write a setting to the user's file. Returns the file's name.

    Raises:
        ValueError: it was not written; one sentence.
    """
    from swecli.core.config.change import set_value
    from swecli.core.config.load import ConfigError
    from swecli.core.config.paths import user_file

    path = user_file(os.environ)
    try:
        set_value(path, key, value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return str(path)


def keep_model(options: LaunchOptions, ref: str) -> str:
    """Make ``provider/name`` the user's default model. Returns a sentence for the user.

    Raises:
        ValueError: nothing was changed: only flags of this run reach the model, another file than the user's sets
            the model for this folder, or the file can't be written.
    """
    from swecli.assembly.startup import startup_of
    from swecli.launch import StartError

    flag = "--base-url" if options.base_url else "--settings" if options.settings is not None else ""
    if flag:
        raise ValueError(f"{flag} applies to this run only, so {ref} did not become your default.")
    with contextlib.suppress(StartError):
        loaded = startup_of(options, dict(os.environ), with_flags=False).loaded
        if loaded.settings.model.name == ref:
            return ""
        origin = loaded.origins.get(("model", "name"))
        if origin is not None and origin.layer not in ("default", "user"):
            raise ValueError(f"{origin} sets {loaded.settings.model.name} for new sessions.")
    remember("model.name", ref)
    return "Saved as default. -m overrides it."
