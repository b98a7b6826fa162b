"""What a start of a server leaves behind if it does not come to its end, and what it knows of the files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.language_servers import project_server
from swecli.core.language_servers.definitions import Surroundings
from swecli.core.language_servers.peer import Command, Peer
from swecli.core.language_servers.project_server import FileSnapshot
from swecli.core.sandbox.launch import Launch
from swecli.core.sandbox.plan import Plan
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.workspace.server_log import ServerLog
from tests.core.language_servers.support import unkind


def test_a_link_that_leads_nowhere_hides_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    names = [tmp_path / name for name in ("a.py", "b.py", "c.py", "inner/d.py")]
    for path in names:
        path.write_text("")
    (tmp_path / ".#a.py").symlink_to("someone@somewhere.1")
    files = FileSnapshot(tmp_path, (".py",))
    assert sorted(path for path, _ in files.look()) == sorted(map(str, names))
    assert files.look() == []


async def test_a_start_that_is_cancelled_ends_its_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    released: list[str] = []
    launch = Launch("bwrap", Plan((), (), (), ""), (), (writer,), status=reader, release=lambda: released.append("x"))

    async def never(*words: str, **options: Sequence[int]) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "create_subprocess_exec", never)
    peer = Peer(ServerLog(None, str), lambda method, params: None, lambda method, params: None)
    with pytest.raises(asyncio.CancelledError):
        await peer.start(Command(("true",), tmp_path, {}, launch))
    assert released == ["x"]
    for descriptor in (reader, writer):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


async def test_a_contained_server_has_private_places_for_its_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = Launch("bwrap", Plan((), (), (), ""), (), environment={"TMPDIR": "/private"})

    async def begun(_begin: object) -> Launch:
        return launch

    monkeypatch.setattr(project_server, "begun", begun)
    around = Surroundings(tmp_path, (tmp_path,), {"MYPY_CACHE_DIR": "/of/the/user"}, Sandbox.none())
    contained = await project_server._start_command(unkind(), tmp_path, around)
    assert contained.environment["MYPY_CACHE_DIR"] == "/private/mypy"
    assert contained.environment["RUFF_CACHE_DIR"] == "/private/ruff"
    free = replace(unkind(), server=replace(unkind().server, sandboxed=False))
    assert (await project_server._start_command(free, tmp_path, around)).environment == around.environment
