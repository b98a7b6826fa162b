"""The client against a server on this machine that behaves in every way a server can."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.engine.turn_ends import ended_by
from swecli.core.llm.addresses import normalise
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.transport import Timeouts
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelRequest,
    ProviderError,
    StreamEvent,
    StreamNotice,
    TextDelta,
    ToolSchema,
    UsageUpdate,
)
from swecli.core.protocol.events import ANSWER_CUT
from swecli.core.protocol.messages import Message, TextPart, ToolCallPart, ToolResultPart
from tests.core.llm.raw_server import Answer, RawServer, head, say, serve
from tests.core.llm.wire_cases import find_case
from tests.support.waiting import PATIENCE, at_some_pace

HELLO = find_case("openai-chat", "text").body
CALL = find_case("openai-chat", "tool-streamed").body
REQUEST = ModelRequest((), (), (Message("user", (TextPart("hi"),)),), max_output_tokens=10)
PATIENT = Timeouts(connect=PATIENCE, first=PATIENCE, idle=PATIENCE)
QUICK = Timeouts(connect=PATIENCE, first=0.15, idle=0.15)


@asynccontextmanager
async def client_of(
    url: str, model: str = "openai/gpt-x", timeouts: Timeouts = PATIENT
) -> AsyncIterator[HttpModelClient]:
    env = {"OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url, "OPENAI_API_KEY": "sk-secret"}
    config = resolve(model, env, overrides=Overrides(timeouts=timeouts))
    client = HttpModelClient(config)
    try:
        yield client
    finally:
        await client.close()


async def ask(*answers: Answer, timeouts: Timeouts | None = None) -> tuple[list[StreamEvent], RawServer]:
    async with serve(*answers) as server, client_of(server.url, timeouts=timeouts or PATIENT) as client:
        async with asyncio.timeout(PATIENCE):
            return [event async for event in client.stream(REQUEST)], server


async def failure(*answers: Answer, timeouts: Timeouts | None = None) -> tuple[ProviderError, Message | None]:
    events, _ = await ask(*answers, timeouts=timeouts)
    last = events[-1]
    assert isinstance(last, Failed)
    assert not any(isinstance(event, Finished) for event in events)
    if last.message is not None:
        assert last.message.response is not None
        assert not last.message.response.complete
    return last.error, last.message


def written_in(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def text_of(events: list[StreamEvent]) -> str:
    last = events[-1]
    assert isinstance(last, Finished), last
    return last.message.text


async def test_an_answer() -> None:
    events, server = await ask(say(head(), HELLO))
    assert text_of(events) == "Hello"
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel", "lo"]
    received = server.requests[0]
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == "Bearer sk-secret"
    assert received.body["messages"] == [{"role": "user", "content": "hi"}]


async def test_slow_bytes() -> None:
    events, _ = await ask(say(head(), *(HELLO[i : i + 1] for i in range(len(HELLO)))))
    assert text_of(events) == "Hello"


async def test_a_second_request_uses_the_same_client() -> None:
    async with serve(say(head(), HELLO)) as server, client_of(server.url) as client:
        for _ in range(2):
            assert text_of([event async for event in client.stream(REQUEST)]) == "Hello"
        assert len(server.requests) == 2
        assert server.requests[0].body == server.requests[1].body


async def test_close_without_terminal_event() -> None:
    error, message = await failure(say(head(), HELLO[: HELLO.index(b'"lo"')]))
    assert error.kind == "truncated"
    assert error.retryable
    assert error.hint == "The partial answer is kept."
    assert message is not None
    assert message.text == "Hel"


async def test_close_before_any_byte_keeps_nothing_and_says_so() -> None:
    error, message = await failure(say(head()))
    assert (error.kind, message) == ("truncated", None)
    assert error.hint == "No part of the answer had arrived."


async def test_broken_connection_keeps_what_came() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(transfer_encoding="chunked") + b"%x\r\n" % len(CALL) + CALL[:400])
        await writer.drain()

    error, message = await failure(answer)
    assert (error.kind, error.unreached) == ("network", "")
    assert message is not None
    assert [call.name for call in message.tool_calls] == ["read"]


async def test_reset_before_the_head() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    error, message = await failure(answer)
    assert error.kind == "network"
    assert error.unreached.startswith("127.0.0.1:")
    assert "partial" not in error.hint
    assert message is None


async def test_web_page_instead_of_an_answer() -> None:
    page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>...</body></html>"
    error, _ = await failure(say(head(content_type="text/html"), page))
    assert error.kind == "protocol"
    assert "Sign in" in error.message
    assert "base URL" in error.hint


async def test_plain_text_instead_of_an_answer() -> None:
    error, _ = await failure(say(head(content_type="text/plain"), b"upstream connect error"))
    assert error.kind == "protocol"
    assert "upstream connect error" in error.message


async def test_lines_of_something_else_behind_the_label_of_events() -> None:
    error, _ = await failure(say(head(), b"upstream connect error\n"))
    assert error.kind == "protocol"


async def test_secret_reasoning_may_take_its_time() -> None:
    await at_some_pace(secret_reasoning, 0.1)


async def secret_reasoning(seconds: float) -> None:
    """A pause of three times the seconds in which something has to come."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        body = find_case("openai-responses", "reasoning-and-call").body
        cut = body.index(b"event: response.reasoning_summary_part.added")
        writer.write(head() + body[:cut])
        await writer.drain()
        await asyncio.sleep(3 * seconds)
        writer.write(body[cut:])

    env = {"OPENAI_API_KEY": "k"}
    async with serve(answer) as server:
        overrides = Overrides(server.url, "openai-responses", timeouts=Timeouts(first=PATIENCE, idle=seconds))
        client = HttpModelClient(resolve("openai/m", env, overrides=overrides))
        events = [event async for event in client.stream(REQUEST)]
        await client.close()
    assert isinstance(events[-1], Finished)


async def test_json_of_something_else() -> None:
    error, _ = await failure(say(head(content_type="application/json"), b'{"hello": "world"}'))
    assert error.kind == "protocol"


async def test_whole_answer_as_json() -> None:
    body = {
        "id": "c1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Hello",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                        {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
    events, _ = await ask(say(head(content_type="application/json"), json.dumps(body, indent=1).encode()))
    assert text_of(events) == "Hello"
    last = events[-1]
    assert isinstance(last, Finished)
    assert [call.call_id for call in last.message.tool_calls] == ["a", "b"]
    assert last.message.response is not None
    assert last.message.response.usage is not None
    assert last.message.response.usage.input_total == 3


@pytest.mark.parametrize("label", ["application/json", "text/event-stream"])
async def test_error_as_json_with_status_200(label: str) -> None:
    error, _ = await failure(
        say(head(content_type=label), b'{"error": {"message": "Rate limit reached", "code": 429}}')
    )
    assert error.kind == "rate_limit"


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [(401, "auth", "OPENAI_API_KEY"), (404, "not_found", "gpt-x"), (500, "server", "again"), (302, "protocol", "URL")],
)
async def test_statuses(status: int, kind: str, hint: str) -> None:
    error, message = await failure(say(head(status, "application/json"), b'{"error": {"message": "no"}}'))
    assert (error.kind, error.status) == (kind, status)
    assert hint in error.hint
    assert message is None
    assert "sk-secret" not in repr(error)


@pytest.mark.parametrize("status", [200, 401, 404])
async def test_a_password_in_the_address_is_in_no_message_and_no_file(status: int, tmp_path: Path) -> None:
    async with serve(say(head(status, "text/html"), b"<html>No")) as server:
        url = server.url.replace("http://", "http://me:hunter2secret@")
        config = resolve("openai/gpt-x", {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-secret"})
        client = HttpModelClient(config, ExchangeDump(tmp_path / "debug", []))
        events = [event async for event in client.stream(REQUEST)]
        await client.close()
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert server.url in failed.error.hint
    written = written_in(tmp_path)
    assert server.url in written
    for text in (repr(failed), repr(config), written):
        assert "hunter2" not in text


def test_a_password_in_a_wrong_address_is_not_in_the_error() -> None:
    for url in ("http://me:hunter2secret@127.0.0.1:99999/v1", "ftp://me:hunter2secret@host/", "me:hunter2secret@h:x"):
        with pytest.raises(ValueError, match=r"port|address") as raised:
            normalise(url, "openai-chat")
        assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "label", "before", "after"),
    [
        (400, "application/json", '{"error": {"message": "%s' % ("x" * 1_980), '"}}'),
        (200, "application/json", '{"msg": "%s' % ("x" * 280), '"}'),
        (200, "text/plain", "x" * 280, ""),
    ],
)
async def test_a_key_that_is_cut_with_its_error_is_masked_too(status: int, label: str, before: str, after: str) -> None:
    key = "sk-proj-SECRETSECRETSECRETSECRET"
    async with serve(say(head(status, label), f"{before}{key}{after}".encode())) as server:
        client = HttpModelClient(resolve("openai/gpt-x", {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": key}))
        events = [event async for event in client.stream(REQUEST)]
        await client.close()
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert "xxx" in failed.error.message
    assert "SECRET" not in repr(failed)


async def test_rate_limit_with_its_delay() -> None:
    error, _ = await failure(say(head(429, "application/json", retry_after="7"), b"{}"))
    assert (error.kind, error.retry_after) == ("rate_limit", 7.0)
    assert error.retryable


async def test_error_body_that_never_ends() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(500, "application/json", content_length="1000") + b'{"error": "half')
        await writer.drain()
        await asyncio.Event().wait()

    error, _ = await failure(answer, timeouts=Timeouts(error_body=0.1))
    assert error.kind == "server"


async def test_refused_connection() -> None:
    async with serve(say(b"")) as server:
        url = server.url
    async with client_of(url) as client:
        events = [event async for event in client.stream(REQUEST)]
    assert len(events) == 1
    failed = events[0]
    assert isinstance(failed, Failed)
    assert failed.error.kind == "network"
    assert "running" in failed.error.hint
    assert url.removeprefix("http://") in failed.error.message


async def endless(writer: asyncio.StreamWriter, piece: bytes) -> None:
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("piece", [b": keep-alive\n\n", b"\n", b"data: \n\n", b'data: {"choices":[]}\n\n'])
async def test_keep_alives_are_no_progress(piece: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        await endless(writer, piece)

    error, _ = await failure(answer, timeouts=QUICK)
    assert error.kind == "stalled"
    assert "0.15 s" in error.message


async def test_stall_in_the_middle_keeps_what_came() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head() + HELLO[: HELLO.index(b"\n\n", 200) + 2])
        await endless(writer, b": keep-alive\n\n")

    async def attempt(seconds: float) -> None:
        error, message = await failure(answer, timeouts=Timeouts(connect=PATIENCE, first=PATIENCE, idle=seconds))
        assert error.kind == "stalled"
        assert "more" in error.message
        assert error.hint == "The partial answer is kept. Try again, or choose another model with /model or -m."
        assert message is not None

    await at_some_pace(attempt, 0.15)


async def test_no_answer_at_all() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    error, _ = await failure(answer, timeouts=QUICK)
    assert error.kind == "stalled"
    assert error.hint.startswith("No part of the answer had arrived. Try again")


async def test_steady_progress_is_no_stall_however_long_it_takes() -> None:
    async def attempt(seconds: float) -> None:
        async def answer(writer: asyncio.StreamWriter) -> None:
            writer.write(head())
            for index in range(12):
                chunk = {"choices": [{"index": 0, "delta": {"content": str(index)}}]}
                writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
                await writer.drain()
                await asyncio.sleep(seconds / 10)
            writer.write(b"data: [DONE]\n\n")

        events, _ = await ask(answer, timeouts=Timeouts(first=PATIENCE, idle=seconds))
        assert text_of(events) == "01234567891011"

    await at_some_pace(attempt, 0.3)


async def test_a_slow_reader_is_not_a_stalled_server() -> None:
    async def attempt(seconds: float) -> None:
        timeouts = Timeouts(first=PATIENCE, idle=seconds)
        async with serve(say(head(), HELLO)) as server, client_of(server.url, timeouts=timeouts) as client:
            events: list[StreamEvent] = []
            async for event in client.stream(REQUEST):
                events.append(event)
                await asyncio.sleep(seconds / 2)
            assert text_of(events) == "Hello"

    await at_some_pace(attempt, 0.15)


async def test_garbled_compression() -> None:
    error, _ = await failure(say(head(content_encoding="gzip"), b"this is no gzip" * 20))
    assert error.kind == "protocol"


async def test_no_http_at_all() -> None:
    error, _ = await failure(say(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"))
    assert error.kind == "network"


@pytest.mark.parametrize("way", ["cancel", "close"])
async def test_leaving_closes_the_connection_at_once(way: str) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head() + HELLO[:300])
        await asyncio.Event().wait()

    async with serve(answer) as server, client_of(server.url) as client:
        stream = client.stream(REQUEST)
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in stream:
                begun.set()

        async with asyncio.timeout(PATIENCE):
            if way == "cancel":
                task = asyncio.create_task(read())
                await begun.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await anext(stream)
                await stream.aclose()  # type: ignore[attr-defined]
            await server.disconnected.wait()


async def test_cancelling_while_connecting() -> None:
    asked = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with serve(answer) as server, client_of(server.url) as client:
        task = asyncio.create_task(anext(client.stream(REQUEST)))  # type: ignore[arg-type]
        async with asyncio.timeout(PATIENCE):
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.disconnected.wait()


REFUSAL = b'{"error": {"message": "Unrecognized request argument supplied: stream_options"}}'


async def test_unknown_parameter_is_dropped_and_remembered() -> None:
    refuse, agree = say(head(400, "application/json"), REFUSAL), say(head(), HELLO)
    async with serve(refuse, agree) as server, client_of(server.url) as client:
        events = [event async for event in client.stream(REQUEST)]
        assert text_of(events) == "Hello"
        notice = events[0]
        assert isinstance(notice, StreamNotice)
        assert "stream_options" in notice.text
        again = [event async for event in client.stream(REQUEST)]
        assert not any(isinstance(event, StreamNotice) for event in again)
        assert ["stream_options" in item.body for item in server.requests] == [True, False, False]


async def test_an_unknown_parameter_is_dropped_only_once_for_each_request() -> None:
    events, server = await ask(say(head(400, "application/json"), REFUSAL))
    assert isinstance(events[-1], Failed)
    assert len(server.requests) == 2


async def test_several_unknown_parameters_are_dropped_one_after_the_other() -> None:
    def refuse(text: str) -> Answer:
        return say(head(400, "application/json"), json.dumps({"error": {"message": text}}).encode())

    answers = (
        refuse("Unrecognized request argument supplied: stream_options"),
        refuse("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        say(head(), HELLO),
    )
    events, server = await ask(*answers)
    assert text_of(events) == "Hello"
    assert [("max_tokens" in item.body, "stream_options" in item.body) for item in server.requests] == [
        (True, True),
        (True, False),
        (False, False),
    ]
    assert server.requests[2].body["max_completion_tokens"] == server.requests[0].body["max_tokens"]


@pytest.mark.parametrize(
    "complaint", ["library/x does not support tools", "Unrecognized request argument supplied: stream_options"]
)
async def test_what_is_refused_of_two_requests_at_once_is_changed_in_both(complaint: str) -> None:
    both = asyncio.Barrier(2)
    refusal = json.dumps({"error": {"message": complaint}}).encode()

    async def refuse(writer: asyncio.StreamWriter) -> None:
        await both.wait()
        await say(head(400, "application/json"), refusal)(writer)

    tool = ToolSchema("look", "Looks.", {"type": "object", "properties": {}})

    async def answer(client: HttpModelClient) -> str:
        return text_of([event async for event in client.stream(replace(REQUEST, tools=(tool,)))])

    async with serve(refuse, refuse, say(head(), HELLO)) as server, client_of(server.url) as client:
        assert await asyncio.gather(answer(client), answer(client)) == ["Hello", "Hello"]
        assert len(server.requests) == 4


async def test_lone_surrogates_do_not_get_through() -> None:
    def chunk(text: str) -> bytes:
        return b'data: {"choices":[{"index":0,"delta":{"content":"' + text.encode() + b'"}}]}\n\n'

    body = chunk(r"a\ud83d") + chunk(r"\ude00b\udc00") + chunk(r"c\ud83d") + b"data: [DONE]\n\n"
    events, _ = await ask(say(head(), body))
    assert text_of(events) == "a😀b\ufffdc\ufffd"
    for event in events:
        if isinstance(event, TextDelta):
            event.text.encode()


async def test_anthropic() -> None:
    body = find_case("anthropic-messages", "thinking-text-tool").body
    async with serve(say(head(), body)) as server, client_of(server.url, "anthropic/claude-x") as client:
        events = [event async for event in client.stream(REQUEST)]
    assert text_of(events) == "I will look."
    received = server.requests[0]
    assert received.path == "/v1/messages"
    assert received.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in received.headers


async def _for_ever(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def open_after(*pieces: bytes) -> Answer:
    """Say something, then leave the stream open."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        await say(*pieces)(writer)
        await _for_ever(writer)

    return answer


FINISHED = {
    "openai/m": b'data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n',
    "anthropic/m": b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}\n\n'
    b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n',
}


@pytest.mark.parametrize("model", FINISHED)
async def test_a_stream_that_stays_open_after_its_finish_reason_is_complete(model: str) -> None:
    quick = replace(PATIENT, grace=0.05)
    async with serve(open_after(head(), FINISHED[model])) as server, client_of(server.url, model, quick) as client:
        events = [event async for event in client.stream(REQUEST)]
        assert text_of(events) == "Hello"
        await server.disconnected.wait()


@pytest.mark.parametrize("model", FINISHED)
async def test_a_connection_that_breaks_after_the_finish_reason_cost_nothing(model: str) -> None:
    torn = say(head(content_length="9999"), FINISHED[model])
    async with serve(torn) as server, client_of(server.url, model) as client:
        assert text_of([event async for event in client.stream(REQUEST)]) == "Hello"


async def test_usage_and_text_after_the_finish_reason_are_waited_for() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}\n\n'
    more = b'data: {"choices":[{"delta":{"content":" there"}}]}\n\n'

    async def attempt(seconds: float) -> None:
        answer = open_after(head(), FINISHED["openai/m"], more, usage)
        events, _ = await ask(answer, timeouts=replace(PATIENT, grace=seconds))
        assert text_of(events) == "Hello there"
        assert [event.usage.input_total for event in events if isinstance(event, UsageUpdate)] == [7]

    await at_some_pace(attempt, 0.5)


async def test_a_stream_that_stops_before_its_finish_reason_is_stalled_as_before() -> None:
    half = b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'

    async def attempt(seconds: float) -> None:
        error, message = await failure(open_after(head(), half), timeouts=replace(PATIENT, idle=seconds, grace=0.05))
        assert error.kind == "stalled"
        assert message is not None
        assert message.text == "Hel"

    await at_some_pace(attempt, 0.1)


@pytest.mark.parametrize("encoding", ["compress", "br2", "gzip, lzma"])
async def test_an_encoding_that_nobody_asked_for_is_named(encoding: str) -> None:
    error, _ = await failure(say(head(content_encoding=encoding), b"\x1f\x9d\x90"))
    assert error.kind == "protocol"
    assert encoding.rpartition(" ")[2] in error.message
    assert "compression" in error.hint
    error, _ = await failure(say(head(429, content_encoding=encoding), b"\x1f\x9d\x90"))
    assert (error.kind, error.status) == ("rate_limit", 429)
    assert encoding.rpartition(" ")[2] in error.message


async def test_a_body_that_is_not_what_its_encoding_says_is_named() -> None:
    error, _ = await failure(say(head(content_encoding="gzip"), HELLO))
    assert error.kind == "protocol"
    assert "encoding" in error.message


async def test_an_answer_that_comes_compressed_is_read() -> None:
    events, server = await ask(say(head(content_encoding="gzip"), gzip.compress(HELLO)))
    assert text_of(events) == "Hello"
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [400, 500])
async def test_a_server_that_can_t_read_arguments_gets_the_conversation_without_them(status: int) -> None:
    said = b'{"error":{"message":"Failed to parse tool call arguments as JSON: unexpected end of input"}}'
    history = (
        Message("user", (TextPart("hi"),)),
        Message("assistant", (ToolCallPart("c", "read", '{"path": "\\ud83d"}'),)),
        Message("tool", (ToolResultPart("c", "read", "text"),)),
    )
    async with serve(say(head(status, "application/json"), said), say(head(), HELLO)) as server:
        async with client_of(server.url) as client:
            events = [event async for event in client.stream(ModelRequest((), (), history))]
        assert text_of(events) == "Hello"
        assert server.requests[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"
        assert any(isinstance(event, StreamNotice) for event in events)


def never_ending(piece: bytes) -> Answer:
    """Say the same for ever, as fast as the other side reads."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        while True:
            writer.write(piece * 50)
            await writer.drain()
            await asyncio.sleep(0)

    return answer


def delta(**fields: object) -> bytes:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': fields}]})}\n\n".encode()


EMPTY_CALL = {"function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "piece",
    [
        delta(content="and on " * 100),
        delta(reasoning_content="hm " * 200),
        delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": "[" * 500}}]),
        delta(tool_calls=[EMPTY_CALL] * 20),
    ],
    ids=["text", "reasoning", "arguments", "calls"],
)
async def test_an_answer_that_never_ends_is_cut_as_at_the_output_limit(piece: bytes) -> None:
    async with serve(never_ending(piece)) as server, client_of(server.url) as client:
        events = [event async for event in client.stream(REQUEST)]
        last = events[-1]
        assert isinstance(last, Finished)
        assert last.message.response is not None
        assert last.message.response.stop.kind == "length"
        assert last.message.response.complete == (not last.message.tool_calls)
        assert any("swecli cut it after" in event.text for event in events if isinstance(event, StreamNotice))


async def test_an_event_that_never_ends_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.core.llm.client.LARGEST_EVENT", 100_000)
    error, _ = await failure(never_ending(b"x" * 1000))
    assert error.kind == "protocol"
    assert "larger than" in error.message


async def test_an_answer_that_repeats_itself_is_cut_and_said() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        chunk = {"choices": [{"index": 0, "delta": {"content": "And so on, and so forth. " * 20}}]}
        while not writer.is_closing():
            writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            await writer.drain()
            await asyncio.sleep(0)

    async with serve(answer) as server, client_of(server.url) as client:
        events = [event async for event in client.stream(REQUEST)]
    notices = [event.text for event in events if isinstance(event, StreamNotice)]
    assert len(notices) == 1
    assert notices[0].startswith("The answer repeated itself; swecli cut it after")
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.message.response is not None
    assert finished.message.response.stop.kind == "length"
    assert len(finished.message.text) < 20_000
    ended = ended_by(finished.message)
    assert (ended.outcome, ended.reason, ended.error_kind) == (
        "limit",
        "the answer repeated itself, so swecli cut it",
        ANSWER_CUT,
    )
