"""The options of a program, as the tables of ``offers.toml`` and ``edits.toml`` list them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct


class Options(Struct, frozen=True):
    """``alone`` take no value and may be patterns; ``valued`` take one, behind ``=`` or as the next word."""

    alone: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> Options:
        """Of a table's line: those that take a value end with ``=``."""
        words = text.split()
        return cls(
            frozenset(word for word in words if not word.endswith("=")),
            frozenset(word[:-1] for word in words if word.endswith("=")),
        )

    def operands(self, words: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]] | None:
        """The options and the operands among the words; None where an option is not known."""
        found: set[str] = set()
        operands: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            option, equals, _ = word.partition("=")
            if word == "--":
                return frozenset(found), (*operands, *rest)
            if not word.startswith("-"):
                operands.append(word)
            elif word in self.alone:
                found.add(word)
            elif option in self.valued and (equals or rest):
                found.add(option)
                del rest[: 0 if equals else 1]
            elif not word.startswith("--") and word != "-" and {f"-{letter}" for letter in word[1:]} <= self.alone:
                found |= {f"-{letter}" for letter in word[1:]}
            else:
                return None
        return frozenset(found), tuple(operands)

    def length(self, word: str) -> int:
        """How many words this option takes; 0 where it is none that is known."""
        option, equals, _ = word.partition("=")
        if option in self.valued:
            return 1 if equals else 2
        return 1 if any(fnmatchcase(word, wanted) for wanted in self.alone) else 0
