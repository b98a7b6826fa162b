"""Counting tokens of texts and messages: exact with OpenAI's o200k_base ranks, estimated by kind of text until they are
loaded."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable
from weakref import WeakSet

from swecli.core.context_management.prompts import ATTACHED_NOTE, SUMMARY_MARK, is_pointers
from swecli.core.context_management.ranks import RanksError, read_ranks
from swecli.core.llm.types import ToolSchema
from swecli.core.protocol.budget import (
    ASSISTANT,
    ATTACHED,
    CALLS,
    NOTES,
    PLAYBOOK,
    REASONING,
    RESULTS,
    RETRIEVED,
    SUMMARIES,
    USER,
)
from swecli.core.protocol.messages import (
    DocumentPart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tiktoken import Encoding


PIECE_CHARS = 32_768
"""Longest piece to process at once, so that any text takes linear time."""

IMAGE_TOKENS = 1_600
"""Assumed size of one image. Vendors scale images down to about this many tokens at most."""


def document_tokens(text: int, pages: int) -> int:
    """Tokens of a PDF file with ``text`` tokens of text: vendors show the model the text and an image of each page."""
    return text + IMAGE_TOKENS * pages


class CountsTokens(Protocol):
    """Counts the tokens of any text: never raises, linear time, 0 for the empty text."""

    def count(self, text: str) -> int: ...


@runtime_checkable
class CountsAhead(Protocol):
    """A counter that handles long texts best ahead of time."""

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count in a thread; ``count`` knows these texts afterwards. ``exact``: precision is worth memory now."""
        ...


@runtime_checkable
class MakesExact(Protocol):
    """A counter that estimates until precision is requested."""

    @property
    def exact(self) -> bool: ...

    async def make_exact(self) -> bool:
        """Wait until counts are exact; False if they can't be."""
        ...


class CharCounter:
    """The rule of thumb, for comparison: a fixed number of characters per token."""

    def __init__(self, chars_per_token: float = 4.0) -> None:
        if not chars_per_token > 0:
            raise ValueError(f"chars_per_token must be above 0, not {chars_per_token}")
        self._chars_per_token = chars_per_token

    def count(self, text: str) -> int:
        return math.ceil(len(text) / self._chars_per_token)


_ACCENTED = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0300-\u036f\u1e00-\u1eff"
_SCRIPTS: dict[str, tuple[str, float, float]] = {
    "cyrillic": ("\u0400-\u052f", 0.5, 0.29),
    "arabic": ("\u0600-\u06ff\u0750-\u077f\u200c", 0.25, 0.32),
    "devanagari": ("\u0900-\u097f\u200d", 0.2, 0.35),
    "thai": ("\u0e00-\u0e7f", 0.46, 0.37),
    "greek": ("\u0370-\u03ff\u1f00-\u1fff", 0.23, 0.39),
    "hebrew": ("\u0590-\u05ff", 0.21, 0.42),
    "caucasian": ("\u0530-\u058f\u10a0-\u10ff", 0.57, 0.32),
    "indic": ("\u0980-\u0dff", 0.3, 0.38),
    "southeastern": ("\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff", 0.7, 0.56),
    "hangul": ("\uac00-\ud7af", 0.25, 0.58),
    "kana": ("\u3040-\u30ff", 0.1, 0.64),
    "han": ("\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", 0.0, 0.771),
}
"""Scripts besides Latin: their letters, tokens per word, and tokens per letter."""
_LETTERS = " | ".join(f"(?P<{name}>[{letters}]+)" for name, (letters, _, _) in _SCRIPTS.items())
_PIECES = lazy_pattern(
    rf"""
      (?P<word>    [ ]?[A-Za-z]++(?![{_ACCENTED}]) )
    | (?P<foreign> [ ]?[A-Za-z{_ACCENTED}]+ )
    | (?=[ ]?[^\x00-\x7f]) [ ]? (?: {_LETTERS} )
    | (?P<digits>  [0-9]+ )
    | (?P<newline> [ \t]*[\r\n]+ )
    | (?P<blank>   [ \t]+ )
    | (?P<punct>   [!-/:-@\[-`{{-~]+ )
    | (?P<other>   (?P<same>.)(?P=same)* )
    """,
    re.VERBOSE | re.DOTALL,
)
_HUMP = lazy_pattern("[a-z][A-Z]")
_PACKED = lazy_pattern("[A-Za-z0-9+/]{20,}={0,2}")
_HEX = lazy_pattern("[0-9a-f]+|[0-9A-F]+")
_SWITCH = re.compile("(?=[a-z][A-Z0-9]|[A-Z][a-z0-9]|[0-9][A-Za-z])")
_RULE = lazy_pattern(r"(.)\1{3,}")
_VIETNAMESE = lazy_pattern("[\u0110\u0111\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")
_RUSSIAN = lazy_pattern("[\u042b\u044b\u042d\u044d]")

# Weights in tokens, fitted against o200k_base on half of a set of repositories; on the other half the median error
# of a text is 2.5 % for Python and 5 % for JSON. Those of other languages were fitted on the translations of a web
# framework; prose of most is within 15 %.
_WORD = 0.989
_LONG_WORD = 0.152  # a word of more than 6 characters
_VERY_LONG_WORD = 3.297 / 5  # each character beyond 15
_PER_HUMP = 0.381
_DIGIT_GROUP = 1.911  # each started group of three digits
_PUNCT = 0.521
_MORE_PUNCT = 0.642 / 2  # each further character of the run
_NEWLINE = 0.636
_BLANK = 0.657
_OTHER = 0.74
_LONG_RUN = 64
_RUN_CHAR = 1 / 16  # each blank or newline beyond that: vocabularies have no tokens for very long runs
_RULED = {
    **dict.fromkeys("-=_*#~.+/", 40),
    **dict.fromkeys("\u2500\u2014\u2026!", 16),
    **dict.fromkeys("<>?\u2501\u2550", 8),
}
"""Characters that form ruled lines: repetitions per token in a long run."""
_RULED_ASCII, _RULED_OTHER = 4, 1.2
"""The same for all others."""
_PACKED_CHAR, _HEX_CHAR = 0.68, 0.57
"""Tokens per character of base64 and similar text, and of long hexadecimal numbers."""
_SWITCHES = 0.33
"""Share of changes between small letters, capitals and digits from which on a run is not made of words."""
_FOREIGN_CHAR = 0.14  # each character beyond 3 of a word with accents
_VIETNAMESE_CHAR = 0.1
_RUSSIAN_WORD, _RUSSIAN_LETTER = 0.63, 0.181  # the vocabulary covers Russian better than related languages


class PieceEstimator:
    """Splits a text into words, digits, punctuation and blanks, and adds up the average cost of each kind."""

    def count(self, text: str) -> int:
        """Estimated tokens, at least 1 for a text that isn't empty."""
        if not text:
            return 0
        tokens = _estimate(text) if len(text) <= PIECE_CHARS else sum(_estimate(piece) for piece in pieces(text))
        return max(1, round(tokens))


def pieces(text: str) -> Iterator[str]:
    """Cut ``text`` into pieces of at most ``PIECE_CHARS`` characters, at line ends if possible."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = text.rfind("\n", start + PIECE_CHARS // 2, start + PIECE_CHARS) + 1 or start + PIECE_CHARS
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def _estimate(text: str) -> float:
    rest, tokens = _without_packed(text)
    scripts: dict[str, list[int]] = {}
    words = accented = beyond = accented_beyond = 0
    for match in _PIECES.finditer(rest):
        kind = match.lastgroup
        length = match.end() - match.start()
        if kind == "word":
            words += 1
            tokens += _WORD
            if length > 2:
                if length > 6:
                    tokens += _LONG_WORD
                    beyond += length - 6
                    if length > 15:
                        tokens += _VERY_LONG_WORD * (length - 15)
                word = match.group()
                if not word[2:].islower():
                    tokens += _PER_HUMP * len(_HUMP.findall(word))
        elif kind == "punct":
            tokens += _PUNCT + _MORE_PUNCT * (length - 1) if length < 4 else _ruled(match.group())
        elif kind == "newline":
            tokens += _NEWLINE + _RUN_CHAR * max(0, length - _LONG_RUN)
        elif kind == "blank":
            tokens += _BLANK + _RUN_CHAR * max(0, length - _LONG_RUN)
        elif kind == "digits":
            tokens += _DIGIT_GROUP * ((length + 2) // 3)
        elif kind == "foreign":
            accented += 1
            tokens += _WORD
            accented_beyond += max(0, length - 3)
        elif kind == "other":
            tokens += _OTHER if length == 1 else _run(match.group()[0], length)
        elif kind is not None:
            tally = scripts.setdefault(kind, [0, 0])
            tally[0] += 1
            tally[1] += length - (rest[match.start()] == " ")
    tokens += sum(_script(kind, parts, letters, rest) for kind, (parts, letters) in scripts.items())
    return tokens + _foreign(rest, words, accented, beyond, accented_beyond) if accented else tokens


def _without_packed(text: str) -> tuple[str, float]:
    """The text without base64, long hexadecimal numbers and the like, and the tokens of these."""
    tokens = 0.0
    parts: list[str] = []
    start = 0
    for match in _PACKED.finditer(text):
        run = match.group()
        if len(_SWITCH.findall(run)) >= _SWITCHES * len(run):
            tokens += len(run) * (_HEX_CHAR if _HEX.fullmatch(run) else _PACKED_CHAR)
            parts.append(text[start : match.start()])
            start = match.end()
    return ("".join([*parts, text[start:]]) if parts else text), tokens


def _ruled(run: str) -> float:
    """Tokens of punctuation with ruled lines."""
    tokens, start = 0.0, 0
    for match in _RULE.finditer(run):
        if match.start() > start:
            tokens += _PUNCT + _MORE_PUNCT * (match.start() - start - 1)
        tokens += _run(match.group(1), match.end() - match.start())
        start = match.end()
    return tokens + (_PUNCT + _MORE_PUNCT * (len(run) - start - 1) if start < len(run) else 0.0)


def _run(character: str, length: int) -> float:
    return 1.0 + (length - 1) / _RULED.get(character, _RULED_ASCII if character.isascii() else _RULED_OTHER)


def _script(kind: str, words: int, letters: int, text: str) -> float:
    """Tokens of words in a script besides Latin."""
    _, word, letter = _SCRIPTS[kind]
    if kind == "cyrillic" and _RUSSIAN.search(text):
        word, letter = _RUSSIAN_WORD, _RUSSIAN_LETTER
    return word * words + letter * letters


def _foreign(text: str, words: int, accented: int, beyond: int, accented_beyond: int) -> float:
    """Extra tokens of words in other languages than English. The share of accented words indicates the distance from
    the languages that the vocabulary covers best; ``beyond`` are letters past the usual length of a word."""
    share = accented / (words + accented)
    letter = min(6 * share, 0.03 + share, 0.36)
    if len(_VIETNAMESE.findall(text)) > accented / 2:
        return _VIETNAMESE_CHAR * accented_beyond
    return letter * beyond + max(_FOREIGN_CHAR, letter) * accented_beyond


class O200kTokenizer:
    """The encoding over pieces of at most 32 KiB characters: a text of any size and shape takes linear time, and the
    count is off by 0.0005 % at most. Special tokens in a text are ordinary text. Thread-safe."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._estimator = PieceEstimator()

    def count(self, text: str) -> int:
        """Tokens of any text; never raises."""
        return sum(self._count_piece(piece) for piece in pieces(text)) if text else 0

    def encode(self, text: str) -> list[int]:
        """The tokens, piece by piece.

        Raises:
            ValueError: the encoder failed on a piece.
        """
        tokens: list[int] = []
        for piece in pieces(text):
            encoded = self._encode_piece(piece)
            if encoded is None:
                raise ValueError("the encoder could not process a piece of the text")
            tokens += encoded
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; invalid UTF-8 becomes U+FFFD."""
        return self._encoding.decode(tokens)

    def _count_piece(self, piece: str) -> int:
        tokens = self._encode_piece(piece)
        return self._estimator.count(piece) if tokens is None else len(tokens)

    def _encode_piece(self, piece: str) -> list[int] | None:
        try:
            return self._encoding.encode_ordinary(piece)
        except BaseException as error:
            # The encoder is native: a failure raises a PanicException, which is not an Exception.
            if type(error).__name__ != "PanicException":
                raise
            return None


@cache
def o200k() -> O200kTokenizer:
    """The tokenizer, built once per process: a quarter of a second, and 50 MB for good. Not for the event loop.

    Raises:
        ImportError: tiktoken is missing, or no longer has o200k_base.
        RanksError: the packed ranks are broken.
        OSError: they can't be read.
    """
    from tiktoken import Encoding

    ranks = read_ranks()
    encoding = Encoding(**encoding_arguments(ranks))
    ranks.clear()  # the encoder has its own copy; only pickling needs these 25 MB
    return O200kTokenizer(encoding)


def encoding_arguments(
    ranks: dict[bytes, int], seen: Callable[[Mapping[str, object]], None] = lambda _arguments: None
) -> dict[str, Any]:
    """tiktoken's own arguments for o200k_base (split pattern, special tokens), with ``ranks`` in place of the file that
    it would download. ``seen`` gets the arguments of that download.

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

    # The same code with another file reader; leaves the module itself unchanged for other users.
    names = {**vars(openai_public), "load_tiktoken_bpe": given_ranks}
    if "load_tiktoken_bpe" not in vars(openai_public):
        raise ImportError("this version of tiktoken reads the o200k_base ranks differently")
    arguments = cast("dict[str, Any]", FunctionType(define.__code__, names)())
    if arguments.get("mergeable_ranks") is not ranks:
        raise ImportError("this version of tiktoken builds o200k_base in an unknown way")
    return arguments


INLINE_CHARS = 16_384
"""Longer texts are counted in a thread: this length takes a millisecond or two."""

SAMPLE_CHARS, SAMPLES = 4_096, 8
"""Sample of a long text that was not counted ahead."""

WARM_UP_DELAY = 0.2
"""Seconds between the wish for exact counts and the start of loading, so that the current request goes out first and a
short run does not load at all."""

_REMEMBERED_FROM = 200
"""Characters. Shorter texts are counted again rather than remembered."""
_MAX_REMEMBERED = 4_096
"""Counts to remember. Messages keep their sizes themselves; this serves texts counted twice in a row."""


def sampled(text: str, count: Callable[[str], int], characters: int, parts: int) -> int:
    """Estimated tokens of a text, from ``parts`` samples of ``characters`` each, from beginning to end."""
    if len(text) <= characters * parts:
        return count(text)
    step = (len(text) - characters) // (parts - 1)
    tokens = sum(count(text[at * step : at * step + characters]) for at in range(parts))
    return max(1, tokens * len(text) // (characters * parts))


class HybridCounter:
    """Counts tokens of o200k_base. ``count`` is quick for any text, and estimates if exactness takes longer.

    ``tell`` gets a sentence, in the loading thread, if the vocabulary is unavailable; estimates continue.
    """

    def __init__(
        self,
        load: Callable[[], O200kTokenizer] = o200k,
        delay: float = WARM_UP_DELAY,
    ) -> None:
        self._load = load
        self.tell: Callable[[str], None] = lambda _text: None
        self._delay = delay
        self._estimator = PieceEstimator()
        self._tokenizer: O200kTokenizer | None = None
        self._loading: threading.Thread | None = None
        self._wanted_now = threading.Event()
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int], int] = OrderedDict()

    @property
    def exact(self) -> bool:
        return self._tokenizer is not None

    def warm_up(self) -> threading.Thread:
        """Start loading in the background, once. Returns the thread."""
        if self._loading is None:
            # A daemon thread: the program's exit must not wait for an unneeded count.
            self._loading = threading.Thread(target=self._run, name="swecli-vocabulary", daemon=True)
            self._loading.start()
        return self._loading

    async def make_exact(self) -> bool:
        """Load the vocabulary now and wait for it; whether that succeeded."""
        if self._tokenizer is None:
            self._wanted_now.set()
            await asyncio.to_thread(self.warm_up().join)
        return self.exact

    def count(self, text: str) -> int:
        """Tokens of a text, within a few milliseconds whatever its length: exact if that is quick or was done before
        (see ``count_ahead``), else estimated."""
        if not text:
            return 0
        known = self._remembered(text) if len(text) >= _REMEMBERED_FROM else None
        if known is not None:
            return known
        if len(text) > INLINE_CHARS:
            return sampled(text, self._estimator.count, SAMPLE_CHARS, SAMPLES)
        if self._tokenizer is None:
            return self._estimator.count(text)
        tokens = self._tokenizer.count(text)
        self._remember(text, tokens)
        return tokens

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count long texts in a thread, so that ``count`` knows them. ``exact`` starts loading the vocabulary if
        needed, without waiting; it takes about 50 MB, so use it only if precision matters."""
        if exact:
            self.warm_up()
        tokenizer = self._tokenizer
        wanted = [text for text in texts if len(text) > INLINE_CHARS and self._remembered(text) is None]
        if not wanted:
            return
        counter = tokenizer or self._estimator
        counts = await asyncio.to_thread(lambda: [counter.count(text) for text in wanted])
        if tokenizer is not self._tokenizer:  # the vocabulary was loaded meanwhile: these are estimates
            await self.count_ahead(wanted, exact=exact)
            return
        for text, tokens in zip(wanted, counts, strict=True):
            self._remember(text, tokens)

    def _run(self) -> None:
        self._wanted_now.wait(self._delay)
        try:
            tokenizer = self._load()
            with self._lock:
                self._known.clear()  # estimates
                self._tokenizer = tokenizer
        except (ImportError, OSError, RanksError) as error:
            self.tell(f"Exact token counts are not available; swecli uses estimates: {error}.")

    def _remembered(self, text: str) -> int | None:
        key = (len(text), hash(text))
        with self._lock:
            tokens = self._known.get(key)
            if tokens is not None:
                self._known.move_to_end(key)
        return tokens

    def _remember(self, text: str, tokens: int) -> None:
        if len(text) < _REMEMBERED_FROM:
            return
        with self._lock:
            self._known[(len(text), hash(text))] = tokens
            while len(self._known) > _MAX_REMEMBERED:
                self._known.popitem(last=False)


MESSAGE_OVERHEAD = 4
"""Approximate tokens of a provider's chat template for role and borders of one message."""

CALL_OVERHEAD = 8
"""The same for one tool call, one result or one tool description."""

_VARIANTS = 4
"""Contents to remember per message id: live, stub, and the one that an undo restores."""

KEPT_BESIDE = 2_048
"""Messages outside the newest conversation with remembered sizes, for an undo."""
_SLACK = 512
"""Surplus of messages at which the oldest are forgotten."""


class MessageSize:
    """Estimate of one content of one message. Compared by identity: one object stands for one content. ``counts`` are
    component and tokens; ``origin`` is the message's size before a part of it was dropped or shortened."""

    __slots__ = ("__weakref__", "_content", "counts", "origin", "role", "total")

    def __init__(self, role: Role, parts: tuple[Part, ...], counts: tuple[tuple[str, int], ...]) -> None:
        self.role: Role = role
        self.counts = counts
        self.origin: MessageSize | None = None
        self.total = sum(tokens for _, tokens in counts)
        self._content: tuple[Part, ...] | bytes = parts

    def is_of(self, message: Message, *, joins: bool = True) -> bool:
        """Whether this is the estimate of the message, which then ``joins`` the conversation."""
        if self.role != message.role:
            return False
        if isinstance(self._content, tuple):
            return self._content == message.parts
        if self._content != _digest(message.parts):
            return False
        if joins:
            self._content = message.parts  # shared with the conversation, and quicker to compare
        return True

    def recount(self, counts: tuple[tuple[str, int], ...]) -> None:
        self.counts = counts
        self.total = sum(tokens for _, tokens in counts)

    def let_go(self) -> None:
        """Keep only a digest of the content, to free its texts."""
        if isinstance(self._content, tuple):
            self._content = _digest(self._content)


class SizeCache:
    """Estimates of messages and tool schemas. Of texts that left the conversation only the sizes are kept, and only the
    newest."""

    def __init__(self, counter: CountsTokens | None = None) -> None:
        self.counter: CountsTokens = counter or PieceEstimator()
        self._messages: dict[str, list[MessageSize]] = {}
        self._schemas: dict[str, tuple[ToolSchema, int]] = {}
        self._texts: dict[str, int] = {}
        self._newest: tuple[tuple[Message, ...], tuple[MessageSize, ...]] = ((), ())
        self._exact: WeakSet[MessageSize] = WeakSet()
        """Sizes from an exact counter."""

    def message(self, message: Message) -> MessageSize:
        """The estimate of one message: the same object as long as its parts are equal."""
        variants = self._messages.get(message.id)
        if variants is None:
            variants = self._messages[message.id] = []
        for index, size in enumerate(variants):
            if size.is_of(message):
                if index:
                    variants.insert(0, variants.pop(index))
                return size
        size = self.measure(message)
        size.origin = variants[0] if variants else None
        variants.insert(0, size)
        del variants[_VARIANTS:]
        return size

    def adopt(self, message: Message, counts: tuple[tuple[str, int], ...]) -> None:
        """Adopt a size from an earlier run. Sizes counted here take precedence."""
        if message.id not in self._messages:
            self._messages[message.id] = [MessageSize(message.role, message.parts, counts)]

    def estimated(self, messages: Sequence[Message]) -> list[tuple[Message, MessageSize]]:
        """Messages with remembered sizes that may be estimates."""
        known = [(message, size) for message in messages for size in self._variants(message) if size.is_of(message)]
        return [(message, size) for message, size in known if size not in self._exact]

    def settle(self, sizes: Iterable[MessageSize]) -> None:
        """Mark these as final."""
        self._exact.update(sizes)

    def forget_fixed(self) -> None:
        """Forget the counts of the fixed parts, so that they are counted again."""
        self._texts.clear()
        self._schemas.clear()

    def _variants(self, message: Message) -> Sequence[MessageSize]:
        return self._messages.get(message.id, ())

    def messages(self, messages: Sequence[Message]) -> tuple[MessageSize, ...]:
        """The estimates of a whole conversation. Reuses those of the prefix shared with the one before, because every
        step of a session measures the whole history."""
        sizes = self._newest[1]
        same = self._common(messages)
        estimates = (*sizes[:same], *(self.message(message) for message in messages[same:]))
        if same < len(sizes):
            current = set(estimates)
            for size in sizes[same:]:
                if size not in current:
                    size.let_go()
            if len(self._messages) > len(messages) + KEPT_BESIDE + _SLACK:
                self._forget_oldest(messages)
        self._newest = (tuple(messages), estimates)
        return estimates

    def beside(self, messages: Sequence[Message]) -> tuple[MessageSize, ...]:
        """The estimates of messages that do not replace the conversation: reuses the remembered ones and estimates the
        rest without remembering it."""
        same = self._common(messages)
        return (*self._newest[1][:same], *map(self.aside, messages[same:]))

    def aside(self, message: Message) -> MessageSize:
        """The estimate of one message that does not join the conversation, remembered or made for now."""
        known = self._known(message)
        if known is None:
            known = self.measure(message)
            known.origin = next(iter(self._variants(message)), None)
        return known

    def _known(self, message: Message) -> MessageSize | None:
        return next((size for size in self._variants(message) if size.is_of(message, joins=False)), None)

    def _common(self, messages: Sequence[Message]) -> int:
        """Length of the prefix shared with the newest conversation, in messages."""
        before = self._newest[0]
        same = min(len(before), len(messages))
        # The newest message may be another object while it grows; those before it are the same.
        while same and before[same - 1] is not messages[same - 1]:
            same -= 1
        return same if tuple(messages[:same]) == before[:same] else 0

    def _forget_oldest(self, messages: Sequence[Message]) -> None:
        current = {message.id for message in messages}
        beside = [name for name in self._messages if name not in current]
        for name in beside[:-KEPT_BESIDE]:
            del self._messages[name]

    def schema(self, schema: ToolSchema) -> int:
        known = self._schemas.get(schema.name)
        if known is not None and (known[0] is schema or known[0] == schema):
            return known[1]
        text = f"{schema.name}\n{schema.description}\n{_compact(schema.parameters)}"
        tokens = self.counter.count(text) + CALL_OVERHEAD
        self._schemas[schema.name] = (schema, tokens)
        return tokens

    def stable_text(self, text: str) -> int:
        """Tokens of a text repeated in every request, such as a section of the system prompt."""
        tokens = self._texts.get(text)
        if tokens is None:
            if len(self._texts) >= 64:
                self._texts.clear()
            tokens = self._texts[text] = self.counter.count(text)
        return tokens

    def measure(self, message: Message) -> MessageSize:
        """The estimate of one message, without remembering it."""
        counts: dict[str, int] = {}
        spoken, count = _spoken(message), self.counter.count
        for part in message.parts:
            match part:
                case TextPart(text=text):
                    component, tokens = spoken, count(text)
                    if message.note and text.startswith(PLAYBOOK_NOTE):
                        component = PLAYBOOK
                    elif message.note and is_pointers(text):
                        component = RETRIEVED
                case ReasoningPart(text=text, opaque=opaque):
                    component = REASONING
                    tokens = max(count(text), self._opaque(opaque.data) if opaque else 0)
                case ToolCallPart(name=name, arguments=arguments):
                    component, tokens = CALLS, count(arguments) + count(name) + CALL_OVERHEAD
                case ToolResultPart(text=text, images=images, documents=documents):
                    attached = IMAGE_TOKENS * len(images) + sum(map(self._document, documents))
                    component, tokens = RESULTS, count(text) + CALL_OVERHEAD + attached
                case ImagePart():
                    component, tokens = spoken, IMAGE_TOKENS
                case DocumentPart():
                    component, tokens = spoken, self._document(part)
                case OpaquePart(opaque=opaque):
                    component, tokens = ASSISTANT, self._opaque(opaque.data)
            counts[component] = counts.get(component, 0) + tokens
        first = next(iter(counts), spoken)
        counts[first] = counts.get(first, 0) + MESSAGE_OVERHEAD
        return MessageSize(message.role, message.parts, tuple(counts.items()))

    def _document(self, document: DocumentPart) -> int:
        return document_tokens(self.counter.count(document.text), document.pages)

    def _opaque(self, data: Any) -> int:
        # Encrypted reasoning and signatures: the provider counts their content, roughly proportional to the length.
        return len(_compact(data)) // 5


def _spoken(message: Message) -> str:
    """The component of a message's words and images. Text that swecli adds before a summary or an attached file, such
    as the environment, counts with it."""
    if message.role != "user":
        return ASSISTANT
    if message.note:
        return NOTES
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    if any(text.startswith(SUMMARY_MARK) for text in texts):
        return SUMMARIES
    return ATTACHED if any(text.startswith(ATTACHED_NOTE) for text in texts) else USER


PLAYBOOK_NOTE = "<swecli-note>\nPlaybook: "
"""Beginning of a note with bullets of the playbook."""


def mark_of(message: Message) -> str:
    """A short text, equal for messages of equal content, whatever their ids."""
    digest = blake2b(message.role.encode(), digest_size=9)
    _feed(digest, message.parts)
    return digest.hexdigest()


def _digest(parts: tuple[Part, ...]) -> bytes:
    """Digest of everything in the parts, names and ids included."""
    digest = blake2b(digest_size=16)
    _feed(digest, parts)
    for part in parts:
        if isinstance(part, ToolCallPart | ToolResultPart):
            digest.update(f"\0{part.call_id}\0{part.name}\0".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _feed(digest: blake2b, parts: tuple[Part, ...]) -> None:
    for part in parts:
        digest.update(b"\0" + part.type.encode())
        for text in texts_of(part):
            digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        opaque = part.opaque if isinstance(part, TextPart | ReasoningPart | ToolCallPart | OpaquePart) else None
        if opaque is not None:
            digest.update(_compact(opaque.data).encode("utf-8", "surrogatepass"))
        for attached in _attached(part):
            digest.update(attached.data.encode())


def _attached(part: Part) -> tuple[ImagePart | DocumentPart, ...]:
    match part:
        case ImagePart() | DocumentPart():
            return (part,)
        case ToolResultPart(images=images, documents=documents):
            return (*images, *documents)
        case _:
            return ()


def texts_of(part: Part) -> tuple[str, ...]:
    match part:
        case ToolResultPart(text=text, documents=documents):
            return (text, *(document.text for document in documents))
        case TextPart(text=text) | ReasoningPart(text=text) | DocumentPart(text=text):
            return (text,)
        case ToolCallPart(arguments=arguments):
            return (arguments,)
        case _:
            return ()


def _compact(value: Mapping[str, Any] | Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (ValueError, RecursionError):
        return str(value)
