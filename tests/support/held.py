"""What an object keeps alive: everything that can be reached from it, without code and what belongs to it."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from weakref import ReferenceType

_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
LONG = 1_000
"""Characters or bytes from which on a text is one of those that are added up."""


@dataclass(slots=True)
class Held:
    """How many objects of each type, and the characters and bytes of long texts among them."""

    objects: Counter[str] = field(default_factory=Counter[str])
    long_texts: int = 0

    @property
    def count(self) -> int:
        """Objects of all types."""
        return sum(self.objects.values())


def held_by(*roots: object) -> Held:
    """Walk over everything that these objects refer to. Deterministic as long as what they do is."""
    gc.collect()
    found = Held()
    seen: set[int] = set()
    waiting: list[object] = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _CODE):
            continue
        seen.add(id(one))
        if isinstance(one, ReferenceType) and one() is None:
            continue  # a database keeps up to 200 of its past cursors' before it drops them
        found.objects[type(one).__name__] += 1
        if isinstance(one, str | bytes | bytearray) and len(one) >= LONG:
            found.long_texts += len(one)
        waiting += [one.__self__] if isinstance(one, MethodType) else gc.get_referents(one)
    return found
