"""Changes are made to files as the model knows them: whether it does, and what it is shown when it does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from swecli.core.tools.base import SeenFile, ToolContext, ToolError

_AROUND = 8
"""Lines shown before and after a match."""
_MOST_LINES = 80
_MOST_COLUMNS = 400


def last_seen(path: str, ctx: ToolContext) -> str | None:
    """SHA-256 of the file as the model last saw it; None when it never did.

    Raises:
        ToolError: the path is none.
    """
    return ctx.files.last_seen(str(ctx.resolve(path))) if ctx.files is not None else None


def stale_edit(path: Path, text: str, sha256: str, lines: Sequence[int], old: str, ctx: ToolContext) -> ToolError:
    """The refusal of an edit in a file that changed since the model saw it, with the text around each match as it is
    now, so that the edit can be sent again if it is still right."""
    height = old.count("\n") + 1
    every = text.split("\n")
    total = len(every) - text.endswith("\n")
    wanted: list[int] = []
    for line in lines:
        span = range(max(1, line - _AROUND), min(total, line + height - 1 + _AROUND) + 1)
        fresh = [number for number in span if not wanted or number > wanted[-1]]
        if wanted and len(wanted) + len(fresh) > _MOST_LINES:
            break
        wanted += fresh[:_MOST_LINES]
    shown: list[str] = []
    for position, number in enumerate(wanted):
        if position and number != wanted[position - 1] + 1:
            shown.append("  …")
        shown.append(f"{number:>5}\t{every[number - 1].removesuffix(chr(13))[:_MOST_COLUMNS]}")
    body = "\n".join(shown)
    seen = (SeenFile(str(path), sha256, wanted[0], wanted[-1]),) if wanted else ()
    return ToolError(
        f"{ctx.display(path)} changed on disk since you last saw it. Nothing was edited. old_string is still in it; "
        f"this is the text around it now:\n{body}\nIf the edit is still right, send it again.",
        seen,
    )
