"""Replacing text in a file."""

from __future__ import annotations

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import Params, Preview, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.file_change import FileChange, present
from swecli.core.tools.file_freshness import last_seen, stale_edit
from swecli.core.tools.files import explained, missing, plural, reading, writing
from swecli.core.workspace.atomic_write import StaleFileError
from swecli.core.workspace.edit import EditError, replace_string
from swecli.core.workspace.text_file import decode


class EditFileParams(Params):
    path: str
    old_string: str = Field(description="Exact text to replace, without line numbers")
    new_string: str
    replace_all: bool = Field(False, description="Replace every match")


class EditFile(Tool[EditFileParams]):
    """Replaces one match, or all of them. Every other byte of the file stays."""

    name = "edit_file"
    verb = "Edit"
    params = EditFileParams

    def effects(self, params: EditFileParams, ctx: ToolContext) -> Effects:
        path = str(ctx.resolve(params.path))
        return Effects(reads=(path,), writes=(path,))

    def title(self, params: EditFileParams, ctx: ToolContext) -> str:
        return ctx.display(ctx.resolve(params.path))

    async def preview(self, params: EditFileParams, ctx: ToolContext) -> Preview:
        expected = last_seen(params.path, ctx)
        return await reading(lambda _: _plan(params, ctx, expected)[0].preview(ctx))

    async def run(self, params: EditFileParams, ctx: ToolContext) -> ToolOutcome:
        expected = last_seen(params.path, ctx)
        change, lines = await reading(lambda _: _plan(params, ctx, expected))
        return await writing(lambda: _apply(change, lines, ctx))


def _plan(params: EditFileParams, ctx: ToolContext, expected: str | None) -> tuple[FileChange, tuple[int, ...]]:
    path = ctx.resolve(params.path)
    try:
        found = present(path)
    except OSError as error:
        raise explained(error, path, ctx) from error
    if found is None:
        raise ToolError(f"{missing(path, ctx)} To make a new file, use write_file.")
    data, state = found
    stale = expected not in (None, state.sha256)
    file = decode(data)
    try:
        edited = replace_string(file, params.old_string, params.new_string, replace_all=params.replace_all)
    except EditError as error:
        note = " The file changed on disk since you last saw it." if stale else ""
        raise ToolError(f"{ctx.display(path)}: {error}{note}") from error
    if stale:
        raise stale_edit(path, file.text, state.sha256, edited.lines, params.old_string, ctx)
    return FileChange(path, data, edited.data, state), edited.lines


def _apply(change: FileChange, lines: tuple[int, ...], ctx: ToolContext) -> ToolOutcome:
    try:
        changed = change.write()
    except (OSError, StaleFileError) as error:
        raise explained(error, change.path, ctx) from error
    where = f"at line {lines[0]}" if len(lines) == 1 else f"at {plural(len(lines), 'place')}, first at line {lines[0]}"
    text = f"Edited {ctx.display(change.path)} {where} ({change.detail})."
    return ToolOutcome(text, (change.block(ctx),), change.detail, changed=(changed,))
