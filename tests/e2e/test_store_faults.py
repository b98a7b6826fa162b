"""The real program over a store that somebody damages, replaces or makes something else between its runs.

``SWECLI_STORE_FAULTS`` is the number of rounds; the seed of a round is in its name.
"""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from swecli.core.sessions.database import DATABASE
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e
ROUNDS = int(os.environ.get("SWECLI_STORE_FAULTS", "1"))
RUNS = 3 if ROUNDS > 1 else 1
"""Runs after a fault each."""


def _something_else(make: Callable[[Path], object]) -> Callable[[Path, random.Random], None]:
    def fault(database: Path, chance: random.Random) -> None:
        place = database.with_name(database.name + chance.choice(("", "-wal", "-shm", "-journal")))
        place.unlink(missing_ok=True)
        make(place)

    return fault


def _bytes_flipped(database: Path, chance: random.Random) -> None:
    content = bytearray(database.read_bytes())
    for _ in range(chance.randrange(1, 200)):
        content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
    database.write_bytes(content)


def _newer(database: Path, chance: random.Random) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"PRAGMA user_version={chance.randrange(50, 500)}")


FAULTS: dict[str, Callable[[Path, random.Random], None]] = {
    "folder": _something_else(Path.mkdir),
    "pipe": _something_else(os.mkfifo),
    "link": _something_else(lambda place: place.symlink_to(place.with_name("gone"))),
    "loop": _something_else(lambda place: place.symlink_to(place.name)),
    "removed": lambda database, chance: database.unlink(),
    "cut": lambda database, chance: os.truncate(database, chance.randrange(database.stat().st_size)),
    "emptied": lambda database, chance: os.truncate(database, 0),
    "text": lambda database, chance: database.write_bytes(b"no database" * chance.randrange(1, 2_000)) and None,
    "bytes": _bytes_flipped,
    "newer": _newer,
}
"""What happens to a store; what is no file must still be there afterwards."""


@pytest.mark.parametrize("seed", [random.SystemRandom().randrange(2**31) if ROUNDS > 1 else 7 for _ in range(ROUNDS)])
def test_whatever_the_store_is_the_program_answers_and_says_the_truth(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    work = tmp_path / "work"
    work.mkdir()
    with LoopbackServer(parse_script('[[step]]\ntext = "done"\n' * (1 + RUNS))) as server:
        address = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        program = Program(work, tmp_path / "home", address)
        assert program.run("-p", "hi", "-m", "openai/m").code == 0
        (database,) = program.home.rglob(DATABASE)
        for name in chance.sample(sorted(FAULTS), RUNS):
            if not database.is_file() or database.stat().st_size == 0:
                break
            FAULTS[name](database, chance)
            odd = {path: stat.S_IFMT(path.lstat().st_mode) for path in database.parent.iterdir() if not path.is_file()}
            odd = {path: kind for path, kind in odd.items() if kind != stat.S_IFDIR or path.name.startswith(DATABASE)}
            ended = program.run("-p", "hi", "-m", "openai/m")
            assert (ended.code, ended.stdout) == (0, "done\n"), (name, ended.stderr)
            assert "Traceback" not in ended.stderr, name
            assert {path: stat.S_IFMT(path.lstat().st_mode) for path in odd} == odd, name
            for path in odd:
                assert "move it away" in ended.stderr, (name, path, ended.stderr)
                assert "damaged" not in ended.stderr, (name, path, ended.stderr)
                os.rmdir(path) if odd[path] == stat.S_IFDIR else path.unlink()
            listed = program.run("sessions", "list")
            assert "Traceback" not in listed.stderr, name
