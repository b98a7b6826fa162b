"""Inspection of a session's context, item by item, and of the effect of changes. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.outlook import next_removal
from swecli.core.context_management.compaction.plan import Price, change_costs
from swecli.core.context_management.compaction.quality import sources_of_lines
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edits import Edited, Effect, edited, effect_of
from swecli.core.context_management.fitting import Fitted, Room, with_references
from swecli.core.context_management.forecast import CompactionRecord, Timeline
from swecli.core.context_management.items import (
    ENVIRONMENT,
    ContextItem,
    items_of,
    original_text,
    text_sent,
    title_of,
    title_of_entry,
)
from swecli.core.context_management.ledger import RESULT
from swecli.core.context_management.past import past_at
from swecli.core.context_management.projection import project
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.engine.wire_preview import ComingNotes, WirePreview
from swecli.core.llm.json_values import compact
from swecli.core.llm.types import ModelClient, ModelInfo
from swecli.core.protocol.budget import Budget, is_tools, tools_of
from swecli.core.protocol.context_events import ContextChange


class Picture(Struct, frozen=True):
    """The context at one moment: ``items`` add up to ``budget.used``. ``revision`` changes with the conversation and
    with knowledge of the model."""

    items: tuple[ContextItem, ...]
    budget: Budget
    revision: Hashable


class Inspection:
    """Read-only view of one session's context."""

    def __init__(
        self,
        context: ContextManager,
        settings: Settings,
        price: Price,
        recorder: Recorder,
        connection: Connection,
        coming: ComingNotes,
    ) -> None:
        self._context = context
        self._settings = settings
        self._price = price
        self._recorder = recorder
        self._connection = connection
        preview = WirePreview(context, recorder, connection, coming)
        self.wire, self.masked = preview.wire, preview.masked

    @property
    def revision(self) -> Hashable:
        """Key that changes whenever a new picture would differ: with each message, and when the window becomes
        known."""
        client = self._connection.client
        model = None if client is None else (client.info.ref, client.info.window, client.info.window_source)
        return self._recorder.ledger.revision, len(self._recorder.state.agents), model

    @property
    def timeline(self) -> Timeline:
        return self._recorder.timeline

    def turn_back(self, compaction: str) -> Literal["undo", "redo", ""]:
        """Available action for a past compaction; empty if later work replaced it."""
        in_force, undone = self._recorder.ledger.compactions
        return "undo" if compaction in in_force else "redo" if compaction in undone else ""

    def moved(self, compaction: str) -> tuple[int, Fitted] | None:
        """Size of the context now, and what it would be after the available action for a past compaction; None without
        a model, without an action, or where nothing would come back."""
        client, ledger, way = self._connection.client, self._recorder.ledger, self.turn_back(compaction)
        if client is None or not way:
            return None
        room = Room(self._context, ledger, client.info, self._settings.now.compaction)
        again = room.again(compaction) if way == "redo" else None
        fitted = room.without(compaction) if way == "undo" else again[1] if again is not None else None
        return None if fitted is None else (room.now.used, fitted)

    def compaction_state(self, record: CompactionRecord) -> str:
        """Current state of a compaction, in two words."""
        states = {"undo": "active", "redo": "undone"}
        return states.get(self.turn_back(record.item), "replaced" if not record.in_force else "rewound")

    def picture(self) -> Picture | None:
        """The current items and their measure; None without a model."""
        client = self._connection.client
        if client is None:
            return None
        ledger, context = self._recorder.ledger, self._context
        budget = context.measure(project(ledger), client.info)
        agents = {agent.started.item: agent.id for agent in self._recorder.state.agents.values()}
        return Picture(items_of(ledger, budget, context.monitor, client.info, agents), budget, self.revision)

    def turn_of(self, item: str) -> int:
        """The turn in which an item of the conversation was said or made; 0 if it is none."""
        ledger = self._recorder.ledger
        entry, record = ledger.entries.get(item), ledger.items.get(item)
        return entry.turn if entry is not None else record.turn if record is not None else 0

    def next_removal(self) -> str:
        """What will be removed next by itself, and when, as a clause; empty if nothing will."""
        client, ledger, options = self._connection.client, self._recorder.ledger, self._settings.now.compaction
        if client is None or not options.auto:
            return ""
        budget = self._context.measure(project(ledger), client.info)
        if budget.effective <= 0:
            return ""
        return next_removal(ledger, budget, self._sizes(client), options, client.info)

    async def at(self, turn: int) -> Picture | None:
        """The context at the newest request of an earlier turn; None without a model, or if that turn made no
        request."""
        client = self._connection.client
        return None if client is None else await asyncio.to_thread(self._past, turn, client.info)

    def _past(self, turn: int, info: ModelInfo) -> Picture | None:
        past = past_at(self._recorder.facts, turn)
        if past is None:
            return None
        items = items_of(past.ledger, past.budget, self._context.monitor, info)
        return Picture(items, past.budget, ("at turn", turn, past.at))

    def effect(self, picture: Picture, changes: Sequence[ContextChange]) -> Effect | None:
        """Effect of these changes on the next request; None without a model."""
        client = self._connection.client
        if client is None:
            return None
        ledger, monitor = self._recorder.ledger, self._context.monitor
        done: Edited = edited(ledger, changes, self._sizes(client))

        def costs(before: int, after: int, rewritten: int) -> tuple[str | None, str | None]:
            return change_costs(self._price, client.info.ref, before, after, rewritten)

        effect = effect_of(done, ledger, picture.items, picture.budget, monitor, client.info, costs)
        if not effect.over:
            return effect
        room = Room(self._context, ledger, client.info, self._settings.now.compaction, done.restored)
        fitted = room.shorten(done.view)
        if fitted is None:
            return effect
        done = with_references(done, fitted)
        shortened = effect_of(done, ledger, picture.items, picture.budget, monitor, client.info, costs)
        return replace(shortened, over=0, references=fitted.references)

    def title(self, item: ContextItem) -> str:
        """One-line description of an item."""
        agent = self._recorder.state.agents.get(item.agent)
        if agent is not None:
            return f"{agent.id} ({agent.started.profile}): {agent.started.title}"
        return title_of(self._recorder.ledger, item)

    def about(self, name: str) -> str:
        """One-line description of an entry of the view."""
        entry = self._recorder.ledger.entries.get(name)
        if entry is None:
            return "an earlier summary"
        return f"{name} {title_of_entry(self._recorder.ledger, entry)}"

    def said(self, name: str) -> str:
        """Original text of an entry, or the text of a summary in the context."""
        ledger = self._recorder.ledger
        return original_text(ledger, name) or text_sent(ledger, name) or "(nothing)"

    def lines(self, summary: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each line of a summary with the ids of its sources."""
        ledger = self._recorder.ledger
        return sources_of_lines(summary, ledger, ledger.entries)

    def sources(self, ids: Sequence[str]) -> str:
        """Original texts of these items, each call with its result."""
        ledger = self._recorder.ledger
        halves = [(name, *([name + RESULT] if name + RESULT in ledger.entries else [])) for name in ids]
        return "\n\n".join(f"[{self.about(one)}]\n{self.said(one)}" for each in halves for one in each)

    def size(self, item: str) -> int:
        """Estimated tokens of an entry's original text."""
        client, entry = self._connection.client, self._recorder.ledger.entries.get(item)
        return self._sizes(client).entry(entry) if client is not None and entry is not None else 0

    def text(self, item: ContextItem) -> tuple[str, str]:
        """The exact text sent for an item, and the original if it differs."""
        if item.state == "fixed":
            return self._fixed(item.source), ""
        ledger = self._recorder.ledger
        sent = text_sent(ledger, item.id) or ""
        said = original_text(ledger, item.id)
        return sent, said if said != sent else ""

    def _sizes(self, client: ModelClient) -> EntrySizes:
        return EntrySizes(self._context.monitor, client.info)

    def _fixed(self, component: str) -> str:
        """Text of a component that every request contains."""
        client = self._connection.client
        if client is None:
            return ""
        if component == ENVIRONMENT:
            return self._recorder.ledger.environment
        context = self._context
        prepared = context.prepare((), info=client.info)
        request = prepared.request
        if is_tools(component):
            tools = (tool for tool in request.tools if tools_of(tool.source) == component)
            return "\n\n".join(f"{tool.name}\n{tool.description}\n{compact(dict(tool.parameters))}" for tool in tools)
        names = context.component_names(client.info)
        texts = [block.text for block in request.system if names.get(block.text, "system prompt") == component]
        return "\n\n".join(texts)
