"""Which session a start continues, and what is said where there is none."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from swecli.assembly.storage import open_storage, read_both
from swecli.core.protocol.events import Event, Notice
from swecli.core.sessions import damage
from swecli.core.sessions.database import DATABASE, open_database
from swecli.core.sessions.schema import MIGRATIONS
from swecli.core.sessions.store import SessionStore
from swecli.core.workspace.process_tree import Process
from swecli.launch import LaunchOptions, StartError
from tests.core.sessions.support import user_turn
from tests.support.closed import closed

ELSEWHERE = Process(os.getppid(), "")
"""A process that lives."""
CONTINUE = LaunchOptions(Path("/proj"), continue_newest=True)


def begin(folder: Path, title: str, process: Process) -> str:
    with closing(SessionStore(open_database(folder / DATABASE), process=process)) as store:
        session = store.create("/proj", "fake/m", "1").id
        store.append(list(user_turn(session, 1, title)))
        if process != ELSEWHERE:
            store.release(session)
    return session


def test_a_session_that_is_open_elsewhere_is_named_with_its_process(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="This folder has no session to continue"):
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


def test_what_is_wrong_with_the_database_is_said_where_nothing_can_be_continued(tmp_path: Path) -> None:
    begin(tmp_path, "Old", Process.current())
    database = tmp_path / DATABASE
    sound = database.read_bytes()
    database.write_bytes(b"\xff" * len(sound))
    with pytest.raises(
        StartError, match=r"was damaged .*It contains no readable session\. This folder has no session to conti"
    ):
        open_storage(CONTINUE, tmp_path, "")
    with pytest.raises(
        StartError, match=r"^This folder has no session .* The damaged database was kept as .*\.corrupt-"
    ):
        open_storage(CONTINUE, tmp_path, "")
    open_database(database, migrations=(*MIGRATIONS, ("CREATE TABLE extra(x)",))).close()
    for options in (CONTINUE, LaunchOptions(Path("/proj"), continue_newest=True, look_only=True)):
        with pytest.raises(
            StartError, match=r"can't be used \(a newer swecli wrote it; .* Stored sessions are not available"
        ):
            open_storage(options, tmp_path, "")


@pytest.mark.parametrize("look_only", [False, True])
def test_a_session_out_of_a_damaged_database_goes_on(tmp_path: Path, look_only: bool) -> None:
    session = begin(tmp_path, "Old", Process.current())
    database = tmp_path / DATABASE
    database.write_bytes(b"\xff" * 100 + database.read_bytes()[100:])
    stored = open_storage(LaunchOptions(Path("/proj"), continue_newest=True, look_only=look_only), tmp_path, "")
    stored.release()
    assert look_only or stored.session_id == session
    assert len(stored.history) == 3
    assert "1 session with 3 events" in stored.notices[0]


def test_damage_that_is_found_late_is_mended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = begin(tmp_path, "Old", Process.current())
    database = tmp_path / DATABASE
    content = bytearray(database.read_bytes())
    for page in range(4096, len(content), 4096):
        if content[page] in (0x0A, 0x02):  # indexes
            content[page : page + 100] = b"\xff" * 100
    database.write_bytes(content)

    def no_time(*_: object) -> None:
        monkeypatch.setattr("swecli.core.sessions.damage._check", check)

    check = damage._check  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr("swecli.core.sessions.damage._check", no_time)
    stored = open_storage(CONTINUE, tmp_path, "")
    stored.release()
    assert stored.session_id == session
    assert "1 session with 3 events" in stored.notices[0]


def test_a_session_that_can_only_be_read_goes_on_in_memory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    session = begin(data, "Old", Process.current())
    before = (data / DATABASE).read_bytes()
    with closed(data):
        stored = open_storage(CONTINUE, data, "")
        assert stored.session_id == session
        assert stored.history
        (notice,) = stored.notices
        assert "is read-only" in notice
        assert "lost when swecli ends" in notice
        stored.store.append([Event(stored.history[-1].seq + 1, 1.0, session, 1, Notice("more"))])
        assert len(stored.store.load(session)) == len(stored.history) + 1
        stored.release()
        with pytest.raises(StartError, match="No session 'other'"):
            open_storage(LaunchOptions(Path("/proj"), resume="other"), data, "")
    assert (data / DATABASE).read_bytes() == before


@pytest.mark.parametrize("step", ["open", "lease"])
def test_on_a_full_disk_a_session_goes_on_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    session = begin(tmp_path, "Old", Process.current())
    before = (tmp_path / DATABASE).read_bytes()
    lease, failed = SessionStore.lease, False

    def full(*given: object) -> None:
        nonlocal failed
        if failed and step == "lease":
            lease(*given)  # type: ignore[arg-type]
            return
        failed = True
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(
        "swecli.core.sessions.database._open_or_mend"
        if step == "open"
        else "swecli.core.sessions.store.SessionStore.lease",
        full,
    )
    stored = open_storage(CONTINUE, tmp_path, "")
    assert (stored.session_id, bool(stored.history)) == (session, True)
    (notice,) = stored.notices
    assert "can't be written (database or disk is full; free some space)" in notice
    assert "lost when swecli ends" in notice
    stored.release()
    assert (tmp_path / DATABASE).read_bytes() == before


def test_a_history_that_is_not_in_the_store_is_read_before_what_is() -> None:
    facts = [Event(seq, 0.0, "s", 1, Notice(f"{seq}")) for seq in range(1, 9)]

    def stored(after: int, upto: int, limit: int) -> list[Event]:
        return [event for event in facts[5:] if after < event.seq <= upto][:limit]

    seen: list[int] = []
    while page := read_both(facts[:5], stored, seen[-1] if seen else 0, 7, 2):
        assert len(page) <= 2
        seen += [event.seq for event in page]
    assert seen == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("exists", [True, False])
def test_a_session_of_another_folder_is_named_with_its_place(tmp_path: Path, exists: bool) -> None:
    place = tmp_path / "place"
    if exists:
        place.mkdir()
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    with closing(SessionStore(open_database(tmp_path / "old" / DATABASE))) as store:
        session = store.create(str(place), "fake/m", "1").id
        store.append(user_turn(session, 1, "Fix the bug"))
    with pytest.raises(StartError) as raised:
        open_storage(LaunchOptions(place, resume=session), tmp_path / "new", "")
    gone = f", which no longer exists; `swecli sessions relink {place}` moves its sessions here."
    assert str(raised.value) == f"Session {session} belongs to {place}{': run swecli there.' if exists else gone}"
    with pytest.raises(StartError, match="No session 'absent' in this folder"):
        open_storage(LaunchOptions(place, resume="absent"), tmp_path / "new", "")


def test_folders_that_are_gone_are_named_with_how_to_take_their_sessions(tmp_path: Path) -> None:
    gone, tree = tmp_path / "moved", tmp_path / "swecli-worktrees" / "project-1" / "done"
    for name, folder in (("old", gone), ("removed", tree)):
        (tmp_path / name).mkdir()
        with closing(SessionStore(open_database(tmp_path / name / DATABASE))) as store:
            store.append(user_turn(store.create(str(folder), "fake/m", "1").id, 1, "Fix the bug"))
    (tmp_path / "new").mkdir()
    with pytest.raises(StartError) as raised:
        open_storage(CONTINUE, tmp_path / "new", "")
    relink = f"`swecli sessions relink {gone}` moves them here."
    assert str(raised.value).endswith(f"{gone} no longer exists and has 1 session; {relink}")
    assert str(tree) not in str(raised.value)


def test_a_long_title_is_cut_visibly(tmp_path: Path) -> None:
    begin(tmp_path, "Remember " + "a/very/long/path/" * 6, ELSEWHERE)
    with pytest.raises(StartError, match=r"…\) is open in another swecli"):
        open_storage(CONTINUE, tmp_path, "")
