"""Tools that a slash command runs, through the same permission gate, items and events as the model's calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from swecli.core.engine.consent import rejection_note, unattended
from swecli.core.engine.model_call import Call, Outdated
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Permissions
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.engine.work import Work
from swecli.core.permissions.types import Rule
from swecli.core.protocol.events import ItemCheckpointed, ItemStarted, Notice
from swecli.core.protocol.messages import ToolCallPart, ToolResultPart


class ToolRun(Struct, frozen=True):
    """Result of a tool that a slash command ran."""

    text: str
    is_error: bool
    said: str | None = None
    """The user's note with a rejection; None if the user did not reject the call."""

    @property
    def why(self) -> str:
        """Reason of the failure for the user; ``text`` is for the model."""
        if self.said is not None:
            return "You rejected it."
        return "It needs an approval, and no user is present in this run." if unattended(self.text) else self.text


class CommandTools:
    """Runs tools on behalf of slash commands, between turns."""

    def __init__(self, permissions: Permissions, recorder: Recorder, work: Work, scheduler: Scheduler) -> None:
        self._permissions = permissions
        self._recorder = recorder
        self._work = work
        self._scheduler = scheduler

    async def run(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        rules: Sequence[Rule] = (),
        typed: bool = False,
        outdated: Outdated | None = None,
    ) -> ToolRun:
        """Run one tool with additional ``rules``. ``typed``: the user typed the content, which is consent; ``outdated``
        is asked whether consent still holds just before the call runs. The call belongs to no message, so the model
        never sees it."""
        if self._work.busy:
            return ToolRun("A turn is running; try again when it ends.", is_error=True)
        recorder = self._recorder
        before = len(recorder.ledger.changes)
        item = recorder.new_item("t")
        part = ToolCallPart(item, name, json.dumps(arguments))
        recorder.emit(ItemStarted(item, "tool", name))
        recorder.emit(ItemCheckpointed(item, part))
        call = Call(item, part, rules=tuple(rules), typed=typed, outdated=outdated)
        task = self._work.begin(self._scheduler.run([call]))
        await asyncio.wait([task])
        for change in recorder.ledger.changes[before:]:
            if change.after is not None:  # files written by the user's own command count as the user's
                trouble = await asyncio.to_thread(self._permissions.keep_file, change.path, change.after)
                if trouble:
                    recorder.emit(Notice(trouble, "warning", "session"))
        if task.cancelled() or task.exception() is not None:
            return ToolRun("interrupted", is_error=True)
        record = recorder.ledger.items[item]
        result = next((part for part in record.parts if isinstance(part, ToolResultPart)), None)
        text = result.text if result else ""
        return ToolRun(text, record.status != "ok", rejection_note(text) if record.status == "rejected" else None)
