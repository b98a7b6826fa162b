"""The words that a worker and the fleet exchange: JSON lines, over pipes here and inside a Ray task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from swecli.fleet.tasks import Task

# --- from the fleet to a worker ---------------------------------------------------------------------------------


class Order(Struct, frozen=True, tag="order"):
    """One attempt at a task. ``scratch`` is a folder for it alone, which does not exist yet; ``mirrors`` is for clones
    of addresses, which several attempts share. ``memory`` is bytes of each process, ``processor`` seconds of each
    process; None: no limit. ``yolo``: everything runs without approval and without the sandbox."""

    task: Task
    attempt: int
    scratch: str
    mirrors: str
    memory: int | None = None
    processor: int | None = None
    yolo: bool = False
    base_url: str | None = None


class Permit(Struct, frozen=True, tag="permit"):
    """The answer to the ``Ask`` of this number. ``refusal`` says why no further request may be sent; empty: send it."""

    number: int
    refusal: str = ""


class Halt(Struct, frozen=True, tag="halt"):
    """End the attempt at once; its work is lost."""


ToWorker = Order | Permit | Halt

# --- from a worker to the fleet ---------------------------------------------------------------------------------

Phase = Literal["clone", "setup", "agent", "check"]


class Began(Struct, frozen=True, tag="began"):
    """A phase of the attempt has begun."""

    phase: Phase


class Ask(Struct, frozen=True, tag="ask"):
    """May a request of about ``tokens`` input tokens be sent to ``provider``?"""

    provider: str
    tokens: int
    number: int = 0


class Spent(Struct, frozen=True, tag="spent"):
    """A request that was permitted has ended. ``price`` is US dollars as text, None if it is unknown. ``pause`` is
    seconds for which its provider wants no request."""

    provider: str
    tokens: int
    price: str | None
    pause: float = 0.0


class Said(Struct, frozen=True, tag="said"):
    """A line of the transcript, and the number of model steps so far."""

    line: str
    steps: int


Status = Literal["passed", "failed", "unchecked", "broken", "stopped"]
"""``passed``, ``failed``: by the check; ``unchecked``: the agent ended and there is no check; ``broken``: the machinery
failed, not the agent; ``stopped``: ended from outside, by the budget or the user."""

FINISHED: tuple[Status, ...] = ("passed", "failed", "unchecked")
"""Outcomes of the agent. A task with another one is run again by ``--resume``."""


class CheckRun(Struct, frozen=True):
    """``exit_status`` is None if it was ended after its time."""

    exit_status: int | None
    output: str
    seconds: float


class Ended(Struct, frozen=True, tag="ended"):
    """The end of an attempt. ``reason`` is a clause; ``kind`` a word to group by. ``again``: the same attempt may work
    later. ``transcript`` is a file in the scratch folder, empty if there is no session."""

    status: Status
    kind: str
    reason: str
    again: bool = False
    patch: bytes = b""
    """As git wrote it: files need not be UTF-8."""
    check: CheckRun | None = None
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: str | None = None
    """US dollars as text."""
    seconds: Mapping[str, float] = {}
    """Seconds of each phase."""
    session: str = ""
    model: str = ""
    answer: str = ""
    base: str = ""
    """The commit that the patch applies to."""
    transcript: str = ""
    processor: float = 0.0
    """Processor seconds of swecli itself in this attempt, without the commands that it ran."""


FromWorker = Began | Ask | Spent | Said | Ended


def encoded(message: ToWorker | FromWorker) -> bytes:
    """The message as a line."""
    return msgspec.json.encode(message) + b"\n"


def to_worker(line: bytes) -> ToWorker:
    """Raises ``msgspec.DecodeError`` for anything else."""
    return msgspec.json.decode(line, type=ToWorker)


def from_worker(line: bytes) -> FromWorker:
    """Raises ``msgspec.DecodeError`` for anything else."""
    return msgspec.json.decode(line, type=FromWorker)


def outcome_of(ended: Ended) -> dict[str, Any]:
    """The fields of a result line, without patch and transcript."""
    fields = msgspec.to_builtins(ended)
    return {name: value for name, value in fields.items() if name not in ("type", "patch", "transcript")}
