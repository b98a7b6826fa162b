"""The parts of a session, from the options of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from swecli.assembly.checkpoints import open_checkpoints, settle_files
from swecli.assembly.context import session_environment
from swecli.assembly.live_settings import read_again
from swecli.assembly.models import ModelSupply, supply_of
from swecli.assembly.requirements import require_all
from swecli.assembly.services import build_services
from swecli.assembly.session_store import begin_upkeep, store_of
from swecli.assembly.start_notices import start_notices
from swecli.assembly.startup import Startup, startup_of
from swecli.assembly.storage import Stored, open_storage
from swecli.core.atomic_text import close_to_others
from swecli.core.engine.feature import Feature
from swecli.core.engine.services import Services
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock
from swecli.launch import LaunchOptions, StartError
from swecli.output import Output

if TYPE_CHECKING:
    from swecli.assembly.bundle import Bundle


class SessionParts(Struct, frozen=True):
    """All parts of a session."""

    services: Services
    features: Sequence[Feature]
    stored: Stored
    model: str | None
    environment: str
    """Date, place and platform for the model."""
    notices: tuple[str, ...]
    """Sentences about what does not work as the user may expect."""
    remarks: tuple[str, ...]
    """Sentences about automatic choices."""
    dump: ExchangeDump | None
    bundle: Bundle | None = None
    """The bundle to continue from."""


def build_parts(options: LaunchOptions) -> SessionParts:
    """Read, require and open everything for a session. Not for the event loop.

    Raises:
        StartError: it can't start; one line for the user.
    """
    startup = startup_of(options, dict(os.environ))
    require_all(options, startup)
    bundle = None
    if options.bundle is not None:
        from swecli.assembly.bundle import read_bundle  # for few sessions

        bundle = read_bundle(options.bundle, options.cwd)
    for folder in startup.paths.all:
        close_to_others(folder)
    dump = ExchangeDump(startup.paths.state / "debug", startup.secrets) if options.debug else None
    models = supply_of(options, startup, dump)
    model, stored = _model_and_storage(options, startup, models)
    settled = settle_files(options, startup)  # before any file is read, after the last refusal to start
    services, features = build_services(options, startup, models.access(), store_of(options, startup, stored))
    begin_upkeep(options, startup, stored)
    services = replace(
        services,
        catalog=models.catalog(),
        workspace=replace(services.workspace, checkpoints=open_checkpoints(options, startup, stored.session_id)),
        examine=partial(_examined, options, startup, models),
        settings=replace(services.settings, read=partial(read_again, options, startup.environment, models)),
    )
    return SessionParts(
        services,
        features,
        stored,
        model,
        session_environment(options, startup),
        (*settled, *start_notices(options, startup, services, models, stored)),
        models.first.remarks,
        dump,
        bundle,
    )


def _model_and_storage(options: LaunchOptions, startup: Startup, models: ModelSupply) -> tuple[str | None, Stored]:
    """The model and the stored session: a new one begins with the model, one that continues brings its own."""
    say = Output(sys.stderr).note if options.headless or options.plain else None
    folder = startup.paths.workspace_data(options.cwd)
    if not options.continue_newest and options.resume is None:
        model = models.first.chosen(options.model if options.address else None, options.address, say)
        return model, open_storage(options, folder, model or "")
    stored = open_storage(options, folder, "")
    try:
        model = models.first.chosen(stored.model, stored.address, say)
    except StartError:
        stored.release()
        raise
    return model, stored


async def _examined(
    options: LaunchOptions, startup: Startup, models: ModelSupply, model: ModelInfo | None, online: bool
) -> Sequence[DisplayBlock]:
    from swecli.assembly.doctor import examine_session  # only for /doctor

    return await examine_session(options, startup, models, model, online=online)
