"""Where the record of changed files is kept, and how it is opened."""

from __future__ import annotations

import os
from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import FileHistory, Options
from swecli.core.checkpoints.schema import SCHEMA
from swecli.core.config.paths import PROJECT_FOLDER, workspace_key
from swecli.core.sessions.database import Database, Purpose, open_database, open_in_memory
from swecli.launch import LaunchOptions

FILE = "checkpoints.db"
IN_MEMORY = 64_000_000
"""Bytes that are kept where nothing may be stored."""
_PURPOSE = Purpose(
    "checkpoint store",
    "Changes of files can be taken back only until swecli ends, and fewer of them",
    "changes that were made before can't be taken back",
)


def open_checkpoints(options: LaunchOptions, startup: Startup, session: str) -> Checkpoints | None:
    """The record of the session's changes, opened when it is first needed; None where the settings say so."""
    settings = startup.loaded.settings.checkpoints
    if not settings.enabled:
        return None
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    roots = tuple(os.path.realpath(root) for root in (options.cwd, *options.add_dirs))
    own = (*(str(one) for one in startup.paths.all), *(f"{root}/{PROJECT_FOLDER}/logs" for root in roots))

    def open_history() -> FileHistory:
        rows = _open(path if options.store else None)
        total = settings.max_total_bytes if rows.durable else min(settings.max_total_bytes, IN_MEMORY)
        limits = Options(settings.max_file_bytes, total, settings.keep_days, settings.max_files)
        return FileHistory(rows, session, roots, limits, own)

    return Checkpoints(open_history, os.path.realpath(options.cwd), roots, os.path.realpath(Path.home()))


def _open(path: Path | None) -> Database:
    if path is None:
        return open_in_memory(SCHEMA)
    return open_database(path, migrations=SCHEMA, purpose=_PURPOSE)
