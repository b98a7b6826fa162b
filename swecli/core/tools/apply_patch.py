"""Changing several files by one patch: all of it or nothing."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import ChangedFile, Params, Preview, Tool, ToolContext, ToolError, ToolOutcome
from swecli.core.tools.edit_file import FileChange, chosen, last_seen, present, preview_of, unread
from swecli.core.tools.list_files import explained, missing, plural, reading
from swecli.core.workspace.atomic_write import StaleFileError, shielded_thread
from swecli.core.workspace.patch import FilePatch, PatchError, parse_patch, patched
from swecli.core.workspace.text_file import FileState, decode


class ApplyPatchParams(Params):
    input: str


class ApplyPatch(Tool[ApplyPatchParams]):
    """Adds, updates, deletes and moves files as a patch says."""

    name = "apply_patch"
    verb = "Patch"
    params = ApplyPatchParams

    def effects(self, params: ApplyPatchParams, ctx: ToolContext) -> Effects:
        patches = _parsed(params)
        reads = [str(ctx.resolve(one.path)) for one in patches if one.action != "add"]
        writes = [str(ctx.resolve(path)) for one in patches for path in (one.path, one.move_to) if path]
        gone = [str(ctx.resolve(one.path)) for one in patches if one.action == "delete"]
        return Effects(reads=tuple(dict.fromkeys(reads)), writes=tuple(dict.fromkeys(writes)), unread=unread(gone, ctx))

    def title(self, params: ApplyPatchParams, ctx: ToolContext) -> str:
        patches = _parsed(params)
        first = ctx.display(ctx.resolve(patches[0].path))
        return first if len(patches) == 1 else f"{first} and {len(patches) - 1} more"

    async def preview(self, params: ApplyPatchParams, ctx: ToolContext) -> Preview:
        return await reading(lambda _: preview_of(_plan(params, ctx), ctx))

    async def run(self, params: ApplyPatchParams, ctx: ToolContext) -> ToolOutcome:
        changes = await reading(lambda _: _plan(params, ctx))
        return await shielded_thread(lambda: _apply(changes, ctx))


def _parsed(params: ApplyPatchParams) -> tuple[FilePatch, ...]:
    try:
        return parse_patch(params.input)
    except PatchError as error:
        raise ToolError(f"The patch can't be read. {error} Nothing was changed.") from error


def _plan(params: ApplyPatchParams, ctx: ToolContext) -> list[FileChange]:
    changes = [change for one in _parsed(params) for change in _planned(one, ctx)]
    paths = [change.path for change in changes]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise ToolError(f"{ctx.display(twice)} appears twice in the patch. Put all its changes under one heading.")
    return chosen(changes, ctx)


def _planned(patch: FilePatch, ctx: ToolContext) -> list[FileChange]:
    path = ctx.resolve(patch.path)
    if patch.action == "add":
        if _found(path, ctx) is not None:
            raise ToolError(f"{ctx.display(path)} exists already: use '*** Update File: '. Nothing was changed.")
        try:
            return [FileChange(path, None, patch.text.encode("utf-8"), None)]
        except UnicodeEncodeError as error:
            raise ToolError(
                "The patch has an unpaired surrogate, which no file can hold. Nothing was changed."
            ) from error
    found = _found(path, ctx)
    if found is None:
        raise ToolError(f"{missing(path, ctx)} Nothing was changed.")
    data, state = found
    if last_seen(patch.path, ctx) not in (None, state.sha256):
        raise ToolError(
            f"{ctx.display(path)} changed on disk since you last saw it. Nothing was changed; read it again."
        )
    mode = stat.S_IMODE(path.stat().st_mode)
    if patch.action == "delete":
        return [FileChange(path, data, None, state, mode=mode)]
    try:
        after = patched(decode(data), patch.chunks)
    except PatchError as error:
        raise ToolError(f"{ctx.display(path)}: {error} Nothing was changed.") from error
    if patch.move_to is None:
        return [FileChange(path, data, after, state)]
    target = ctx.resolve(patch.move_to)
    if target == path:
        return [FileChange(path, data, after, state)]
    if _found(target, ctx) is not None:
        raise ToolError(f"{ctx.display(target)} exists already, so nothing can be moved there. Nothing was changed.")
    return [
        FileChange(target, None, after, None, f"moved from {ctx.display(path)}", mode),
        FileChange(path, data, None, state, f"moved to {ctx.display(target)}", mode, tied=True),
    ]


def _found(path: Path, ctx: ToolContext) -> tuple[bytes, FileState] | None:
    try:
        return present(path)
    except OSError as error:
        raise explained(error, path, ctx) from error


def _apply(changes: Sequence[FileChange], ctx: ToolContext) -> ToolOutcome:
    done: list[tuple[FileChange, ChangedFile]] = []
    wanted = [change for change in changes if not change.changes_nothing]
    for change in wanted:
        try:
            done.append((change, change.write()))
        except (OSError, StaleFileError) as error:
            kept = _taken_back(done, ctx)
            raise ToolError(f"{explained(error, change.path, ctx)}{kept}") from error
    if not wanted:
        return ToolOutcome("The files already are as the patch wants them; nothing was changed.", (), "unchanged")
    lines = [f"{_verb(change)} {ctx.display(change.path)} ({change.detail})" for change in wanted]
    added = sum(change.counts[0] for change in wanted)
    removed = sum(change.counts[1] for change in wanted)
    detail = f"{plural(len(wanted), 'file')}, +{added} -{removed}"
    blocks = tuple(change.block(ctx) for change in wanted)
    return ToolOutcome("\n".join(lines), blocks, detail, changed=tuple(changed for _, changed in done))


def _verb(change: FileChange) -> str:
    if change.before is None:
        return "Added"
    return "Deleted" if change.after is None else "Updated"


def _taken_back(done: Sequence[tuple[FileChange, ChangedFile]], ctx: ToolContext) -> str:
    """Undo what was written before a file failed; returns what has to be said about it."""
    stuck: list[str] = []
    for change, changed in reversed(done):
        state = FileState(changed.after, 0, 0, 0) if changed.after is not None else None
        try:
            FileChange(change.path, change.after, change.before, state, mode=change.mode).write()
        except (OSError, StaleFileError):
            stuck.append(ctx.display(change.path))
    if stuck:
        return f" These files keep the patch's change, because it could not be taken back: {', '.join(stuck)}."
    return " What the patch had changed before was taken back." if done else ""
