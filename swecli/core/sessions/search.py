"""Full-text search in all sessions of a folder: an index beside the database, derived from it alone.

It is updated beside a session, at its end and before a search, in small portions, and rebuilt if damaged: it contains
nothing beyond the events, which hold no keys.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from swecli.core.sessions.damage import is_damage, lenient
from swecli.lazy_pattern import lazy_pattern

FILE = "search.db"
_VERSION = 1
_SCHEMA = (
    "CREATE VIRTUAL TABLE said USING fts5(text, session UNINDEXED, seq UNINDEXED, prefix='2 3',"
    " tokenize=\"unicode61 remove_diacritics 2 tokenchars '_'\")",
    "CREATE TABLE reached(session TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID",
)
_MAX_SEARCHED = {"text": 50_000, "tool_result": 2_000, "tool_call": 1_000}
"""Searched characters of a part, by its type: the beginning of a result, since the rest is rarely the target."""
_WORD = lazy_pattern(r"[\w]+")
_SIGN = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
_SIGNS = lazy_pattern(f"({_SIGN})")
"""Signs of scripts without blanks between words: each counts as a word."""
_BETWEEN = lazy_pattern(f"(?<={_SIGN}) +(?={_SIGN})")
_HITS = 4_000
_MAX_SHOWN = 160
"""Characters of a match that are shown."""
_EVENTS_PER_TRANSACTION = 200
"""Events of one transaction."""
FIRST = 5.0
PAUSE = 0.1
"""Seconds before and between portions that are added beside a session."""
_AGAIN = (1.0, 10.0, 60.0)
"""Seconds before it is tried again, if another process was at the index or at the database."""
_STALE = "SELECT id, (SELECT max(seq) FROM events e WHERE e.session_id = s.id) FROM sessions s ORDER BY updated DESC"
_ITEMS = """
    SELECT seq, CAST(body AS BLOB) FROM events WHERE session_id = ? AND seq > ? AND agent = 'main'
    AND type IN ('item_completed', 'item_checkpointed') ORDER BY seq
"""


class SearchHit(Struct, frozen=True):
    """A session with the searched words. ``text`` is the newest match, on one line; ``places`` is their number."""

    session: str
    text: str
    places: int


class SearchIndex:
    """The index file of one folder, or an index in memory without a path. Every method blocks on the disk and may raise
    ``sqlite3.Error``."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self._connection = self._prepared() if path is None else self._open(path)

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            return self._prepared()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                os.unlink(f"{path}{suffix}")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return self._prepared()

    def _prepared(self) -> sqlite3.Connection:
        location = ":memory:" if self._path is None else self._path
        connection = sqlite3.connect(location, timeout=1, isolation_level=None, check_same_thread=False)
        try:
            connection.text_factory = lenient
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            if version != _VERSION:
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                    connection.execute("DROP TABLE IF EXISTS said")
                    connection.execute("DROP TABLE IF EXISTS reached")
                    for statement in _SCHEMA:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={_VERSION}")
                connection.execute("COMMIT")
            connection.execute("SELECT count(*) FROM reached").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    @staticmethod
    def sound(path: Path) -> bool:
        """Whether an existing index is undamaged.

        Raises:
            sqlite3.Error: it can't be read.
        """
        with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            try:
                connection.execute("INSERT INTO said(said) VALUES ('integrity-check')")
                return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0]) == "ok"
            except sqlite3.Error as error:
                if is_damage(error):
                    return False
                raise

    def close(self) -> None:
        self._connection.close()

    def update(self, source: sqlite3.Connection, stop: Callable[[], bool] = lambda: False) -> bool:
        """Add what the index lacks of the database ``source``, session by session, newest first, and drop deleted
        sessions. False if ``stop`` interrupted it."""
        index = self._connection
        reached = {str(name): int(seq) for name, seq in index.execute("SELECT session, seq FROM reached").fetchall()}
        newest = {str(name): int(seq or 0) for name, seq in source.execute(_STALE).fetchall()}
        self.forget(reached.keys() - newest.keys())
        for session, seq in newest.items():
            known = reached.get(session, 0)
            if seq == known:
                continue
            if stop():
                return False
            if seq < known:  # another session with this id replaced it
                self.forget((session,))
                known = 0
            for upto, texts in _texts(source, session, known):
                self._add(session, upto, texts)
                if stop():
                    return False
            self._add(session, seq, ())
        return True

    def _add(self, session: str, seq: int, texts: Sequence[tuple[str, str, int]]) -> None:
        index = self._connection
        index.execute("BEGIN IMMEDIATE")
        try:
            index.executemany("INSERT INTO said(text, session, seq) VALUES (?, ?, ?)", texts)
            index.execute("INSERT OR REPLACE INTO reached(session, seq) VALUES (?, ?)", (session, seq))
            index.execute("COMMIT")
        except BaseException:
            if index.in_transaction:
                index.execute("ROLLBACK")
            raise

    def forget(self, sessions: Collection[str]) -> None:
        if sessions:
            marks = ",".join("?" * len(sessions))
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(f"DELETE FROM said WHERE session IN ({marks})", tuple(sessions))
            self._connection.execute(f"DELETE FROM reached WHERE session IN ({marks})", tuple(sessions))
            self._connection.execute("COMMIT")

    def find(self, words: str, limit: int = 100) -> list[SearchHit]:
        """Sessions in which one message, result or call has all the words, each as a word or its beginning; the newest
        match first."""
        query = _query(words)
        if not query:
            return []
        rows = self._connection.execute(
            "SELECT rowid, session FROM said WHERE said MATCH ? ORDER BY rowid DESC LIMIT ?", (query, _HITS)
        ).fetchall()
        places: dict[str, list[int]] = {}
        for row, session in rows:
            places.setdefault(str(session), []).append(int(row))
        results: list[SearchHit] = []
        for session, hits in list(places.items())[:limit]:
            (text,) = self._connection.execute("SELECT text FROM said WHERE rowid = ?", (hits[0],)).fetchone()
            results.append(SearchHit(session, _closed(_around(str(text), words)), len(hits)))
        return results


def _around(text: str, words: str) -> str:
    """The part of a text around the first of the words, on one line."""
    wanted = next(iter(_WORD.findall(_spaced(words))), "")
    at = max(0, _plain(text).find(_plain(wanted)))
    begin = max(0, at - _MAX_SHOWN // 3)
    piece = " ".join(text[begin : begin + _MAX_SHOWN].split())
    return f"{'…' if begin else ''}{piece}{'…' if begin + _MAX_SHOWN < len(text) else ''}"


def _plain(text: str) -> str:
    """A text in the form for comparison, without case and accents and of the same length."""
    if text.isascii():
        return text.lower()
    return "".join(
        unicodedata.normalize("NFD", sign)[0].lower()[0] for sign in text
    )  # a letter's lower case may be two


def searched(
    database: Path, words: str, limit: int = 100, stop: Callable[[], bool] = lambda: False
) -> Sequence[SearchHit]:
    """Matches of the words in the sessions of ``database``, whose index is updated first. If it can't be written, an
    index in memory replaces it. Empty without full-text search in SQLite."""
    for path in (database.with_name(FILE), None):
        try:
            with closing(SearchIndex(path)) as index:
                _bring_up_to_date(database, index, stop)
                return index.find(words, limit)
        except (sqlite3.Error, OSError):
            continue
    return ()


def refresh(database: Path, stop: Callable[[], bool] = lambda: False) -> bool:
    """Update the index of a database, until ``stop``. False if an error prevented it, such as another process at it."""
    with suppress(sqlite3.Error, OSError), closing(SearchIndex(database.with_name(FILE))) as index:
        return _bring_up_to_date(database, index, stop)
    return False


class BackgroundIndex:
    """Updates the index of a database beside a session, with a pause after each portion, so that a search has little
    left to do. It begins a while after the session."""

    def __init__(self, database: Path, first: float = FIRST, pause: float = PAUSE) -> None:
        self._database, self._first, self._pause = database, first, pause
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="swecli-index", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for wait in (self._first, *_AGAIN):
            if self._ending.wait(wait) or refresh(self._database, lambda: self._ending.wait(self._pause)):
                return

    def end(self) -> None:
        """Stop after the current portion, and wait for that."""
        self._ending.set()
        self._thread.join()


def _bring_up_to_date(database: Path, index: SearchIndex, stop: Callable[[], bool]) -> bool:
    from swecli.core.sessions.database import read_only

    with suppress(sqlite3.Error), closing(read_only(database)) as source:  # if locked, search the existing entries
        index.update(source, stop)
        return True
    return False


def _query(words: str) -> str:
    """The words quoted for FTS5, so that none acts as an operator."""
    tokens = (_WORD.findall(_spaced(word)) for word in unicodedata.normalize("NFC", words).split()[:16])
    return " AND ".join(f'"{" ".join(parts)}"*' for parts in tokens if parts)


def _spaced(text: str) -> str:
    return _SIGNS.sub(r" \1 ", text)


def _closed(text: str) -> str:
    """The text without the blanks that ``_spaced`` put between signs."""
    return _BETWEEN.sub("", text)


def _texts(source: sqlite3.Connection, session: str, after: int) -> Iterator[tuple[int, list[tuple[str, str, int]]]]:
    """The searchable text of a session in portions, each with the sequence number it reaches."""
    from msgspec import DecodeError, json

    portion: list[tuple[str, str, int]] = []
    for number, (seq, raw) in enumerate(source.execute(_ITEMS, (session, after)), 1):
        try:
            body = json.decode(bytes(raw))
        except (DecodeError, ValueError):
            body = None
        text = _text_of(body) if isinstance(body, dict) else ""  # pyright: ignore[reportUnknownArgumentType]
        if text:
            portion.append((text.encode("utf-8", "replace").decode("utf-8"), session, int(seq)))
        if number % _EVENTS_PER_TRANSACTION == 0:
            yield int(seq), portion
            portion = []
    if portion:
        yield portion[-1][2], portion


def _text_of(body: dict[str, Any]) -> str:
    if body.get("type") == "item_completed":
        parts = body.get("parts")
    elif body.get("running"):
        return ""  # the same call again
    else:
        part = cast("object", body.get("part"))
        call = isinstance(part, dict) and cast("dict[str, Any]", part).get("type") == "tool_call"
        parts = cast("list[object]", [part]) if call else None
    texts: list[str] = []
    for part in cast("list[Any]", parts) if isinstance(parts, list) else ():
        if isinstance(part, dict):
            fields = cast("dict[str, Any]", part)
            kind = str(fields.get("type"))
            text = fields.get("arguments" if kind == "tool_call" else "text")
            if kind in _MAX_SEARCHED and isinstance(text, str):
                texts.append(text[: _MAX_SEARCHED[kind]])
    return _spaced("\n".join(texts))
