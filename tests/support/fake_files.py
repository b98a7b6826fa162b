"""What a fake session changed in files."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from swecli.core.checkpoints.generated import GeneratedFiles, GeneratedFolders, is_below
from swecli.core.checkpoints.git_changes import GitChanges, GitRefused
from swecli.core.checkpoints.history import Difference, RunChanges
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.protocol.events import FilesRestored


class FakeFiles:
    """Answers with what it was given, and keeps what it was asked to take back; None is a redo."""

    def __init__(self) -> None:
        self.run_changes: RunChanges | None = None
        self.done = FilesRestored("undo")
        self.recent = Recent()
        self.changed = Difference()
        self.tree: GitChanges | GitRefused = GitRefused("no repository", "No repository.")
        self.revisions: list[tuple[str, str]] = []
        self.targets: list[Target | None] = []
        self.staged: Sequence[str] = ()

    async def undo(self, target: Target) -> FilesRestored:
        self.targets.append(target)
        return self.done

    async def redo(self) -> FilesRestored:
        self.targets.append(None)
        return self.done

    async def changes(self) -> Recent:
        return self.recent

    async def difference(self, below: str = "") -> Difference:
        files = tuple(block for block in self.changed.files if not below or is_below(block.path, below))
        return replace(self.changed, files=files)

    async def against(self, revision: str, below: str = "") -> GitChanges:
        self.revisions.append((revision, below))
        if isinstance(self.tree, GitRefused):
            raise self.tree
        files = tuple(block for block in self.tree.files if not below or is_below(block.path, below))
        return replace(self.tree, files=files)

    async def still_staged(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if path in self.staged]

    async def generated(self, paths: Sequence[str]) -> tuple[list[str], GeneratedFiles]:
        return GeneratedFolders(("/proj",)).split(paths)
