"""Answers in Chat Completions whose server forgets the marks of the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import ProviderConfig, resolve
from swecli.core.llm.types import Failed, Finished
from tests.core.llm.histories import TOOL, request, user
from tests.core.llm.raw_server import head, say, serve


def piece(call: dict[str, Any]) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': {'tool_calls': [call]}, 'finish_reason': None}]})}\n\n".encode()


FIRST = piece({"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"path":'}})
REST = piece({"index": 0, "function": {"arguments": ' "a"}'}})
EMPTY = piece({"index": 1, "id": "c2", "function": {"name": "read", "arguments": "{}"}})
SAID = b'data: {"choices": [{"delta": {"content": "So"}}]}\n\n'


@pytest.mark.parametrize(
    ("body", "told", "whole"),
    [
        (FIRST + REST, True, True),
        (FIRST + REST, False, False),
        (FIRST, True, False),
        (FIRST + REST + EMPTY, True, False),
        (FIRST + REST + SAID, True, False),
        (FIRST + REST + b'data: {"cho', True, False),
        (FIRST + REST + b'data: {"code": 500, "message": "worker died"}\n\n', True, False),
        (SAID, True, False),
    ],
)
async def test_whole_calls_at_a_proper_end_of_the_body_need_no_end_mark(body: bytes, told: bool, whole: bool) -> None:
    """Without a length, an end may as well be a broken connection."""
    opening = head(content_length=str(len(body))) if told else head()
    async with serve(say(opening, body)) as server:
        mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
        client = HttpModelClient(resolve("mine/m", {}, [mine]))
        last = [event async for event in client.stream(request(user("look"), tools=(TOOL,)))][-1]
        await client.close()
    assert isinstance(last, Finished) == whole
    if isinstance(last, Finished):
        assert [call.arguments for call in last.message.tool_calls] == ['{"path": "a"}']
        assert last.message.response is not None
        assert (last.message.response.complete, last.message.response.stop.kind) == (True, "tool_use")


async def test_a_body_that_is_shorter_than_announced_is_cut() -> None:
    async with serve(say(head(content_length="9999"), FIRST + REST)) as server:
        mine = ProviderConfig("mine", "openai-chat", server.url, local=True)
        client = HttpModelClient(resolve("mine/m", {}, [mine]))
        last = [event async for event in client.stream(request(user("look"), tools=(TOOL,)))][-1]
        await client.close()
    assert isinstance(last, Failed)
