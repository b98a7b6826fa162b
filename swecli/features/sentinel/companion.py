"""The sentinel: at most one suggestion at the end of a turn to improve the context. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.package import branch_note
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.edits import Edited, edited, effect_of
from swecli.core.context_management.items import items_of
from swecli.core.context_management.ledger import Passes
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompts import note
from swecli.core.context_management.rot import SMALL, Rot, signals
from swecli.core.context_management.view_stack import View
from swecli.core.engine.compaction_plans import CompactionPlans, session_facts
from swecli.core.engine.companion import Companion, TurnStopped
from swecli.core.engine.model_access import Connection
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.settings import Settings
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.context_events import ContextChange, RotKind, ViewEntry
from swecli.core.protocol.events import ContextSuggested

Keep = Callable[[Sequence[RotKind]], str]
"""Writes the silenced kinds of suggestions into the user's settings, for all sessions. Returns the file; raises
ValueError. Blocks on the disk."""
WORSE = 2
"""Factor by which the same rot has to worsen to be reported again."""


class Sentinel(Companion):
    """Watches one session's context. Its suggestions, and whether the user accepted them, are in the session's
    events."""

    def __init__(
        self,
        recorder: Recorder,
        context: ContextManager,
        connection: Connection,
        plans: CompactionPlans,
        settings: Settings,
        follow: Callable[[], Awaitable[None]],
        keep: Keep | None,
    ) -> None:
        """``follow`` reads the settings again; ``keep`` is None if kinds can't be silenced."""
        self._recorder = recorder
        self._context = context
        self._connection = connection
        self._plans = plans
        self._settings = settings
        self._follow = follow
        self._keep = keep
        self._passes = Passes()
        self._vain: dict[tuple[RotKind, str], int] = {}
        """Signs whose remedy was not worth it, with their count: measuring one costs more than the rest of a turn."""

    @property
    def silenced(self) -> Sequence[RotKind]:
        """Kinds of suggestions that the user has turned off."""
        return self._settings.now.sentinel.silenced

    @property
    def enabled(self) -> bool:
        return self._settings.now.sentinel.enabled

    async def silence(self, kinds: Sequence[RotKind]) -> str:
        """Set the kinds of suggestions that are silenced, in all sessions. Returns the file.

        Raises:
            ValueError: it can't be stored, or other settings take precedence; a sentence.
        """
        if self._keep is None:
            raise ValueError("Suggestions can't be silenced here; context.sentinel in the settings turns them off.")
        wanted = tuple(dict.fromkeys(kinds))
        where = await asyncio.to_thread(self._keep, wanted)
        await self._follow()
        if set(self.silenced) != set(wanted):
            raise ValueError(f"Written to {where}, but another context.sentinel_silenced takes precedence.")
        return where

    async def end_turn(self, end: TurnStopped) -> None:
        """Record a new suggestion if there is one."""
        if end.outcome not in ("done", "limit") or not self.enabled or self._recorder.state.queue:
            return
        if not self._passes.due(self._recorder.ledger):
            return
        suggestion = await self.suggestion(repeat=False)
        if suggestion is not None:
            self._recorder.emit(suggestion)

    async def renewed(self) -> ContextSuggested | None:
        """The current suggestion, or else a repetition of an earlier one."""
        known = self._recorder.state.suggestion
        if known is not None and known.kind not in self.silenced:
            return known
        suggestion = await self.suggestion()
        if suggestion is not None:
            self._recorder.emit(suggestion)
        return suggestion

    async def suggestion(self, *, repeat: bool = True) -> ContextSuggested | None:
        """The first effective suggestion whose kind is not silenced; with ``repeat`` including earlier ones. None
        without a model."""
        client = self._connection.client
        if client is None:
            return None
        for rot in self._signals(client.info):
            known = self._recorder.state.suggested.get(rot.kind, {}).get(rot.cause, 0)
            vain = self._vain.get((rot.kind, rot.cause), 0)
            if rot.kind in self.silenced or (not repeat and rot.count < WORSE * max(known, vain)):
                continue
            if rot.remedy == "record":
                suggestion = await asyncio.to_thread(self._by_record, rot)
            elif rot.remedy == "branch":
                suggestion = self._by_branch(rot, client.info)
            else:
                suggestion = self._by_change(rot, client.info)
            if suggestion is not None:
                return suggestion
            self._vain[rot.kind, rot.cause] = rot.count
        return None

    def _signals(self, info: ModelInfo) -> Iterator[Rot]:
        budget = self._recorder.state.budget
        effective = budget.effective if budget is not None else 0
        rules = self._settings.now.compaction.retention
        return signals(self._recorder.ledger, self._recorder.turn, self._sizes(info), effective, rules)

    def _by_change(self, rot: Rot, info: ModelInfo) -> ContextSuggested | None:
        """Suggestion to remove or pin single items; items that can't be changed are left out."""
        ledger, action = self._recorder.ledger, rot.remedy
        assert action in ("drop", "offload", "pin")
        done = edited(ledger, [ContextChange(action, name) for name in rot.ids], self._sizes(info))
        before, after = self._measured(done, info)
        misleads = rot.kind == "contradiction"  # worth a change even if it frees nothing
        if not done.made or (action != "pin" and not misleads and before - after < SMALL):
            return None
        count = len(done.made)
        single = count == 1
        noun = rot.noun.replace("{s}", "" if single else "s").replace("{y}", "y" if single else "ies")
        what = f"{action} {count:,} {noun}" if noun != rot.noun else f"{action} {noun}"
        return ContextSuggested(rot.kind, rot.cause, rot.count, rot.reason, what, before, after, changes=done.made)

    def _by_branch(self, rot: Rot, info: ModelInfo) -> ContextSuggested | None:
        """Suggestion to rewind the conversation, with a report to the model of the work since."""
        ledger, item = self._recorder.ledger, rot.ids[0]
        view = ledger.view_before(item)
        if view is None:
            return None
        told = note(branch_note(ledger, item, session_facts(self._recorder)))
        before = self._tokens(ledger.view, info)
        after = self._tokens((*view, ViewEntry("summary", "handoff", told)), info)
        if before - after < SMALL:
            return None
        what = f"branch from {rot.noun}"
        return ContextSuggested(rot.kind, rot.cause, rot.count, rot.reason, what, before, after, branch=item)

    def _by_record(self, rot: Rot) -> ContextSuggested | None:
        """Suggestion to replace a summary by the record. Reads files: not for the event loop."""
        client = self._connection.client
        if client is None:
            return None
        draft = self._plans.draft()
        if draft is None or draft.place(rot.ids, ()):
            return None
        made = draft.arranged("")
        if made.before - made.after < SMALL:
            return None
        what = f"replace {rot.noun} by the record"
        return ContextSuggested(
            rot.kind, rot.cause, rot.count, rot.reason, what, made.before, made.after, summaries=rot.ids
        )

    def _measured(self, done: Edited, info: ModelInfo) -> tuple[int, int]:
        """Size of the request before and after a change, as sums of the single items' sizes."""
        ledger, context = self._recorder.ledger, self._context
        budget = context.measure(project(ledger), info)
        items = items_of(ledger, budget, context.monitor, info)
        effect = effect_of(done, ledger, items, budget, context.monitor, info, _unpriced)
        return effect.before, effect.after

    def _tokens(self, view: View, info: ModelInfo) -> int:
        return self._context.measure(project(self._recorder.ledger, view), info).used

    def _sizes(self, info: ModelInfo) -> EntrySizes:
        return EntrySizes(self._context.monitor, info)


def _unpriced(_before: int, _after: int, _rewritten: int) -> tuple[str | None, str | None]:
    """No price, because the offer of a change states its cost."""
    return None, None
