"""What is stored of a running session, and the upkeep of its store."""

from __future__ import annotations

import os
import time

from swecli import __version__
from swecli.assembly.checkpoints import inherit_changes
from swecli.assembly.session_list import tidy_up
from swecli.assembly.startup import Startup
from swecli.assembly.storage import Stored
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.engine.services import Store
from swecli.core.llm.secrets import masker_of
from swecli.core.sessions.database import DATABASE
from swecli.core.sessions.log import LogEntries, SessionLog
from swecli.core.sessions.search import BackgroundIndex
from swecli.defect_log import report_defect
from swecli.launch import LaunchOptions

TIDY_SECONDS = 0.4
"""Seconds at the end of a session for its search index and for expired sessions; the next end does the rest."""


def store_of(options: LaunchOptions, startup: Startup, stored: Stored) -> Store:
    """The session's store with its log. Keys are masked in all that reaches a file."""
    secrets = startup.secrets
    cover = masker_of(secrets).cover
    if options.store:
        stored.cover = cover
        stored.log = _open_log(options, startup, stored.session_id)
    return Store(
        blobs=stored.blobs(startup.loaded.settings.agent.result_offload_threshold),
        snapshots=stored.snapshots,
        cover=cover,
        version=__version__,
        rename=stored.rename if options.store and stored.is_durable else None,
        name=stored.name,
        kept=stored.kept,
        report_defect=lambda error: report_defect(error, startup.paths.state, secrets, debug=options.debug),
    )


def _open_log(options: LaunchOptions, startup: Startup, session_id: str) -> SessionLog | None:
    """The log in the project; None if the folder is not trusted, the run stores nothing, or the settings disable it."""
    settings = startup.loaded.settings.log
    if not (startup.trust.trusts and settings.enabled) or options.look_only or options.dry_run:
        return None
    if os.open not in os.supports_dir_fd:  # without it a link of the repository could lead anywhere
        return None
    return SessionLog(options.cwd, session_id, LogEntries(PieceEstimator().count), max_bytes=settings.max_bytes)


def begin_upkeep(options: LaunchOptions, startup: Startup, stored: Stored) -> None:
    """A fork inherits the record of file changes; the search index is updated beside the session, and expired sessions
    are deleted at its end."""
    if stored.forked_from:
        inherit_changes(options, startup, stored.forked_from, stored.session_id)
    if not options.store or options.look_only:
        return
    if not options.headless and stored.is_durable:
        stored.index = BackgroundIndex(startup.paths.workspace_data(options.cwd) / DATABASE)
    settings = startup.loaded.settings.sessions
    stored.tidy = lambda: tidy_up(startup.paths, options.cwd, settings, time.monotonic() + TIDY_SECONDS)
