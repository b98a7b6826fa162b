"""What the user is told at the start of a session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from swecli.assembly.models import ModelSupply
from swecli.assembly.policy import grants_of
from swecli.assembly.rules import rule_notices
from swecli.assembly.startup import Startup
from swecli.assembly.storage import Stored
from swecli.core.config.paths import IMPORTED_SERVERS
from swecli.core.engine.services import Services
from swecli.core.workspace.process_tree import PLACE, leftovers
from swecli.launch import LaunchOptions

_MOST_TOLD = 5


def start_notices(
    options: LaunchOptions, startup: Startup, services: Services, models: ModelSupply, stored: Stored
) -> tuple[str, ...]:
    """Sentences about what does not work as the user may expect."""
    grants = grants_of(startup, options.cwd).trouble()
    files = services.extension_files
    return (
        *startup.notices,
        *((grants,) if grants else ()),
        *((*files.problems, *_broken_files(files.now.broken)) if files is not None else ()),
        *rule_notices(services.settings.now.rules),
        *models.first.notices,
        *stored.notices,
        *services.instruction_files.loaded.notices,
        *_orphans(services.workspace.environment[PLACE]),
        *(() if options.safe_mode else _broken_imports(startup, options.cwd)),
    )


def _broken_files(broken: Sequence[str]) -> tuple[str, ...]:
    """Notices about files of which a part could not be read, for the start of a session."""
    more = len(broken) - _MOST_TOLD
    rest = (f"{more} more files of skills, commands and agents could not be read; swecli doctor lists them.",)
    return (*(f"{text}." for text in broken[:_MOST_TOLD]), *(rest if more > 0 else ()))


def _broken_imports(startup: Startup, cwd: Path) -> tuple[str, ...]:
    """Sentences about what is broken in other programs' files of servers, which count only once they are imported.
    Imports nothing if there is no such file."""
    if not any(os.path.lexists(cwd / name) for name in IMPORTED_SERVERS):
        return ()
    from swecli.core.mcp.configured import importable

    return importable(startup, cwd)[1]


def _orphans(mark: str) -> tuple[str, ...]:
    """A sentence about commands left by an earlier swecli of this folder that was killed."""
    processes = leftovers(mark)
    if not processes:
        return ()
    named = ", ".join(f"{process.name} ({process.pid})" for process in processes[:5])
    more = f" and {len(processes) - 5} more" if len(processes) > 5 else ""
    pids = " ".join(str(process.pid) for process in processes)
    return (f"Commands of an earlier swecli are still running: {named}{more}. Stop them with: kill {pids}",)
