"""The sample project in a folder that is named the same on every machine, for pictures and recordings.

Run as a program it is `swecli demo` there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from swecli import demo
from swecli.assembly import start_notices

FOLDER = Path("/tmp/stationery")
"""The project, as its pictures name it."""
HOME = Path("/tmp/swecli-home")
"""Settings and sessions of the program in the pictures."""


def copy() -> Path:
    """A fresh copy of the sample project in its folder."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    made = demo.prepare()
    shutil.move(made, FOLDER)
    made.parent.rmdir()
    return FOLDER


@contextlib.contextmanager
def prepared() -> Iterator[Path]:
    """The project, with a home of the program that is empty. Both are gone afterwards."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    try:
        yield copy()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.rmtree(HOME, ignore_errors=True)


def alone() -> None:
    """From now on this program knows of nothing else that runs on the machine: it is no part of the picture."""
    start_notices.leftovers = lambda place="": []


def environment() -> dict[str, str]:
    """What the program in the pictures sees of the machine: nothing of its user. The demonstration runs plain
    `python3`, not the path of this interpreter."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    home = {"SWECLI_HOME": str(HOME), "HOME": str(HOME)}
    return {**home, "PATH": path, "LANG": "C.UTF-8", "COLORTERM": "truecolor"}


if __name__ == "__main__":
    from swecli.cli import main

    alone()
    demo.prepare = lambda: FOLDER
    sys.argv = ["swecli", "demo"]
    sys.exit(main())
