"""What a fake session changed in files."""

from __future__ import annotations

from swecli.core.checkpoints.history import Difference
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.protocol.events import FilesRestored


class FakeFiles:
    """Answers with what it was given, and keeps what it was asked to take back; None is a redo."""

    def __init__(self) -> None:
        self.done = FilesRestored("undo")
        self.recent = Recent()
        self.changed = Difference()
        self.targets: list[Target | None] = []

    async def undo(self, target: Target) -> FilesRestored:
        self.targets.append(target)
        return self.done

    async def redo(self) -> FilesRestored:
        self.targets.append(None)
        return self.done

    async def changes(self) -> Recent:
        return self.recent

    async def difference(self) -> Difference:
        return self.changed
