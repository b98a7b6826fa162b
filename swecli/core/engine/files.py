"""The user's files in a session: attached with ``@``, changed outside it, changed by it, undone."""

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
from swecli.core.checkpoints.git_changes import GitChanges, GitRefused, against, still_staged
from swecli.core.checkpoints.history import Difference, RunChanges
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.context_management.note_topics import CHANGED_FILES
from swecli.core.context_management.prompts import ATTACHED_NOTE
from swecli.core.engine.companion import Companion
from swecli.core.engine.consent import NOT_ALLOWED
from swecli.core.engine.model_call import Call
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.plan import read_plan
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import display_name
from swecli.core.engine.services import Mentionable, Workspace
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.engine.work import Work
from swecli.core.images import image_type, too_large
from swecli.core.llm.types import ModelInfo
from swecli.core.ports import EditorFiles
from swecli.core.protocol.commands import Steer, Submit
from swecli.core.protocol.events import (
    FilesRestored,
    ItemCheckpointed,
    ItemStarted,
    Notice,
    PlanChanged,
    Queued,
)
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart
from swecli.core.tools.base import readable_size
from swecli.core.tools.editor import as_in_editor
from swecli.core.tools.read_file import ALL_PAGES, ReadFile, binary_kind, is_binary
from swecli.core.tools.search import ListFiles
from swecli.core.workspace.mentions import MOST, Mention, mentioned, resolve
from swecli.core.workspace.pdf import MAGIC
from swecli.core.workspace.text_file import open_regular, read_all, read_bytes
from swecli.safe_text import printable_name

OFF = "Checkpoints are off for this session, so file changes cannot be undone."
OFF_DIFF = "Checkpoints are off for this session, so its changes are unknown; git diff may show them."


class SessionFiles:
    """File changes of a session, and their undo and redo: between turns, as session work, each recorded as an event."""

    def __init__(self, workspace: Workspace, recorder: Recorder, work: Work) -> None:
        self._checkpoints = workspace.checkpoints
        self._workspace = workspace
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
        """File changes of the session from first to last, without undone ones. ``below``: an absolute path."""
        if self._checkpoints is None:
            return Difference(reason=OFF_DIFF)
        return await self._checkpoints.difference(below)

    async def created(self) -> tuple[str, ...]:
        """Absolute paths of the files that the session's edits have created."""
        return await self._checkpoints.created() if self._checkpoints is not None else ()

    async def against(self, revision: str, below: str = "") -> GitChanges:
        """Differences between the working tree and a git revision, including changes by others.

        Raises:
            GitRefused: the comparison failed; the message says why.
        """
        place = self._workspace
        roots = [str(root) for root in place.roots]
        return await asyncio.to_thread(against, revision, str(place.cwd), roots, place.environment, below)

    async def still_staged(self, paths: Sequence[str]) -> list[str]:
        """Those of the undone files whose undone version git still has staged; empty if that is unknown."""
        place = self._workspace
        roots = [str(root) for root in place.roots]
        try:
            return await asyncio.to_thread(still_staged, paths, str(place.cwd), roots, place.environment)
        except GitRefused:
            return []

    async def generated(self, paths: Sequence[str]) -> tuple[list[str], GeneratedFiles]:
        """The paths to list, and a summary of those in generated folders."""
        roots = tuple(map(str, self._workspace.roots))
        return await asyncio.to_thread(lambda: GeneratedFolders(roots).split(paths))

    def begin(self, direction: Literal["undo", "redo"], target: Target) -> asyncio.Task[None]:
        """Start to undo or redo changes; only while nothing else runs."""
        return self._work.begin(self._restore(direction, target))

    async def close(self) -> None:
        if self._checkpoints is not None:
            await self._checkpoints.close()

    @property
    def run_changes(self) -> RunChanges | None:
        """What this run changed, known after ``close``; None if it is unknown."""
        return self._checkpoints.run_changes if self._checkpoints is not None else None

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
"""Most files checked before one request, newest first."""
MOST_BYTES = 32_000_000
"""Most bytes read before one request; the rest waits for the next."""
LARGEST = 10_000_000
NAMED = 8
_SETTLED = 2.0
"""Seconds after a change from which another change is sure to get a different time stamp."""


class _Stamp(Struct, frozen=True):
    """Status of a file when it was last checked, and its hash then; None = it was gone. ``settled``: a later change
    gets another status."""

    size: int = 0
    modified: int = 0
    inode: int = 0
    settled: bool = True
    sha256: str | None = None


class ChangedFiles(Companion):
    """Finds files that someone else changed after the model saw them, and a proposed plan that the user edited."""

    def __init__(self, recorder: Recorder, workspace: Workspace, notes: Notes) -> None:
        self._recorder = recorder
        self._workspace = workspace
        self._notes = notes
        self._stamps: dict[str, _Stamp] = {}

    async def before_request(self) -> None:
        """Check the files, off the event loop, and tell the model."""
        plan = self._recorder.state.plan
        edited = await self._edited(plan) if plan is not None and plan.path and not plan.accepted else ()
        changed = await self._changed() if self._recorder.ledger.files.touches else ()
        text = _note([*edited, *changed]) if edited or changed else ""
        self._notes.state(Statement(CHANGED_FILES, "Changed files", text))

    async def _edited(self, known: PlanChanged) -> Sequence[tuple[str, str]]:
        """The file of the proposed plan if the user edited it and the model has not read it since."""
        ledger, cwd = self._recorder.ledger, self._workspace.cwd
        if ledger.files.last(str(cwd / known.path), ledger.present_items()) is not None:
            return ()
        text = await asyncio.to_thread(read_plan, cwd / known.path)
        return ((known.path, " (the user edited your plan)"),) if text and text != known.text.strip() else ()

    async def _changed(self) -> Sequence[tuple[str, str]]:
        """Files with another content than the model saw last, and a remark on each."""
        ledger = self._recorder.ledger
        visible = list(ledger.files.visible(ledger.live_items(), ledger.present_items()))[:MOST_FILES]
        if not visible:
            return ()
        found = await asyncio.to_thread(_look, [path for path, _ in visible], dict(self._stamps))
        self._stamps.update(found)
        undone = self._recorder.state.undone
        others = [(path, touch) for path, touch in visible if path in found and found[path].sha256 != touch.sha256]
        editor, cwd = self._workspace.editor, self._workspace.cwd
        if others and editor is not None:  # the model may have seen unsaved content
            unsaved = await asyncio.to_thread(_unsaved, [path for path, _ in others], editor)
            others = [(path, touch) for path, touch in others if unsaved.get(path) != touch.sha256]
        return [(display_name(path, cwd), _how(found[path].sha256, path in undone)) for path, _ in others]


def _unsaved(paths: Sequence[str], editor: EditorFiles) -> dict[str, str]:
    """Hashes of the unsaved editor contents of files."""
    hashes: dict[str, str] = {}
    for path in paths:
        with suppress(OSError):
            data, _ = read_bytes(Path(path), LARGEST)
            hashes[path] = sha256(as_in_editor(Path(path), data, editor)).hexdigest()
    return hashes


def _how(sha256: str | None, undone: bool) -> str:
    words = [*(["deleted"] if sha256 is None else []), *(["the user undid your change"] if undone else [])]
    return f" ({', '.join(words)})" if words else ""


def _note(changed: Sequence[tuple[str, str]]) -> str:
    """The note for ``changed``: file names with a remark on each."""
    names = [f"{name}{how}" for name, how in changed[:NAMED]]
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    listed = ", ".join(names) + more
    return f"Changed on disk since you last saw them: {listed}. Read them again before you edit or rely on them."


def _look(paths: Sequence[str], known: Mapping[str, _Stamp]) -> dict[str, _Stamp]:
    """Current state of files. Files untouched since the last check are not read again; unreadable ones are left out."""
    left = MOST_BYTES
    found: dict[str, _Stamp] = {}
    for path in paths:
        try:
            with open_regular(Path(path)) as (descriptor, status):
                stamp = _Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
                before = known.get(path)
                if before is not None and replace(before, sha256=None) == stamp:
                    found[path] = before
                elif status.st_size <= min(LARGEST, left):
                    left -= status.st_size
                    settled = time.time() - status.st_mtime > _SETTLED
                    found[path] = replace(
                        stamp, settled=settled, sha256=sha256(read_all(descriptor, status.st_size)).hexdigest()
                    )
        except FileNotFoundError:
            found[path] = _Stamp()
        except OSError:
            continue
    return found


# --- attached -------------------------------------------------------------------------------------------------

_HEAD = 8_192
"""Bytes read to detect the type of a file."""
_ENDS = ".,;:!?)]}"
"""Punctuation that may follow a word in a sentence."""


def words_of(message: Submit | Steer | Queued) -> tuple[str, ...]:
    """Mentions of a message: its own list, or else those found in its text."""
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
    """Attach the mentions of messages as items behind them: files through ``read_file``, ``mentionables`` through their
    tools, under the same permissions. Naming a mentionable is consent to the program that reads it. Returns when all
    are attached; notices report failures."""
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
    """A sentence turned into a clause for use after a colon; a leading name keeps its case."""
    first = sentence.partition(" ")[0]
    return sentence if "/" in first or not first[1:].islower() else sentence[:1].lower() + sentence[1:]


class Passage(Struct, frozen=True):
    """Lines ``first`` to ``last`` (0: all) of a file that a message names with ``word``."""

    path: str
    word: str
    first: int = 1
    last: int = 0


async def attach_passages(
    recorder: Recorder, scheduler: Scheduler, passages: Sequence[Passage], cwd: Path
) -> frozenset[str]:
    """Attach files that a message names without ``@``, in the same way. Returns the paths of those that were read;
    failures are silent because the user did not ask for these files."""
    calls: dict[str, Call] = {}
    for one in passages:
        arguments: dict[str, object] = {"path": one.path}
        if one.last:
            arguments |= {"offset": one.first, "limit": one.last - one.first + 1}
        note = f"{ATTACHED_NOTE}swecli: the message names {printable_name(one.word)}]"
        calls[one.path] = _begin_call(recorder, ReadFile.name, arguments, note)
    if calls:
        await scheduler.run(tuple(calls.values()))
    return frozenset(path for path, call in calls.items() if recorder.ledger.items[call.item].status == "ok")


def _begin(recorder: Recorder, mention: Mention, cwd: Path) -> Call:
    arguments: dict[str, object] = {"path": str(mention.path)}
    if mention.path.is_relative_to(cwd):
        arguments["path"] = str(mention.path.relative_to(cwd))
    arguments |= chosen_part(mention)
    tool = ListFiles.name if mention.is_folder else ReadFile.name
    return _begin_call(recorder, tool, arguments, _by_the_user(mention.word))


def chosen_part(mention: Mention) -> dict[str, object]:
    """The arguments with which ``read_file`` reads the mentioned lines or pages, of a PDF as many as it takes."""
    if mention.is_pdf:
        return {"pages": f"{mention.first}-{mention.last}" if mention.last else ALL_PAGES}
    return {"offset": mention.first, "limit": mention.last - mention.first + 1} if mention.last else {}


def _by_the_user(word: str) -> str:
    return f"{ATTACHED_NOTE}the user: @{printable_name(word)}]"


def _begin_call(
    recorder: Recorder, tool: str, arguments: Mapping[str, object], note: str, *, typed: bool = False
) -> Call:
    item = recorder.new_item("t")
    part = ToolCallPart(item, tool, json.dumps(arguments))
    recorder.emit(ItemStarted(item, "attachment", tool))
    recorder.emit(ItemCheckpointed(item, part))
    return Call(item, part, note=note, typed=typed)


def resolved_mentions(words: Sequence[str], cwd: Path, model: ModelInfo | None) -> list[Mention]:
    """The mentioned files, each once, with the result of a quick check."""
    mentions = (resolve(word, cwd) for word in words)
    found = {(one.path, one.first, one.last): one for one in mentions if one is not None}
    return [one if one.problem or one.is_folder else _examined(one, model) for one in found.values()]


def _examined(mention: Mention, model: ModelInfo | None) -> Mention:
    """The mention, with a problem set if the model can't be shown its file."""
    try:
        with open_regular(mention.path) as (descriptor, status):
            head = os.read(descriptor, _HEAD)
    except OSError:
        return mention  # reading it reports the reason
    problem = ""
    if head.startswith(MAGIC):
        return replace(mention, is_pdf=True)
    if image_type(head) is None:
        if is_binary(head):
            problem = f"it is a binary file ({binary_kind(head)}, {readable_size(status.st_size)})"
    elif model is not None and model.images is False:
        problem = f"{model.ref} does not support images"
    elif limit := too_large(status.st_size):
        problem = f"the image is {readable_size(status.st_size)}; {limit}"
    return Mention(mention.word, mention.path, problem=problem) if problem else mention
