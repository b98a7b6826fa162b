"""The MCP servers of a run: their definitions, execution and storage. Little is imported unless one is configured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from swecli.features import Brought, Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.feature import Feature
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.mcp.definitions import ServerDefinition
    from swecli.core.mcp.servers import McpServers, Setup
    from swecli.launch import Launch

LOGS = "logs"
TOKENS = "mcp-logins"
"""In the data directory: one file for each login, for the user alone."""
_GIVEN = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
)
"""Variables for every server; others only by its definition."""


def _build(launch: Launch) -> Feature:
    from swecli.core.engine.feature import Feature

    options = launch.options
    looks = options.look_only or options.compact_dry_run or options.dry_run
    servers = build_servers(launch) if not looks else None
    return Feature(extensions=(servers,) if servers is not None else ())


def has_servers(launch: Launch) -> bool:
    """Whether MCP servers are configured."""
    from swecli.core.config.paths import OWN_SERVERS, PROJECT_SERVERS

    return (
        bool(launch.options.servers)
        or bool(launch.loaded.settings.mcp)
        or os.path.exists(launch.paths.config / OWN_SERVERS)
        or (launch.trust.trusts and os.path.exists(launch.options.cwd / PROJECT_SERVERS))
        or any("MCP servers" in plugin.programs for plugin in launch.plugins)
    )


def _of_run(launch: Launch) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers of a run, and sentences about ignored definitions."""
    from swecli.core.mcp.configured import decisions_of, definitions_of
    from swecli.core.mcp.definitions import merged

    options = launch.options
    lost = decisions_of(launch.paths, options.cwd).trouble()
    configured, notices = definitions_of(launch, options.cwd)
    notices = (lost, *notices) if lost else notices
    definitions, hidden = merged(options.servers, configured)
    if options.safe_mode:
        definitions = tuple(definition for definition in definitions if not definition.asks)
    return definitions, (*notices, *hidden)


def started_servers(launch: Launch) -> tuple[str, ...]:
    """Names of the servers that a run with these options would start."""
    if not has_servers(launch):
        return ()
    from swecli.core.mcp.configured import decisions_of

    decisions = decisions_of(launch.paths, launch.options.cwd)
    return tuple(definition.name for definition in _of_run(launch)[0] if decisions.state(definition) == "on")


def build_servers(launch: Launch) -> McpServers | None:
    """None without a server; imports nothing if none is configured."""
    if not has_servers(launch):
        return None
    from swecli.core.mcp.servers import McpServers

    definitions, notices = _of_run(launch)
    if not definitions and not notices:
        return None
    return McpServers(setup_of(launch, definitions, notices))


def setup_of(launch: Launch, definitions: tuple[ServerDefinition, ...], notices: tuple[str, ...] = ()) -> Setup:
    from swecli import __version__
    from swecli.core.config.paths import PROJECT_VARIABLES
    from swecli.core.llm.secrets import Masker
    from swecli.core.mcp.configured import decisions_of
    from swecli.core.mcp.connection import Place
    from swecli.core.mcp.oauth import Login
    from swecli.core.mcp.servers import Decisions, Setup

    options, environment = launch.options, launch.environment
    secrets = launch.secrets | secrets_of(definitions, environment)
    variables = {**dict.fromkeys(PROJECT_VARIABLES, str(options.cwd)), **environment}
    server_place = Place(
        server_environment(environment), variables, options.cwd, (options.cwd, *options.add_dirs), __version__
    )
    return Setup(
        definitions,
        server_place,
        decisions_of(launch.paths, options.cwd) if options.store else Decisions(None),
        notices,
        launch.paths.state / LOGS if options.store else None,
        Masker(secrets).mask,
        Login(launch.paths.data / TOKENS),
        options.approve_all,
        options.servers_later,
    )


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: environment[name] for name in _GIVEN if name in environment and not environment[name].startswith("()")
    }


def secrets_of(definitions: tuple[ServerDefinition, ...], environment: Mapping[str, str]) -> frozenset[str]:
    """Possibly secret values that definitions pass to servers."""
    from swecli.core.mcp.definitions import DefinitionError

    secrets: set[str] = set()
    for definition in definitions:
        try:
            whole = definition.expanded(environment)
        except DefinitionError:
            whole = definition
        secrets.update(value for value in (*whole.env.values(), *whole.headers.values()) if len(value) >= 8)
    return frozenset(secrets)


def _of_plugin(plugin: Plugin) -> Brought:
    if "MCP servers" not in plugin.programs:
        return Brought()
    from swecli.core.mcp.configured import servers_of_plugin

    servers, problems = servers_of_plugin(plugin)
    lines: list[str] = []
    for server in servers:
        verb = "connects to" if server.transport != "stdio" else "starts"
        lines.append(f"MCP server {server.name}: {verb} {server.line}")
        lines += [f"  {clause}" for clause in server.given]
    return Brought(len(servers), "MCP server", lines, problems)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.mcp.command import MCP

    return (MCP,)


WIRING = Wiring(_build, _commands, of_plugin=_of_plugin)
