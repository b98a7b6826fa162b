"""The model's memory: files that outlive a conversation, with the same permissions as other files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.tools.apply_patch import reverted
from swecli.core.tools.base import (
    ChangedFile,
    Params,
    Preview,
    ToolContext,
    ToolError,
    ToolOutcome,
    readable_size,
)
from swecli.core.tools.edit_file import ChangePlan, ChangeTool, FileChange, chosen, read_target, write
from swecli.core.workspace.edit import EditError, Replacement, replace_all_of
from swecli.core.workspace.text_file import TextFile, decode
from swecli.features.memory.places import MAX_FILES, NOTES, ROOT, MemoryPathError, MemoryPlaces, Place
from swecli.figures import plural

MemoryCommand = Literal["view", "create", "str_replace", "insert", "delete", "rename"]

_UNTOLD = ("overwrite", "old_path", "insert_line", "insert_text", "new_path")
"""Synonyms, and parameters of commands that others replace: accepted but not offered to the model."""
_UNTOLD_COMMANDS = ("insert", "rename")
_MOST_LINES = 2_000


class MemoryParams(Params):
    command: MemoryCommand
    path: str = ""
    file_text: str | None = None
    view_range: tuple[int, int] | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None
    old_path: str = ""
    new_path: str = ""
    overwrite: bool = False


class MemoryTool(ChangeTool[MemoryParams]):
    """``places`` may be replaced during a session. ``limit`` is the maximum size of a file in bytes. ``holds_secret``
    detects texts that must not be kept."""

    name = "memory"
    verb = "Memory"
    params = MemoryParams

    def __init__(self, places: MemoryPlaces, limit: int, holds_secret: Callable[[str], bool]) -> None:
        self.places = places
        self._limit = limit
        self._holds_secret = holds_secret

    def description(self) -> str:
        return Path(__file__).with_name("memory.md").read_text(encoding="utf-8").strip()

    def schema(self) -> Mapping[str, Any]:
        whole = dict(super().schema())
        properties = {name: schema for name, schema in whole["properties"].items() if name not in _UNTOLD}
        command = properties["command"]
        commands = [name for name in command["enum"] if name not in _UNTOLD_COMMANDS]
        whole["properties"] = {**properties, "command": {**command, "enum": commands}}
        whole["required"] = ["command", "path"]
        return whole

    def effects(self, params: MemoryParams, ctx: ToolContext) -> Effects:
        files = tuple(str(place.file) for place in self._named(params))
        return Effects(reads=files) if params.command == "view" else Effects(writes=files)

    def title(self, params: MemoryParams, ctx: ToolContext) -> str:
        names = " → ".join(place.path for place in self._named(params))
        return f"{params.command} {names}"

    async def preview(self, params: MemoryParams, ctx: ToolContext) -> Preview:
        return Preview() if params.command == "view" else await super().preview(params, ctx)

    async def target_state(self, params: MemoryParams, ctx: ToolContext) -> str | None:
        return None if params.command == "view" else await super().target_state(params, ctx)

    async def run(self, params: MemoryParams, ctx: ToolContext) -> ToolOutcome:
        if params.command == "view":
            return await asyncio.to_thread(self._view, params, ctx)
        return await super().run(params, ctx)

    def targets(self, params: MemoryParams, ctx: ToolContext) -> Sequence[Path]:
        return [change.path for change in self._changes(params, ctx)]

    def plan(self, params: MemoryParams, ctx: ToolContext) -> ChangePlan:
        return ChangePlan(tuple(chosen(self._changes(params, ctx), ctx)))

    def apply(self, plan: ChangePlan, ctx: ToolContext) -> ToolOutcome:
        done: list[tuple[FileChange, ChangedFile]] = []
        wanted = [change for change in plan.changes if not change.changes_nothing]
        if not wanted:
            return ToolOutcome("The memory already has this content; nothing was changed.", (), "unchanged")
        for change in wanted:
            try:
                done.append((change, write(change, ctx)))
            except ToolError as error:
                raise ToolError(f"{error}{reverted(done, ctx)}") from error
        self._remove_empty(change.path.parent for change in wanted if change.after is None)
        counts = [change.counts for change in wanted]
        total = f"+{sum(added for added, _ in counts)} -{sum(removed for _, removed in counts)}"
        text = f"Memory changed: {plural(len(wanted), 'file')}, {total}."
        # The notes are written by swecli too: that they change is no news for the model.
        changed = tuple(file for _, file in done if Path(file.path).name != NOTES)
        blocks = tuple(change.block(ctx) for change in wanted)
        verb = "forgotten" if all(change.after is None for change in wanted) else "remembered"
        return ToolOutcome(text, blocks, f"{verb} {total}, /undo {ctx.item}", changed=changed)

    # --- what a call names ------------------------------------------------------------------------------------

    def _named(self, params: MemoryParams) -> tuple[Place, ...]:
        if params.command == "rename":
            if not params.new_path:
                raise ToolError("rename needs path and new_path.")
            return self._place(params.old_path or params.path), self._place(params.new_path)
        return (self._place(params.path or params.old_path),)

    def _place(self, path: str) -> Place:
        try:
            return self.places.place(path)
        except (MemoryPathError, OSError) as error:
            raise ToolError(str(error)) from error

    # --- looking ----------------------------------------------------------------------------------------------

    def _view(self, params: MemoryParams, ctx: ToolContext) -> ToolOutcome:
        (place,) = self._named(params)
        if place.file.is_dir() or place.is_base:
            return self._listed(place)
        text = self._read(place, ctx)[0].text
        lines = text.splitlines()
        first, last = _span(params.view_range, len(lines), place)
        numbered = "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))
        more = f"\n[{len(lines) - last:,} more lines]" if params.view_range is None and last < len(lines) else ""
        return ToolOutcome(f"{place.path}\n{numbered or '(empty)'}{more}", (), plural(max(0, last - first + 1), "line"))

    def _listed(self, place: Place) -> ToolOutcome:
        try:
            names = self.places.names(place)
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise ToolError(f"cannot list {place.path}: {error.strerror or error}.") from error
        if place.path == ROOT and not names and self.places.user is not None:
            names = ["user/"]
        shown = "\n".join(names) or "(no memories)"
        count = plural(len(names), "entry")
        return ToolOutcome(f"{place.path}/\n{shown}", (TextBlock(shown),), count)

    def _read(self, place: Place, ctx: ToolContext) -> tuple[TextFile, FileChange]:
        """The text of a file, and a change that leaves it unchanged."""
        data, unchanged = self._any(place, ctx)
        file = decode(data)
        if file.looks_binary:
            raise ToolError(f"{place.path} is not text.")
        return file, unchanged

    def _others(self, place: Place) -> str:
        names = [file.place.path for file in self.places.files(0)]
        near = [name for name in names if name.rpartition("/")[2] == place.file.name] or names
        return f" Memories: {', '.join(near[:8])}." if near else " There are no memories yet; create makes a file."

    # --- changing ---------------------------------------------------------------------------------------------

    def _changes(self, params: MemoryParams, ctx: ToolContext) -> list[FileChange]:
        named = self._named(params)
        for place in named:
            if place.is_base:
                raise ToolError(f"{params.command} cannot change {place.path} itself; name a file in it.")
        match params.command:
            case "create":
                return [self._created(params, named[0], ctx)]
            case "str_replace":
                return [self._replaced(params, named[0], ctx)]
            case "insert":
                return [self._inserted(params, named[0], ctx)]
            case "delete":
                return self._removed(named[0], ctx)
            case _:
                return self._moved(named[0], named[-1], ctx)

    def _created(self, params: MemoryParams, place: Place, ctx: ToolContext) -> FileChange:
        if params.file_text is None:
            raise ToolError("create needs file_text.")
        after = self._kept(params.file_text, place)
        if place.file.is_dir():
            raise ToolError(f"{place.path} is a folder. Name a file in it.")
        self._require_folder(place)
        if not place.file.exists():
            if sum(file.place.base == place.base for file in self.places.files(0)) >= MAX_FILES:
                raise ToolError(f"Memory already has {MAX_FILES} files; delete some first.")
            return FileChange(place.file, None, after, None)
        if not params.overwrite:
            raise ToolError(f"{place.path} exists. Change it with str_replace or insert, or pass overwrite: true.")
        _, unchanged = self._read(place, ctx)
        return FileChange(place.file, unchanged.before, after, unchanged.state, "overwrites")

    def _replaced(self, params: MemoryParams, place: Place, ctx: ToolContext) -> FileChange:
        old, new = params.old_str, params.new_str or ""
        if not old:
            raise ToolError("str_replace needs old_str, the text to replace.")
        file, unchanged = self._read(place, ctx)
        try:
            after = replace_all_of(file, (Replacement(old, new, False),)).data
        except EditError as error:
            reason = str(error).replace("_string", "_str").replace(", or set replace_all to change all of them", "")
            raise ToolError(f"{place.path}: {reason}") from error
        self._kept(decode(after).text, place)
        return FileChange(place.file, unchanged.before, after, unchanged.state)

    def _inserted(self, params: MemoryParams, place: Place, ctx: ToolContext) -> FileChange:
        if params.insert_line is None or params.insert_text is None:
            raise ToolError("insert needs insert_line and insert_text.")
        file, unchanged = self._read(place, ctx)
        lines = file.text.splitlines(keepends=True)
        if not 0 <= params.insert_line <= len(lines):
            raise ToolError(f"{place.path} has {plural(len(lines), 'line')}: insert_line is from 0 to {len(lines)}.")
        if params.insert_line and not lines[params.insert_line - 1].endswith("\n"):
            lines[params.insert_line - 1] += "\n"
        lines.insert(params.insert_line, params.insert_text.rstrip("\n") + "\n")
        return self._with(unchanged, file, "".join(lines), place)

    def _removed(self, place: Place, ctx: ToolContext) -> list[FileChange]:
        if not place.file.is_dir():
            _, unchanged = self._any(place, ctx)
            return [_gone(unchanged)]
        memories = self._below(place)
        if not memories:
            raise ToolError(f"{place.path} contains no memory files.")
        return [_gone(self._any(memory, ctx)[1]) for memory in memories]

    def _moved(self, old: Place, new: Place, ctx: ToolContext) -> list[FileChange]:
        if new.path == old.path:
            raise ToolError("Both paths are the same; nothing was changed.")
        if new.path.startswith(f"{old.path}/"):
            raise ToolError(f"{old.path} can't be moved into itself.")
        if new.file.exists():
            raise ToolError(f"{new.path} exists. Delete it first, or choose another name.")
        self._require_folder(new)
        if not old.file.is_dir():
            return self._moved_file(old, new, ctx)
        memories = self._below(old)
        if not memories:
            raise ToolError(f"{old.path} contains no memory files.")
        pairs = [(memory, self._place(new.path + memory.path[len(old.path) :])) for memory in memories]
        return [change for memory, target in pairs for change in self._moved_file(memory, target, ctx)]

    def _moved_file(self, old: Place, new: Place, ctx: ToolContext) -> list[FileChange]:
        data, unchanged = self._any(old, ctx)
        return [
            FileChange(new.file, None, data, None, f"moved from {old.path}"),
            FileChange(old.file, data, None, unchanged.state, f"moved to {new.path}", tied=True),
        ]

    def _any(self, place: Place, ctx: ToolContext) -> tuple[bytes, FileChange]:
        """The bytes of a file, and a change that leaves it unchanged."""
        try:
            target = read_target(place.file, ctx)
        except ToolError as error:
            reason = (str(error).partition(": ")[2] or str(error)).replace(str(place.file), place.path)
            raise ToolError(f"{place.path}: {reason}") from error
        if target is None:
            raise ToolError(f"{place.path} does not exist.{self._others(place)}")
        return target[0], FileChange(place.file, target[0], target[0], target[1])

    def _below(self, folder: Place) -> list[Place]:
        return [file.place for file in self.places.files(0) if file.place.path.startswith(f"{folder.path}/")]

    def _require_folder(self, place: Place) -> None:
        for folder in place.file.parents:
            if folder == place.base:
                return
            if folder.exists() and not folder.is_dir():
                name = f"{place.path.rpartition('/')[0].rpartition('/')[0]}/{folder.name}"
                raise ToolError(f"{name} is a file, so nothing can be stored below it.")

    def _with(self, unchanged: FileChange, file: TextFile, text: str, place: Place) -> FileChange:
        self._kept(text, place)
        try:
            after = file.bom + file.encode(text)
        except UnicodeEncodeError:
            after = self._kept(text, place)
        return FileChange(place.file, unchanged.before, after, unchanged.state)

    def _kept(self, text: str, place: Place) -> bytes:
        """The bytes to store.

        Raises:
            ToolError: they must not be stored.
        """
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ToolError("The text contains an unpaired surrogate, which files cannot contain.") from error
        if len(data) > self._limit:
            raise ToolError(
                f"{place.path} would be {readable_size(len(data))}; the limit for memory files is "
                f"{readable_size(self._limit)} (memory.max_file_bytes). Keep the important parts, or split it."
            )
        if "\0" in text:
            raise ToolError("A memory is text, and this contains a NUL character.")
        if self._holds_secret(text):
            raise ToolError("The text contains a key or password from the environment, so it was not stored.")
        return data

    def _remove_empty(self, folders: Iterable[Path]) -> None:
        bases = (self.places.project, self.places.user)
        for folder in set(folders):
            with suppress(OSError):  # it still holds something
                while folder not in bases:
                    folder.rmdir()
                    folder = folder.parent


def _gone(change: FileChange) -> FileChange:
    return FileChange(change.path, change.before, None, change.state)


def _span(wanted: tuple[int, int] | None, count: int, place: Place) -> tuple[int, int]:
    if wanted is None:
        return 1, min(count, _MOST_LINES)
    first, last = wanted
    last = count if last == -1 else min(last, count)
    if first < 1 or first > max(1, count) or last < first - 1 or (last < first and count):
        raise ToolError(
            f"{place.path} has {plural(count, 'line')}; view_range is [first, last], from 1, -1 for the end."
        )
    return first, last
