"""/mcp: the MCP servers of the session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from swecli.commands.base import SAFE_MODE, CommandResult, SlashCommand, Word, absent, end_of
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.figures import cut, plural

if TYPE_CHECKING:
    from swecli.core.engine.offered_tools import SourceSize
    from swecli.core.engine.session import Session
    from swecli.core.mcp.connection import Connection
    from swecli.core.mcp.servers import McpServers

NONE = (
    "No MCP servers. Add one with: swecli mcp add NAME -- COMMAND [ARGUMENT …], or --url ADDRESS; a project's "
    ".mcp.json is used once you trust the folder."
)
_WITH_NAME = ("enable", "disable", "reconnect", "login", "log")
_USE = "Use /mcp, /mcp NAME, or /mcp enable, disable, reconnect, login or log NAME."


def _servers(session: Session) -> McpServers | None:
    if not session.extended:
        return None
    from swecli.core.mcp.servers import McpServers  # not imported where there is no server

    return session.extension(McpServers)


async def _run_mcp(session: Session, arguments: str) -> CommandResult:
    servers = _servers(session)
    if servers is None:
        return CommandResult.text(absent(session, "MCP servers of projects", NONE), "dim")
    match arguments.split():
        case []:
            return CommandResult(tuple(_overview(session, servers)))
        case [name] if name in servers.connections:
            return CommandResult(tuple(_detail(session, servers, servers.connections[name])))
        case [word] if word in _WITH_NAME:
            known = ", ".join(servers.connections)
            return CommandResult.text(f"/mcp {word} needs a server's name. Servers: {known}.", "error")
        case [word, name] if word in _WITH_NAME:
            if name not in servers.connections:
                return _unknown(name, servers)
            return await _changed(servers, word, name)
        case [name]:
            return _unknown(name, servers)
        case _:
            return CommandResult.text(_USE, "error")


def _unknown(name: str, servers: McpServers) -> CommandResult:
    known = ", ".join(servers.connections) or "none"
    return CommandResult.text(f"Unknown MCP server {name!r}. Servers: {known}. {_USE}", "error")


async def _changed(servers: McpServers, word: str, name: str) -> CommandResult:
    connection = servers.connections[name]
    match word:
        case "enable":
            await servers.enable(name, True)
        case "disable":
            await servers.enable(name, False)
            return CommandResult.text(f"{name} is off, also in later sessions; /mcp enable {name} enables it.")
        case "log":
            return end_of(connection.log)
        case "login" if connection.definition.transport == "stdio":
            return CommandResult.text(f"{name} is a local program and needs no login; nothing was changed.")
        case _:
            await servers.reconnect(name, login=word == "login")
    # Requests to the user arrive as questions; do not wait for them here.
    return CommandResult.text(f"Starting {name}; /mcp shows its state.")


def _overview(session: Session, servers: McpServers) -> Sequence[DisplayBlock]:
    rows: list[tuple[str, ...]] = []
    for name, connection in servers.connections.items():
        size = session.tools_of(name)
        left_out = len(servers.left_out.get(name, ()))
        changed = f", {left_out} left out" if left_out else ""
        tools = f"{size.count}{_withheld(size)}{changed}" if connection.state == "ready" else ""
        tokens = _tokens(size) if connection.state == "ready" else ""
        rows.append((name, _state(connection), tools, tokens, cut(connection.definition.line, 60)))
    table = TableBlock(("Server", "State", "Tools", "Tokens", "Runs"), tuple(rows), "MCP servers")
    unused = (TextBlock(SAFE_MODE.format("MCP servers of projects"), "dim"),) if session.view.safe_mode else ()
    return (
        table,
        *unused,
        TextBlock("/mcp NAME shows its tools; enable, disable, reconnect, login and log take a name.", "dim"),
    )


def _tokens(size: SourceSize) -> str:
    return f"{size.tokens:,}" if size.tokens is not None else "?"


def _withheld(size: SourceSize) -> str:
    if not size.withheld:
        return ""
    return ", all deferred" if size.withheld == size.count else f", {size.withheld} deferred"


def _state(connection: Connection) -> str:
    return f"{connection.state}: {connection.reason}" if connection.reason else connection.state


def _detail(session: Session, servers: McpServers, connection: Connection) -> Sequence[DisplayBlock]:
    from swecli.core.mcp.tools import READ_RESOURCE  # there is a server, so it is loaded

    definition, offered = connection.definition, connection.offered
    size = session.tools_of(connection.name)
    lines = [
        f"{connection.name}: {_state(connection)}",
        f"Runs: {definition.line}",
        f"From: {definition.origin} ({definition.scope})",
    ]
    if offered.title:
        lines.append(f"Title: {offered.title}")
    if definition.env:
        lines.append(f"Variables: {', '.join(definition.env)}")
    note = f"{_withheld(size)} (tool_search finds them)" if size.withheld else ""
    lines.append(f"{plural(size.count, 'tool')}{note}, {_tokens(size)} tokens in each request")
    if servers.left_out.get(connection.name):
        changed = ", ".join(servers.left_out[connection.name])
        lines.append(
            f"Left out because their descriptions changed: {changed} (/mcp reconnect {connection.name} asks again)"
        )
    if offered.prompts:
        lines.append(f"Prompts: {', '.join(f'/mcp__{connection.name}__{prompt.name}' for prompt in offered.prompts)}")
    if offered.resources:
        shown = ", ".join(f"@{connection.name}:{resource.uri}" for resource in offered.resources[:10])
        lines.append(f"Resources: {shown}{' …' if len(offered.resources) > 10 else ''}")
    if connection.log.path is not None:
        lines.append(f"Log: {connection.log.path}")
    rows = [
        (
            tool.name,
            "reads" if _reads(tool) else "may change things",
            cut((tool.description or "").strip().split("\n")[0], 80),
        )
        for tool in offered.tools
    ]
    if offered.resources:
        rows.append((READ_RESOURCE, "reads", "Added by swecli: gives the model this server's resources"))
    blocks: list[DisplayBlock] = [TextBlock("\n".join(lines))]
    if rows:
        blocks.append(TableBlock(("Tool", "Declared access", "Description"), tuple(rows)))
    return blocks


def _reads(tool: object) -> bool:
    return getattr(getattr(tool, "annotations", None), "read_only_hint", None) is True


def _words(session: Session) -> Iterable[Word]:
    servers = _servers(session)
    for name, connection in servers.connections.items() if servers is not None else ():
        yield Word(name, _state(connection))
        for verb in _WITH_NAME:
            yield Word(f"{verb} {name}")


MCP = SlashCommand(
    "mcp",
    "Show MCP servers, their tools and token cost; enable, disable, reconnect",
    _run_mcp,
    arguments="[NAME | enable|disable|reconnect|login|log NAME]",
    words=_words,
    shows_tools=True,
)
