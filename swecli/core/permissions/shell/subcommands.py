"""Which words of a call are its subcommand, wherever the program's options put them: the reading of deny and ask rules.

A rule ``kubectl delete`` is about the subcommand, so it covers ``kubectl -n prod delete`` as well. The table of
``global_options.toml`` says which options take the next word. Where it does not, both readings count: a rule that may
match matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from msgspec import Struct

from swecli.core.permissions.rules import ANY_WORDS, Pattern, word_matches
from swecli.core.permissions.shell.tables import Options
from swecli.lazy_pattern import lazy_pattern

_UNSEEN = lazy_pattern(r"[^ -~]|[\\'\"]")
"""Quotes, and characters that may only look like nothing."""


class Program(Struct, frozen=True):
    """What may stand before and instead of the subcommands of a program."""

    options: Options = Options()
    targets: bool = False
    """Whether each operand is a subcommand of its own, as for make."""
    abbreviates: bool = False
    """Whether the beginning of a subcommand stands for it."""
    optional: frozenset[str] = frozenset()
    """Subcommands that may be left out."""
    aliases: Mapping[str, frozenset[str]] = {}
    """By subcommand, the words that mean the same."""
    pairs: frozenset[str] = frozenset()
    """Options that take the next two words."""

    def lengths(self, word: str) -> tuple[int, ...]:
        """How many words an option before the subcommand may take up, the option included; empty for an operand."""
        if self.targets and not word.startswith("-") and "=" in word:
            return (1,)
        if not word.startswith("-"):
            return (2,) if word in self.options.valued else (1,) if self.options.length(word) else ()
        if word in ("-", "--") or (word.startswith("--") and "=" in word):
            return (1,)
        if word in self.pairs:
            return (3,)
        if word in self.options.valued:
            return (2,)
        if self.options.length(word):
            return (1,)
        return (1, 2) if word.startswith("--") else self._cluster(word)

    def _cluster(self, word: str) -> tuple[int, ...]:
        """``lengths`` of short options in one word, the last one possibly with its value."""
        for at in range(1, len(word)):
            option = f"-{word[at]}"
            if option in self.options.valued:
                return (1,) if word[at + 1 :] else (2,)
            if option not in self.options.alone:
                return (1, 2)
        return (1,)

    def means(self, word: str, wanted: str) -> bool:
        """Whether a word of the call is the subcommand that a rule names. Some programs ignore case."""
        word, wanted = word.casefold(), wanted.casefold()
        if word_matches(word, wanted) or word in self.aliases.get(wanted, ()):
            return True
        if self.targets and ":" in word and word_matches(word.rpartition(":")[2], wanted):
            return True
        return self.abbreviates and len(word) > 1 and wanted.startswith(word)


@cache
def _programs() -> Mapping[str, Program]:
    import tomllib
    from pathlib import Path

    data = tomllib.loads(Path(__file__).with_name("global_options.toml").read_text(encoding="utf-8"))
    options, same, optional, aliases, pairs = (
        cast("dict[str, str]", data[table]) for table in ("options", "same", "optional", "aliases", "pairs")
    )
    targets, abbreviates = (frozenset(cast("str", data[key]).split()) for key in ("targets", "abbreviates"))
    programs = {
        name: Program(
            Options.of(options.get(name, "")),
            name in targets,
            name in abbreviates,
            frozenset(optional.get(name, "").split()),
            dict(_groups(aliases.get(name, ""))),
            frozenset(pairs.get(name, "").split()),
        )
        for name in {*options, *targets, *abbreviates, *optional, *aliases, *pairs}
    }
    others = {other: programs[name] for name, names in same.items() for other in names.split()}
    return {**programs, **others}


def _groups(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    for group in text.split():
        names = frozenset(group.split(","))
        yield from ((name, names) for name in names)


_UNKNOWN = Program()


def program(name: str) -> Program:
    """What is known of a program; a program of the same family (``pip3.12``) counts as it."""
    known = _programs()
    return known.get(name) or known.get(name.rstrip("0123456789.")) or _UNKNOWN


def without_global_options(name: str, words: Sequence[str]) -> int:
    """How many of the words behind a program's name are surely options before its subcommand."""
    known, at = program(name), 0
    while at < len(words) and words[at].startswith("-"):
        at += max(known.lengths(words[at]), default=1) if words[at] in known.options.valued else 1
    return min(at, len(words))


def may_match(pattern: Pattern, name: str, argv: Sequence[str | None], *, computed: bool = False) -> bool:
    """Whether a rule's words are the program ``name`` and its subcommands in ``argv`` (the words behind it), with
    options between them. A word that is computed (None) may be nothing or the value of an option, and with
    ``computed`` also anything that the rule names."""
    known, wanted = program(name), pattern.words[1:]
    if not _is_program(pattern.words[0], name) or not wanted:
        return False
    reach: dict[int, set[int]] = {0: {0}}
    """How many of the rule's words the words so far may be, by the number of these."""
    for at in range(len(argv) + 1):
        places = reach.pop(at, set())
        if at < len(argv):
            for position in _with_optional(places, wanted, known):
                if position == len(wanted) and pattern.rest:
                    return True
                for taken, matched in _steps(
                    argv[at], wanted[position:], known, first=position == 0, computed=computed
                ):
                    reach.setdefault(min(at + taken, len(argv)), set()).add(position + matched)
            if not reach:
                return False
        elif len(wanted) in _with_optional(places, wanted, known):
            return True
    return False


def _with_optional(places: set[int], wanted: Sequence[str], known: Program) -> set[int]:
    """The places, and those behind words of the rule that stand for nothing, too."""
    result, pending = set(places), list(places)
    while pending:
        position = pending.pop()
        if position < len(wanted) and wanted[position] in (ANY_WORDS, *known.optional) and position + 1 not in result:
            result.add(position + 1)
            pending.append(position + 1)
    return result


def _steps(
    word: str | None, wanted: Sequence[str], known: Program, *, first: bool, computed: bool
) -> Iterator[tuple[int, int]]:
    """How many words of the call this one and its value are, with how many words of the rule they are."""
    if not wanted:
        return
    if word is None:
        yield (1, 0)
    elif lengths := known.lengths(word):
        # Behind the first subcommand an option of the same name may be another one.
        either = not first and word.startswith("-") and "=" not in word
        yield from ((length, 0) for length in ((1, 2) if either else lengths))
    elif word in known.optional or (known.targets and first):
        yield (1, 0)
    if wanted[0] == ANY_WORDS:
        yield (1, 0)
    elif computed if word is None else known.means(word, wanted[0]):
        yield (1, 1)


def _is_program(wanted: str, name: str) -> bool:
    bare = wanted.rpartition("/")[2].casefold()
    return word_matches(name, bare) or (program(name) is program(bare) and program(name) is not _UNKNOWN)


def mentions(pattern: Pattern, text: str) -> bool:
    """Whether a shell text may have the name of a rule's program, and of its subcommand if it names one."""
    if "$'" in text:
        return True
    folded = _UNSEEN.sub("", text).casefold()
    bare = pattern.words[0].rpartition("/")[2].casefold() if pattern.words else ANY_WORDS
    known = program(bare)
    names = {bare, *(name for name, each in _programs().items() if each is known and known is not _UNKNOWN)}
    if ANY_WORDS not in bare and not any(name in folded for name in names):
        return False
    wanted = [word for word in pattern.words[1:] if ANY_WORDS not in word and word not in known.optional][:1]
    return known.abbreviates or all(
        any(_UNSEEN.sub("", each).casefold() in folded for each in (word, *known.aliases.get(word, ())))
        for word in wanted
    )
