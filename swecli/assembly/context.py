"""The context of a session: its prompt, its limits, and what measures it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from swecli.assembly.extension_files import skill_listing
from swecli.assembly.startup import Startup
from swecli.assembly.tools import is_unattended
from swecli.core.context_management.calibration import FamilyRatios, LearnedRatios
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import HybridCounter
from swecli.core.context_management.instructions import Instructions
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import PromptTexts, environment_note
from swecli.core.context_management.stored_prompt import Conditions, sources_of
from swecli.core.engine.feature import Feature
from swecli.core.engine.settings import Adjustable
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.git import git_facts
from swecli.core.llm.types import WebSearch as ProviderSearch
from swecli.core.tools.registry import ToolRegistry, small_schemas
from swecli.launch import LaunchOptions

TOKEN_RATIOS = "token-ratios.json"
"""In the data directory: learned token ratios of models."""


def session_context(
    values: Adjustable, monitor: TokenMonitor, search: ProviderSearch | None, tools: ToolRegistry, texts: PromptTexts
) -> ContextManager:
    made = ContextManager(
        tools.schemas(),
        texts,
        values.context_limits,
        monitor,
        values.advice,
        small_schemas(tools),
        special_tools=tools.special,
    )
    made.web_search = search
    return made


def prompt_texts(
    options: LaunchOptions,
    instructions: Instructions,
    files: ExtensionFiles,
    features: Sequence[Feature],
) -> PromptTexts:
    skills = tuple(files.now.skills.values())
    listed = [(skill.name, skill.origin.digest) for skill in skills if skill.for_model]
    texts = PromptTexts(
        base=options.system_prompt,
        append=options.append_system_prompt or "",
        files=instructions,
        headless=is_unattended(options),
        skills=partial(skill_listing, skills),
    )
    for feature in features:
        texts = feature.prompt(texts)
    return replace(texts, sources=sources_of(instructions, texts.memory, listed))


def prompt_conditions(options: LaunchOptions, startup: Startup) -> Conditions:
    return Conditions(
        folder=str(options.cwd),
        trusted=startup.trust.trusts,
        safe_mode=options.safe_mode,
        memory=startup.loaded.settings.memory.enabled and not options.safe_mode,
        base=options.system_prompt,
        append=options.append_system_prompt,
    )


def token_monitor(options: LaunchOptions, startup: Startup) -> TokenMonitor:
    """Counts exactly as soon as possible; a run that stores nothing does not store learned ratios either."""
    ratios = LearnedRatios(startup.paths.data / TOKEN_RATIOS) if options.store else FamilyRatios()
    return TokenMonitor(HybridCounter(), ratios)


def session_environment(options: LaunchOptions, startup: Startup) -> str:
    """Date, place and platform for the model at the start of the session."""
    return environment_note(
        today=date.today(),
        cwd=str(options.cwd),
        platform=f"{platform.system()} {platform.release()}",
        shell=Path(startup.environment.get("SHELL", "")).name,
        git=git_facts(options.cwd) is not None,
    )
