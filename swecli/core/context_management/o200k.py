"""OpenAI's o200k_base encoding from the packed ranks, without a download."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, cast

from swecli.core.context_management.ranks import read_ranks
from swecli.core.context_management.tokens import PieceEstimator, pieces

if TYPE_CHECKING:
    from tiktoken import Encoding


class Tokenizer(Protocol):
    """A model's vocabulary: text to tokens and back."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...

    def count(self, text: str) -> int: ...


class O200kTokenizer:
    """The encoding over pieces of at most 32 KiB characters: a text of any size and shape takes linear time, and the
    count is off by 0.0005 % at most. Special tokens in a text are ordinary text. May be used by several threads."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._estimator = PieceEstimator()

    def count(self, text: str) -> int:
        """Tokens of any text; never raises."""
        return sum(self._count_piece(piece) for piece in pieces(text)) if text else 0

    def encode(self, text: str) -> list[int]:
        """The tokens, piece by piece.

        Raises:
            ValueError: the encoder gave up on a piece.
        """
        tokens: list[int] = []
        for piece in pieces(text):
            encoded = self._encode_piece(piece)
            if encoded is None:
                raise ValueError("the encoder gave up on a piece of the text")
            tokens += encoded
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD."""
        return self._encoding.decode(tokens)

    def _count_piece(self, piece: str) -> int:
        tokens = self._encode_piece(piece)
        return self._estimator.count(piece) if tokens is None else len(tokens)

    def _encode_piece(self, piece: str) -> list[int] | None:
        try:
            return self._encoding.encode_ordinary(piece)
        except BaseException as error:
            # The encoder is native: when it gives up it raises a PanicException, which is no Exception.
            if type(error).__name__ != "PanicException":
                raise
            return None


@cache
def o200k() -> O200kTokenizer:
    """The tokenizer, built once per process: a quarter of a second, and 50 MB that stay. Not for the event loop.

    Raises:
        ImportError: tiktoken is missing, or has no o200k_base any more.
        RanksError: the packed ranks are broken.
        OSError: they can't be read.
    """
    from tiktoken import Encoding

    ranks = read_ranks()
    encoding = Encoding(**encoding_arguments(ranks))
    ranks.clear()  # the encoder has its own copy; these would be another 25 MB, which only pickling would need
    return O200kTokenizer(encoding)


def encoding_arguments(
    ranks: dict[bytes, int], seen: Callable[[Mapping[str, object]], None] = lambda _arguments: None
) -> dict[str, Any]:
    """What tiktoken itself builds o200k_base from (split pattern, special tokens), with ``ranks`` for the file that
    it would download. ``seen`` is told with which arguments it asked for that file.

    Raises:
        ImportError: the installed tiktoken defines the encoding in another way.
    """
    openai_public = import_module("tiktoken_ext.openai_public")  # without types
    define = getattr(openai_public, "o200k_base", None)
    if not inspect.isfunction(define):
        raise ImportError("tiktoken has no o200k_base")

    def given_ranks(*_address: object, **arguments: object) -> dict[bytes, int]:
        seen(arguments)
        return ranks

    # The same code with another reader of files: the module itself, which others may use, stays as it is.
    names = {**vars(openai_public), "load_tiktoken_bpe": given_ranks}
    if "load_tiktoken_bpe" not in vars(openai_public):
        raise ImportError("tiktoken reads the ranks of o200k_base in a way that is not known")
    arguments = cast("dict[str, Any]", FunctionType(define.__code__, names)())
    if arguments.get("mergeable_ranks") is not ranks:
        raise ImportError("tiktoken builds o200k_base in a way that is not known")
    return arguments
