"""Files of a run's playbook, and its part in the prompt. Imports little before a playbook exists."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.context_management.prompt import PromptTexts
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.core.playbook.store import Playbooks
    from swecli.features.playbook.companion import SessionPlaybook
    from swecli.launch import Launch

FILE = "playbook.jsonl"
LOCK = "playbook"
_READMES = ("README.md", "README.rst", "README.txt", "README", "CONTRIBUTING.md")
_MAX_BYTES = 200_000
"""Bytes of a text to read."""


class Proven(Struct, frozen=True):
    """The playbook's part in the prompt of the session."""

    text: str = ""
    ids: frozenset[str] = frozenset()


def feature(playbook: Callable[[], Playbooks] | None = None) -> Feature:
    """``playbook`` opens the playbooks of the project, called in a thread; without one nothing is told or learned."""
    from swecli.core.engine.feature import Feature

    if playbook is None:
        return Feature()
    return Feature(lambda core: (_companion(core, playbook),))


def _companion(core: Core, open_books: Callable[[], Playbooks]) -> SessionPlaybook:
    from swecli.features.playbook.companion import SessionPlaybook

    services = core.services
    return SessionPlaybook(
        open_books, core.recorder, services.toolset.tools.own_name, services.toolset.context, core.questions.ask
    )


def _build(launch: Launch) -> Feature:
    """The playbook is opened when the first turn begins; nothing is told or learned if it is disabled, and in safe
    mode."""
    from swecli.core.engine.feature import Feature

    options = launch.options
    if not launch.loaded.settings.playbook.enabled or options.safe_mode or options.look_only:
        return Feature()
    proven = proven_bullets(launch)

    def companions(core: Core) -> Sequence[SessionPlaybook]:
        known = partial(_known, options.cwd, core.services.instruction_files.loaded.paths)
        return (_companion(core, partial(_open, launch, known, proven.ids)),)

    def prompt(texts: PromptTexts) -> PromptTexts:
        return replace(texts, playbook=proven.text)

    return Feature(companions, prompt=prompt)


def _files(launch: Launch) -> tuple[Path, Path | None, Path]:
    """The project's file, the file of its bullets until the folder is trusted, and the user's own. In an untrusted
    folder nothing is read or written."""
    from swecli.core.config.paths import project_folder

    data, own = launch.paths.workspace_data(launch.options.cwd) / FILE, launch.paths.config / FILE
    return (project_folder(launch.options.cwd) / FILE, data, own) if launch.trust.trusts else (data, None, own)


def _open(launch: Launch, known: Callable[[], tuple[str, ...]], core: frozenset[str]) -> Playbooks:
    from swecli.core.llm.secrets import masker_of
    from swecli.core.playbook.store import ARCHIVE, PlaybookFile, PlaybookOptions, Playbooks

    settings, options = launch.loaded.settings.playbook, launch.options
    path, early, own = _files(launch)
    data = launch.paths.workspace_data(options.cwd)
    stores = options.store and not (options.dry_run or options.compact_dry_run)
    return Playbooks(
        options.cwd,
        PlaybookFile(path, data / ARCHIVE, data / LOCK, early=early, in_project=launch.trust.trusts),
        PlaybookFile(own, launch.paths.data / ARCHIVE, launch.paths.data / LOCK, preferences=True),
        PlaybookOptions(settings.learn and stores, settings.reflect and stores),
        known,
        masker_of(launch.secrets).mask,
        core=core,
    )


def _known(cwd: Path, instructions: Sequence[str]) -> tuple[str, ...]:
    """What the model is told anyway, or finds in the project's descriptions."""
    from swecli.core.context_management.prompts import read_prompt

    files = (*map(Path, instructions), *(cwd / name for name in _READMES))
    return (read_prompt("base"), *filter(None, map(_text, dict.fromkeys(files))))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def proven_bullets(launch: Launch) -> Proven:
    """The bullets in every request of the session, chosen once."""
    if not any(os.path.exists(path) for path in _files(launch) if path is not None):
        return Proven()
    from swecli.core.playbook.selection import proven
    from swecli.core.playbook.store import stale

    try:
        books = _open(launch, tuple, frozenset())
        bullets = [*books.project.read().live(), *books.own.read().live()]
    except OSError:  # the session reports it when it opens the playbook
        return Proven()
    text, ids = proven(bullet for bullet in bullets if not stale(bullet, launch.options.cwd))
    return Proven(text, ids)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.playbook.command import PLAYBOOK

    return (PLAYBOOK,)


def _screens() -> Mapping[str, Callable[[Any, str], object]]:
    from swecli.features.playbook.screen import open_playbook

    return {"playbook": open_playbook}


WIRING = Wiring(_build, _commands, writes=(FILE,), screens=_screens)
