"""Listing the files of a directory."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import FileEntry, FileListBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.workspace.atomic_write import READ_ONLY, StaleFileError
from swecli.core.workspace.search import ListingError, list_tree
from swecli.core.workspace.text_file import NotRegularError

T = TypeVar("T")
_MAX_NAMES = 5_000
_FIND_SECONDS = 0.3
_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", "target", "dist", "build"))


async def reading(work: Callable[[Callable[[], bool]], T]) -> T:
    """``work`` off the event loop. It gets a function that says whether to stop because nobody waits any more."""
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(work, cancelled.is_set)
    finally:
        cancelled.set()


def explained(error: OSError | StaleFileError, path: Path, ctx: ToolContext) -> ToolError:
    """The error as a sentence that names the path as the model knows it and says what to do."""
    name = ctx.display(path)
    if isinstance(error, StaleFileError):
        return ToolError(f"{name} changed on disk while it was being edited. Nothing was written; read it again.")
    if isinstance(error, FileNotFoundError):
        return ToolError(missing(path, ctx))
    if isinstance(error, NotRegularError):
        hint = " List it to see what is in it." if error.kind == "a directory" else ""
        return ToolError(f"{name} is {error.kind}, not a regular file.{hint}")
    if isinstance(error, NotADirectoryError):
        return ToolError(f"{name}: a part of the path is a file, not a directory.")
    if isinstance(error, PermissionError):
        reason = "it is read-only" if error.strerror == READ_ONLY else "permission denied"
        return ToolError(f"{name}: {reason}. Nothing was changed.")
    reason = error.strerror or str(error)
    return ToolError(f"{name}: {reason[:1].lower()}{reason[1:]}. Nothing was changed.")


def missing(path: Path, ctx: ToolContext) -> str:
    """That ``path`` does not exist, and what may have been meant."""
    near = _near_names(path, ctx)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"{ctx.display(path)} does not exist.{hint}"


def _near_names(path: Path, ctx: ToolContext) -> list[str]:
    found: list[Path] = []
    try:
        names = sorted(os.listdir(path.parent))[:_MAX_NAMES]
    except OSError:
        names = []
    found += [path.parent / name for name in get_close_matches(path.name, names, 3, 0.6)]
    if path.is_relative_to(ctx.cwd) or any(path.is_relative_to(root) for root in ctx.roots):
        found += _same_name(path.name, ctx.roots or (ctx.cwd,))
    return list(dict.fromkeys(ctx.display(one) for one in found))[:4]


def _same_name(name: str, roots: Sequence[Path]) -> list[Path]:
    """Files of that name elsewhere in the workspace; a short look only."""
    deadline = time.monotonic() + _FIND_SECONDS
    found: list[Path] = []
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(one for one in folders if one not in _SKIPPED)
            if name in files:
                found.append(Path(folder) / name)
            if len(found) >= 3 or time.monotonic() > deadline:
                return found
    return found


def readable_size(size: int) -> str:
    """Bytes for people: 312 bytes, 4.2 KB, 3.0 MB."""
    if size < 1_000:
        return f"{size} bytes"
    amount, unit = size / 1_000, "KB"
    for larger in ("MB", "GB", "TB"):
        if amount < 1_000:
            break
        amount, unit = amount / 1_000, larger
    return f"{amount:.1f} {unit}"


def plural(count: int, word: str) -> str:
    """ "1 line", "1,200 lines", "2 matches"."""
    ending = "" if count == 1 else "es" if word.endswith(("ch", "s")) else "s"
    return f"{count:,} {word}{ending}"


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
