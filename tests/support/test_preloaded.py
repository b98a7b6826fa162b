"""Starting runs of the program in a fork."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import preloaded


def test_what_several_threads_ask_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message is longer than the socket holds, so that another thread has its turn in the middle of it."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    monkeypatch.setattr(preloaded, "_server", lambda kind: here)
    long = "x" * 400_000
    with here, there, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(preloaded._ask, "run", [f"{number}{long}"], str(Path()), {}, []) for number in range(4)]
        stream = there.makefile("rb")
        got = [json.loads(stream.read(int.from_bytes(stream.read(4), "big"))) for _ in asked]
        for one in asked:
            one.result()
    assert sorted(message[0][0][0] for message in got) == ["0", "1", "2", "3"]
