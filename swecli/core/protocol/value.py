"""The decorator of the protocol's value classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots, compared and hashed by its fields.

    Comparison, hash and representation are shared functions instead of code that is generated and compiled for
    each class: there are many classes, all of them are made before the first frame, and this halves the cost.
    """
    made: Any = cls
    made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _represent
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


def _equal(self: Any, other: object) -> bool:
    if other is self:
        return True
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, name) for name in self.__slots__]))


def _represent(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({fields})"
