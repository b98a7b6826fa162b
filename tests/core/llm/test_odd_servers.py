"""A server that lists thousands of models, none, or rubbish: an answer in bounded time, with a line that says why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from swecli.core.llm.servers import Endpoint, list_models

MANY = json.dumps({"object": "list", "data": [{"id": f"m-{n}", "object": "model"} for n in range(3_000)]}).encode()


@asynccontextmanager
async def serving(status: int, body: bytes | None) -> AsyncIterator[str]:
    """A server that gives one answer to everything; None: it closes the connection, and with status 0 says nothing."""
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if body is not None:
            head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        elif status == 0:
            await ended.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        ended.set()
        server.close()


@pytest.mark.parametrize(
    ("status", "body", "count", "problem"),
    [
        (200, MANY, 3_000, ""),
        (200, b'{"object": "list", "data": []}', 0, ""),
        (200, b"<html>hello</html>", 0, "not JSON"),
        (200, b'[1, {"x": 2}]', 0, ""),
        (200, b'{"data": [{"id": 5}, null, "x"]}', 0, ""),
        (500, b"oops", 0, "status 500"),
        (200, None, 0, "broke"),
        (0, None, 0, "no answer"),
    ],
)
async def test_every_answer_is_a_list_or_a_reason(status: int, body: bytes | None, count: int, problem: str) -> None:
    async with serving(status, body) as address:
        found = await list_models(Endpoint("openai-chat", address), 30.0 if status else 0.05)
    assert len(found.models) == count
    assert problem in found.problem
    assert bool(found.problem) == bool(problem)  # a list of nothing is an answer
