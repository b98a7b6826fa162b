"""Context windows that servers stated in overflow errors, kept in a small file for the next time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

from swecli.core.llm.json_values import JsonObject, as_int, as_object, as_text, parse_object
from swecli.core.whole_file import put_aside, write_whole

SMALLEST, LARGEST = 256, 100_000_000
"""Tokens. A number outside of this is no context window."""
_MAX_ENTRIES = 500
_MAX_BYTES = 1_000_000
_VERSION = 1


@dataclass(frozen=True, slots=True)
class LearnedWindow:
    """What a server said: ``tokens`` of context window, on ``day`` (ISO date)."""

    tokens: int
    day: str


class LearnedWindows:
    """The file. Nothing here raises: a window that can't be kept is learned again from the next error.

    Every call reads the file anew, so that sessions that run at the same time see what the others learned.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, host: str, model: str) -> LearnedWindow | None:
        """What ``host`` (see ``host_key``) said about ``model``."""
        item = as_object(as_object(self._read().get(host)).get(model))
        tokens = as_int(item.get("tokens"))
        if tokens is None or not SMALLEST <= tokens <= LARGEST:
            return None
        return LearnedWindow(tokens, as_text(item.get("day")))

    def learn(self, host: str, model: str, tokens: int, day: date) -> str:
        """Keep a window. Returns a sentence for the user where that did not work, else the empty string."""
        if not SMALLEST <= tokens <= LARGEST:
            return ""
        try:
            aside = self._put_aside_if_broken()
            windows = self._read()
            models = {**as_object(windows.get(host)), model: {"tokens": tokens, "day": day.isoformat()}}
            self._write(_newest({**windows, host: models}))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return f"The context window of {model} could not be kept in {self._path}: {reason}."
        return f"{self._path} was broken; it is kept as {aside}." if aside else ""

    def _read(self) -> JsonObject:
        text = self._text()
        data = parse_object(text) if text else None
        if data is None or data.get("version") != _VERSION:
            return {}
        return as_object(data.get("windows"))

    def _text(self) -> str:
        try:
            with self._path.open("rb") as file:
                return file.read(_MAX_BYTES + 1).decode("utf-8", "replace")
        except OSError:
            return ""

    def _put_aside_if_broken(self) -> Path | None:
        """Move a file away that is none of ours, so that nothing in it is lost; where it is now."""
        try:
            size = self._path.stat().st_size
        except OSError:
            return None
        data = parse_object(self._text()) if size <= _MAX_BYTES else None
        if data is not None and data.get("version") == _VERSION:
            return None
        return put_aside(self._path)

    def _write(self, windows: JsonObject) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"version": _VERSION, "windows": windows}, ensure_ascii=False, indent=1, sort_keys=True)
        write_whole(self._path, text + "\n")


def host_key(base_url: str) -> str:
    """Host and port of a server, under which its windows are kept."""
    return urlsplit(base_url).netloc.rpartition("@")[2].lower()


def _newest(windows: JsonObject) -> JsonObject:
    """The windows learned last, not more than are reasonable to keep."""
    rows = [
        (as_text(as_object(item).get("day")), host, model, item)
        for host, models in windows.items()
        for model, item in as_object(models).items()
    ]
    rows.sort(key=lambda row: row[:3], reverse=True)
    kept: JsonObject = {}
    for _, host, model, item in rows[:_MAX_ENTRIES]:
        kept[host] = {**as_object(kept.get(host)), model: item}
    return kept
