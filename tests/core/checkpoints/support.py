"""A file history over a folder, with operations that a test makes by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from swecli.core.checkpoints.history import CheckpointOptions, FileHistory
from swecli.core.checkpoints.journal import Change, OperationKind, Origin
from swecli.core.checkpoints.restore import Target
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.protocol.events import FilesRestored
from swecli.core.sessions.database import Database, open_database

OPTIONS = CheckpointOptions()


class Bench:
    """A workspace in ``folder`` and a store beside it."""

    def __init__(
        self, folder: Path, options: CheckpointOptions = OPTIONS, session: str = "s1", own: Iterable[str] = ()
    ) -> None:
        self.base = Path(os.path.realpath(folder))
        self.work = self.base / "work"
        self.work.mkdir(exist_ok=True)
        self.options = options
        self.session = session
        self.own = tuple(str(self.work / name) for name in own)
        self.calls = 0
        self.turn = 1
        self.history = self.open()
        self.history.first_copy()

    def rows(self) -> Database:
        return open_database(self.base / "state" / "checkpoints.db", migrations=SCHEMA)

    def open(self) -> FileHistory:
        history = FileHistory(self.rows(), self.session, (str(self.work),), self.options, self.own)
        history.open()
        return history

    def again(self) -> None:
        """A new process takes over; what the old one had in memory is gone."""
        self.history.close()
        self.history = self.open()

    def origin(self, kind: OperationKind, title: str) -> Origin:
        self.calls += 1
        return Origin(self.session, self.turn, f"t{self.calls}", kind, title)

    def command(self, text: str, outside: Iterable[Path] = ()) -> tuple[Change, ...]:
        """A shell command, recorded."""
        running = self.history.begin(self.origin("command", text), map(str, outside), watch=True)
        subprocess.run(["bash", "-c", text], cwd=self.work, check=False, capture_output=True)
        return self.history.end(running)

    def edit(self, name: str, data: bytes | None) -> tuple[Change, ...]:
        """A tool's edit, recorded; None deletes."""
        path = self.work / name
        running = self.history.begin(self.origin("edit", name), [str(path)], watch=False)
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return self.history.end(running)

    def undo(self, target: Target | None = None) -> FilesRestored:
        return self.history.undo(target or Target())

    def redo(self) -> FilesRestored:
        return self.history.redo()
