"""A local server that tells how much of a prompt it has read, and one that works on earlier requests first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.model_listings import read_props
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    PromptRead,
    ProviderError,
    StreamEvent,
)
from swecli.core.llm.windows import model_info
from swecli.core.protocol.commands import Interrupt, Submit
from swecli.core.protocol.events import PromptProgress, TurnEnded
from tests.core.engine.support import bench, until
from tests.core.llm.raw_server import head, say, serve
from tests.core.llm.test_client import REQUEST
from tests.support.json_server import Reply, serve_json


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
        client.compatibility.know(replace(client.info, tells_progress=True))
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


class OfSlots(Busy):
    """One that tells how many of its slots work, and how many it has."""

    def __init__(self, slots: tuple[int, int] | None) -> None:
        super().__init__()
        self.slots = slots
        self.asked = asyncio.Event()

    async def busy_slots(self) -> tuple[int, int] | None:
        self.asked.set()
        return self.slots


@pytest.mark.parametrize(
    ("server", "wait"),
    [(Busy(), PromptProgress()), (OfSlots(None), PromptProgress()), (OfSlots((4, 4)), PromptProgress(slots=4))],
)
async def test_a_server_that_works_on_earlier_requests_is_named_until_it_begins(
    tmp_path: Path, server: Busy, wait: PromptProgress
) -> None:
    async with bench("", tmp_path, make_client=lambda _: server) as b:
        b.send(Submit("hi"))
        await until(lambda: b.bodies(PromptProgress) == [wait], "the wait")
        server.free.set()
        await b.idle()
        assert b.bodies(PromptProgress) == [wait, PromptProgress(10, 90)]
        assert not any(isinstance(event.body, PromptProgress) for event in b.facts)


async def test_a_server_with_a_free_slot_is_not_said_to_work_on_earlier_requests(tmp_path: Path) -> None:
    server = OfSlots((1, 2))
    async with bench("", tmp_path, make_client=lambda _: server) as b:
        b.send(Submit("hi"))
        await server.asked.wait()
        server.free.set()
        await b.idle()
        assert b.bodies(PromptProgress) == [PromptProgress(10, 90)]


class Restarting(Busy):
    """Still loads its model at the first attempt; at the second it reads the prompt and says nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.attempts += 1
        if self.attempts == 1:
            yield Failed(ProviderError("overloaded", "Loading model", status=503))
            return
        yield PromptRead(0, 90)
        await self.free.wait()


async def test_an_interrupt_while_the_prompt_is_read_does_not_blame_the_attempt_before(tmp_path: Path) -> None:
    async with bench("", tmp_path, make_client=lambda _: Restarting()) as b:
        b.send(Submit("hi"))
        await until(lambda: bool(b.bodies(PromptProgress)), "the second attempt")
        b.send(Interrupt())
        await b.idle()
        assert "Loading model" not in b.bodies(TurnEnded)[-1].reason


SLOT = {"id": 0, "n_ctx": 8192, "is_processing": True, "id_task": 183}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([SLOT], (1, 1)),
        ([SLOT, {**SLOT, "is_processing": False}], (1, 2)),
        ([], None),
        ({"error": {"code": 501, "message": "This server does not support slots endpoint."}}, None),
        (Reply(b"[", 200), None),
        (Reply(b"", 503), None),
    ],
)
async def test_slots_are_read_where_the_server_has_them(answer: Any, told: tuple[int, int] | None) -> None:
    async with serve_json({"/slots": answer}) as server:
        client = HttpModelClient(resolve("mine/m", {}, [ProviderConfig("mine", "openai-chat", server.url, local=True)]))
        assert await client.busy_slots() is None
        assert server.paths == []
        client.compatibility.know(replace(client.info, tells_slots=True))
        assert await client.busy_slots() == told
        await client.close()


def test_props_name_the_slots() -> None:
    props = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1, "endpoint_slots": True}
    for told, known in ((props, True), ({**props, "endpoint_slots": False}, False)):
        described = read_props(told, "/props")
        assert described is not None
        assert described.slots is known
        assert model_info("llamacpp", "m", local=True, asked=described).tells_slots is known
