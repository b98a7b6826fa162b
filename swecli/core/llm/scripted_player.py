"""Playing a script: which step answers a request, into which pieces the answer is cut, and where a fault ends it.

Shared by the scripted model and by servers that speak a real protocol from the same scripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from swecli.core.llm.scripted_steps import Chunk, Condition, Fault, Script, Step
from swecli.core.llm.types import ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.messages import Message, StopKind, ToolCallPart
from swecli.core.protocol.usage import Usage

BYTES_PER_TOKEN = 3.5
"""What the estimate of usage counts as one token."""


class ScriptMismatch(AssertionError):
    """A request is not what the step expects; the message names script, step and difference."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a script may ask of a request. ``results`` are the tool results after the newest answer;
    ``failed`` is whether one of them is an error, None without results or where the protocol does not tell.
    ``calls`` counts the tool calls of the whole request."""

    results: tuple[str, ...] = ()
    failed: bool | None = None
    last_user: str = ""
    text: str = ""
    tools: bool = False
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of an answer on its way. ``part`` is the index of the part; ``start`` and ``done`` frame a
    call and carry its ``name`` and ``call_id``, as do its arguments."""

    kind: Literal["reasoning", "text", "start", "arguments", "done"]
    part: int
    text: str = ""
    name: str = ""
    call_id: str = ""


def facts_of(request: ModelRequest, *, whole: bool = True) -> RequestFacts:
    """The facts of a neutral request; its ``text`` only with ``whole``, for that of a long session is long."""
    messages = request.messages
    newest = next((at for at in range(len(messages), 0, -1) if messages[at - 1].role == "assistant"), 0)
    results = tuple(result for message in messages[newest:] for result in message.tool_results)
    texts = (*_system_texts(request), *map(_message_text, messages), request.tail) if whole else ()
    return RequestFacts(
        results=tuple(result.text for result in results),
        failed=any(result.is_error for result in results) if results else None,
        last_user=next((message.text for message in reversed(messages) if message.role == "user"), ""),
        text="\n".join(texts),
        tools=bool(request.tools),
        calls=sum(isinstance(part, ToolCallPart) for message in messages for part in message.parts),
    )


def _system_texts(request: ModelRequest) -> Iterator[str]:
    return (block.text for block in request.system)


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
        """Whether any step asks for something in the text of the request."""

    @property
    def over(self) -> bool:
        """Whether every step has been taken or passed over."""
        return self._next >= len(self._script.steps)

    def take(self, facts: RequestFacts) -> Step:
        """The step that answers this request: the next one whose ``when`` holds. Steps before it are passed
        over for good. After the last step, the script's closing words, again and again.

        Raises:
            ScriptMismatch: the request is not what the step expects.
        """
        script = self._script
        if script.aside is not None and not facts.tools:
            return Step(0, text=script.aside, chunk=script.chunk, delay=script.delay)
        for at in range(self._next, len(script.steps)):
            step = script.steps[at]
            if step.when is None or not mismatches(step.when, facts):
                self._next = at + 1
                self._check(step, facts)
                return step
        self._next = len(script.steps)
        return Step(len(script.steps) + 1, text=script.closing, chunk=script.chunk, delay=script.delay)

    def _check(self, step: Step, facts: RequestFacts) -> None:
        wrong = mismatches(step.expect, facts) if step.expect else []
        if wrong:
            raise ScriptMismatch(f"{self._script.origin}: step {step.number}: " + "; ".join(wrong))


def mismatches(condition: Condition, facts: RequestFacts) -> list[str]:
    """What of the condition does not hold, as sentences; empty when all holds."""
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
    """Cut a text into the pieces in which it is streamed; joined they are the text."""
    if chunk == "whole":
        if text:
            yield text
    elif chunk == "words":
        yield from re.findall(r"\s*\S+|\s+", text)
    else:
        for start in range(0, len(text), chunk):
            yield text[start : start + chunk]


def pieces(step: Step, made_ids: Iterable[str]) -> Iterator[Piece]:
    """The whole answer in pieces. ``made_ids`` gives ids to calls without one."""
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
    """What arrives before the fault strikes: exactly ``fault.after`` characters, and nothing that follows."""
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
    """Why the model says that it stopped."""
    return step.stop or ("tool_use" if step.calls else "end")


class UsageEstimate:
    """Believable usage: the request's size in tokens, and as cached what it shares with the request before."""

    def __init__(self) -> None:
        self._previous: list[tuple[object, str]] = []

    def of(self, request: ModelRequest, step: Step) -> Usage | None:
        """Usage of a neutral request, with the step's own numbers where it has them."""
        return self.measure((*request.system, *request.tools, *request.messages), request.tail, step)

    def measure(self, prefix: Sequence[object], tail: str, step: Step) -> Usage | None:
        """Usage of a request that is a row of values (each with a stable ``repr`` or JSON text) and a tail.

        None when the step reports nothing.
        """
        if step.usage.silent:
            return None
        current: list[tuple[object, str]] = []
        for at, value in enumerate(prefix):
            known = self._previous[at] if at < len(self._previous) else None
            current.append((value, known[1] if known is not None and known[0] == value else _canonical(value)))
        shared = _shared_bytes([text for _, text in self._previous], [text for _, text in current])
        self._previous = current
        total = sum(len(text) for _, text in current) + len(_canonical(tail))
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
