"""The write-ahead log ends somewhere in its last record, as after a power cut: the file opens, in order, without
anything twice, and with everything that was committed before."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from swecli.core.sessions.database import open_database
from swecli.core.sessions.store import SessionStore
from tests.core.sessions.support import fact, open_store, user_turn
from tests.support.thorough import examples

COMMITS = 6
FRAME = 24 + 4096
STEP = 397
"""Every so many bytes are tried in the suite, and the edges of frames; all of them in `make soak`."""


def test_a_log_that_is_cut_anywhere_in_its_last_record_loses_at_most_that(tmp_path: Path) -> None:
    path, copy = tmp_path / "live.db", tmp_path / "cut.db"
    store = open_store(path)
    session = store.create("/w", "m", "1").id
    store.append(user_turn(session, 1, "first"))
    for number in range(COMMITS):
        store.append([fact(session, 4 + number, f"text {number} " * 50)])
    log = Path(f"{path}-wal")
    whole = log.read_bytes()
    store.append([fact(session, 4 + COMMITS, "the last " * 400)])
    last = log.read_bytes()
    assert len(last) > len(whole)
    main = path.read_bytes()
    lengths = set(range(len(whole), len(last) + 1, examples(STEP, 1)))
    lengths |= {at + near for at in range(len(whole), len(last) + 1, FRAME) for near in (-1, 0, 1, 23, 24, 25)}
    seen: set[int] = set()
    for length in sorted(one for one in lengths if len(whole) <= one <= len(last)):
        for left in tmp_path.glob("cut.db*"):
            left.unlink()
        copy.write_bytes(main)
        Path(f"{copy}-wal").write_bytes(last[:length])
        database = open_database(copy)
        assert database.durable
        assert database.problems == ()
        with closing(SessionStore(database)) as opened:
            events = [event.seq for event in opened.load(session)]
            assert events in (list(range(1, 4 + COMMITS)), list(range(1, 5 + COMMITS)))
            assert opened.get(session).turns == 1
            opened.append([fact(session, events[-1] + 1, "goes on")])
            assert opened.last_seq(session) == events[-1] + 1
        seen.add(len(events))
    assert seen == {3 + COMMITS, 4 + COMMITS}
    store.close()
    assert not list(tmp_path.glob("*.corrupt-*"))
