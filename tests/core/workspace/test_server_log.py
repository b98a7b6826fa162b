"""What is kept in memory of a program's log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from swecli.core.workspace.server_log import LARGEST_LOG, NEWEST, ServerLog


def test_only_whole_lines_are_kept() -> None:
    log = ServerLog(None, str)
    for _ in range(500):
        log.stray("hello")
    assert log.said == "hello"
    assert 0 < len(log.newest) <= NEWEST
    assert set(log.newest.splitlines()) == {"[swecli] not a message: hello"}
    log.write("x" * 3 * NEWEST)
    assert log.newest == "x" * NEWEST


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), ""),
        (("[swecli] not started: it ended",), ""),
        (("no such database", "[swecli] not started: it ended"), "no such database"),
        (("no such database", "[swecli] not a message: later "), "later"),
    ],
)
def test_what_the_program_said_last(lines: tuple[str, ...], said: str) -> None:
    log = ServerLog(None, str)
    log.write("".join(f"{line}\n" for line in lines))
    assert log.said == said


async def test_a_key_and_a_character_that_arrive_in_two_pieces() -> None:
    log = ServerLog(None, lambda text: text.replace("secret", "***"))
    stream = asyncio.StreamReader()
    following = asyncio.create_task(log.follow(stream))
    for piece in (b"key: sec", b"ret \xc3", b"\xa4\nlast: sec", b"ret"):
        stream.feed_data(piece)
        for _ in range(4):
            await asyncio.sleep(0)
    assert log.said == "last: ***"
    stream.feed_eof()
    await following
    assert log.newest == "key: *** ä\nlast: ***"


def test_a_log_is_limited_in_bytes_whatever_its_letters(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    log = ServerLog(path, str)
    for _ in range(5):
        log.write("漢" * (LARGEST_LOG // 4) + "\n")
        assert path.stat().st_size <= LARGEST_LOG
    assert path.with_suffix(".old.log").stat().st_size <= LARGEST_LOG
    log = ServerLog(tmp_path / "other.log", str)
    log.write("x" * 2 * LARGEST_LOG)  # more than a log holds, and nothing before it
    assert (tmp_path / "other.log").stat().st_size == LARGEST_LOG
    assert not (tmp_path / "other.old.log").exists()
    log = ServerLog(tmp_path / "third.log", str)
    log.write("語" * LARGEST_LOG)  # cut between two letters, not in one
    assert (tmp_path / "third.log").read_text().strip("語") == ""
