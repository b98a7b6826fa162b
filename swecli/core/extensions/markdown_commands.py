"""Slash commands from Markdown files, and the message that a call of a command or skill becomes, including shell
commands that run first."""

from __future__ import annotations

import re
import shlex
from bisect import bisect
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.extensions.front_matter import Problem, read_front_matter
from swecli.core.extensions.skills import (
    KNOWN,
    Skill,
    allowed_rules,
    described,
    hint_of,
    instructions,
    model_of,
    unknown_fields,
)
from swecli.core.extensions.sources import FoundFile, Origin, as_name
from swecli.core.workspace.mentions import mentioned
from swecli.lazy_pattern import lazy_pattern

DEEPEST = 5
"""Maximum nesting of commands."""
MOST_SHELL = 20
"""Shell commands that one call may run."""


class MarkdownCommand(Struct, frozen=True):
    """``hint`` names its arguments; ``allow`` are rules for its turn; ``model`` answers in its turn, empty for the
    usual one. ``braced``: the only placeholder is Gemini's ``{{args}}``, quoted in shell commands."""

    name: str
    description: str
    body: str
    origin: Origin
    hint: str = ""
    allow: tuple[str, ...] = ()
    model: str = ""
    braced: bool = False
    problems: tuple[Problem, ...] = ()


Invocable: TypeAlias = "MarkdownCommand | Skill"
Lookup: TypeAlias = "Callable[[str], Invocable | None]"


def read_command(file: FoundFile) -> MarkdownCommand | None:
    """The command in a file; None if its name is not valid for a command."""
    parts = [as_name(part) for part in file.stem]
    if not parts or not all(parts):
        return None
    if file.origin.source.ending == ".toml":
        from swecli.core.extensions.gemini_commands import read_gemini_command

        front = read_gemini_command(file.text)
    else:
        front = read_front_matter(file.text)
    allow, bad = allowed_rules(front)
    problems = [*file.problems, *front.problems, *unknown_fields(front, KNOWN), *bad]
    if not front.body.strip() and not front.problems:
        problems.append(Problem(0, "is empty: there is no text after the front matter"))
    description = described(front)
    return MarkdownCommand(
        ":".join(parts),
        description,
        front.body.strip("\n"),
        file.origin,
        hint_of(front),
        allow,
        model_of(front),
        file.origin.source.ending == ".toml",
        tuple(problems),
    )


# --- what a call becomes ---


class Shell(Struct, frozen=True):
    """A shell command that its output replaces."""

    command: str


Piece: TypeAlias = "str | Shell"


class Invocation(Struct, frozen=True):
    """A call of a command or skill. ``title`` is the call as typed. The message is the concatenated pieces;
    ``mentions`` are the files to attach, written as after an ``@``."""

    title: str
    pieces: tuple[Piece, ...]
    mentions: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    model: str = ""
    origins: tuple[Origin, ...] = ()
    """The files that it was made from."""

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(piece.command for piece in self.pieces if isinstance(piece, Shell))


class InvocationError(Exception):
    """The call failed; the message gives the reason and what was not done."""


_SHELL = lazy_pattern(r"(?:(?<=^)|(?<=[\s(\[{:>*|]))!`([^`\n]+)`|^```!\s*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = lazy_pattern(
    r"\\(\$(?:ARGUMENTS\b|[1-9](?!\d)))|\$ARGUMENTS\b(?:\[(\d)\])?|\$([1-9])(?!\d|[.,]\d|[kKmMbB]\b)"
    r"|\$\{(?:CLAUDE_)?(SKILL_DIR|PLUGIN_ROOT)\}"
    r"""|(\bawk\b[^'"\n|$]{0,80}(?:'[^'\n]*'|"(?:[^"\\\n]|\\.)*"))"""
)
"""Not an amount such as $2M or $1,200, nor a field in a program for awk."""
_BRACED = "{{args}}"
_CALL = lazy_pattern(r"^/([A-Za-z0-9][\w:-]*)(?:[ \t]+(.*))?$", re.MULTILINE)
_FENCE_LINE = lazy_pattern(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*$", re.MULTILINE)


def invocation(called: Invocable, arguments: str, lookup: Lookup) -> Invocation:
    """Expand a call. ``lookup`` finds commands and skills that its text calls in turn, on lines that contain only such
    a call.

    Raises:
        InvocationError: the calls are circular or too deep, or a command's file has no text that could be read.
    """
    title = f"/{called.name} {' '.join(arguments.split())}".rstrip()
    return replace(_expanded(called, arguments.strip(), lookup, ()), title=title)


def _expanded(called: Invocable, arguments: str, lookup: Lookup, chain: tuple[str, ...]) -> Invocation:
    chain = (*chain, called.name)
    if called.name in chain[:-1]:
        way = " → ".join(f"/{name}" for name in chain)
        raise InvocationError(f"{way}: the command calls itself endlessly. Nothing was sent.")
    if len(chain) > DEEPEST:
        way = " → ".join(f"/{name}" for name in chain)
        raise InvocationError(f"{way}: more than {DEEPEST} nested commands. Nothing was sent.")
    if isinstance(called, MarkdownCommand) and not called.body.strip():
        why = called.problems[-1].text if called.problems else "has no text"
        raise InvocationError(f"/{called.name} was not sent: {called.origin.shown} {why}.")
    words = _words(arguments)
    used = [False]
    folder = str(called.origin.folder)

    def fill(text: str, quoted: str = arguments) -> str:
        if isinstance(called, MarkdownCommand) and called.braced:
            used[0] = used[0] or _BRACED in text
            return text.replace(_BRACED, quoted)

        def value(match: re.Match[str]) -> str:
            if match[1]:
                return match[1]
            if match[5] or (match[3] and not arguments):
                return match[0]
            if match[4]:
                return folder if match[4] == "SKILL_DIR" else str(called.origin.source.root or match[0])
            used[0] = True
            if match[2] is not None:  # counts from 0, as its inventors do
                return words[int(match[2])] if int(match[2]) < len(words) else ""
            if match[3] is not None:
                return words[int(match[3]) - 1] if int(match[3]) <= len(words) else ""
            return arguments

        return _PLACEHOLDER.sub(value, text)

    pieces: list[Piece] = []
    origins, allow = [called.origin], list(called.allow)
    mentions: list[str] = []
    for part in _parts(called.body, lookup):
        match part:
            case Shell(command=command):
                quoted = shlex.quote(arguments) if arguments else ""
                pieces.append(Shell(fill(command, quoted).strip()))
            case _Call(called=inner, arguments=given):
                made = _expanded(inner, fill(given).strip(), lookup, chain)
                pieces += made.pieces
                origins += made.origins
                allow += made.allow
                mentions += made.mentions
            case text:
                pieces.append(fill(text))
    if arguments and not used[0]:
        pieces.append(f"\n\nARGUMENTS: {arguments}")
    if sum(isinstance(piece, Shell) for piece in pieces) > MOST_SHELL:
        raise InvocationError(f"/{called.name} runs more than {MOST_SHELL} shell commands. Nothing was sent.")
    mentions += mentioned(_without_fenced("".join(piece for piece in pieces if isinstance(piece, str))))
    mentions += mentioned(arguments)
    if isinstance(called, Skill):
        pieces = _framed(called, pieces)
    return Invocation(
        f"/{called.name}",
        tuple(pieces),
        tuple(dict.fromkeys(mentions)),
        tuple(dict.fromkeys(allow)),
        called.model,
        tuple(origins),
    )


def _framed(skill: Skill, pieces: Sequence[Piece]) -> list[Piece]:
    """The text of a skill, framed by lines that name it."""
    mark = "\0"
    before, _, after = instructions(skill, mark).partition(mark)
    return [f"Use the skill {skill.name} for this.\n\n{before}", *pieces, after]


class _Call(Struct, frozen=True):
    """A call of a command or skill on a line of its own."""

    called: Invocable
    arguments: str


def _parts(body: str, lookup: Lookup) -> list[str | Shell | _Call]:
    """The text, the shell commands and the calls in it. Fenced code is an example: fenced Markdown runs nothing, and no
    fenced code calls anything, but the output of a command is meant to stand in it."""
    parts: list[str | Shell | _Call] = []
    blocks = _fenced(body)
    starts = [block.start for block in blocks]

    def block_of(at: int) -> _Block | None:
        begun = bisect(starts, at)
        return blocks[begun - 1] if begun and at < blocks[begun - 1].end else None

    def take(end: int) -> None:
        """Add the text up to ``end``, and the calls in it."""
        nonlocal at
        for match in _CALL.finditer(body, at, end):
            called = None if block_of(match.start()) is not None else lookup(match[1].lower())
            if called is not None:
                parts.extend((body[at : match.start()], _Call(called, match[2] or "")))
                at = match.end()
        parts.append(body[at:end])

    at = 0
    for match in _SHELL.finditer(body):
        block = block_of(match.start())
        if block is None or not block.is_markdown:
            take(match.start())
            parts.append(Shell(match[1] or match[2] or ""))
            at = match.end()
    take(len(body))
    return parts


class _Block(NamedTuple):
    """Fenced code, as places in the text."""

    start: int
    end: int
    is_markdown: bool


def _without_fenced(text: str) -> str:
    """The text without fenced code, whose decorators and packages are no files."""
    parts, end = list[str](), 0
    for block in _fenced(text):
        parts.append(text[end : block.start])
        end = block.end
    return "".join((*parts, text[end:]))


def _fenced(body: str) -> list[_Block]:
    """All fenced code, in order; an unclosed block ends with the text."""
    blocks: list[_Block] = []
    fence, begin, is_markdown = "", 0, False
    for line in _FENCE_LINE.finditer(body):
        if not fence:
            fence, begin, is_markdown = line[1], line.start(), line[2].lower() in ("markdown", "md")
        elif line[1].startswith(fence) and not line[2]:
            blocks.append(_Block(begin, line.end(), is_markdown))
            fence = ""
    return blocks + ([_Block(begin, len(body), is_markdown)] if fence else [])


def _words(arguments: str) -> list[str]:
    """The arguments one by one, quoted as in a shell; an unpaired quotation mark is literal."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()


def plain_text(skill: Skill, arguments: str = "") -> str:
    """The text of a skill for a model that asked for it: arguments inserted, shell commands left for the model to run
    if needed."""
    made = _expanded(skill, arguments.strip(), lambda name: None, ())
    inner = made.pieces[1:-1]
    body = "".join(piece if isinstance(piece, str) else f"!`{piece.command}`" for piece in inner)
    return instructions(skill, body)
