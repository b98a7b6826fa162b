"""The language servers of a run, from the settings and PATH, if the workspace is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.assembly.plugins import languages_of_plugin
from swecli.core.llm.secrets import Masker
from swecli.core.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from swecli.assembly.startup import Startup
    from swecli.core.language_servers.servers import LanguageServers
    from swecli.launch import LaunchOptions

LOGS = "logs"


def build_language_servers(
    options: LaunchOptions, startup: Startup, sandbox: Sandbox, environment: Mapping[str, str]
) -> tuple[LanguageServers | None, bool]:
    """The possible servers (None for none), and whether the workspace has files for them. Starts nothing, and imports
    little if no server is possible. A server reads the project's configuration, which may name programs to run, so an
    untrusted workspace and safe mode have none."""
    settings = startup.loaded.settings
    looks = options.look_only or options.dry_run or options.compact_dry_run
    if not settings.diagnostics.enabled or not startup.trust.trusts or options.safe_mode or looks:
        return None, False
    from swecli.core.language_servers.definitions import Surroundings, defined, usable

    origins = {key[1]: str(origin) for key, origin in startup.loaded.origins.items() if key[0] == "language_servers"}
    servers, problems = defined(settings.language_servers, origins)
    for plugin in startup.plugins:
        more, trouble = languages_of_plugin(plugin)
        servers, problems = (*servers, *more), (*problems, *trouble)
    roots = tuple(path.resolve() for path in (options.cwd, *options.add_dirs))
    programs, has_files = usable(servers, environment.get("PATH", ""), roots)
    if not programs and not problems:
        return None, False
    from swecli.core.language_servers.servers import LanguageServerOptions, LanguageServers

    wishes = settings.diagnostics
    around = Surroundings(
        Path(roots[0]),
        roots,
        environment,
        sandbox,
        startup.paths.state / LOGS if options.store else None,
        Masker(startup.secrets).mask,
        settings.sandbox.mode == "on" or settings.sandbox.required,
    )
    chosen = LanguageServerOptions(wishes.wait, wishes.most, wishes.idle)
    return LanguageServers(programs, around, chosen, problems), has_files
