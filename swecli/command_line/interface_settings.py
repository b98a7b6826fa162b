"""The settings as the interface takes them, and the way back into the user's file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from swecli.assembly.startup import startup_of
from swecli.assembly.themes import theme_folders
from swecli.core.config.change import set_value
from swecli.core.config.paths import user_paths
from swecli.core.config.read_toml import ConfigError
from swecli.launch import LaunchOptions, StartError
from swecli.tui.preferences import Preferences


def preferences(options: LaunchOptions) -> Preferences:
    """What the user has set for the interface. Where the settings can't be read, the defaults: opening the session
    says why."""
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
        density=ui.density,
        diff=ui.diff,
        notify=ui.notify,
        mouse=ui.mouse,
        title=ui.title,
        progress=ui.progress,
        status_line=ui.status_line,
        status_line_timeout=ui.status_line_timeout,
    )


def user_file() -> Path:
    """The user's settings file."""
    named = os.environ.get("SWECLI_CONFIG", "")
    return Path(os.path.expanduser(named)).absolute() if named else user_paths(os.environ).config / "config.toml"


def remember(key: str, value: str) -> str:
    """Write a setting into the user's file. Returns the file's name.

    Raises:
        ValueError: it was not written; one sentence.
    """
    path = user_file()
    try:
        set_value(path, key, value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return str(path)


def keep_model(options: LaunchOptions, ref: str) -> str:
    """Make ``provider/name`` the user's default model. Returns a sentence for the user.

    Raises:
        ValueError: it is not done, as only flags of this run lead to the model, or the file can't be written.
    """
    flag = "--base-url" if options.base_url else "--settings" if options.settings is not None else ""
    if flag:
        raise ValueError(f"{flag} holds for one run, so {ref} was not made your default.")
    with contextlib.suppress(StartError):
        if known := startup_of(options, dict(os.environ), with_flags=False).loaded.settings.model.name:
            return f"Your default model is still {known}; `swecli config set model.name PROVIDER/NAME` changes it."
    path = remember("model.name", ref)
    return (
        f"{ref} is your default model from now on: model.name in {path}. `swecli config set model.name PROVIDER/NAME` "
        "changes it, -m chooses another one for a run."
    )
