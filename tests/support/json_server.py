"""A small server on 127.0.0.1 that answers paths with fixed documents, and can be as broken as needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What a path answers with. ``stall`` never answers, ``drop`` closes without a word; ``length`` lies about the
    size of the body."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    stall: bool = False
    drop: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class JsonServer:
    """``routes`` maps a path, without its query, to a ``Reply`` or to a JSON value; a tuple of replies is given in
    turn, the last one from then on."""

    routes: dict[str, Any]
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first request."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.asked]


@asynccontextmanager
async def serve_json(routes: Mapping[str, Any]) -> AsyncIterator[JsonServer]:
    """Serve until the block ends; unknown paths are 404."""
    server = JsonServer(dict(routes))
    tasks: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while (request := await read_request(reader)) is not None:
                server.asked.append(request)
                server.reached.set()
                path = request.path.partition("?")[0]
                route = server.routes.get(path)
                if isinstance(route, tuple):
                    earlier = sum(before.partition("?")[0] == path for before in server.paths) - 1
                    route = route[min(earlier, len(route) - 1)]
                reply = _reply(route)
                if reply.drop:
                    return
                if reply.stall:
                    await reader.read()
                    return
                await _write(writer, reply)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            tasks.discard(task)
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _reply(value: Any) -> Reply:
    if value is None:
        return Reply(b'{"error":"not found"}', 404)
    return value if isinstance(value, Reply) else Reply(json.dumps(value).encode())


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The next request of a connection; None when it has ended."""
    first = await reader.readline()
    if not first.strip():
        return None
    method, path, _ = first.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while line := (await reader.readline()).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    length = len(reply.body) if reply.length is None else reply.length
    lines = [f"HTTP/1.1 {reply.status} X", f"content-type: {reply.content_type}", f"content-length: {length}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + reply.body)
    await writer.drain()
    if length != len(reply.body):
        raise ConnectionError("the body is shorter than it says")
