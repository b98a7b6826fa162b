"""From when on a key decides: not before the panel could be seen, and not in the middle of a sentence."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Monotonic seconds."""

GRACE = 0.3
"""Seconds after the appearance of a panel, and after an ignored key, in which keys decide nothing."""

TYPING = 1.0
"""Seconds after a letter that was meant for the prompt: whoever writes a sentence does not look at the panel yet."""


class Grace:
    """Weighs the keys of one panel. A key that means something counts once ``GRACE`` has passed since the appearance
    and since the last key that was ignored. A letter that means nothing was meant for the prompt, and so are those
    before and after it that did not count: ``stray`` gets them all, in order.

    ``typed`` is when the user last typed at a draft that was not sent.
    """

    def __init__(
        self,
        clock: Clock = time.monotonic,
        typed: float | None = None,
        stray: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._clock = clock
        self._stray = stray
        now = clock()
        self._until = now + GRACE
        self._sentence = typed is not None and now - typed < TYPING
        self._pause = GRACE
        self._held = ""
        """Letters of which it is not known yet whether they begin a sentence."""
        self._held_at = now

    @property
    def left(self) -> float:
        """Seconds in which keys are still ignored; 0 when they count."""
        return max(0.0, self._until - self._clock())

    def ignores(self) -> bool:
        """Whether a key that comes now is to be ignored."""
        return self.left > 0

    def typed(self, text: str) -> None:
        """Letters came that mean nothing here."""
        held, self._held = self._held, ""
        recent = self._clock() - self._held_at < TYPING
        self._sentence, self._pause = True, TYPING
        self._prolong(TYPING)
        self._stray(held + text if recent else text)

    def counts(self, text: str = "", *, decides: bool = True) -> bool:
        """Whether a key that means something here counts. ``text`` is its letter if it is one; keys that are none and
        decide nothing count at once."""
        if not self.ignores():
            self._sentence, self._pause = False, GRACE
            self._held, self._held_at = "" if decides else text.strip(), self._clock()
            return True
        if not text:
            if decides:
                self._prolong(GRACE)
            return not decides
        if self._sentence and self._pause == TYPING:
            self.typed(text)
            return False
        self._prolong(GRACE)
        if self._sentence:
            self._stray(text)
        else:
            self._held, self._held_at = self._held + text, self._clock()
        return False

    def in_sentence(self, text: str) -> bool:
        """Whether a letter goes on with the sentence that the user was typing when the panel appeared; it went there
        then."""
        if not self._sentence or not self.ignores():
            return False
        self.typed(text)
        return True

    def _prolong(self, seconds: float) -> None:
        self._until = max(self._until, self._clock() + seconds)
