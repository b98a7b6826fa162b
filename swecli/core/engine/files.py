"""The user's files as a session sees them: attached with ``@``, changed outside, changed by it, undone."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.checkpoints.generated import GeneratedFiles, GeneratedFolders
from swecli.core.checkpoints.git_changes import GitChanges, against
from swecli.core.checkpoints.history import Difference
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.context_management.prompts import ATTACHED_NOTE
from swecli.core.engine.consent import NOT_ALLOWED
from swecli.core.engine.model_call import Call
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import display_name
from swecli.core.engine.services import Mentionable, Services
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.engine.work import Work
from swecli.core.llm.types import ModelInfo
from swecli.core.ports import EditorFiles
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.events import (
    FilesRestored,
    ItemCheckpointed,
    ItemStarted,
    Notice,
    Queued,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.base import readable_size
from swecli.core.tools.editor import as_in_editor
from swecli.core.tools.read_file import MAX_IMAGE, ReadFile, binary_kind, image_type, is_binary
from swecli.core.tools.search import ListFiles
from swecli.core.workspace.mentions import MOST, Mention, mentioned, resolve
from swecli.core.workspace.text_file import open_regular, read_all, read_bytes

OFF = "Checkpoints are off for this session, so file changes cannot be undone."
OFF_DIFF = "Checkpoints are off for this session, so its changes are unknown; git diff may show them."


class SessionFiles:
    """What a session changed in files, and the ways back: between turns, as work of the session, each an event."""

    def __init__(self, services: Services, recorder: Recorder, work: Work) -> None:
        self._checkpoints = services.checkpoints
        self._workspace = services.workspace
        self._recorder = recorder
        self._work = work
        self._newest = FilesRestored("undo")

    async def undo(self, target: Target) -> FilesRestored:
        return await self._restored("undo", target)

    async def redo(self) -> FilesRestored:
        return await self._restored("redo", Target())

    async def changes(self) -> Recent:
        return await self._checkpoints.recent() if self._checkpoints is not None else Recent(reason=OFF)

    async def difference(self, below: str = "") -> Difference:
        """What the session changed in files, from the first change to the last; what was taken back is left out.
        ``below``: an absolute path."""
        if self._checkpoints is None:
            return Difference(reason=OFF_DIFF)
        return await self._checkpoints.difference(below)

    async def against(self, revision: str, below: str = "") -> GitChanges:
        """How the working tree differs from a revision of git, whoever changed it.

        Raises:
            GitRefused: nothing is known, and why.
        """
        place = self._workspace
        roots = [str(root) for root in place.roots]
        return await asyncio.to_thread(against, revision, str(place.cwd), roots, place.environment, below)

    async def generated(self, paths: Sequence[str]) -> tuple[list[str], GeneratedFiles]:
        """The paths to list, and the sum of those in generated folders."""
        roots = tuple(map(str, self._workspace.roots))
        return await asyncio.to_thread(lambda: GeneratedFolders(roots).split(paths))

    def begin(self, direction: Literal["undo", "redo"], target: Target) -> asyncio.Task[None]:
        """Start to take changes back, or to bring them back; only while nothing else runs."""
        return self._work.begin(self._restore(direction, target))

    async def close(self) -> None:
        if self._checkpoints is not None:
            await self._checkpoints.close()

    async def _restored(self, direction: Literal["undo", "redo"], target: Target) -> FilesRestored:
        if self._work.busy:
            return FilesRestored(direction, reason="A turn is running; try again when it ends.")
        self._newest = FilesRestored(direction, reason="Interrupted; files restored so far are recorded.")
        await asyncio.wait([self.begin(direction, target)])
        return self._newest

    async def _restore(self, direction: Literal["undo", "redo"], target: Target) -> None:
        checkpoints = self._checkpoints
        if checkpoints is None:
            self._newest = FilesRestored(direction, reason=OFF)
        else:
            self._newest = await (checkpoints.undo(target) if direction == "undo" else checkpoints.redo())
        self._recorder.emit(self._newest)


MOST_FILES = 64
"""Files that are looked at before one request, the newest."""
MOST_BYTES = 32_000_000
"""Bytes that are read before one request; the rest waits for the next."""
LARGEST = 10_000_000
NAMED = 8
_SETTLED = 2.0
"""Seconds after a change from which on another change is sure to get another time stamp."""


class _Stamp(Struct, frozen=True):
    """A file's status at a look at it, and the hash that it had then; None = it was gone."""

    size: int = 0
    modified: int = 0
    inode: int = 0
    sha256: str | None = None


class ChangedFiles:
    """Finds files that someone else changed after the model saw them. ``note`` is what the next request has to tell
    the model about that; empty when there is nothing."""

    def __init__(self, recorder: Recorder, services: Services) -> None:
        self._recorder = recorder
        self._services = services
        self._stamps: dict[str, _Stamp] = {}
        self.note = ""

    async def check(self) -> None:
        """Look at the files, off the event loop, and make the note anew."""
        ledger = self._recorder.ledger
        if not ledger.files:
            return
        visible = list(ledger.files.visible(ledger.live_items(), ledger.present_items()))[:MOST_FILES]
        if not visible:
            self.note = ""
            return
        found = await asyncio.to_thread(_look, [path for path, _ in visible], dict(self._stamps))
        self._stamps.update(found)
        taken_back = self._recorder.state.taken_back
        others = [(path, touch) for path, touch in visible if path in found and found[path].sha256 != touch.sha256]
        editor, cwd = self._services.editor, self._services.workspace.cwd
        if others and editor is not None:  # the model may have seen what is not saved yet
            unsaved = await asyncio.to_thread(_unsaved, [path for path, _ in others], editor)
            others = [(path, touch) for path, touch in others if unsaved.get(path) != touch.sha256]
        changed = [(display_name(path, cwd), _how(found[path].sha256, path in taken_back)) for path, _ in others]
        self.note = _note(changed)


def _unsaved(paths: Sequence[str], editor: EditorFiles) -> dict[str, str]:
    """Hashes of files as the editor has them."""
    hashes: dict[str, str] = {}
    for path in paths:
        with suppress(OSError):
            data, _ = read_bytes(Path(path), LARGEST)
            hashes[path] = sha256(as_in_editor(Path(path), data, editor)).hexdigest()
    return hashes


def _how(sha256: str | None, taken_back: bool) -> str:
    words = [*(["deleted"] if sha256 is None else []), *(["the user undid your change"] if taken_back else [])]
    return f" ({', '.join(words)})" if words else ""


def _note(changed: Sequence[tuple[str, str]]) -> str:
    """``changed`` are names and what is to be said of each."""
    if not changed:
        return ""
    names = [f"{name}{how}" for name, how in changed[:NAMED]]
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    listed = ", ".join(names) + more
    return f"Changed on disk since you last saw them: {listed}. Read them again before you edit or rely on them."


def _look(paths: Sequence[str], known: Mapping[str, _Stamp]) -> dict[str, _Stamp]:
    """The present state of files. What was not touched since the last look is not read again; a file that can't be
    looked at is left out."""
    left = MOST_BYTES
    found: dict[str, _Stamp] = {}
    for path in paths:
        try:
            with open_regular(Path(path)) as (descriptor, status):
                stamp = _Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
                before = known.get(path)
                settled = time.time() - status.st_mtime > _SETTLED
                if before is not None and settled and replace(before, sha256=None) == stamp:
                    found[path] = before
                elif status.st_size <= min(LARGEST, left):
                    left -= status.st_size
                    found[path] = replace(stamp, sha256=sha256(read_all(descriptor, status.st_size)).hexdigest())
        except FileNotFoundError:
            found[path] = _Stamp()
        except OSError:
            continue
    return found


# --- attached -------------------------------------------------------------------------------------------------

_HEAD = 8_192
"""Bytes that tell what a file is."""
_ENDS = ".,;:!?)]}"
"""What may follow a word in a sentence."""


def words_of(message: Submit | Steer | Queued) -> tuple[str, ...]:
    """What a message mentions: as it says itself, or else what stands in its text."""
    if message.mentions is not None:
        return message.mentions
    return mentioned(message.text) if "@" in message.text else ()


async def attach(
    recorder: Recorder,
    scheduler: Scheduler,
    words: Sequence[str],
    cwd: Path,
    model: ModelInfo,
    mentionables: Sequence[Mentionable] = (),
) -> None:
    """Attach what messages mention: each file is read as ``read_file`` reads it, and each of the ``mentionables`` with
    its tool, under the same permissions (the user named a mentionable, which is consent to the program that reads it),
    as an item of its own that joins the conversation behind the message. Returns
    when all of it is there; the user hears of what is not."""
    if not words:
        return

    def tell(word: str, problem: str, hint: str = "") -> None:
        recorder.emit(Notice(f"@{word} was not attached: {problem}", "warning", "attachments", hint))

    known = {one.word: one for one in mentionables}
    named = {word: one for word in words if (one := known.get(word) or known.get(word.rstrip(_ENDS))) is not None}
    calls = {
        one.word: _begin_call(recorder, one.tool, one.arguments, _by_the_user(one.word), typed=True)
        for one in {one.word: one for one in named.values()}.values()
    }
    found = await asyncio.to_thread(resolved_mentions, [word for word in words if word not in named], cwd, model)
    for mention in found:
        if mention.problem:
            tell(mention.word, mention.problem)
        elif len(calls) == MOST:
            tell(mention.word, f"a message can attach at most {MOST} files")
        else:
            calls[mention.word] = _begin(recorder, mention, cwd)
    await scheduler.run(tuple(calls.values()))
    for word, call in calls.items():
        record = recorder.ledger.items[call.item]
        result = next((part for part in record.parts if isinstance(part, ToolResultPart)), None)
        if record.status == "ok" or result is None:
            continue
        said = result.text.partition("\n")[2] or result.text
        if record.status != "rejected":
            tell(word, said)
        elif said.startswith(NOT_ALLOWED):
            planning = call.typed and recorder.state.mode == "plan"
            hint = "Shift+Tab leaves plan mode; then mention it again." if planning else ""
            tell(word, _clause(said.removeprefix(NOT_ALLOWED)), hint)
        else:
            tell(word, "reading it was not allowed")


def _clause(sentence: str) -> str:
    """A sentence as what follows a colon; a name at its beginning keeps its letters."""
    first = sentence.partition(" ")[0]
    return sentence if "/" in first or not first[1:].islower() else sentence[:1].lower() + sentence[1:]


class Passage(Struct, frozen=True):
    """Lines ``first`` to ``last`` (0: all) of a file, which a message names with ``word``."""

    path: str
    word: str
    first: int = 1
    last: int = 0


async def attach_passages(
    recorder: Recorder, scheduler: Scheduler, passages: Sequence[Passage], cwd: Path
) -> frozenset[str]:
    """Attach files that a message names without ``@``, in the same way. Returns the paths of those that were read; of
    the others it says nothing, because nobody asked for them."""
    calls: dict[str, Call] = {}
    for one in passages:
        arguments: dict[str, object] = {"path": one.path}
        if one.last:
            arguments |= {"offset": one.first, "limit": one.last - one.first + 1}
        note = f"{ATTACHED_NOTE}swecli: the message names {one.word}]"
        calls[one.path] = _begin_call(recorder, ReadFile.name, arguments, note)
    if calls:
        await scheduler.run(tuple(calls.values()))
    return frozenset(path for path, call in calls.items() if recorder.ledger.items[call.item].status == "ok")


def _begin(recorder: Recorder, mention: Mention, cwd: Path) -> Call:
    arguments: dict[str, object] = {"path": str(mention.path)}
    if mention.path.is_relative_to(cwd):
        arguments["path"] = str(mention.path.relative_to(cwd))
    if mention.last:
        arguments |= {"offset": mention.first, "limit": mention.last - mention.first + 1}
    tool = ListFiles.name if mention.is_folder else ReadFile.name
    return _begin_call(recorder, tool, arguments, _by_the_user(mention.word))


def _by_the_user(word: str) -> str:
    return f"{ATTACHED_NOTE}the user: @{word}]"


def _begin_call(
    recorder: Recorder, tool: str, arguments: Mapping[str, object], note: str, *, typed: bool = False
) -> Call:
    item = recorder.new_item("t")
    part = ToolCallPart(item, tool, json.dumps(arguments))
    recorder.emit(ItemStarted(item, "attachment", tool))
    recorder.emit(ItemCheckpointed(item, part))
    return Call(item, part, note=note, typed=typed)


def resolved_mentions(words: Sequence[str], cwd: Path, model: ModelInfo | None) -> list[Mention]:
    """What the words name, each file once, with what a look at it tells."""
    mentions = (resolve(word, cwd) for word in words)
    found = {(one.path, one.first, one.last): one for one in mentions if one is not None}
    return [one if one.problem or one.is_folder else _examined(one, model) for one in found.values()]


def _examined(mention: Mention, model: ModelInfo | None) -> Mention:
    """The mention, with the problem that its file is nothing that the model can be shown."""
    try:
        with open_regular(mention.path) as (descriptor, status):
            head = os.read(descriptor, _HEAD)
    except OSError:
        return mention  # reading it tells why not
    problem = ""
    if image_type(head) is None:
        if is_binary(head):
            problem = f"it is a binary file ({binary_kind(head)}, {readable_size(status.st_size)})"
    elif model is not None and model.images is False:
        problem = f"{model.ref} does not support images"
    elif status.st_size > MAX_IMAGE:
        problem = f"the image is {readable_size(status.st_size)}, more than {readable_size(MAX_IMAGE)}"
    return Mention(mention.word, mention.path, problem=problem) if problem else mention
