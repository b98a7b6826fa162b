"""The record of a run's file changes: opening it, handing it on, and settling what a killed run left."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import CheckpointOptions, FileHistory
from swecli.core.checkpoints.journal import broken, half_written, inherit, move
from swecli.core.checkpoints.restore import settle_broken
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.config.paths import PASTES, PROJECT_FOLDER, Paths, workspace_key
from swecli.core.sessions.database import Database, Purpose, open_database, open_in_memory
from swecli.core.workspace.atomic_write import sweep_temporary
from swecli.features import wirings
from swecli.launch import LaunchOptions

FILE = "checkpoints.db"


IN_MEMORY = 64_000_000
"""Bytes to keep in memory if nothing may be stored."""


_WRITTEN_BY_SWECLI = ("logs", PASTES)
"""Files and folders of a project that swecli writes by itself, besides those of features, also while a command runs."""


_PURPOSE = Purpose(
    "checkpoint store",
    "File changes can be undone only until swecli exits, and fewer of them",
    lambda damaged, fresh: "Earlier changes can't be undone",
)


_UNSETTLED = (
    "swecli was killed while it restored files, and can't bring them back to before that ({error}). "
    "The next start tries again."
)


def open_checkpoints(options: LaunchOptions, startup: Startup, session: str) -> Checkpoints | None:
    """The record of the session's changes, opened on first use; None if disabled."""
    settings = startup.loaded.settings.checkpoints
    if not settings.enabled:
        return None
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    own_names = startup.loaded.settings.approval.secret_names
    roots = tuple(os.path.realpath(root) for root in (options.cwd, *options.add_dirs))
    written = (*_WRITTEN_BY_SWECLI, *(name for wiring in wirings() for name in wiring.writes))
    own = (
        *(str(folder) for folder in startup.paths.all),
        *(f"{root}/{PROJECT_FOLDER}/{name}" for root in roots for name in written),
    )

    def open_history() -> FileHistory:
        rows = _open(path if options.store else None)
        total = settings.max_total_bytes if rows.durable else min(settings.max_total_bytes, IN_MEMORY)
        limits = CheckpointOptions(settings.max_file_bytes, total, settings.keep_days, settings.max_files, own_names)
        return FileHistory(rows, session, roots, limits, own)

    return Checkpoints(open_history, os.path.realpath(options.cwd), roots, os.path.realpath(Path.home()))


def inherit_changes(options: LaunchOptions, startup: Startup, parent: str, child: str) -> None:
    """Let a fork undo its parent session's changes of files."""
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    if not os.path.exists(path) or not startup.loaded.settings.checkpoints.enabled:
        return
    with closing(_open(path)) as rows, suppress(sqlite3.Error), rows.write() as connection:
        inherit(connection, parent, child)


def move_changes(paths: Paths, old: Path, new: Path, sessions: Sequence[str]) -> None:
    """Let sessions of a moved folder undo their changes of files at its new place.

    Raises:
        sqlite3.Error: one of the stores fails; nothing was moved.
    """
    source, target = (paths.state / "checkpoints" / workspace_key(folder) / FILE for folder in (old, new))
    if not os.path.exists(source):
        return
    folders = (str(old), os.path.realpath(old))
    with closing(_open(source)) as before, closing(_open(target)) as after:
        for rows in (before, after):
            if not rows.durable:
                raise sqlite3.OperationalError(rows.why_in_memory)
        with before.read() as reading, after.write(power_safe=True) as writing:
            for session in sessions:
                move(reading, writing, session, folders, os.path.realpath(new))


def settle_files(options: LaunchOptions, startup: Startup) -> tuple[str, ...]:
    """Settle what killed runs left in the folder: temporary files of edits go, and an undo, redo or rewind that was cut
    off is taken back, whatever this session stores. The record is opened only if there is one. Returns sentences for
    the user."""
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    if options.look_only or options.compact_dry_run or not os.path.exists(path):
        return ()
    is_cut_off = False
    with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        for folder, writer in half_written(connection):
            sweep_temporary(Path(folder), writer)
        is_cut_off = any(operation.kind in ("undo", "redo") for operation in broken(connection, frozenset()))
    if not is_cut_off:
        return ()
    with closing(_open(path)) as rows:
        try:
            return (*rows.problems, *settle_broken(rows))
        except (sqlite3.Error, OSError) as error:
            return (*rows.problems, _UNSETTLED.format(error=error))


def _open(path: Path | None) -> Database:
    if path is None:
        return open_in_memory(SCHEMA)
    return open_database(path, migrations=SCHEMA, purpose=_PURPOSE)
