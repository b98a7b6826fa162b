"""The companions of one session in their order."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.engine.building import SessionParts
from swecli.core.engine.changed_files import ChangedFiles
from swecli.core.engine.companion import Companion
from swecli.core.engine.feature import Feature
from swecli.core.engine.git_history import GitHistory
from swecli.core.engine.inner import Parent
from swecli.core.engine.instruction_news import InstructionNews
from swecli.core.engine.notes import StandingFacts
from swecli.core.engine.repeats import RepeatGuard
from swecli.core.engine.warming import Warming


def companions_of(parts: SessionParts, features: Sequence[Feature], parent: Parent | None) -> Sequence[Companion]:
    """The companions in their order: features, and around them what belongs to every session."""
    core = parts.core
    services, recorder, notes = core.services, core.recorder, core.notes
    news = InstructionNews(services.instruction_files, services.toolset.context, recorder, notes, core.prompts)
    before: list[Companion] = [news]
    if parent is not None:
        before.append(parent.limits)
        before += (part for feature in features for part in feature.inner(core, parent.relay.agent))
    else:
        warming = core.gateway, services.toolset.tools, services.access.price, recorder, core.connection
        before = [core.prompts, parts.plans, news]
        before += [Warming(*warming, core.models, core.meter), GitHistory(core)]
        before += (part for feature in features for part in feature.companions(core))
    return (
        *before,
        ChangedFiles(recorder, services.workspace, notes),
        StandingFacts(recorder, notes, services.toolset.context),
        parts.jobs,
        RepeatGuard(recorder, services.toolset.tools, core.requests, notes),
    )
