"""The narrowest useful rule that "always" may add for a command."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache


@cache
def _lists() -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    import tomllib
    from importlib.resources import files

    data = tomllib.loads(files(__package__ or "").joinpath("offers.toml").read_text(encoding="utf-8"))
    prefixes = frozenset(tuple(line.split()) for line in data["prefixes"].splitlines() if line.strip())
    return frozenset(data["never"].split()), prefixes


def offered_words(words: Sequence[str | None]) -> tuple[list[str], bool] | None:
    """The words of a rule and whether anything may follow them; None where no rule is offered."""
    never, prefixes = _lists()
    known = [word for word in words if word is not None]
    if not words or words[0] is None:
        return None
    name = words[0]
    program = name.rpartition("/")[2].casefold()
    if program in never or program.rstrip("0123456789.") in never or "=" in name:
        return None
    for count in (3, 2, 1):
        head = tuple(known[:count])
        if len(words) >= count and None not in words[:count] and _is_prefix(head, prefixes):
            return list(head), True
    if len(known) != len(words) or any("\n" in word for word in known):
        return None
    return known, False


def _is_prefix(head: tuple[str, ...], prefixes: frozenset[tuple[str, ...]]) -> bool:
    """``+`` in a prefix stands for one word of the project's choice, such as a script's name."""
    if head in prefixes:
        return True
    return head[-1:] != () and not head[-1].startswith("-") and (*head[:-1], "+") in prefixes
