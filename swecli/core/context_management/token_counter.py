"""Choosing how tokens are counted, for programs that use swecli as a library."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Literal, get_args

from swecli.core.context_management.hybrid_counter import HybridCounter
from swecli.core.context_management.tokens import CharCounter, CountsTokens, PieceEstimator, pieces

CountingMethod = Literal["tiktoken", "transformers", "chars"]


class TokenCounter:
    """Counts tokens by one of three methods; anything else with a ``count`` can take its place.

    - ``tiktoken``: OpenAI's o200k_base; estimates until the vocabulary is loaded (``load`` waits for it);
    - ``transformers``: the tokenizer of ``model``, a folder or a name in the local cache of the transformers package,
      which has to be installed; nothing is downloaded;
    - ``chars``: four characters a token, or ``chars_per_token``.

    Raises:
        ValueError: no such method, ``transformers`` without a model, or no such tokenizer on this machine.
        ImportError: the transformers package is not installed.
    """

    def __init__(self, method: CountingMethod = "tiktoken", *, model: str = "", chars_per_token: float = 4.0) -> None:
        if method not in get_args(CountingMethod):
            raise ValueError(f"tokens can be counted with {', '.join(get_args(CountingMethod))}, not {method!r}")
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
        """Whether counts are those of a vocabulary rather than estimates."""
        return self._counter.exact if isinstance(self._counter, HybridCounter) else self.method == "transformers"

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return self._counter.count(text)

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count long texts in a thread, so that ``count`` need not stop for them later."""
        if isinstance(self._counter, HybridCounter):
            await self._counter.count_ahead(texts, exact=exact)

    def load(self) -> bool:
        """Wait until the vocabulary is loaded; whether counts are exact now. Not for the event loop."""
        if isinstance(self._counter, HybridCounter):
            self._counter.warm_up().join()
        return self.exact


class TransformersCounter:
    """Counts with a tokenizer of the transformers package, without the special tokens that a template adds."""

    def __init__(self, model: str) -> None:
        if not model:
            raise ValueError("counting with transformers needs a model: a folder or a name in its local cache")
        try:
            # An optional package without a place in the type checker's world.
            transformers: Any = import_module("transformers")
        except ImportError as error:
            raise ImportError("counting with transformers needs the transformers package: pip install it") from error
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(model, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ValueError(f"there is no tokenizer of {model!r} on this machine: {error}") from error
        self._estimator = PieceEstimator()

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return sum(self._count(piece) for piece in pieces(text)) if text else 0

    def _count(self, piece: str) -> int:
        try:
            return len(self._tokenizer.encode(piece, add_special_tokens=False))
        except (ValueError, TypeError, OverflowError):  # a lone surrogate, for example
            return self._estimator.count(piece)
