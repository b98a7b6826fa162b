"""What front-ends do about the files that a session changed."""

from __future__ import annotations

from swecli.core.checkpoints.difference import Difference
from swecli.core.checkpoints.report import Recent
from swecli.core.checkpoints.targets import Target
from swecli.core.engine.file_undo import FileUndo
from swecli.core.engine.work import Work
from swecli.core.protocol.events import FilesRestored


class SessionFiles:
    """Implements ``FilesPort``: what changes files is done between turns, as work of the session."""

    def __init__(self, undo: FileUndo, work: Work) -> None:
        self._undo = undo
        self._work = work

    async def undo(self, target: Target) -> FilesRestored:
        """Take changes back."""
        return await self._undo.beside(self._work, "undo", target)

    async def redo(self) -> FilesRestored:
        """Bring back what was taken back last."""
        return await self._undo.beside(self._work, "redo")

    async def changes(self) -> Recent:
        """What can be taken back."""
        return await self._undo.recent()

    async def difference(self) -> Difference:
        """What the session changed."""
        return await self._undo.difference()
