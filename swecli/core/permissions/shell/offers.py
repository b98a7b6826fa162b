"""The narrowest useful rule that "always" may add for a simple command, or the reason for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import cast

from msgspec import Struct

from swecli.core.permissions.shell.tables import Options
from swecli.lazy_pattern import lazy_pattern

MAX_RULE = 300
"""Characters of a rule that a person can be expected to read."""
_OPTION = lazy_pattern(r"-\w{1,3}\Z")
"""An option that a reason names with its program, such as ``-c`` of ``python3 -c``."""

IsScript = Callable[[str], bool]
"""Whether a word names a workspace script."""


class Offered(Struct, frozen=True):
    """The words of a rule. ``rest``: anything may follow them. ``script`` is the file they run."""

    words: tuple[str, ...]
    rest: bool = False
    script: str = ""


class NoOffer(Struct, frozen=True):
    """Why no rule is offered, as a clause."""

    why: str


class _Table(Struct, frozen=True):
    forms: Mapping[str, tuple[tuple[str, ...], ...]]
    """By program; each form omits the program's name."""
    options: Mapping[str, Options]
    never: Mapping[str, str]


@cache
def _table() -> _Table:
    import tomllib
    from pathlib import Path

    data = tomllib.loads(Path(__file__).with_name("offers.toml").read_text(encoding="utf-8"))
    forms: dict[str, tuple[tuple[str, ...], ...]] = {}
    for line in cast("str", data["forms"]).splitlines():
        if line.strip():
            program, *rest = line.split()
            forms[program] = (*forms.get(program, ()), tuple(rest))
    options = {program: Options.of(text) for program, text in cast("dict[str, str]", data["options"]).items()}
    never = {name: why for why, names in cast("dict[str, str]", data["never"]).items() for name in names.split()}
    return _Table(forms, options, never)


def offered_words(words: Sequence[str | None], is_script: IsScript = lambda word: False) -> Offered | NoOffer:
    """The words of a rule that covers a command."""
    if not words or words[0] is None:
        return NoOffer("its name is computed when it runs")
    program = without_version(words[0])
    offered = _by_form(words, program, is_script)
    if offered is not None:
        return offered
    table = _table()
    why = table.never.get(program) or table.never.get(words[0].rpartition("/")[2].casefold())
    if why is not None:
        option = words[1] if len(words) > 1 and words[1] is not None and _OPTION.match(words[1]) else ""
        return NoOffer(f"`{words[0]}{option and ' '}{option}` {why}")
    return _exactly(words)


_SHELL = "changes the shell itself"


def changes_shell(name: str) -> str:
    """What a builtin does that changes the state of the shell, as a clause without its subject; empty for others."""
    return _SHELL if _table().never.get(name) == _SHELL else ""


def spelled_out(words: Sequence[str], name: str) -> tuple[str, ...]:
    """The words that a rule must spell out to cover this command of an always-asking program; empty if no form fits."""
    offered = _by_form(words, name, lambda word: False)
    return offered.words if isinstance(offered, Offered) and offered.rest else ()


def without_version(word: str) -> str:
    """The name of a program: ``python`` for ``/usr/bin/python3.11``."""
    name = word.rpartition("/")[2].casefold()
    return name.rstrip("0123456789.") or name


def _exactly(words: Sequence[str | None], script: str = "") -> Offered | NoOffer:
    known = tuple(word for word in words if word is not None)
    if len(known) != len(words):
        return NoOffer("an argument is computed when it runs")
    if any("\n" in word for word in known):
        return NoOffer("a rule is one line, and this command is not")
    if sum(map(len, known)) > MAX_RULE:
        return NoOffer("a rule for exactly this command would be too long to read")
    return Offered(known, script=script)


def _by_form(words: Sequence[str | None], program: str, is_script: IsScript) -> Offered | NoOffer | None:
    table = _table()
    known = program if program in table.forms else (words[0] or "").rpartition("/")[2].casefold()
    for form in table.forms.get(known, ()):
        offered = _fits(form, words, table.options.get(known, Options()), is_script)
        if offered is not None:
            return offered
    return None


def _fits(
    form: Sequence[str], words: Sequence[str | None], options: Options, is_script: IsScript
) -> Offered | NoOffer | None:
    """The offer of a form for these words; None if they don't begin like it."""
    at, script = 1, ""
    for token in form:
        if token == "*":
            head = tuple(word for word in words[:at] if word is not None)
            return Offered(head, rest=True) if sum(map(len, head)) <= MAX_RULE else None
        if token == ".":
            return _exactly(words, script)
        if token != (words[at] if at < len(words) else None):
            at = _after_options(words, at, options)
        word = words[at] if at < len(words) else None
        if word is None or not word:
            return None
        if token == "CMD":
            return _started(words, at, is_script)
        if token == "FILE" and not (not word.startswith("-") and is_script(word)):
            return None
        if token == "NAME" and (word.startswith("-") or "\n" in word):
            return None
        if token not in ("FILE", "NAME") and word != token:
            return None
        script = word if token == "FILE" else script
        at += 1
    return None


def _after_options(words: Sequence[str | None], at: int, options: Options) -> int:
    while at < len(words):
        length = options.length(words[at] or "")
        if not length or None in words[at : at + length]:
            break
        at += length
    return at


def _started(words: Sequence[str | None], at: int, is_script: IsScript) -> Offered | NoOffer | None:
    if (words[at] or "").startswith("-"):
        return None
    inner = offered_words(words[at:], is_script)
    if isinstance(inner, NoOffer):
        # A later form of the same program may fit better, such as a script by its name alone.
        return None if is_script(words[at] or "") else inner
    head = tuple(word for word in words[:at] if word is not None)
    return Offered((*head, *inner.words), inner.rest, inner.script)
