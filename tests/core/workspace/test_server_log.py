"""What is kept in memory of a program's log."""

from __future__ import annotations

import pytest

from swecli.core.workspace.server_log import NEWEST, ServerLog


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
