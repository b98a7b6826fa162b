"""The changes of a session's files: compared, undone and made again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from swecli.core.checkpoints.generated import GeneratedFiles, GeneratedFolders
from swecli.core.checkpoints.git_changes import GitChanges, GitRefused, against, still_staged
from swecli.core.checkpoints.history import Difference, RunChanges
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Workspace
from swecli.core.engine.work import Work
from swecli.core.protocol.events import (
    FilesRestored,
)

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
