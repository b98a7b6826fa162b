"""What extensions bring into a session, put on record before a request: tools, which join the end of the model's list
or leave it, and notes for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from swecli.core.context_management.budget import window_of
from swecli.core.context_management.deferral import Candidate, DeferralManager
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.work import add_note
from swecli.core.llm.types import ModelInfo, ToolSchema
from swecli.core.protocol.events import Notice, ToolDefinition, ToolsChanged
from swecli.core.tools.registry import AnyTool, schema_of
from swecli.core.tools.session_tools import ToolSearch

SEARCH = "tool search"
"""The search as a source in the registry."""

TOLD_AFTER = 1.0
"""Seconds of waiting after which a notice says what for."""


class ToolChange(Struct, frozen=True):
    """What has to change of the model's list. Empty where it is as it should be."""

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def change_of(
    offered: Mapping[str, ToolDefinition], wanted: Sequence[ToolDefinition], pending: Collection[str]
) -> ToolChange:
    """From what the model knows to what is there now. What it knows of a source that has yet to come stays; what
    is there already keeps its place; what is new comes at the end."""
    names = {tool.name for tool in wanted}
    removed = tuple(name for name, tool in offered.items() if name not in names and tool.source not in pending)
    return ToolChange(tuple(tool for tool in wanted if offered.get(tool.name) != tool), removed)


class SourceSize(Struct, frozen=True):
    """Tools of a source. ``tokens`` are those of the tools that the model sees; ``withheld`` are the others."""

    count: int
    withheld: int
    tokens: int


class OfferedTools:
    """Keeps the model's list of one session in step with the registry."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._services = services
        self._recorder = recorder
        self._notes: list[tuple[str, str]] = []
        self._deferral = DeferralManager()
        self._search = ToolSearch(self._find, lambda: len(self._deferral.deferred))
        self._promoted: list[str] = []
        """Tools that were found and that the model is not told of yet, in that order."""
        self._waited: set[str] = set()
        """Sources that a request waited for; it does not do so twice."""
        self._skipped: asyncio.Event | None = None
        """Set when the user does not want to wait; None where nothing waits."""
        self._state: tuple[int, str, int, float] | None = None
        """What the newest decision rests on: the registry's revision, the model and its window."""

    @property
    def note(self) -> str:
        """How many tools are withheld, for the model; empty where none are."""
        return self._deferral.note if self._deferral.deferred else ""

    @property
    def deferred(self) -> tuple[ToolSchema, ...]:
        return self._deferral.deferred

    def size_of(self, source: str, info: ModelInfo | None) -> SourceSize:
        schemas = [schema_of(tool) for tool in self._services.tools.dynamic() if tool.source == source]
        withheld = {tool.name for tool in self.deferred}
        told = [schema for schema in schemas if schema.name not in withheld]
        tokens = self._services.context.tool_tokens(told, info) if info is not None else 0
        return SourceSize(len(schemas), len(schemas) - len(told), tokens)

    def tell_model(self, title: str, text: str) -> None:
        """Append a note to the conversation, before the next request: ``text`` for the model, ``title`` for the
        user."""
        self._notes.append((title, text))

    def adopt(self) -> None:
        """The model sees what the record says."""
        offered = self._recorder.state.offered.values()
        self._services.context.added_tools = tuple(
            ToolSchema(tool.name, tool.description, tool.parameters, tool.source) for tool in offered
        )

    async def settle(self, info: ModelInfo) -> None:
        """Before a request: wait for tools that are about to come, and put what changed on record."""
        if self._services.tools.pending - self._waited:
            await self._wait()
        for title, text in self._notes:
            add_note(self._recorder, title, text)
        self._notes.clear()
        registry, context = self._services.tools, self._services.context
        effective = window_of(info, context.limits).effective
        state = (registry.revision, info.ref, effective, self._services.tool_deferral)
        if state == self._state and not self._promoted:
            return
        smaller = self._state is not None and effective < self._state[2]
        self._state = state
        tools = [tool for tool in registry.dynamic() if tool.name != self._search.name]
        if not (tools or self._recorder.state.offered or self._deferral.deferred):
            self._promoted.clear()
            return
        wanted = self._selected(tools, info, effective, anew=smaller)
        change = change_of(self._recorder.state.offered, wanted, registry.pending)
        if change:
            self._recorder.emit(ToolsChanged(change.added, change.removed))
            self.adopt()

    def _selected(
        self, tools: Sequence[AnyTool], info: ModelInfo, effective: int, *, anew: bool
    ) -> list[ToolDefinition]:
        """What the model is to be told: what it knows stays, unless its window has become smaller; what was found
        joins at the end."""
        registry, context = self._services.tools, self._services.context
        told = () if anew else (*self._recorder.state.offered, *self._promoted)
        used = self._recorder.state.last_used
        candidates = [
            Candidate(schema, context.tool_tokens((schema,), info), used.get(tool.name, 0), first=tool.of_server)
            for tool in tools
            if (schema := schema_of(tool))
        ]
        fixed = context.tool_tokens(context.own_tools(info), info)
        withheld = self.deferred
        selection = self._deferral.select(candidates, told, fixed, effective, self._services.tool_deferral)
        if selection.deferred and selection.deferred is not withheld and self.deferred is not withheld:
            # While the model thinks, so that its first search need not wait.
            asyncio.get_running_loop().run_in_executor(None, self._deferral.prepared)
        self._offer_search(bool(selection.deferred) or self._search.name in self._recorder.state.offered)
        order = {name: place for place, name in enumerate(self._promoted)}
        active = sorted(selection.active, key=lambda one: order.get(one.name, -1))
        self._promoted.clear()
        search = [schema_of(self._search)] if registry.get(self._search.name) is not None else []
        return [ToolDefinition(one.name, one.description, one.parameters, one.source) for one in (*search, *active)]

    def _offer_search(self, wanted: bool) -> None:
        """Once something was withheld the search stays: taking it away would change the list's beginning."""
        registry = self._services.tools
        if wanted and registry.get(self._search.name) is None:
            registry.settle(SEARCH, [self._search])
            self._state = (registry.revision, *self._state[1:]) if self._state is not None else None

    def _find(self, query: str) -> tuple[ToolSchema, ...]:
        found = self._deferral.search(query)
        self._promoted += [tool.name for tool in found if tool.name not in self._promoted]
        return found

    def called(self, name: str) -> None:
        """The model called a tool that it could not see: it sees it from now on."""
        if any(tool.name == name for tool in self._deferral.deferred) and name not in self._promoted:
            self._promoted.append(name)

    def skip(self) -> bool:
        """Go on without the tools that a request waits for. False where none waits."""
        if self._skipped is None:
            return False
        self._skipped.set()
        return True

    async def _wait(self) -> None:
        """Once for each source, and not for longer than the user would."""
        registry = self._services.tools
        skipped = self._skipped = asyncio.Event()
        settled = asyncio.ensure_future(registry.settled())
        enough = asyncio.ensure_future(skipped.wait())
        either = (settled, enough)
        try:
            await asyncio.wait(either, timeout=TOLD_AFTER, return_when=asyncio.FIRST_COMPLETED)
            if not settled.done() and not skipped.is_set():
                names = ", ".join(sorted(registry.pending))
                self._recorder.emit(
                    Notice(f"Waiting for tools: {names}", topic="tools", hint="Esc continues without them")
                )
                left = self._services.tools_wait - TOLD_AFTER
                await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._skipped = None
            settled.cancel()
            enough.cancel()
        late = registry.pending - self._waited
        self._waited |= late
        if late:
            names = ", ".join(sorted(late))
            why = "you skipped the wait" if skipped.is_set() else "no answer yet"
            text = f"Continuing without {names}: {why}. {'Its' if len(late) == 1 else 'Their'} tools join when ready."
            self._recorder.emit(Notice(text, "warning", "tools"))
