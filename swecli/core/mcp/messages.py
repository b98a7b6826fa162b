"""A message of another program: read from a line even if its encoding or its result is not quite right.

A line that cannot be read answers nobody, and a call would wait for its answer until the time limit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
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
    stand-ins; a result is completed (``_completed``).

    Raises:
        BadMessage: it is no message.
    """
    import mcp_types
    from pydantic import ValidationError

    adapter = mcp_types.jsonrpc_message_adapter
    try:
        return _completed(adapter.validate_json(line, by_name=False))
    except ValidationError:
        pass
    try:
        value = json.loads(line.decode("utf-8", "replace"))
        text = _HALF.sub("\ufffd", json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"not JSON: {str(error)[:200]}") from None
    try:
        return _completed(adapter.validate_json(text, by_name=False))
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


def wrong_answer(problem: str) -> str:
    return f"its answer does not follow the protocol ({problem})"


def first_problem(error: ValidationError) -> str:
    """Place and kind of the first problem, on one line."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}"[:200] if place else str(first["msg"])[:200]


def _completed(message: JSONRPCMessage) -> JSONRPCMessage:
    """The message; a result of a call that has only structured content, or content of an unknown type, with what the
    SDK requires: it would refuse the whole result."""
    import mcp_types

    if not isinstance(message, mcp_types.JSONRPCResponse):
        return message
    result = message.result
    if "structuredContent" in result:
        result.setdefault("content", [])
    content = result.get("content")
    if isinstance(content, list):
        result["content"] = [_known(one) for one in cast("list[Any]", content)]
    return message


def _known(content: object) -> object:
    kind: object = cast("dict[str, Any]", content).get("type") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind in _CONTENT:
        return cast("object", content)
    return {"type": "text", "text": f"[Content of type {kind[:40]} can't be shown.]"}
