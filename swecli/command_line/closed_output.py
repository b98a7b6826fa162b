"""A start with standard output or error closed: what would go there goes nowhere."""

from __future__ import annotations

import os
import sys


def replace_closed() -> None:
    """Put the null device in place of the standard streams that are closed."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            stream = open(number, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - lives to the end
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
