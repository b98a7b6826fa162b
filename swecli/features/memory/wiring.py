"""Memories of a run: which to read, and which to store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.features import Wiring
from swecli.features.memory.places import NOTES

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.context_management.prompt import MemoryText, PromptTexts
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.features.memory.companion import MemoryOptions, SessionMemory
    from swecli.features.memory.places import MemoryPlaces
    from swecli.features.memory.tool import MemoryTool
    from swecli.launch import Launch

FOLDER = "memory"
"""In a project's ``.swecli``."""
ON = (
    "This folder is now trusted and its memory is on. Existing memories, and the model's tool for them, "
    "join after /clear."
)


def feature(memory: MemoryOptions | None = None, memory_tool: MemoryTool | None = None) -> Feature:
    """Without options there are no memories, but what an earlier run had of them stays in its prompt."""
    from swecli.core.engine.feature import Feature
    from swecli.features.memory.companion import MemoryOptions, SessionMemory

    options = memory or MemoryOptions()

    def companions(core: Core) -> Sequence[SessionMemory]:
        parts = core.recorder, core.notes, core.prompts, core.services.toolset.context
        return (SessionMemory(options, *parts, core.session.follow_settings, memory_tool),)

    return Feature(companions)


def _build(launch: Launch) -> Feature:
    wishes, tool = launch.loaded.settings.memory, None
    cover = _cover(launch)
    if _is_on(launch):
        from swecli.features.memory.tool import MemoryTool

        tool = MemoryTool(_places(launch), wishes.max_file_bytes, lambda text: cover(text) != text)
    made = feature(_options(launch, cover), tool)
    text = remembered(launch)

    def prompt(texts: PromptTexts) -> PromptTexts:
        return replace(texts, memory=text)

    return replace(made, tools=(tool,) if tool is not None else (), prompt=prompt)


def _is_on(launch: Launch) -> bool:
    return launch.loaded.settings.memory.enabled and not launch.options.safe_mode


def _places(launch: Launch) -> MemoryPlaces:
    """The folders of memories. Those of an untrusted project are left alone."""
    from swecli.core.config.paths import project_folder
    from swecli.features.memory.places import MemoryPlaces

    if not _is_on(launch):
        return MemoryPlaces(None, None)
    project = Path(os.path.realpath(launch.options.cwd))
    return MemoryPlaces(project_folder(project) / FOLDER if launch.trust.trusts else None, launch.paths.memories)


def _options(launch: Launch, cover: Callable[[str], str]) -> MemoryOptions:
    """What a session may store: no notes if storing is off or the folder is not known to be trusted."""
    from datetime import date

    from swecli.features.memory.companion import MemoryOptions

    places, settings, options = _places(launch), launch.loaded.settings.memory, launch.options
    looks_only = options.look_only or options.dry_run or options.compact_dry_run
    wanted = _is_on(launch) and settings.notes and options.store and not looks_only
    return MemoryOptions(
        places,
        places.project if wanted else None,
        options.cwd,
        f"# Session Memory: {date.today().isoformat()}\n\n## Project: {options.cwd.name}\n",
        cover,
        partial(_turned_on, launch, cover),
        settings.max_file_bytes,
        settings.max_tokens,
    )


def _turned_on(launch: Launch, cover: Callable[[str], str]) -> tuple[str, MemoryOptions | None]:
    from swecli.core.config.trust import read_trust, write_trust
    from swecli.core.extensions.unapproved import unapproved

    data, cwd = launch.paths.data, launch.options.cwd
    if not launch.options.store or launch.options.safe_mode:
        return "This run stores nothing; your change was not kept.", None
    if not launch.loaded.settings.memory.enabled:
        return "Your settings turn memory off (memory.enabled), so nothing was changed.", None
    if launch.trust.trusts:
        return "This folder is already trusted and its memory is on.", None
    notice, trust = "", read_trust(data, cwd)
    if trust.trusts:
        return ON, _options(replace(launch, trust=trust), cover)
    if names := unapproved(cwd, trust.accepted):
        listed = ", ".join(names[:5])
        shown = "swecli permissions trust shows and trusts them"
        return f"Trusting this folder would also enable these files ({listed}): {shown}.", None
    try:
        notice = write_trust(data, cwd, "trusted")
    except OSError as error:
        return f"Could not store the decision ({error.strerror or error}); nothing was changed.", None
    return " ".join(filter(None, (notice, ON))), _options(replace(launch, trust=read_trust(data, cwd)), cover)


def _cover(launch: Launch) -> Callable[[str], str]:
    """Hides keys and passwords of the environment, and similar texts. Built on first use."""

    @cache
    def covering() -> Callable[[str], str]:
        from swecli.core.llm.secrets import masker_of

        return masker_of(launch.secrets).cover

    return lambda text: covering()(text)


def remembered(launch: Launch) -> MemoryText:
    """Memories for the prompt."""
    from swecli.core.context_management.prompt import MemoryText

    places = _places(launch)
    if not any(folder is not None and os.path.isdir(folder) for folder in (places.project, places.user)):
        return MemoryText()
    from swecli.features.memory.section import memory_text
    from swecli.features.memory.session_notes import MAX_BYTES

    return memory_text(places.files(MAX_BYTES), launch.loaded.settings.memory.max_tokens)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.memory.command import MEMORY

    return (MEMORY,)


WIRING = Wiring(
    _build,
    _commands,
    before="jobs",
    writes=tuple(f"{FOLDER}/{name}" for name in (NOTES, f".{NOTES}.lock", ".gitignore")),
)
