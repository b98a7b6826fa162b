"""Telling an open database's file from others, without disturbing the processes that share it."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.sessions.database import open_database
from swecli.core.sessions.file_identity import identity_of

TRY = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))"
FIRST_OF_INDEX = 128
"""Byte that every process with an open index locks; who can lock it alone takes itself for the first, and cuts the
index (https://sqlite.org/src, os_unix.c: UNIX_SHM_DMS)."""
SHARED = 0x40000000 + 2
"""First byte that every process locks that has the database open; who can lock it alone removes the log at its end."""


@pytest.mark.parametrize(("suffix", "byte"), [("", SHARED), ("-shm", FIRST_OF_INDEX)])
def test_a_look_at_the_files_keeps_the_locks_on_them(tmp_path: Path, suffix: str, byte: int) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_database(path)) as database:
        for number in range(2):
            with database.write() as connection:
                connection.execute(f"PRAGMA user_version={number + 100}")
        assert not identity_of(path).torn
        done = subprocess.run(
            [sys.executable, "-c", TRY, f"{path}{suffix}", str(byte)], capture_output=True, check=False
        )
        assert b"BlockingIOError" in done.stderr


def test_a_log_that_grows_or_is_shortened_just_now_is_not_torn(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    ended = threading.Event()
    with closing(open_database(path)), closing(open_database(path)) as other:

        def write() -> None:
            for number in range(300):
                with other.write() as connection:
                    connection.execute(f"PRAGMA user_version={number + 100}")
                if number % 20 == 19:
                    with other.alone() as connection:
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            ended.set()

        thread = threading.Thread(target=write)
        thread.start()
        torn = 0
        while not ended.is_set():
            torn += identity_of(path).torn
        thread.join()
        assert torn == 0


def test_a_log_that_somebody_else_cuts_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(open_database(path)) as database:
        with database.write() as connection:
            connection.execute("PRAGMA user_version=100")
        with open(f"{path}-wal", "r+b") as log:
            log.truncate(32)
        assert identity_of(path).torn
