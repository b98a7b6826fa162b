"""The settings of the interface, and those that it changes."""

from __future__ import annotations

import contextlib
import os

from swecli.assembly.startup import startup_of, theme_folders
from swecli.core.config.load import ConfigError
from swecli.launch import LaunchOptions, StartError
from swecli.tui.backend import Preferences


def preferences(options: LaunchOptions) -> Preferences:
    """The user's settings of the interface; the defaults if they can't be read, an error that opening the session
    reports."""
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
