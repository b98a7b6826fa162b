"""Stored results of a program's own sessions."""

from __future__ import annotations

import os
import time
from pathlib import Path

from swecli.core.ports import BlobError
from swecli.core.sessions import results
from swecli.core.sessions.database import Database, open_database, open_in_memory
from swecli.core.sessions.store import add_session


class ResultStore(results.ResultStore):
    """The stored results of one session, in the file of a database that is made as needed, or in memory (None). Not for
    the event loop.

    Raises:
        BlobError: the file can't be used.
        sqlite3.Error: the session can't be added.
    """

    def __init__(
        self,
        store: Database | str | os.PathLike[str] | None = None,
        session_id: str = "results",
        threshold: int = results.THRESHOLD,
    ) -> None:
        database = store if isinstance(store, Database) else _database(store)
        super().__init__(database, session_id, threshold)
        if database is not store:
            with database.write() as connection:
                add_session(connection, session_id, time.time())

    def close(self) -> None:
        """Close the database. A result can't be read afterwards."""
        self._database.close()

    def offload_result(self, tool: str, tool_use_id: str, content: str) -> str:
        """Store a result that is larger than the threshold; returns its replacement in the context. A smaller one is
        returned unchanged.

        Raises:
            BlobError: it can't be stored.
        """
        text = results.encodable(content)
        raw = text.encode("utf-8")
        if len(raw) <= self.threshold:
            return text
        excerpt = results.usual_excerpt(len(raw), failed=False)
        note = f"Too long to keep here (call {tool_use_id})"
        return results.reference_text(self.put(tool, raw), text, excerpt, note=note)

    def retrieve(self, ref_id: str) -> str:
        """The whole stored result.

        Raises:
            BlobError: there is none of this id, or it is damaged.
        """
        content = self.get(ref_id)
        if content is None:
            raise BlobError(f"Unknown stored result {ref_id!r}.")
        return content.decode("utf-8", "replace")


def _database(path: str | os.PathLike[str] | None) -> Database:
    if path is None:
        return open_in_memory()
    database = open_database(Path(path))
    if database.why_in_memory:
        database.close()
        raise BlobError(database.why_in_memory)
    return database
