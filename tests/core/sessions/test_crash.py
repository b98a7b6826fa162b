from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.core.sessions import crash_child
from tests.core.sessions.support import open_store
from tests.support.thorough import examples


@pytest.fixture(scope="module")
def forks() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.core.sessions.crash_child"])
    return context


def start(context: ForkServerContext, target: Callable[..., None], *arguments: object) -> tuple[BaseProcess, int]:
    """The process and a file descriptor to read what it writes to its last argument."""
    fifo = Path(str(arguments[0])).with_name(f"answers-{random.random()}")
    os.mkfifo(fifo)
    process = context.Process(target=_into_fifo, args=(target, str(fifo), arguments), daemon=True)
    process.start()
    return process, os.open(fifo, os.O_RDONLY)


def _into_fifo(target: Callable[..., None], fifo: str, arguments: tuple[object, ...]) -> None:
    target(*arguments, os.open(fifo, os.O_WRONLY))


def lines(descriptor: int) -> Iterator[str]:
    with os.fdopen(descriptor) as stream:
        for line in stream:
            if line.endswith("\n"):
                yield line.strip()


def test_no_published_fact_is_lost_by_a_kill(tmp_path: Path, forks: ForkServerContext) -> None:
    path = tmp_path / "sessions.db"
    source = random.Random(11)
    expected: dict[str, int] = {}
    for _ in range(examples(25, 50)):
        process, descriptor = start(forks, crash_child.write_until_killed, path)
        answers = lines(descriptor)
        session = next(answers)
        last = 0
        for _ in range(source.randrange(150)):
            last = int(next(answers))
        process.kill()
        process.join()
        rest = [int(answer) for answer in answers]
        expected[session] = rest[-1] if rest else last
    store = open_store(path)
    assert store.database.problems == ()
    for session, last in expected.items():
        seqs = [event.seq for event in store.load(session, pytest.fail)]
        assert seqs == [seq for seq in range(1, seqs[-1] + 1) if seq % 3]
        assert seqs[-1] >= last
        assert store.holder(session) is None
    store.close()


def test_processes_that_write_at_once_do_not_disturb_each_other(tmp_path: Path, forks: ForkServerContext) -> None:
    path = tmp_path / "sessions.db"
    started = [start(forks, crash_child.write_some, path, 150) for _ in range(4)]
    answers = [next(lines(descriptor)) for _, descriptor in started]
    for process, _ in started:
        process.join()
        assert process.exitcode == 0
    store = open_store(path)
    assert len(set(answers)) == 4
    for session in answers:
        assert [event.seq for event in store.load(session)] == list(range(1, 151))
    store.close()
