"""A message of another program: read from a line even if its encoding or its result is not quite right.

A line that cannot be read answers nobody, and a call would wait for its answer until the time limit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.client._transport import ReadStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage
    from pydantic import ValidationError

_HALF = lazy_pattern("[\ud800-\udfff]")
_CONTENT: Final = frozenset(("text", "image", "audio", "resource", "resource_link"))


class BadMessage(ValueError):
    """A line that is no message. ``id`` is the one it names, None if it cannot be determined; ``answers`` tells whether
    it was meant as an answer."""

    def __init__(self, text: str, id: str | int | None = None, *, answers: bool = False) -> None:
        super().__init__(text)
        self.id = id
        self.answers = answers


def read_message(line: bytes) -> JSONRPCMessage:
    """The message of a line. Bytes that are not UTF-8, and halves of a character that a program cut in two, become
    stand-ins; tools and contents of a result are made usable one by one.

    Raises:
        BadMessage: it is no message.
    """
    import mcp_types
    from pydantic import ValidationError

    adapter = mcp_types.jsonrpc_message_adapter
    try:
        return completed(adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    try:
        value = json.loads(line.decode("utf-8", "replace"))
        text = _HALF.sub("\ufffd", json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"not JSON: {str(error)[:200]}") from None
    try:
        return completed(adapter.validate_json(text, by_name=False))
    except ValidationError as error:
        raise _bad(value, first_problem(error)) from None


def _bad(value: object, problem: str) -> BadMessage:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    id = fields.get("id")
    known = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    answers = "method" not in fields
    if answers and not any(isinstance(fields.get(name), dict) for name in ("result", "error")):
        problem = "neither result nor error is an object"
    return BadMessage(problem, known, answers=answers)


def read_answer(line: bytes) -> JSONRPCMessage:
    """Like ``read_message``, but an answer that does not follow the protocol fails the request that it answers.

    Raises:
        BadMessage: it is neither.
    """
    import mcp_types

    try:
        return read_message(line)
    except BadMessage as error:
        if error.id is None or not error.answers:
            raise
        why = mcp_types.ErrorData(code=mcp_types.INVALID_REQUEST, message=wrong_answer(str(error)))
        return mcp_types.JSONRPCError(jsonrpc="2.0", id=error.id, error=why)


_STARTS: Final = 20
"""Braces of a line at which a message is looked for."""


def parts_of(line: bytes) -> tuple[tuple[bytes, ...], str]:
    """The messages within a line that is none, and the text around them: a program that prints something without an end
    of line before or behind a message puts both on one line."""
    text = line.decode("utf-8", "replace")
    decoder, found, around = json.JSONDecoder(), list[bytes](), list[str]()
    begin, position, left = 0, text.find("{"), _STARTS
    while position >= 0 and left > 0:
        left -= 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            value, end = None, position + 1
        if isinstance(value, dict) and "jsonrpc" in value:
            found.append(text[position:end].encode("utf-8", "replace"))
            around.append(text[begin:position])
            begin = end
        position = text.find("{", end)
    around.append(text[begin:])
    return tuple(found), " ".join(filter(None, map(str.strip, around)))


def wrong_answer(problem: str) -> str:
    return f"its answer does not follow the protocol ({problem})"


def first_problem(error: ValidationError) -> str:
    """Place and kind of the first problem, on one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    location = ".".join(str(part) for part in first["loc"])
    return f"{location}: {first['msg']}"[:200] if location else str(first["msg"])[:200]


def completed(message: JSONRPCMessage) -> JSONRPCMessage:
    """The message; in a result, tools and contents with what the SDK requires: it would refuse all of them for one that
    is not quite right."""
    import mcp_types

    if not isinstance(message, mcp_types.JSONRPCResponse):
        return message
    result = message.result
    bare = result.keys() <= {"_meta", "content"}  # of a call, or of a request whose result has no fields
    if (bare or "structuredContent" in result or "isError" in result) and result.get("content") is None:
        result["content"] = []
    content, tools = result.get("content"), result.get("tools")
    if isinstance(content, str):
        result["content"] = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        result["content"] = [_known(item) for item in cast("list[Any]", content)]
    if isinstance(tools, list):
        result["tools"] = [tool for item in cast("list[Any]", tools) if (tool := _callable_tool(item)) is not None]
    return message


def _known(content: object) -> object:
    """The content, or a text that says why it can't be shown."""
    from pydantic import ValidationError

    kind: object = cast("dict[str, Any]", content).get("type") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in _CONTENT:
        named = f" of type {kind[:40]}" if isinstance(kind, str) else ""
        return {"type": "text", "text": f"[Content{named} can't be shown.]"}
    try:
        _validate("tools/call", {"content": [content]})
    except ValidationError:
        return {"type": "text", "text": f"[Content of type {kind} can't be shown: it does not follow the protocol.]"}
    return cast("object", content)


def _callable_tool(tool: object) -> dict[str, Any] | None:
    """The tool without the parts that are not as the protocol wants them; None if it has no name to call it by, or can
    be called only as a task: we call none so. With no schema of an object it takes any arguments."""
    from pydantic import ValidationError

    fields = dict(cast("dict[str, Any]", tool)) if isinstance(tool, dict) else {}
    execution: object = fields.get("execution")
    how = cast("dict[str, Any]", execution).get("taskSupport") if isinstance(execution, dict) else None
    if not isinstance(fields.get("name"), str) or how == "required":
        return None
    given = fields.get("inputSchema")
    schema = {"type": "object", **cast("dict[str, Any]", given)} if isinstance(given, dict) else {}
    fields["inputSchema"] = schema = schema if schema.get("type") == "object" else {"type": "object"}
    try:
        _validate("tools/list", {"tools": [fields]})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            _, _, part, *inside = problem["loc"]
            if part == "inputSchema":
                schema.pop(str(inside[0]), None)
            else:
                fields.pop(str(part), None)
    return fields


def _validate(method: str, result: dict[str, Any]) -> None:
    """Check a server's result as the SDK does; raises ``ValidationError`` if it would refuse the result."""
    from mcp_types import methods
    from mcp_types.version import LATEST_HANDSHAKE_VERSION

    methods.validate_server_result(method, LATEST_HANDSHAKE_VERSION, result)


class CompletedStream:
    """The messages of a transport of the SDK, each ``completed``."""

    def __init__(self, source: ReadStream[SessionMessage | Exception]) -> None:
        self._source = source

    @property
    def last_context(self) -> object:
        """Context variables of the newest message's sender, which the SDK looks for."""
        return getattr(self._source, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._completed(await self._source.receive())

    async def aclose(self) -> None:
        await self._source.aclose()

    def __aiter__(self) -> CompletedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._completed(await self._source.__anext__())

    async def __aenter__(self) -> CompletedStream:
        await self._source.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._source.__aexit__(exc_type, exc_val, exc_tb)

    def _completed(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, Exception):
            item.message = completed(item.message)
        return item
