"""Servers that answer nothing, with success, because the conversation exceeds their context window."""

from __future__ import annotations

from swecli.core.engine.model_call import CHARACTERS_PER_TOKEN
from swecli.core.llm.catalog import shown_ref
from swecli.core.llm.types import ModelInfo, ProviderError
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.messages import Message, Part, ReasoningPart, TextPart

NEARLY_FULL = 0.9
"""Share of what may be sent from which on an empty answer means that the window is full."""
FULL = 0.98
"""Share of the whole window that prompt and answer fill together."""
SHORT = 512
"""Output tokens below which an answer without a limit of its own was not ended by the limit for answers."""
_STEP = 512
"""Windows are multiples of this number of tokens."""

SET_WINDOW = (
    "If its server has a smaller context window than swecli assumes, raise it there (Ollama: num_ctx or "
    "OLLAMA_CONTEXT_LENGTH; LM Studio: Context Length), or use `swecli config set models.window.PROVIDER/NAME TOKENS`."
)


def silent_overflow(message: Message, limit: int | None, budget: Budget, info: ModelInfo) -> ProviderError | None:
    """The overflow that an answer without text and calls stands for; None if it has another cause. ``limit`` is the
    requested limit of the answer in tokens, ``budget`` the measure of the request."""
    response = message.response
    stop = response.stop.kind if response is not None else None
    usage = response.usage if response is not None else None
    prompt, output = (usage.input_total, usage.output_total) if usage is not None else (None, None)
    reported = prompt + (output or 0) if prompt is not None else 0
    full = reported >= FULL * budget.window
    if stop == "length":
        written = output if output is not None else sum(map(_characters, message.parts)) // CHARACTERS_PER_TOKEN
        full = full or written < min(SHORT, (limit or 2 * SHORT) // 2)
    elif stop in (None, "end", "other"):
        full = not message.parts and (full or is_nearly_full(budget))
    else:
        full = stop == "context_full"
    if not full:
        return None
    size = f"{reported:,}" if prompt is not None else f"about {budget.used:,}"
    return ProviderError(
        "context_overflow",
        f"{shown_ref(info.ref)} answered nothing: {size} tokens fill its context window",
        window=_window(reported) if stop == "length" else None,
        hint=hint(info),
    )


def hint(info: ModelInfo) -> str:
    """The user's remedy for a window that is smaller than assumed; empty if it is well known."""
    return "" if info.window_source == "catalogue" else SET_WINDOW


def is_nearly_full(budget: Budget) -> bool:
    """Whether a request of this measure may have been too long for its server."""
    return budget.upper >= NEARLY_FULL * budget.effective


def _characters(part: Part) -> int:
    return len(part.text) if isinstance(part, TextPart | ReasoningPart) else 0


def _window(reported: int) -> int | None:
    """The window that prompt and answer fill exactly; None if their sum is no usual window."""
    window = round(reported / _STEP) * _STEP
    return window if window >= 2 * _STEP and abs(window - reported) <= 2 else None
