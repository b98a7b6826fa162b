"""The ledger of a run: a folder with one SQLite file, which decides, and files that others read."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from swecli.core.atomic_text import make_private, write_whole
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.fleet.link import FINISHED, Ended, outcome_of
from swecli.fleet.tasks import Task, task_from, task_line
from swecli.launch import StartError

DATABASE = "fleet.sqlite"
RESULTS, PREDICTIONS = "results.jsonl", "predictions.jsonl"
PATCHES, TRANSCRIPTS = "patches", "transcripts"
SCRATCH, MIRRORS = "work", "mirrors"
VERSION = 1
_SCHEMA = """
create table facts (name text primary key, value text not null) without rowid;
create table tasks (
    id text primary key,
    position integer not null,
    spec text not null,
    listed integer not null default 1,
    status text not null default 'waiting',
    attempts integer not null default 0,
    due real not null default 0,
    result text
) without rowid;
create index next_task on tasks (status, listed, position, due);
create table spent (attempt text primary key, requests integer not null, tokens integer not null, price text not null)
    without rowid;
"""
_UNFINISHED = "('waiting', 'running', 'broken', 'stopped')"


class Merged(Struct, frozen=True):
    """How a list changed a run's: ids that are new, changed, no longer listed; and how many tasks are left to run."""

    new: int
    changed: int
    gone: int
    left: int


class LedgerError(Exception):
    """The ledger can't be written; the message says why. What it has is kept."""


class Ledger:
    """The folder of one run. One process has it open for writing at a time."""

    def __init__(self, folder: Path, *, resume: bool, name: str = "swecli") -> None:
        """Make or continue a run's folder. ``name`` is the agent's in ``predictions.jsonl``.

        Raises:
            StartError: another process uses it, it has a run and is not to be resumed, or it can't be written.
        """
        self.folder = folder
        self.name = name
        try:
            make_private(folder)
            self._lock = _locked(folder)
            there = (folder / DATABASE).exists()
            others = not there and any(entry.name != "fleet.lock" for entry in folder.iterdir())
        except OSError as error:
            raise StartError(f"{folder} cannot be used: {error.strerror or error}", ExitCode.BAD_INPUT) from error
        try:
            if others:
                raise StartError(f"{folder} has files that are not a fleet's. Choose a new folder.", ExitCode.BAD_INPUT)
            self._database = _opened(folder / DATABASE)
            if there and not resume and (count := self._value("select count(*) from tasks")):
                done = self._value(f"select count(*) from tasks where status not in {_UNFINISHED}")
                raise StartError(
                    f"{folder} has a run of {plural(count, 'task')}, {done:,} of them finished. Continue it with "
                    "--resume, or choose another folder.",
                    ExitCode.BAD_INPUT,
                )
        except BaseException:
            os.close(self._lock)
            raise
        for sub in (PATCHES, TRANSCRIPTS):
            (folder / sub).mkdir(exist_ok=True)

    def close(self) -> None:
        self._database.close()
        os.close(self._lock)

    # --- the list -------------------------------------------------------------------------------------------------

    def merge(self, tasks: Sequence[Task]) -> Merged:
        """Take a list in by its ids. A finished task whose line has changed runs again; one that is no longer listed
        keeps its result and does not run."""
        with self._writing() as database:
            known = dict(database.execute("select id, spec from tasks"))
            database.execute("update tasks set listed = 0")
            new = changed = 0
            for position, task in enumerate(tasks):
                line = task_line(task)
                if task.id not in known:
                    new += 1
                    row = (task.id, position, line)
                    database.execute("insert into tasks (id, position, spec) values (?, ?, ?)", row)
                    continue
                database.execute("update tasks set listed = 1, position = ? where id = ?", (position, task.id))
                if known[task.id] != line:
                    changed += 1
                    fresh = "spec = ?, status = 'waiting', attempts = 0, due = 0, result = null"
                    database.execute(f"update tasks set {fresh} where id = ?", (line, task.id))
        removed = len(known.keys() - {task.id for task in tasks})
        return Merged(new, changed, removed, self.begin())

    def begin(self) -> int:
        """Take back what an earlier process left running or broken, and remove its scratch folders. Returns how many
        tasks are left to run."""
        with self._writing() as database:
            fresh = "status = 'waiting', attempts = 0, due = 0"
            database.execute(f"update tasks set {fresh} where status in {_UNFINISHED} and listed = 1")
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)
        self._write_lines()
        return self._value("select count(*) from tasks where status = 'waiting' and listed = 1")

    def next(self, now: float) -> tuple[Task, int] | None:
        """The next task that is due, and the number of its attempt from 1; it counts as running."""
        with self._writing() as database:
            row = database.execute(
                "select id, spec, attempts from tasks where status = 'waiting' and listed = 1 and due <= ? "
                "order by position limit 1",
                (now,),
            ).fetchone()
            if row is None:
                return None
            database.execute("update tasks set status = 'running', attempts = attempts + 1 where id = ?", (row[0],))
        return task_from(row[1]), row[2] + 1

    def due(self) -> float | None:
        """The time at which the next waiting task is due; None if none waits."""
        query = "select min(due) from tasks where status = 'waiting' and listed = 1"
        return self._database.execute(query).fetchone()[0]

    def counts(self) -> Mapping[str, int]:
        """How many listed tasks have each status."""
        return dict(self._database.execute("select status, count(*) from tasks where listed = 1 group by status"))

    def task(self, name: str) -> tuple[Task, dict[str, Any] | None]:
        """A task by its id, and its result line if it has one.

        Raises:
            StartError: there is no such task.
        """
        row = self._database.execute("select spec, result from tasks where id = ?", (name,)).fetchone()
        if row is None:
            raise StartError(f"{self.folder} has no task {name!r}", ExitCode.BAD_INPUT)
        return task_from(row[0]), json.loads(row[1]) if row[1] else None

    # --- results --------------------------------------------------------------------------------------------------

    def again(self, task: Task, due: float) -> None:
        """Run a task again, not before ``due``."""
        with self._writing() as database:
            row = (due, task.id)
            database.execute("update tasks set status = 'waiting', due = ? where id = ? and status = 'running'", row)

    def finish(self, task: Task, attempt: int, ended: Ended, transcript: bytes | None) -> bool:
        """Store the end of a task: its files, then its line. False if it had ended before: it counts once."""
        row = self._database.execute("select status from tasks where id = ?", (task.id,)).fetchone()
        if row is None or row[0] != "running":
            return False
        line = {"id": task.id, "repo": task.repo, "ref": task.ref, "attempt": attempt, **outcome_of(ended)}
        line |= {"patch": "", "transcript": "", "ended": round(time.time(), 3)}
        name = file_name(task.id)
        try:
            if ended.patch:
                line["patch"] = f"{PATCHES}/{name}.diff"
                _write(self.folder / line["patch"], ended.patch)
            if transcript is not None:
                line["transcript"] = f"{TRANSCRIPTS}/{name}.json"
                _write(self.folder / line["transcript"], transcript)
        except OSError as error:
            raise LedgerError(f"{self.folder} cannot be written: {error.strerror or error}") from error
        with self._writing() as database:
            result = json.dumps(line, ensure_ascii=False)
            changed = database.execute(
                "update tasks set status = ?, result = ? where id = ? and status = 'running'",
                (ended.status, result, task.id),
            ).rowcount
        if changed and ended.status in FINISHED:
            self._append(line, ended.patch)
        return bool(changed)

    def results(self) -> Iterator[dict[str, Any]]:
        """The result lines of all tasks that have one, in the list's order."""
        for row in self._database.execute("select result from tasks where result is not null order by position, id"):
            yield json.loads(row[0])

    def patch(self, result: Mapping[str, Any]) -> bytes:
        """The patch of a result line; empty without one."""
        return (self.folder / result["patch"]).read_bytes() if result.get("patch") else b""

    # --- what was spent -------------------------------------------------------------------------------------------

    def add_spent(self, attempt: str, tokens: int, price: str | None) -> None:
        """Count a request of an attempt, also if the run is killed later."""
        with self._writing() as database:
            row = database.execute("select tokens, price from spent where attempt = ?", (attempt,)).fetchone()
            before = (0, "0") if row is None else row
            total = str(Decimal(before[1]) + Decimal(price or 0))
            database.execute(
                "insert into spent values (?, 1, ?, ?) on conflict (attempt) do update set "
                "requests = requests + 1, tokens = excluded.tokens, price = excluded.price",
                (attempt, before[0] + tokens, total),
            )

    def spent(self) -> tuple[int, Decimal]:
        """Tokens and US dollars of the whole run, repeated attempts included."""
        tokens, price = 0, Decimal(0)
        for row in self._database.execute("select tokens, price from spent"):
            tokens, price = tokens + row[0], price + Decimal(row[1])
        return tokens, price

    def state(self, name: str, value: str) -> None:
        """Keep a fact about the run."""
        with self._writing() as database:
            database.execute("insert or replace into facts values (?, ?)", (name, value))

    def fact(self, name: str) -> str:
        """A fact about the run; empty if it is not kept."""
        row = self._database.execute("select value from facts where name = ?", (name,)).fetchone()
        return row[0] if row is not None else ""

    # --- files ----------------------------------------------------------------------------------------------------

    def _append(self, line: Mapping[str, Any], patch: bytes) -> None:
        try:
            for name, entry in ((RESULTS, line), (PREDICTIONS, self._prediction(line, patch))):
                with open(self.folder / name, "a", encoding="utf-8", errors="replace") as file:
                    file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        except OSError as error:
            raise LedgerError(f"{self.folder} cannot be written: {error.strerror or error}") from error

    def _prediction(self, line: Mapping[str, Any], patch: bytes) -> dict[str, str]:
        """A line as SWE-bench's harness reads it."""
        model = f"{self.name}+{line['model']}" if line["model"] else self.name
        return {"instance_id": line["id"], "model_name_or_path": model, "model_patch": patch.decode("utf-8", "replace")}

    def _write_lines(self) -> None:
        """Write both files of lines anew: a crash may have left half a line, or a result without one."""
        lines = [line for line in self.results() if line["status"] in FINISHED]
        try:
            write_whole(self.folder / RESULTS, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in lines))
            predictions = (self._prediction(each, self.patch(each)) for each in lines)
            text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in predictions)
            write_whole(self.folder / PREDICTIONS, text)
        except OSError as error:
            raise LedgerError(f"{self.folder} cannot be written: {error.strerror or error}") from error

    def _value(self, query: str) -> int:
        return self._database.execute(query).fetchone()[0]

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._database:
                self._database.execute("begin immediate")
                yield self._database
        except sqlite3.Error as error:
            raise LedgerError(f"{self.folder / DATABASE} cannot be written: {error}") from error


def read_ledger(folder: Path) -> Ledger:
    """A run's folder for reading, also while a fleet works in it.

    Raises:
        StartError: it is not a run's folder.
    """
    file = folder / DATABASE
    if not file.is_file():
        raise StartError(f"{folder} is not a fleet's folder: it has no {DATABASE}", ExitCode.BAD_INPUT)
    ledger = Ledger.__new__(Ledger)
    ledger.folder, ledger.name = folder, "swecli"
    ledger._lock = os.open(os.devnull, os.O_RDONLY)
    ledger._database = _opened(file)
    return ledger


def file_name(name: str) -> str:
    """The name of a task's files: its id, with whatever is special in file names escaped; a long one ends in a hash."""
    escaped = quote(name, safe=" +,=@[]()").replace("%20", " ")
    escaped = f"%2E{escaped[1:]}" if escaped.startswith(".") else escaped
    if len(escaped) <= 120:
        return escaped
    return f"{escaped[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _locked(folder: Path) -> int:
    descriptor = os.open(folder / "fleet.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
        os.close(descriptor)
        who = f" (process {holder})" if holder else ""
        raise StartError(f"Another fleet{who} is working in {folder}.", ExitCode.BAD_INPUT) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _opened(file: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(file, isolation_level=None, timeout=10.0)
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = normal")
        version = database.execute("pragma user_version").fetchone()[0]
        if version == 0:
            database.executescript(f"begin; {_SCHEMA} pragma user_version = {VERSION}; commit;")
        elif version != VERSION:
            raise StartError(f"{file} was written by another version of swecli", ExitCode.BAD_INPUT)
    except sqlite3.Error as error:
        raise StartError(f"{file} cannot be used: {error}", ExitCode.BAD_INPUT) from error
    return database


def _write(path: Path, data: bytes) -> None:
    """Replace a file as a whole; its folder exists."""
    temporary = path.with_name(f".{path.name[:100]}-{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
