"""Syntax tree for the part of the shell language that the strict lexer understands."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from swecli.core.permissions.types import Rule
from swecli.lazy_pattern import lazy_pattern


class UnprovenError(Exception):
    """A command, or a part of it, is not proven to change nothing; the message says why, as a clause.

    ``soft`` is set if the only objection is to what it reads (outside the workspace, secrets), not to what it does;
    ``git_knows`` if git, which takes time, may prove it after all; ``rule`` is the user's rule about reading that
    objects.
    """

    def __init__(self, reason: str, *, soft: bool = False, git_knows: bool = False, rule: Rule | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.soft = soft
        self.git_knows = git_knows
        self.rule = rule


class Segment(Struct, frozen=True):
    """A piece of a word. ``home`` is an unquoted tilde, ``commands`` a command substitution, ``process`` the whole word
    ``<( … )``, ``number`` an arithmetic expansion (with "@" for each of its substitutions, which ``script`` joins),
    ``list`` the elements of an array, in ``words``. ``change`` is what ``${name…}`` does to the variable: "%.py" and
    the like, ":-text", "#" for its length, "[@]" and the like for an array."""

    kind: Literal["text", "variable", "commands", "home", "process", "number", "list"]
    text: str = ""
    quoted: bool = False
    script: Script | None = None
    change: str = ""
    words: tuple[Word, ...] = ()


class Word(Struct, frozen=True):
    segments: tuple[Segment, ...]

    @property
    def literal(self) -> str | None:
        """The word's value if it is plain text without active wildcards."""
        if any(segment.kind != "text" for segment in self.segments) or self.has_glob:
            return None
        return "".join(segment.text for segment in self.segments)

    @property
    def has_glob(self) -> bool:
        for index, segment in enumerate(self.segments):
            if segment.kind != "text" or segment.quoted:
                continue
            if "*" in segment.text or "?" in segment.text:
                return True
            bracket = segment.text.find("[")
            if bracket >= 0 and "]" in segment.text[bracket:] + "".join(
                rest.text for rest in self.segments[index + 1 :]
            ):
                return True
        return False

    @property
    def bare(self) -> str | None:
        if len(self.segments) == 1 and self.segments[0].kind == "text" and not self.segments[0].quoted:
            return self.segments[0].text
        return None


class Redirect(Struct, frozen=True):
    """``fd`` is the number before the operator, if any. Here-documents have a ``body`` and no target; ``document`` is
    the body as a word if the shell expands it."""

    fd: str
    operator: str
    target: Word | None = None
    body: str = ""
    literal_body: bool = False
    document: Word | None = None


class Simple(Struct, frozen=True):
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


class Group(Struct, frozen=True):
    script: Script
    subshell: bool
    redirects: tuple[Redirect, ...]


class For(Struct, frozen=True):
    variable: str
    words: tuple[Word, ...]
    body: Script
    redirects: tuple[Redirect, ...]


class If(Struct, frozen=True):
    """Conditions and branches in source order."""

    scripts: tuple[Script, ...]
    redirects: tuple[Redirect, ...]


class While(Struct, frozen=True):
    """``until``: it runs while the condition fails. ``step`` is what ``for ((…))`` does after each round."""

    condition: Script
    body: Script
    redirects: tuple[Redirect, ...]
    until: bool = False
    step: Simple | None = None


class Case(Struct, frozen=True):
    """``words`` are the subject and all patterns, ``bodies`` the commands behind them, in source order."""

    words: tuple[Word, ...]
    bodies: tuple[Script, ...]
    redirects: tuple[Redirect, ...]


Command = Simple | Group | For | If | While | Case


def script_of(command: Command) -> Script:
    """A script of this one command."""
    return Script((AndOr((("", Pipeline((command,))),)),))


class Pipeline(Struct, frozen=True):
    commands: tuple[Command, ...]


class AndOr(Struct, frozen=True):
    """Pipelines, each with the operator that joins it to the previous one: nothing, ``&&`` or ``||``."""

    items: tuple[tuple[str, Pipeline], ...]


class Script(Struct, frozen=True):
    items: tuple[AndOr, ...]


def simple_commands(script: Script) -> Iterator[Simple]:
    """Every simple command in the tree, including those in substitutions."""
    for and_or in script.items:
        for _, pipeline in and_or.items:
            for command in pipeline.commands:
                yield from _of_command(command)


def _of_command(command: Command) -> Iterator[Simple]:
    words: tuple[Word, ...] = ()
    match command:
        case Simple():
            yield command
            words = command.words + tuple(value for _, value in command.assignments)
        case Group():
            yield from simple_commands(command.script)
        case For():
            words = command.words
            yield from simple_commands(command.body)
        case If():
            for script in command.scripts:
                yield from simple_commands(script)
        case While():
            yield from simple_commands(command.condition)
            yield from simple_commands(command.body)
            if command.step is not None:
                yield from _of_command(command.step)
        case Case():
            words = command.words
            for body in command.bodies:
                yield from simple_commands(body)
    read = (word for redirect in command.redirects for word in (redirect.target, redirect.document))
    for word in (*words, *(word for word in read if word is not None)):
        for script in scripts_in(word):
            yield from simple_commands(script)


def scripts_in(word: Word) -> Iterator[Script]:
    """The scripts of all substitutions in a word."""
    for segment in word.segments:
        if segment.script is not None:
            yield segment.script
        for element in segment.words:
            yield from scripts_in(element)


def loop_variables(script: Script) -> set[str]:
    """The variables of all ``for`` loops that are not in substitutions, whose variables end with them."""
    names: set[str] = set()
    pending: list[Script] = [script]
    while pending:
        for and_or in pending.pop().items:
            for _, pipeline in and_or.items:
                for command in pipeline.commands:
                    match command:
                        case For():
                            names.add(command.variable)
                            pending.append(command.body)
                        case Group():
                            pending.append(command.script)
                        case If():
                            pending += command.scripts
                        case While():
                            pending += (command.condition, command.body)
                        case Case():
                            pending += command.bodies
                        case Simple():
                            pass
    return names


METACHARACTERS = frozenset(" \t\n;&|<>()")
MAX_RANGE = 50

NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = lazy_pattern(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*)("
    r"(?:%%?|##?)[A-Za-z0-9_.,:/*?@ +-]+|:[-+][A-Za-z0-9_.,/@+-]*|//?[A-Za-z0-9_.,:*?@ +-]+"
    r"(?:/[A-Za-z0-9_.,:/*?@ +-]*)?|: ?-?[0-9]+(?::-?[0-9]+)?|\^\^?|,,?|\[(?:[@*]|[0-9]{1,3})\])?\}"
)
_ESCAPED = lazy_pattern(r"\$'((?:[^'\\]|\\[tn\\'\"])*)'")
_ESCAPE = lazy_pattern(r"\\(.)")
_LENGTH = lazy_pattern(r"\$\{#([A-Za-z_][A-Za-z0-9_]*)(\[[@*]\])?\}")
_BRACES = lazy_pattern(r"([^{}]*)\{([^{}]*(?:,|\.\.)[^{}]*)\}([^{}]*)")
_RANGE = lazy_pattern(r"(0|[1-9]\d{0,2})\.\.(0|[1-9]\d{0,2})")
_NUMBERS = lazy_pattern(r"(?:[A-Za-z_$][A-Za-z0-9_]*|(?:2|8|10|16)#[0-9A-Fa-f]+|[0-9 \t+*/%<>=!&|?:,-])")
"""One piece of an arithmetic expression, except its parentheses."""
_RECALLS = lazy_pattern(r"(?<!\[)![A-Za-z0-9_./!$*^#?:-]")
"""An unquoted ``!`` with which a shell with history may recall an earlier command."""
_RECALLS_IN_QUOTES = lazy_pattern(r"!(?:[!$]|-?[0-9]|\*[\"\s])")
_CHANGES = lazy_pattern(r"\+\+|--|(?<![=!<>])=(?!=)|[<>]{2}=")
_STEP = lazy_pattern(r"(?:\+\+|--)\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*(?:(\+\+|--)|([-+*]=)\s*(.+)|(=)(?!=)\s*(.+))")
"""A part of ``(( … ))`` that sets a variable."""


def _calculation(expression: str, script: Script | None, *, quoted: bool) -> Segment:
    if _CHANGES.search(expression):
        raise UnprovenError("arithmetic may change a variable")
    return Segment("number", expression, quoted, script)


def _new_value(part: str, step: re.Match[str]) -> tuple[str, str]:
    """The variable that a part of ``(( … ))`` sets, and its new value as an expression."""
    before, name, after, operator, amount, _, value = step.groups()
    if before or after:
        name = before or name
        return name, f"{name} {(part if before else after)[0]} 1"
    if not operator:
        return name, value
    return name, f"{name} {operator[0]} ({amount})"


def _without_braces(segments: list[Segment]) -> list[list[Segment]]:
    """The words that braces expand to; supported is a single ``{a,b,…}`` of plain, unquoted text."""
    unquoted = "".join(segment.text for segment in segments if segment.kind == "text" and not segment.quoted)
    whole = "".join(segment.text for segment in segments)
    if "{" not in unquoted or not _may_be_list(whole):
        return [segments]
    if any(segment.kind in ("variable", "commands", "number") for segment in segments):
        raise UnprovenError("braces next to an expansion are not understood")
    for index, segment in enumerate(segments):
        match = _BRACES.fullmatch(segment.text) if segment.kind == "text" and not segment.quoted else None
        if match is not None and unquoted.count("{") == 1 and unquoted.count("}") == 1:
            before, inner, after = match.groups()
            choices = _choices(inner)
            if not before + after and "" in choices and len(segments) == 1:
                raise UnprovenError("an empty word of a brace expansion vanishes")
            return [
                [*segments[:index], Segment("text", before + choice + after), *segments[index + 1 :]]
                for choice in choices
            ]
    raise UnprovenError("this brace expansion is not understood")


def _may_be_list(text: str) -> bool:
    inner = text[text.find("{") : text.rfind("}") + 1]
    return "," in inner or ".." in inner


def _choices(inner: str) -> list[str]:
    """The expansion of ``{inner}``: a list, or a short range of numbers."""
    if ".." not in inner:
        return inner.split(",")
    numbers = _RANGE.fullmatch(inner)
    if numbers is None:
        raise UnprovenError("this brace expansion is not understood")
    first, last = int(numbers.group(1)), int(numbers.group(2))
    step = 1 if first <= last else -1
    if abs(last - first) > MAX_RANGE:
        raise UnprovenError("a range in braces is too long to judge")
    return [str(number) for number in range(first, last + step, step)]


class WordReader(ABC):
    def __init__(self, text: str) -> None:
        self.text = text
        self.at: int = 0

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.text)

    @property
    def rest(self) -> str:
        return self.text[self.at : self.at + 20]

    @abstractmethod
    def substitution(self) -> Script:
        """The commands after ``$(``, which is consumed, up to and including its parenthesis."""

    @abstractmethod
    def commands_of(self, text: str) -> Script:
        """The commands inside backticks."""

    def word(self) -> Word:
        words = self.words()
        if len(words) > 1:
            raise UnprovenError("brace expansion is not understood here")
        return words[0]

    def words(self) -> list[Word]:
        """One word, or the words that a plain ``{a,b}`` in it expands to."""
        if self.at_end or self.peek() in METACHARACTERS:
            raise UnprovenError(f"a word is missing before {self.rest!r}")
        return [self._checked(segments) for segments in _without_braces(self._segments())]

    def document(self) -> Word:
        """The whole text, as the shell expands a here-document."""
        segments: list[Segment] = []
        plain = ""
        while not self.at_end:
            if self.text.startswith(("\\$", "\\`", "\\\\", "\\\n"), self.at):
                plain += "" if self.text[self.at + 1] == "\n" else self.text[self.at + 1]
                self.at += 2
                continue
            segment = Segment("text", self.peek())
            if self.peek() == "$":
                segment = self._dollar(quoted=True)
            elif self.peek() == "`":
                segment = self._backticks(quoted=True)
            else:
                self.at += 1
            if segment.script is not None:
                raise UnprovenError("a here-document with commands is not understood")
            if segment.kind == "text":
                plain += segment.text
            else:
                segments += [Segment("text", plain, quoted=True), segment]
                plain = ""
        return Word((*segments, Segment("text", plain, quoted=True)))

    def piece(self) -> list[Segment]:
        """One quoted text or expansion."""
        if self.peek() == '"':
            return self._double_quoted()
        if self.peek() == "$":
            return [self._dollar(quoted=True)]
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnprovenError("a quote is not closed")
        start, self.at = self.at + 1, end + 1
        return [Segment("text", self.text[start:end], quoted=True)]

    def _segments(self) -> list[Segment]:
        segments: list[Segment] = []
        plain = ""

        def flush() -> None:
            nonlocal plain
            if plain:
                segments.append(Segment("text", plain))
                plain = ""

        while not self.at_end and self.peek() not in METACHARACTERS:
            char = self.peek()
            if char == "'" or char == '"':
                flush()
                segments += self.piece()
            elif char == "\\":
                self.at += 1
                if self.at_end:
                    raise UnprovenError("it ends in a backslash")
                if self.peek() != "\n":
                    flush()
                    segments.append(Segment("text", self.peek(), quoted=True))
                self.at += 1
            elif self.text.startswith("$'", self.at):
                flush()
                segments.append(self._escaped())
            elif char == "$":
                segment = self._dollar(quoted=False)
                if segment.kind == "text":
                    plain += segment.text
                else:
                    flush()
                    segments.append(segment)
            elif char == "`":
                flush()
                segments.append(self._backticks(quoted=False))
            else:
                if char == "!" and _RECALLS.match(self.text, self.at):
                    raise UnprovenError("! may stand for an earlier command")
                plain += char
                self.at += 1
        flush()
        return segments

    def _checked(self, segments: list[Segment]) -> Word:
        unquoted = "\0".join(segment.text for segment in segments if segment.kind == "text" and not segment.quoted)
        if "=~" in unquoted or ":~" in unquoted:
            raise UnprovenError("the shell may expand a tilde here")
        first = segments[0] if segments else None
        if first is not None and first.kind == "text" and not first.quoted and first.text.startswith("~"):
            prefix, slash, rest = first.text.partition("/")
            if prefix != "~" or (not slash and len(segments) > 1):
                raise UnprovenError("this kind of tilde is not understood")
            segments[:1] = [Segment("home"), *([Segment("text", slash + rest)] if slash else [])]
        return Word(tuple(segments))

    def _double_quoted(self) -> list[Segment]:
        self.at += 1
        segments: list[Segment] = []
        text = ""
        while True:
            if self.at_end:
                raise UnprovenError("a quote is not closed")
            char = self.peek()
            if char == '"':
                self.at += 1
                return [*segments, Segment("text", text, quoted=True)]
            if char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                if following == "\n":
                    continue
                text += following if following and following in '$`"\\' else char + following
            elif char == "`":
                segments += [Segment("text", text, quoted=True), self._backticks(quoted=True)]
                text = ""
            elif char == "$":
                segment = self._dollar(quoted=True)
                if segment.kind == "text":
                    text += segment.text
                else:
                    segments += [Segment("text", text, quoted=True), segment]
                    text = ""
            else:
                if char == "!" and _RECALLS_IN_QUOTES.match(self.text, self.at):
                    raise UnprovenError("! may stand for an earlier command")
                text += char
                self.at += 1

    def _dollar(self, *, quoted: bool) -> Segment:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(":
            if self.text.startswith("$((", self.at):
                return self._arithmetic(quoted=quoted)
            self.at += 2
            return Segment("commands", quoted=quoted, script=self.substitution())
        braced = _BRACED.match(self.text, self.at)
        if braced is not None:
            self.at = braced.end()
            return Segment("variable", braced.group(1), quoted, change=braced.group(2) or "")
        length = _LENGTH.match(self.text, self.at)
        if length is not None:
            self.at = length.end()
            return Segment("variable", length.group(1), quoted, change="#" + (length.group(2) or ""))
        name = NAME.match(self.text, self.at + 1)
        if name is not None:
            self.at = name.end()
            if self.text.startswith("\\\n", self.at):
                raise UnprovenError("a variable's name may continue on the next line")
            return Segment("variable", name.group(), quoted)
        if following in ("?", "$", "#", "0"):
            self.at += 2
            return Segment("variable", following, quoted)
        if not following or following in (" \t\n/|.,:%+^)" if quoted else " \t\n|;)") or (quoted and following == '"'):
            self.at += 1
            return Segment("text", "$")
        raise UnprovenError(f"the expansion ${following} is not understood")

    def _escaped(self) -> Segment:
        """``$'…'`` with a tab, a line break, quotes or a backslash."""
        match = _ESCAPED.match(self.text, self.at)
        if match is None:
            raise UnprovenError("the expansion $' is not understood")
        self.at = match.end()
        text = _ESCAPE.sub(lambda found: {"t": "\t", "n": "\n"}.get(found[1], found[1]), match[1])
        return Segment("text", text, quoted=True)

    def _backticks(self, *, quoted: bool) -> Segment:
        end = self.text.find("`", self.at + 1)
        body = self.text[self.at + 1 : end]
        # Backticks, backslashes and, in quotes, quotes follow rules of their own.
        if end < 0 or "\\" in body or (quoted and '"' in body):
            raise UnprovenError("these backticks are not understood")
        self.at = end + 1
        return Segment("commands", quoted=quoted, script=self.commands_of(body))

    def _arithmetic(self, *, quoted: bool) -> Segment:
        """``$(( … ))`` that only calculates; whether its names hold numbers is judged later."""
        self.at += 3
        inner, script = self._expression("))")
        self.at += 2
        return _calculation(inner, script, quoted=quoted)

    def _expression(self, end: str) -> tuple[str, Script | None]:
        """An arithmetic expression up to ``end``, with "@" for each substitution, and these."""
        expression, depth = "", 0
        scripts: list[Script] = []
        while depth or not self.text.startswith(end, self.at):
            char = self.peek()
            if char == "(" or (char == ")" and depth):
                depth += 1 if char == "(" else -1
                expression, self.at = expression + char, self.at + 1
            elif self.text.startswith("$(", self.at) and not self.text.startswith("$((", self.at):
                self.at += 2
                scripts.append(self.substitution())
                expression += "@"
            elif self.text.startswith("${", self.at):
                segment = self._dollar(quoted=True)
                if segment.change not in ("", "#", "#[@]", "#[*]"):
                    raise UnprovenError("this arithmetic is not understood")
                expression += f" {segment.text} " if not segment.change else "0"
            elif (piece := _NUMBERS.match(self.text, self.at)) is not None:
                expression, self.at = expression + piece.group(), piece.end()
            else:
                raise UnprovenError("this arithmetic is not understood")
        joined = Script(tuple(item for script in scripts for item in script.items)) if scripts else None
        return expression, joined

    def calculation(self, end: str, *, sets: bool = False) -> Simple:
        """The inside of ``(( … ))`` up to ``end`` as what it amounts to: assignments of sums, or ``:`` with a sum.
        ``sets``: a variable may get a value that is not one step from the last."""
        expression, script = self._expression(end)
        parts = [part.strip() for part in expression.split(",")] if expression.strip() else []
        if script is not None and len(parts) > 1:
            raise UnprovenError("this arithmetic is not understood")
        assignments: list[tuple[str, Word]] = []
        words = [Word((Segment("text", ":"),))]
        for part in parts:
            step = _STEP.fullmatch(part)
            if step is None:
                words.append(Word((_calculation(part, script, quoted=True),)))
            elif step.group(6) and not sets:
                raise UnprovenError("(( )) sets a variable")
            else:
                name, value = _new_value(part, step)
                assignments.append((name, Word((_calculation(value, script, quoted=False),))))
        if assignments and len(words) > 1:
            raise UnprovenError("this arithmetic is not understood")
        return Simple(tuple(assignments), () if assignments else tuple(words), ())

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def blanks(self) -> None:
        while not self.at_end:
            if self.peek() in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.peek() == "#":
                # Reached only between words, so this is a comment.
                newline = self.text.find("\n", self.at)
                self.at = len(self.text) if newline < 0 else newline
            else:
                return
