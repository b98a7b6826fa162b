"""Instruction files that are on no disk."""

from __future__ import annotations

from pathlib import Path

from swecli.core.context_management.counter import PieceEstimator
from swecli.core.context_management.instructions import InstructionFile, Instructions


def instructions(text: str) -> Instructions:
    """Those of a project with this AGENTS.md."""
    file = InstructionFile(Path("/proj/AGENTS.md"), "AGENTS.md", text, "0", PieceEstimator().count(text))
    return Instructions((file,))
