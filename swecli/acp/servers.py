"""MCP servers that the editor hands over with a session. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from swecli.acp.words import one_line
from swecli.core.mcp.definitions import ServerDefinition

Given = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio
ORIGIN = "the editor"
_UNUSABLE = re.compile(r"[^A-Za-z0-9_.-]+")


def definitions_of(servers: Sequence[Given]) -> tuple[tuple[ServerDefinition, ...], tuple[str, ...]]:
    """The servers as swecli knows them, and a sentence for each that can't be used. Names get the form that names of
    tools have."""
    found: list[ServerDefinition] = []
    problems: list[str] = []
    for one in servers:
        name = _UNUSABLE.sub("-", one.name).strip("-._")[:64]
        match one:
            case _ if not name:
                problems.append(f"MCP server {one_line(one.name)!r} of the editor has no usable name and is ignored.")
            case McpServerStdio():
                env = {each.name: each.value for each in one.env}
                found.append(
                    ServerDefinition(name, "stdio", one.command, tuple(one.args), env, origin=ORIGIN, scope="user")
                )
            case HttpMcpServer() | SseMcpServer():
                headers = {each.name: each.value for each in one.headers}
                kind = "http" if isinstance(one, HttpMcpServer) else "sse"
                found.append(ServerDefinition(name, kind, url=one.url, headers=headers, origin=ORIGIN, scope="user"))
            case _:
                problems.append(
                    f"MCP server {one_line(one.name)} is one that only the editor can reach; it is ignored."
                )
    return tuple(found), tuple(problems)
