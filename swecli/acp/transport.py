"""The wire: one JSON-RPC message per line, on two streams. Other input is answered or dropped here, so that nothing a
client writes can end the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from swecli.input_lines import InputLines
from swecli.lazy_pattern import lazy_pattern
from swecli.output import ROOM, Output, Writer

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line; a longer one is an error."""

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")
DELETE = "session/delete"
"""A request of the protocol for which the SDK has no route. With a ``_`` prefix, as an extension, it reaches the
agent."""
_PROMPT, _CANCEL, _CANCEL_REQUEST = "session/prompt", "session/cancel", "$/cancel_request"

Message = dict[str, Any]


class BadMessage(Exception):
    """A line that is not a message. ``code`` is JSON-RPC's; ``id`` is the request's, if it can be determined."""

    def __init__(self, code: int, text: str, request: object = None) -> None:
        super().__init__(text)
        self.code = code
        self.id = request if isinstance(request, str | int) else None


def parse(line: bytes) -> Message:
    """The message of a line; raises ``BadMessage`` if it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadMessage(PARSE_ERROR, f"not JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise BadMessage(INVALID_REQUEST, "a message is a JSON object; batches are not supported")
    message = cast("Message", value)
    request = message.get("id")
    if isinstance(request, bool) or not isinstance(request, str | int | None):
        raise BadMessage(INVALID_REQUEST, "the id must be a string, a number or null")
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessage(INVALID_REQUEST, "the method must be a string", request)
        return message
    if "id" not in message:
        raise BadMessage(INVALID_REQUEST, "the message has neither a method nor an id")
    if message.get("error") is not None and not isinstance(message["error"], dict):
        return {**message, "error": {"code": INVALID_REQUEST, "message": str(message["error"])[:500]}}
    return message


class StdioTransport:
    """Messages of one client; the SDK's ``Transport``. ``receive`` ends with the input, with the first failed output,
    or with ``end``."""

    def __init__(self, source: BinaryIO, out: Output, writer: Writer, log: Callable[[str], None]) -> None:
        self._out = out
        self._writer = writer
        self._log = log
        self._lines = InputLines(source, MAX_LINE, log)
        self._turn = asyncio.Lock()
        self._prompts: dict[str | int, object] = {}
        """Cancellable requests, and the session of each."""
        self._asked: dict[asyncio.Task[Any], int] = {}
        """The request that each task waits for."""
        self._ended = False
        writer.changed = self._output_failed

    async def receive(self) -> Message | None:
        while (line := await self._lines.next()) is not None:
            try:
                if not line:
                    raise BadMessage(PARSE_ERROR, "the line is longer than 64 MiB")
                message = self._meant(parse(line))
            except BadMessage as error:
                self._log(f"bad message from the client: {error}")
                self._put({"jsonrpc": "2.0", "id": error.id, "error": {"code": error.code, "message": str(error)}})
                continue
            if message is not None:
                return message
        return None

    async def send(self, message: Message) -> None:
        """Send the message, and wait while too much output is unread.

        Raises:
            ConnectionError: the client stopped reading.
        """
        task = asyncio.current_task()
        if "method" in message and "id" in message and task is not None:
            self._asked[task] = message["id"]
            task.add_done_callback(lambda done: self._asked.pop(done, None))
        elif "method" not in message:
            self._prompts.pop(message.get("id") or 0, None)
        self._put(message)
        if self._writer.waiting > ROOM:
            async with self._turn:
                await self._writer.settled(ROOM // 2)
        if self._writer.failure is not None:
            raise ConnectionError("the client stopped reading")

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """Stop receiving."""
        if not self._ended:
            self._ended = True
            self._lines.end()

    def withdraw(self) -> None:
        """Cancel the request to the client that this task waits for."""
        task = asyncio.current_task()
        request = self._asked.pop(task, None) if task is not None else None
        if request is not None and not self._ended:
            self._put({"jsonrpc": "2.0", "method": _CANCEL_REQUEST, "params": {"requestId": request}})

    def _put(self, message: Message) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=str)
        self._out.line(_LONE_SURROGATE.sub("\ufffd", text))

    def _meant(self, message: Message) -> Message | None:
        """The message in the agent's form; None for an irrelevant notification."""
        method, params = message.get("method"), message.get("params")
        fields: Message = cast("Message", params) if isinstance(params, dict) else {}
        if method is None:
            return message
        if "id" in message:
            if method == _PROMPT and message["id"] is not None:
                self._prompts[message["id"]] = fields.get("sessionId")
            return {**message, "method": f"_{DELETE}"} if method == DELETE else message
        if method == _CANCEL_REQUEST:
            request = fields.get("requestId")
            session = self._prompts.get(request) if isinstance(request, str | int) else None
            return {"jsonrpc": "2.0", "method": _CANCEL, "params": {"sessionId": session}} if session else None
        if method == _CANCEL or method.startswith("_"):
            return message
        self._log(f"notification ignored: {method[:100]}")
        return None

    def _output_failed(self) -> None:
        self._log("the client stopped reading")
        self.end()
