"""Tells the model which files that it has read have changed outside the session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.note_topics import CHANGED_FILES
from swecli.core.engine.companion import Companion
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.plan import read_plan
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import display_name
from swecli.core.engine.services import Workspace
from swecli.core.ports import EditorFiles
from swecli.core.protocol.events import (
    PlanChanged,
)
from swecli.core.tools.editor import as_in_editor
from swecli.core.workspace.text_file import open_regular, read_all, read_bytes

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
