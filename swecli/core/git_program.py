"""How swecli starts git: with nothing that a repository could make it run, and without waiting for a terminal."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

_SAFE: Final = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"),
    *("-c", "diff.external=", "-c", "core.pager=cat"),
)
"""A repository may name programs that git would run."""


class GitFailedError(Exception):
    """git gave no answer. ``kind`` says how it failed, the message in its own words why; that may be empty."""

    def __init__(self, kind: Literal["not started", "too slow", "failed"], message: str, status: int = 0) -> None:
        super().__init__(message)
        self.kind: Literal["not started", "too slow", "failed"] = kind
        self.status = status

    @property
    def first_line(self) -> str:
        """The message in short; where git wrote none, its exit status."""
        return str(self).partition("\n")[0].removeprefix("fatal: ") or f"exit status {self.status}"


def git_command(program: str, folder: str | Path, arguments: Sequence[str]) -> list[str]:
    """The words that run git in a folder."""
    return [program, *_SAFE, "-C", str(folder), *arguments]


def git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What git gets: messages in English, no questions at the terminal, no lock for a mere look."""
    return {**environment, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def read_git(
    program: str,
    folder: str | Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    *,
    given: bytes = b"",
    fetches: bool = False,
) -> bytes:
    """What git writes within so many seconds. Unless it ``fetches``, it takes no object from another machine.

    Raises:
        GitFailedError: it can't be started, took longer, or ended with an error.
    """
    here = () if fetches else ("-c", "protocol.allow=never")
    try:
        done = subprocess.run(
            git_command(program, folder, (*here, *arguments)),
            input=given,
            capture_output=True,
            timeout=seconds,
            check=False,
            env=git_environment(environment),
        )
    except subprocess.TimeoutExpired as error:
        raise GitFailedError("too slow", f"it took longer than {seconds:g} s") from error
    except (OSError, ValueError) as error:
        raise GitFailedError("not started", getattr(error, "strerror", None) or str(error)) from error
    if done.returncode:
        raise GitFailedError("failed", done.stderr.decode("utf-8", "replace").strip(), done.returncode)
    return done.stdout
