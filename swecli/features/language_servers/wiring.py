"""The language servers of a run, from the settings and PATH, if the workspace is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.features import Brought, Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.core.engine.recorder import Recorder
    from swecli.core.engine.services import Workspace
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.language_servers.definitions import LanguageServer
    from swecli.core.language_servers.servers import LanguageServers
    from swecli.core.permissions.types import Policy
    from swecli.features.language_servers.companion import EditErrors
    from swecli.launch import Launch

LOGS = "logs"


def feature(code: LanguageServers | None = None) -> Feature:
    """Errors in the results of edits; without servers there are none, and nothing is imported."""
    from swecli.core.engine.feature import Feature

    if code is None:
        return Feature()
    from swecli.core.protocol.events import MAIN
    from swecli.features.language_servers.companion import EditErrors

    def inner(core: Core, agent: str) -> Sequence[EditErrors]:
        return (EditErrors(code, core.recorder, agent),)

    def alone(workspace: Workspace, policy: Policy, recorder: Recorder) -> Sequence[EditErrors]:
        return (EditErrors(code, recorder, MAIN),)

    return Feature(lambda core: inner(core, MAIN), inner, alone)


def _build(launch: Launch) -> Feature:
    """With the servers as an extension, and the tool that asks them if the workspace has files for them."""
    servers, has_files = language_servers(launch)
    made = feature(servers)
    if servers is not None:
        made = replace(made, extensions=(servers,))
    if launch.options.safe_mode or not (launch.loaded.settings.diagnostics.enabled or has_files):
        return made
    from swecli.features.language_servers.tool import Symbols

    spare = (Symbols(),) if launch.loaded.settings.diagnostics.enabled else ()
    return replace(made, tools=(Symbols(servers),) if has_files else (), spare=spare)


def language_servers(launch: Launch) -> tuple[LanguageServers | None, bool]:
    """The possible servers (None for none), and whether the workspace has files for them. Starts nothing, and imports
    little if no server is possible. A server reads the project's configuration, which may name programs to run, so an
    untrusted workspace and safe mode have none."""
    settings, options = launch.loaded.settings, launch.options
    looks = options.look_only or options.dry_run or options.compact_dry_run
    if not settings.diagnostics.enabled or not launch.trust.trusts or options.safe_mode or looks:
        return None, False
    from swecli.core.language_servers.definitions import Surroundings, defined, usable

    origins = {key[1]: str(origin) for key, origin in launch.loaded.origins.items() if key[0] == "language_servers"}
    servers, problems = defined(settings.language_servers, origins)
    for plugin in launch.plugins:
        more, trouble = languages_of_plugin(plugin)
        servers, problems = (*servers, *more), (*problems, *trouble)
    roots = tuple(path.resolve() for path in (options.cwd, *options.add_dirs))
    programs, has_files = usable(servers, launch.child_environment.get("PATH", ""), roots)
    if not programs and not problems:
        return None, False
    from swecli.core.language_servers.servers import LanguageServerOptions, LanguageServers
    from swecli.core.llm.secrets import Masker

    wishes = settings.diagnostics
    around = Surroundings(
        Path(roots[0]),
        roots,
        launch.child_environment,
        launch.sandbox,
        launch.paths.state / LOGS if options.store else None,
        Masker(launch.secrets).mask,
        settings.sandbox.mode == "on" or settings.sandbox.required,
    )
    chosen = LanguageServerOptions(wishes.wait, wishes.most, wishes.idle)
    return LanguageServers(programs, around, chosen, problems), has_files


def languages_of_plugin(plugin: Plugin) -> tuple[tuple[LanguageServer, ...], tuple[str, ...]]:
    """Its language servers, and sentences about those that are ignored."""
    if "language servers" not in plugin.programs:
        return (), ()
    from swecli.core.extensions.plugins import parts
    from swecli.core.language_servers.definitions import plugin_languages

    tables, problems = parts(plugin, "lspServers", ".lsp.json", "its language servers are ignored")
    servers: list[LanguageServer] = []
    for document, _, table in tables:
        more, trouble = plugin_languages(plugin.name, plugin.root, table, str(document.path))
        servers += more
        problems += trouble
    return tuple(servers), tuple(problems)


def _of_plugin(plugin: Plugin) -> Brought:
    servers, problems = languages_of_plugin(plugin)
    lines = [
        f"language server {server.name}: starts {' '.join(server.command)} for {', '.join(server.languages)}"
        for server in servers
    ]
    if "language servers" in plugin.programs and not servers and not problems:
        lines.append("language servers that swecli knows anyway")
    return Brought(len(servers), "language server", lines, problems)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.language_servers.command import LSP

    return (LSP,)


WIRING = Wiring(_build, _commands, of_plugin=_of_plugin)
