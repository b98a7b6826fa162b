"""Builds the parts of a session from what it takes from outside."""

from __future__ import annotations

from msgspec import Struct

from swecli.core.engine.command_tools import CommandTools
from swecli.core.engine.companion import Companions
from swecli.core.engine.consent import Consents, Requests, SandboxWatch
from swecli.core.engine.context_parts import ContextParts, context_parts
from swecli.core.engine.core import Core, OwnSession
from swecli.core.engine.decisions import Decisions
from swecli.core.engine.edit_prices import EditPrices
from swecli.core.engine.files import SessionFiles
from swecli.core.engine.inner import Parent
from swecli.core.engine.inspection import Inspection
from swecli.core.engine.jobs import JobWatch
from swecli.core.engine.mode_choice import ModeChoice
from swecli.core.engine.model_access import Connection
from swecli.core.engine.model_call import Asking
from swecli.core.engine.model_offers import ModelOffers
from swecli.core.engine.models import ModelChoice
from swecli.core.engine.notes import Notes
from swecli.core.engine.offered_tools import OfferedTools
from swecli.core.engine.plan import Plans
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.results import Results
from swecli.core.engine.rewind import Rewinds
from swecli.core.engine.services import Services
from swecli.core.engine.side_questions import SideQuestions
from swecli.core.engine.tool_calls import CallParts, Scheduler, ToolCalls
from swecli.core.engine.work import Work
from swecli.core.protocol.events import MAIN


class SessionParts(Struct, frozen=True):
    """The parts of one session, each once: the core, and what only the session itself uses."""

    core: Core
    context: ContextParts
    results: Results
    offers: ModelOffers
    sandbox: SandboxWatch
    jobs: JobWatch
    modes: ModeChoice
    calls: ToolCalls
    command_tools: CommandTools
    plans: Plans
    files: SessionFiles
    inspection: Inspection
    prices: EditPrices
    rewinds: Rewinds


def session_parts(
    services: Services, recorder: Recorder, work: Work, companions: Companions, parent: Parent | None, own: OwnSession
) -> SessionParts:
    """``parent`` is the session that started this one, if any."""
    toolset, workspace, settings, time = services.toolset, services.workspace, services.settings, services.time
    context, access, permissions, store = toolset.context, services.access, services.permissions, services.store
    requests = Requests(recorder, parent.requests if parent is not None else None)
    connection = Connection(access.make_client, settings.now.side_models)
    results = Results(context, settings, store.blobs, recorder, connection)
    made = context_parts(services, recorder, connection, requests, companions.around_compaction)
    models = ModelChoice(access, settings, context, store.report_defect, recorder, connection, made.meter)
    made.items.after = models.switch_as_planned
    sandbox = SandboxWatch(workspace, permissions, settings, recorder)
    notes = Notes(recorder)
    jobs = JobWatch(workspace, settings.now.process_limit, recorder, notes, work)
    offered = OfferedTools(toolset, settings, recorder, notes)
    decisions = Decisions(permissions, workspace, settings, recorder.state)
    consents = Consents(decisions, permissions, workspace, recorder, requests, sandbox, companions)
    lent = CallParts(
        store.blobs,
        made.triggers.request_compaction,
        jobs.jobs,
        parent.locks if parent is not None else None,
        parent.relay.agent if parent is not None else MAIN,
    )
    calls = ToolCalls(toolset.tools, workspace, time.monotonic, consents, results, recorder, lent)
    core = Core(
        services,
        recorder,
        notes,
        PromptRecord(context, services.prompt_conditions, recorder, connection, notes),
        connection,
        requests,
        decisions,
        made.gateway,
        made.meter,
        made.plans,
        made.triggers,
        models,
        offered,
        Asking(made.gateway, access, settings, time, toolset.tools.own_name, recorder),
        Scheduler(calls),
        SideQuestions(made.gateway, settings, time, access.price, recorder, connection, models),
        companions,
        work,
        own,
    )

    inspection = Inspection(context, settings, access.price, recorder, connection, offered.coming)
    prices = EditPrices(context, access.price, recorder, connection, made.plans, made.changes, inspection)
    return SessionParts(
        core,
        made,
        results,
        ModelOffers(access, services.catalog, recorder, connection),
        sandbox,
        jobs,
        ModeChoice(permissions.policy, recorder, requests),
        calls,
        CommandTools(permissions, recorder, work, core.scheduler),
        Plans(workspace.cwd, settings, recorder),
        SessionFiles(workspace, recorder, work),
        inspection,
        prices,
        Rewinds(context, workspace, recorder, work, made.meter.measure, prices.rewind),
    )
