"""The result of a headless run: the object of the format json, and the last line of stream-json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from swecli.core.protocol.messages import StopKind

Status = Literal["done", "interrupted", "blocked", "limit", "error"]
Kept = Literal["all", "aside", "a part", "nothing"]
"""What of a session is stored and can be continued; ``aside``: all, in a file beside the database, whose place was
taken; ``a part``: its newest facts could not be stored."""
LOSSES: Mapping[Kept, str] = {
    "a part": "The end of this conversation could not be stored and is lost.",
    "aside": "This conversation is stored beside the session database, whose place was taken by one that this swecli "
    "can't use. Once it can (upgrade it if a newer one wrote that), run `swecli doctor --repair recover` first, which "
    "adds it.",
}
"""What to tell the user where a session can't be continued as usual."""


class ResultError(Struct, frozen=True):
    """Why the run failed: a kind, and a sentence."""

    kind: str
    message: str


class ResultStop(Struct, frozen=True):
    """Why the model ended its newest answer. ``reason`` is a sentence if the answer is incomplete, else empty; ``raw``
    is the provider's own word."""

    kind: StopKind | None
    reason: str
    raw: str | None
    detail: str | None


class ResultContext(Struct, frozen=True):
    """The figures of ``/context``, in tokens. ``share`` is of ``effective``; ``shown`` is what the status bar says."""

    used: int
    effective: int
    window: int
    window_source: str
    share: float
    shown: str


class ResultUsage(Struct, frozen=True):
    """Tokens of the run; None if not reported."""

    input_total: int | None
    cache_read: int | None
    cache_write: int | None
    output_total: int | None
    reasoning: int | None


class RefusedCall(Struct, frozen=True):
    """A call that was not allowed to run. ``approval_needed``: an approval would have allowed it."""

    tool: str
    title: str
    reason: str
    approval_needed: bool


class Result(Struct, frozen=True, tag="result"):
    """The result of a run. ``session`` is empty before there is one; ``kept`` says what of it can be continued."""

    type: ClassVar[Literal["result"]] = "result"
    status: Status
    exit_code: Annotated[int, Meta(ge=0, le=255)]
    text: str
    structured_output: Any
    error: ResultError | None
    stop: ResultStop | None
    session: str
    kept: Kept
    model: str | None
    context: ResultContext | None
    turns: int
    steps: int
    usage: ResultUsage
    cost: str | None
    """US dollars; None if unknown."""
    denials: tuple[RefusedCall, ...]
