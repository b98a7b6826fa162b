"""Listing the files of a directory."""

from __future__ import annotations

import stat
from pathlib import Path

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import FileEntry, FileListBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.files import explained
from swecli.core.workspace.listing import ListingError, list_tree

MAX_ENTRIES = 300
_DEFAULT_DEPTH = 2


class ListFilesParams(Params):
    path: str = "."
    glob: str | None = Field(None, description="e.g. *.py or src/**/*.ts; searches all levels")
    depth: int | None = Field(None, ge=1, description="Levels, default 2")


class ListFiles(Tool[ListFilesParams]):
    """Lists what is not ignored below a directory."""

    name = "list_files"
    verb = "List"
    params = ListFilesParams

    def effects(self, params: ListFilesParams, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.resolve(params.path)),))

    def title(self, params: ListFilesParams, ctx: ToolContext) -> str:
        name = ctx.display(ctx.resolve(params.path))
        return f"{params.glob} in {name}" if params.glob else name

    async def run(self, params: ListFilesParams, ctx: ToolContext) -> ToolOutcome:
        start = ctx.resolve(params.path)
        _require_directory(start, ctx)
        depth = params.depth or (None if params.glob else _DEFAULT_DEPTH)
        try:
            listing = await list_tree(
                start, ctx.roots, environment=ctx.environment, glob=params.glob, depth=depth, limit=MAX_ENTRIES
            )
        except (ListingError, OSError) as error:
            raise ToolError(str(error)) from error
        entries = tuple(FileEntry(ctx.display(start / entry.path), is_dir=entry.is_dir) for entry in listing.entries)
        shown = "\n".join(f"{entry.path}/" if entry.is_dir else entry.path for entry in entries)
        count = "1 entry" if listing.total == 1 else f"{listing.total:,} entries"
        if not listing.complete:
            count = f"more than {count}"
        if not entries:
            what = f"matches {params.glob}" if params.glob else "is in it that is not ignored"
            text = f"Nothing {what}: {ctx.display(start)}"
        elif len(entries) < listing.total or not listing.complete:
            text = f"{shown}\n[{len(entries)} of {count}; narrow it with path, glob or depth]"
        else:
            text = shown
        return ToolOutcome(text, (FileListBlock(entries, listing.total),), count)


def _require_directory(start: Path, ctx: ToolContext) -> None:
    try:
        is_directory = stat.S_ISDIR(start.stat().st_mode)
    except OSError as error:
        raise explained(error, start, ctx) from error
    if not is_directory:
        raise ToolError(f"{ctx.display(start)} is a file; use read_file.")
