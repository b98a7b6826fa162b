"""Strict reader of shell text: it accepts a small, exactly known part of bash; everything else is unproven.

It serves only the proof, so it rejects whatever bash might read differently.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from functools import lru_cache

from msgspec.structs import replace

from swecli.core.permissions.shell.syntax import (
    METACHARACTERS,
    NAME,
    AndOr,
    Case,
    Command,
    For,
    Group,
    If,
    Pipeline,
    Redirect,
    Script,
    Segment,
    Simple,
    UnprovenError,
    While,
    Word,
    WordReader,
    script_of,
)
from swecli.core.permissions.shell.tables import is_plain_variable, tables
from swecli.lazy_pattern import lazy_pattern

_ANSI = lazy_pattern(r"\\(u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|c.|.)", re.DOTALL)


def decode_ansi(body: str) -> str:
    """The text that bash makes of ``$'body'``, which ends at a NUL."""
    return _ANSI.sub(_ansi_character, body).partition("\0")[0]


def _ansi_character(match: re.Match[str]) -> str:
    code = match.group(1)
    if code in ("u", "U", "x", "c"):
        return f"\\{code}"  # without digits, or at the end, it is not an escape
    if code[0] in "uUx":
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""
    if code[0] in "01234567":
        return chr(int(code, 8) % 256)
    if code[0] == "c":
        return "\x7f" if code[1] == "?" else chr(ord(code[1]) & 0x1F)
    return (
        {"E": "\x1b"}.get(code) or codecs.decode(f"\\{code}", "unicode_escape")
        if code in "abefnrtvE" and code != "e"
        else code
    )


_BRACES = lazy_pattern(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", re.DOTALL)
_MOST = 64


def has_braces(plain: str) -> bool:
    return "{" in plain and ("," in plain or ".." in plain)


def expanded(word: str, home: str | None) -> list[str] | None:
    """The words, each with its tilde expanded if ``home`` is known; None if there are too many or a form is not
    supported, such as ranges."""
    pending, done = [word], list[str]()
    while pending and len(pending) + len(done) <= _MOST:
        item = pending.pop(0)
        match = _BRACES.fullmatch(item)
        if match is None:
            done.append(item)
        else:
            pending += [match.group(1) + choice + match.group(3) for choice in match.group(2).split(",")]
    if pending or any("{" in item for item in done):
        return None
    return [home + item[1:] if home is not None and re.match(r"~(?:/|$)", item) else item for item in done if item]


_HIDING_CATEGORIES = frozenset(("Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs", "Mn", "Me"))
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


_SHELL_LOOKALIKES = frozenset(";&|<>$`\\")


def hidden_character(text: str) -> str | None:
    """The first invisible or ambiguous character, as U+XXXX; newline and tab are fine."""
    if text.isascii() and text.isprintable():
        return None
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            continue
        if unicodedata.category(char) in _HIDING_CATEGORIES or char in _BLANK_LETTERS:
            return f"U+{ord(char):04X}"
        if unicodedata.normalize("NFKC", char) in _SHELL_LOOKALIKES:
            return f"U+{ord(char):04X}"
    return None


def check_visible(text: str) -> None:
    """Raise ``UnprovenError`` if the text contains invisible or ambiguous characters."""
    hidden = hidden_character(text)
    if hidden is not None:
        raise UnprovenError(f"it contains the hidden or look-alike character {hidden}")


MAX_CHARACTERS = 4_000
MAX_DEPTH = 20

_DESCRIPTOR = lazy_pattern(r"\d+(?=[<>])")
_KEYWORD = lazy_pattern(r"[a-z{}!\[\]]+(?=[\s;&|<>()]|$)")
_ASSIGNMENT = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
_MATCHED = lazy_pattern(r"=~(?=[ \t])")
_PLAIN_OF_PATTERN = lazy_pattern(
    r"(?:[A-Za-z0-9_.,:@%=/*+?|~^#-]|\\[^\s]|\[\^?\]?(?:\[:[a-z]+:\]|[A-Za-z0-9_.,:@%=/*+?|~#-])+\]"
    r"|\{[0-9]+,?[0-9]*\})+"
)
"""Unquoted characters of a regular expression behind ``=~``."""
_OPERATORS = ("<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">|", ">&", ">")


@lru_cache(maxsize=16)
def read_script(text: str) -> Script:
    """The syntax tree of ``text``; the last ones are kept, as one command is decided about several times.

    Raises:
        UnprovenError: it is too long, hides something, or uses unsupported shell syntax.
    """
    check_visible(text)
    if len(text) > MAX_CHARACTERS:
        raise UnprovenError(f"it is longer than {MAX_CHARACTERS} characters")
    if " " * 61 in text or "\n" * 21 in text:
        raise UnprovenError("it has a long gap that could hide a part")
    reader = _Reader(text)
    script = reader.script(frozenset())
    if not reader.at_end:
        raise UnprovenError(f"{reader.rest!r} is not understood")
    return script


def _is_read_alike(body: str, end: str) -> bool:
    """Whether every shell finds the same end of a substitution behind this here-document. Bash 3 looks for quotes,
    comments and parentheses in the text, and bash 5 ends it at a line that only begins with its delimiter."""
    if any(char in body for char in "'\"`\\") or any(line.lstrip("\t").startswith(end) for line in body.split("\n")):
        return False
    open_ = 0
    for char in body:
        open_ += (char == "(") - (char == ")")
        if open_ < 0:
            return False
    return not open_ and ("#" not in body or "(" not in body)


class _Reader(WordReader):
    """Recursive descent over the text; each method reads one construct at the current position."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._substitutions = 0
        self._in_backticks = False

    def substitution(self) -> Script:
        self._substitutions += 1
        script = self.script(frozenset(")"))
        self._expect(")")
        self._substitutions -= 1
        return script

    def commands_of(self, text: str) -> Script:
        reader = _Reader(text)
        reader._depth, reader._substitutions, reader._in_backticks = self._depth + 1, 1, True
        script = reader.script(frozenset())
        if not reader.at_end:
            raise UnprovenError("these backticks are not understood")
        return script

    # --- lists ------------------------------------------------------------------------------------------------

    def script(self, closers: frozenset[str]) -> Script:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnprovenError("it is nested too deeply")
        items: list[AndOr] = []
        while True:
            self._gap()
            if self.at_end or self._closes(closers):
                break
            items.append(self._and_or(closers))
            self.blanks()
            if self.at_end or self._closes(closers):
                break
            if self.peek() == ";":
                self.at += 1
                if self.peek() == ";":
                    raise UnprovenError(";; is not understood")
            elif self.peek() != "\n":
                raise UnprovenError(f"{self.rest!r} is not understood")
        self._depth -= 1
        return Script(tuple(items))

    def _and_or(self, closers: frozenset[str]) -> AndOr:
        items = [("", self._pipeline())]
        while True:
            self.blanks()
            joint = self.text[self.at : self.at + 2]
            if joint not in ("&&", "||"):
                return AndOr(tuple(items))
            self.at += 2
            self._gap()
            if self.at_end or self._closes(closers):
                raise UnprovenError(f"nothing follows {joint}")
            items.append((joint, self._pipeline()))

    def _pipeline(self) -> Pipeline:
        self.blanks()
        if self._keyword() == "!":
            self.at += 1
            self.blanks()
        if self._keyword() == "time":
            self.at += 4
            self.blanks()
            if self.text.startswith("-p ", self.at):
                self.at += 3
                self.blanks()
        commands = [self._command()]
        while True:
            self.blanks()
            if self.peek() != "|" or self.text.startswith("||", self.at):
                return Pipeline(tuple(commands))
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self._gap()
            commands.append(self._command())

    # --- commands -----------------------------------------------------------------------------------------------

    def _command(self) -> Command:
        if self.peek() == "(":
            if self.text.startswith("((", self.at):
                return self._counting()
            self.at += 1
            script = self.script(frozenset(")"))
            self._expect(")")
            return Group(script, True, self._redirects())
        keyword = self._keyword()
        if keyword == "{":
            self.at += 1
            script = self.script(frozenset("}"))
            self._expect("}")
            return Group(script, False, self._redirects())
        if keyword == "for":
            return self._for()
        if keyword == "if":
            return self._if()
        if keyword in ("while", "until"):
            return self._while()
        if keyword == "[[":
            return self._condition()
        if keyword == "case":
            return self._case()
        if keyword in tables().lists["misplaced_keywords"]:
            raise UnprovenError(f"the shell keyword {keyword} is not understood")
        return self._simple()

    def _counting(self) -> Simple:
        """``(( … ))`` as what it amounts to."""
        self.at += 2
        node = self.calculation("))")
        self.at += 2
        return replace(node, redirects=self._redirects())

    def _case(self) -> Case:
        self.at += 4
        self.blanks()
        words, bodies = [self.word()], list[Script]()
        self._gap()
        if self._keyword() != "in":
            raise UnprovenError("in is missing after case")
        self.at += 2
        while True:
            self._gap()
            if self._keyword() == "esac":
                self.at += 4
                return Case(tuple(words), tuple(bodies), self._redirects())
            if self.peek() == "(":
                self.at += 1
            elif self._substitutions:
                raise UnprovenError("old shells misread a pattern of case within a substitution")
            while True:
                self.blanks()
                words.append(self.word())
                self.blanks()
                if self.peek() != "|":
                    break
                self.at += 1
            self._expect(")")
            bodies.append(self.script(frozenset((";;", "esac"))))
            if self.text.startswith(";;", self.at):
                self.at += 2

    def _for(self) -> For | Group:
        self.at += 3
        self.blanks()
        if self.text.startswith("((", self.at):
            return self._counted()
        name = NAME.match(self.text, self.at)
        if name is None or not is_plain_variable(name.group()):
            raise UnprovenError("the loop's variable may have an effect")
        self.at = name.end()
        self.blanks()
        if self._keyword() != "in":
            raise UnprovenError("the loop has no list")
        self.at += 2
        words: list[Word] = []
        while True:
            self.blanks()
            if self.at_end or self.peek() in ";\n":
                break
            words += self.words()
        return For(name.group(), tuple(words), self._loop_body(), self._redirects())

    def _counted(self) -> Group:
        """``for ((start; condition; step))`` as what it amounts to, a start and a ``while``."""
        self.at += 2
        start = self.calculation(";", sets=True)
        self.at += 1
        condition = self.calculation(";")
        self.at += 1
        step = self.calculation("))")
        self.at += 2
        loop = While(script_of(condition), self._loop_body(), (), step=step)
        return Group(Script((*script_of(start).items, *script_of(loop).items)), False, self._redirects())

    def _loop_body(self) -> Script:
        """From the end of a loop's head, with or without a semicolon, behind ``done``."""
        self.blanks()
        if self.peek() == ";":
            self.at += 1
        self._gap()
        self._expect("do")
        body = self.script(frozenset(("done",)))
        self._expect("done")
        return body

    def _while(self) -> While:
        until = self._keyword() == "until"
        self.at += 5
        condition = self.script(frozenset(("do",)))
        self._expect("do")
        body = self.script(frozenset(("done",)))
        self._expect("done")
        return While(condition, body, self._redirects(), until)

    def _if(self) -> If:
        self.at += 2
        scripts = [self.script(frozenset(("then",)))]
        self._expect("then")
        while True:
            scripts.append(self.script(frozenset(("elif", "else", "fi"))))
            keyword = self._keyword()
            self._expect(keyword)
            if keyword == "fi":
                return If(tuple(scripts), self._redirects())
            if keyword == "else":
                scripts.append(self.script(frozenset(("fi",))))
                self._expect("fi")
                return If(tuple(scripts), self._redirects())
            scripts.append(self.script(frozenset(("then",))))
            self._expect("then")

    def _condition(self) -> Group:
        """``[[ … ]]`` as a group of one ``[[ … ]]`` for each test that ``&&`` and ``||`` join. All its words are as if
        quoted: they are neither split nor expanded to names, and wildcards in them are patterns."""
        self.at += 2
        opening, closing = Word((Segment("text", "[["),)), Word((Segment("text", "]]"),))
        tests: list[tuple[str, Pipeline]] = []
        words: list[Word] = []
        joint, depth = "", 0
        while True:
            self.blanks()
            following = self.text[self.at : self.at + 2]
            closes = self._keyword() == "]]"
            if self.peek() == "(" and [word.literal for word in words] in ([], ["!"]):
                words, depth, self.at = [], depth + 1, self.at + 1
            elif self.peek() == ")" and depth and words:
                depth, self.at = depth - 1, self.at + 1
                self.blanks()
                if not self._keyword() == "]]" and self.text[self.at : self.at + 2] not in ("&&", "||", ")"):
                    raise UnprovenError("this [[ ]] is not understood")
            elif closes or following in ("&&", "||"):
                if not words or (closes and depth):
                    raise UnprovenError("a test in [[ ]] is missing")
                test = Simple((), (opening, *words, closing), ())
                tests.append((joint, Pipeline((test,))))
                words, joint = [], following
                self.at += 2
                if closes:
                    return Group(Script((AndOr(tuple(tests)),)), False, self._redirects())
                self._gap()
            elif len(words) == 1 and _MATCHED.match(self.text, self.at):
                self.at += 2
                self.blanks()
                words += [Word((Segment("text", "=~"),)), self._regular_expression()]
            elif self.at_end or self.peek() in METACHARACTERS or self.text.startswith("=~", self.at):
                raise UnprovenError("this [[ ]] is not understood")
            else:
                words.append(Word(tuple(replace(segment, quoted=True) for segment in self.word().segments)))

    def _regular_expression(self) -> Word:
        """The pattern behind ``=~``, in which unquoted parentheses and bars do not end the word."""
        segments: list[Segment] = []
        depth = 0
        while not self.at_end:
            plain = _PLAIN_OF_PATTERN.match(self.text, self.at)
            if plain is not None:
                segments.append(Segment("text", plain.group(), quoted=True))
                self.at = plain.end()
            elif self.peek() == "(" or (self.peek() == ")" and depth):
                depth += 1 if self.peek() == "(" else -1
                segments.append(Segment("text", self.peek(), quoted=True))
                self.at += 1
            elif self.peek() == "$" and self.text[self.at + 1 : self.at + 2] in ("", " ", ")", "|", "\n"):
                segments.append(Segment("text", "$", quoted=True))
                self.at += 1
            elif self.peek() in "'\"$" and not self.text.startswith(("$'", '$"'), self.at):
                segments += [replace(segment, quoted=True) for segment in self.piece()]
            else:
                break
        if depth or not segments or self.peek() not in (" ", "\t", "\n", ")"):
            raise UnprovenError("this [[ ]] is not understood")
        return Word(tuple(segments))

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if self.at_end or self.peek() in "\n;|)":
                break
            if self.peek() == "&" and not self.text.startswith("&>", self.at):
                if self.text.startswith("&&", self.at):
                    break
                raise UnprovenError("it runs something in the background (&)")
            if self.peek() == "(":
                raise UnprovenError("it has an unexpected parenthesis")
            if self.text.startswith("<(", self.at):
                self.at += 2
                words.append(Word((Segment("process", script=self.substitution()),)))
                if not self.at_end and self.peek() not in METACHARACTERS:
                    raise UnprovenError("a process substitution is part of a word")
                continue
            if self.peek() in "<>&":
                redirects.append(self._redirect(""))
                continue
            parts = self.words()
            word = parts[0]
            bare = word.bare
            if self.text.startswith(("<(", ">("), self.at):
                raise UnprovenError("a process substitution is part of a word")
            if not self.at_end and self.peek() in "<>" and bare is not None:
                if bare.isascii() and bare.isdigit():
                    redirects.append(self._redirect(bare))
                    continue
                if bare.startswith("{"):
                    raise UnprovenError("a redirection through a variable is not understood")
            assignment = self._assignment(word) if not words else None
            if assignment is not None and len(parts) > 1:
                raise UnprovenError("this kind of assignment is not understood")
            if assignment is not None and self.peek() == "(" and not assignment[1].segments:
                assignment = (assignment[0], self._list())
            if assignment is not None:
                assignments.append(assignment)
            else:
                words += parts
        if not words and not assignments and not redirects:
            raise UnprovenError("a command is missing")
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _list(self) -> Word:
        """The elements of an array, in parentheses."""
        self.at += 1
        elements: list[Word] = []
        while True:
            self._gap()
            if self.peek() == ")":
                self.at += 1
                return Word((Segment("list", words=tuple(elements)),))
            if self.peek() == "[":
                raise UnprovenError("an array with subscripts is not understood")
            elements += self.words()

    def _assignment(self, word: Word) -> tuple[str, Word] | None:
        first = word.segments[0] if word.segments else None
        if first is None or first.kind != "text" or first.quoted:
            return None
        match = _ASSIGNMENT.match(first.text)
        if match is None:
            return None
        if match.group(2) != "=":
            if match.group(2) == "[" and "=" not in "".join(segment.text for segment in word.segments):
                return None
            raise UnprovenError("this kind of assignment is not understood")
        rest = first.text[match.end() :]
        segments = ((Segment("text", rest),) if rest else ()) + word.segments[1:]
        return match.group(1), Word(segments)

    # --- redirections ---------------------------------------------------------------------------------------------

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            number = _DESCRIPTOR.match(self.text, self.at)
            if number is not None:
                self.at = number.end()
            if self.at_end or (self.peek() not in "<>" and not self.text.startswith("&>", self.at)):
                return tuple(redirects)
            redirects.append(self._redirect(number.group() if number else ""))

    def _redirect(self, fd: str) -> Redirect:
        if self.text.startswith("&>", self.at):
            operator = "&>>" if self.text.startswith("&>>", self.at) else "&>"
        else:
            operator = next(item for item in _OPERATORS if self.text.startswith(item, self.at))
        self.at += len(operator)
        if self.peek() == "(":
            raise UnprovenError("process substitution is not understood")
        if operator in ("<>", "<&"):
            raise UnprovenError(f"the redirection {operator} is not understood")
        self.blanks()
        if self.at_end or self.peek() in METACHARACTERS:
            raise UnprovenError("a redirection has no target")
        target = self.word()
        if not operator.startswith("<<") or operator == "<<<":
            return Redirect(fd, operator, target)
        end = target.literal
        if end is None:
            raise UnprovenError("the end of a here-document is not a plain word")
        body = self._here_document(end, operator == "<<-")
        literal = any(segment.quoted for segment in target.segments)
        document = None
        if not literal and any(char in body for char in "$`\\"):
            if self._substitutions:
                raise UnprovenError("a here-document with expansions within a substitution is not understood")
            reader = _Reader(body)
            reader._depth = self._depth + 1
            document = reader.document()
        return Redirect(fd, operator, None, body, literal, document)

    def _here_document(self, end: str, strip: bool) -> str:
        """The body of a here-document: it starts after the current line, which may continue behind the operator. The
        body is cut out of the text so that reading continues behind it."""
        newline = self.text.find("\n", self.at)
        if newline < 0:
            raise UnprovenError("a here-document is not closed")
        rest = self.text[self.at : newline]
        if any(char in rest for char in "'\"\\`$#<()"):
            raise UnprovenError("the line of a here-document is not plain")
        if self._substitutions and (rest.strip() or self._substitutions > 1 or self._in_backticks):
            raise UnprovenError("a here-document within a substitution is not the end of a line")
        lines = self.text[newline + 1 :].split("\n")
        for index, line in enumerate(lines):
            if (line.lstrip("\t") if strip else line) == end:
                body = "\n".join(lines[:index])
                if self._substitutions and not _is_read_alike(body, end):
                    raise UnprovenError("its here-document has quotes or parentheses, which old shells misread")
                self.text = self.text[:newline] + "\n" + "\n".join(lines[index + 1 :])
                return body
        raise UnprovenError("a here-document is not closed")

    def _gap(self) -> None:
        self.blanks()
        while not self.at_end and self.peek() == "\n":
            self.at += 1
            self.blanks()

    def _keyword(self) -> str:
        match = _KEYWORD.match(self.text, self.at)
        return match.group() if match else ""

    def _closes(self, closers: frozenset[str]) -> bool:
        ends_case = ";;" in closers and self.text.startswith(";;", self.at)
        return ends_case or (self.peek() == ")" and ")" in closers) or self._keyword() in closers

    def _expect(self, token: str) -> None:
        if not token or not self.text.startswith(token, self.at):
            raise UnprovenError(f"{token or 'the end of a construct'} is missing")
        self.at += len(token)
