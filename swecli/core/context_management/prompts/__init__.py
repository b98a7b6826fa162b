"""The words for the model, as plain text files beside this module."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from swecli.core.protocol.events import Mode

PromptName = Literal["base", "compaction", "lean", "mode_plan", "mode_auto", "headless", "instructions", "init_system"]

LEAN_WINDOW = 16_384
"""Context windows up to this many tokens get the lean prompt."""


@cache
def read_prompt(name: PromptName) -> str:
    """The text of one prompt file, without the final newline."""
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def system_prompt(window: int) -> str:
    """The base system prompt for a context window of ``window`` tokens."""
    return read_prompt("lean" if window <= LEAN_WINDOW else "base")


def mode_note(mode: Mode) -> str:
    """What the tail tells the model about the permission mode; empty where it need not know."""
    if mode == "plan":
        return read_prompt("mode_plan")
    return read_prompt("mode_auto") if mode == "auto" else ""


def note(text: str) -> str:
    """``text`` marked as coming from the program rather than from the user."""
    return f"<swecli-note>\n{text}\n</swecli-note>"
