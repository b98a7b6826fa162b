"""One patch to several files, applied completely or not at all."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import ChangedFile, Params, ToolContext, ToolError, ToolOutcome, missing
from swecli.core.tools.edit_file import (
    ChangePlan,
    ChangeTool,
    FileChange,
    chosen,
    last_seen,
    read_target,
    unread,
    write,
)
from swecli.core.workspace.atomic_write import StaleFileError
from swecli.core.workspace.patch import FilePatch, PatchError, parse_patch, patched
from swecli.core.workspace.text_file import FileState, decode
from swecli.figures import plural


class ApplyPatchParams(Params):
    input: str


class ApplyPatch(ChangeTool[ApplyPatchParams]):
    name = "apply_patch"
    verb = "Patch"
    params = ApplyPatchParams

    def effects(self, params: ApplyPatchParams, ctx: ToolContext) -> Effects:
        patches = _parsed(params)
        reads = [str(ctx.resolve(patch.path)) for patch in patches if patch.action != "add"]
        writes = [str(ctx.resolve(path)) for patch in patches for path in (patch.path, patch.move_to) if path]
        deleted = [str(ctx.resolve(patch.path)) for patch in patches if patch.action == "delete"]
        return Effects(
            reads=tuple(dict.fromkeys(reads)), writes=tuple(dict.fromkeys(writes)), unread=unread(deleted, ctx)
        )

    def title(self, params: ApplyPatchParams, ctx: ToolContext) -> str:
        patches = _parsed(params)
        first = ctx.display(ctx.resolve(patches[0].path))
        return first if len(patches) == 1 else f"{first} and {len(patches) - 1} more"

    def targets(self, params: ApplyPatchParams, ctx: ToolContext) -> Sequence[Path]:
        # A move writes the new file before it removes the old one.
        names = (name for patch in _parsed(params) for name in (patch.move_to, patch.path) if name)
        return tuple(dict.fromkeys(ctx.resolve(name) for name in names))

    def plan(self, params: ApplyPatchParams, ctx: ToolContext) -> ChangePlan:
        changes = [change for patch in _parsed(params) for change in _planned(patch, ctx)]
        paths = [change.path for change in changes]
        twice = next((path for path in paths if paths.count(path) > 1), None)
        if twice is not None:
            raise ToolError(f"{ctx.display(twice)} appears twice in the patch. Put all its changes under one heading.")
        return ChangePlan(tuple(chosen(changes, ctx)))

    def apply(self, plan: ChangePlan, ctx: ToolContext) -> ToolOutcome:
        done: list[tuple[FileChange, ChangedFile]] = []
        wanted = [change for change in plan.changes if not change.changes_nothing]
        for change in wanted:
            try:
                done.append((change, write(change, ctx)))
            except ToolError as error:
                raise ToolError(f"{error}{reverted(done, ctx)}") from error
        if not wanted:
            return ToolOutcome("The files already match the patch; nothing was changed.", (), "unchanged")
        counts = [change.counts for change in wanted]
        lines = [
            f"{_verb(change)} {ctx.display(change.path)} (+{added} -{removed})"
            for change, (added, removed) in zip(wanted, counts, strict=True)
        ]
        total = f"+{sum(added for added, _ in counts)} -{sum(removed for _, removed in counts)}"
        blocks = tuple(change.block(ctx) for change in wanted)
        detail = f"{plural(len(wanted), 'file')}, {total}"
        return ToolOutcome("\n".join(lines), blocks, detail, changed=tuple(changed for _, changed in done))


def _parsed(params: ApplyPatchParams) -> tuple[FilePatch, ...]:
    try:
        return parse_patch(params.input)
    except PatchError as error:
        raise ToolError(f"Invalid patch. {error} Nothing was changed.") from error


def _planned(patch: FilePatch, ctx: ToolContext) -> list[FileChange]:
    path = ctx.resolve(patch.path)
    if patch.action == "add":
        if read_target(path, ctx) is not None:
            raise ToolError(f"{ctx.display(path)} already exists: use '*** Update File: '. Nothing was changed.")
        try:
            return [FileChange(path, None, patch.text.encode("utf-8"), None)]
        except UnicodeEncodeError as error:
            raise ToolError(
                "The patch contains an unpaired surrogate, which files cannot contain. Nothing was changed."
            ) from error
    existing = read_target(path, ctx)
    if existing is None:
        raise ToolError(f"{missing(path, ctx)} Nothing was changed.")
    data, state = existing
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
    if read_target(target, ctx) is not None:
        raise ToolError(f"{ctx.display(target)} already exists, so no file can be moved there. Nothing was changed.")
    return [
        FileChange(target, None, after, None, f"moved from {ctx.display(path)}", mode),
        FileChange(path, data, None, state, f"moved to {ctx.display(target)}", mode, tied=True),
    ]


def _verb(change: FileChange) -> str:
    if change.before is None:
        return "Added"
    return "Deleted" if change.after is None else "Updated"


def reverted(done: Sequence[tuple[FileChange, ChangedFile]], ctx: ToolContext) -> str:
    """Revert the files written before one failed; returns a sentence that begins with a blank."""
    stuck: list[str] = []
    for change, changed in reversed(done):
        state = FileState(changed.after, 0, 0, 0) if changed.after is not None else None
        try:
            FileChange(change.path, change.after, change.before, state, mode=change.mode).write()
        except (OSError, StaleFileError):
            stuck.append(ctx.display(change.path))
    if stuck:
        return f" Earlier changes to these files could not be reverted: {', '.join(stuck)}."
    return " The call's other changes were reverted." if done else ""
