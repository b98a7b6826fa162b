"""Counting with the tokenizer of a local server: exact, once for each message, and never trusted blindly."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.messages import Message, TextPart
from tests.support.json_server import JsonServer, serve_json

TEXT = "a line of a file\n" * 50
MESSAGES = (Message("user", (TextPart(TEXT),), "u"),)


def client_at(server: JsonServer) -> HttpModelClient:
    client = HttpModelClient(resolve("mine/m", {}, [ProviderConfig("mine", "openai-chat", server.url, local=True)]))
    client.compatibility.know(replace(client.info, window=8_192, tells_progress=True))
    return client


def size(monitor: TokenMonitor, client: HttpModelClient) -> int:
    return monitor.measure(ModelRequest((), (), MESSAGES), Limits(), client.info).used


async def test_a_message_counts_as_the_server_counts_it_and_only_once() -> None:
    async with serve_json({"/tokenize": {"tokens": [1] * 400}}) as server:
        client, monitor = client_at(server), TokenMonitor()
        for _ in range(2):
            await monitor.count_at_server(MESSAGES, client)
        await client.close()
    assert 400 <= size(monitor, client) <= 410
    assert server.paths == ["/tokenize"]


@pytest.mark.parametrize("answer", [{}, {"tokens": []}, {"tokens": [1] * 9_000}, [], {"tokens": "x"}])
async def test_a_count_that_makes_no_sense_changes_nothing(answer: Any) -> None:
    async with serve_json({"/tokenize": answer}) as server:
        client, monitor = client_at(server), TokenMonitor()
        before = size(monitor, client)
        await monitor.count_at_server(MESSAGES, client)
        await client.close()
    assert size(monitor, client) == before


async def test_a_server_without_a_tokenizer_is_not_asked() -> None:
    async with serve_json({}) as server:
        client = client_at(server)
        client.compatibility.know(replace(client.info, tells_progress=False))
        await TokenMonitor().count_at_server(MESSAGES, client)
        await client.close()
    assert server.paths == []
