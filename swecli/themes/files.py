"""Themes of the user and the project: one TOML file each, named after the theme."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from swecli.core.config.load import ConfigError, ConfigProblem, key_lines, line_of, read_toml
from swecli.lazy_pattern import lazy_pattern
from swecli.themes.scheme import Scheme, SchemeError, scheme_of

MOST = 200
"""Maximum number of files read from one folder."""

_NAME = lazy_pattern(r"[A-Za-z0-9_.-]+")


@cache
def known() -> tuple[Scheme, ...]:
    """The well-known themes included in the program."""
    text = Path(__file__).with_name("known.toml").read_text("utf-8")
    return tuple(scheme_of(name, colours) for name, colours in tomllib.loads(text).items())


def read_folder(folder: Path) -> tuple[list[Scheme], list[str]]:
    """The themes of a folder, and a sentence with file and line for each unusable one."""
    schemes: list[Scheme] = []
    notices: list[str] = []
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".toml")[:MOST]
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [f"{folder}: cannot read themes: {error.strerror or error}"]
    for path in paths:
        try:
            schemes.append(read_file(path))
        except ConfigError as error:
            notices.append(f"{error}. This theme is ignored.")
    return schemes, notices


def read_folders(folders: Sequence[Path]) -> tuple[list[Scheme], list[str]]:
    """The themes of several folders; on equal names the first wins."""
    schemes: dict[str, Scheme] = {}
    notices: list[str] = []
    for folder in folders:
        themes, complaints = read_folder(folder)
        notices += complaints
        for scheme in themes:
            schemes.setdefault(scheme.name, scheme)
    return list(schemes.values()), notices


def read_file(path: Path) -> Scheme:
    """Read a theme file.

    Raises:
        ConfigError: it can't be used; the message has file and line.
    """
    if not _NAME.fullmatch(path.stem):
        raise ConfigError([ConfigProblem(str(path), None, "a theme name must be one word")])
    read = read_toml(path)
    if read is None:
        raise ConfigError([ConfigProblem(str(path), None, "no longer exists")])
    data, text = read
    try:
        return scheme_of(path.stem, data)
    except SchemeError as error:
        line = line_of(key_lines(text), (error.key,))
        raise ConfigError([ConfigProblem(str(path), line, str(error))]) from None
