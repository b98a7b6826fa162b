"""What a script says: steps with their text, calls, usage and faults, and conditions on the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from swecli.core.protocol.messages import StopKind

Chunk = Literal["words", "whole"] | int
"""How a text is cut into streamed pieces: at words, not at all, or every so many characters."""

FaultKind = Literal[
    "overflow",
    "quota",
    "rate_limit",
    "overloaded",
    "auth",
    "not_found",
    "too_large",
    "bad_request",
    "server",
    "network",
    "cut",
    "garbage",
    "stall",
    "empty",
]

STATUS: Mapping[FaultKind, int] = {
    "overflow": 400,
    "quota": 402,
    "rate_limit": 429,
    "overloaded": 529,
    "auth": 401,
    "not_found": 404,
    "too_large": 413,
    "bad_request": 400,
    "server": 500,
}
"""HTTP status of the faults that have one."""

DEFAULT_CLOSING = "(The script of this scripted model is over: it has no more answers.)"


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """``arguments`` is the JSON text as it will be sent, or what stands in for it."""

    tool: str
    arguments: str
    id: str = ""
    """Empty: the player makes one."""


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """Tokens; None = estimated from the request and the answer. ``silent``: no usage is reported at all."""

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with an answer.

    ``after`` is the number of streamed characters (of reasoning, text and arguments; with
    ``in_arguments``, of arguments only) before it goes wrong; None = before the answer begins, as an HTTP
    error where the fault has a status. ``tokens`` and ``window`` are the numbers of an overflow,
    ``retry_after`` and ``seconds`` (how long a stall lasts; None = until the request is aborted) are seconds.
    """

    kind: FaultKind
    after: int | None = None
    in_arguments: bool = False
    message: str = ""
    retry_after: float | None = None
    tokens: int | None = None
    window: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """What a request looks like. Each field that is set must hold.

    The texts are parts that must occur: ``last_result`` in a tool result of the newest message, ``last_user``
    in the newest message of the user, ``request`` anywhere. ``last_error``: whether one of the newest
    message's tool results is an error; never holds when the newest message has none. ``tools``: the request
    offers tools.
    """

    last_result: tuple[str, ...] = ()
    last_user: tuple[str, ...] = ()
    request: tuple[str, ...] = ()
    last_error: bool | None = None
    tools: bool | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One answer. Parts are streamed in this order: reasoning, text, calls."""

    number: int
    """From 1."""
    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopKind | None = None
    """None: "tool_use" with calls, else "end"."""
    usage: ScriptedUsage = ScriptedUsage()
    fault: Fault | None = None
    when: Condition | None = None
    expect: Condition | None = None
    chunk: Chunk = "words"
    delay: float = 0.0
    wait: float = 0.0
    """Seconds before the answer begins."""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script. ``origin`` names it in messages."""

    steps: tuple[Step, ...]
    name: str = "script"
    window: int | None = None
    max_output: int | None = None
    closing: str = DEFAULT_CLOSING
    aside: str | None = None
    chunk: Chunk = "words"
    delay: float = 0.0
    origin: str = "script"
