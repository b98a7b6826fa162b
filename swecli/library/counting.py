"""Counting tokens of texts, messages and whole contexts."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Literal, TypedDict, get_args

from swecli.core.context_management import monitor
from swecli.core.context_management.calibration import RatioStore
from swecli.core.context_management.counter import CharCounter, CountsTokens, HybridCounter, PieceEstimator, pieces
from swecli.core.protocol import messages as protocol
from swecli.library.documents import ContextState, Message

CountingMethod = Literal["tiktoken", "transformers", "chars"]


class TokenCounter:
    """Counts tokens by one of three methods; any object with a ``count`` can replace it.

    - ``tiktoken``: OpenAI's o200k_base; estimates until the vocabulary is loaded (``load`` waits for it); -
    ``transformers``: the tokenizer of ``model``, a folder or a name in the local cache of the transformers package,
    which has to be installed; nothing is downloaded; - ``chars``: four characters a token, or ``chars_per_token``.

    Raises:
        ValueError: no such method, ``transformers`` without a model, or no such tokenizer on this machine.
        ImportError: the transformers package is not installed.
    """

    def __init__(self, method: CountingMethod = "tiktoken", *, model: str = "", chars_per_token: float = 4.0) -> None:
        if method not in get_args(CountingMethod):
            raise ValueError(f"unknown token counter {method!r}; use {', '.join(get_args(CountingMethod))}")
        self.method = method
        self._counter: CountsTokens
        if method == "tiktoken":
            self._counter = HybridCounter(delay=0)
        elif method == "transformers":
            self._counter = TransformersCounter(model)
        else:
            self._counter = CharCounter(chars_per_token)

    @property
    def exact(self) -> bool:
        """Whether counts come from a vocabulary rather than estimates."""
        return self._counter.exact if isinstance(self._counter, HybridCounter) else self.method == "transformers"

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self._counter.count(text)

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count long texts in a thread, so that ``count`` need not wait for them later."""
        if isinstance(self._counter, HybridCounter):
            await self._counter.count_ahead(texts, exact=exact)

    async def make_exact(self) -> bool:
        """Wait for the vocabulary without blocking the event loop; whether counts are exact now."""
        if isinstance(self._counter, HybridCounter):
            await self._counter.make_exact()
        return self.exact

    def load(self) -> bool:
        """Wait until the vocabulary is loaded; whether counts are exact now. Not for the event loop."""
        if isinstance(self._counter, HybridCounter):
            self._counter.warm_up().join()
        return self.exact


class TransformersCounter:
    """Counts with a tokenizer of the transformers package, without a template's special tokens."""

    def __init__(self, model: str) -> None:
        if not model:
            raise ValueError("counting with transformers needs a model: a folder or a name in its local cache")
        try:
            # An optional package, unknown to the type checker.
            transformers: Any = import_module("transformers")
        except ImportError as error:
            raise ImportError(
                "counting with transformers needs the transformers package: pip install transformers"
            ) from error
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ValueError(f"no tokenizer for {model!r} on this machine: {error}") from error
        self._estimator = PieceEstimator()

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return sum(self._count(piece) for piece in pieces(text)) if text else 0

    def _count(self, piece: str) -> int:
        try:
            return len(self._tokenizer.encode(piece, add_special_tokens=False))
        except (ValueError, TypeError, OverflowError):  # a lone surrogate, for example
            return self._estimator.count(piece)


class UsageStats(TypedDict):
    """Figures about a context state; ``usage_percent`` is 0 to 100, more if it overflows."""

    total_tokens: int
    limit: int
    usage_percent: float
    available_tokens: int
    needs_compaction: bool
    message_count: int
    compaction_count: int
    breakdown: dict[str, int]


class TokenMonitor(monitor.TokenMonitor):
    """The measure of requests, and of contexts as documents. ``context_limit`` is the limit of every updated state;
    None leaves each its own."""

    def __init__(
        self,
        context_limit: int | None = None,
        *,
        counter: CountsTokens | None = None,
        ratios: RatioStore | None = None,
    ) -> None:
        super().__init__(counter, ratios)
        self.context_limit = context_limit

    def count_message_tokens(self, message: Message | protocol.Message) -> int:
        """Estimated tokens of a message with its calls and results, in the counter's own unit."""
        if isinstance(message, Message):
            return sum(map(self.count_tokens, message.texts()))
        return self._sizes.message(message).total

    def update_context_state(self, state: ContextState) -> None:
        """Count the uncounted parts, and add up the state's total."""
        if self.context_limit is not None:
            state.context_limit = self.context_limit
        for message in state.messages:
            if message.tokens == 0:
                message.tokens = self.count_message_tokens(message)
        for part in (state.codebase_summary, state.current_task):
            if part is not None and part.tokens == 0:
                part.tokens = sum(map(self.count_tokens, part.texts()))
        state.total_tokens = sum(_breakdown(state).values())

    def get_usage_stats(self, state: ContextState) -> UsageStats:
        """The state in figures."""
        return {
            "total_tokens": state.total_tokens,
            "limit": state.context_limit,
            "usage_percent": 100 * state.total_tokens / state.context_limit,
            "available_tokens": state.get_available_tokens(),
            "needs_compaction": state.needs_compaction(),
            "message_count": len(state.messages),
            "compaction_count": state.compaction_count,
            "breakdown": _breakdown(state),
        }


def _breakdown(state: ContextState) -> dict[str, int]:
    return {
        "messages": sum(message.tokens for message in state.messages),
        "codebase_summary": state.codebase_summary.tokens if state.codebase_summary else 0,
        "current_task": state.current_task.tokens if state.current_task else 0,
    }
