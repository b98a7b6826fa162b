"""What was made of each message of a growing conversation, kept so that a request costs only its new messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_
from typing import Any, Generic, TypeVar

from swecli.core.protocol.messages import Message

_T = TypeVar("_T")
_Target = TypeVar("_Target")


class PerMessage(Generic[_T]):
    """A value of each message of the newest conversation. Messages that it has in common with the one before, as the
    same objects, keep their values."""

    def __init__(self, make: Callable[[Message], _T]) -> None:
        self._make = make
        self._messages: tuple[Message, ...] = ()
        self._values: list[_T] = []

    def of(self, messages: tuple[Message, ...]) -> Sequence[_T]:
        """The value of each message."""
        if messages is not self._messages:
            before = self._messages
            same = min(len(before), len(messages))
            if not all(map(is_, before, messages)):
                same = next(at for at, (old, new) in enumerate(zip(before, messages, strict=False)) if old is not new)
            moved = {id(message): index for index, message in enumerate(before[same:], same)}
            values = self._values[:same]
            for message in messages[same:]:
                index = moved.get(id(message))
                values.append(self._values[index] if index is not None else self._make(message))
            self._messages, self._values = messages, values
        return self._values


class ListPerMessage(PerMessage[Sequence[_T]]):
    """A list of each message, as of its images, and all of them in order."""

    def all_of(self, messages: tuple[Message, ...]) -> list[_T]:
        return list(chain.from_iterable(self.of(messages)))


class Translations:
    """What a protocol made of each message of a conversation for one target. Nobody changes these values: the next
    request has them again."""

    def __init__(self) -> None:
        self._target: object = None
        self._made: PerMessage[Any] = PerMessage(lambda message: None)

    def of(
        self, messages: tuple[Message, ...], target: _Target, make: Callable[[Message, _Target], _T]
    ) -> Sequence[_T]:
        """The value of each message; ``make`` is the same function in every call."""
        if target is not self._target:
            self._target, self._made = target, PerMessage(lambda message: make(message, target))
        return self._made.of(messages)
