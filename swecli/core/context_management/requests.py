"""From prompt, tools and conversation to one model request. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from swecli.core.context_management.budget import Limits, clamp_output
from swecli.core.context_management.prompt_builder import Prompt
from swecli.core.llm.types import ModelInfo, ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.events import Budget
from swecli.core.protocol.messages import Message

MAX_BREAKPOINTS = 4
"""More than this in one request is an error at Anthropic, the only kind of provider that wants them marked."""

MESSAGE_BREAKPOINTS = 3


def build_request(
    prompt: Prompt,
    tools: Iterable[ToolSchema],
    messages: Sequence[Message],
    *,
    info: ModelInfo,
    limits: Limits,
    session: str,
    tail: str = "",
    effort: str | None = None,
    watermark: int | None = None,
) -> ModelRequest:
    """One request. Without its tail, request k is a prefix of request k + 1 as long as the caller's values only
    grow at the end.

    ``watermark`` is the index of the last message whose content may be cleared again later: what comes before it
    is settled, so that a breakpoint there outlives the next clearing.
    """
    marks = message_breakpoints(messages, watermark)
    return ModelRequest(
        system=_limited(prompt.system, MAX_BREAKPOINTS - len(marks)),
        tools=tuple(sorted(tools, key=lambda tool: tool.name)),
        messages=tuple(messages),
        breakpoints=marks,
        tail="\n\n".join(part for part in (prompt.volatile, tail) if part),
        max_output_tokens=clamp_output(info, limits, 0),
        effort=effort,
        session=session,
        server_clearing=limits.server_clearing,
    )


def fit_output(request: ModelRequest, budget: Budget, info: ModelInfo, limits: Limits) -> ModelRequest:
    """The same request with its answer limited to what the window has left after it."""
    limit = clamp_output(info, limits, budget.upper)
    return request if limit == request.max_output_tokens else replace(request, max_output_tokens=limit)


def message_breakpoints(messages: Sequence[Message], watermark: int | None = None) -> tuple[int, ...]:
    """Where the conversation gets cache breakpoints: indexes in rising order, at most three.

    In order of worth: the last message; the watermark of clearing; the end of the previous turn; the message that
    was last in the previous request. The last one matters when an answer and its results have more blocks than a
    provider looks back from a breakpoint (20 at Anthropic).
    """
    last = len(messages) - 1
    wanted = (last, watermark, _turn_end(messages), _previous_last(messages))
    chosen: list[int] = []
    for index in wanted:
        if index is not None and 0 <= index <= last and index not in chosen:
            chosen.append(index)
    return tuple(sorted(chosen[:MESSAGE_BREAKPOINTS]))


def _turn_end(messages: Sequence[Message]) -> int | None:
    """The message before the user's newest one."""
    newest = _last_of(messages, "user")
    return newest - 1 if newest is not None else None


def _previous_last(messages: Sequence[Message]) -> int | None:
    """The message before the model's newest answer."""
    newest = _last_of(messages, "assistant")
    return newest - 1 if newest is not None else None


def _last_of(messages: Sequence[Message], role: str) -> int | None:
    return next((index for index in range(len(messages) - 1, -1, -1) if messages[index].role == role), None)


def _limited(system: tuple[SystemBlock, ...], most: int) -> tuple[SystemBlock, ...]:
    """Keep at most so many breakpoints: the last first, for it covers the whole prompt, then those from the
    beginning, which other projects share."""
    marked = [index for index, block in enumerate(system) if block.breakpoint]
    kept = {*marked[-1:], *marked[: max(0, most - 1)]}
    return tuple(
        block if not block.breakpoint or index in kept else replace(block, breakpoint=False)
        for index, block in enumerate(system)
    )
