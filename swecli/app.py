"""Composition root: options and settings -> services -> session. Nothing else builds services."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from swecli.assembly.checkpoints import inherit_changes, open_checkpoints, settle_files
from swecli.assembly.context import session_environment
from swecli.assembly.extension_files import told_broken
from swecli.assembly.instructions import project_instructions
from swecli.assembly.live_settings import adjustable
from swecli.assembly.models import ModelSupply
from swecli.assembly.policy import grants_of
from swecli.assembly.rules import require_rules, rule_notices
from swecli.assembly.sandbox import require_sandbox
from swecli.assembly.services import build_services, launch_of, workspace_mark
from swecli.assembly.session_list import tidy_up
from swecli.assembly.startup import Startup, flags_of, read_startup, require_trust, startup_of, told_of_imports
from swecli.assembly.storage import (
    Stored,
    give_back_free_blocks,
    give_back_large_blocks,
    open_log,
    open_storage,
    uncollected,
)
from swecli.core.atomic_text import close_to_others
from swecli.core.config.key_store import KeyStore
from swecli.core.context_management.calibration import LearnedRatios
from swecli.core.context_management.counter import HybridCounter
from swecli.core.engine.feature import Feature
from swecli.core.engine.model_access import ModelAccess, ModelUnavailable, WindowKnowledge
from swecli.core.engine.services import Services, Store
from swecli.core.engine.session import Session
from swecli.core.engine.settings import Adjustable
from swecli.core.llm.addresses import is_local
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.secrets import masker_of
from swecli.core.llm.types import ModelClient, ModelInfo, ProviderError
from swecli.core.ports import EditorFiles
from swecli.core.protocol.blocks import DisplayBlock
from swecli.core.protocol.events import CHOICE, Mode
from swecli.core.protocol.messages import Origin, Usage
from swecli.core.sessions.database import DATABASE
from swecli.core.sessions.search import BackgroundIndex
from swecli.core.workspace.process_tree import leftovers
from swecli.defect_log import append_defect, trace_of
from swecli.features import wirings
from swecli.launch import LaunchOptions, StartError
from swecli.output import Output

if TYPE_CHECKING:
    from swecli.assembly.bundle import Bundle

SHOWN_AFTER = 20.0
"""Seconds after which a continued session has been shown, and the memory for reading it is free again."""


Gate = Callable[[ModelClient, Callable[[str, Usage], str | None]], ModelClient]
"""Wraps a client; also gets the price of a model's answer by its usage, in US dollars as text."""
TIDY_SECONDS = 0.4
"""Seconds at the end of a session for its search index and for expired sessions; the next end does the rest."""


class _Parts(Struct, frozen=True):
    """All parts of a session, built off the event loop."""

    services: Services
    features: Sequence[Feature]
    stored: Stored
    model: str | None
    environment: str
    notices: tuple[str, ...]
    remarks: tuple[str, ...]
    dump: ExchangeDump | None
    bundle: Bundle | None = None
    """The bundle to continue from."""


async def open_session(
    options: LaunchOptions,
    *,
    instead: Callable[[ModelClient], ModelClient] | None = None,
    gate: Gate | None = None,
    editor: EditorFiles | None = None,
) -> Session:
    """Open and start the session of the options. Closing it releases everything. ``instead`` replaces the model's
    client; then only a local server is asked about its model, and no file is copied. ``gate`` wraps each client, which
    it may hold up. ``editor`` has open files.

    Raises:
        StartError: it can't start; one line for the user.
    """
    parts = await asyncio.to_thread(_build, options)
    if instead is not None:
        services = _with_clients(parts.services, instead, only_local=True)
        services = replace(services, workspace=replace(services.workspace, checkpoints=None))
        parts = replace(parts, services=services)
    if gate is not None:
        price = parts.services.access.price
        parts = replace(parts, services=_with_clients(parts.services, lambda client: gate(client, price)))
    if editor is not None:
        workspace = replace(parts.services.workspace, editor=editor)
        parts = replace(parts, services=replace(parts.services, workspace=workspace))
    with uncollected():
        stored = parts.stored
        record = stored.session_id, parts.services, stored.make_log, stored.history
        session = Session(*record, features=parts.features, before=stored.before)
    loop = asyncio.get_running_loop()
    if parts.stored.history:
        parts.stored.history, parts.stored.before = (), None  # now in the session
        loop.call_later(SHOWN_AFTER, loop.run_in_executor, None, give_back_free_blocks)
    parts.stored.tell = lambda text: session.notice(text, "error")
    if parts.stored.log is not None:
        parts.stored.log.tell = lambda text: _tell(loop, session, text)
    monitor = parts.services.toolset.context.monitor
    for helper in (monitor.counter, monitor.ratios):
        if isinstance(helper, HybridCounter | LearnedRatios):
            helper.tell = lambda text: _tell(loop, session, text)
    if parts.dump is not None:
        parts.dump.tell = session.notice
    if parts.services.workspace.checkpoints is not None:
        parts.services.workspace.checkpoints.tell = lambda text: session.notice(text, "warning")
    session.start(parts.model, parts.environment)
    if parts.bundle is not None:
        parts.bundle.begin(session)
    for notice in parts.notices:
        session.notice(notice, "warning")
    for remark in parts.remarks:
        session.notice(remark, topic=CHOICE)
    return session


def _with_clients(
    services: Services, change: Callable[[ModelClient], ModelClient], *, only_local: bool = False
) -> Services:
    windows = _WindowsBehind(services.access.windows, only_local)

    def make(model: str) -> ModelClient:
        client = services.access.make_client(model)
        windows.clients[changed := change(client)] = client
        return changed

    return replace(services, access=replace(services.access, make_client=make, windows=windows))


class _WindowsBehind:
    """What is known of the windows of changed clients: a request depends on it. ``only_local``: no other server is
    asked."""

    def __init__(self, windows: WindowKnowledge, only_local: bool) -> None:
        self._windows = windows
        self._only_local = only_local
        self.clients: WeakKeyDictionary[ModelClient, ModelClient] = WeakKeyDictionary()

    def may_tell(self, client: ModelClient) -> bool:
        behind = self.clients[client]
        local = isinstance(behind, HttpModelClient) and is_local(behind.config.base_url)
        return (local or not self._only_local) and self._windows.may_tell(behind)

    async def ask(self, client: ModelClient) -> bool:
        return self.may_tell(client) and await self._windows.ask(self.clients[client])

    def doubt(self, client: ModelClient) -> None:
        self._windows.doubt(self.clients[client])

    def recall(self, client: ModelClient, window: int, origin: Origin) -> None:
        self._windows.recall(self.clients[client], window, origin)

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        return await self._windows.learn(self.clients[client], error)


def _build(options: LaunchOptions) -> _Parts:
    give_back_large_blocks()
    environment = dict(os.environ)
    startup = startup_of(options, environment)
    require_trust(options, startup)
    require_rules(options, startup)
    require_sandbox(options, startup)
    bundle = _bundle(options.bundle, options.cwd) if options.bundle is not None else None
    for folder in startup.paths.all:
        close_to_others(folder)
    settings = startup.loaded.settings
    state = startup.paths.state
    secrets = startup.secrets
    dump = ExchangeDump(state / "debug", secrets) if options.debug else None
    models = ModelSupply(options, settings, environment, startup.paths.data, KeyStore(startup.paths.config), dump)
    continues = options.continue_newest or options.resume is not None
    say = Output(sys.stderr).note if options.headless or options.plain else None
    model = None
    if not continues:
        model = models.chosen(options.model if options.address else None, options.address, say)
        models.check_effort(model)
    stored = open_storage(options, startup.paths.workspace_data(options.cwd), model or "")
    if continues:
        try:
            model = models.chosen(stored.model, stored.address, say)
            models.check_effort(model)
        except StartError:
            stored.release()
            raise
    settled = settle_files(options, startup)  # before any file is read, after the last refusal to start
    instructions = project_instructions(options, startup)
    cover = masker_of(secrets).cover
    if options.store:
        stored.cover = cover
        stored.log = open_log(options, startup.trust.trusts, settings.log, stored.session_id)
    blobs = stored.blobs(settings.agent.result_offload_threshold)
    grants = grants_of(startup, options.cwd).trouble()
    launch = launch_of(options, startup)
    features = tuple(wiring.build(launch) for wiring in wirings())

    def report(error: BaseException) -> None:
        _report(error, state, options.debug, secrets)

    services = build_services(launch, startup, features, instructions, models.access(), report, blobs)
    if stored.forked_from:
        inherit_changes(options, startup, stored.forked_from, stored.session_id)
    if options.store and not options.look_only:
        if not options.headless and stored.is_durable:
            stored.index = BackgroundIndex(startup.paths.workspace_data(options.cwd) / DATABASE)
        stored.tidy = lambda: tidy_up(startup.paths, options.cwd, settings.sessions, time.monotonic() + TIDY_SECONDS)
    checkpoints = open_checkpoints(options, startup, stored.session_id)
    services = replace(
        services,
        catalog=models.catalog(),
        workspace=replace(services.workspace, checkpoints=checkpoints),
        store=_store_of(services.store, stored, options, cover),
        examine=partial(_examined, options, startup, models),
        settings=replace(services.settings, read=partial(_read_again, options, environment, models)),
    )
    rules = rule_notices(services.settings.now.rules)
    orphans = _orphans(workspace_mark(startup.paths, options.cwd))
    files = services.extension_files
    plugins = (*files.problems, *told_broken(files.now.broken)) if files is not None else ()
    plugins = (grants, *plugins) if grants else plugins
    notices = (*startup.notices, *plugins, *rules, *models.notices, *stored.notices, *instructions.notices, *orphans)
    broken = () if options.safe_mode else told_of_imports(startup, options.cwd)
    notices = (*settled, *notices, *broken)
    return _Parts(
        services,
        features,
        stored,
        model,
        session_environment(options, startup),
        notices,
        models.remarks,
        dump,
        bundle,
    )


def _store_of(store: Store, stored: Stored, options: LaunchOptions, cover: Callable[[str], str]) -> Store:
    return replace(
        store,
        snapshots=stored.snapshots,
        cover=cover,
        rename=stored.rename if options.store and stored.is_durable else None,
        kept=stored.kept,
        name=stored.name,
    )


def _bundle(path: Path, cwd: Path) -> Bundle:
    from swecli.assembly.bundle import read_bundle  # for few sessions

    return read_bundle(path, cwd)


async def _examined(
    options: LaunchOptions, startup: Startup, models: ModelSupply, model: ModelInfo | None, online: bool
) -> Sequence[DisplayBlock]:
    from swecli.assembly.doctor import examine_session  # only for /doctor

    return await examine_session(options, startup, models, model, online=online)


def _read_again(options: LaunchOptions, environment: Mapping[str, str], models: ModelSupply) -> Adjustable:
    """Present settings that a running session applies.

    Raises:
        ValueError: they can't be read; a sentence.
    """
    try:
        startup = startup_of(options, environment)
        require_rules(options, startup)
    except StartError as error:
        raise ValueError(str(error)) from None
    models.adopt(startup.loaded.settings)
    return adjustable(options, startup)


def _orphans(folder: str) -> tuple[str, ...]:
    """A sentence about commands left by an earlier swecli of this folder that was killed."""
    processes = leftovers(folder)
    if not processes:
        return ()
    named = ", ".join(f"{process.name} ({process.pid})" for process in processes[:5])
    more = f" and {len(processes) - 5} more" if len(processes) > 5 else ""
    pids = " ".join(str(process.pid) for process in processes)
    return (f"Commands of an earlier swecli are still running: {named}{more}. Stop them with: kill {pids}",)


def _tell(loop: asyncio.AbstractEventLoop, session: Session, text: str) -> None:
    """Show a line to the user from another thread; does nothing after the program's end."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(session.notice, text, "warning")


def _report(error: BaseException, state: Path, debug: bool, secrets: Iterable[str]) -> None:
    """Write an internal failure with its traceback to the state directory, and with ``--debug`` to stderr."""
    text = trace_of(error, secrets)
    if append_defect(text, state) is None or debug:
        os.write(2, text.encode("utf-8", "replace"))


async def tool_batch(lines: Iterable[str]) -> AsyncIterator[str]:
    """One result line of JSON for each line ``{id, name, arguments, cwd, mode, approve}``."""

    def no_model(model: str) -> ModelClient:
        raise ModelUnavailable(f"a batch of tool calls uses no model, so drop {model}")

    def make_services(cwd: Path, mode: Mode) -> tuple[Services, Sequence[Feature]]:
        options = LaunchOptions(cwd=cwd, headless=True, mode=mode, store=False)
        startup = read_startup(cwd, dict(os.environ), flags_of(options))
        instructions = project_instructions(options, startup)
        launch = launch_of(options, startup)
        features = tuple(wiring.build(launch) for wiring in wirings())
        services = build_services(launch, startup, features, instructions, ModelAccess(no_model), lambda error: None)
        permissions = services.permissions
        permissions = replace(permissions, policy=replace(permissions.policy, mode=mode))
        return replace(services, permissions=permissions), features

    from swecli.core.engine.batch import run_lines  # not needed by sessions

    async for line in run_lines(lines, make_services):
        yield line
