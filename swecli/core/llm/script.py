"""The format of a script: steps with text, calls, usage and faults."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

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


PLACEHOLDER = "{python}"
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
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise ScriptError(f"{origin}: {error}") from error
    lines = [number for number, line in enumerate(source.splitlines(), 1) if _STEP_HEADER.match(line)]
    return _Reader(origin, lines, python).script(data)


class _Table:
    """One table of the file: typed access to its keys, and an error for each key that nobody asked for."""

    def __init__(self, data: object, where: str, python: str) -> None:
        if not isinstance(data, dict):
            raise ScriptError(f"{where}: a table is expected, not {_name(data)}")
        self._data = dict(cast("dict[str, Any]", data))
        self.where = where
        self._python = python

    def text(self, key: str, default: str = "") -> str:
        value = self._data.pop(key, default)
        if not isinstance(value, str):
            raise self.error(key, "a text", value)
        return value.replace(PLACEHOLDER, self._python)

    def texts(self, key: str) -> tuple[str, ...]:
        """A text or a list of texts."""
        value: Any = self._data.pop(key, [])
        listed = cast("list[object]", value if isinstance(value, list) else [value])
        if not all(isinstance(entry, str) for entry in listed):
            raise self.error(key, "a text or a list of texts", listed)
        return tuple(str(entry).replace(PLACEHOLDER, self._python) for entry in listed)

    def whole(self, key: str, minimum: int = 0) -> int | None:
        value = self._data.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise self.error(key, f"a whole number from {minimum}", value)
        return value

    def seconds(self, key: str) -> float | None:
        value = self._data.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e6:
            raise self.error(key, "a number of seconds", value)
        return float(value)

    def truth(self, key: str) -> bool | None:
        value = self._data.pop(key, None)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, "true or false", value)
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str | None:
        value = self._data.pop(key, None)
        if value is not None and value not in allowed:
            raise self.error(key, "one of " + ", ".join(allowed), value)
        return value

    def chunk(self, default: Chunk) -> Chunk:
        value = self._data.pop("chunk", default)
        if value in ("words", "whole") or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        raise self.error("chunk", '"words", "whole" or a number of characters', value)

    def table(self, key: str) -> _Table | None:
        value = self._data.pop(key, None)
        return None if value is None else _Table(value, f"{self.where}, {key}", self._python)

    def tables(self, key: str) -> list[_Table]:
        value = self._data.pop(key, [])
        if not isinstance(value, list):
            raise self.error(key, "a list of tables", value)
        listed = cast("list[object]", value)
        return [_Table(entry, f"{self.where}, {key} {number}", self._python) for number, entry in enumerate(listed, 1)]

    def raw(self, key: str) -> object:
        return self._data.pop(key, None)

    def end(self) -> None:
        if self._data:
            raise ScriptError(f"{self.where}: unknown key {', '.join(sorted(self._data))}")

    def error(self, key: str, wanted: str, value: object) -> ScriptError:
        return ScriptError(f"{self.where}: {key} must be {wanted}, not {_name(value)}")


class _Reader:
    """Turns the decoded file into a ``Script``."""

    def __init__(self, origin: str, lines: list[int], python: str) -> None:
        self._origin = origin
        self._lines = lines
        self._python = python

    def script(self, data: dict[str, Any]) -> Script:
        entries = data.pop("step", [])
        if not isinstance(entries, list):
            raise ScriptError(f"{self._origin}: step must be a list of tables, written as [[step]]")
        top = _Table(data, self._origin, self._python)
        chunk, delay = top.chunk("words"), top.seconds("delay") or 0.0
        listed = cast("list[object]", entries)
        script = Script(
            steps=tuple(self._step(number, entry, chunk, delay) for number, entry in enumerate(listed, 1)),
            name=top.text("name", "script"),
            window=top.whole("window", 1),
            max_output=top.whole("max_output", 1),
            closing=top.text("closing", DEFAULT_CLOSING),
            aside=top.text("aside") or None,
            chunk=chunk,
            delay=delay,
            origin=self._origin,
        )
        top.end()
        return script

    def _step(self, number: int, data: object, chunk: Chunk, delay: float) -> Step:
        line = f"line {self._lines[number - 1]}, " if number <= len(self._lines) else ""
        table = _Table(data, f"{self._origin}: {line}step {number}", self._python)
        own_delay = table.seconds("delay")
        has_text = "text" in cast("dict[str, Any]", data)
        step = Step(
            number=number,
            reasoning=table.text("reasoning"),
            text=table.text("text"),
            calls=tuple(self._call(call) for call in table.tables("call")),
            stop=cast("StopKind | None", table.choice("stop", get_args(StopKind))),
            usage=_usage(table.table("usage")),
            fault=_fault(table.table("fault")),
            when=_condition(table.table("when")),
            expect=_condition(table.table("expect")),
            chunk=table.chunk(chunk),
            delay=delay if own_delay is None else own_delay,
            wait=table.seconds("wait") or 0.0,
        )
        table.end()
        if not (has_text or step.reasoning or step.calls or step.fault):
            raise ScriptError(f'{table.where}: nothing to answer with; an empty answer is written as text = ""')
        return step

    def _call(self, table: _Table) -> ScriptedCall:
        tool = table.text("tool")
        if not tool:
            raise ScriptError(f"{table.where}: the tool's name is missing")
        arguments = _fill(table.raw("arguments"), self._python)
        text = arguments if isinstance(arguments, str) else _to_json(arguments, table)
        call = ScriptedCall(tool, text, table.text("id"))
        table.end()
        return call


def _fill(value: object, python: str) -> object:
    """``value`` with the placeholder replaced in all texts, at any depth."""
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, python)
    if isinstance(value, list):
        return [_fill(entry, python) for entry in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _fill(entry, python) for key, entry in cast("dict[str, object]", value).items()}
    return value


def _to_json(arguments: object, table: _Table) -> str:
    if arguments is None:
        return "{}"
    if not isinstance(arguments, dict):
        raise table.error("arguments", "a table, or a text that is sent as it is", arguments)
    try:
        return json.dumps(arguments, ensure_ascii=False)
    except TypeError as error:
        raise ScriptError(f"{table.where}: arguments: {error}") from error


def _usage(table: _Table | None) -> ScriptedUsage:
    if table is None:
        return ScriptedUsage()
    usage = ScriptedUsage(
        input=table.whole("input"),
        cache_read=table.whole("cache_read"),
        cache_write=table.whole("cache_write"),
        output=table.whole("output"),
        reasoning=table.whole("reasoning"),
        silent=table.truth("silent") or False,
    )
    table.end()
    return usage


def _fault(table: _Table | None) -> Fault | None:
    if table is None:
        return None
    kind = table.choice("kind", get_args(FaultKind))
    if kind is None:
        raise ScriptError(f"{table.where}: the kind is missing")
    fault = Fault(
        kind=cast("FaultKind", kind),
        after=table.whole("after"),
        in_arguments=table.truth("in_arguments") or False,
        message=table.text("message"),
        retry_after=table.seconds("retry_after"),
        tokens=table.whole("tokens"),
        window=table.whole("window"),
        seconds=table.seconds("seconds"),
    )
    table.end()
    return fault


def _condition(table: _Table | None) -> Condition | None:
    if table is None:
        return None
    condition = Condition(
        last_result=table.texts("last_result"),
        last_user=table.texts("last_user"),
        request=table.texts("request"),
        last_error=table.truth("last_error"),
        tools=table.truth("tools"),
    )
    table.end()
    return condition


def _name(value: object) -> str:
    return f"{value!r}" if isinstance(value, str | int | float | bool) else type(value).__name__
