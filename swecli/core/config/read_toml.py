"""Reading one settings file, with errors that name the file and the line."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One bad place. ``line`` counts from 1; None where it is the file as a whole."""

    source: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return f"{place}: {self.message}"


class ConfigError(Exception):
    """The settings can't be used. The text is ready to be shown; one line for each problem."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


def read_toml(path: Path, *, required: str = "") -> tuple[dict[str, Any], str] | None:
    """The file's content and its text; None when there is no such file. ``required`` is what names the
    file, where there has to be one.

    Raises:
        ConfigError: it can't be read, is too large, is no UTF-8 or no TOML.
    """
    source = str(path)

    def problem(message: str, line: int | None = None) -> ConfigError:
        return ConfigError([ConfigProblem(source, line, message)])

    try:
        raw = _bytes(path)
    except FileNotFoundError:
        if required:
            raise problem(f"there is no such file; {required} names it") from None
        return None
    except NotADirectoryError:
        if required:
            raise problem(f"there is no such file; {required} names it") from None
        return None
    except OSError as error:
        raise problem(f"can't be read: {error.strerror or error}") from None
    if raw is None:
        raise problem(f"must be an ordinary file of at most {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise problem("is not UTF-8 text here", raw.count(b"\n", 0, error.start) + 1) from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        line, message = _place(str(error), text)
        raise problem(f"no valid TOML: {message}", line) from None
    except (RecursionError, ValueError):
        raise problem("no valid TOML: nested too deeply, or a number that is too long") from None


def _bytes(path: Path) -> bytes | None:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_BYTES:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= MAX_BYTES else None


def _place(message: str, text: str) -> tuple[int | None, str]:
    found = re.search(r" \(at line (\d+), column \d+\)$", message)
    if found:
        return int(found.group(1)), message[: found.start()]
    if message.endswith("(at end of document)"):
        return text.rstrip("\n").count("\n") + 1, message.removesuffix(" (at end of document)")
    return None, message
