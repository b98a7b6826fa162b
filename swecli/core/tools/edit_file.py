"""Changes to one file: replacing text or writing the whole file, planned from its bytes and bound to them."""

from __future__ import annotations

import asyncio
import os
import stat
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from swecli.core.config.trust import instructs
from swecli.core.permissions.types import Effects
from swecli.core.ports import EditorError
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.request_events import Hunk
from swecli.core.tools.base import (
    ChangedFile,
    Choice,
    P,
    Params,
    Preview,
    SeenFile,
    Tool,
    ToolContext,
    ToolError,
    ToolOutcome,
    explained,
    missing,
    readable_size,
    reading,
)
from swecli.core.tools.editor import as_in_editor, writable_as_text
from swecli.core.tools.slips import omission, unfenced, wrong_content
from swecli.core.uninterrupted import uninterrupted
from swecli.core.workspace.atomic_write import StaleFileError, atomic_delete, atomic_write
from swecli.core.workspace.edit import EditError, Replacement, replace_all_of
from swecli.core.workspace.line_diff import Span, changed_spans, count_changes
from swecli.core.workspace.text_file import FileState, TextFile, decode, read_bytes
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

MAX_FILE = 10_000_000
"""Largest file, in bytes, that the file tools change."""
_WHOLE_DIFF = 200_000
"""Up to this many characters a diff shows both texts in full; beyond it, only the differing region."""
_CHARACTERS_AROUND = 20


class FileChange(Struct, frozen=True):
    """A planned change to one file. ``before`` and ``state`` are None for a new file; ``after`` is None for a deletion.
    ``mode`` is the mode of a new file that is copied from another."""

    path: Path
    before: bytes | None
    after: bytes | None
    state: FileState | None
    note: str = ""
    mode: int | None = None
    tied: bool = False
    """Applies only together with the previous change: the other half of a move."""
    whole: bool = False
    """Applies only as a whole: its lines can't be mixed with the existing ones."""

    @property
    def counts(self) -> tuple[int, int]:
        return count_changes(_text(self.before or b""), _text(self.after or b""))

    @property
    def detail(self) -> str:
        added, removed = self.counts
        return f"+{added} -{removed}"

    def block(self, ctx: ToolContext) -> DiffBlock:
        """The change as a diff; for a long text, only the differing region."""
        old = None if self.before is None else _text(self.before)
        new = None if self.after is None else _text(self.after)
        notes = [self.note] if self.note else []
        if self.changes_nothing:
            notes = [f"already has this content, {plural(len(self.before or b''), 'byte')}"]
        if not any(self.path.is_relative_to(root) for root in (ctx.cwd, *ctx.roots)):
            notes.append("outside the workspace")
        if "\0" in (old or "") or "\0" in (new or ""):
            notes.append("binary")
        first = 1
        if old is not None and new is not None and len(old) + len(new) > _WHOLE_DIFF:
            old, new, first = _region(old, new)
            notes.append(f"from line {first} of a long file")
        return DiffBlock(ctx.display(self.path), old, new, ", ".join(notes), first_line=first)

    @property
    def fact(self) -> str:
        if self.before is None:
            read = "; new conversations read it" if instructs(self.path) else ""
            return f"new file, {_size(self.after or b'')}{read}"
        if self.after is None:
            return f"deletes the file, {_size(self.before)}"
        if self.changes_nothing:
            return ""  # the block says so
        size = f"{len(self.before):,} \u2192 {_size(self.after)}" if b"\0" in self.before + self.after else self.detail
        return f"overwrites the file, {size}" if self.note.startswith("overwrites") else size

    def write(self) -> ChangedFile:
        """Write the change if the file is unchanged since planning. ``path`` is the approved place: a link that has
        appeared in it since is not followed.

        Raises:
            StaleFileError: the file has changed, or its path leads elsewhere.
            OSError: writing failed.
        """
        before = self.state.sha256 if self.state else None
        if os.path.realpath(self.path) != str(self.path):
            raise StaleFileError(f"{self.path} leads elsewhere")
        if self.after is None:
            atomic_delete(self.path, before or "")
            return ChangedFile(str(self.path), before, None)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        written = atomic_write(self.path, self.after, before, follow=False)
        if self.mode is not None:
            written.path.chmod(self.mode)
        return ChangedFile(str(written.path), before, written.sha256)

    @property
    def changes_nothing(self) -> bool:
        return self.before == self.after


def read_target(path: Path, ctx: ToolContext) -> tuple[bytes, FileState] | None:
    """The file's bytes and state; None if it does not exist.

    Raises:
        ToolError: it is not a regular file, too large, or unreadable.
    """
    try:
        data, state = read_bytes(path, MAX_FILE, exact=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise explained(error, path, ctx) from error
    shown = as_in_editor(path, data, ctx.editor)
    if shown == data:
        return data, state
    return shown, state._replace(sha256=sha256(shown).hexdigest(), size=len(shown))


def _text(data: bytes) -> str:
    return decode(data).text


def _region(old: str, new: str) -> tuple[str, str, int]:
    """Both texts from shortly before the first differing line to shortly after the last, and its first line."""
    before, after = old.split("\n"), new.split("\n")
    limit = min(len(before), len(after))
    start = next((index for index in range(limit) if before[index] != after[index]), limit)
    end = next((index for index in range(limit - start) if before[-1 - index] != after[-1 - index]), limit - start)
    start, end = max(0, start - _CHARACTERS_AROUND), max(0, end - _CHARACTERS_AROUND)
    return "\n".join(before[start : len(before) - end]), "\n".join(after[start : len(after) - end]), start + 1


_LINES_AROUND = 8
"""Lines shown before and after a match."""
_MOST_LINES = 80
_MOST_COLUMNS = 400


def last_seen(path: str, ctx: ToolContext) -> str | None:
    """SHA-256 of the file as the model last saw it; None if it never did.

    Raises:
        ToolError: the path is invalid.
    """
    return ctx.last_seen(str(ctx.resolve(path))) if ctx.last_seen is not None else None


def unread(paths: Iterable[str], ctx: ToolContext) -> tuple[str, ...]:
    """Those of the absolute paths with a non-empty file that the model has not seen."""
    last_seen = ctx.last_seen
    if last_seen is None:
        return ()
    return tuple(path for path in paths if last_seen(path) is None and _has_content(path))


def _has_content(path: str) -> bool:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size > 0


def stale_edit(path: Path, text: str, sha256: str, lines: Sequence[int], old: str, ctx: ToolContext) -> ToolError:
    """The error for an edit to a file that changed since the model saw it. It quotes the current text around each
    match, so that the model can resend the edit if it still fits."""
    height = old.count("\n") + 1
    every = text.split("\n")
    total = len(every) - text.endswith("\n")
    wanted: list[int] = []
    for line in lines:
        span = range(max(1, line - _LINES_AROUND), min(total, line + height - 1 + _LINES_AROUND) + 1)
        fresh = [number for number in span if not wanted or number > wanted[-1]]
        if wanted and len(wanted) + len(fresh) > _MOST_LINES:
            break
        wanted += fresh[:_MOST_LINES]
    shown: list[str] = []
    for position, number in enumerate(wanted):
        if position and number != wanted[position - 1] + 1:
            shown.append("  …")
        shown.append(f"{number:>5}\t{every[number - 1].removesuffix(chr(13))[:_MOST_COLUMNS]}")
    body = "\n".join(shown)
    seen = (SeenFile(str(path), sha256, wanted[0], wanted[-1]),) if wanted else ()
    return ToolError(
        f"{ctx.display(path)} changed on disk since you last saw it. Nothing was edited. old_string is still in it; "
        f"this is the text around it now:\n{body}\nIf the edit is still right, send it again.",
        seen,
    )


_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_ONE_BYTE_UNITS = frozenset(("utf-8", "latin-1", "cp1252"))


class OutdatedChoice(ToolError):
    """The files have changed since the user made the choice; nothing was written."""


def preview_of(changes: Sequence[FileChange], ctx: ToolContext) -> Preview:
    """The preview of changes: one block each, with the hunks to choose from."""
    blocks = tuple(change.block(ctx) for change in changes)
    facts = tuple(filter(None, (change.fact for change in changes)))
    shown = facts if len(facts) < 4 else (_summary(changes),)
    unchanged = bool(changes) and all(change.changes_nothing for change in changes)
    return Preview(blocks, _state(changes), _hunks(changes), shown, unchanged)


def chosen(changes: Sequence[FileChange], ctx: ToolContext) -> list[FileChange]:
    """The changes after all of the user's choices, without empty ones.

    Raises:
        OutdatedChoice: a choice was made from another state.
        ToolError: nothing is left, or the file's encoding can't represent a text.
    """
    left = list(changes)
    for choice in ctx.choices:
        if choice.state != _state(left):
            raise OutdatedChoice("The file changed after the user chose what to change. Nothing was written.")
        left = _after(left, choice, ctx)
        if not left:
            raise ToolError("The user rejected the whole change. Nothing was written.")
    return left


def _state(changes: Sequence[FileChange]) -> str:
    return "\n".join(_state_of(change.path, change.state) for change in changes)


def _state_of(path: Path, state: FileState | None) -> str:
    return f"{path}={state or 'absent'}"


def _state_now(paths: Iterable[Path], ctx: ToolContext) -> str | None:
    """The ``state`` that a preview of these files would have now; None if one can't be read."""
    states: list[str] = []
    for path in paths:
        try:
            target = read_target(path, ctx)
        except ToolError:
            return None
        states.append(_state_of(path, target[1] if target is not None else None))
    return "\n".join(states)


def _summary(changes: Sequence[FileChange]) -> str:
    made = sum(change.before is None for change in changes)
    deleted = sum(change.after is None for change in changes)
    added, removed = (sum(counts) for counts in zip(*(change.counts for change in changes), strict=True))
    return f"{len(changes)} files ({made} created, {deleted} deleted), +{added:,} -{removed:,}"


def _size(content: bytes) -> str:
    """How much a file holds: lines of a text, bytes of anything else."""
    return plural(len(content), "byte") if b"\0" in content else plural(len(_text(content).splitlines()), "line")


def _hunks(changes: Sequence[FileChange]) -> tuple[Hunk, ...]:
    out: list[Hunk] = []
    for block, change in enumerate(changes):
        if not change.tied:
            out += [Hunk(block, i1 + 1, i2 - i1, j1 + 1, j2 - j1) for i1, i2, j1, j2 in _Sides(change).spans]
    return tuple(out)


def _after(changes: Sequence[FileChange], choice: Choice, ctx: ToolContext) -> list[FileChange]:
    edited = {block_text.block: block_text.text for block_text in choice.texts}
    first = 1
    out: list[FileChange] = []
    included = True
    for block, change in enumerate(changes):
        if change.tied:
            out += [change] if included else []
            continue
        sides = _Sides(change)
        numbers = range(first, first + len(sides.spans))
        first += len(sides.spans)
        after = change.after
        if choice.hunks is not None:
            after = sides.narrowed([number in choice.hunks for number in numbers])
        elif block in edited:
            after = _retold(change, edited[block], ctx)
        included = after != change.before
        if included:
            out.append(replace(change, after=after))
    return out


class _Sides:
    """Both sides of a change, line by line: text to compare and bytes to assemble."""

    def __init__(self, change: FileChange) -> None:
        self._change = change
        self.spans: list[Span] = []
        self._old: list[bytes] = []
        self._new: list[bytes] = []
        if change.before == change.after:
            return
        old, new = decode(change.before or b""), decode(change.after or b"")
        if change.before is None or change.after is None or change.whole or not _mixable(old, new):
            self.spans = [(0, len(_lines(old.text)), 0, len(_lines(new.text)))]
            return
        before, after = _lines(old.text), _lines(new.text)
        self._old, self._new = [old.encode(line) for line in before], [new.encode(line) for line in after]
        self._head, self._tail = old.bom, old.tail
        self.spans = changed_spans(before, after)

    def narrowed(self, accepted: Sequence[bool]) -> bytes | None:
        if all(accepted):
            return self._change.after
        if not any(accepted):
            return self._change.before
        out: list[bytes] = [self._head]
        at = 0
        for (i1, i2, j1, j2), wanted in zip(self.spans, accepted, strict=True):
            out += self._old[at:i1]
            out += self._new[j1:j2] if wanted else self._old[i1:i2]
            at = i2
        return b"".join((*out, *self._old[at:], self._tail))


def _mixable(old: TextFile, new: TextFile) -> bool:
    if (old.bom, old.tail) != (new.bom, new.tail):
        return False
    if old.codec == new.codec:
        return True
    units = old.codec in _ONE_BYTE_UNITS and new.codec in _ONE_BYTE_UNITS
    return units and (old.text.isascii() or new.text.isascii())


def _retold(change: FileChange, text: str, ctx: ToolContext) -> bytes:
    """Bytes for the user's replacement of the proposed text. Lines that the user left alone keep their exact bytes,
    including those that the shown text could not represent."""
    if change.after is None:
        raise ToolError("A deleted file has no text to edit.")
    proposed = decode(change.after)
    block = change.block(ctx)
    shown = block.new or ""
    start, count = block.first_line - 1, shown.count("\n") + 1
    lines = _lines(proposed.text)
    to_end = start + count > proposed.text.count("\n")
    end = len(lines) if to_end else start + count
    wanted = _lines(text if to_end else f"{text}\n")
    pieces = [proposed.encode(line) for line in lines]
    out, at = pieces[:start], start
    for i1, i2, j1, j2 in changed_spans([*map(_comparable, lines[start:end])], [*map(_comparable, wanted)]):
        out += pieces[at : start + i1]
        out += [_encoded(line, proposed) for line in wanted[j1:j2]]
        at = start + i2
    return b"".join((proposed.bom, *out, *pieces[at:], proposed.tail))


def _encoded(line: str, file: TextFile) -> bytes:
    try:
        return file.encode(line)
    except UnicodeEncodeError as error:
        char = line[error.start : error.end][:1]
        raise ToolError(f"The file is {file.label}, which cannot contain {char!r} (U+{ord(char):04X}).") from error


def _comparable(line: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", line)


def _lines(text: str) -> list[str]:
    return list(StringIO(text, newline="\n"))


class ChangePlan(Struct, frozen=True):
    """The changes of one call. ``lines`` are the known line numbers of the old text where edits begin, ``difference``
    what the model quoted in another form than the file has."""

    changes: tuple[FileChange, ...]
    lines: tuple[int, ...] = ()
    difference: str = ""


class ChangeTool(Tool[P]):
    """A tool that changes files. Preview and run share one plan while the files are unchanged. All methods except
    ``preview``, ``target_state`` and ``run`` block on the disk."""

    @abstractmethod
    def targets(self, params: P, ctx: ToolContext) -> Sequence[Path]:
        """The files that the plan changes, in its order."""

    @abstractmethod
    def plan(self, params: P, ctx: ToolContext) -> ChangePlan:
        """Read the files and plan the change.

        Raises:
            ToolError: the change is impossible.
        """

    @abstractmethod
    def apply(self, plan: ChangePlan, ctx: ToolContext) -> ToolOutcome:
        """Write the planned change.

        Raises:
            ToolError: a file has changed since planning, or writing failed.
        """

    async def preview(self, params: P, ctx: ToolContext) -> Preview:
        return await reading(lambda _: preview_of(self._planned(params, ctx).changes, ctx))

    async def target_state(self, params: P, ctx: ToolContext) -> str | None:
        return await reading(lambda _: _state_now(self.targets(params, ctx), ctx))

    async def run(self, params: P, ctx: ToolContext) -> ToolOutcome:
        plan = await reading(lambda _: self._planned(params, ctx))
        return await uninterrupted(asyncio.to_thread(self.apply, plan, ctx))

    def _planned(self, params: P, ctx: ToolContext) -> ChangePlan:
        """The call's last plan if its arguments, choices and files are unchanged; otherwise a new one."""
        key, last = (params, ctx.choices), ctx.planned
        known: ChangePlan | None = last.plan if last.key == key else None
        if known is None or _state(known.changes) != _state_now((change.path for change in known.changes), ctx):
            known = self.plan(params, ctx)
            last.key, last.plan = key, known
        return known


def write(change: FileChange, ctx: ToolContext) -> ChangedFile:
    """Write one change.

    Raises:
        ToolError: the file has changed since planning, or writing failed.
    """
    try:
        return _written_by_editor(change, ctx) or change.write()
    except EditorError as error:
        raise ToolError(f"{ctx.display(change.path)}: {error}") from error
    except (OSError, StaleFileError) as error:
        raise explained(error, change.path, ctx) from error


def _written_by_editor(change: FileChange, ctx: ToolContext) -> ChangedFile | None:
    """Let the editor write a change, so that its buffer matches the file; None if the change should go to disk instead.

    Raises:
        EditorError: the editor failed, or has unsaved changes and can't write.
        StaleFileError: the file or the editor's buffer has changed since planning.
        ToolError: the file can't be read.
    """
    editor, before = ctx.editor, change.state.sha256 if change.state else None
    if editor is None:
        return None
    now = read_target(change.path, ctx)
    if (now[1].sha256 if now is not None else None) != before:
        raise StaleFileError(str(change.path))
    if change.after is not None and change.mode is None and editor.writes and writable_as_text(change.after):
        change.path.parent.mkdir(parents=True, exist_ok=True)
        editor.write(change.path, decode(change.after).text)
        return ChangedFile(str(change.path), before, sha256(change.after).hexdigest())
    if now is not None and now[0] != read_bytes(change.path, MAX_FILE)[0]:
        raise EditorError(
            "the user's editor has unsaved changes to this file. Nothing was written; ask the user to save it first."
        )
    return None


class WriteFileParams(Params):
    path: str
    content: str


class WriteFile(ChangeTool[WriteFileParams]):
    """Creates a file or replaces its content; an existing text keeps its encoding, byte order mark and CRLF."""

    name = "write_file"
    verb = "Write"
    params = WriteFileParams

    def effects(self, params: WriteFileParams, ctx: ToolContext) -> Effects:
        path = str(ctx.resolve(params.path))
        return Effects(writes=(path,), unread=unread((path,), ctx))

    def title(self, params: WriteFileParams, ctx: ToolContext) -> str:
        return ctx.display(ctx.resolve(params.path))

    def targets(self, params: WriteFileParams, ctx: ToolContext) -> Sequence[Path]:
        return (ctx.resolve(params.path),)

    def plan(self, params: WriteFileParams, ctx: ToolContext) -> ChangePlan:
        return ChangePlan(tuple(chosen([_replacement(params, ctx)], ctx)))

    def apply(self, plan: ChangePlan, ctx: ToolContext) -> ToolOutcome:
        (change,) = plan.changes
        name = ctx.display(change.path)
        if change.changes_nothing:
            return ToolOutcome(f"{name} already has exactly this content; nothing was written.", (), "unchanged")
        changed = write(change, ctx)
        verb = "Created" if change.before is None else "Overwrote"
        data = change.after or b""
        size = f"{plural(len(decode(data).text.splitlines()), 'line')}, {readable_size(len(data))}"
        note = change.note if change.before is None else change.note.partition(", ")[2]
        note = f" {note[:1].upper()}{note[1:]}." if note else ""
        detail = change.detail
        text = f"{verb} {name} ({size}; {detail}).{note}"
        return ToolOutcome(text, (change.block(ctx),), detail, changed=(changed,))


def _replacement(params: WriteFileParams, ctx: ToolContext) -> FileChange:
    path = ctx.resolve(params.path)
    target = read_target(path, ctx)
    if target is None:
        content, note = _content(params, "")
        return FileChange(path, None, _plain(content), None, note)
    data, state = target
    if last_seen(params.path, ctx) not in (None, state.sha256):
        raise ToolError(
            f"{ctx.display(path)} changed on disk since you last saw it, and overwriting would lose that change. "
            "Nothing was written. Read it again first."
        )
    file = decode(data)
    text, note = _content(params, "" if file.looks_binary else file.text)
    note = f", {note}" if note else ""
    if not data or file.looks_binary:
        return FileChange(path, data, _plain(text), state, f"overwrites{note}")
    content = text.replace("\n", "\r\n") if file.line_end == "crlf" and "\r\n" not in text else text
    try:
        return FileChange(path, data, file.bom + file.encode_new(content), state, f"overwrites{note}")
    except UnicodeEncodeError:
        # The old encoding can't hold the new text; UTF-8 can.
        note = f"overwrites, {file.label} becomes UTF-8{note}"
        return FileChange(path, data, _plain(content), state, note, whole=True)


def _content(params: WriteFileParams, before: str) -> tuple[str, str]:
    """The text to write to a file that holds ``before``, and a note if it is not exactly the model's.

    Raises:
        ToolError: it is no text of such a file.
    """
    inside = unfenced(params.path, params.content)
    content = params.content if inside is None else inside
    if why := wrong_content(params.path, content, before):
        raise ToolError(f"Nothing was written: {why}")
    return content, "" if inside is None else "without the code fence around it"


def _plain(content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(
            "content has an unpaired surrogate, which files cannot contain. Nothing was written."
        ) from error


class OneEdit(Params):
    old_string: str
    new_string: str
    replace_all: bool = False


class EditFileParams(Params):
    path: str
    old_string: Annotated[str | None, Meta(description="Without line numbers")] = None
    new_string: str | None = None
    replace_all: bool = False
    edits: Annotated[tuple[OneEdit, ...], Meta(description="Several instead, in order, all or none")] = ()

    def problem(self) -> str:
        given = [name for name in ("old_string", "new_string") if getattr(self, name) is not None]
        if self.edits and given:
            return f"{' and '.join(given)} cannot be combined with edits"
        if not self.edits and len(given) < 2:
            absent = [name for name in ("old_string", "new_string") if name not in given]
            return f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} required, or edits"
        return ""

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        if self.edits:
            return tuple(Replacement(edit.old_string, edit.new_string, edit.replace_all) for edit in self.edits)
        return (Replacement(self.old_string or "", self.new_string or "", self.replace_all),)


class EditFile(ChangeTool[EditFileParams]):
    """Replaces one match or all matches, in one or several edits; every other byte of the file stays."""

    name = "edit_file"
    verb = "Edit"
    params = EditFileParams

    def effects(self, params: EditFileParams, ctx: ToolContext) -> Effects:
        path = str(ctx.resolve(params.path))
        return Effects(reads=(path,), writes=(path,))

    def title(self, params: EditFileParams, ctx: ToolContext) -> str:
        return ctx.display(ctx.resolve(params.path))

    def targets(self, params: EditFileParams, ctx: ToolContext) -> Sequence[Path]:
        return (ctx.resolve(params.path),)

    def plan(self, params: EditFileParams, ctx: ToolContext) -> ChangePlan:
        path = ctx.resolve(params.path)
        target = read_target(path, ctx)
        if target is None:
            raise ToolError(f"{missing(path, ctx)} Use write_file to create a file.")
        data, state = target
        stale = last_seen(params.path, ctx) not in (None, state.sha256)
        file = decode(data)
        for replacement in params.replacements:
            if why := omission(params.path, "new_string", replacement.new, (replacement.old, file.text)):
                raise ToolError(f"{ctx.display(path)} was not edited: {why}")
        try:
            edited = replace_all_of(file, params.replacements)
        except EditError as error:
            note = " The file changed on disk since you last saw it." if stale else ""
            raise ToolError(f"{ctx.display(path)}: {error}{note}") from error
        if stale:
            longest = max((replacement.old for replacement in params.replacements), key=lambda old: old.count("\n"))
            raise stale_edit(path, file.text, state.sha256, sorted(edited.lines), longest, ctx)
        changes = chosen([FileChange(path, data, edited.data, state)], ctx)
        return ChangePlan(tuple(changes), () if ctx.choices else edited.lines, edited.difference)

    def apply(self, plan: ChangePlan, ctx: ToolContext) -> ToolOutcome:
        (change,) = plan.changes
        changed = write(change, ctx)
        detail = change.detail
        text = f"Edited {ctx.display(change.path)}{_where(plan.lines)} ({detail})."
        if plan.difference:
            text += f" old_string had other {plan.difference} than the file; the file's form was kept."
        return ToolOutcome(text, (change.block(ctx),), detail, changed=(changed,))


def _where(lines: tuple[int, ...]) -> str:
    if not lines:
        return ""
    return f" at line {lines[0]}" if len(lines) == 1 else f" at {plural(len(lines), 'place')}, first at line {lines[0]}"
