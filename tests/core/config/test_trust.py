"""Trust is kept by real path, survives damage, and does not spread."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from swecli.core.config.trust import TRUST_FILE, read_trust, trust_key, write_trust


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_a_decision_is_remembered_through_links_and_can_be_forgotten(data: Path, work: Path, tmp_path: Path) -> None:
    assert read_trust(data, work).state == "unknown"
    write_trust(data, work, "trusted")
    link = tmp_path / "link"
    link.symlink_to(work)
    assert read_trust(data, link).state == "trusted"
    write_trust(data, link, "declined")
    assert read_trust(data, work).state == "declined"
    write_trust(data, work, "unknown")
    assert read_trust(data, work).state == "unknown"


def test_trust_reaches_below_only_when_said(data: Path, work: Path) -> None:
    inner = work / "a" / "b"
    inner.mkdir(parents=True)
    write_trust(data, work, "trusted")
    assert read_trust(data, inner).state == "unknown"
    write_trust(data, work, "trusted", below=True)
    assert read_trust(data, inner).state == "trusted"
    write_trust(data, inner, "declined")
    assert read_trust(data, inner).state == "declined"
    assert read_trust(data, work.parent).state == "unknown"


def test_a_repository_is_one_workspace_unless_its_git_folder_is_elsewhere(data: Path, work: Path) -> None:
    inner = work / "src"
    inner.mkdir()
    assert trust_key(inner) == inner
    (work / ".git").mkdir()
    assert trust_key(inner) == work
    (work / ".git").rmdir()
    (work / ".git").write_text("gitdir: /elsewhere")
    assert trust_key(inner) == inner


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"workspaces": 3}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_store_is_kept_aside_and_counts_as_empty(data: Path, work: Path, damage: bytes) -> None:
    write_trust(data, work, "trusted")
    (data / TRUST_FILE).write_bytes(damage)
    reading = read_trust(data, work)
    assert reading.state == "unknown"
    (aside,) = data.glob(f"{TRUST_FILE}.corrupt-*")
    assert aside.read_bytes() == damage
    assert aside.name in reading.notice
    assert write_trust(data, work, "trusted") == ""
    assert read_trust(data, work).state == "trusted"


def test_entries_that_make_no_sense_do_not_grant_trust(data: Path, work: Path) -> None:
    data.mkdir()
    (data / TRUST_FILE).write_text(f'{{"workspaces": {{"{work}": {{"state": ["trusted"]}}, "/": 1}}}}')
    assert read_trust(data, work).state == "unknown"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_that_cannot_be_read_grants_nothing(data: Path, work: Path) -> None:
    write_trust(data, work, "trusted")
    (data / TRUST_FILE).chmod(0)
    assert read_trust(data, work).state == "unknown"


def _trust_many(data: Path, base: Path, start: int) -> None:
    for number in range(start, start + 10):
        folder = base / str(number)
        folder.mkdir()
        write_trust(data, folder, "trusted")


def test_two_processes_lose_nothing(data: Path, work: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_trust_many, args=(data, work, start)) for start in (0, 10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(read_trust(data, work / str(number)).state == "trusted" for number in range(20))
    assert not list(data.glob(f".{TRUST_FILE}-*"))
