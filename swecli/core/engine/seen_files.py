"""What calls show the model of files: recorded, and not shown twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from swecli.core.context_management.ledger import RESULT, Ledger
from swecli.core.context_management.read_set import live_items, present_items, summary_items
from swecli.core.engine.recorder import Recorder
from swecli.core.protocol.events import FileRead
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.tools.base import SeenFile, ToolOutcome

UNCHANGED = ": unchanged since you read it; the text is above,"


def is_pointer(result: str) -> bool:
    """Whether the text stands for an earlier reading of the same lines."""
    return UNCHANGED in result and "\n" not in result


class SeenFiles:
    """Keeps the read set in step with the calls of one session; implements ``FileMemory``."""

    def __init__(self, recorder: Recorder, cwd: Path) -> None:
        self._recorder = recorder
        self._cwd = cwd

    def last_seen(self, path: str) -> str | None:
        """Hash of the file as the model last saw it; None when it never saw it or saw that it was gone."""
        ledger = self._recorder.ledger
        touch = ledger.files.last(path, present_items(ledger.view, ledger.entries))
        return touch.sha256 if touch is not None else None

    def shortened(self, outcome: ToolOutcome) -> ToolOutcome:
        """A re-read of lines that are the same on disk and that the model still has before it becomes one line.

        Not so a file that got an earlier form back: what the model saw last of it was another one."""
        ledger = self._recorder.ledger
        if outcome.is_error or len(outcome.seen) != 1:
            return outcome
        (seen,) = outcome.seen
        if self.last_seen(seen.path) != seen.sha256:
            return outcome
        live = live_items(ledger.view, ledger.entries)
        touch = ledger.files.same_reading(seen.path, seen.first, seen.last, seen.sha256, live)
        place = f"in the earlier result of this call (id {touch.item}{RESULT})" if touch else ""
        if touch is None or _visible_text(ledger, touch.item) != outcome.text:
            summaries = summary_items(ledger.view)
            touch = ledger.files.attached(seen.path, seen.first, seen.last, seen.sha256, summaries)
            place = "in the file block of the compacted part"
        if touch is None:
            return outcome
        lines = f"lines {seen.first}-{seen.last}" if seen.last > seen.first else f"line {seen.first}"
        text = f"[{display_name(seen.path, self._cwd)}, {lines}{UNCHANGED} {place}.]"
        return replace(outcome, text=text, detail="unchanged", seen=()) if len(text) < len(outcome.text) else outcome

    def record(self, item: str, seen: Sequence[SeenFile]) -> None:
        """The result of ``item``, which is recorded already, shows these lines."""
        for file in seen:
            self._recorder.emit(FileRead(file.path, file.sha256, file.first, file.last, item))


def display_name(path: str, cwd: Path) -> str:
    """The path as the model writes it, on one line."""
    file = Path(path)
    return " ".join((str(file.relative_to(cwd)) if file.is_relative_to(cwd) else path).split())


def _visible_text(ledger: Ledger, item: str) -> str | None:
    """The text of a result that is in the view word for word."""
    if not any(entry.id == item + RESULT and entry.kind == "live" for entry in ledger.view):
        return None
    parts = ledger.entries[item + RESULT].parts
    return next((part.text for part in parts if isinstance(part, ToolResultPart)), None)
