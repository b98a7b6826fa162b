"""Tools that extensions contribute to a session, recorded before a request: they join the end of the model's list or
leave it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.budget import window_of
from swecli.core.context_management.deferral import Candidate, DeferralManager
from swecli.core.context_management.note_topics import CHANGED_TOOLS, NEW_TOOLS, TOOLS
from swecli.core.context_management.prompts import harmless, note
from swecli.core.engine.notes import Notes, Statement, add_note, standing_facts
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Mentionable, PromptTemplate, Toolset
from swecli.core.engine.settings import Settings
from swecli.core.llm.json_values import compact
from swecli.core.llm.types import Announcement, ModelInfo, ToolSchema
from swecli.core.protocol.events import Notice, ToolDefinition, ToolsChanged
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.tools.registry import AnyTool, schema_of, small_schemas
from swecli.core.tools.session_tools import ToolSearch

SEARCH = "tool search"
"""Name of the tool search as a source in the registry."""

JOINED = "More tools are available from here on."
"""Note with which tools join."""
MOST_NAMED = 40
"""Tools that a note names."""
NOTICE_AFTER = 1.0
"""Seconds of waiting after which a notice explains the wait."""


class ToolChange(Struct, frozen=True):
    """Required change of the model's tool list; empty if the list is up to date."""

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def change_of(
    offered: Mapping[str, ToolDefinition], wanted: Sequence[ToolDefinition], pending: Collection[str]
) -> ToolChange:
    """Change from the model's tools to the available ones. Known tools of a ``pending`` source stay; available ones
    keep their places; new ones join at the end."""
    names = {tool.name for tool in wanted}
    removed = tuple(name for name, tool in offered.items() if name not in names and tool.source not in pending)
    return ToolChange(tuple(tool for tool in wanted if offered.get(tool.name) != tool), removed)


class Retold(Struct, frozen=True):
    """What a note says of listed tools: ``gone`` ones, those that are ``back`` as the list has them, and ``changed``
    ones."""

    gone: tuple[str, ...] = ()
    back: tuple[ToolDefinition, ...] = ()
    changed: tuple[ToolDefinition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gone or self.back or self.changed)

    def words(self, *, whole: bool) -> str:
        """The note's text, with the new definitions if they are not told elsewhere (``whole``)."""
        lines = [
            f"No longer available: {_named(self.gone)}. Do not call them." if self.gone else "",
            f"Available again: {_named([tool.name for tool in self.back])}." if self.back else "",
            f"Changed from here on: {_named([tool.name for tool in self.changed])}." if self.changed else "",
        ]
        if whole:
            lines += [
                compact({"name": one.name, "description": one.description, "parameters": one.parameters})
                for one in self.changed
            ]
        return "\n".join(filter(None, lines))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


class SourceSize(Struct, frozen=True):
    """Size of a source. ``tokens`` covers the tools that the model sees, None without a model; ``withheld`` counts the
    others."""

    count: int
    withheld: int
    tokens: int | None


class OfferedTools:
    """Keeps the model's tool list of one session in step with the registry."""

    def __init__(self, toolset: Toolset, settings: Settings, recorder: Recorder, notes: Notes) -> None:
        self._tools = toolset.tools
        self._context = toolset.context
        self._settings = settings
        self._recorder = recorder
        self._notes = notes
        self._instructions: dict[str, str] = {}
        """Instructions of the sources, in their own words."""
        self._prompts: dict[str, tuple[PromptTemplate, ...]] = {}
        self._mentionables: dict[str, tuple[Mentionable, ...]] = {}
        self._instructed = 0
        """Number of rewrites of the conversation when it was last known to have them; -1 for never."""
        self._deferral = DeferralManager()
        self.statement = Statement(TOOLS, "Tools to search for", "")
        """The fact that tools are withheld, if any are."""
        self._search = ToolSearch(self._find, lambda: len(self._deferral.deferred))
        self._promoted: list[str] = []
        """Found tools that the model does not see yet, in order of discovery."""
        self._waited: set[str] = set()
        """Sources that a request has already waited for; none is waited for twice."""
        self._previewed = False
        """Whether the measure has tools that no request has recorded yet."""
        self._skipped: asyncio.Event | None = None
        """Set when the user cancels the wait; None if nothing waits."""
        self._state: tuple[int, str, int, float, int] | None = None
        """Basis of the newest decision: the registry's revision, the model, its window, the rewrites of the
        conversation."""

    def coming(self) -> tuple[Message, ...]:
        """Notes that the next request would have in addition."""
        facts = standing_facts(self._recorder, unattended=self._context.unattended)
        return self._notes.preview((*facts, self.statement))

    @property
    def deferred(self) -> tuple[ToolSchema, ...]:
        return self._deferral.deferred

    def size_of(self, source: str, info: ModelInfo | None) -> SourceSize:
        schemas = [schema_of(tool) for tool in self._tools.dynamic() if tool.source == source]
        withheld = {tool.name for tool in self.deferred}
        told = [schema for schema in schemas if schema.name not in withheld]
        tokens = self._context.tool_tokens(told, info) if info is not None else None
        return SourceSize(len(schemas), len(schemas) - len(told), tokens)

    def instruct(self, source: str, text: str) -> None:
        """Keep the instructions of a source in the conversation; empty for none."""
        self._instructions[source] = text
        self._instructed = -1

    def offer(
        self, source: str, prompts: Sequence[PromptTemplate] = (), mentionables: Sequence[Mentionable] = ()
    ) -> None:
        """Replace the prompts and mentionables of a source."""
        self._prompts[source] = tuple(prompts)
        self._mentionables[source] = tuple(mentionables)

    @property
    def prompts(self) -> tuple[PromptTemplate, ...]:
        return tuple(prompt for prompts in self._prompts.values() for prompt in prompts)

    @property
    def mentionables(self) -> tuple[Mentionable, ...]:
        """Mentionables besides files."""
        return tuple(one for mentionables in self._mentionables.values() for one in mentionables)

    def _tell_instructions(self) -> None:
        """Add the instructions that the conversation lacks: new ones, and those that a compaction or rewind removed."""
        ledger = self._recorder.ledger
        self._instructed = ledger.rewrites
        live = [
            ledger.entries[entry.id] for entry in ledger.view if entry.kind == "live" and entry.id in ledger.entries
        ]
        folded = [harmless(entry.text) for entry in ledger.view if entry.id not in ledger.entries]
        notes = {
            part.text for entry in live if entry.kind == "note" for part in entry.parts if isinstance(part, TextPart)
        }
        for source, text in self._instructions.items():
            words = harmless(
                f"Instructions of the server {source}, in its own words, for the use of its tools:\n{text}"
            )
            if text and note(words) not in notes and not any(harmless(words) in kept for kept in folded):
                add_note(self._recorder, f"instructions of {source}", words)

    async def arrived(self, words: Iterable[str]) -> None:
        """Wait for the sources that are about to arrive and that the mentions of a message (``source:name``) name."""
        if {word.partition(":")[0] for word in words} & (self._tools.pending - self._waited):
            await self._wait()

    def adopt(self) -> None:
        """Restore the model's tool list from the record."""
        self._measure_with(self._recorder.state.offered.values())

    def restore(self) -> None:
        """Offer a resumed session's model its earlier tools, because they are the beginning of every request."""
        prefix, tools, offered = self._recorder.cache.prefix, self._tools, self._recorder.state.offered
        if prefix is not None and tools.restore([part.name for part in prefix.tools if part.name not in offered]):
            self._context.adopt_tools(tools.schemas(), small_schemas(tools))

    def _measure_with(self, offered: Iterable[ToolDefinition]) -> None:
        places: dict[str, list[str]] = {}
        for name, place in self._recorder.state.announced.items():
            if place:
                places.setdefault(place, []).append(name)
        retold = self._recorder.state.retold
        self._context.announced = tuple(
            Announcement(
                place,
                tuple(places.get(place, ())),
                retold[place].withdrawn if place in retold else (),
                tuple(map(_schema, retold[place].redefined)) if place in retold else (),
            )
            for place in dict.fromkeys((*places, *retold))
        )
        self._context.added_tools = tuple(map(_schema, offered))

    def preview(self, info: ModelInfo) -> bool:
        """Measure with the tools that the first request would add, without recording them. False if a request has
        recorded tools, or there are none."""
        tools = self._of_sources()
        if self._state is not None or self._recorder.state.offered or not tools:
            return False
        effective = window_of(info, self._context.limits).effective
        self._measure_with(self._selected(tools, info, effective, anew=False))
        self._previewed = True
        return True

    def _of_sources(self) -> list[AnyTool]:
        return [tool for tool in self._tools.dynamic() if tool.name != self._search.name]

    async def settle(self, info: ModelInfo) -> None:
        """Before a request, wait for tools that are about to arrive and record changes."""
        if self._tools.pending - self._waited:
            await self._wait()
        if self._previewed:  # what is offered may be something else by now
            self._previewed = False
            self.adopt()
        registry, ledger = self._tools, self._recorder.ledger
        if self._instructions and self._instructed != ledger.rewrites:
            self._tell_instructions()
        effective = window_of(info, self._context.limits).effective
        rewrites = ledger.rewrites
        state = (registry.revision, info.ref, effective, self._settings.now.tool_deferral, rewrites)
        if state != self._state or self._promoted:
            self._update(info, effective, state)
        if ledger.rewound:
            self._announce_again(info)
        self._notes.state(self.statement)

    def _update(self, info: ModelInfo, effective: int, state: tuple[int, str, int, float, int]) -> None:
        """Decide anew and record what has changed."""
        registry = self._tools
        smaller = self._state is not None and effective < self._state[2]
        rewritten = self._state is not None and state[-1] != self._state[-1]
        self._state = state
        tools = self._of_sources()
        if not (tools or self._recorder.state.offered or self._deferral.deferred):
            self._promoted.clear()
            return
        wanted = self._selected(tools, info, effective, anew=smaller)
        listed, known = self._recorder.state.offered, self._known()
        change = change_of(known, wanted, registry.pending)
        # After a compaction the list is up to date with what only its notes told.
        outdated = {name for name in self._retold_earlier() if known.get(name) == listed[name]} if rewritten else ()
        kept = {name for name in listed if name not in outdated}
        new = any(tool.name not in listed for tool in change.added)
        if not self._recorder.ledger.responses or (new and not info.capabilities.tool_changes):
            kept.clear()  # nothing is lost, or the beginning changes anyway
        retold = Retold(
            tuple(name for name in change.removed if name in kept),
            tuple(tool for tool in change.added if tool.name in kept and tool.name not in known),
            tuple(tool for tool in change.added if tool.name in kept and tool.name in known),
        )
        plain = ToolChange(
            tuple(tool for tool in change.added if tool.name not in kept),
            tuple(name for name in change.removed if name not in kept),
        )
        if plain:
            self._announce(plain, info)
        if retold:
            self._retell(retold, info)

    def _known(self) -> dict[str, ToolDefinition]:
        """The tools as the model knows them: listed, and changed by the notes that it sees."""
        state = self._recorder.state
        known, live = dict(state.offered), self._live_notes()
        for place, change in state.retold.items():
            if place in live:
                known = {name: tool for name, tool in known.items() if name not in change.withdrawn}
                known |= {tool.name: tool for tool in change.redefined}
        return known

    def _live_notes(self) -> set[str]:
        return {shown.id for shown in self._recorder.ledger.view if shown.kind == "live"}

    def _retold_earlier(self) -> set[str]:
        """Listed tools that changed by notes which a compaction took out of the conversation."""
        state, live = self._recorder.state, self._live_notes() | self._recorder.ledger.rewound
        gone = [change for place, change in state.retold.items() if place not in live]
        names = {name for change in gone for name in (*change.withdrawn, *(tool.name for tool in change.redefined))}
        return {name for name in names if name in state.offered}

    def _retell(self, retold: Retold, info: ModelInfo) -> None:
        """Tell the model of changes by a note: the list at the beginning of each request stays as it is."""
        told = info.capabilities.tool_changes
        names = [*retold.gone, *(tool.name for tool in (*retold.back, *retold.changed))]
        title = f"Changed tools: {', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"
        # A definition has words of others, which must not get the rank of swecli's own.
        topic = CHANGED_TOOLS if told or not retold.changed else ""
        note = add_note(self._recorder, title, retold.words(whole=not told), topic)
        withdrawn = (*retold.gone, *(tool.name for tool in retold.changed))
        self._recorder.emit(ToolsChanged(note=note, withdrawn=withdrawn, redefined=(*retold.back, *retold.changed)))
        self.adopt()

    def _appends(self, info: ModelInfo) -> bool:
        """Whether tools join in the middle of the conversation: a change of its beginning costs the model's thoughts
        and the cache."""
        return info.capabilities.tool_changes and bool(self._recorder.ledger.responses)

    def _announce(self, change: ToolChange, info: ModelInfo) -> None:
        announcement = ""
        if change.added and self._appends(info):
            names = ", ".join(tool.name for tool in change.added[:5])
            more = f" and {len(change.added) - 5} more" if len(change.added) > 5 else ""
            announcement = add_note(self._recorder, f"New tools: {names}{more}", JOINED, NEW_TOOLS)
        self._recorder.emit(ToolsChanged(change.added, change.removed, note=announcement))
        self.adopt()

    def _announce_again(self, info: ModelInfo) -> None:
        """Announce tools anew whose announcement a rewind took back."""
        state, rewound = self._recorder.state, self._recorder.ledger.rewound
        lost = [name for name, place in state.announced.items() if place in rewound]
        if lost and self._appends(info):
            self._announce(ToolChange(tuple(state.offered[name] for name in lost)), info)

    def _selected(
        self, tools: Sequence[AnyTool], info: ModelInfo, effective: int, *, anew: bool
    ) -> list[ToolDefinition]:
        """The tools for the model's list: known ones stay, unless the window has shrunk; found ones join at the end."""
        registry, context = self._tools, self._context
        told = () if anew else (*self._recorder.state.offered, *self._promoted)
        used = self._recorder.state.last_used
        candidates = [
            Candidate(schema, context.tool_tokens((schema,), info), used.get(tool.name, 0), first=tool.of_server)
            for tool in tools
            if (schema := schema_of(tool))
        ]
        fixed = context.tool_tokens(context.own_tools(info), info)
        withheld = self.deferred
        selection = self._deferral.select(candidates, told, fixed, effective, self._settings.now.tool_deferral)
        self.statement = replace(self.statement, text=self._deferral.note)
        if selection.deferred and selection.deferred is not withheld and self.deferred is not withheld:
            # While the model thinks, so that its first search does not have to wait.
            asyncio.get_running_loop().run_in_executor(None, self._deferral.prepared)
        self._offer_search(bool(selection.deferred) or self._search.name in self._recorder.state.offered)
        order = {name: place for place, name in enumerate(self._promoted)}
        active = sorted(selection.active, key=lambda one: order.get(one.name, -1))
        self._promoted.clear()
        search = [schema_of(self._search)] if registry.get(self._search.name) is not None else []
        return [ToolDefinition(one.name, one.description, one.parameters, one.source) for one in (*search, *active)]

    def _offer_search(self, wanted: bool) -> None:
        """Offer or withdraw the search. Once tools were withheld it stays: removal would change the list's
        beginning."""
        registry = self._tools
        if wanted and registry.get(self._search.name) is None:
            registry.settle(SEARCH, [self._search])
            self._state = (registry.revision, *self._state[1:]) if self._state is not None else None

    def _find(self, query: str) -> tuple[ToolSchema, ...]:
        found = self._deferral.search(query)
        self._promoted += [tool.name for tool in found if tool.name not in self._promoted]
        return found

    def called(self, name: str) -> None:
        """Show the model a withheld tool that it called, from the next request on."""
        if any(tool.name == name for tool in self._deferral.deferred) and name not in self._promoted:
            self._promoted.append(name)

    def skip(self) -> bool:
        """Continue without the tools that a request waits for. False if none waits."""
        if self._skipped is None:
            return False
        self._skipped.set()
        return True

    async def _wait(self) -> None:
        """Wait for pending sources, once each, until the timeout or until the user cancels."""
        registry = self._tools
        skipped = self._skipped = asyncio.Event()
        settled = asyncio.ensure_future(registry.settled())
        enough = asyncio.ensure_future(skipped.wait())
        either = (settled, enough)
        try:
            await asyncio.wait(either, timeout=NOTICE_AFTER, return_when=asyncio.FIRST_COMPLETED)
            if not settled.done() and not skipped.is_set():
                names = ", ".join(sorted(registry.pending))
                self._recorder.emit(
                    Notice(f"Waiting for tools: {names}", topic="tools", hint="Esc continues without them")
                )
                left = self._settings.tools_wait - NOTICE_AFTER
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
            if not skipped.is_set():
                said = (registry.silence(name) for name in sorted(late))
                why += next((words for words in said if words), "").rstrip(".")
            text = f"Continuing without {names}: {why}. {'Its' if len(late) == 1 else 'Their'} tools join when ready."
            self._recorder.emit(Notice(text, "warning", "tools"))


def _schema(tool: ToolDefinition) -> ToolSchema:
    return ToolSchema(tool.name, tool.description, tool.parameters, tool.source)
