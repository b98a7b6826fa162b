"""What a text or an image takes of the context window, told before it is sent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swecli.core.atomic_text import make_private
from swecli.figures import portion, tokens

SAMPLE = 30_000
"""Characters of each of three parts by which a long text is judged, so that a paste of any size takes no time."""


@dataclass(frozen=True, slots=True)
class Weight:
    """``window`` is what a request may have, in tokens, 0 while that is unknown; ``used`` is what it has already."""

    tokens: int
    window: int
    used: int = 0

    @property
    def share(self) -> float:
        return self.tokens / self.window if self.window > 0 else 0.0

    @property
    def fits(self) -> bool:
        return self.window <= 0 or self.used + self.tokens <= self.window

    @property
    def shown(self) -> str:
        count = f"~{tokens(self.tokens)} tokens"
        if self.window <= 0:
            return count
        if self.share > 1:
            return f"{count}, more than the window"
        return f"{count}, {portion(self.share)} of the window"


def weigh(text: str, images: int, window: int, used: int = 0) -> Weight:
    from swecli.core.context_management.counter import IMAGE_TOKENS, PieceEstimator, sampled  # after the first frame

    return Weight(sampled(text, PieceEstimator().count, SAMPLE, 3) + images * IMAGE_TOKENS, window, used)


def keep_as_files(typed: str, pastes: Sequence[tuple[str, str]], cwd: Path) -> str:
    """The message with the path of a file in place of each paste.

    Raises:
        OSError: a file can't be written.
    """
    from swecli.core.tools.base import plural  # not needed by the first frame

    folder = cwd / ".swecli" / "pastes"
    make_private(folder)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    for placeholder, text in pastes:
        path = _free(folder)
        data = text.encode("utf-8", "replace")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
        lines = text.count("\n") + (not text.endswith("\n"))
        typed = typed.replace(placeholder, f"{path.relative_to(cwd)} (a pasted text of {plural(lines, 'line')})", 1)
    return typed


def _free(folder: Path) -> Path:
    number = 1 + max(
        (int(path.stem[6:]) for path in folder.glob("paste-*.txt") if path.stem[6:].isdecimal()), default=0
    )
    return folder / f"paste-{number}.txt"
