"""What Textual takes from the environment, set for the moment in which it looks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from swecli.tui.themes.depth import colour_system, depth


@contextlib.contextmanager
def textual_settings(environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Settings that Textual reads from the environment while it is imported. They are taken back afterwards,
    so that no child process inherits them; NO_COLOR, which Textual removes, is put back as well."""
    environ = os.environ if environ is None else environ
    wanted = {
        "TEXTUAL_ANIMATIONS": "none",
        "TEXTUAL_SMOOTH_SCROLL": "0",
        "TEXTUAL_COLOR_SYSTEM": colour_system(depth(environ)),
        "TEXTUAL_THEME": None,
        "TEXTUAL_PRESS": None,
        "TEXTUAL_SCREENSHOT": None,
        "TEXTUAL_ALLOW_SIGNALS": None,
        "ESCDELAY": environ.get("ESCDELAY", "50"),
    }
    kept = {name: os.environ.get(name) for name in (*wanted, "NO_COLOR")}
    _set(wanted)
    try:
        yield
    finally:
        _set(kept)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
