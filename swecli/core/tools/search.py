"""Searching the text of files."""

from __future__ import annotations

from pydantic import Field

from swecli.core.permissions.paths import SECRET_EXPRESSION
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import FileEntry, FileListBlock
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.list_files import explained, plural
from swecli.core.workspace.search import Line, SearchError, SearchRequest, SearchResult, search

MAX_RESULTS = 100
_CEILING = 1_000
_MAX_CONTEXT = 10
_MAX_CHARACTERS = 24_000


class SearchParams(Params):
    pattern: str = Field(min_length=1, description="Regular expression")
    path: str = "."
    glob: str | None = Field(None, description="Only such files, e.g. *.py")
    ignore_case: bool = False
    context: int = Field(0, ge=0, description="Lines around each match")
    max_results: int = Field(MAX_RESULTS, ge=1, description="Default 100")


class Search(Tool[SearchParams]):
    """Finds lines by a regular expression."""

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
            raise ToolError("The pattern is matched with single lines: it can't have a line break or NUL in it.")
        request = SearchRequest(
            params.pattern,
            start,
            ctx.roots,
            params.glob,
            params.ignore_case,
            min(params.context, _MAX_CONTEXT),
            leave_out=SECRET_EXPRESSION,
        )
        try:
            result = await search(request, ctx.environment)
        except (SearchError, OSError) as error:
            raise ToolError(str(error)) from error
        return _outcome(params, ctx, result)


def _outcome(params: SearchParams, ctx: ToolContext, result: SearchResult) -> ToolOutcome:
    summary = _summary(result)
    notes = [result.incomplete] if result.incomplete else []
    if result.left_out:
        notes.append(f"{plural(result.left_out, 'file')} left out, which may hold secrets by their names")
    note = f" ({'; '.join(notes)})" if notes else ""
    if not result.matches:
        files = f" in files like {params.glob}" if params.glob else ""
        return ToolOutcome(f"No matches for {params.pattern!r}{files}{note}.", (), summary + note)
    shown, matches = _chosen(result.lines, min(params.max_results, _CEILING))
    text, paths = [f"{summary}{note}"], None
    for line in shown:
        if line.path != paths:
            text.append(ctx.display(line.path))
            paths = line.path
        text.append(f"{line.number:>5}{':' if line.matched else '-'} {line.text}")
    if matches < result.matches:
        text.append(f"[{matches} of {result.matches:,} matches shown; narrow it with path or glob]")
    entries = tuple(FileEntry(ctx.display(one.path), one.number, one.text) for one in shown if one.matched)
    return ToolOutcome("\n".join(text), (FileListBlock(entries, result.matches),), summary + note)


def _summary(result: SearchResult) -> str:
    if not result.matches:
        return "no matches"
    return f"{plural(result.matches, 'match')} in {plural(result.files, 'file')}"


def _chosen(lines: tuple[Line, ...], limit: int) -> tuple[list[Line], int]:
    """The first lines with up to ``limit`` matches and a bounded size, and how many matches those are."""
    shown: list[Line] = []
    matches = used = 0
    for line in lines:
        used += len(line.text) + 8
        if shown and (used > _MAX_CHARACTERS or (line.matched and matches >= limit)):
            break
        shown.append(line)
        matches += line.matched
    return shown, matches
