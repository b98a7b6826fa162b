"""Exact counts as soon as the vocabulary is there, estimates before, and never a pause of the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from swecli.core.context_management.o200k import O200kTokenizer, o200k
from swecli.core.context_management.ranks import RanksError
from swecli.core.context_management.tokens import PieceEstimator

INLINE_CHARS = 16_384
"""Longer texts are counted in a thread: this much takes a millisecond or two."""

SAMPLE_CHARS, SAMPLES = 4_096, 8
"""Of a text that is counted in passing although it is long, only so much is looked at."""

WARM_UP_DELAY = 0.2
"""Seconds between the wish for exact counts and the start of loading, so that the request that is just being made
goes out first and a short run does not load at all."""

_REMEMBERED_FROM = 200
"""Characters. Shorter texts are counted again rather than remembered."""
_MOST_REMEMBERED = 4_096
"""Counts that are remembered: sizes of what was said are kept with it, this is for what is counted twice at once."""


class HybridCounter:
    """Counts tokens of o200k_base. ``count`` is quick for any text, and an estimate where exactness takes longer.

    ``tell`` gets a sentence, in the loading thread, when the vocabulary can't be had; estimates go on.
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
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int], int] = OrderedDict()

    @property
    def exact(self) -> bool:
        """Whether the vocabulary is loaded."""
        return self._tokenizer is not None

    def warm_up(self) -> threading.Thread:
        """Begin to load in the background, once. Returns the thread that does it."""
        if self._loading is None:
            # A daemon: a program that ends meanwhile must not wait for a count that nobody needs any more.
            self._loading = threading.Thread(target=self._run, name="swecli-vocabulary", daemon=True)
            self._loading.start()
        return self._loading

    def count(self, text: str) -> int:
        """Tokens of a text, within a few milliseconds whatever its length: exact where that is quick or was done
        before (see ``count_ahead``), else estimated."""
        if not text:
            return 0
        known = self._remembered(text)
        if known is not None:
            return known
        if len(text) > INLINE_CHARS:
            return self._sampled(text)
        if self._tokenizer is None:
            return self._estimator.count(text)
        tokens = self._tokenizer.count(text)
        self._remember(text, tokens)
        return tokens

    async def count_ahead(self, texts: Iterable[str], *, exact: bool = True) -> None:
        """Count long texts in a thread, so that ``count`` knows them. ``exact`` loads the vocabulary if need be,
        without waiting for it; it takes about 50 MB, so it is for when precision matters."""
        if exact:
            self.warm_up()
        tokenizer = self._tokenizer
        wanted = [text for text in texts if len(text) > INLINE_CHARS and self._remembered(text) is None]
        if not wanted:
            return
        counter = tokenizer or self._estimator
        counts = await asyncio.to_thread(lambda: [counter.count(text) for text in wanted])
        for text, tokens in zip(wanted, counts, strict=True):
            self._remember(text, tokens)

    def _run(self) -> None:
        threading.Event().wait(self._delay)
        try:
            self._tokenizer = self._load()
        except (ImportError, OSError, RanksError) as error:
            self.tell(f"Exact token counts are not available, estimates are used: {error}.")

    def _sampled(self, text: str) -> int:
        """An estimate from pieces spread evenly over the text."""
        if len(text) <= SAMPLE_CHARS * SAMPLES:
            return self._estimator.count(text)
        step = (len(text) - SAMPLE_CHARS) // (SAMPLES - 1)
        tokens = sum(self._estimator.count(text[at * step : at * step + SAMPLE_CHARS]) for at in range(SAMPLES))
        return max(1, tokens * len(text) // (SAMPLE_CHARS * SAMPLES))

    def _remembered(self, text: str) -> int | None:
        if len(text) < _REMEMBERED_FROM:
            return None
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
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
