"""The parts of a session that its turns and its companions work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.core.context_management.gateway import RequestGateway
from swecli.core.engine.compaction_plans import CompactionPlans
from swecli.core.engine.compaction_triggers import CompactionTriggers
from swecli.core.engine.companion import Companions
from swecli.core.engine.consent import Requests
from swecli.core.engine.decisions import Decisions
from swecli.core.engine.inner import Relay
from swecli.core.engine.meter import Meter
from swecli.core.engine.model_access import Connection
from swecli.core.engine.model_call import Asking
from swecli.core.engine.models import ModelChoice
from swecli.core.engine.notes import Notes
from swecli.core.engine.offered_tools import OfferedTools
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.engine.side_questions import SideQuestions
from swecli.core.engine.tool_calls import Scheduler
from swecli.core.engine.work import Work

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


class OwnSession(Struct, frozen=True):
    """What parts ask of the session that they belong to."""

    begin: Callable[[Relay, Services, str, Path | None], Session]
    """Starts a session inside this one, with a model, and in a folder of its own if it has one."""
    tell: Callable[[str, str], None]
    """Appends a note to the conversation, at once while idle: its title for the user, its text for the model."""
    follow_settings: Callable[[], Awaitable[None]]
    """Reads the settings again and adopts those that apply at once. Raises ValueError: they can't be read."""


class Core(Struct, frozen=True):
    """Each part once. Who needs some of them takes these, and does not keep the whole."""

    services: Services
    recorder: Recorder
    notes: Notes
    prompts: PromptRecord
    connection: Connection
    requests: Requests
    decisions: Decisions
    gateway: RequestGateway
    meter: Meter
    plans: CompactionPlans
    triggers: CompactionTriggers
    models: ModelChoice
    offered: OfferedTools
    asking: Asking
    scheduler: Scheduler
    questions: SideQuestions
    companions: Companions
    work: Work
    session: OwnSession
