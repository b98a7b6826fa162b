"""The demonstration: a sample project with a bug, and a script for the model that fixes it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

PROMPT = "A customer who orders exactly 10 pens gets no discount. Please fix that and show me that the tests pass."
"""The user's message in the demonstration."""

SCRIPT = Path(__file__).with_name("demo.script.toml")
"""The scripted model's answers, for ``load_script``."""

_PROJECT = Path(__file__).with_name("project")


def prepare() -> Path:
    """Copy the sample project to a fresh temporary folder, which stays for the user to look at.

    Raises:
        OSError: the copy failed, for example on a full disk.
    """
    folder = Path(tempfile.mkdtemp(prefix="swecli-demo-")).resolve() / "stationery"
    shutil.copytree(_PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def interpreter() -> str:
    """Shell word for this Python: ``python3`` if that is the same interpreter, else its quoted path."""
    path = shutil.which("python3")
    if path and os.path.realpath(path) == os.path.realpath(sys.executable):
        return "python3"
    return shlex.quote(sys.executable or "python3")


def banner(folder: Path) -> str:
    """Information for the user: the scripted model, the location of the files, and how to use a real model."""
    return (
        "Demonstration. The model is scripted: no key, no network, always the same answers. Everything else is the "
        f"real program, working on a copy in {folder}\n"
        "To use a real model in your own project, set OPENAI_API_KEY or ANTHROPIC_API_KEY and run "
        "swecli -m openai/NAME or swecli -m anthropic/NAME there; --base-url takes any compatible server."
    )
