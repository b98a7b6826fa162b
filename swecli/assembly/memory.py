"""Memories of a run: which to read, and which to store."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from functools import cache, partial
from pathlib import Path

from msgspec.structs import replace

from swecli.assembly.startup import Startup
from swecli.core.config.paths import project_folder
from swecli.core.config.trust import read_trust, write_trust
from swecli.core.context_management.memory_section import MemoryText, memory_text
from swecli.core.engine.services import MemoryOptions
from swecli.core.extensions.unapproved import unapproved
from swecli.core.memory.places import MemoryPlaces
from swecli.core.memory.session_notes import MAX_BYTES
from swecli.core.tools.base import AnyTool
from swecli.core.tools.session_tools import Scratchpad
from swecli.launch import LaunchOptions

FOLDER = "memory"
"""In a project's ``.swecli``."""
USER_FOLDER = "memories"
"""In the user's data directory."""
PLANS = "plans"
"""Folder of written plans, in the project's own."""
ON = (
    "This folder is now trusted and its memory is on. Existing memories, and the model's tool for them, "
    "join after /clear."
)


def is_on(options: LaunchOptions, startup: Startup) -> bool:
    """Whether the run has memories."""
    return startup.loaded.settings.memory.enabled and not options.safe_mode


def memory_places(options: LaunchOptions, startup: Startup) -> MemoryPlaces:
    """The folders of memories. Those of an untrusted project are left alone."""
    if not is_on(options, startup):
        return MemoryPlaces(None, None)
    project = Path(os.path.realpath(options.cwd))
    own = Path(os.path.realpath(startup.paths.data)) / USER_FOLDER
    return MemoryPlaces(project_folder(project) / FOLDER if startup.trust.trusts else None, own)


def memory_options(options: LaunchOptions, startup: Startup) -> MemoryOptions:
    """What a session may store: no notes if storing is off or the folder is not known to be trusted."""
    places, settings = memory_places(options, startup), startup.loaded.settings.memory
    looks_only = options.look_only or options.dry_run or options.compact_dry_run
    wanted = is_on(options, startup) and settings.notes and options.store and not looks_only
    return MemoryOptions(
        places,
        places.project if wanted else None,
        f"# Session Memory: {date.today().isoformat()}\n\n## Project: {options.cwd.name}\n",
        _cover(startup),
        partial(_turned_on, options, startup),
        settings.max_file_bytes,
        project_folder(options.cwd) / PLANS if startup.trust.trusts and options.store else None,
        settings.max_tokens,
    )


def _turned_on(options: LaunchOptions, startup: Startup) -> tuple[str, MemoryOptions | None]:
    if not options.store or options.safe_mode:
        return "This run stores nothing; your change was not kept.", None
    if not startup.loaded.settings.memory.enabled:
        return "Your settings turn memory off (memory.enabled), so nothing was changed.", None
    if startup.trust.trusts:
        return "This folder is already trusted and its memory is on.", None
    notice, trust = "", read_trust(startup.paths.data, options.cwd)
    if trust.trusts:
        return ON, memory_options(options, replace(startup, trust=trust))
    if names := unapproved(options.cwd, trust.accepted):
        listed = ", ".join(names[:5])
        shown = "swecli permissions trust shows and trusts them"
        return f"Trusting this folder would also enable these files ({listed}): {shown}.", None
    try:
        notice = write_trust(startup.paths.data, options.cwd, "trusted")
    except OSError as error:
        return f"Could not store the decision ({error.strerror or error}); nothing was changed.", None
    trust = read_trust(startup.paths.data, options.cwd)
    return " ".join(filter(None, (notice, ON))), memory_options(options, replace(startup, trust=trust))


def _cover(startup: Startup) -> Callable[[str], str]:
    """Hides keys and passwords of the environment, and similar texts. Built on first use."""

    @cache
    def covering() -> Callable[[str], str]:
        from swecli.core.llm.secrets import masker_of

        return masker_of(startup.secrets).cover

    return lambda text: covering()(text)


def remembered(options: LaunchOptions, startup: Startup) -> MemoryText:
    """Memories for the prompt."""
    places = memory_places(options, startup)
    if not any(folder is not None and folder.is_dir() for folder in (places.project, places.user)):
        return MemoryText()
    return memory_text(places.files(MAX_BYTES), startup.loaded.settings.memory.max_tokens)


def memory_tools(options: LaunchOptions, startup: Startup) -> list[AnyTool]:
    """The model's memory tools, if enabled."""
    settings, tools = startup.loaded.settings.memory, list[AnyTool]()
    if is_on(options, startup):
        from swecli.core.tools.memory import MemoryTool

        cover = _cover(startup)
        places = memory_places(options, startup)
        tools.append(MemoryTool(places, settings.max_file_bytes, lambda text: cover(text) != text))
    if settings.scratchpad and not options.safe_mode:
        tools.append(Scratchpad())
    return tools
