"""Which session a start continues, and what is said where there is none."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from swecli.assembly.storage import DATABASE, open_storage
from swecli.core.sessions.database import open_database
from swecli.core.sessions.process import Process
from swecli.core.sessions.store import SessionStore
from swecli.launch import LaunchOptions, StartError
from tests.core.sessions.support import user_turn

ELSEWHERE = Process(os.getppid(), "")
"""A process that lives."""
CONTINUE = LaunchOptions(Path("/work"), continue_newest=True)


def begin(folder: Path, title: str, process: Process) -> str:
    with closing(SessionStore(open_database(folder / DATABASE), process=process)) as store:
        session = store.create("/work", "fake/m", "1").id
        store.append(list(user_turn(session, 1, title)))
        if process != ELSEWHERE:
            store.release(session)
    return session


def test_a_session_that_is_open_elsewhere_is_named_with_its_process(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="There is no session to continue"):
        open_storage(CONTINUE, tmp_path, "")
    held = begin(tmp_path, "Fix the bug", ELSEWHERE)
    with pytest.raises(StartError) as raised:
        open_storage(CONTINUE, tmp_path, "")
    said = str(raised.value)
    assert said.startswith(f"Session {held} (Fix the bug) is open in another swecli (process {os.getppid()}), and")
    assert "`swecli -r`" in said


def test_the_newest_of_the_others_goes_on_with_a_word(tmp_path: Path) -> None:
    free = begin(tmp_path, "Old", Process.current())
    held = begin(tmp_path, "New", ELSEWHERE)
    stored = open_storage(CONTINUE, tmp_path, "")
    assert stored.session_id == free
    assert [notice for notice in stored.notices if held in notice]
    stored.release()
