"""The format of a script: steps with text, calls, usage and faults."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Struct, structs

from swecli.core.protocol.messages import StopKind

Chunk = Literal["words", "whole"] | Annotated[int, Meta(ge=1)]
"""How a text is cut into streamed pieces: at words, not at all, or every so many characters."""
_Count = Annotated[int, Meta(ge=0)]
_Seconds = Annotated[float, Meta(ge=0, lt=1e6)]
_T = TypeVar("_T")
_ORIGIN = "(origin)"

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


class Arguments(str):
    """The JSON text of a call's arguments, written in the file as a table, or as a text that is sent unchanged."""


class Texts(tuple[str, ...]):
    """Written in the file as a text or a list of texts."""


class ScriptedCall(Struct, frozen=True, forbid_unknown_fields=True):
    tool: Annotated[str, Meta(min_length=1)]
    arguments: Arguments = Arguments("{}")
    id: str = ""
    """Empty: the player makes one."""


class ScriptedUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens; None = estimated from the request and the answer. ``silent``: no usage is reported at all."""

    input: _Count | None = None
    cache_read: _Count | None = None
    cache_write: _Count | None = None
    output: _Count | None = None
    reasoning: _Count | None = None
    silent: bool = False


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong with an answer.

    ``after`` is the number of streamed characters (of reasoning, text and arguments; with
    ``in_arguments``, of arguments only) before it goes wrong; None = before the answer begins, as an HTTP
    error where the fault has a status. ``tokens`` and ``window`` are the numbers of an overflow,
    ``retry_after`` and ``seconds`` (how long a stall lasts; None = until the request is aborted) are seconds.
    """

    kind: FaultKind
    after: _Count | None = None
    in_arguments: bool = False
    message: str = ""
    retry_after: _Seconds | None = None
    tokens: _Count | None = None
    window: _Count | None = None
    seconds: _Seconds | None = None


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request looks like. Each field that is set must hold.

    The texts are parts that must occur: ``last_result`` in a tool result of the newest message, ``last_user``
    in the newest message of the user, ``request`` anywhere. ``last_error``: whether one of the newest
    message's tool results is an error; never holds when the newest message has none. ``tools``: the request
    offers tools.
    """

    last_result: Texts = Texts()
    last_user: Texts = Texts()
    request: Texts = Texts()
    last_error: bool | None = None
    tools: bool | None = None


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One answer. Parts are streamed in this order: reasoning, text, calls."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = msgspec.field(default=(), name="call")
    stop: StopKind | None = None
    """None: "tool_use" with calls, else "end"."""
    usage: ScriptedUsage = ScriptedUsage()
    fault: Fault | None = None
    when: Condition | None = None
    expect: Condition | None = None
    chunk: Chunk = "words"
    delay: _Seconds = 0.0
    wait: _Seconds = 0.0
    """Seconds before the answer begins."""


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole script. ``chunk`` and ``delay`` are those of steps without their own."""

    steps: tuple[Step, ...] = msgspec.field(default=(), name="step")
    name: str = "script"
    window: Annotated[int, Meta(ge=1)] | None = None
    max_output: Annotated[int, Meta(ge=1)] | None = None
    closing: str = DEFAULT_CLOSING
    aside: str = ""
    """Answers every request without tools, outside the steps; empty: such requests take a step."""
    chunk: Chunk = "words"
    delay: _Seconds = 0.0
    origin: str = msgspec.field(default="script", name=_ORIGIN)
    """Names the script in messages; no key of the file."""


PLACEHOLDER = "{python}"
_WORDS = {
    "kind": get_args(FaultKind),
    "stop": get_args(StopKind),
    "chunk": ("words", "whole", "a number of characters"),
}
_STEP_HEADER = re.compile(r"^\s*\[\[\s*step\s*\]\]")


class ScriptError(ValueError):
    """The script can't be used; the message names file, line and step."""


def load_script(path: Path, *, python: str = "python3") -> Script:
    """Read a script file. ``python`` replaces the placeholder ``{python}``.

    Raises:
        ScriptError: the file can't be read or is no script.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: can't be read: {error}") from error
    return parse_script(source, origin=str(path), python=python)


def parse_script(source: str, *, origin: str = "script", python: str = "python3") -> Script:
    """Read a script from its text.

    Raises:
        ScriptError: it is no TOML, or no script.
    """
    try:
        data = cast("dict[str, Any]", _fill(tomllib.loads(source), python))
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"{origin}: {error}") from error
    entries = data.pop("step", [])
    if not isinstance(entries, list):
        raise ScriptError(f"{origin}: step must be a list of tables, written as [[step]]")
    script = _convert({**data, _ORIGIN: origin}, Script, origin)
    lines = [f"line {number}, " for number, line in enumerate(source.splitlines(), 1) if _STEP_HEADER.match(line)]
    steps: list[Step] = []
    for number, entry in enumerate(cast("list[Any]", entries), 1):
        where = f"{origin}: {lines[number - 1] if number <= len(lines) else ''}step {number}"
        if isinstance(entry, dict):
            entry = {"chunk": script.chunk, "delay": script.delay, **cast("dict[str, Any]", entry)}
        step = _convert(entry, Step, where)
        if not ("text" in entry or step.reasoning or step.calls or step.fault):
            raise ScriptError(f'{where}: nothing to answer with; an empty answer is written as text = ""')
        steps.append(step)
    return structs.replace(script, steps=tuple(steps))


def _fill(value: object, python: str) -> object:
    """``value`` with the placeholder replaced in all texts, at any depth."""
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, python)
    if isinstance(value, list):
        return [_fill(entry, python) for entry in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _fill(entry, python) for key, entry in cast("dict[str, object]", value).items()}
    return value


def _convert(value: object, kind: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(value, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        path = path.rstrip("`")
        if words := _WORDS.get(path.rpartition(".")[2]):
            what += f" (allowed: {', '.join(words)})"
        place = re.sub(r"\[(\d+)\]", lambda match: f" {int(match[1]) + 1}", path).replace(".", ", ")
        raise ScriptError(f"{where}{place}: {what[0].lower()}{what[1:].replace('`object`', '`table`')}") from error


def _decode(kind: type, value: object) -> object:
    """``msgspec`` names the field of a TypeError that is raised here, but not that of its own errors."""
    if kind is Texts:
        texts = cast("list[object]", value) if isinstance(value, list) else [value]
        if all(isinstance(text, str) for text in texts):
            return Texts(cast("list[str]", texts))
        raise TypeError("expected a text or a list of texts")
    if isinstance(value, str | dict):
        return Arguments(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    raise TypeError("expected a table, or a text that is sent unchanged")
