"""What the crash tests run in processes of their own. Started by fork from a server that imported all this."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from swecli.core.protocol.codec import decode_body, encode_body
from swecli.core.protocol.events import Event, Notice
from swecli.core.sessions.journal import Journal
from tests.core.sessions.support import delta, fact, open_store

decode_body(encode_body(Notice("load the codec before the fork")))


def write_until_killed(path: str, acknowledged: int) -> None:
    """Append for ever; write the place of each published fact to the file descriptor ``acknowledged``."""
    asyncio.run(_write_until_killed(path, acknowledged))


async def _write_until_killed(path: str, acknowledged: int) -> None:
    store = open_store(Path(path))
    session = store.create("/w", "fake/m", "1").id
    os.write(acknowledged, f"{session}\n".encode())

    def publish(events: Sequence[Event]) -> None:
        os.write(acknowledged, "".join(f"{event.seq}\n" for event in events if event.seq % 3).encode())

    journal = Journal(store.append, publish, print)
    for seq in range(1, 1_000_000):
        journal.append(fact(session, seq, "x" * (seq % 700)) if seq % 3 else delta(session, seq))
        if seq % 5 == 0:
            await asyncio.sleep(0)
        if seq % 50 == 0:
            await journal.barrier()


def write_some(path: str, count: int, answer: int) -> None:
    """Append ``count`` facts, each in a transaction of its own; write the session or the error as one line."""
    try:
        store = open_store(Path(path))
        session = store.create("/w", "fake/m", "1").id
        for seq in range(1, count + 1):
            store.append([fact(session, seq)])
        store.close()
        os.write(answer, f"{session}\n".encode())
    except Exception as error:
        os.write(answer, f"failed: {error!r}\n".encode())
        raise
