"""A session with MCP servers that run as programs."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from swecli.core.mcp.connection import Place
from swecli.core.mcp.definitions import Scope, ServerDefinition
from swecli.core.mcp.servers import Decisions, McpServers, Setup
from swecli.core.permissions.types import Policy, Rule
from tests.core.engine.support import Bench, bench
from tests.support.waiting import PATIENCE

SERVER = Path(__file__).with_name("unkind_server.py")
SDK_SERVER = Path(__file__).with_name("sdk_server.py")
ALLOWED = Policy(rules=(Rule("allow", "mcp__hub", "user"),))
TEXT = '[[step]]\ntext = "done"\n'


def unkind(
    *ways: str, name: str = "hub", scope: Scope = "user", server: Path = SERVER, **changes: Any
) -> ServerDefinition:
    words = (str(server), *ways)
    changes = {"start_timeout": PATIENCE, "call_timeout": PATIENCE, **changes}
    return ServerDefinition(name, "stdio", sys.executable, words, origin=".mcp.json", scope=scope, **changes)


def call(tool: str, arguments: str = "{}") -> str:
    return f"[[step]]\n[[step.call]]\ntool = 'mcp__hub__{tool}'\narguments = '''{arguments}'''\n"


def servers_of(
    cwd: Path, definitions: Sequence[ServerDefinition], decisions: Decisions | None = None, logs: Path | None = None
) -> McpServers:
    place = Place({"PATH": os.environ["PATH"]}, os.environ, cwd, (cwd,))
    return McpServers(Setup(tuple(definitions), place, decisions or Decisions(None), (), logs))


@asynccontextmanager
async def served(
    script: str,
    cwd: Path,
    *definitions: ServerDefinition,
    decisions: Decisions | None = None,
    logs: Path | None = None,
    **changes: Any,
) -> AsyncIterator[tuple[Bench, McpServers]]:
    servers = servers_of(cwd, definitions, decisions, logs)
    changes = {"policy": ALLOWED, **changes}
    async with bench(script, cwd, extensions=(servers,), **changes) as made:
        yield made, servers
