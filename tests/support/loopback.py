"""A server on 127.0.0.1 that speaks the protocols of all providers from a script.

    with LoopbackServer(parse_script(...)) as server:
        ... OPENAI_BASE_URL = f"{server.url}/v1", ANTHROPIC_BASE_URL = server.url ...
        assert server.requests[0].body["model"] == "x"

It is as strict with requests as the real ones (unpaired tool results and the like are a 400) and, where asked, as
unkind in its answers: single bytes, keep-alives, CRLF, cuts, stalls, HTML. A request that the script does not expect
fails the test when the ``with`` block ends. On the command line:

    python -m tests.support.loopback --protocol openai --script FILE --port 0
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from swecli.core.llm.scripted import (
    STATUS,
    Fault,
    Piece,
    Script,
    ScriptMismatch,
    ScriptPlayer,
    Step,
    UsageEstimate,
    load_script,
    pieces,
    stop_of,
    until_fault,
)
from tests.support.json_server import read_request
from tests.support.server_thread import ServerThread
from tests.support.waiting import PATIENCE
from tests.support.wire import Answering, Refusal, Wire
from tests.support.wire_anthropic import AnthropicMessages
from tests.support.wire_gemini import GeminiGenerate
from tests.support.wire_ollama import OllamaChat
from tests.support.wire_openai import OpenAIChat
from tests.support.wire_responses import OpenAIResponses

PROTOCOLS: Mapping[str, type[Wire]] = {
    "openai": OpenAIChat,
    "anthropic": AnthropicMessages,
    "responses": OpenAIResponses,
    "gemini": GeminiGenerate,
    "ollama": OllamaChat,
}
_PAGE = "<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
"""What a gateway sends: ``title`` is the fault's message, usually that the server behind it is away."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How unkind the server is. ``delay`` is seconds between two writes; ``play_delays`` keeps the script's own.

    ``clean_cut``: a cut stream ends as if it were whole, instead of with a broken connection.
    """

    chunk_bytes: int = 0
    """Bytes for each write; 0 = one event."""
    keep_alives: bool = False
    crlf: bool = False
    delay: float = 0.0
    play_delays: bool = False
    clean_cut: bool = False
    key: str = ""
    """The only key that is accepted; empty = any."""
    strict: bool = True
    window: int = 0
    """Context window that it names for its model, in tokens; 0 = it names none."""
    image_characters: int = 0
    """Base64 characters of an image, and bytes of any other string, from which on it refuses a request; 0 = any."""


@dataclass(slots=True)
class Received:
    """A request that the server got. ``whole`` is set once the client has been sent all of the answer."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    status: int = 0
    whole: bool = False


class _Cut(Exception):
    """The connection breaks here."""


ProtocolName = Literal["openai", "anthropic", "responses", "gemini", "ollama", "any"]


class LoopbackServer(ServerThread):
    """The server; where it was asked for what its script has not, the ``with`` block ends in an error."""

    def __init__(
        self, script: Script, protocol: ProtocolName = "any", manners: Manners | None = None, port: int = 0
    ) -> None:
        super().__init__(port)
        self.script = script
        self.protocol = protocol
        self.manners = manners or Manners()
        self.requests: list[Received] = []
        self.failures: list[str] = []
        self._player = ScriptPlayer(script)
        self._usage = UsageEstimate()
        self._changed = threading.Condition()

    def __exit__(self, kind: object, *rest: object) -> None:
        super().__exit__(kind, *rest)
        if kind is None and self.failures:
            raise AssertionError("; ".join(self.failures))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables that lead a program here."""
        key = self.manners.key or "test-key"
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": key,
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": key,
            "GEMINI_BASE_URL": f"{self.url}/v1beta",
            "GEMINI_API_KEY": key,
            "OLLAMA_HOST": self.url,
        }

    @property
    def over(self) -> bool:
        """Whether the script's last step was taken."""
        return self._player.over

    @property
    def asked(self) -> list[Received]:
        """The requests for an answer of the model, without look-ups such as the list of models."""
        return [request for request in self.requests if any(_serves(made, request.path) for made in PROTOCOLS.values())]

    def wait_for(self, count: int, seconds: float = PATIENCE) -> None:
        """Wait until so many answers have been asked for."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while len(self.asked) < count:
                left = deadline - time.monotonic()
                assert left > 0, f"{len(self.asked)} requests after {seconds} s, not {count}"
                self._changed.wait(left)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (received := await _read(reader)) is not None:
                with self._changed:
                    self.requests.append(received)
                    self._changed.notify_all()
                await self._answer(received, reader, writer)
                received.whole = True
        except (_Cut, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # cancelled: the server is at its end, and a connection was kept open
        finally:
            writer.close()

    async def _answer(self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if received.method == "GET" and received.path.endswith("/models"):
            window = {"max_model_len": self.manners.window} if self.manners.window else {}
            models = {"object": "list", "data": [{"id": self.script.name, "object": "model", **window}]}
            await _send(received, writer, Refusal(200, json.dumps(models).encode()))
            return
        wire = next((made for made in self._wires() if _serves(made, received.path)), None)
        if wire is None:
            await _send(received, writer, Refusal(404, b'{"error":{"message":"Not Found"}}'))
            return
        refused = self._refused(wire, received)
        if refused is not None:
            await _send(received, writer, wire.refusal(refused))
            return
        try:
            facts = wire.facts(received.body)
            step = self._player.take(facts)
        except ScriptMismatch as error:
            self.failures.append(str(error))
            await _send(received, writer, wire.refusal(Fault("bad_request", message=str(error))))
            return
        ids = (f"{wire.id_prefix}{facts.calls + number}" for number in range(1, len(step.calls) + 1))
        usage = self._usage.measure(wire.prefix(received.body), step)
        model = str(received.body.get("model", "")) or model_of(received.path)
        answering = Answering(received.body, model, len(self.asked), usage, received.headers)
        await asyncio.sleep(step.wait if self.manners.play_delays else 0)
        fault = step.fault
        if fault is not None and fault.after is None and fault.kind in STATUS:
            await _send(received, writer, wire.refusal(fault))
        elif fault is not None and fault.after is None and fault.kind == "garbage":
            page = _PAGE.format(title=fault.message or "502 Bad gateway")
            await _send(received, writer, Refusal(200, page.encode(), {"content-type": "text/html"}))
        elif fault is not None and fault.after is None and fault.kind == "network":
            raise _Cut
        else:
            answer = pieces(step, ids) if fault is None else until_fault(pieces(step, ids), fault)
            stream = _Stream(received, reader, writer, wire, self.manners)
            await stream.run(step, iter(()) if fault and fault.kind == "empty" else answer, answering)

    def _wires(self) -> Iterator[Wire]:
        return (made() for name, made in PROTOCOLS.items() if self.protocol in ("any", name))

    def _refused(self, wire: Wire, received: Received) -> Fault | None:
        if self.manners.key and wire.key(received.headers) != self.manners.key:
            return Fault("auth", message="invalid x-api-key")
        if not wire.streams(received.body):
            return Fault("bad_request", message="this server only streams")
        most = self.manners.image_characters
        if most and (size := _longest(received.body)) > most:
            path = "messages.6.content.0.tool_result.content.1.image.source.base64"
            return Fault(
                "bad_request", message=f"{path}: image exceeds {most} bytes maximum: {size} bytes > {most} bytes"
            )
        objection = wire.objection(received.body) if self.manners.strict else ""
        if objection:
            self.failures.append(f"request {len(self.requests)}: {objection}")
        return Fault("bad_request", message=objection) if objection else None


@dataclass
class _Stream:
    """One streamed answer on its way to the client."""

    received: Received
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    wire: Wire
    manners: Manners

    async def run(self, step: Step, answer: Iterator[Piece], answering: Answering) -> None:
        """Send the answer as far as its fault lets it go.

        Raises:
            _Cut: the connection has to break now.
        """
        self._head()
        for event in self.wire.opening(answering):
            await self._write(event)
        for piece in answer:
            await asyncio.sleep(step.delay if self.manners.play_delays else 0)
            for event in self.wire.piece(piece, answering):
                await self._write(event)
        fault = step.fault
        if fault is None or fault.kind == "empty":
            for event in self.wire.closing(stop_of(step), answering):
                await self._write(event)
        elif fault.kind == "stall":
            await self._stall(fault)
        elif fault.kind == "garbage":
            await self._write(b"data: {broken\n\n\xff\xfe\n\n")
        elif fault.kind == "network" or (fault.kind == "cut" and not self.manners.clean_cut):
            await self.writer.drain()
            raise _Cut
        elif fault.kind != "cut":
            await self._write(self.wire.error_event(fault))
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def _stall(self, fault: Fault) -> None:
        await self.writer.drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.reader.read(1), fault.seconds)
        raise _Cut

    def _head(self) -> None:
        self.received.status = 200
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {self.wire.content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        self.writer.write(head.encode())

    async def _write(self, event: bytes) -> None:
        data = (self.wire.keep_alive() if self.manners.keep_alives else b"") + event
        data = data.replace(b"\n", b"\r\n") if self.manners.crlf else data
        size = self.manners.chunk_bytes or len(data)
        for start in range(0, len(data), size):
            part = data[start : start + size]
            self.writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await self.writer.drain()
            await asyncio.sleep(self.manners.delay)


def _longest(value: Any) -> int:
    """Length of the longest string in a body."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_longest, inner), default=0)


def model_of(path: str) -> str:
    """The model in a path of Gemini's API."""
    return path.rpartition("/")[2].partition(":")[0]


def _serves(wire: Wire | type[Wire], path: str) -> bool:
    """Whether requests to ``path`` are for this protocol."""
    return path.endswith(wire.path[1:]) if wire.path.startswith("*") else path == wire.path


async def _read(reader: asyncio.StreamReader) -> Received | None:
    """The next request of a connection; None when it has ended."""
    asked = await read_request(reader)
    if asked is None:
        return None
    try:
        body = json.loads(asked.body) if asked.body else {}
    except ValueError:
        body = {}
    return Received(
        asked.method, asked.path.partition("?")[0], dict(asked.headers), body if isinstance(body, dict) else {}
    )


async def _send(received: Received, writer: asyncio.StreamWriter, refusal: Refusal) -> None:
    received.status = refusal.status
    lines = [f"HTTP/1.1 {refusal.status} Status", *(f"{name}: {value}" for name, value in refusal.headers.items())]
    lines.append(f"content-length: {len(refusal.payload)}")
    writer.write("\r\n".join([*lines, "", ""]).encode() + refusal.payload)
    await writer.drain()


def main() -> int:
    """Serve until the process is stopped; prints the port first."""
    parser = argparse.ArgumentParser(prog="loopback", description="A scripted provider on 127.0.0.1.")
    parser.add_argument("--protocol", choices=[*PROTOCOLS, "any"], default="any")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--chunk-bytes", type=int, default=0)
    parser.add_argument("--play-delays", action="store_true")
    arguments = parser.parse_args()
    manners = Manners(chunk_bytes=arguments.chunk_bytes, play_delays=arguments.play_delays)
    script = load_script(arguments.script, python=sys.executable)
    with LoopbackServer(script, arguments.protocol, manners, arguments.port) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
