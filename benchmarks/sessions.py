"""Large sessions and many of them: processor times to list, search and read them, and the time of a commit."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from swecli.assembly.storage import DATABASE
from swecli.core.config.paths import user_paths
from swecli.core.protocol.context_events import ViewEntry
from swecli.core.protocol.events import (
    Body,
    CompactionCompleted,
    CompactionStarted,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelResponded,
    SessionStarted,
    StepEnded,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import Origin, Stop, TextPart, ToolCallPart, ToolResultPart, Usage
from swecli.core.sessions.database import open_database, read_only
from swecli.core.sessions.search import FILE, SearchIndex, refresh, searched
from swecli.core.sessions.store import SessionStore, list_sessions

MESSAGES = 10_000
EVENTS = 100_000
SESSIONS = 10_000
SEARCHED = 1_000
STEPS = 2
"""Tool calls of a turn: with its message and answer, six messages and 19 events."""

READ = """
import resource, sys, time
from pathlib import Path
import swecli.app
from swecli.assembly.heap import uncollected
from swecli.core.context_management.projection import project
from swecli.core.engine.recorder import Recorder
from swecli.core.sessions.database import open_database
from swecli.core.sessions.store import SessionStore
begun = time.process_time()
store = SessionStore(open_database(Path(sys.argv[1])))
with uncollected():
    events = store.load(store.list()[0].id)
    recorder = Recorder("s", events, lambda publish: None, time.time)
del events
messages = len(project(recorder.ledger))
print(time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, messages)
"""


OPEN = """
import asyncio, resource, sys, time
from pathlib import Path
from swecli.app import open_session
from swecli.launch import LaunchOptions

async def main():
    options = LaunchOptions(cwd=Path(sys.argv[1]), script=Path(sys.argv[2]), headless=True, continue_newest=True)
    begun = time.process_time()
    session = await open_session(options)
    async for _ in session.subscribe(replay=True, turns=60):
        break  # what a screen shows first is there
    seconds = time.process_time() - begun
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, session.view.conversation.total)
    await session.close()

asyncio.run(main())
"""


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        figures = [*_commits(place / "commits.db"), *_many(place / "many"), *_searches(place / "searched")]
        for name, turns in (("messages", MESSAGES // (STEPS + 2)), ("events", EVENTS // (6 * STEPS + 7))):
            path = place / f"{name}.db"
            count = _large(path, turns)
            seconds, memory, messages = _read_back(path)
            what = f"reading back a session of {count:,} events and {messages:,.0f} messages"
            figures += [(what, seconds * 1e3, "ms"), (f"{what}, memory of the process", memory, "MiB")]
        for turns, every in (
            (MESSAGES // (STEPS + 2), 0),
            (MESSAGES // (STEPS + 2), 50),
            (EVENTS // (6 * STEPS + 7), 50),
        ):
            figures += _openings(place / f"opened-{turns}-{every}", turns, every)
    return figures


def _openings(place: Path, turns: int, every: int) -> Iterator[tuple[str, float, str]]:
    """The whole session without a screen: as it was before there was anything to open from, and then from that."""
    work, script, home = place / "work", place / "script.toml", place / "home"
    work.mkdir(parents=True)
    script.write_text('[[step]]\ntext = "Unused."\n', encoding="utf-8")
    environment = {**os.environ, "SWECLI_HOME": str(home)}
    paths = user_paths(environment)
    count = _large(paths.workspace_data(work) / DATABASE, turns, every)
    for how in ("with nothing to open from", "from its snapshot"):
        command = [sys.executable, "-c", OPEN, str(work), str(script)]
        out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        seconds, memory, messages = map(float, out.split())
        shape = f"compacted every {every} turns" if every else "never compacted"
        what = f"opening {count:,} events, {messages:,.0f} messages, {shape}, {how}"
        yield what, seconds * 1e3, "ms"
        yield f"{what}, memory of the process", memory, "MiB"


def _commits(path: Path) -> Iterator[tuple[str, float, str]]:
    with closing(SessionStore(open_database(path))) as store:
        session = store.create("/w", "bench/model", "0").id
        times: list[float] = []
        for number in range(2_000):
            event = Event(number + 1, 1.0, session, 1, ItemCheckpointed(f"i{number}", TextPart("x" * 500)))
            start = time.perf_counter()
            store.append([event])
            times.append(time.perf_counter() - start)
    yield "a commit, median", statistics.median(times) * 1e3, "ms"


def _many(folder: Path) -> Iterator[tuple[str, float, str]]:
    folder.mkdir()
    path = folder / "sessions.db"
    with closing(SessionStore(open_database(path))) as store:
        _sessions(store, SESSIONS, 1)
        with closing(read_only(path)) as connection:
            start = time.process_time()
            assert len(list_sessions(connection, limit=SESSIONS)) == SESSIONS
            yield f"listing {SESSIONS:,} sessions", (time.process_time() - start) * 1e3, "ms"
            start = time.process_time()
            list_sessions(connection, limit=200)
            yield f"the newest 200 of {SESSIONS:,}", (time.process_time() - start) * 1e3, "ms"


def _searches(folder: Path) -> Iterator[tuple[str, float, str]]:
    folder.mkdir()
    path = folder / "sessions.db"
    with closing(SessionStore(open_database(path))) as store:
        _sessions(store, SEARCHED, 20)
        start = time.process_time()
        refresh(path)
        yield f"indexing {SEARCHED:,} sessions of 20 turns", time.process_time() - start, "s"
        times: list[float] = []
        for words in ("needle 77", "parser", "ls", "answer about", "nothing of the kind"):
            start = time.process_time()
            searched(path, words)
            times.append(time.process_time() - start)
        yield f"searching {SEARCHED:,} sessions, slowest of five", max(times) * 1e3, "ms"
        with closing(SearchIndex(path.with_name(FILE))) as index:
            start = time.process_time()
            index.find("parser")
            yield "the same without opening and bringing up to date", (time.process_time() - start) * 1e3, "ms"


def _sessions(store: SessionStore, count: int, turns: int) -> None:
    events: list[Event] = []
    for number in range(count):
        session = store.create("/w", "bench/model", "0").id
        events += _turns(session, turns, f"needle {number} in the parser")
        if len(events) > 20_000:
            store.append(events)
            events.clear()
    store.append(events)


def _large(path: Path, turns: int, every: int = 0) -> int:
    with closing(SessionStore(open_database(path))) as store:
        session = store.create("/w", "scripted/test", "0").id
        events = list(_turns(session, turns, "something to do in the code", every))
        store.lease(session)
        store.release(session)
        for at in range(0, len(events), 5_000):
            store.append(events[at : at + 5_000])
        return len(events)


def _turns(session: str, turns: int, text: str, every: int = 0) -> Iterator[Event]:
    """A conversation that is compacted ``every`` so many turns; 0: never."""
    seq = 0
    view: list[str] = []

    def event(body: Body, turn: int) -> Event:
        nonlocal seq
        seq += 1
        return Event(seq, 1e9 + seq, session, turn, body)

    yield event(SessionStarted("/w", "bench/model", "default", "0", False, "Date: x"), 0)
    origin, stop, item = Origin("openai", "", "model"), Stop(), 0
    for turn in range(1, turns + 1):
        item += 1
        user = f"u{item}"
        yield event(TurnStarted(user), turn)
        yield event(ItemStarted(user, "user"), turn)
        yield event(ItemCompleted(user, "ok", (TextPart(f"message {turn} about {text}"),)), turn)
        for step in range(STEPS):
            item += 1
            name, usage = f"t{item}", Usage(input_total=1_000 + item, output_total=20)
            call = ToolCallPart(name, "run_command", f'{{"command":"ls -la {item}"}}')
            yield event(ItemStarted(name, "tool", "run_command"), turn)
            yield event(ItemCheckpointed(name, call), turn)
            yield event(ModelResponded(f"m{item}", (name,), origin, stop, usage), turn)
            yield event(ItemCheckpointed(name, call, running=True), turn)
            result = ToolResultPart(name, "run_command", "a line of output\n" * 20)
            yield event(ItemCompleted(name, "ok", (result,)), turn)
            yield event(StepEnded(step, usage, "0.001"), turn)
        item += 1
        answer = f"a{item}"
        yield event(ItemStarted(answer, "text"), turn)
        yield event(ItemCompleted(answer, "ok", (TextPart(f"An answer about {text}. " * 10),)), turn)
        yield event(ModelResponded(f"m{item}", (answer,), origin, stop, Usage(input_total=2_000, output_total=9)), turn)
        yield event(TurnEnded("done"), turn)
        view += [
            user,
            *(name for step in range(item - STEPS, item) for name in (f"t{step}", f"t{step}.result")),
            answer,
        ]
        if every and turn % every == 0:
            summary = f"k{item}"
            record = ViewEntry("summary", f"{summary}.s", "<compacted>\n" + "What was done. " * 200, tuple(view[:-30]))
            live = [ViewEntry("live", name) for name in view[-30:]]
            view = [f"{summary}.s", *view[-30:]]
            yield event(CompactionStarted(summary, "auto", "chain", 90_000), turn)
            yield event(CompactionCompleted(summary, (record, *live), 90_000, 9_000, 300, 31, ("summarization",)), turn)


def _read_back(path: Path) -> tuple[float, float, float]:
    """Processor seconds, MiB and messages, in a process of its own."""
    out = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, capture_output=True, text=True).stdout
    seconds, memory, messages = map(float, out.split())
    return seconds, memory, messages
