"""Listing directories and searching text."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import FileEntry, FileListBlock
from swecli.core.tools.base import Params, Positive, Tool, ToolContext, ToolError, ToolOutcome, explained
from swecli.core.workspace.search import (
    SINGLE_LINES,
    InvalidPatternError,
    Line,
    Listing,
    ListingError,
    SearchError,
    SearchRequest,
    SearchResult,
    list_tree,
    literal,
    search,
)
from swecli.figures import plural
from swecli.safe_text import printable_name

MAX_ENTRIES = 300
_DEFAULT_DEPTH = 2


class ListFilesParams(Params):
    path: str = "."
    glob: Annotated[str | None, Meta(description="e.g. *.py or src/**/*.ts, at all levels")] = None
    depth: Annotated[Positive | None, Meta(description="Levels, default 2")] = None


class ListFiles(Tool[ListFilesParams]):
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
        entries = _entries(start, listing, ctx.display)
        if not entries:
            name = ctx.display(start)
            text = f"No file in {name} matches {params.glob}." if params.glob else f"{name} is empty or fully ignored."
        else:
            text = _shown(entries, listing)
        return ToolOutcome(text, (FileListBlock(entries, listing.total),), _count(listing))


async def listing_text(folder: Path, roots: tuple[Path, ...], display: Callable[[Path], str]) -> str:
    """The listing of a folder for the model.

    Raises:
        ToolError: listing takes too long.
        OSError: the folder can't be listed.
    """
    try:
        listing = await list_tree(folder, roots, environment={}, depth=_DEFAULT_DEPTH, limit=MAX_ENTRIES)
    except ListingError as error:
        raise ToolError(str(error)) from error
    return _shown(_entries(folder, listing, display), listing)


def _entries(start: Path, listing: Listing, display: Callable[[Path], str]) -> tuple[FileEntry, ...]:
    return tuple(FileEntry(display(start / entry.path), is_dir=entry.is_dir) for entry in listing.entries)


def _count(listing: Listing) -> str:
    count = plural(listing.total, "entry")
    return count if listing.complete else f"more than {count}"


def _shown(entries: Sequence[FileEntry], listing: Listing) -> str:
    shown = "\n".join(printable_name(f"{entry.path}/" if entry.is_dir else entry.path) for entry in entries)
    if len(entries) < listing.total or not listing.complete:
        return f"{shown}\n[{len(entries)} of {_count(listing)}; narrow it with path, glob or depth]"
    return shown


def _require_directory(start: Path, ctx: ToolContext) -> None:
    try:
        is_directory = stat.S_ISDIR(start.stat().st_mode)
    except OSError as error:
        raise explained(error, start, ctx) from error
    if not is_directory:
        raise ToolError(f"{ctx.display(start)} is a file; use read_file.")


MAX_RESULTS = 100
_CEILING = 1_000
_MAX_CONTEXT = 10
_MAX_CHARACTERS = 24_000


class SearchParams(Params):
    pattern: Annotated[str, Meta(min_length=1)]
    path: str = "."
    glob: Annotated[str | None, Meta(description="e.g. *.py")] = None
    ignore_case: bool = False
    context: Annotated[int, Meta(ge=0, description="Lines around each match")] = 0
    max_results: Annotated[int, Meta(ge=1, description="Default 100")] = MAX_RESULTS


class Search(Tool[SearchParams]):
    name = "search"
    verb = "Search"
    params = SearchParams

    def effects(self, params: SearchParams, ctx: ToolContext) -> Effects:
        return Effects(reads=(str(ctx.resolve(params.path)),))

    def title(self, params: SearchParams, ctx: ToolContext) -> str:
        where = ctx.display(ctx.resolve(params.path))
        files = f" ({params.glob})" if params.glob else ""
        return f"{params.pattern!r} in {where}{files}"

    async def run(self, params: SearchParams, ctx: ToolContext) -> ToolOutcome:
        start = ctx.resolve(params.path)
        try:
            start.stat()
        except OSError as error:
            raise explained(error, start, ctx) from error
        if "\n" in params.pattern or "\0" in params.pattern:
            raise ToolError(SINGLE_LINES)
        request = SearchRequest(
            params.pattern,
            start,
            ctx.roots,
            params.glob,
            params.ignore_case,
            min(params.context, _MAX_CONTEXT),
            leave_out=ctx.secret_names,
        )
        try:
            result, reading = await _searched(request, ctx.environment)
        except (SearchError, OSError) as error:
            raise ToolError(str(error)) from error
        rules = ctx.read_rules()
        note = "; ".join(filter(None, (reading, rules.note)))
        return _outcome(params, ctx, _allowed(result, start, rules), note)


async def _searched(request: SearchRequest, environment: Mapping[str, str]) -> tuple[SearchResult, str]:
    """The result, and a clause if it is that of the pattern as plain text: of one that is no valid expression, or that
    matches nothing as one.

    Raises:
        SearchError: the search failed, or an invalid expression is not found as text either.
    """
    plain = replace(request, pattern=literal(request.pattern))
    try:
        result = await search(request, environment)
    except InvalidPatternError:
        plain_result = await search(plain, environment)
        if not plain_result.matches:
            raise
        return plain_result, "searched as plain text: the pattern is no valid regular expression"
    if result.matches or result.incomplete or plain.pattern == request.pattern:
        return result, ""
    plain_result = await search(plain, environment)
    if plain_result.matches:
        return plain_result, "found as plain text: as a regular expression, the pattern matches nothing"
    return result, ""


def _allowed(result: SearchResult, start: Path, rules: ReadRules) -> SearchResult:
    """The result and its counts without the files that must not be shown."""
    hidden = rules.hidden((str(line.path) for line in result.lines), str(start)) if rules.rules else ()
    if not hidden:
        return result
    lines = tuple(line for line in result.lines if str(line.path) not in hidden)
    matched = [line.path for line in lines if line.matched]
    return replace(result, lines=lines, matches=len(matched), files=len(set(matched)))


def _outcome(params: SearchParams, ctx: ToolContext, result: SearchResult, withheld: str) -> ToolOutcome:
    summary = _summary(result)
    notes = list(filter(None, (result.incomplete, withheld)))
    if result.left_out:
        notes.append(f"skipped {plural(result.left_out, 'file')} that may hold secrets, judging by name")
    note = f" ({'; '.join(notes)})" if notes else ""
    if not result.matches:
        files = f" in files like {params.glob}" if params.glob else ""
        return ToolOutcome(f"No matches for {params.pattern!r}{files}{note}.{_hint(params)}", (), summary + note)
    shown, matches = _chosen(result.lines, min(params.max_results, _CEILING))
    text, paths = [f"{summary}{note}"], None
    for line in shown:
        if line.path != paths:
            text.append(printable_name(ctx.display(line.path)))
            paths = line.path
        text.append(f"{line.number:>5}{':' if line.matched else '-'} {line.text}")
    if matches < result.matches:
        text.append(f"[{matches} of {result.matches:,} matches shown; narrow it with path or glob]")
    entries = tuple(
        FileEntry(ctx.display(shown_line.path), shown_line.number, shown_line.text)
        for shown_line in shown
        if shown_line.matched
    )
    return ToolOutcome("\n".join(text), (FileListBlock(entries, result.matches),), summary + note)


def _hint(params: SearchParams) -> str:
    """What may be wrong with a search without matches, as a sentence; empty if nothing is known."""
    if params.glob and not any(sign in params.glob for sign in "*?[{"):
        return f" The glob matches only files of the name {params.glob}; an extension is written like *.py."
    if "\\|" in params.pattern:
        return " In this syntax, \\| is the sign itself; alternatives are written a|b."
    return " The bounds of a word are written \\b." if "\\<" in params.pattern or "\\>" in params.pattern else ""


def _summary(result: SearchResult) -> str:
    if not result.matches:
        return "no matches"
    return f"{plural(result.matches, 'match')} in {plural(result.files, 'file')}"


def _chosen(lines: tuple[Line, ...], limit: int) -> tuple[list[Line], int]:
    """The first lines with up to ``limit`` matches within the size limit, and the number of those matches."""
    shown: list[Line] = []
    matches = used = 0
    for line in lines:
        used += len(line.text) + 8
        if shown and (used > _MAX_CHARACTERS or (line.matched and matches >= limit)):
            break
        shown.append(line)
        matches += line.matched
    return shown, matches
