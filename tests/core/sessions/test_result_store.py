"""Stored results: given back byte for byte, or not at all."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.ports import BlobError, BlobStore
from swecli.core.sessions.database import Database, open_database, open_in_memory
from swecli.core.sessions.store import SessionStore
from swecli.library.stored_results import ResultStore


def store_of(database: Database, parent: str | None = None) -> tuple[ResultStore, str]:
    session = SessionStore(database).create("/proj", "m", "0", parent=parent).id
    return ResultStore(database, session), session


@given(st.lists(st.binary(max_size=3_000), max_size=5))
@settings(deadline=None, max_examples=40)
def test_what_goes_in_comes_out(contents: list[bytes]) -> None:
    blobs, _ = store_of(open_in_memory())
    refs = [blobs.put("run_command", content) for content in contents]
    assert [blobs.get(ref.id) for ref in refs] == contents
    assert [ref.size for ref in refs] == [len(content) for content in contents]
    assert len({ref.id for ref in refs}) == len(set(contents))


def test_it_is_the_port_of_the_tools() -> None:
    port: BlobStore = store_of(open_in_memory())[0]
    assert port.get("r000000000000") is None


def test_two_megabytes_survive_the_process_and_take_little_room(tmp_path: Path) -> None:
    content = b"".join(b"line %d of a long output\n" % number for number in range(80_000))
    assert len(content) > 2_000_000
    first = open_database(tmp_path / "sessions.db")
    blobs, session = store_of(first)
    ref = blobs.put("run_command", content)
    first.close()
    again = ResultStore(open_database(tmp_path / "sessions.db"), session)
    assert again.get(ref.id) == content
    assert (tmp_path / "sessions.db").stat().st_size < 700_000


def test_offloading_gives_a_reference_that_retrieves() -> None:
    blobs, _ = store_of(open_in_memory())
    small, large = "x" * 4_096, "é" * 2_049
    assert blobs.offload_result("run_command", "call_1", small) == small
    reference = blobs.offload_result("run_command", "call_2", large)
    assert "run_command: 4,098 bytes" in reference
    assert "call_2" in reference
    ref = reference.split("stored as ")[1][:13]
    assert blobs.retrieve(ref) == large
    with pytest.raises(BlobError, match="nknown stored result"):
        blobs.retrieve("r000000000000")


def test_a_damaged_result_is_an_error_and_never_garbage() -> None:
    database = open_in_memory()
    blobs, _ = store_of(database)
    ref = blobs.put("run_command", b"the right content " * 100)
    other = blobs.put("run_command", b"another content " * 100)

    def damage(sql: str, *values: object) -> None:
        with database.write() as connection:
            connection.execute(sql, values)

    with database.read() as connection:
        (stored,) = connection.execute("SELECT content FROM tool_result_blobs WHERE id = ?", (ref.id,)).fetchone()
    changes: list[object] = [
        bytes([*stored[:-1], stored[-1] ^ 1]),
        stored[:-3],
        b"",
        b"not compressed",
        "text",
        stored * 2,
    ]
    for value in changes:
        damage("UPDATE tool_result_blobs SET content = ? WHERE id = ?", value, ref.id)
        if value == stored * 2:
            assert blobs.get(ref.id) == b"the right content " * 100  # what follows the end is no part of it
            continue
        with pytest.raises(BlobError, match="damaged"):
            blobs.get(ref.id)
    damage("UPDATE tool_result_blobs SET content = (SELECT content FROM tool_result_blobs WHERE id = ?)", other.id)
    with pytest.raises(BlobError, match="damaged"):
        blobs.get(ref.id)
    damage("UPDATE tool_result_blobs SET byte_size = 5000000000 WHERE id = ?", other.id)
    with pytest.raises(BlobError, match="damaged"):
        blobs.get(other.id)
    blobs.put("run_command", b"the right content " * 100)
    assert blobs.get(ref.id) == b"the right content " * 100


def test_results_of_other_sessions_stay_theirs_but_a_fork_reads_on() -> None:
    database = open_in_memory()
    first, session = store_of(database)
    ref = first.put("run_command", b"found by the first")
    assert store_of(database)[0].get(ref.id) is None
    assert store_of(database, parent=session)[0].get(ref.id) == b"found by the first"


def test_a_locked_database_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    database = open_database(path)
    blobs, _ = store_of(database)
    database._writer.execute("PRAGMA busy_timeout=0")  # type: ignore[reportPrivateUsage]
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BlobError, match="locked"):
        blobs.put("run_command", b"x" * 5_000)
    other.execute("ROLLBACK")
    other.close()
    assert blobs.get(blobs.put("run_command", b"x" * 5_000).id) == b"x" * 5_000


def test_a_full_database_stores_nothing_and_keeps_the_rest(tmp_path: Path) -> None:
    database = open_database(tmp_path / "sessions.db")
    blobs, _ = store_of(database)
    kept = blobs.put("run_command", b"kept")
    with database.write() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    database._writer.execute(f"PRAGMA max_page_count={pages}")  # type: ignore[reportPrivateUsage]
    with pytest.raises(BlobError, match="full"):
        blobs.put("run_command", os.urandom(200_000))
    assert blobs.get(kept.id) == b"kept"


def test_results_go_with_their_session() -> None:
    database = open_in_memory()
    blobs, session = store_of(database)
    ref = blobs.put("run_command", b"content")
    with database.write() as connection:
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
    assert blobs.get(ref.id) is None
    with pytest.raises(BlobError):
        blobs.put("run_command", b"content")


def test_a_program_keeps_results_in_a_file_of_its_own(tmp_path: Path) -> None:
    large = "line\n" * 2_000
    first = ResultStore(tmp_path / "results.db", "s1")
    reference = first.offload_result("shell_exec", "call_1", large)
    assert len(reference) < len(large) / 2
    first.close()
    again = ResultStore(str(tmp_path / "results.db"), "s1")
    (ref,) = set(re.findall(r'ref_id="(\w+)"', reference))
    assert again.retrieve(ref) == large
    again.close()
    with pytest.raises(BlobError, match="Unknown stored result"):
        ResultStore(tmp_path / "results.db", "s2").retrieve(ref)


def test_without_a_file_results_stay_in_memory_and_a_bad_file_is_told(tmp_path: Path) -> None:
    store = ResultStore(threshold=10)
    (ref,) = set(re.findall(r'ref_id="(\w+)"', store.offload_result("shell_exec", "call_1", "x" * 11)))
    assert store.retrieve(ref) == "x" * 11
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(BlobError, match="can't be used"):
        ResultStore(tmp_path / "folder.db", "s1")
