"""The MCP servers of a run: their definitions, execution and storage. Imported only if one is configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from swecli import __version__
from swecli.assembly.plugins import servers_of_plugin
from swecli.assembly.startup import Startup
from swecli.core.config.paths import OWN_SERVERS, PROJECT_SERVERS, Paths
from swecli.core.engine.services import Mentionable, PromptTemplate
from swecli.core.hooks.hook import PROJECT_VARIABLES
from swecli.core.hooks.reading import is_placeholder
from swecli.core.llm.secrets import Masker
from swecli.core.mcp.connection import Place
from swecli.core.mcp.definitions import (
    DefinitionError,
    ServerDefinition,
    bound,
    merged,
    of_settings,
    read_file,
)
from swecli.core.mcp.oauth import Login
from swecli.core.mcp.servers import STORE, Decisions, McpServers, Setup
from swecli.core.ports import Asker
from swecli.core.protocol.events import NoticeLevel, Question
from swecli.core.tools.registry import ToolRegistry
from swecli.launch import LaunchOptions

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


def definitions_of(startup: Startup, cwd: Path) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """All active servers of a folder, the user's own first, and sentences about ignored definitions."""
    problems: list[str] = []
    named: list[ServerDefinition] = []
    for name, settings in startup.loaded.settings.mcp.items():
        origins = [origin for key, origin in startup.loaded.origins.items() if key[:2] == ("mcp", name)]
        foreign = any(origin.layer in ("project", "local") for origin in origins)
        origin = str(origins[0]) if origins else "settings"
        try:
            named.append(of_settings(name, settings, origin, "project" if foreign else "user"))
        except DefinitionError as error:
            problems.append(f"{origin}: ignored MCP server {name!r}: {error}.")
    own, own_problems = read_file(startup.paths.config / OWN_SERVERS, "user")
    project: tuple[ServerDefinition, ...] = ()
    file = cwd / PROJECT_SERVERS
    if startup.trust.trusts and file.is_symlink():
        problems.append(f"{file} ignored: it is a link.")
    elif startup.trust.trusts:
        held = partial(is_placeholder, cwd=cwd, paths=startup.paths)
        project, project_problems = read_file(file, "project", held=held)
        problems += project_problems
    plugins: list[ServerDefinition] = []
    for plugin in startup.plugins:
        servers, server_problems = servers_of_plugin(plugin)
        plugins += servers
        problems += server_problems
    found, told = merged(named, own, project, plugins)
    return tuple(bound(one, cwd) for one in found), (*problems, *own_problems, *told)


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: environment[name] for name in _GIVEN if name in environment and not environment[name].startswith("()")
    }


def undecided(startup: Startup, cwd: Path) -> tuple[ServerDefinition, ...]:
    """Servers that the project decides about, without a decision of the user on their present definition."""
    decisions = decisions_of(startup.paths, cwd)
    found, _ = definitions_of(startup, cwd)
    off = {one.name for one in found if not one.enabled or decisions.of(one.name).get("off")}
    return tuple(one for one in found if one.asks and one.name not in off and decisions.verdict(one) is None)


def decisions_of(paths: Paths, cwd: Path) -> Decisions:
    return Decisions(paths.workspace_data(cwd) / STORE)


def _of_run(options: LaunchOptions, startup: Startup) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers of a run, and sentences about ignored definitions."""
    lost = decisions_of(startup.paths, options.cwd).trouble()
    configured, notices = definitions_of(startup, options.cwd)
    notices = (lost, *notices) if lost else notices
    definitions, hidden = merged(options.servers, configured)
    if options.safe_mode:
        definitions = tuple(one for one in definitions if not one.asks)
    return definitions, (*notices, *hidden)


def started_servers(options: LaunchOptions, startup: Startup) -> tuple[str, ...]:
    """Names of the servers that a run with these options would start."""
    decisions = decisions_of(startup.paths, options.cwd)
    return tuple(
        one.name
        for one in _of_run(options, startup)[0]
        if one.enabled
        and not decisions.of(one.name).get("off")
        and (not one.asks or decisions.verdict(one) == "approved")
    )


def build_servers(options: LaunchOptions, startup: Startup) -> McpServers | None:
    """None without a server."""
    definitions, notices = _of_run(options, startup)
    if not definitions and not notices:
        return None
    return McpServers(setup_of(options, startup, definitions, notices))


def setup_of(
    options: LaunchOptions,
    startup: Startup,
    definitions: tuple[ServerDefinition, ...],
    notices: tuple[str, ...] = (),
) -> Setup:
    environment = startup.environment
    secrets = startup.secrets | secrets_of(definitions, environment)
    variables = {**dict.fromkeys(PROJECT_VARIABLES, str(options.cwd)), **environment}
    place = Place(
        server_environment(environment), variables, options.cwd, (options.cwd, *options.add_dirs), __version__
    )
    return Setup(
        definitions,
        place,
        decisions_of(startup.paths, options.cwd) if options.store else Decisions(None),
        notices,
        startup.paths.state / LOGS if options.store else None,
        Masker(secrets).mask,
        Login(startup.paths.data / TOKENS),
        options.approve_all,
        options.servers_later,
    )


def secrets_of(definitions: tuple[ServerDefinition, ...], environment: Mapping[str, str]) -> frozenset[str]:
    """Possibly secret values that definitions pass to servers."""
    found: set[str] = set()
    for one in definitions:
        try:
            whole = one.expanded(environment)
        except DefinitionError:
            whole = one
        found.update(value for value in (*whole.env.values(), *whole.headers.values()) if len(value) >= 8)
    return frozenset(found)


class Alone:
    """Stand-in for a session when a server is only tested."""

    def __init__(self) -> None:
        self.tools = ToolRegistry(())

    @property
    def asker(self) -> Asker:
        return self

    async def ask(self, item: str, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...] | None:
        return None

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """Problems are reported at the end."""

    def tell_model(self, title: str, text: str) -> None:
        """There is no model."""

    def instruct(self, source: str, text: str) -> None:
        """There is no model."""

    def offer(
        self, source: str, prompts: Sequence[PromptTemplate] = (), mentionables: Sequence[Mentionable] = ()
    ) -> None:
        """Discarded."""
