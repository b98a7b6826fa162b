"""Which stored session a run continues, and why it can't."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from swecli.core.atomic_text import ASIDE
from swecli.core.sessions.database import DATABASE, Database, changed_at, read_database
from swecli.core.sessions.store import SessionError, SessionStore, SeveralSessions
from swecli.core.sessions.titles import line_of
from swecli.core.worktrees import is_in_tree
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.launch import LaunchOptions, StartError

_EXAMINED_FOLDERS = 40
"""Databases of other folders to read, the most recently used."""
_NAMED_FOLDERS = 3
"""Missing folders to report."""


def session_to_continue(options: LaunchOptions, store: SessionStore, tell: Callable[[str], None]) -> str | None:
    """The id of the session to continue; None for a new one. A newer one that can't be continued is reported."""
    if options.resume:
        try:
            return store.get(options.resume).id
        except SeveralSessions:
            raise
        except SessionError:
            elsewhere = _place_words(store.database.path, options.resume)
            if not elsewhere:
                raise
            raise StartError(elsewhere, ExitCode.BAD_INPUT) from None
    if options.continue_newest:
        there = next(iter(store.list(limit=1)), None)
        newest = there if options.fork else store.latest()  # an open session can be copied
        holder = None if there is None or there == newest else store.holder(there.id)
        if there is None or (newest is None and holder is None):
            none = "This folder has no session to continue. Start one with `swecli`."
            raise StartError(" ".join([none, *_moved_words(store.database.path)]), ExitCode.BAD_INPUT)
        title = f" ({line_of(there.shown, 60)})" if there.shown else ""
        notice = f"Session {there.id}{title} is open in another swecli (process {holder.pid})" if holder else ""
        if newest is None:
            raise StartError(
                f"{notice}, and this folder has no other session to continue. Close it there, or start a new one "
                "with `swecli`; `swecli -r` lists all.",
                ExitCode.BAD_INPUT,
            )
        if notice:
            tell(f"{notice}. Continuing the newest other session.")
        return newest.id
    return None


def _place_words(database: Path | None, name: str) -> str:
    """Where a session of another folder is, as a sentence; empty if no folder has one of this id or name."""
    if database is None:
        return ""
    query = "SELECT id, cwd FROM sessions WHERE id = ? OR name = ? LIMIT 1"
    for path in _other_databases(database):
        for session, cwd in read_database(
            path, lambda connection: connection.execute(query, (name, name)).fetchall(), []
        ):
            if os.path.isdir(cwd):
                return f"Session {session} belongs to {cwd}: run swecli there."
            relink = f"swecli sessions relink {shlex.quote(cwd)}"
            return f"Session {session} belongs to {cwd}, which no longer exists; `{relink}` moves its sessions here."
    return ""


def _other_databases(database: Path) -> list[Path]:
    """The databases of other folders, the most recently used first."""
    others = [path for path in database.parent.parent.glob(f"*/{DATABASE}") if path != database]
    return sorted(others, key=changed_at, reverse=True)


def _moved_words(database: Path | None) -> list[str]:
    """Missing folders with sessions, as a sentence for each of the newest: this folder may be one of them after a
    move. Removed work trees were not moved."""
    if database is None:
        return []
    query = "SELECT cwd, count(*) FROM sessions WHERE turns > 0 GROUP BY cwd"
    sentences: list[str] = []
    for path in _other_databases(database)[:_EXAMINED_FOLDERS]:
        for cwd, count in read_database(path, lambda connection: connection.execute(query).fetchall(), []):
            if cwd and not os.path.isdir(cwd) and not is_in_tree(cwd) and len(sentences) < _NAMED_FOLDERS:
                many = plural(count, "session")
                relink = f"swecli sessions relink {shlex.quote(cwd)}"
                sentences.append(f"{cwd} no longer exists and has {many}; `{relink}` moves them here.")
    return sentences


def not_continued(database: Database, error: Exception) -> StartError:
    """Reason why a session can't be continued: problems of the database come first."""
    if database.why_in_memory and not database.copied:
        return StartError(f"{database.why_in_memory} Stored sessions are not available.", ExitCode.BAD_INPUT)
    sentences = [*database.problems, str(error)]
    if not database.problems and database.path is not None:
        set_aside = sorted(
            path
            for path in database.path.parent.glob(f"{DATABASE}{ASIDE}*")
            if not path.name.endswith(("-wal", "-shm"))
        )
        sentences += [f"The damaged database was kept as {set_aside[-1]}."] if set_aside else []
    return StartError(" ".join(sentences), ExitCode.BAD_INPUT)


def no_sessions(folder: Path) -> StartError:
    """The error of a command that needs a stored session of this folder."""
    return StartError(
        f"No sessions are stored for {folder}; swecli sessions list --all shows others", ExitCode.BAD_INPUT
    )
