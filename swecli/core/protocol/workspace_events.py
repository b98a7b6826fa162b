"""Events of files, plans, jobs and the sandbox."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.value import value


@value
class FileChanged:
    """swecli changed a file. Hashes are SHA-256 of the bytes; None = the file did or does not exist."""

    path: str
    before: str | None
    after: str | None
    item: str = ""
    type: Literal["file_changed"] = field(default="file_changed", kw_only=True)


@value
class RestoredFile:
    """A file (absolute path) that an undo or redo changed."""

    path: str
    how: Literal["restored", "brought back", "removed", "mode restored", "link restored"]


@value
class LeftFile:
    """A file that was left as it is, and why."""

    path: str
    why: str


@value
class FilesRestored:
    """The user took changes of files back, or brought them back. ``operations`` are the edits and commands in
    question. Files in ``conflicts`` were changed since; those in ``not_covered`` were never recorded. ``reason`` says
    why nothing was done, where nothing could be done."""

    direction: Literal["undo", "redo"]
    operations: tuple[str, ...] = ()
    files: tuple[RestoredFile, ...] = ()
    conflicts: tuple[LeftFile, ...] = ()
    not_covered: tuple[LeftFile, ...] = ()
    reason: str = ""
    type: Literal["files_restored"] = field(default="files_restored", kw_only=True)


@value
class FileRead:
    """The model was shown lines ``first`` to ``last`` (from 1) of a file whose bytes have this SHA-256."""

    path: str
    sha256: str
    first: int
    last: int
    item: str = ""
    type: Literal["file_read"] = field(default="file_read", kw_only=True)


@value
class TodosChanged:
    todos: tuple[Todo, ...]
    type: Literal["todos_changed"] = field(default="todos_changed", kw_only=True)


@value
class SandboxChanged:
    """How far commands are contained on this machine. ``layer`` is what holds them ("bwrap", "landlock", "seatbelt",
    "none"), ``reason`` why there is no or only a partial sandbox, ``uncovered`` what a partial one leaves open."""

    level: Literal["off", "partial", "full"]
    layer: str
    reason: str = ""
    uncovered: tuple[str, ...] = ()
    label: str = ""
    """The state in one or two words."""
    type: Literal["sandbox_changed"] = field(default="sandbox_changed", kw_only=True)


@value
class JobChanged:
    """A command that runs in the background."""

    job: str
    command: str
    status: Literal["running", "exited", "killed"]
    exit_status: int | None = None
    size: int = 0
    """Bytes of output."""
    note: str = ""
    """What stopped it, where that is known."""
    type: Literal["job_changed"] = field(default="job_changed", kw_only=True)
