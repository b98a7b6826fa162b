"""Files of a run's playbook, and its part in the prompt. Imports nothing before a playbook exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.assembly.startup import Startup
from swecli.core.config.paths import project_folder
from swecli.core.llm.secrets import masker_of
from swecli.launch import LaunchOptions

if TYPE_CHECKING:
    from swecli.core.playbook.store import Playbooks

FILE = "playbook.jsonl"
LOCK = "playbook"
_READMES = ("README.md", "README.rst", "README.txt", "README", "CONTRIBUTING.md")
_MAX_BYTES = 200_000
"""Bytes of a text to read."""


class Proven(Struct, frozen=True):
    """The playbook's part in the prompt of the session."""

    text: str = ""
    ids: frozenset[str] = frozenset()


def _wanted(options: LaunchOptions, startup: Startup) -> bool:
    return startup.loaded.settings.playbook.enabled and not (options.safe_mode or options.look_only)


def _files(options: LaunchOptions, startup: Startup) -> tuple[Path, Path | None, Path]:
    """The project's file, the file of its bullets until the folder is trusted, and the user's own. In an untrusted
    folder nothing is read or written."""
    data, own = startup.paths.workspace_data(options.cwd) / FILE, startup.paths.config / FILE
    trusted = startup.trust.trusts
    return (project_folder(options.cwd) / FILE, data, own) if trusted else (data, None, own)


def _open(
    options: LaunchOptions, startup: Startup, known: Callable[[], tuple[str, ...]], core: frozenset[str]
) -> Playbooks:
    from swecli.core.playbook.store import ARCHIVE, PlaybookFile, PlaybookOptions, Playbooks

    settings = startup.loaded.settings.playbook
    path, early, own = _files(options, startup)
    data = startup.paths.workspace_data(options.cwd)
    stores = options.store and not (options.dry_run or options.compact_dry_run)
    return Playbooks(
        options.cwd,
        PlaybookFile(path, data / ARCHIVE, data / LOCK, early=early, in_project=startup.trust.trusts),
        PlaybookFile(own, startup.paths.data / ARCHIVE, startup.paths.data / LOCK, preferences=True),
        PlaybookOptions(settings.learn and stores, settings.reflect and stores, settings.withhold),
        known,
        masker_of(startup.secrets).mask,
        core=core,
    )


def playbook_opener(
    options: LaunchOptions, startup: Startup, instructions: Sequence[str], core: frozenset[str]
) -> Callable[[], Playbooks] | None:
    """Opens the playbook when the first turn begins; None if disabled, and in safe mode."""
    if not _wanted(options, startup):
        return None

    def known() -> tuple[str, ...]:
        from swecli.core.context_management.prompts import read_prompt

        files = (*map(Path, instructions), *(options.cwd / name for name in _READMES))
        return (read_prompt("base"), *filter(None, map(_text, dict.fromkeys(files))))

    return lambda: _open(options, startup, known, core)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def proven_bullets(options: LaunchOptions, startup: Startup) -> Proven:
    """The bullets in every request of the session, chosen once."""
    if not _wanted(options, startup) or not any(path.exists() for path in _files(options, startup) if path is not None):
        return Proven()
    from swecli.core.playbook.retrieval import proven
    from swecli.core.playbook.store import stale

    try:
        books = _open(options, startup, tuple, frozenset())
        bullets = [*books.project.read().live(), *books.own.read().live()]
    except OSError:  # the session reports it when it opens the playbook
        return Proven()
    text, ids = proven(bullet for bullet in bullets if not stale(bullet, options.cwd))
    return Proven(text, ids)
