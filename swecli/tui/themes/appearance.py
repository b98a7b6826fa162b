"""The active theme: the chosen one, its light or dark variant, or a preview; saved for the next first frame."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from textual.app import App

from swecli.core.atomic_text import make_private, write_whole
from swecli.themes.names import AUTO
from swecli.themes.scheme import COLOURS, Depth, Scheme, SchemeError, scheme_of
from swecli.tui.themes.library import Library

_MAX_BYTES = 4_000


class SavedTheme(Struct, frozen=True):
    """``wanted`` is the name that the user asked for, ``dark`` the terminal's background; ``scheme`` is the shown one,
    None for the terminal's own colours."""

    wanted: str
    dark: bool
    scheme: Scheme | None = None


def read_saved_theme(path: Path | None) -> SavedTheme | None:
    """The saved theme; None if there is no usable one."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    wanted, dark = values.pop("wanted", ""), values.pop("dark", "")
    name = values.pop("name", "")
    if not wanted or dark not in ("yes", "no"):
        return None
    try:
        scheme = scheme_of(name, values) if name else None
    except SchemeError:
        return None
    return SavedTheme(wanted, dark == "yes", scheme)


def save_theme(path: Path | None, theme: SavedTheme) -> None:
    """Save a theme for the next start. A disk error only causes a change of colours then."""
    if path is None or theme == read_saved_theme(path):
        return
    values = {"wanted": theme.wanted, "dark": "yes" if theme.dark else "no"}
    if theme.scheme is not None:
        values |= {name: getattr(theme.scheme, name) for name in ("name", *COLOURS)}
    with contextlib.suppress(OSError):
        make_private(path.parent)
        write_whole(path, "".join(f"{key}={value}\n" for key, value in values.items()))


class Appearance:
    def __init__(self, app: App[Any], depth: Depth, *, dark: bool | None, memory: Path | None = None) -> None:
        """``dark`` is what the terminal states about its background; ``memory`` the file with the last run's theme and
        background, used for the first frame."""
        self._app = app
        self._memory = memory
        self._adopted = False
        self._setting: str | None = None
        """The name in the settings when they were last read; None if there is no such theme."""
        last = read_saved_theme(memory)
        self._dark = dark if dark is not None else last is None or last.dark
        self.library = Library(depth)
        self.wanted = AUTO
        """The name that the user asked for."""
        if last is not None:
            self.library.add([last.scheme] if last.scheme is not None else [])
            self.wanted = last.wanted
        if self.library.resolve(self.wanted, self._dark) is None:
            self.wanted = AUTO
        self.apply()

    @property
    def dark(self) -> bool:
        """Whether the terminal's background is dark, as far as known."""
        return self._dark

    def background_known(self, dark: bool) -> None:
        """The terminal has reported its background."""
        self._dark = dark
        self.apply()

    def adopt(self, wanted: str, schemes: Iterable[Scheme]) -> str:
        """Set the themes and the wanted name; settings read again change nothing but what changed in them. Returns a
        sentence if there is no such theme, else an empty string."""
        self.library.add(schemes)
        known = self.library.resolve(wanted, self._dark) is not None
        if not known or wanted != self._setting:
            self.wanted = wanted if known else AUTO
        self._adopted, self._setting = True, wanted if known else None
        self.apply()
        return "" if known else self.library.unknown(wanted)

    def want(self, name: str) -> None:
        """Switch to another theme."""
        self.wanted = name
        self.apply()

    def apply(self) -> None:
        """Show the wanted theme, now and in the first frame of the next run."""
        self.preview(self.wanted)
        resolved = self.library.resolve(self.wanted, self._dark)
        if self._adopted and resolved is not None:
            save_theme(self._memory, SavedTheme(self.wanted, self._dark, self.library.scheme(resolved)))

    def preview(self, name: str) -> None:
        """Show a theme temporarily."""
        resolved = self.library.resolve(name, self._dark)
        if resolved is None:
            return
        theme = self.library.theme(resolved)
        if self._app.get_theme(resolved) is not theme:
            self._app.register_theme(theme)
        self._app.theme = resolved


@contextlib.contextmanager
def textual_colours(depth: Depth) -> Iterator[None]:
    """Set the environment that Textual reads while an application is created. Textual removes NO_COLOR and honours it
    even when empty; child processes need it unchanged."""
    before = os.environ.get("NO_COLOR")
    if depth == "none":
        os.environ["NO_COLOR"] = "1"
    else:
        os.environ.pop("NO_COLOR", None)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("NO_COLOR", None)
        else:
            os.environ["NO_COLOR"] = before
