"""Source code, highlighted with pygments line by line when first painted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from rich.segment import Segment
from rich.style import Style

from swecli.safe_text import SafeText
from swecli.tui.transcript.palette import CodeColours
from swecli.tui.transcript.rows import NO_STYLE, Gutter, Row, Runs, cut_runs, rows_of

if TYPE_CHECKING:
    from pygments.lexer import Lexer


_BY_LANGUAGE: Final = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "json": "json jsonl ipynb",
    "yaml": "yaml yml",
    "toml": "toml lock",
    "ini": "ini cfg conf properties",
    "bash": "sh bash zsh ksh",
    "fish": "fish",
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc",
    "groovy": "groovy gradle",
    "go": "go",
    "rust": "rs",
    "swift": "swift",
    "objective-c": "m mm",
    "ruby": "rb rake gemspec",
    "php": "php",
    "perl": "pl pm",
    "lua": "lua",
    "r": "r",
    "julia": "jl",
    "haskell": "hs",
    "ocaml": "ml mli",
    "fsharp": "fs fsx",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "clojure": "clj cljs edn",
    "common-lisp": "lisp el",
    "scheme": "scm",
    "dart": "dart",
    "zig": "zig",
    "nim": "nim",
    "html": "html htm xhtml",
    "xml": "xml svg xsd xsl plist",
    "css": "css tcss",
    "scss": "scss",
    "less": "less",
    "vue": "vue",
    "sql": "sql",
    "graphql": "graphql gql",
    "protobuf": "proto",
    "terraform": "tf tfvars hcl",
    "nix": "nix",
    "cmake": "cmake",
    "make": "mk mak",
    "docker": "dockerfile",
    "powershell": "ps1 psm1",
    "batch": "bat cmd",
    "markdown": "md markdown",
    "rst": "rst",
    "tex": "tex sty",
    "diff": "diff patch",
    "vim": "vim",
    "awk": "awk",
    "asm": "asm s",
    "jinja": "j2 jinja",
}
_BY_ENDING: Final[Mapping[str, str]] = MappingProxyType(
    {ending: language for language, endings in _BY_LANGUAGE.items() for ending in endings.split()}
)
_BY_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "makefile": "make",
        "gnumakefile": "make",
        "dockerfile": "docker",
        "containerfile": "docker",
        "cmakelists.txt": "cmake",
        "gemfile": "ruby",
        "rakefile": "ruby",
        "jenkinsfile": "groovy",
        ".bashrc": "bash",
        ".zshrc": "bash",
        ".profile": "bash",
        ".gitconfig": "ini",
        ".editorconfig": "ini",
    }
)


def language_of(path: str) -> str:
    """Pygments name of a file's language; empty if unknown."""
    pure = PurePath(path)
    return _BY_NAME.get(pure.name.lower()) or _BY_ENDING.get(pure.suffix[1:].lower(), "")


MAX_LINE: Final = 2_000
"""Longer lines (in characters) are not highlighted: some lexers are slow on them."""
MAX_AHEAD: Final = 400
"""Maximum number of lines read only to get the lexer's state at a later line."""

_NONE: Final = Runs()


class CodeLines:
    """Lines of code and their styles.

    Lines are read in order, so that multi-line strings are recognised; a line far below the last one read, and any line
    with ``alone``, is lexed by itself.
    """

    def __init__(self, lines: Sequence[SafeText], language: str, colours: CodeColours, *, alone: bool = False) -> None:
        self.lines = lines
        self._language = language
        self._colours = colours
        self._alone = alone or any(len(line) > MAX_LINE for line in lines)
        self._runs: list[Runs] = []
        self._reader: Iterator[Runs] | None = None
        self._single: dict[int, Runs] = {}

    def runs(self, number: int) -> Runs:
        if number < len(self._runs):
            return self._runs[number]
        if number in self._single:
            return self._single[number]
        lexer = _lexer(self._language)
        if lexer is None or len(self.lines[number]) > MAX_LINE:
            return _NONE
        if self._alone or number > len(self._runs) + MAX_AHEAD:
            runs = next(_read(lexer, self.lines[number], self._colours), _NONE)
            self._single[number] = runs
            return runs
        if self._reader is None:
            self._reader = _read(lexer, "\n".join(self.lines), self._colours)
        while len(self._runs) <= number:
            self._runs.append(next(self._reader, _NONE))
        return self._runs[number]

    def rows(self, number: int, width: int, gutter: Gutter = ()) -> list[Row]:
        """A line as rows, broken at any character."""
        return rows_of(_Line(self, number), width, gutter, words=False)


class _Line:
    """A line of code as a source of rows."""

    __slots__ = ("_code", "_number")

    def __init__(self, code: CodeLines, number: int) -> None:
        self._code = code
        self._number = number

    @property
    def text(self) -> SafeText:
        return self._code.lines[self._number]

    def segments(self, start: int, end: int) -> list[Segment]:
        return cut_runs(self.text, self._code.runs(self._number), start, end)


@lru_cache(maxsize=128)
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _read(lexer: Lexer, text: str, colours: CodeColours) -> Iterator[Runs]:
    """Styles line by line. Text that the lexer can't read has no colours."""
    styles = _styles(colours)
    runs = Runs()
    end = 0
    tokens = cast("Iterator[tuple[int, object, str]]", lexer.get_tokens_unprocessed(text))
    while True:
        try:
            _, kind, value = next(tokens)
        except StopIteration:
            break
        except (RecursionError, ValueError, LookupError, TypeError, AttributeError):
            break
        style = _style(styles, kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                yield runs
                runs, end = Runs(), 0
            if part:
                end += len(part)
                runs.add(end, style)
    yield runs


@lru_cache(maxsize=8)
def _styles(colours: CodeColours) -> Mapping[object, Style]:
    from pygments.token import Token

    return {
        Token.Keyword: colours.keyword,
        Token.Keyword.Type: colours.name,
        Token.Name.Builtin: colours.name,
        Token.Name.Class: colours.function,
        Token.Name.Function: colours.function,
        Token.Name.Decorator: colours.function,
        Token.Name.Tag: colours.keyword,
        Token.Name.Attribute: colours.name,
        Token.Name.Exception: colours.name,
        Token.Literal.String: colours.string,
        Token.Literal.Number: colours.number,
        Token.Comment: colours.comment,
        Token.Operator: colours.operator,
        Token.Operator.Word: colours.keyword,
        Token.Generic.Deleted: colours.error,
        Token.Generic.Inserted: colours.string,
        Token.Generic.Heading: colours.function,
        Token.Generic.Subheading: colours.function,
    }


def _style(styles: Mapping[object, Style], kind: object) -> Style:
    while kind is not None:
        style = styles.get(kind)
        if style is not None:
            return style
        kind = getattr(kind, "parent", None)
    return NO_STYLE
