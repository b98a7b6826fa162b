"""The stored sessions of all folders for a person who looks for one: read without taking part in writing."""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from swecli.assembly.storage import DATABASE
from swecli.core.config.paths import user_paths
from swecli.core.protocol.blocks import DisplayBlock, MarkdownBlock, TextBlock
from swecli.core.protocol.codec import CodecError, decode_body
from swecli.core.protocol.events import ItemCompleted, ItemStarted
from swecli.core.protocol.messages import TextPart
from swecli.core.sessions.process import Process
from swecli.launch import LaunchOptions
from swecli.tui.link import OpenSession
from swecli.tui.screens.ports import StoredSession

FOLDERS = 40
"""Folders besides this one that are looked into, those used last."""
PER_FOLDER = 200
MESSAGES = 6
"""Messages of a preview."""
LONGEST = 600
"""Characters of a message in a preview."""

_LIST = """
    SELECT s.id, s.title, s.cwd, s.model, s.updated,
        (SELECT count(*) FROM events e WHERE e.session_id = s.id AND e.type = 'turn_started')
    FROM sessions s
    WHERE EXISTS (SELECT 1 FROM events e WHERE e.session_id = s.id AND e.type = 'turn_started')
    ORDER BY s.updated DESC LIMIT ?
"""
_STEPS = """
    SELECT session_id,
        sum(coalesce(json_extract(body, '$.usage.input_total'), 0)
            + coalesce(json_extract(body, '$.usage.output_total'), 0)),
        group_concat(coalesce(json_extract(body, '$.cost'), '?'), ' ')
    FROM events WHERE type = 'step_ended' GROUP BY session_id
"""
_LAST = """
    SELECT CAST(body AS BLOB) FROM events WHERE session_id = ? AND type IN ('item_started', 'item_completed')
    ORDER BY seq DESC LIMIT 400
"""


class SessionList:
    """Implements ``SessionsPort`` for the folder of ``options``; ``opener`` opens a session by its id."""

    def __init__(
        self, options: LaunchOptions, environment: Mapping[str, str], opener: Callable[[str], OpenSession]
    ) -> None:
        self._folder = options.cwd
        self._data = user_paths(environment).data / "workspaces"
        self._own = user_paths(environment).workspace_data(options.cwd) / DATABASE
        self._opener = opener

    def read(self) -> Sequence[StoredSession]:
        others = sorted(self._databases(), key=_changed, reverse=True)[:FOLDERS]
        found: list[StoredSession] = []
        for path in (self._own, *others):
            found += self._sessions(path)
        return found

    def preview(self, session: StoredSession) -> Sequence[DisplayBlock]:
        path = user_paths_of(self._data, session.folder, self._own)
        bodies = [bytes(row[0]) for row in _rows(path, _LAST, (session.id,))]
        return messages(bodies)

    def open(self, session_id: str) -> OpenSession:
        return self._opener(session_id)

    def _databases(self) -> list[Path]:
        try:
            return [path for folder in self._data.iterdir() if (path := folder / DATABASE) != self._own]
        except OSError:
            return []

    def _sessions(self, path: Path) -> list[StoredSession]:
        rows = _rows(path, _LIST, (PER_FOLDER,))
        if not rows:
            return []
        steps = {str(name): (count, costs) for name, count, costs in _rows(path, _STEPS, ())}
        held = _held(path)
        found: list[StoredSession] = []
        for name, title, cwd, model, updated, turns in rows:
            count, costs = steps.get(str(name), (0, ""))
            away = ""
            if path != self._own:
                away = f"It is of another folder: swecli -C {shlex.quote(str(cwd))} -r {name}"
            elif str(name) in held:
                away = f"It is open in another swecli (process {held[str(name)]}); close it there first"
            title = " ".join(str(title).split())
            found.append(
                StoredSession(str(name), title, str(cwd), updated, turns, count or 0, _cost(costs), str(model), away)
            )
        return found


def user_paths_of(data: Path, folder: str, own: Path) -> Path:
    """The database of a folder."""
    from swecli.core.config.paths import workspace_key

    path = data / workspace_key(Path(folder)) / DATABASE
    return path if path.exists() else own


def messages(newest_first: Sequence[bytes]) -> Sequence[DisplayBlock]:
    """The last messages of a conversation, oldest first, from the bodies of its newest events."""
    kinds: dict[str, str] = {}
    ended: list[ItemCompleted] = []
    for raw in newest_first:
        try:
            body = decode_body(raw.decode("utf-8", "replace"))
        except (CodecError, ValueError):
            continue
        if isinstance(body, ItemStarted):
            kinds[body.item] = body.kind
        elif isinstance(body, ItemCompleted):
            ended.append(body)
    blocks: list[DisplayBlock] = []
    for body in ended:
        text = "\n".join(part.text for part in body.parts if isinstance(part, TextPart)).strip()
        if text and kinds.get(body.item) in ("user", "text") and len(blocks) < MESSAGES:
            short = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
            blocks.append(TextBlock(f"› {short}") if kinds[body.item] == "user" else MarkdownBlock(short))
    return blocks[::-1]


def _cost(costs: str) -> str:
    """The sum in dollars; empty where a part of it is unknown."""
    try:
        total = sum((Decimal(each) for each in costs.split()), Decimal(0))
    except InvalidOperation:
        return ""
    return f"${total:.2f}"


def _held(path: Path) -> dict[str, int]:
    """Sessions that another live process has open, with its id."""
    own = Process.current()
    held: dict[str, int] = {}
    for name, pid, started in _rows(path, "SELECT session_id, pid, process_started FROM leases", ()):
        process = Process(int(pid), str(started))
        if process != own and process.alive:
            held[str(name)] = process.pid
    return held


def _changed(path: Path) -> float:
    try:
        return max(os.path.getmtime(each) for each in (path, Path(f"{path}-wal")) if each.exists())
    except (OSError, ValueError):
        return 0.0


def _rows(path: Path, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as connection:
            return connection.execute(query, values).fetchall()
    except sqlite3.Error:
        return []
