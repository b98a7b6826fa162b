"""What ran in a workspace and by which rules, read from its stored sessions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from swecli.assembly.storage import DATABASE
from swecli.core.config.paths import Paths
from swecli.core.permissions.check import COMMAND_TOOL, command_call
from swecli.core.permissions.types import Call

NEWEST = 200
"""Commands that a rule is tried on."""


@dataclass(frozen=True, slots=True)
class Use:
    """How often a rule decided, and when last (Unix seconds)."""

    count: int
    last: float


def newest_commands(paths: Paths, workspace: Path, limit: int = NEWEST) -> tuple[Call, ...]:
    """The newest commands of the model in this workspace, each as the call that it was."""
    rows = _rows(
        paths,
        workspace,
        "SELECT e.session_id, CAST(e.body AS BLOB), s.cwd FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE e.type = 'item_checkpointed' AND instr(e.body, ?) ORDER BY e.ts DESC LIMIT ?",
        (f'"{COMMAND_TOOL}"', limit * 5),
    )
    calls: dict[tuple[str, str], Call] = {}
    for session, body, cwd in rows:
        found = _command(body)
        if found is not None and len(calls) < limit:
            calls.setdefault((session, found[0]), command_call(found[1], Path(str(cwd))))
    return tuple(calls.values())


def rule_uses(paths: Paths, workspace: Path) -> Mapping[tuple[str, str], Use]:
    """Uses of each rule by effect and text."""
    rows = _rows(
        paths,
        workspace,
        "SELECT json_extract(body, '$.effect'), json_extract(body, '$.rule'), count(*), max(ts) FROM events"
        " WHERE type = 'rule_applied' GROUP BY 1, 2",
        (),
    )
    return {(str(effect), str(rule)): Use(count, last) for effect, rule, count, last in rows}


def _command(body: object) -> tuple[str, str] | None:
    """The item and the command of a checkpoint of the shell tool."""
    try:
        data = cast("dict[str, Any]", json.loads(cast("bytes", body)))
        part = data["part"]
        command = json.loads(part["arguments"])["command"] if part["name"] == COMMAND_TOOL else None
    except (ValueError, KeyError, TypeError):
        return None
    return (str(data.get("item")), command) if isinstance(command, str) else None


def _rows(paths: Paths, workspace: Path, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    """Read without taking part in writing; nothing where there is no store or it can't be read."""
    file = paths.workspace_data(workspace) / DATABASE
    if not file.is_file():
        return []
    try:
        connection = sqlite3.connect(f"file:{file.as_posix()}?mode=ro", uri=True, timeout=2)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return []
