"""A JSON file with one table of what sessions have learned, which parallel sessions share."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from swecli.core.atomic_text import alone_in, make_private, put_aside, write_whole
from swecli.core.llm.json_values import JsonObject, as_object, parse_object

_MAX_BYTES = 1_000_000


class LearnedFile:
    """Every read is one of the file, so that sessions share what they learn."""

    def __init__(self, path: Path, table: str, form: Mapping[str, object]) -> None:
        """``table`` is the key of the table, ``form`` what else a file of this format says."""
        self.path = path
        self._table = table
        self._form = form

    def read(self) -> JsonObject:
        """The table; empty if the file is missing or of another format."""
        data = self._data()
        return as_object(data.get(self._table)) if data is not None else {}

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep other sessions from writing.

        Raises:
            OSError: the folder cannot be written.
        """
        make_private(self.path.parent)
        with alone_in(self.path.parent):
            yield

    def put_aside_if_damaged(self) -> Path | None:
        """Rename a file of another format, so that nothing is lost; returns its new path."""
        return put_aside(self.path) if os.path.exists(self.path) and self._data() is None else None

    def write(self, table: JsonObject) -> None:
        data = {**self._form, self._table: table}
        write_whole(self.path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")

    def _data(self) -> JsonObject | None:
        try:
            with self.path.open("rb") as file:
                data = parse_object(file.read(_MAX_BYTES + 1).decode("utf-8", "replace"))
        except OSError:
            return None
        return data if data is not None and all(data.get(key) == value for key, value in self._form.items()) else None
