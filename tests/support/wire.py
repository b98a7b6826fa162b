"""What a protocol must offer so that a loopback server can speak it from a script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from swecli.core.llm.scripted import Fault, Piece, RequestFacts
from swecli.core.protocol.messages import StopKind, Usage

Body = Mapping[str, Any]
"""A decoded request body."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What the server knows when it begins to answer."""

    body: Body
    model: str
    number: int
    """Of the request, from 1."""
    usage: Usage | None
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    """Of the request, names in lower case."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no stream."""

    status: int
    payload: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})


class Wire(Protocol):
    """One protocol. All bytes are whole events. A ``path`` with a star at its beginning is the end of one."""

    path: str
    id_prefix: str
    content_type: str

    def key(self, headers: Mapping[str, str]) -> str:
        """The key that the request brings."""
        ...

    def streams(self, body: Body) -> bool:
        """Whether the request asks for a stream."""
        ...

    def facts(self, body: Body) -> RequestFacts: ...

    def prefix(self, body: Body) -> Sequence[object]:
        """The request as a row of values, the most stable first, for the estimate of its usage."""
        ...

    def objection(self, body: Body) -> str:
        """Why a strict provider would refuse this request; empty when it would not."""
        ...

    def opening(self, answering: Answering) -> list[bytes]: ...

    def piece(self, piece: Piece, answering: Answering) -> list[bytes]: ...

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]: ...

    def refusal(self, fault: Fault) -> Refusal: ...

    def error_event(self, fault: Fault) -> bytes:
        """The error within a stream."""
        ...

    def keep_alive(self) -> bytes: ...


def compact(value: object) -> str:
    """JSON as providers send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def texts(content: object) -> str:
    """The text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return ""


def without_cache_marks(value: Any) -> Any:
    """The value without its cache breakpoints, which move from request to request."""
    if isinstance(value, dict):
        return {key: without_cache_marks(entry) for key, entry in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [without_cache_marks(entry) for entry in value]
    return value
