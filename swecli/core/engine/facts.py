"""The published facts of a session: the newest in memory, all others in the log, which gives them back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, overload, runtime_checkable

from swecli.core.protocol.events import Event

KEPT = 128
"""Facts that stay in memory at least."""
PAGE = 256
"""Facts that are read back at once."""


@runtime_checkable
class FactReader(Protocol):
    """A log that gives back what it has taken."""

    def read(self, after: int, upto: int, limit: int) -> Sequence[Event]:
        """Facts with a sequence number above ``after`` and not above ``upto``, in order, ``limit`` at most. May take
        the time of a disk: not for the event loop."""
        ...


@dataclass(frozen=True, slots=True)
class Past:
    """What a subscriber is shown first: facts of the log up to ``upto``, then ``newest``."""

    newest: Sequence[Event]
    upto: int = 0
    log: FactReader | None = None

    def read(self, after: int) -> Sequence[Event]:
        """The next page of what is in the log; empty at its end."""
        return self.log.read(after, self.upto, PAGE) if self.log is not None and after < self.upto else ()


class Facts(Sequence[Event]):
    """Facts in order, from the session's beginning on.

    What was there at the start stays in memory until somebody has looked at it or ``KEPT`` more have come, so that
    going on with a session reads it once. Without a log that can be read all of them stay.
    """

    def __init__(self, history: Sequence[Event]) -> None:
        self._held = list(history)
        self._fresh = 0
        """Facts that have come since some were let go."""
        self._left = 0
        """Facts that only the log has."""
        self._upto = 0
        """Sequence number of the newest of them."""
        self._log: FactReader | None = None

    @property
    def held(self) -> int:
        """Facts in memory."""
        return len(self._held)

    def read_from(self, log: object) -> None:
        """Where facts are read back from, if it can do that."""
        self._log = log if isinstance(log, FactReader) else None

    def add(self, event: Event) -> None:
        """A fact was published; the log has it."""
        self._held.append(event)
        self._fresh += 1
        if self._fresh >= KEPT:
            self._let_go()

    def past(self) -> Past:
        """Everything so far, for one who begins to listen."""
        past = Past(self._held, self._upto, self._log if self._left else None)
        self._held = list(self._held)
        self._let_go()
        return past

    def _let_go(self) -> None:
        self._fresh = 0
        gone = len(self._held) - KEPT
        if self._log is None or gone <= 0:
            return
        self._left += gone
        self._upto = self._held[gone - 1].seq
        del self._held[:gone]

    def __len__(self) -> int:
        return self._left + len(self._held)

    def __iter__(self) -> Iterator[Event]:
        past, after = Past(tuple(self._held), self._upto, self._log), 0
        while page := past.read(after):
            yield from page
            after = page[-1].seq
        yield from past.newest

    def __reversed__(self) -> Iterator[Event]:
        return reversed([*self])

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, int) and -len(self._held) <= index < 0:
            return self._held[index]
        return [*self][index]
