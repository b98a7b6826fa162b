"""What edits cost, and what looking at a tree around a command costs."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from swecli.core.checkpoints.history import CheckpointOptions, FileHistory
from swecli.core.checkpoints.journal import Origin
from swecli.core.checkpoints.restore import Target
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.sessions.database import open_database
from swecli.core.workspace.atomic_write import atomic_write
from swecli.core.workspace.edit import replace_string
from swecli.core.workspace.text_file import decode, read_bytes

FOLDERS, FILES = 1_000, 20
ROUNDS = 15


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(os.path.realpath(folder))
        return [*_tree(base / "tree", base / "state"), *_edits(base)]


def _tree(root: Path, state: Path) -> list[tuple[str, float, str]]:
    for number in range(FOLDERS):
        inside = root / f"d{number // 50}" / f"e{number}"
        inside.mkdir(parents=True)
        for name in range(FILES):
            (inside / f"file{name}.py").write_text(f"value = {number * name}\n" * 60)
    time.sleep(0.1)  # files that were just written are read once more
    history = FileHistory(open_database(state / "c.db", migrations=SCHEMA), "s", (str(root),), CheckpointOptions())
    history.open()
    first = _once(history.first_copy)
    copied = sum(path.stat().st_size for path in state.iterdir())
    time.sleep(0.1)
    history.first_copy()
    names = sum(len(files) for _, _, files in os.walk(root))
    plain = statistics.median(_once(lambda: _walk(root)) for _ in range(ROUNDS))
    looks = [_once(lambda: history.begin(Origin("s", 1, "t", "command", "x"), (), watch=True)) for _ in range(ROUNDS)]

    def command() -> None:
        running = history.begin(Origin("s", 1, "t", "command", "x"), (), watch=True)
        for number in range(10):
            (root / "d0" / "e0" / f"file{number}.py").write_text(f"changed {time.perf_counter_ns()}\n")
        history.end(running)

    commands = [_once(command) for _ in range(ROUNDS)]
    undo = _once(lambda: history.undo(Target()))
    history.close()
    again = FileHistory(open_database(state / "c.db", migrations=SCHEMA), "s", (str(root),), CheckpointOptions())
    start = _once(lambda: (again.open(), again.first_copy()))
    again.close()
    look = statistics.median(looks)
    return [
        (f"first copy of {names:,} files", first * 1e3, "ms"),
        ("its size on disk", copied / 1e6, "MB"),
        (f"look at {names:,} files, median", look * 1e3, "ms"),
        ("the same as a ratio to os.scandir and stat of all", look / plain, "x"),
        ("both looks around a command that changes 10 files, median", statistics.median(commands) * 1e3, "ms"),
        ("undo of that", undo * 1e3, "ms"),
        ("taking the copy over in a later session", start * 1e3, "ms"),
    ]


def _walk(root: Path) -> None:
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _edits(base: Path) -> list[tuple[str, float, str]]:
    path = base / "big.py"
    text = "".join(f"line {number}: some text of a usual length\r\n" for number in range(22_000))
    path.write_bytes(text.encode())
    middle = "line 11000: some text"

    def edit() -> None:
        data, state = read_bytes(path, 10_000_000)
        old, new = (middle, middle + "!") if f"{middle}!".encode() not in data else (middle + "!", middle)
        atomic_write(path, replace_string(decode(data), old, new).data, state.sha256)

    synced = statistics.median(_once(edit) for _ in range(ROUNDS))
    with patch("os.fsync", lambda descriptor: None):
        unsynced = statistics.median(_once(edit) for _ in range(ROUNDS))
    many = decode(b"a b\n" * 200_000)
    return [
        (f"one edit of {len(text) / 1e6:.1f} MB, without fsync", unsynced * 1e3, "ms"),
        ("the same with fsync", synced * 1e3, "ms"),
        ("200,000 replacements", _once(lambda: replace_string(many, "a", "bc", replace_all=True)) * 1e3, "ms"),
    ]


def _once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
