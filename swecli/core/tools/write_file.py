"""Writing a whole file."""

from __future__ import annotations

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import Params, Preview, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.chosen import chosen, preview_of
from swecli.core.tools.file_change import FileChange, present
from swecli.core.tools.file_freshness import last_seen
from swecli.core.tools.files import explained, plural, readable_size, reading
from swecli.core.workspace.atomic_write import StaleFileError
from swecli.core.workspace.text_file import decode
from swecli.core.workspace.to_the_end import to_the_end


class WriteFileParams(Params):
    path: str
    content: str


class WriteFile(Tool[WriteFileParams]):
    """Makes a file or replaces all of its content; encoding, mark and CRLF of an existing text are kept."""

    name = "write_file"
    verb = "Write"
    params = WriteFileParams

    def effects(self, params: WriteFileParams, ctx: ToolContext) -> Effects:
        return Effects(writes=(str(ctx.resolve(params.path)),))

    def title(self, params: WriteFileParams, ctx: ToolContext) -> str:
        return ctx.display(ctx.resolve(params.path))

    async def preview(self, params: WriteFileParams, ctx: ToolContext) -> Preview:
        expected = last_seen(params.path, ctx)
        return await reading(lambda _: preview_of([_plan(params, ctx, expected)], ctx))

    async def run(self, params: WriteFileParams, ctx: ToolContext) -> ToolOutcome:
        expected = last_seen(params.path, ctx)
        change = await reading(lambda _: _plan(params, ctx, expected))
        return await to_the_end(lambda: _apply(change, ctx))


def _plan(params: WriteFileParams, ctx: ToolContext, expected: str | None) -> FileChange:
    (change,) = chosen([_proposed(params, ctx, expected)], ctx)
    return change


def _proposed(params: WriteFileParams, ctx: ToolContext, expected: str | None) -> FileChange:
    path = ctx.resolve(params.path)
    try:
        found = present(path)
    except OSError as error:
        raise explained(error, path, ctx) from error
    if found is None:
        return FileChange(path, None, _plain(params.content), None)
    data, state = found
    if expected not in (None, state.sha256):
        raise ToolError(
            f"{ctx.display(path)} changed on disk since you last saw it, so overwriting it would lose that change. "
            "Nothing was written. Read it again first."
        )
    file = decode(data)
    if not data or file.looks_binary:
        return FileChange(path, data, _plain(params.content), state, "overwrites")
    content = params.content
    if file.line_end == "crlf" and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
    try:
        return FileChange(path, data, file.bom + file.encode_new(content), state, "overwrites")
    except UnicodeEncodeError:
        # The old encoding can't hold the new text; UTF-8 can.
        return FileChange(path, data, _plain(content), state, f"overwrites, {file.label} becomes UTF-8", whole=True)


def _plain(content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError("content has an unpaired surrogate, which no file can hold. Nothing was written.") from error


def _apply(change: FileChange, ctx: ToolContext) -> ToolOutcome:
    name = ctx.display(change.path)
    if change.changes_nothing:
        return ToolOutcome(f"{name} already has exactly this content; it was left alone.", (), "unchanged")
    try:
        changed = change.write()
    except (OSError, StaleFileError) as error:
        raise explained(error, change.path, ctx) from error
    verb = "Created" if change.before is None else "Overwrote"
    data = change.after or b""
    size = f"{plural(len(decode(data).text.splitlines()), 'line')}, {readable_size(len(data))}"
    note = f" {change.note.partition(', ')[2]}." if ", " in change.note else ""
    text = f"{verb} {name} ({size}; {change.detail}).{note}"
    return ToolOutcome(text, (change.block(ctx),), change.detail, changed=(changed,))
