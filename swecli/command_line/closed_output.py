"""A start with standard output or standard error closed."""

from __future__ import annotations

import os
import sys


def replace_closed_error() -> None:
    """Put the null device in place of standard error, if that is closed: what would go there goes nowhere."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - it is None where it was closed
        return
    opened = os.open(os.devnull, os.O_WRONLY)
    if opened != 2:
        os.dup2(opened, 2)
        os.close(opened)
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - lives to the end


def refuse_closed_output() -> int:
    """Say that an answer would be lost, and give the exit status."""
    sys.stderr.write(
        "swecli: standard output is closed, so the answer would be lost. Nothing was done; >/dev/null where only the "
        "work counts.\n"
    )
    return 1
