"""Skills, Markdown commands and agent profiles for a session: their folders and trust."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.assembly.startup import Startup
from swecli.core.config.paths import user_paths
from swecli.core.config.trust import accept_items
from swecli.core.extensions.watch import ExtensionFiles
from swecli.launch import LaunchOptions

if TYPE_CHECKING:
    from swecli.core.extensions.skills import Skill
    from swecli.core.extensions.sources import Source


def extension_files(options: LaunchOptions, startup: Startup) -> ExtensionFiles:
    """Skills, commands and agent profiles for the working directory. Those of a trusted project count only in the form
    that the user trusted."""
    trust, own = startup.trust, startup.environment.get("SWECLI_HOME", "")

    def keep(digests: Sequence[str]) -> str:
        if not options.store or trust.state != "trusted":
            return ""
        try:
            return accept_items(startup.paths.data, options.cwd, digests)
        except OSError as error:
            return f"Your approval could not be stored ({error}); it applies to this session only."

    def built_in() -> Collection[str]:
        from swecli.commands.registry import COMMANDS

        return {name for command in COMMANDS for name in (command.name, *command.aliases)}

    return ExtensionFiles(
        options.cwd,
        startup.paths.config,
        Path(own).expanduser().absolute() if own else Path.home(),
        trusted=trust.trusts,
        at_once=trust.state == "session",
        accepted=trust.accepted,
        keep=keep,
        built_in=built_in,
        plugins=startup.plugins,
        enabled=not options.safe_mode,
    )


def project_sources(folder: Path) -> list[Source]:
    """The places of a project's own skills, commands and agent profiles."""
    from swecli.core.extensions.sources import places

    sources = places(folder, user_folder=user_paths(os.environ).config, home=Path.home(), project=True)
    return [source for source in sources if source.project is not None]


def skill_listing(skills: Sequence[Skill], window: int) -> str:
    """Names and descriptions of skills for the prompt; empty without skills."""
    if not skills:
        return ""
    from swecli.core.context_management.prompts import framed
    from swecli.core.extensions.skills import listing

    return framed(listing(skills, window))
