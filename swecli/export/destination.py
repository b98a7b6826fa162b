"""Destination of an export: its format by name or file, and writing without changing existing files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

from swecli.core.atomic_text import write_whole
from swecli.core.workspace.text_file import typed_path

ExportFormat = Literal["markdown", "json", "html"]
FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
_SUFFIXES: Final[dict[str, ExportFormat]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
}
_NAMES: Final[dict[str, ExportFormat]] = {"markdown": "markdown", "md": "markdown", "json": "json", "html": "html"}
ENDING: Final[dict[ExportFormat, str]] = {"markdown": ".md", "json": ".json", "html": ".html"}
FORCE: Final = "--force"


class DestinationError(Exception):
    """A file can't be written there; one sentence for the user. Nothing was changed."""


class Destination(Struct, frozen=True):
    """``replace``: the user asked to replace an existing file."""

    path: Path
    format: ExportFormat
    replace: bool = False


def format_of(name: str) -> ExportFormat:
    """The format for a file name's ending; raises ``DestinationError`` if none has this ending."""
    export_format = _SUFFIXES.get(Path(name).suffix.lower())
    if export_format is None:
        raise DestinationError(
            f"The file's extension sets the format: {', '.join(ENDING.values())}; {name} has none of these. "
            "Nothing was written."
        )
    return export_format


def destination(words: str, folder: Path, stem: str, unnamed: Path | None = None) -> Destination:
    """Parse the words after ``/export``: nothing (an HTML page), a format, or a file; with ``--force`` before or after
    it an existing file is replaced. Without a file name a free one is chosen in ``unnamed``, or else in ``folder``.

    Raises:
        DestinationError: they are invalid.
    """
    replace = False
    wanted = words.strip()
    for mark in (f"{FORCE} ", f" {FORCE}"):
        if f" {wanted} ".find(mark) >= 0 and (wanted.startswith(FORCE) or wanted.endswith(FORCE)):
            wanted, replace = wanted.removeprefix(FORCE).removesuffix(FORCE).strip(), True
    if not wanted or wanted.lower().removeprefix("--") in _NAMES:
        chosen = _NAMES.get(wanted.lower().removeprefix("--"), "html")
        return Destination(free_name(unnamed or folder, stem, ENDING[chosen]), chosen)
    path = located(wanted, folder)
    return Destination(path, format_of(path.name), replace)


def located(name: str, folder: Path) -> Path:
    """The file of that name as the user typed it, relative to ``folder``.

    Raises:
        DestinationError: no file can have this name.
    """
    name = typed_path(name)
    if "\0" in name:
        raise DestinationError("The file name contains a null character.")
    if name.startswith("-"):
        raise DestinationError(f"There is no option {name.split()[0]}; ./{name} names a file. Nothing was written.")
    return Path(os.path.normpath(folder / os.path.expanduser(name)))


def free_name(folder: Path, stem: str, ending: str) -> Path:
    """An unused name in ``folder``."""
    path, number = folder / f"{stem}{ending}", 1
    while os.path.lexists(path):
        number += 1
        path = folder / f"{stem}-{number}{ending}"
    return path


def write_export(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a file that only the user can read. An existing one stays unless ``replace``.

    Raises:
        DestinationError: it exists, or can't be written.
    """
    try:
        if replace and not path.is_dir():
            write_whole(path, text)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        what = "is a folder" if path.is_dir() else f"exists. Add {FORCE} to replace it, or choose another name"
        raise DestinationError(f"{path} {what}. Nothing was written.") from None
    except IsADirectoryError:
        raise DestinationError(f"{path} is a folder. Nothing was written.") from None
    except FileNotFoundError:
        raise DestinationError(f"The folder {path.parent} does not exist. Nothing was written.") from None
    except (OSError, ValueError) as error:
        raise DestinationError(f"{path} cannot be written ({getattr(error, 'strerror', None) or error}).") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise DestinationError(f"{path} cannot be written ({error.strerror or error}). Nothing was kept.") from error
