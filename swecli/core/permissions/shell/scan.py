"""Tolerant reader of shell text: it finds every command, however deep, as well as it can.

It serves deny and ask rules and the search for destructive commands, so it only ever makes the outcome stricter.
Variables and substitutions it can't resolve are marked as unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.permissions.shell.lexer import decode_ansi, expanded, has_braces
from swecli.core.permissions.shell.tables import tables
from swecli.lazy_pattern import lazy_pattern


class ScanError(ValueError):
    """The text ends inside a quote or bracket."""


class ScanWord(Struct, frozen=True):
    """``text`` is the known part; ``known`` is False if parts are computed."""

    text: str
    known: bool = True
    glob: bool = False


def is_long_option(word: str, option: str) -> bool:
    """Whether a word is the long option, with or without a value, or one of its abbreviations, which most programs
    accept."""
    name = word.partition("=")[0]
    return len(name) > len("--") and option.startswith(name) and (name == option or name not in _NO_ABBREVIATIONS)


_NO_ABBREVIATIONS = frozenset(("--checkpoint",))
"""Whole options that are the beginning of others."""


class FoundCommand(Struct, frozen=True):
    """A simple command. ``stdin`` is the text of a here-document or here-string; ``piped``: another command feeds
    it; ``settings`` are the assignments before it that concern the programs it starts."""

    words: tuple[ScanWord, ...]
    writes: tuple[ScanWord, ...] = ()
    reads: tuple[ScanWord, ...] = ()
    truncates: bool = False
    stdin: str | None = None
    piped: bool = False
    settings: tuple[ScanWord, ...] = ()


MAX_DEPTH = 12
MAX_FOUND = 400

_SEPARATORS = frozenset("\n;&|()")
_META = frozenset(" \t\r\n;&|()<>")
_OPERATORS = frozenset("\n&|()<>")
"""What separates nothing in ``[[ ]]``."""
PROGRAM_SETTING = lazy_pattern(
    r"(?:(?:GIT_|MAN|BAT_|DELTA_|SYSTEMD_|PSQL_)?PAGER|(?:GIT_|GIT_SEQUENCE_)?EDITOR|VISUAL|FCEDIT|GIT_EXTERNAL_DIFF"
    r"|GIT_SSH(?:_COMMAND)?|(?:GIT|SSH|SUDO)_ASKPASS|GIT_PROXY_COMMAND|GIT_CONFIG_VALUE_\d+|BROWSER|LESSOPEN|LESSCLOSE"
    r"|PROMPT_COMMAND|RUSTC(?:_WORKSPACE)?_WRAPPER|(?:RSYNC|CVS)_RSH|SHELL)="
)
"""An assignment to a variable whose value programs run as a command."""
_EXPANDED_SETTING = lazy_pattern(r"(?:PS[0-4]|BASH_ENV|ENV|MAILPATH)=")
"""An assignment to a variable whose value a shell expands when it uses it."""
_FILE_SETTING = lazy_pattern(r"\w*(?:FILE|CONFIG|CONF|RC|STARTUP|CREDENTIALS|CONFIG_GLOBAL|CONFIG_SYSTEM)=")
"""An assignment to a variable whose value may name a file that the program reads."""
_COMPOUND = lazy_pattern(r"(?:[ \t\r]|\\\n)*(?:\{|if|while|until|for|case|select|\[\[)(?=[\s;&|<>()]|$)")
"""The beginning of a compound command, which after ``function`` and ``coproc`` has its name before it."""
_ORDINARY = lazy_pattern(r"[^ \t\r\n;&|()<>'\"\\$`]+")
_ORDINARY_IN_QUOTES = lazy_pattern(r'[^"\\$`]+')
_TILDE = lazy_pattern(r"~[^/\s;&|()<>'\"\\$`]*")
_TIME_OPTION = lazy_pattern(r"[ \t]+-p(?=\s)")
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_REDIRECT = lazy_pattern(r"(?:\d+|&)?(?:<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|&>>?")
_ASSIGNMENT = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=", re.DOTALL)
_SETS = lazy_pattern(r"(?<![\w$./-])([A-Za-z_]\w*)(?:\[[^\]\n]*\])?:?[-+*/%]?=")
_SETTERS = lazy_pattern(
    r"(?<![\w$./-])(?:for|select|read|mapfile|readarray|printf\s+-v|declare|typeset|local|export|readonly|getopts|unset|let)"
    r"\s([^\n;&|]*)"
)
_WORD = lazy_pattern(r"(?<![\w$./-])[A-Za-z_]\w*(?![\w./-])")


_DECLARING = frozenset(("declare", "typeset", "local", "readonly", "export"))


class _Current(Struct):
    words: list[ScanWord] = field(default_factory=lambda: list[ScanWord]())
    writes: list[ScanWord] = field(default_factory=lambda: list[ScanWord]())
    reads: list[ScanWord] = field(default_factory=lambda: list[ScanWord]())
    truncates: bool = False
    stdin: str | None = None
    piped: bool = False
    assignments: list[tuple[str, str | None]] = field(default_factory=lambda: list[tuple[str, str | None]]())
    settings: list[ScanWord] = field(default_factory=lambda: list[ScanWord]())
    files: list[ScanWord] = field(default_factory=lambda: list[ScanWord]())


def scan(text: str, known: Mapping[str, str]) -> tuple[FoundCommand, ...]:
    """Every simple command of the text, including those in substitutions, functions and here-documents. ``known`` are
    variables with their values. Commands with a variable that may have several values appear twice: with the last one
    and with an unknown one.

    Raises:
        ScanError: a quote or bracket is not closed, or nesting is too deep.
    """
    commands: list[FoundCommand] = []
    _Scanner(text, commands, dict(known), 0).commands("")
    uncertain = _set_again(text)
    if uncertain:
        _Scanner(text, again := [], {**known, **dict.fromkeys(uncertain)}, 0).commands("")
        commands += again
    return tuple(dict.fromkeys(commands))


def _set_again(text: str) -> set[str]:
    """Variables whose value may be another than that of their last assignment in the text: those that it sets at more
    than one place, quoted text included. Branches, loops and subshells are not followed."""
    places = {(match.start(1), match.group(1)) for match in _SETS.finditer(text)}
    for builtin in _SETTERS.finditer(text):
        places |= {(match.start(), match.group()) for match in _WORD.finditer(text, *builtin.span(1))}
    times = Counter(name for _, name in places)
    return {name for name, count in times.items() if count > 1}


class _Scanner:
    def __init__(self, text: str, commands: list[FoundCommand], variables: dict[str, str | None], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ScanError("it is nested too deeply")
        self._text = text
        self._at: int = 0
        self._found = commands
        self._variables = variables
        """Values by name; None stays, whatever is assigned."""
        self._depth = depth
        self._cases = 0
        """Number of open ``case`` commands: inside them a parenthesis may close a pattern."""
        self._documents: list[tuple[str, bool, bool, _Current]] = []
        self._keyword = ""
        """Keyword before the next word."""
        self._in_condition = False
        """Whether this is between ``[[`` and ``]]``."""

    def commands(self, closer: str) -> None:
        """Read up to ``closer``, which is consumed, or to the end."""
        current = _Current()
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t\r":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._in_condition and char in _OPERATORS and not self._text.startswith(("<(", ">("), self._at):
                self._at += 1
            elif char == closer and not self._cases:
                self._at += 1
                self._finish(current)
                return
            elif char == "#":
                newline = self._text.find("\n", self._at)
                self._at = len(self._text) if newline < 0 else newline
            elif self._text.startswith(("<(", ">("), self._at):
                self._at += 2
                self._nested(")")
                current.words.append(ScanWord("", known=False))
            elif (redirect := _REDIRECT.match(self._text, self._at)) is not None:
                self._redirect(redirect.group(), current)
            elif char in _SEPARATORS:
                current = self._separator(char, current)
            else:
                self._one_word(current)
        if self._in_condition:
            raise ScanError("[[ is not closed")
        if closer:
            raise ScanError(f"{closer} is missing")
        self._bodies()
        self._finish(current)

    def _separator(self, char: str, current: _Current) -> _Current:
        if self._in_condition:
            raise ScanError("[[ is not closed")
        self._at += 1
        if char == "\n":
            self._bodies()
        if char == "(" and self._text[self._at :].lstrip(" \t").startswith(")"):
            # The head of a function, followed by its body.
            self._at = self._text.index(")", self._at) + 1
        elif char == "(" and not (self._cases and not current.words):
            # A group, an array or a pattern needs its own end.
            if self._is_list(current) and self._names_no_program():
                return current
            self._finish(current)
            self._nested(")")
            return _Current()
        elif char == ")" and not self._cases:
            raise ScanError("a closing parenthesis has no opening one")
        piped = char == "|" and not self._text.startswith("|", self._at) and self._text[self._at - 2 : self._at] != "||"
        self._finish(current)
        return _Current(piped=piped)

    def _is_list(self, current: _Current) -> bool:
        """Whether the bracket just read opens the list of an array."""
        if self._text[self._at - 2 : self._at - 1] != "=":
            return False
        if current.words:
            return current.words[0].text in _DECLARING and _ASSIGNMENT.fullmatch(current.words[-1].text) is not None
        if not current.assignments or current.assignments[-1][1] != "":
            return False
        current.assignments[-1] = (current.assignments[-1][0], None)
        return True

    def _names_no_program(self) -> bool:
        """Read a list that cannot be a command kept for later, as its first word is computed or has a subscript. Any
        other list is left unread, to be searched like a command."""
        begin, first = self._at, True
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == ")":
                self._at += 1
                return not first
            if char in " \t\r\n":
                self._at += 1
                continue
            if char in _META or char == "#":
                break
            words = self._word()
            if first and words[0].known and not words[0].text.startswith("["):
                break
            first = False
        self._at = begin
        return False

    def _finish(self, current: _Current) -> None:
        if not current.words:
            # An assignment before a command applies to that command only, and not yet to its own words.
            for name, value in current.assignments:
                if self._variables.get(name, "") is None:
                    continue
                self._variables.pop(name, None)
                if value is not None:
                    self._variables[name] = value
        self._evaluated(current)
        if not (current.words or current.writes or current.reads or current.settings):
            return
        if len(self._found) >= MAX_FOUND:
            raise ScanError("it has too many commands")
        self._found.append(
            FoundCommand(
                tuple(current.words),
                tuple(current.writes),
                tuple(current.reads),
                current.truncates,
                current.stdin,
                current.piped,
                (*current.settings, *(current.files if current.words else ())),
            )
        )

    def _evaluated(self, current: _Current) -> None:
        """Scan the texts that are evaluated later: subscripts with substitutions in arithmetic, lists as one word,
        prompts."""
        texts = [value for _, value in current.assignments if value is not None]
        # The builtin may follow "command" or another wrapper.
        if any(word.text in tables().lists["evaluating"] for word in current.words):
            texts += [word.text for word in current.words]
        for text in texts:
            if ("[" in text or "=(" in text) and ("$(" in text or "`" in text):
                self._embedded(text)
        for word in (*current.settings, *current.words):
            if _EXPANDED_SETTING.match(word.text):
                self._embedded(word.text)

    def _one_word(self, current: _Current) -> None:
        begins = not (current.words or current.assignments or current.writes or current.reads)
        begins &= self._keyword != "function"
        start, keyword, self._keyword = self._at, self._keyword, ""
        words = self._word()
        names = keyword in ("function", "coproc") and not _ASSIGNMENT.match(words[0].text)
        if names and _COMPOUND.match(self._text, self._at):
            return
        match self._text[start : self._at]:
            case "[[" if begins:
                self._in_condition = True
            case "]]":
                self._in_condition = False
            case _:
                pass
        self._add(current, words)

    def _add(self, current: _Current, words: list[ScanWord]) -> None:
        first = words[0]
        if not current.words:
            if first.text in tables().lists["keywords"] and len(words) == 1:
                self._cases -= first.text == "esac" and self._cases > 0
                if first.text == "time":
                    self._skip_time_option()
                self._keyword = first.text
                return
            self._cases += first.text == "case"
            assignment = _ASSIGNMENT.match(first.text)
            if assignment is not None:
                value = first.text[assignment.end() :] if first.known else None
                current.assignments.append((assignment.group(1), value))
                if PROGRAM_SETTING.match(first.text) or _EXPANDED_SETTING.match(first.text):
                    current.settings.append(first)
                elif _FILE_SETTING.match(first.text):
                    current.files.append(first)
                return
        current.words.extend(words)

    def _skip_time_option(self) -> None:
        option = _TIME_OPTION.match(self._text, self._at)
        self._at = option.end() if option is not None else self._at

    # --- redirections ---------------------------------------------------------------------------------------------

    def _redirect(self, operator: str, current: _Current) -> None:
        self._at += len(operator)
        kind = operator.lstrip("0123456789&") if not operator.startswith("&>") else operator[1:]
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        if self._at >= len(self._text) or self._text[self._at] in _META:
            return
        start = self._at
        words = self._word()
        target = words[0] if len(words) == 1 else ScanWord("", known=False)
        if kind in ("<<", "<<-"):
            quoted = any(char in self._text[start : self._at] for char in "'\"\\")
            self._documents.append((target.text, kind == "<<-", quoted, current))
        elif kind == "<<<":
            current.stdin = target.text
        elif kind in ("<", "<&"):
            current.reads.append(target)
        elif not (kind == ">&" and re.fullmatch(r"\d+-?|-", target.text)):
            current.writes.append(target)
            current.truncates |= not kind.startswith(">>") and kind != "<>"

    def _bodies(self) -> None:
        documents, self._documents = self._documents, []
        for end, strip, quoted, owner in documents:
            lines: list[str] = []
            while self._at < len(self._text):
                newline = self._text.find("\n", self._at)
                stop = len(self._text) if newline < 0 else newline
                line = self._text[self._at : stop]
                self._at = min(stop + 1, len(self._text))
                line = line.lstrip("\t") if strip else line
                if line == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            owner.stdin = body
            if not quoted:
                self._embedded(body)
            # The owner may already be finished, for example before a pipe: judge the text under its words.
            for index, command in enumerate(self._found):
                if command.words == tuple(owner.words) and command.stdin is None:
                    self._found[index] = replace(command, stdin=body)

    # --- words ------------------------------------------------------------------------------------------------------

    def _word(self) -> list[ScanWord]:
        text, plain, known, glob = "", "", True, False
        if self._text[self._at] == "~":
            prefix = _TILDE.match(self._text, self._at)
            name = prefix.group() if prefix else "~"
            self._at += len(name)
            home = self._variables.get("HOME")
            if name == "~" and home is not None:
                text = home
            else:
                text, known = name, False
        while self._at < len(self._text) and self._text[self._at] not in _META:
            char = self._text[self._at]
            if char == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise ScanError("a quote is not closed")
                text += self._text[self._at + 1 : end]
                self._at = end + 1
            elif char == '"':
                self._at += 1
                piece, piece_known = self._double_quoted()
                text, known = text + piece, known and piece_known
            elif char == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                text += "" if following == "\n" else following
                self._at += 2
            elif char == "$":
                piece, piece_known = self._dollar(quoted=False)
                separators = self._variables.get("IFS", "") or ""
                text, known = text + piece, known and piece_known and not set(piece) & set(separators)
            elif char == "`":
                self._backticks()
                known = False
            else:
                run = self._run(_ORDINARY)
                glob |= any(char in run for char in "*?[")
                plain += run
                text += run
        if plain == text and plain in ("[", "[["):
            glob = False  # no bracket closes
        if not has_braces(plain):
            return [ScanWord(text, known, glob)]
        words = expanded(text, self._variables.get("HOME"))
        if words is None:
            return [ScanWord(text, known=False, glob=True)]
        return [ScanWord(word, known, glob) for word in words] or [ScanWord("", known)]

    def _double_quoted(self) -> tuple[str, bool]:
        text, known = "", True
        while True:
            if self._at >= len(self._text):
                raise ScanError("a quote is not closed")
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return text, known
            if char == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                self._at += 2
                if following != "\n":
                    text += following if following and following in '$`"\\' else char + following
            elif char == "$":
                piece, piece_known = self._dollar(quoted=True)
                text, known = text + piece, known and piece_known
            elif char == "`":
                self._backticks()
                known = False
            else:
                text += self._run(_ORDINARY_IN_QUOTES)

    def _run(self, ordinary: re.Pattern[str]) -> str:
        match = ordinary.match(self._text, self._at)
        assert match is not None  # the caller has seen no other character
        self._at = match.end()
        return match.group()

    def _dollar(self, *, quoted: bool) -> tuple[str, bool]:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "(":
            self._at += 2
            self._nested(")")
            return "", False
        if self._text.startswith(("{ ", "{\t", "{\n", "{|"), self._at + 1):  # a substitution of bash 5.3
            self._at += 3
            self._nested("}")
            return "", False
        if following == "{":
            return self._parameter()
        if following == "'" and not quoted:
            return self._ansi(), True
        if following == '"' and not quoted:
            self._at += 2
            return self._double_quoted()
        name = _NAME.match(self._text, self._at + 1)
        if name is not None:
            self._at = name.end()
            value = self._variables.get(name.group())
            return (value, True) if value is not None else ("", False)
        if following and following in "0123456789@*#?$!-":
            self._at += 2
            return "", False
        self._at += 1
        return "$", True

    def _parameter(self) -> tuple[str, bool]:
        start, depth = self._at + 2, 1
        at = start
        while depth:
            if at >= len(self._text):
                raise ScanError("} is missing")
            char = self._text[at]
            if char == "\\":
                at += 1
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
            at += 1
        inner = self._text[start : at - 1]
        self._at = at
        if _NAME.fullmatch(inner):
            value = self._variables.get(inner)
            return (value, True) if value is not None else ("", False)
        self._embedded(inner)
        if inner.endswith("@P"):
            self._expanded_again(inner.removesuffix("@P"))
        default = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*:?[-=](.*)", inner, re.DOTALL)
        if default is not None and not any(char in default.group(1) for char in "$`"):
            # The default may be used; it is the part that can be judged.
            return default.group(1), False
        return "", False

    def _expanded_again(self, name: str) -> None:
        """Scan the value of a variable that is expanded like a prompt."""
        value = self._variables.get(name)
        if value is None:
            self._found.append(FoundCommand((ScanWord("", known=False),)))
        else:
            self._embedded(value)

    def _ansi(self) -> str:
        at = self._at + 2
        while at < len(self._text) and self._text[at] != "'":
            at += 2 if self._text[at] == "\\" else 1
        if at >= len(self._text):
            raise ScanError("a quote is not closed")
        body = self._text[self._at + 2 : at]
        self._at = at + 1
        return decode_ansi(body)

    def _backticks(self) -> None:
        at = self._at + 1
        while at < len(self._text) and self._text[at] != "`":
            at += 2 if self._text[at] == "\\" else 1
        if at >= len(self._text):
            raise ScanError("a backtick is not closed")
        body = re.sub(r"\\([`$\\])", r"\1", self._text[self._at + 1 : at])
        self._at = at + 1
        _Scanner(body, self._found, self._variables, self._depth + 1).commands("")

    def _nested(self, closer: str) -> None:
        inner = _Scanner(self._text, self._found, self._variables, self._depth + 1)
        inner._at = self._at
        inner.commands(closer)
        self._at = inner._at

    def _embedded(self, text: str) -> None:
        """Scan substitutions inside text that is otherwise not code."""
        inner = _Scanner(text, self._found, self._variables, self._depth + 1)
        while inner._at < len(text):
            char = text[inner._at]
            if char == "\\":
                inner._at += 2
            elif text.startswith("$(", inner._at):
                inner._at += 2
                inner._nested(")")
            elif char == "`":
                inner._backticks()
            else:
                inner._at += 1
