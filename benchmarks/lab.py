"""The strategy lab on a stored session of 10,000 events that is full of compactions: processor time of a replay."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

from swecli.assembly.storage import DATABASE
from swecli.core.config.paths import user_paths
from swecli.core.sessions.database import open_database
from swecli.core.sessions.store import SessionStore
from swecli.features.lab.recording import Recording
from swecli.features.lab.replay import replay

TURNS = 320


def run() -> Iterator[tuple[str, float, str]]:
    """Times of this process's processor. A comparison replays the record too."""
    from tests.features.lab.recorded_session import record
    from tests.features.lab.test_replay import strategy

    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SWECLI_HOME=f"{folder}/home"):
        base = Path(folder)
        asyncio.run(record(base, turns=TURNS))
        file = user_paths(os.environ).workspace_data(base / "work") / DATABASE
        with closing(SessionStore(open_database(file))) as store:
            recording = Recording.of("s", store.load(store.list()[0].id))
    yield "events", float(len(recording.events)), ""
    yield "requests", float(recording.requests), ""
    for name, strategies in (("as it was", ()), ("as it was, and with one strategy", (strategy("current"),))):
        begun = time.process_time()
        found = asyncio.run(replay(recording, strategies))
        yield f"the session {name}", time.process_time() - begun, "s"
        newest = found[-1]
        yield "  summaries and clearings in the last one", float(newest.compactions + newest.clearings), ""


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<58} {value:>10.2f} {unit}")
