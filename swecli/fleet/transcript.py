"""What an attempt leaves of its agent: the lines that the fleet sees, and the transcript."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from swecli.core.config.paths import user_paths
from swecli.core.config.trust import read_trust, write_trust
from swecli.core.protocol.commands import Command
from swecli.core.protocol.events import MAIN, Event, StepStarted
from swecli.core.sessions.results import encodable
from swecli.event_lines import EventLines
from swecli.fleet.link import FromWorker, Said
from swecli.headless.outcome import Outcome
from swecli.launch import LaunchOptions, StartError

TRANSCRIPT = "transcript.json"


class Follower:
    """The printer of a run that tells the fleet each line of its transcript."""

    def __init__(self, outcome: Outcome, send: Callable[[FromWorker], None]) -> None:
        self._outcome = outcome
        self._send = send
        self._lines = EventLines(lambda line: send(Said(encodable(line), outcome.steps)), cut=True)

    def event(self, event: Event) -> None:
        self._outcome.apply(event)
        self._lines.event(event)
        if event.agent == MAIN and isinstance(event.body, StepStarted):
            self._send(Said("", self._outcome.steps))

    def replied(self, command: Command) -> None:
        """Nothing to tell: the refusal is an event."""

    def finish(self, outcome: Outcome) -> None:
        self._outcome.kept = outcome.kept


def ignore(_line: str) -> None:
    """Lines for a terminal's user; the transcript has them."""


def export_transcript(options: LaunchOptions, session: str, scratch: Path) -> str:
    """Write the session to the scratch folder and remove it from the user's store, where nobody would look for it.
    Returns the file's path; empty if nothing was stored."""
    from swecli.command_line.session_files import cover_of
    from swecli.command_line.session_store import opened
    from swecli.core.sessions.portable import portable_document, stored_session

    place = scratch / TRANSCRIPT
    try:
        with opened(options.cwd) as store:
            text = portable_document(stored_session(store, session, ignore), cover_of(options.cwd))
        place.write_text(text, encoding="utf-8", errors="replace")
    except (StartError, OSError):
        return ""
    shutil.rmtree(user_paths(os.environ).workspace_data(options.cwd), ignore_errors=True)
    return str(place)


def forget(folder: Path) -> None:
    """Remove everything of an attempt except its transcript, and the trust in its copy."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    data = user_paths(os.environ).data
    for entry in entries:
        if entry.is_dir() and read_trust(data, entry).state != "unknown":
            write_trust(data, entry, "unknown")
        if entry.name != TRANSCRIPT:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
