"""A session's log: JSON lines for people and scripts, in the project, and the document made from them.

A log line has the fields of its type in ``FIELDS`` and may have more; the document has exactly those.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from swecli.core.llm.foreign_calls import stored_arguments
from swecli.core.protocol.codec import to_text
from swecli.core.protocol.events import (
    MAIN,
    CacheBreak,
    CompactionCompleted,
    CompactionRedone,
    CompactionUndone,
    ContextEdited,
    ContextRetrieved,
    Event,
    FileChanged,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    ModelChanged,
    ModelResponded,
    Notice,
    RewindUndone,
    Rewound,
    SessionStarted,
    StepEnded,
    StepStarted,
)
from swecli.core.protocol.messages import ImagePart, TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.provider_reports import disagree
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import INVISIBLE

Entry = dict[str, Any]
"""One log line as a JSON object."""

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "user_input": ("content", "tokens"),
    "context_retrieval": ("actions", "tokens_added"),
    "llm_call": ("tokens_in", "tokens_out", "duration_ms"),
    "tool_execution": ("tool", "file", "approved"),
    "context_update": ("total_tokens", "usage_percent"),
    "compaction": ("tokens_before", "tokens_after", "reduction_percent", "messages_compacted"),
}
"""Fields of the document's events, except ``timestamp`` and ``type``."""

FOLDER = (".swecli", "logs")
"""Place of logs below the working directory."""


class LogEntries:
    """Conversion of a session's facts, in order, to log entries. ``count`` returns the tokens of a text."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._cwd = ""
        self._started: dict[str, ItemStarted] = {}
        self._calls: dict[str, ToolCallPart] = {}
        self._targets: dict[str, str] = {}
        """What calls are about: a command, a path, words to search for."""
        self._running: set[str] = set()
        self._changed: dict[str, list[str]] = {}
        self._attached: list[tuple[str, int]] = []
        """Attachments of the message about to be answered, and their tokens."""
        self._pointed: tuple[tuple[str, ...], int] = (), 0
        """Retrieved context for that message, and its tokens."""
        self._asked: dict[str, int] = {}
        """Tokens of the newest request of each agent, as measured before sending."""
        self._answers: dict[str, int] = {}
        """Tokens that the model has written since then."""
        self._diagnosis = ""
        """The provider's reason for a cache miss of the newest answer."""
        self._miss = ""
        """Kind of the miss that swecli saw."""
        self._rewritten = True
        """Whether the conversation was rewritten since the request before."""

    def take(self, event: Event) -> Iterator[Entry]:
        """The entries of an event, usually none."""
        for kind, fields in self._entries(event):
            agent = {"agent": event.agent} if event.agent != MAIN else {}
            yield {"timestamp": moment(event.ts), "type": kind, **fields, "turn": event.turn, **agent}

    def _entries(self, event: Event) -> Iterator[tuple[str, Entry]]:
        main = event.agent == MAIN
        match event.body:
            case SessionStarted() as body if main:
                self._cwd = body.cwd
                yield (
                    "session_start",
                    {
                        "session_id": event.session,
                        "working_dir": body.cwd,
                        "model": body.model,
                        "mode": body.mode,
                        "swecli": body.swecli,
                        "resumed": body.resumed,
                    },
                )
            case ItemStarted() as body:
                self._started[body.item] = body
            case ItemCheckpointed(item=item, part=ToolCallPart() as part, title=title, running=running):
                self._calls[item] = part
                if title:
                    self._targets[item] = title
                if running:
                    self._running.add(item)
            case FileChanged(path=path, item=item):
                self._changed.setdefault(item, []).append(self._short(path))
            case ItemCompleted() as body:
                yield from self._completed(body, event, main)
            case StepStarted(budget=budget):
                yield from self._retrieved()
                self._asked[event.agent] = budget.used
                if main:
                    yield "context_update", _update(budget.used, budget.effective)
            case ModelResponded() as body:
                self._diagnosis = body.report.miss if main and body.report is not None else self._diagnosis
                usage, written = body.usage, self._answers.pop(event.agent, 0)
                asked = self._asked.get(event.agent, 0)
                known_in = usage.input_total if usage is not None else None
                known_out = usage.output_total if usage is not None else None
                yield (
                    "llm_call",
                    {
                        "tokens_in": asked if known_in is None else known_in,
                        "tokens_out": written if known_out is None else known_out,
                        "duration_ms": body.duration_ms,
                        "model": body.origin.model,
                        "complete": body.complete,
                    },
                )
            case ContextRetrieved() as body if main:
                self._attached = [(action, size) for action, size in self._attached if action not in body.actions]
                self._pointed = (body.actions, body.tokens_added)
            case CompactionCompleted() as body if main:
                self._rewritten = True
                yield from _compacted(body)
            case CacheBreak(cause=cause, tokens=tokens, kind=kind) if main:
                self._miss = kind
                yield "cache_break", {"cause": cause, "tokens": tokens}
            case StepEnded() if main:
                if disagree(self._miss, self._diagnosis, rewritten=self._rewritten):
                    yield "cache_diagnosis", {"provider": self._diagnosis, "swecli": self._miss or None}
                self._diagnosis, self._miss, self._rewritten = "", "", False
            case (
                ModelChanged() | CompactionUndone() | CompactionRedone() | ContextEdited() | Rewound() | RewindUndone()
            ):
                self._rewritten = True
            case Notice() as body:
                yield "notice", {"level": body.level, "text": body.text, "topic": body.topic}
            case _:
                pass

    def _completed(self, body: ItemCompleted, event: Event, main: bool) -> Iterator[tuple[str, Entry]]:
        started = self._started.pop(body.item, None)
        call = self._calls.pop(body.item, None)
        about = self._targets.pop(body.item, body.title)
        running = body.item in self._running
        self._running.discard(body.item)
        if started is None:
            return
        text = "".join(part.text for part in body.parts if isinstance(part, TextPart | ToolResultPart))
        match started.kind:
            case "user" if main:
                shown = started.typed or text
                images = "".join(f"[image {part.name}]" for part in body.parts if isinstance(part, ImagePart))
                yield "user_input", {"content": shown + images, "tokens": self._count(text)}
            case "attachment":
                title = started.title or (_target(call) or "")
                self._attached.append((f"{_verb(started.name)} {self._short(title)}", self._count(text)))
            case "tool":
                target = _target(call) if call is not None else None
                yield (
                    "tool_execution",
                    {
                        "tool": started.name,
                        "file": None if target is None else self._short(target),
                        # A call that failed before its decision was not refused.
                        "approved": body.status != "rejected" and (running or body.status != "interrupted"),
                        "status": body.status,
                        "duration_ms": None if body.duration is None else round(body.duration * 1000),
                        "target": self._short(about) or None,
                        "changed": self._changed.pop(body.item, []),
                    },
                )
            case "text" | "reasoning":
                self._answers[event.agent] = self._answers.get(event.agent, 0) + self._count(text)
            case _:
                pass

    def _retrieved(self) -> Iterator[tuple[str, Entry]]:
        pointed, size = self._pointed
        actions = [*(action for action, _ in self._attached), *pointed]
        if actions:
            tokens = sum(size for _, size in self._attached) + size
            yield "context_retrieval", {"actions": actions, "tokens_added": tokens}
        self._attached, self._pointed = [], ((), 0)

    def _short(self, path: str) -> str:
        """The path relative to the working directory if inside it."""
        return path.removeprefix(f"{self._cwd}/") if self._cwd else path


def _verb(tool: str) -> str:
    return {"read_file": "read", "list_files": "list", "search": "search"}.get(tool, tool.replace("_", " ") or "read")


def _target(call: ToolCallPart | None) -> str | None:
    """The file of a call, according to its arguments."""
    path = stored_arguments(call.name, call.arguments).get("path") if call is not None else None
    return path if isinstance(path, str) else None


def _update(tokens: int, effective: int) -> Entry:
    return {"total_tokens": tokens, "usage_percent": round(100 * tokens / effective, 1) if effective > 0 else None}


def _compacted(body: CompactionCompleted) -> Iterator[tuple[str, Entry]]:
    before, after = body.tokens_before, body.tokens_after
    if body.strategies == ("clearing",):  # old results were removed, but no message
        yield "context_update", _update(after, body.effective)
        return
    yield (
        "compaction",
        {
            "tokens_before": before,
            "tokens_after": after,
            "reduction_percent": round(100 * (before - after) / before, 1) if before > 0 else 0.0,
            "messages_compacted": max(0, body.messages_before - body.messages_after),
        },
    )


def moment(timestamp: float) -> str:
    """Unix seconds in the form ``2025-10-07T14:30:50Z``."""
    try:
        return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00Z"


def log_document(session_id: str, entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One document of a whole log: events with exactly their fields, and their sums."""
    events: list[Entry] = []
    started_at = working_dir = ""
    stats: dict[str, Any] = {
        "total_turns": 0,
        "llm_calls": 0,
        "tools_executed": 0,
        "compactions": 0,
        "total_tokens_used": 0,
        "files_modified": [],
    }
    turns: set[int] = set()
    for entry in entries:
        kind = str(entry.get("type"))
        started_at = started_at or str(entry.get("timestamp", ""))
        if kind == "session_start":
            working_dir = working_dir or str(entry.get("working_dir", ""))
        turns.add(_whole(entry.get("turn")))
        _sum(stats, kind, entry)
        if kind in FIELDS:
            events.append({name: entry.get(name) for name in ("timestamp", "type", *FIELDS[kind])})
    stats["total_turns"] = len(turns - {0})
    return {
        "session_id": session_id,
        "started_at": started_at,
        "working_dir": working_dir,
        "events": events,
        "stats": stats,
    }


def _sum(stats: dict[str, Any], kind: str, entry: Mapping[str, Any]) -> None:
    match kind:
        case "llm_call":
            stats["llm_calls"] += 1
            stats["total_tokens_used"] += sum(_whole(entry.get(name)) for name in ("tokens_in", "tokens_out"))
        case "tool_execution":
            stats["tools_executed"] += entry.get("approved") is True
            changed = entry.get("changed")
            for path in map(str, changed if isinstance(changed, list) else ()):  # pyright: ignore[reportUnknownArgumentType]
                if path not in stats["files_modified"]:
                    stats["files_modified"].append(path)
        case "compaction":
            stats["compactions"] += 1
        case _:
            pass


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def read_lines(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of a log file; invalid lines, such as the last one on a full disk, are skipped."""
    for line in lines:
        try:
            entry: object = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield {str(key): value for key, value in entry.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


_INVISIBLE: Final = lazy_pattern(f"[\x7f-\x9f{INVISIBLE}]")


def visible_json(text: str) -> str:
    """Equivalent JSON text with escapes for characters that act on a terminal, are invisible, or end a line for some
    reader."""

    def escape(match: re.Match[str]) -> str:
        return json.dumps(match[0])[1:-1]

    return _INVISIBLE.sub(escape, text)


def log_path(cwd: Path, session_id: str) -> Path:
    return cwd.joinpath(*FOLDER, f"{session_id}.log")


def log_files(cwd: Path, session_id: str) -> list[Path]:
    """Existing files of a session's log, oldest first."""
    newest = log_path(cwd, session_id)
    older = [newest.with_name(f"{newest.name}.{number}") for number in range(KEPT, 0, -1)]
    return [path for path in (*older, newest) if os.path.isfile(path) and not os.path.islink(path)]


MAX_BYTES: Final = 5_000_000
"""Bytes from which a log file is renamed and a new one begins."""
KEPT: Final = 3
"""Number of older files of one session's log that are kept."""
_IGNORE: Final = b"# Logs of swecli: yours, and not for the repository.\n*\n"
_FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE_FLAGS: Final = (
    os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
)


class SessionLog:
    """Appends a session's entries to its file, on the thread that calls ``write``. Links on the path, which a
    repository may contain, are not followed. After a failure, reported once, writing stops."""

    def __init__(
        self,
        cwd: Path,
        session_id: str,
        entries: LogEntries,
        *,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._cwd = cwd
        self._name = f"{session_id}.log"
        self._entries = entries
        self._max_bytes = max_bytes
        self.tell: Callable[[str], None] = lambda text: None
        """Receives a sentence for the user, on the thread of ``write``."""
        self._folder = self._file = -1
        self._failed = False

    def write(self, events: Sequence[Event]) -> None:
        """Append the entries of these events. Never raises."""
        entries = [entry for event in events for entry in self._entries.take(event)]
        if not entries or self._failed:
            return
        text = "".join(f"{visible_json(to_text(entry))}\n" for entry in entries)
        try:
            self._append(text.encode("utf-8", "replace"))
        except OSError as error:
            self._failed = True
            self.close()
            path = Path(*FOLDER, self._name)
            self.tell(
                f"Cannot write the log {path} ({error.strerror or error}). The session itself is stored; `swecli "
                "logs export` shows the same."
            )

    def close(self) -> None:
        for descriptor in (self._file, self._folder):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._folder = -1

    def _append(self, data: bytes) -> None:
        if self._file >= 0 and not os.fstat(self._file).st_nlink:  # the file was removed
            self.close()
        if self._file < 0:
            self._open()
        size = os.fstat(self._file).st_size
        if size and size + len(data) > self._max_bytes:
            self._rotate()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _open(self) -> None:
        if self._folder < 0:
            self._folder = _made_folder(self._cwd)
        descriptor = os.open(self._name, _FILE_FLAGS, 0o600, dir_fd=self._folder)
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
            os.close(descriptor)
            raise OSError(0, "it is not a regular file of yours")
        self._file = descriptor

    def _rotate(self) -> None:
        os.close(self._file)
        self._file = -1
        names = [self._name, *(f"{self._name}.{number}" for number in range(1, KEPT + 1))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            try:
                os.rename(newer, older, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            except FileNotFoundError:
                continue
        self._open()


def _made_folder(cwd: Path) -> int:
    """A descriptor of the log folder, created if missing and excluded from the repository."""
    folder = os.open(cwd, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        for name, mode in zip(FOLDER, (0o777, 0o700), strict=True):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=folder)
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        try:
            ignore = os.open(".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        except FileExistsError:
            return folder
        with os.fdopen(ignore, "wb") as file:
            file.write(_IGNORE)
    except BaseException:
        os.close(folder)
        raise
    return folder
