"""Streams of each protocol from bytes to stream events, in pieces as a network gives them.

MB/s count the bytes of the body. "Twice as long" is the time for a stream of double length relative to that of the
single one: 2 means that the cost is linear. The line of 300 kB is one event that comes byte by byte.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.framing import BodyParser
from swecli.core.llm.protocols.registry import decoder_for
from swecli.core.llm.providers import resolve
from swecli.core.llm.text_tools import TextCallStream
from swecli.core.llm.types import Finished, ModelRequest, StreamEvent
from swecli.core.protocol.messages import Message, Origin, TextPart

PIECE = 4096
"""Bytes that arrive at once."""
WORDS = (" The", " parser", " keeps", " what", " it", " has", " seen", ",", " größer", " →", " so", " that", ".\n")
EVENTS = 12_000
LINE = 300_000

Body = Callable[[int], bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of stream: ``body`` makes one of so many events."""

    name: str
    protocol: str
    body: Body
    content_type: str = "text/event-stream"


def _sse(events: Iterator[object], *, named: bool = False, end: str = "") -> bytes:
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n")
    return ("".join(lines) + end).encode()


def _chunk(delta: object, reason: str | None = None) -> object:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return {
        "id": "chatcmpl-9f2c41d7",
        "object": "chat.completion.chunk",
        "created": 1795000000,
        "model": "some-model-2026",
        "system_fingerprint": "fp_0123456789",
        "choices": [choice],
    }


def chat_text(size: int) -> bytes:
    def events() -> Iterator[object]:
        yield _chunk({"role": "assistant", "content": ""})
        for number in range(size):
            yield _chunk({"content": WORDS[number % len(WORDS)]})
        yield _chunk({}, "stop")

    return _sse(events(), end="data: [DONE]\n\n")


def chat_reasoning_and_arguments(size: int) -> bytes:
    def events() -> Iterator[object]:
        for number in range(size // 2):
            text = WORDS[number % len(WORDS)]
            detail = {"type": "reasoning.text", "text": text, "index": 0, "format": "unknown"}
            yield _chunk({"content": "", "reasoning": text, "reasoning_details": [detail]})
        first = {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "write_file", "arguments": '{"a":"'},
        }
        yield _chunk({"tool_calls": [first]})
        for number in range(size // 2):
            piece = WORDS[number % len(WORDS)].replace("\n", "\\n")
            yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]})
        yield _chunk({}, "tool_calls")

    return _sse(events(), end="data: [DONE]\n\n")


def anthropic(size: int) -> bytes:
    def events() -> Iterator[object]:
        yield {"type": "message_start", "message": {"id": "m", "model": "claude", "usage": {"input_tokens": 9}}}
        for index, (block, delta, key) in enumerate(
            (
                ({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking"),
                ({"type": "text", "text": ""}, "text_delta", "text"),
                ({"type": "tool_use", "id": "t", "name": "f", "input": {}}, "input_json_delta", "partial_json"),
            )
        ):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            tool = key == "partial_json"
            if tool:
                yield {"type": "content_block_delta", "index": index, "delta": {"type": delta, key: '{"a":"'}}
            for number in range(size // 3):
                text = WORDS[number % len(WORDS)]
                piece = {"type": delta, key: text.replace("\n", "\\n") if tool else text}
                yield {"type": "content_block_delta", "index": index, "delta": piece}
            if tool:
                yield {"type": "content_block_delta", "index": index, "delta": {"type": delta, key: '"}'}}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": size}}
        yield {"type": "message_stop"}

    return _sse(events(), named=True)


def responses(size: int) -> bytes:
    def events() -> Iterator[object]:
        yield {"type": "response.created", "response": {"id": "r", "model": "gpt", "status": "in_progress"}}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        text = ""
        for number in range(size):
            word = WORDS[number % len(WORDS)]
            text += word
            yield {
                "type": "response.output_text.delta",
                "sequence_number": number + 3,
                "item_id": "msg_0123456789abcdef0123456789abcdef0123456789abcdef",
                "output_index": 0,
                "content_index": 0,
                "delta": word,
                "logprobs": [],
                "obfuscation": "x8Kd0w1QzP",
            }
        final = {**item, "status": "completed", "content": [{"type": "output_text", "text": text}]}
        yield {"type": "response.output_item.done", "output_index": 0, "item": final}
        whole = {"id": "r", "status": "completed", "output": [final], "usage": {"input_tokens": 9, "output_tokens": 9}}
        yield {"type": "response.completed", "response": whole}

    return _sse(events(), named=True)


def gemini(size: int) -> bytes:
    def events() -> Iterator[object]:
        for number in range(size):
            part = {"text": WORDS[number % len(WORDS)], **({"thought": True} if number < size // 3 else {})}
            candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
            if number == size - 1:
                candidate["finishReason"] = "STOP"
            usage = {"promptTokenCount": 9, "candidatesTokenCount": number, "totalTokenCount": number + 9}
            yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3", "responseId": "r"}

    return _sse(events()).replace(b"\n", b"\r\n")


def ollama(size: int) -> bytes:
    lines = []
    for number in range(size):
        key = "thinking" if number < size // 3 else "content"
        said = {"role": "assistant", "content": "", key: WORDS[number % len(WORDS)]}
        lines.append({"model": "qwen", "created_at": "2026-11-21T12:00:00.0Z", "message": said, "done": False})
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": size}
    lines.append({"model": "qwen", "message": {"role": "assistant", "content": ""}, **end})
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


KINDS = (
    Kind("Chat Completions, text", "openai-chat", chat_text),
    Kind("Chat Completions, reasoning and arguments", "openai-chat", chat_reasoning_and_arguments),
    Kind("Anthropic Messages", "anthropic-messages", anthropic),
    Kind("Responses", "openai-responses", responses),
    Kind("Gemini", "gemini-generate", gemini),
    Kind("Ollama", "ollama-chat", ollama, "application/x-ndjson"),
)


def decode(kind: Kind, body: bytes, piece: int = PIECE, *, split: bool = False, calls: bool = False) -> float:
    """Seconds of processor time for one stream. ``split``: think tags are looked for; ``calls``: calls in text, too."""
    decoder = decoder_for(kind.protocol, Origin(kind.protocol, "host", "model"), "split" if split else "keep")
    follow = TextCallStream(["write_file"]) if calls else None
    last: StreamEvent | None = None
    start = time.process_time()
    parser = BodyParser(kind.content_type)
    for position in range(0, len(body), piece):
        for wire in parser.feed(body[position : position + piece]):
            for event in decoder.feed(wire):
                for made in follow.feed(event) if follow is not None else (event,):
                    last = made
    for event in (*(event for wire in parser.end() for event in decoder.feed(wire)), *decoder.end_of_body(parser)):
        for made in follow.feed(event) if follow is not None else (event,):
            last = made
    spent = time.process_time() - start
    if not isinstance(last, Finished):
        raise AssertionError(f"{kind.name}: {last}")
    return spent


async def through_http(body: bytes) -> float:
    """Seconds of processor time for one stream, connection, request and the server (in this process) included."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        for position in range(0, len(body), PIECE):
            writer.write(body[position : position + PIECE])
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    client = HttpModelClient(resolve("openai/any", {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}))
    request = ModelRequest((), (), (Message("user", (TextPart("hi"),)),))
    spent: list[float] = []
    async with server:
        for _ in range(3):
            start = time.process_time()
            events = [event async for event in client.stream(request)]
            spent.append(time.process_time() - start)
            if not isinstance(events[-1], Finished):
                raise AssertionError(f"{events[-1]}")
        await client.close()
    return min(spent)


def best(kind: Kind, body: bytes, rounds: int = 3, *, split: bool = False, calls: bool = False) -> float:
    return min(decode(kind, body, split=split, calls=calls) for _ in range(rounds))


def run() -> Iterator[tuple[str, float, str]]:
    for kind in KINDS:
        body, double = kind.body(EVENTS), kind.body(2 * EVENTS)
        once = best(kind, body)
        yield kind.name, len(body) / once / 1e6, "MB/s"
        yield f"{kind.name}, microseconds per event", once / EVENTS * 1e6, "us"
        yield f"{kind.name}, twice as long", best(kind, double) / once, "x"
    local = KINDS[0]
    body = local.body(EVENTS)
    yield "the same through the HTTP client", len(body) / asyncio.run(through_http(body)) / 1e6, "MB/s"
    yield (
        "the same with think tags and calls in text",
        len(body) / best(local, body, split=True, calls=True) / 1e6,
        "MB/s",
    )
    for kind in KINDS:
        yield f"{kind.name}, one line of 300 kB byte by byte", decode(kind, _long(kind), 1), "s"


def _long(kind: Kind) -> bytes:
    """A stream with a value of 300 kB in one of its events."""
    body = kind.body(6)
    word = WORDS[1].encode()
    return body.replace(word, b"x" * LINE, 1)
