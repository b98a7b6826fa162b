"""What extensions bring into a session, put on record before a request: tools, which join the end of the model's list
or leave it, and notes for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.work import add_note
from swecli.core.llm.types import ToolSchema
from swecli.core.protocol.events import Notice, ToolDefinition, ToolsChanged
from swecli.core.tools.registry import schema_of

TOLD_AFTER = 1.0
"""Seconds of waiting after which the user is told what for."""


@dataclass(frozen=True, slots=True)
class ToolChange:
    """What has to change of the model's list. Empty where it is as it should be."""

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def change_of(
    offered: Mapping[str, ToolDefinition], wanted: Sequence[ToolDefinition], pending: Collection[str]
) -> ToolChange:
    """From what the model is told to what is there now. What it was told of a source that has yet to come stays; what
    is there already keeps its place; what is new comes at the end."""
    names = {tool.name for tool in wanted}
    removed = tuple(name for name, tool in offered.items() if name not in names and tool.source not in pending)
    return ToolChange(tuple(tool for tool in wanted if offered.get(tool.name) != tool), removed)


class OfferedTools:
    """Keeps the model's list of one session in step with the registry."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._services = services
        self._recorder = recorder
        self._notes: list[tuple[str, str]] = []
        self._waited: set[str] = set()
        """Sources that a request waited for; it does not do so twice."""
        self._revision = -1

    def tell_model(self, title: str, text: str) -> None:
        """Append a note to the conversation, before the next request: ``text`` for the model, ``title`` for the
        user."""
        self._notes.append((title, text))

    def adopt(self) -> None:
        """A session begins or continues: the model is told what the record says."""
        offered = self._recorder.state.offered.values()
        self._services.context.added_tools = tuple(
            ToolSchema(tool.name, tool.description, tool.parameters, tool.source) for tool in offered
        )

    async def settle(self) -> None:
        """Before a request: wait for tools that are about to come, and put what changed on record."""
        await self._wait()
        for title, text in self._notes:
            add_note(self._recorder, title, text)
        self._notes.clear()
        registry = self._services.tools
        if registry.revision == self._revision:
            return
        self._revision = registry.revision
        wanted = [
            ToolDefinition(schema.name, schema.description, schema.parameters, schema.source)
            for schema in map(schema_of, registry.dynamic())
        ]
        change = change_of(self._recorder.state.offered, wanted, registry.pending)
        if change:
            self._recorder.emit(ToolsChanged(change.added, change.removed))
            self.adopt()

    async def _wait(self) -> None:
        """Once for each source, and not for longer than the user would."""
        registry = self._services.tools
        if not registry.pending - self._waited:
            return
        settled = asyncio.ensure_future(registry.settled())
        try:
            await asyncio.wait((settled,), timeout=TOLD_AFTER)
            if not settled.done():
                names = ", ".join(sorted(registry.pending))
                self._recorder.emit(Notice(f"Waiting for tools: {names}", topic="tools", hint="Esc cancels"))
                await asyncio.wait((settled,), timeout=self._services.tools_wait - TOLD_AFTER)
        finally:
            settled.cancel()
        late = registry.pending - self._waited
        self._waited |= late
        if late:
            names = ", ".join(sorted(late))
            self._recorder.emit(
                Notice(
                    f"Continuing without {names}: no answer yet. Its tools join when it is ready.", "warning", "tools"
                )
            )
