"""Events of sessions, made short."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from swecli.core.playbook.evidence import Evidence, EvidenceWatch
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    Body,
    Event,
    FileChanged,
    FilesRestored,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    RestoredFile,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart, ToolResultPart
from swecli.core.protocol.request_events import PermissionChoice

CWD = "/proj/project"


class Told:
    """Feeds a watch with what happens, and keeps the evidence."""

    def __init__(self) -> None:
        self.watch = EvidenceWatch(CWD)
        self.found: list[Evidence] = []
        self._number = 0
        self._turn = 0
        self._call = ""

    def _item(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def emit(self, *bodies: Body) -> None:
        for body in bodies:
            self._number += 1
            event = Event(self._number, 0.0, "s", self._turn, body)
            self.found = [*self.watch.standing(self.found, event), *self.watch.observe(event)]

    def says(self, text: str) -> Told:
        self._turn += 1
        item = self._item("u")
        self.emit(TurnStarted(item), ItemStarted(item, "user"), ItemCompleted(item, "ok", (TextPart(text),)))
        return self

    def runs(
        self,
        command: str,
        status: int = 0,
        output: str = "",
        *,
        detail: str = "",
        seconds: float = 0.1,
        own: bool = False,
    ) -> Told:
        item = self._item("t")
        block = TerminalBlock(command, output, None if detail.startswith("killed") else status, duration=seconds)
        if own:
            self.emit(ItemStarted(item, "user", "shell", command))
        else:
            self.calls(item, "run_command", {"command": command})
        ok = status == 0 and not detail.startswith("killed")
        self.emit(ItemCompleted(item, "ok" if ok or own else "error", (), (block,), detail or f"exit {status}"))
        return self

    def calls(self, item: str, name: str, arguments: dict[str, Any]) -> None:
        self._call = item
        part = ToolCallPart(item, name, json.dumps(arguments))
        self.emit(ItemStarted(item, "tool", name), ItemCheckpointed(item, part))

    def uses(self, name: str, status: Any = "ok", detail: str = "", **arguments: Any) -> Told:
        item = self._item("t")
        self.calls(item, name, arguments)
        if name == "edit_file" and status == "ok":
            self.emit(FileChanged(f"{CWD}/{arguments['path']}", "a", "b", item))
        if name == "write_file" and status == "ok":
            self.emit(FileChanged(f"{CWD}/{arguments['path']}", None, "b", item))
        self.emit(ItemCompleted(item, status, (ToolResultPart(item, name, ""),), detail=detail))
        return self

    def takes_back(self, *files: RestoredFile, redo: bool = False) -> Told:
        """The user undoes the newest call, or redoes it."""
        self.emit(FilesRestored("redo" if redo else "undo", (f"{self._call} its title",), files))
        return self

    def asked(
        self, command: str, choice: PermissionChoice, *, now: str | None = None, note: str = "", output: str = ""
    ) -> Told:
        item = self._item("t")
        self.calls(item, "run_command", {"command": command})
        arguments = {"command": now} if now is not None else None
        self.emit(
            PermissionRequested(item, item, "run_command", command, (), "", "", arguments={"command": command}),
            PermissionResolved(item, choice, note=note, arguments=arguments),
        )
        if choice == "reject":
            self.emit(ItemCompleted(item, "rejected"))
        else:
            self.emit(ItemCompleted(item, "ok", (), (TerminalBlock(now or command, output, 0),), "exit 0"))
        return self


def whats(found: Sequence[Evidence]) -> Iterator[str]:
    return (one.what for one in found)
