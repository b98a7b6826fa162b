"""The scripted model: a client that follows a script instead of calling a provider."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Struct, structs

from swecli.core.llm.types import (
    ErrorKind,
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ProviderError,
    ReasoningDelta,
    Started,
    StreamEvent,
    SystemBlock,
    TextDelta,
    ToolArgsDelta,
    ToolCallDone,
    ToolCallStarted,
    ToolSchema,
    UsageUpdate,
)
from swecli.core.protocol.messages import (
    Message,
    Origin,
    Part,
    ReasoningPart,
    Response,
    Stop,
    StopKind,
    TextPart,
    ToolCallPart,
    Usage,
)
from swecli.lazy_pattern import lazy_pattern

# The format of a script: steps with text, calls, usage and faults.


Chunk = Literal["words", "whole"] | Annotated[int, Meta(ge=1)]
"""Size of a text's streamed pieces: words, the whole, or a number of characters."""
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

DEFAULT_CLOSING = "(The script of this scripted model has no more answers.)"


class Arguments(str):
    """The JSON text of a call's arguments, written in the file as a table, or as a text sent unchanged."""


class Texts(tuple[str, ...]):
    """Several texts, written in the file as a text or a list of texts."""


class ScriptedCall(Struct, frozen=True, forbid_unknown_fields=True):
    tool: Annotated[str, Meta(min_length=1)]
    arguments: Arguments = Arguments("{}")
    id: str = ""
    """Empty: the player generates one."""


class ScriptedUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens; None = estimated from the request and the answer. ``silent``: no usage is reported at all."""

    input: _Count | None = None
    cache_read: _Count | None = None
    cache_write: _Count | None = None
    output: _Count | None = None
    reasoning: _Count | None = None
    silent: bool = False


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault in an answer.

    ``after`` is the number of streamed characters (of reasoning, text and arguments; with ``in_arguments``, of
    arguments only) before the fault; None = before the answer begins, as an HTTP error if the fault has a status.
    ``tokens`` and ``window`` are the numbers of an overflow, ``retry_after`` and ``seconds`` (duration of a stall; None
    = until the request is aborted) are seconds.
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
    """Condition on a request. Each field that is set must match.

    The texts are parts that must occur: ``last_result`` in a tool result of the newest message, ``last_user`` in the
    newest user message, ``request`` anywhere. ``last_error``: whether one of the newest message's tool results is an
    error; never matches without results. ``tools``: the request offers tools.
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
    """A whole script. ``chunk`` and ``delay`` are defaults for its steps."""

    steps: tuple[Step, ...] = msgspec.field(default=(), name="step")
    name: str = "script"
    window: Annotated[int, Meta(ge=1)] | None = None
    max_output: Annotated[int, Meta(ge=1)] | None = None
    closing: str = DEFAULT_CLOSING
    aside: str = ""
    """Answer to every request without tools, outside the steps; empty: such requests take a step."""
    chunk: Chunk = "words"
    delay: _Seconds = 0.0
    origin: str = msgspec.field(default="script", name=_ORIGIN)
    """The script's name in messages; not a key of the file."""


PLACEHOLDER = "{python}"
_WORDS = {
    "kind": get_args(FaultKind),
    "stop": get_args(StopKind),
    "chunk": ("words", "whole", "a number of characters"),
}
_STEP_HEADER = lazy_pattern(r"^\s*\[\[\s*step\s*\]\]")


class ScriptError(ValueError):
    """The script is invalid; the message names file, line and step."""


def load_script(path: Path, *, python: str = "python3") -> Script:
    """Read a script file. ``python`` replaces the placeholder ``{python}``.

    Raises:
        ScriptError: the file can't be read or is not a script.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"cannot read {path}: {error}") from error
    return parse_script(source, origin=str(path), python=python)


def parse_script(source: str, *, origin: str = "script", python: str = "python3") -> Script:
    """Read a script from its text.

    Raises:
        ScriptError: it is not TOML, or not a script.
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
            raise ScriptError(f'{where}: no answer given; write an empty answer as text = ""')
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
        location = re.sub(r"\[(\d+)\]", lambda match: f" {int(match[1]) + 1}", path).replace(".", ", ")
        raise ScriptError(f"{where}{location}: {what[0].lower()}{what[1:].replace('`object`', '`table`')}") from error


def _decode(kind: type, value: object) -> object:
    """Convert a value; ``msgspec`` names the field only for a TypeError raised here, not for its own errors."""
    if kind is Texts:
        texts = cast("list[object]", value) if isinstance(value, list) else [value]
        if all(isinstance(text, str) for text in texts):
            return Texts(cast("list[str]", texts))
        raise TypeError("expected a text or a list of texts")
    if isinstance(value, str | dict):
        return Arguments(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    raise TypeError("expected a table, or a text that is sent unchanged")


# --- the model ----------------------------------------------------------------------------------------------


BYTES_PER_TOKEN = 3.5
"""Bytes that the usage estimate counts as one token."""


class ScriptMismatch(AssertionError):
    """A request differs from the step's expectation; the message names script, step and difference."""


class RequestFacts(Struct, frozen=True):
    """Facts about a request that a script may check. ``results`` are the tool results after the newest answer;
    ``failed`` is whether one of them is an error, None without results or if the protocol does not report it. ``calls``
    counts the tool calls of the whole request."""

    results: tuple[str, ...] = ()
    failed: bool | None = None
    last_user: str = ""
    text: str = ""
    tools: bool = False
    calls: int = 0


class Piece(Struct, frozen=True):
    """One streamed piece of an answer. ``part`` is the index of the part; ``start`` and ``done`` frame a call and carry
    its ``name`` and ``call_id``, as do its arguments."""

    kind: Literal["reasoning", "text", "start", "arguments", "done"]
    part: int
    text: str = ""
    name: str = ""
    call_id: str = ""


def facts_of(request: ModelRequest, *, whole: bool = True) -> RequestFacts:
    """The facts of a neutral request; its ``text`` only with ``whole``, because it is long in a long session."""
    messages = request.messages
    newest = next((at for at in range(len(messages), 0, -1) if messages[at - 1].role == "assistant"), 0)
    results = tuple(result for message in messages[newest:] for result in message.tool_results)
    texts = (*(block.text for block in request.system), *map(_message_text, messages)) if whole else ()
    return RequestFacts(
        results=tuple(result.text for result in results),
        failed=any(result.is_error for result in results) if results else None,
        last_user=next(
            (message.text for message in reversed(messages) if message.role == "user" and not message.note), ""
        ),
        text="\n".join(texts),
        tools=bool(request.tools),
        calls=sum(len(message.tool_calls) for message in messages if message.role == "assistant"),
    )


def _message_text(message: Message) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return "\n".join((message.text, *calls, *(result.text for result in message.tool_results)))


class ScriptPlayer:
    """The position within a script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._next = 0
        conditions = (condition for step in script.steps for condition in (step.when, step.expect))
        self.reads_requests = any(condition is not None and condition.request for condition in conditions)
        """Whether any step checks the text of the request."""

    @property
    def over(self) -> bool:
        return self._next >= len(self._script.steps)

    def take(self, facts: RequestFacts) -> Step:
        """The step that answers this request: the next one with a matching ``when``. Earlier steps are skipped for
        good. After the last step, the script's closing words are repeated.

        Raises:
            ScriptMismatch: the request differs from the step's expectation.
        """
        script = self._script
        if script.aside and not facts.tools:
            return Step(text=script.aside, chunk=script.chunk, delay=script.delay)
        for at in range(self._next, len(script.steps)):
            step = script.steps[at]
            if step.when is None or not mismatches(step.when, facts):
                self._next = at + 1
                wrong = mismatches(step.expect, facts) if step.expect else []
                if wrong:
                    raise ScriptMismatch(f"{script.origin}: step {at + 1}: " + "; ".join(wrong))
                return step
        self._next = len(script.steps)
        return Step(text=script.closing, chunk=script.chunk, delay=script.delay)


def mismatches(condition: Condition, facts: RequestFacts) -> list[str]:
    """Unmet parts of the condition, as sentences; empty if all match."""
    texts = (
        ("the newest tool results", condition.last_result, "\n".join(facts.results)),
        ("the newest user message", condition.last_user, facts.last_user),
        ("the request", condition.request, facts.text),
    )
    wrong = [f"{where} should contain {part!r}" for where, parts, text in texts for part in parts if part not in text]
    if wrong and condition.last_result:
        wrong.append(f"the newest tool results are {_shortened(facts.results)}")
    if condition.last_error is not None and condition.last_error != facts.failed:
        wrong.append(f"last_error should be {condition.last_error}, is {facts.failed}")
    if condition.tools is not None and condition.tools != facts.tools:
        wrong.append(f"tools should be {condition.tools}, is {facts.tools}")
    return wrong


def _shortened(results: tuple[str, ...], limit: int = 500) -> str:
    text = repr(results)
    return text if len(text) <= limit else f"{text[:limit]}..."


def split(text: str, chunk: Chunk) -> Iterator[str]:
    """Cut a text into its streamed pieces; joined they are the text."""
    if chunk == "whole":
        if text:
            yield text
    elif chunk == "words":
        yield from re.findall(r"\s*\S+|\s+", text)
    else:
        for start in range(0, len(text), chunk):
            yield text[start : start + chunk]


def pieces(step: Step, made_ids: Iterable[str]) -> Iterator[Piece]:
    """The whole answer in pieces. ``made_ids`` supplies ids for calls without one."""
    part = 0
    fresh = iter(made_ids)
    kinds: tuple[tuple[Literal["reasoning", "text"], str], ...] = (("reasoning", step.reasoning), ("text", step.text))
    for kind, text in kinds:
        for cut in split(text, step.chunk):
            yield Piece(kind, part, cut)
        part += bool(text)
    for call in step.calls:
        made = next(fresh)
        call_id = call.id or made
        yield Piece("start", part, name=call.tool, call_id=call_id)
        for cut in split(call.arguments, step.chunk):
            yield Piece("arguments", part, cut, call.tool, call_id)
        yield Piece("done", part, name=call.tool, call_id=call_id)
        part += 1


def until_fault(answer: Iterable[Piece], fault: Fault) -> Iterator[Piece]:
    """The pieces before the fault: exactly ``fault.after`` characters."""
    left = fault.after or 0
    for piece in answer:
        counts = piece.kind == "arguments" if fault.in_arguments else bool(piece.text)
        if counts and len(piece.text) >= left:
            if left:
                yield Piece(piece.kind, piece.part, piece.text[:left], piece.name, piece.call_id)
            return
        if not left and not fault.in_arguments:
            return
        left -= len(piece.text) if counts else 0
        yield piece


def stop_of(step: Step) -> StopKind:
    return step.stop or ("tool_use" if step.calls else "end")


class UsageEstimate:
    """Plausible usage: the request's size in tokens, and as cached the prefix shared with the previous request."""

    def __init__(self) -> None:
        self._values: list[object] = []
        self._texts: list[str] = []
        self._ends: list[int] = []
        """Bytes of the previous request up to and with each value."""

    def of(self, request: ModelRequest, step: Step) -> Usage | None:
        """Usage of a neutral request, overridden by the step's own numbers."""
        return self.measure((*request.system, *request.tools, *request.messages), step)

    def measure(self, values: Sequence[object], step: Step) -> Usage | None:
        """Usage of a request given as a sequence of values (each with a stable ``repr`` or JSON text);
        None if the step reports nothing.
        """
        if step.usage.silent:
            return None
        values = list(values)
        same = min(len(values), len(self._values))
        if values[:same] != self._values[:same]:
            same = next(at for at in range(same) if values[at] != self._values[at])
        before, now = self._texts[same:], [_canonical(value) for value in values[same:]]
        shared = total = self._ends[same - 1] if same else 0
        shared += _shared_bytes(before, now)
        self._values = values
        del self._texts[same:], self._ends[same:]
        for text in now:
            total += len(text)
            self._texts.append(text)
            self._ends.append(total)
        return _reported(step, int(total / BYTES_PER_TOKEN) + 1, int(shared / BYTES_PER_TOKEN))


def _canonical(value: object) -> str:
    if isinstance(value, Message):
        return "\n".join((value.role, *(f"{part!r}" for part in value.parts)))
    if isinstance(value, SystemBlock):
        return value.text
    if isinstance(value, ToolSchema):
        return f"{value.name}\n{value.description}\n{json.dumps(dict(value.parameters))}"
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return repr(value)


def _shared_bytes(before: list[str], now: list[str]) -> int:
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return shared + next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
        shared += len(new)
    return shared


def _reported(step: Step, total: int, shared: int) -> Usage:
    given = step.usage
    input_total = total if given.input is None else given.input
    cache_read = min(shared, input_total) if given.cache_read is None else given.cache_read
    reasoning = int(len(step.reasoning) / BYTES_PER_TOKEN) if given.reasoning is None else given.reasoning
    written = len(step.text) + sum(len(call.tool) + len(call.arguments) for call in step.calls)
    return Usage(
        input_total=input_total,
        cache_read=cache_read,
        cache_write=given.cache_write,
        output_total=int(written / BYTES_PER_TOKEN) + 1 + reasoning if given.output is None else given.output,
        reasoning=reasoning,
    )


Pause = Callable[[float], Awaitable[None]]
"""Wait for the seconds, or as long as the caller chooses."""

DEFAULT_WINDOW = 128_000

_KINDS: dict[str, ErrorKind] = {
    "overflow": "context_overflow",
    "cut": "truncated",
    "garbage": "protocol",
    "stall": "stalled",
}
_SENTENCES: dict[str, str] = {
    "overflow": "prompt is too long: {tokens} tokens > {window} maximum",
    "quota": "the account has no credit left",
    "rate_limit": "too many requests",
    "overloaded": "the model is overloaded",
    "auth": "the API key is invalid",
    "not_found": "the model does not exist",
    "too_large": "the request is too large",
    "bad_request": "the request is invalid",
    "server": "internal server error",
    "network": "connection reset by peer",
    "cut": "the stream ended before the answer did",
    "garbage": "the answer is not of the protocol",
    "stall": "nothing arrived for too long",
}


async def without_waiting(_seconds: float) -> None:
    """A pause that only lets other tasks run."""
    await asyncio.sleep(0)


class ScriptedModel:
    """A ``ModelClient`` that answers from a script.

    ``pause`` is awaited before the answer and between its pieces with the script's own delays; by default it takes no
    time. ``requests`` holds every request, in order, unless ``keep_requests`` is False.

    Raises (while streaming):
        ScriptMismatch: a request is not what the script expects. A test must fail then, so this is the one
            exception to the rule that a client raises nothing.
    """

    def __init__(
        self, script: Script, *, pause: Pause = without_waiting, provider: str = "scripted", keep_requests: bool = True
    ) -> None:
        self._script = script
        self._player = ScriptPlayer(script)
        self._usage = UsageEstimate()
        self._pause = pause
        self._origin = Origin("scripted", "scripted", script.name)
        self.requests: list[ModelRequest] = []
        self._keep_requests = keep_requests
        self._answers = 0
        self._info = ModelInfo(
            provider=provider,
            name=script.name,
            window=script.window or DEFAULT_WINDOW,
            max_output=script.max_output,
            window_source="script",
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def over(self) -> bool:
        return self._player.over

    async def close(self) -> None:
        """Nothing to release."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self._answers += 1
        if self._keep_requests:
            self.requests.append(request)
        facts = facts_of(request, whole=self._player.reads_requests)
        step = self._player.take(facts)
        usage = self._usage.of(request, step)
        await self._pause(step.wait)
        fault = step.fault
        if fault is not None and fault.after is None and fault.kind in (*STATUS, "network"):
            yield Failed(error_of(fault))
            return
        answer = pieces(step, (f"call_{facts.calls + number}" for number in range(1, len(step.calls) + 1)))
        partial = _Partial(self._origin)
        yield Started(self._script.name, f"scripted-{self._answers}")
        if fault is None or fault.kind == "empty":
            async for event in self._pieces(() if fault else answer, partial, step.delay):
                yield event
            if usage is not None:
                yield UsageUpdate(usage)
            yield Finished(partial.message(usage, step))
            return
        async for event in self._pieces(until_fault(answer, fault), partial, step.delay):
            yield event
        if fault.kind == "stall":
            await self._stall(fault)
        yield Failed(error_of(fault), partial.message(None, None) if partial.parts else None)

    async def _pieces(self, answer: Iterable[Piece], partial: _Partial, delay: float) -> AsyncIterator[StreamEvent]:
        for piece in answer:
            await self._pause(delay)
            yield partial.add(piece)

    async def _stall(self, fault: Fault) -> None:
        if fault.seconds is None:
            await asyncio.Event().wait()
        else:
            await self._pause(fault.seconds)


def error_of(fault: Fault) -> ProviderError:
    kind: ErrorKind = _KINDS.get(fault.kind, fault.kind)  # pyright: ignore[reportAssignmentType]
    return ProviderError(
        kind,
        sentence_of(fault),
        status=STATUS.get(fault.kind) if fault.after is None else 200,
        retry_after=fault.retry_after,
        prompt_tokens=fault.tokens,
        window=fault.window,
        unreached=UNREACHED if fault.kind == "network" and fault.after is None else "",
    )


UNREACHED = "scripted.example"
"""Host of a fault ``network`` before the first byte."""


def sentence_of(fault: Fault) -> str:
    if fault.message:
        return fault.message
    return _SENTENCES.get(fault.kind, fault.kind).format(tokens=fault.tokens, window=fault.window)


class _Partial:
    """The growing assistant message."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.parts: list[Part] = []

    def add(self, piece: Piece) -> StreamEvent:
        """Add a piece; returns its event."""
        if piece.kind == "text":
            self._append(piece, TextPart(piece.text))
            return TextDelta(piece.part, piece.text)
        if piece.kind == "reasoning":
            self._append(piece, ReasoningPart(piece.text))
            return ReasoningDelta(piece.part, piece.text)
        if piece.kind == "start":
            self._append(piece, ToolCallPart(piece.call_id, piece.name, ""))
            return ToolCallStarted(piece.part, piece.call_id, piece.name)
        if piece.kind == "arguments":
            self._append(piece, ToolCallPart(piece.call_id, piece.name, piece.text))
            return ToolArgsDelta(piece.part, piece.text)
        call = self.parts[piece.part]
        assert isinstance(call, ToolCallPart)
        return ToolCallDone(piece.part, call)

    def _append(self, piece: Piece, part: Part) -> None:
        if piece.part == len(self.parts):
            self.parts.append(part)
            return
        before = self.parts[piece.part]
        if isinstance(before, TextPart) and isinstance(part, TextPart):
            self.parts[piece.part] = TextPart(before.text + part.text)
        elif isinstance(before, ReasoningPart) and isinstance(part, ReasoningPart):
            self.parts[piece.part] = ReasoningPart(before.text + part.text)
        elif isinstance(before, ToolCallPart) and isinstance(part, ToolCallPart):
            self.parts[piece.part] = ToolCallPart(before.call_id, before.name, before.arguments + part.arguments)

    def message(self, usage: Usage | None, step: Step | None) -> Message:
        stop = Stop(stop_of(step), stop_of(step)) if step else Stop()
        return Message(
            "assistant",
            tuple(self.parts),
            response=Response(self._origin, stop, usage, complete=step is not None),
        )
