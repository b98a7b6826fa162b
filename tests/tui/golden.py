"""Golden screens as text. ``UPDATE_GOLDENS=1`` writes them anew; read the difference then."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "goldens"


def check(name: str, text: str) -> None:
    """Compare with the golden file of this name."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDENS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")
