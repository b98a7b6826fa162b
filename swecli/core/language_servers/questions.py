"""The model's questions to a server (where a name is defined and used, what a file contains), and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from swecli.core.language_servers.definitions import CodeError, CodePlace, CodeQuestion
from swecli.core.language_servers.peer import Refused, ServerEnded
from swecli.core.language_servers.project_server import ProjectServer
from swecli.core.language_servers.protocol import (
    column_of,
    kind_name,
    lines_of,
    path_of,
    read_json,
    start_of,
    units,
    uri_of,
)
from swecli.core.language_servers.server import ANSWER_SECONDS, RunningServer
from swecli.core.llm.json_values import as_list, as_object, is_list
from swecli.core.workspace.command_output import as_read

READY_SECONDS: Final = 20.0
"""Seconds that a question waits for a server to start and read the project."""
MOST_PLACES: Final = 2_000


async def ask(
    server: ProjectServer, what: CodeQuestion, path: Path, text: str, line: int, column: int
) -> Sequence[CodePlace]:
    """The answer about a file with this text.

    Raises:
        CodeError: there is no answer.
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
        return _symbols(answer, path, lines, 0)
    params["position"] = {"line": line - 1, "character": units(lines[line - 1][:column])}
    if what == "definition":
        return _places(await _answer(run, "textDocument/definition", "definitionProvider", params))
    params["context"] = {"includeDeclaration": True}
    references = _places(await _answer(run, "textDocument/references", "referencesProvider", params))
    return sorted(references, key=lambda reference: (str(reference.path), reference.line))


async def search(server: ProjectServer, query: str) -> Sequence[CodePlace]:
    """Names in the server's project.

    Raises:
        CodeError: there is no answer.
    """
    run = await _ready(server)
    return _named(await _answer(run, "workspace/symbol", "workspaceSymbolProvider", {"query": query}))


async def _ready(server: ProjectServer) -> RunningServer:
    try:
        async with asyncio.timeout(READY_SECONDS):
            run = await server.running()
            await server.notify_changes(run)
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
        raise CodeError(f"{name} refused: {_words(error)}") from error
    except ServerEnded as error:
        raise CodeError(f"{name}: {error}") from error
    except TimeoutError as error:
        raise CodeError(f"{name} did not answer within {ANSWER_SECONDS:.0f} s; search the text instead") from error


def _words(value: object) -> str:
    """A server's text on one line, as people see it."""
    return " ".join(as_read(str(value or "")).split())[:200]


def _place(value: Any) -> CodePlace | None:
    """From a Location, or a LocationLink, which uses other field names."""
    location = as_object(value)
    path = path_of(location.get("uri", location.get("targetUri")))
    start = start_of(location.get("range", location.get("targetSelectionRange", location.get("targetRange"))))
    if path is None:
        return None
    return CodePlace(path, start[0] + 1 if start is not None else 1)


def _places(answer: Any) -> tuple[CodePlace, ...]:
    each = answer if is_list(answer) else [answer]
    locations = (_place(item) for item in each[:MOST_PLACES])
    return tuple(dict.fromkeys(location for location in locations if location is not None))


def _symbols(answer: Any, path: Path, lines: Sequence[str], depth: int) -> list[CodePlace]:
    """The outline from a server: nested, or a list with container names."""
    symbols: list[CodePlace] = []
    for item in as_list(answer)[:MOST_PLACES]:
        entry = as_object(item)
        start = start_of(entry.get("selectionRange", entry.get("range", as_object(entry.get("location")).get("range"))))
        if start is None or depth > 20:
            continue
        name = _words(entry.get("name", ""))
        column = column_of(lines[start[0]], start[1]) if start[0] < len(lines) else 0
        within = "" if "selectionRange" in entry else _words(entry.get("containerName"))
        symbols.append(CodePlace(path, start[0] + 1, name, kind_name(entry.get("kind")), depth, within, column))
        symbols += _symbols(entry.get("children"), path, lines, depth + 1)
    return symbols[:MOST_PLACES]


def _named(answer: Any) -> list[CodePlace]:
    """Symbols of a project with their places."""
    symbols: list[CodePlace] = []
    for item in as_list(answer)[:MOST_PLACES]:
        entry = as_object(item)
        where = _place(entry.get("location"))
        if where is not None:
            name, within = _words(entry.get("name", "")), _words(entry.get("containerName"))
            symbols.append(CodePlace(where.path, where.line, name, kind_name(entry.get("kind")), 0, within))
    return symbols
