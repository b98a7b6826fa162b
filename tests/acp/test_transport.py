"""What comes over the wire, message or not."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from swecli.acp.transport import BadMessage, StdioTransport, parse
from swecli.output import Output, Writer


class Wire:
    """A transport over pipes; ``written`` is what the client has got."""

    def __init__(self) -> None:
        source, self.sink = os.pipe()
        self.output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        self.log: list[str] = []
        writer = Writer()
        self.writer = writer
        self.transport = StdioTransport(os.fdopen(source, "rb"), Output(self.output, writer), writer, self.log.append)

    def send(self, *lines: bytes) -> None:
        os.write(self.sink, b"".join(line + b"\n" for line in lines))

    async def written(self) -> list[dict[str, Any]]:
        await self.writer.settled()
        raw = self.output.buffer
        assert isinstance(raw, io.BytesIO)
        return [json.loads(line) for line in raw.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe\xfd", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b"5", -32600, None),
        (b"null", -32600, None),
        (b'{"jsonrpc": "2.0"}', -32600, None),
        (b'{"id": [1], "method": "x"}', -32600, None),
        (b'{"id": true, "method": "x"}', -32600, None),
        (b'{"id": 3, "method": ["x"]}', -32600, 3),
    ],
)
def test_what_is_no_message(line: bytes, code: int, request_id: object) -> None:
    with pytest.raises(BadMessage) as refused:
        parse(line)
    assert (refused.value.code, refused.value.id) == (code, request_id)


def test_an_error_that_is_no_object_becomes_one() -> None:
    assert parse(b'{"id": 1, "error": "boo"}')["error"]["message"] == "boo"


async def test_bad_lines_are_answered_and_the_next_one_is_read() -> None:
    wire = Wire()
    wire.send(b"{", b"", b'{"method": "nobody/knows"}', b'{"id": 1, "method": "initialize"}')
    assert await wire.transport.receive() == {"id": 1, "method": "initialize"}
    (answer,) = await wire.written()
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert any("nobody/knows" in line for line in wire.log)
    os.close(wire.sink)
    assert await wire.transport.receive() is None


async def test_cancelling_the_request_of_a_prompt_cancels_its_session() -> None:
    wire = Wire()
    prompt = {"id": 7, "method": "session/prompt", "params": {"sessionId": "s1", "prompt": []}}
    wire.send(json.dumps(prompt).encode())
    assert await wire.transport.receive() == prompt
    wire.send(
        b'{"method": "$/cancel_request", "params": {"requestId": 99}}',
        b'{"method": "$/cancel_request", "params": {"requestId": 7}}',
    )
    cancel = await wire.transport.receive()
    assert cancel is not None
    assert (cancel["method"], cancel["params"]) == ("session/cancel", {"sessionId": "s1"})
    await wire.transport.send({"jsonrpc": "2.0", "id": 7, "result": {}})
    wire.send(b'{"method": "$/cancel_request", "params": {"requestId": 7}}', b'{"id": 8, "method": "x"}')
    assert await wire.transport.receive() == {"id": 8, "method": "x"}
    os.close(wire.sink)


async def test_deleting_a_session_reaches_the_agent() -> None:
    wire = Wire()
    wire.send(b'{"id": 3, "method": "session/delete", "params": {"sessionId": "s1"}}')
    message = await wire.transport.receive()
    assert message == {"id": 3, "method": "_session/delete", "params": {"sessionId": "s1"}}
    os.close(wire.sink)


async def test_a_question_that_was_settled_otherwise_is_withdrawn() -> None:
    wire = Wire()

    async def ask(then: Callable[[], None]) -> None:
        await wire.transport.send({"jsonrpc": "2.0", "id": 4, "method": "session/request_permission"})
        then()

    await asyncio.create_task(ask(wire.transport.withdraw))
    assert (await wire.written())[-1] == {
        "jsonrpc": "2.0",
        "method": "$/cancel_request",
        "params": {"requestId": 4},
    }
    wire.transport.withdraw()
    assert len(await wire.written()) == 2
    os.close(wire.sink)


async def test_text_that_is_no_unicode_is_replaced() -> None:
    wire = Wire()
    await wire.transport.send({"method": "m", "params": {"text": "a\ud800b\u2028é"}})
    assert (await wire.written())[0]["params"]["text"] == "a\ufffdb\u2028é"
    os.close(wire.sink)
