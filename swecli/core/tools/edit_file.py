"""Replacing text in a file."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import Params, Preview, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.chosen import chosen, preview_of
from swecli.core.tools.file_change import FileChange, present
from swecli.core.tools.file_freshness import last_seen, stale_edit
from swecli.core.tools.files import explained, missing, plural, reading
from swecli.core.workspace.atomic_write import StaleFileError
from swecli.core.workspace.edit import EditError, Replacement, replace_all_of
from swecli.core.workspace.text_file import decode
from swecli.core.workspace.to_the_end import to_the_end


class OneEdit(Params):
    """A replacement among several."""

    old_string: str
    new_string: str
    replace_all: bool = False


class EditFileParams(Params):
    path: str
    old_string: str | None = Field(None, description="Exact text to replace, without line numbers")
    new_string: str | None = None
    replace_all: bool = Field(False, description="Replace every match")
    edits: tuple[OneEdit, ...] = Field(
        (), validate_default=True, description="Instead of these: several, made in order, all or none"
    )

    @field_validator("edits")
    @classmethod
    def _one_form(cls, edits: tuple[OneEdit, ...], info: ValidationInfo) -> tuple[OneEdit, ...]:
        given = [name for name in ("old_string", "new_string") if info.data.get(name) is not None]
        if edits and given:
            raise ValueError(f"{' and '.join(given)} must not stand beside edits")
        if not edits and len(given) < 2:
            absent = [name for name in ("old_string", "new_string") if name not in given]
            raise ValueError(f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} required, or edits")
        return edits

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """All edits, in order."""
        if self.edits:
            return tuple(Replacement(one.old_string, one.new_string, one.replace_all) for one in self.edits)
        return (Replacement(self.old_string or "", self.new_string or "", self.replace_all),)


class EditFile(Tool[EditFileParams]):
    """Replaces one match, or all of them, once or several times. Every other byte of the file stays."""

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
        return await reading(lambda _: preview_of([_plan(params, ctx, expected)[0]], ctx))

    async def run(self, params: EditFileParams, ctx: ToolContext) -> ToolOutcome:
        expected = last_seen(params.path, ctx)
        change, lines = await reading(lambda _: _plan(params, ctx, expected))
        return await to_the_end(lambda: _apply(change, lines, ctx))


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
        edited = replace_all_of(file, params.replacements)
    except EditError as error:
        note = " The file changed on disk since you last saw it." if stale else ""
        raise ToolError(f"{ctx.display(path)}: {error}{note}") from error
    if stale:
        longest = max((one.old for one in params.replacements), key=lambda old: old.count("\n"))
        raise stale_edit(path, file.text, state.sha256, sorted(edited.lines), longest, ctx)
    (change,) = chosen([FileChange(path, data, edited.data, state)], ctx)
    return change, () if ctx.choices else edited.lines


def _apply(change: FileChange, lines: tuple[int, ...], ctx: ToolContext) -> ToolOutcome:
    try:
        changed = change.write()
    except (OSError, StaleFileError) as error:
        raise explained(error, change.path, ctx) from error
    detail = change.detail
    text = f"Edited {ctx.display(change.path)}{_where(lines)} ({detail})."
    return ToolOutcome(text, (change.block(ctx),), detail, changed=(changed,))


def _where(lines: tuple[int, ...]) -> str:
    if not lines:
        return ""
    return f" at line {lines[0]}" if len(lines) == 1 else f" at {plural(len(lines), 'place')}, first at line {lines[0]}"
