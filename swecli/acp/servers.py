"""The MCP servers that an editor gives a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from swecli.acp.words import one_line
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.mcp.definitions import ServerDefinition

Given = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
ORIGIN = "the editor"
_TWO = lazy_pattern(r"_{2,}")
_UNUSABLE = lazy_pattern(r"[^A-Za-z0-9_.-]+")


def definitions_of(servers: Sequence[Given]) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The given servers as definitions, and a sentence for each unusable one. Names are converted to the form of tool
    names."""
    from swecli.core.mcp.definitions import ServerDefinition

    definitions: list[ServerDefinition] = []
    problems: list[str] = []
    for server in servers:
        name = _UNUSABLE.sub("-", server.name).strip("-._")[:64]
        name = _TWO.sub("_", name)  # which separate server and tool in rules
        match server:
            case _ if not name:
                problems.append(f"Ignored the editor's MCP server {one_line(server.name)!r}: its name is not usable.")
            case McpServerStdio():
                env = {each.name: each.value for each in server.env}
                definitions.append(
                    ServerDefinition(
                        name, "stdio", server.command, tuple(server.args), env, origin=ORIGIN, scope="user"
                    )
                )
            case HttpMcpServer() | SseMcpServer():
                headers = {each.name: each.value for each in server.headers}
                kind = "http" if isinstance(server, HttpMcpServer) else "sse"
                definitions.append(
                    ServerDefinition(name, kind, url=server.url, headers=headers, origin=ORIGIN, scope="user")
                )
            case _:
                problems.append(f"Ignored MCP server {one_line(server.name)}: only the editor can reach it.")
    return tuple(definitions), tuple(problems)
