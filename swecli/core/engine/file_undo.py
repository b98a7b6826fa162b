"""Taking changes of files back, and bringing them back, as work of the session."""

from __future__ import annotations

import asyncio
from typing import Literal

from swecli.core.checkpoints.difference import Difference
from swecli.core.checkpoints.plan import Listed
from swecli.core.checkpoints.report import Recent, Restored
from swecli.core.checkpoints.targets import Target
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.work import Work
from swecli.core.protocol.events import FilesRestored, LeftFile, RestoredFile

OFF = "Checkpoints are off for this session, so changes of files can't be taken back."
OFF_DIFF = "Checkpoints are off for this session, so it is not known what it changed; git diff may tell."


class FileUndo:
    """Over the session's checkpoints, if it has any. What was done is an event of the session."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._checkpoints = services.checkpoints
        self._recorder = recorder
        self._newest = FilesRestored("undo")

    async def undo(self, target: Target) -> None:
        """Take changes back."""
        checkpoints = self._checkpoints
        self._tell(await checkpoints.undo(target) if checkpoints is not None else Restored("undo", reason=OFF))

    async def redo(self) -> None:
        """Bring back what was taken back last."""
        checkpoints = self._checkpoints
        self._tell(await checkpoints.redo() if checkpoints is not None else Restored("redo", reason=OFF))

    async def beside(
        self, work: Work, direction: Literal["undo", "redo"], target: Target | None = None
    ) -> FilesRestored:
        """The same, between turns, for somebody who waits for the result."""
        if work.busy:
            return FilesRestored(direction, reason="A turn is running; try again when it has ended.")
        self._newest = FilesRestored(direction, reason="Interrupted; what was restored until then is recorded.")
        await asyncio.wait([work.begin(self.undo(target or Target()) if direction == "undo" else self.redo())])
        return self._newest

    async def recent(self) -> Recent:
        """What can be taken back."""
        return await self._checkpoints.recent() if self._checkpoints is not None else Recent(reason=OFF)

    async def difference(self) -> Difference:
        """What the session changed."""
        return await self._checkpoints.difference() if self._checkpoints is not None else Difference(reason=OFF_DIFF)

    async def close(self) -> None:
        """Close the record."""
        if self._checkpoints is not None:
            await self._checkpoints.close()

    def _tell(self, done: Restored) -> None:
        self._newest = FilesRestored(
            done.direction,
            done.operations,
            tuple(RestoredFile(one.path, one.how) for one in done.paths),
            _left(done.conflicts),
            _left(done.not_covered),
            done.reason,
        )
        self._recorder.emit(self._newest)


def _left(listed: tuple[Listed, ...]) -> tuple[LeftFile, ...]:
    return tuple(LeftFile(one.path, one.why) for one in listed)
