"""Command line: arguments only; a front-end is imported after it has been chosen."""

from __future__ import annotations

import sys


def main() -> int:
    """Entry point of the ``swecli`` command. Returns the exit code."""
    from swecli import __version__

    if sys.argv[1:2] == ["--version"]:
        sys.stdout.write(f"swecli {__version__}\n")
    return 0
