"""What the model asks a server: where a name is defined and used, and what a file contains."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from swecli.core.language_servers.answers import named, places, symbols
from swecli.core.language_servers.peer import Refused, ServerEnded
from swecli.core.language_servers.project_server import ProjectServer
from swecli.core.language_servers.protocol import lines_of, read_json, units, uri_of
from swecli.core.language_servers.server import ANSWER_SECONDS, RunningServer
from swecli.core.ports import CodeError, CodePlace, CodeQuestion

PATIENCE: Final = 20.0
"""Seconds that a question waits for a server to start and to read the project."""


async def ask(
    server: ProjectServer, what: CodeQuestion, path: Path, text: str, line: int, column: int
) -> Sequence[CodePlace]:
    """The answer about a file with this text.

    Raises:
        CodeError: there is none.
    """
    lines = lines_of(text)
    if not 1 <= line <= len(lines):
        raise CodeError(f"the file has {len(lines)} lines")
    run = await _ready(server)
    try:
        await server.show(run, path, text)
    except ServerEnded as error:
        raise CodeError(f"{server.name}: {error}") from error
    params: dict[str, Any] = {"textDocument": {"uri": uri_of(path)}}
    if what == "outline":
        answer = await _answer(run, "textDocument/documentSymbol", "documentSymbolProvider", params)
        return symbols(answer, path, lines, 0)
    params["position"] = {"line": line - 1, "character": units(lines[line - 1][:column])}
    if what == "definition":
        return places(await _answer(run, "textDocument/definition", "definitionProvider", params))
    params["context"] = {"includeDeclaration": True}
    found = places(await _answer(run, "textDocument/references", "referencesProvider", params))
    return sorted(found, key=lambda one: (str(one.path), one.line))


async def search(server: ProjectServer, query: str) -> Sequence[CodePlace]:
    """Names of the server's project.

    Raises:
        CodeError: there is no answer.
    """
    run = await _ready(server)
    return named(await _answer(run, "workspace/symbol", "workspaceSymbolProvider", {"query": query}))


async def _ready(server: ProjectServer) -> RunningServer:
    try:
        async with asyncio.timeout(PATIENCE):
            run = await server.running()
            await server.told_changes(run)
            await run.ready()
    except ServerEnded as error:
        raise CodeError(f"{server.name}: {error}") from error
    except TimeoutError as error:
        doing = f" ({server.doing})" if server.doing else ""
        raise CodeError(
            f"{server.name} is not ready yet{doing}; search the text instead, or ask again later"
        ) from error
    return run


async def _answer(run: RunningServer, method: str, capability: str, params: Mapping[str, Any]) -> Any:
    name = run.definition.name
    if not run.offers(method, capability):
        raise CodeError(f"{name} does not answer this; search the text instead")
    try:
        return read_json(await run.peer.request(method, params, ANSWER_SECONDS))
    except Refused as error:
        raise CodeError(f"{name} refused: {error}") from error
    except ServerEnded as error:
        raise CodeError(f"{name}: {error}") from error
    except TimeoutError as error:
        raise CodeError(f"{name} did not answer in {ANSWER_SECONDS:.0f} s; search the text instead") from error
