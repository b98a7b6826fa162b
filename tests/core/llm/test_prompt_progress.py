"""A local server that tells how much of a prompt it has read, and one that works on other requests first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import Finished, ModelInfo, ModelRequest, PromptRead, StreamEvent
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import PromptProgress
from tests.core.engine.support import bench, until
from tests.core.llm.raw_server import head, say, serve
from tests.core.llm.test_client import REQUEST


def chunk(**changes: Any) -> bytes:
    start = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}]}
    return f"data: {json.dumps({**start, 'model': 'm', **changes})}\n\n".encode()


def progress(read: int, total: int) -> bytes:
    return chunk(prompt_progress={"total": total, "cache": 0, "processed": read, "time_ms": 5})


TEXT = chunk(choices=[{"index": 0, "delta": {"content": "hi"}}])
END = chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
ANSWER = say(head(), progress(0, 90), progress(64, 90), progress(90, 90), TEXT, END, b"data: [DONE]\n\n")


async def test_progress_is_asked_for_where_it_is_known_and_read() -> None:
    async with serve(ANSWER, ANSWER) as server:
        client = HttpModelClient(resolve("mine/m", {}, [ProviderConfig("mine", "openai-chat", server.url, local=True)]))
        events = [event async for event in client.stream(REQUEST)]
        client.know(replace(client.info, tells_progress=True))
        events = [event async for event in client.stream(REQUEST)]
        await client.close()
    assert ["return_progress" in request.body for request in server.requests] == [False, True]
    reads = [(event.read, event.total) for event in events if isinstance(event, PromptRead)]
    assert reads == [(0, 90), (64, 90), (90, 90)]
    assert isinstance(events[-1], Finished)
    assert events[-1].message.text == "hi"


class Busy:
    """A server that begins with a request once ``free`` is set."""

    def __init__(self) -> None:
        self.scripted = ScriptedModel(parse_script('[[step]]\ntext = "one"\n[[step]]\ntext = "two"'))
        self.info: ModelInfo = replace(self.scripted.info, tells_progress=True)
        self.free = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        await self.free.wait()
        yield PromptRead(10, 90)
        async for event in self.scripted.stream(request):
            yield event

    async def close(self) -> None:
        await self.scripted.close()


async def test_a_server_that_works_on_other_requests_is_named_until_it_begins(tmp_path: Path) -> None:
    server = Busy()
    async with bench("", tmp_path, make_client=lambda _: server) as b:
        b.send(Submit("hi"))
        await until(lambda: b.bodies(PromptProgress) == [PromptProgress()], "the wait")
        server.free.set()
        await b.idle()
        assert b.bodies(PromptProgress) == [PromptProgress(), PromptProgress(10, 90)]
        assert not any(isinstance(event.body, PromptProgress) for event in b.facts)
