"""The conversation as a file of JSON lines in Claude Code's form, for hook scripts that read ``transcript_path``."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from swecli.core.atomic_text import make_private
from swecli.core.context_management.ledger import Entry
from swecli.core.engine.recorder import Recorder
from swecli.core.hooks.translation import COMPACT, claude_name
from swecli.core.llm.json_values import parse_json
from swecli.core.protocol.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart


class TranscriptFile:
    """Transcript file that grows while the session runs, separate from the session's own record."""

    def __init__(self, path: str, cwd: str) -> None:
        self.path = path
        self._cwd = cwd
        self._known = 0
        self._waiting: list[dict[str, Any]] = []
        self._begun = False

    def add(self, recorder: Recorder) -> None:
        """Collect messages recorded since the last call. On the event loop; writes nothing."""
        entries = list(recorder.ledger.entries.values())
        for entry in entries[self._known :]:
            for line in _lines(entry):
                shared = {"uuid": entry.id, "sessionId": recorder.session, "cwd": self._cwd}
                moment = datetime.fromtimestamp(entry.created, UTC).isoformat()
                self._waiting.append({**line, **shared, "timestamp": moment})
        self._known = len(entries)

    def write(self, cover: Callable[[str], str]) -> None:
        """Append the collected messages to the file, secrets masked. Blocks on the disk.

        Raises:
            OSError: the file can't be written.
        """
        if self._begun and not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        text = "".join(
            f"{cover(json.dumps(line, ensure_ascii=False, default=str, separators=COMPACT))}\n" for line in waiting
        )
        make_private(Path(self.path).parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if self._begun else os.O_TRUNC)
        descriptor = os.open(self.path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        self._begun = True

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def _lines(entry: Entry) -> Iterator[dict[str, Any]]:
    content = [block for part in entry.parts if (block := _block(part)) is not None]
    if not content:
        return
    role = "user" if entry.kind in ("user", "attachment", "result") else "assistant"
    body: Any = content
    if entry.kind == "user" and all(block["type"] == "text" for block in content):
        body = "".join(str(block["text"]) for block in content)
    yield {"type": role, "message": {"role": role, "content": body}}


def _block(part: object) -> dict[str, Any] | None:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ReasoningPart(text=text):
            return {"type": "thinking", "thinking": text}
        case ToolCallPart():
            return {"type": "tool_use", "id": part.call_id, "name": claude_name(part.name), "input": _input(part)}
        case ToolResultPart():
            return {
                "type": "tool_result",
                "tool_use_id": part.call_id,
                "content": part.text,
                "is_error": part.is_error,
            }
        case _:
            return None


def _input(part: ToolCallPart) -> Any:
    try:
        return parse_json(part.arguments)
    except ValueError:  # or nested too deeply
        return {"arguments": part.arguments}
