"""The tools of a run."""

from __future__ import annotations

from swecli.assembly.startup import Startup
from swecli.core.config.settings import Settings
from swecli.core.context_management.context_manager import COMPACT_TOOL
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.permissions.types import MEMORY_TOOL
from swecli.core.tools.base import AnyTool
from swecli.core.tools.registry import builtin_tools
from swecli.core.tools.session_tools import AskUser, Scratchpad, SkillTool
from swecli.core.tools.web_fetch import WebFetch
from swecli.core.tools.web_search import SearchEngine, WebSearch
from swecli.launch import LaunchOptions


def own_tools(options: LaunchOptions, settings: Settings, files: ExtensionFiles) -> list[AnyTool]:
    """swecli's tools, as enabled in the settings."""
    left_out = {
        *(() if settings.tools.web_fetch else (WebFetch.name,)),
        *(
            () if settings.context.auto_compact else (COMPACT_TOOL,)
        ),  # without automatic compaction only the user compacts
    }
    own: list[AnyTool] = [tool for tool in builtin_tools(settings.tools.command_timeout) if tool.name not in left_out]
    search = settings.web_search
    if search.enabled and search.url is not None:
        engine = SearchEngine(search.url, search.allowed_domains, search.blocked_domains, search.max_per_turn)
        own.append(WebSearch(engine))
    if any(skill.for_model for skill in files.now.skills.values()):
        own.append(SkillTool(lambda: files.now.skills))
    if settings.memory.scratchpad and not options.safe_mode:
        own.append(Scratchpad())
    return own


def spare_tools(options: LaunchOptions, files: ExtensionFiles) -> list[AnyTool]:
    """Stand-ins for tools that depend on the folder's content and trust, for a session that began with them: they
    answer that they have no source. Excludes tools that the user turned off."""
    return [] if options.safe_mode else [SkillTool(lambda: files.now.skills)]


def is_unattended(options: LaunchOptions) -> bool:
    """Whether nobody can answer questions of the run."""
    return options.headless and options.input_format == "text"


def unusable(options: LaunchOptions, startup: Startup) -> tuple[str, ...]:
    """Tools that a new session does not offer to the model: questions that nobody can answer, and memories before the
    user trusts the folder."""
    return (
        *((AskUser.name,) if is_unattended(options) else ()),
        *((MEMORY_TOOL,) if not startup.trust.trusts else ()),
    )
