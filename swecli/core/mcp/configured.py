"""The MCP servers of a folder: those of the settings, of files and of plugins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from swecli.core.config.load import Loaded
from swecli.core.config.paths import IMPORTED_SERVERS, OWN_SERVERS, PROJECT_SERVERS, Paths, workspace_key
from swecli.core.config.trust import TrustReading
from swecli.core.extensions.plugins import Plugin, parts
from swecli.core.mcp.definitions import (
    DefinitionError,
    ServerDefinition,
    bound,
    merged,
    of_settings,
    plugin_servers,
    read_file,
)
from swecli.core.mcp.servers import STORE, Decisions
from swecli.core.sandbox.bubblewrap import stands_in


class Read(Protocol):
    """What a start, or a run, has read."""

    @property
    def paths(self) -> Paths: ...

    @property
    def loaded(self) -> Loaded: ...

    @property
    def trust(self) -> TrustReading: ...

    @property
    def plugins(self) -> Sequence[Plugin]: ...


def definitions_of(read: Read, cwd: Path) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """All active servers of a folder, the user's own first, and sentences about ignored definitions."""
    problems: list[str] = []
    named: list[ServerDefinition] = []
    for name, settings in read.loaded.settings.mcp.items():
        origins = [origin for key, origin in read.loaded.origins.items() if key[:2] == ("mcp", name)]
        foreign = any(origin.layer in ("project", "local") for origin in origins)
        origin = str(origins[0]) if origins else "settings"
        try:
            named.append(of_settings(name, settings, origin, "project" if foreign else "user"))
        except DefinitionError as error:
            problems.append(f"{origin}: ignored MCP server {name!r}: {error}.")
    own, own_problems = read_file(read.paths.config / OWN_SERVERS, "user")
    project: tuple[ServerDefinition, ...] = ()
    file = cwd / PROJECT_SERVERS
    if read.trust.trusts and file.is_symlink():
        problems.append(f"{file} ignored: it is a link.")
    elif read.trust.trusts:
        is_stand_in = partial(stands_in, state=read.paths.state, key=workspace_key(cwd))
        project, project_problems = read_file(file, "project", held=is_stand_in)
        problems += project_problems
    plugins: list[ServerDefinition] = []
    for plugin in read.plugins:
        servers, server_problems = servers_of_plugin(plugin)
        plugins += servers
        problems += server_problems
    definitions, told = merged(named, own, project, plugins)
    return tuple(bound(definition, cwd) for definition in definitions), (*problems, *own_problems, *told)


def importable(read: Read, cwd: Path) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers that a trusted folder has for other agents and editors, which count only once they are imported, and
    sentences about what is broken in their files."""
    return servers_in([cwd / name for name in IMPORTED_SERVERS] if read.trust.trusts else ())


def servers_in(files: Iterable[Path]) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers of files, the first of each name, and sentences about what is broken in them."""
    by_name: dict[str, ServerDefinition] = {}
    problems: list[str] = []
    for file in files:
        servers, told = read_file(file, "user")
        problems += told
        for server in servers:
            by_name.setdefault(server.name, server)
    return tuple(by_name.values()), tuple(problems)


def servers_of_plugin(plugin: Plugin) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """Its MCP servers, and sentences about those that are ignored."""
    if "MCP servers" not in plugin.programs:
        return (), ()
    tables, problems = parts(plugin, "mcpServers", ".mcp.json", "its servers are ignored")
    servers: dict[str, ServerDefinition] = {}
    for document, _, table in tables:
        more, trouble = plugin_servers(
            plugin.name, plugin.root, plugin.data or plugin.root, table, f"plugin {plugin.name}: {document.path.name}"
        )
        problems += trouble
        for server in more:
            servers.setdefault(server.name, server)
    return tuple(servers.values()), tuple(problems)


def undecided(read: Read, cwd: Path) -> tuple[ServerDefinition, ...]:
    """Servers that the project decides about, without a decision of the user on their present definition."""
    decisions = decisions_of(read.paths, cwd)
    return tuple(server for server in definitions_of(read, cwd)[0] if decisions.state(server) == "needs approval")


def decisions_of(paths: Paths, cwd: Path) -> Decisions:
    return Decisions(paths.workspace_data(cwd) / STORE)
