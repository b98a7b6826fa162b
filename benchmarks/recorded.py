"""Recorded agent sessions as sizes without text, and how they are played through the real engine again.

``data/replay-sizes.jsonl.xz`` holds 60 sessions of 5,163 model calls: for each call the parts that were added since
the previous one ``[role, kind, tool, o200k tokens, characters, content id]`` (equal ids mean equal text), the parts
of the answer, and the usage that the provider reported. Texts of these sizes take the place of the real ones.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swecli.core.context_management.counter import PieceEstimator

DATA = Path(__file__).parent / "data" / "replay-sizes.jsonl.xz"
NAMES = {"bash": "run_command", "read": "read_file", "write": "write_file", "edit": "edit_file", "": "run_command"}
ARGUMENT = {"read_file": "path", "write_file": "path", "edit_file": "path"}


@dataclass(frozen=True)
class Part:
    """One recorded part."""

    role: str
    kind: str
    tool: str
    tokens: int
    characters: int
    content: str


@dataclass(frozen=True)
class Call:
    """One model call: what was new in its prompt, its answer, and the reported usage in tokens."""

    added: tuple[Part, ...]
    answer: tuple[Part, ...]
    prompt: int
    cached: int
    output: int


@dataclass(frozen=True)
class Recording:
    """One session, or several that follow each other as one."""

    model: str
    calls: tuple[Call, ...]

    @property
    def longest(self) -> int:
        """Tokens of the largest prompt."""
        return max(call.prompt for call in self.calls)


def load(path: Path = DATA) -> list[Recording]:
    """All recordings of a file of JSON lines, packed with xz or not."""
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
    return [_recording(json.loads(line)) for line in text.splitlines() if line.strip()]


def _recording(data: dict[str, Any]) -> Recording:
    calls = [
        Call(
            tuple(Part(*part) for part in call["added"]),
            tuple(Part(*part) for part in call["answer"]),
            call["prompt"] or 0,
            call["cached"] or 0,
            call["output"] or 0,
        )
        for call in data["calls"]
    ]
    return Recording(data["model"], tuple(calls))


def joined(recordings: Sequence[Recording], tokens: int) -> list[Recording]:
    """Recordings put together until their prompts add up to ``tokens``: one user with one task after the other."""
    groups: list[Recording] = []
    calls: list[Call] = []
    size = 0
    for recording in recordings:
        calls += recording.calls
        size += recording.longest
        if size >= tokens:
            groups.append(Recording(recording.model, tuple(calls)))
            calls, size = [], 0
    return groups


@dataclass
class Texts:
    """Made-up texts, and a counter that knows their recorded sizes; other texts are estimated."""

    known: dict[str, int] = field(default_factory=dict)
    _estimator: PieceEstimator = field(default_factory=PieceEstimator)

    def of(self, part: Part) -> str:
        """The text that stands for a part."""
        words = max(1, part.characters - len(part.content) - 1)
        text = f"{part.content}\n" + ("some text like this\n" * (words // 20 + 1))[:words]
        self.known[text] = part.tokens
        return text

    def arguments(self, part: Part) -> str:
        """The same as arguments of a call."""
        name = ARGUMENT.get(NAMES.get(part.tool, part.tool), "command")
        filler = "x" * max(0, part.characters - len(part.content) - 30)
        text = json.dumps({name: part.content, "content": filler})
        self.known[text] = part.tokens
        return text

    def count(self, text: str) -> int:
        """Recorded or estimated tokens."""
        known = self.known.get(text)
        return self._estimator.count(text) if known is None else known


def texts_of(parts: Iterable[Part], role: str) -> list[Part]:
    """The parts of one role."""
    return [part for part in parts if part.role == role]
