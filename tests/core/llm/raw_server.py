"""A server on 127.0.0.1 whose answers are bytes: for what no decent server would do."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class RawServer:
    url: str
    requests: list[Received] = field(default_factory=list)
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client went away before the answer was over."""


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def head(status: int = 200, content_type: str = "text/event-stream", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def say(*pieces: bytes) -> Answer:
    """Write the pieces one by one, then close."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return answer


@asynccontextmanager
async def serve(*answers: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Give the answers in turn, the last one for ever."""
    waiting = list(answers)
    closing = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            received = await _read(reader)
            server.requests.append(received)
            answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            gone = asyncio.ensure_future(reader.read())
            speaking = asyncio.ensure_future(answer(writer))
            over = asyncio.ensure_future(closing.wait())
            done, rest = await asyncio.wait({gone, speaking, over}, return_when=asyncio.FIRST_COMPLETED)
            if speaking not in done:
                server.disconnected.set()
            for future in rest:
                future.cancel()
            await asyncio.gather(gone, speaking, over, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            server.disconnected.set()
        finally:
            writer.close()
            tasks.discard(task)

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    port = listener.sockets[0].getsockname()[1]
    server = RawServer(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
    try:
        yield server
    finally:
        listener.close()
        closing.set()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Received:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(lines[0].split()[1], headers, json.loads(body or b"{}"))
