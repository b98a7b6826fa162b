"""The stored sessions of a folder, opened for one command."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.command_line.standard_streams import complain
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.core.config.paths import Paths
    from swecli.core.sessions.store import SessionStore


def paths_of() -> Paths:
    from swecli.core.config.paths import user_paths

    return user_paths(os.environ)


def database_of(folder: Path) -> Path:
    from swecli.core.sessions.database import DATABASE

    return paths_of().workspace_data(folder) / DATABASE


@contextmanager
def opened(folder: Path, *, changes: bool = False, make: bool = False) -> Iterator[SessionStore]:
    """The store of a folder; reports its problems. ``changes``: a read-only store is useless. ``make`` creates a
    missing one.

    Raises:
        StartError: nothing is stored for the folder, or it can't be used.
    """
    from swecli.assembly.continuing import no_sessions
    from swecli.core.sessions.database import LOOKED_AT, open_database
    from swecli.core.sessions.store import SessionError, SessionStore

    file = database_of(folder)
    if not make and not file.exists():
        raise no_sessions(folder)
    database = open_database(file, purpose=LOOKED_AT)
    for problem in database.problems if database.durable else ():
        complain(f"warning: {problem}")
    with closing(SessionStore(database)) as store:
        try:
            if not database.durable and (changes or not database.copied):
                raise StartError(database.why_in_memory, ExitCode.BAD_INPUT)
            yield store
        except SessionError as error:
            raise StartError(str(error), ExitCode.BAD_INPUT) from error
        except sqlite3.Error as error:
            raise StartError(f"{file} cannot be used ({error}); nothing was changed", ExitCode.BAD_INPUT) from error
