"""The parts of a session that measure, compact and change the context; a replay of a recording has them alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.engine.compaction import CompactionItems, Compactions
from swecli.core.engine.compaction_plans import CompactionPlans
from swecli.core.engine.compaction_triggers import CompactionTriggers
from swecli.core.engine.context_changes import ContextChanges
from swecli.core.engine.meter import Meter
from swecli.core.engine.model_access import Connection
from swecli.core.engine.model_call import tokens_left
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.snapshots import SessionSnapshots
from swecli.core.engine.summaries import Summaries
from swecli.core.ports import Asker


class ContextParts(Struct, frozen=True):
    """The parts that measure, compact and change the context."""

    gateway: RequestGateway
    snapshots: SessionSnapshots
    meter: Meter
    changes: ContextChanges
    plans: CompactionPlans
    summaries: Summaries
    items: CompactionItems
    compactions: Compactions
    triggers: CompactionTriggers


def context_parts(
    services: Services,
    recorder: Recorder,
    connection: Connection,
    asker: Asker,
    around: Callable[[CompactionOptions], CompactionOptions] = lambda options: options,
) -> ContextParts:
    """``around`` as in ``Compactions``."""
    context, settings, store = services.toolset.context, services.settings, services.store
    left = partial(tokens_left, settings, recorder.state, services.parents_tokens)
    gateway = RequestGateway(context, left, sleep=services.time.sleep)
    snapshots = SessionSnapshots(context, store.snapshots, recorder)
    meter = Meter(services.toolset, recorder, connection, snapshots)
    changes = ContextChanges(context, settings, recorder, connection, meter)
    summaries = Summaries(gateway, settings, services.access.price, store.cover, recorder, connection)
    plans = CompactionPlans(context, services.workspace.cwd, settings, recorder, connection, summaries)
    items = CompactionItems(context, recorder, summaries, changes, meter, snapshots)
    compactions = Compactions(context, settings, recorder, plans, summaries, items, around)
    triggers = CompactionTriggers(context, settings, recorder, asker, plans, compactions)
    return ContextParts(gateway, snapshots, meter, changes, plans, summaries, items, compactions, triggers)
