"""Files that a text names: paths, lines of stack traces, and bare names of exactly one file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.retrieval.definitions import SOURCE_ENDINGS, ending_of
from swecli.core.retrieval.terms import UNSPACED
from swecli.lazy_pattern import lazy_pattern

_LONGEST_TEXT: Final = 100_000
"""Characters of a text to search: its beginning and its end, because traces end with the relevant part."""
MOST: Final = 20

_PATH = r"(?:[A-Za-z]:(?=[\\/]))?[\w./\\@+~\[\]$-]{0,240}\w\.[A-Za-z]\w{0,9}"
_BEFORE = r"(?<![\w@/\\.:$~+-])"
_PYTHON = lazy_pattern(r"""File ["']([^"'\n]{1,300})["'], line (\d{1,7})""")
_JAVA = lazy_pattern(r"\bat (?:[\w.-]+/)*((?:[\w$]+\.)+)[\w$<>]+\(([\w$]+\.(?:java|kt|scala|groovy))(?::(\d{1,7}))?\)")
_WRITTEN = lazy_pattern(
    rf"{_BEFORE}({_PATH})"
    r"(?::(?:line )?(\d{1,7})(?::\d+)?|#L(\d{1,7})|\((\d{1,7})(?:[,:]\d+)?\)|(?:,| on|:) line (\d{1,7}))?"
)
_NO_ENDING = lazy_pattern(rf"{_BEFORE}((?:[\w.@+-]{{1,80}}/){{1,12}}[\w@+-]{{1,80}})(?![\w/.])")
"""A path with a last name without ending."""
_MODULE = lazy_pattern(r"(?<![\w./\\@-])([A-Za-z_]\w+(?:\.[A-Za-z_]\w+){1,8})(?![\w/])")
_BLOB = lazy_pattern(r"https?://[\w.-]+/[\w.-]+/[\w.-]+/(?:-/)?blob/[^/\s]+/")
_ADDRESS = lazy_pattern(r"(?:https?|ssh|git|ftp)://\S+|\b[\w.+-]+@[\w-]+\.[\w.]+")

_JOINED = lazy_pattern(rf"[{UNSPACED}]+")
"""Words of a sentence that touch a path: some languages have no blanks between them."""
_MOST_RUNS: Final = 8
_LONGEST_PREFIX: Final = 12
"""Characters of such words that may begin a path."""

_LONG_RUN = lazy_pattern(r"[!-~]{1000,}")
"""Too long for a path: searching one in it takes seconds."""

_THIRD_PARTY = lazy_pattern(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|\.cargo|\.rustup|rustc|go/pkg/mod|lib/python\d|\.m2|gems"
    r"|usr/(?:lib|local/lib|share|include)|opt/homebrew|Library/Frameworks|jdk|internal/modules|\.venv|venv)(?:/|$)"
    r"|^(?:node:|<)|^[A-Za-z]:/(?:Program Files|Python\d)"
)
"""Folders of third-party code: a frame there is not the project's, unless the project itself is installed there."""
_INSTALLED = lazy_pattern(r"/(?:site|dist)-packages/([^\n]+/[^\n]+)$")
_COMMON_NAMES_TEXT = """
    __init__.py __main__.py conftest.py setup.py main.py index.js index.ts index.tsx index.jsx index.html mod.rs
    lib.rs main.rs main.go doc.go package.json tsconfig.json README.md readme.md CHANGELOG.md LICENSE.md CONTRIBUTING.md
    AGENTS.md CLAUDE.md index.php utils.py types.py types.ts pyproject.toml Cargo.toml go.mod Gemfile Rakefile
    Makefile composer.json pom.xml build.gradle Main.java"""
_COMMON_NAMES = frozenset(_COMMON_NAMES_TEXT.split())
"""Names that people use without meaning one file of this project."""


class Named(Struct, frozen=True):
    """``word`` is the text as written, ``line`` the line it names, or 0. ``sure``: it can only be this file."""

    word: str
    path: str
    line: int = 0
    sure: bool = True
    frame: bool = False


class _Word(Struct, frozen=True):
    text: str
    line: int
    frame: bool = False
    is_module: bool = False


class Files:
    """The paths of a project, searchable by name."""

    def __init__(self, paths: Iterable[str], root: str = "", beyond: Callable[[str], bool] | None = None) -> None:
        """``root`` is the absolute folder of the paths. ``beyond`` tests whether a path below the root exists although
        it is missing from the paths; None if the paths are complete."""
        self._root = root.replace("\\", "/").rstrip("/")
        self._beyond = beyond
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def named_by(self, text: str) -> list[Named]:
        """The files that a text names, each once, in the order of the text; at most 20."""
        if len(text) > _LONGEST_TEXT:
            text = f"{text[: _LONGEST_TEXT // 2]}\n{text[-_LONGEST_TEXT // 2 :]}"
        text = _LONG_RUN.sub(" ", text)
        text = _ADDRESS.sub(" ", _BLOB.sub(" ", text))
        by_path: dict[str, Named] = {}
        for word in _words(text):
            for file in self._found(word):
                known = by_path.get(file.path)
                if known is None or (file.sure, bool(file.line)) > (known.sure, bool(known.line)):
                    by_path[file.path] = file
        return list(by_path.values())[:MOST]

    def _found(self, word: _Word) -> list[Named]:
        files = self._resolved(word)
        if any(file.sure for file in files) or _JOINED.search(word.text) is None:
            return files
        inside = self._inside(word)
        return inside if inside and (not files or inside[0].sure) else files

    def _inside(self, word: _Word) -> list[Named]:
        """The files named by a path that words of the sentence touch, or by several paths that they join."""
        text, runs = word.text, list(_JOINED.finditer(word.text))
        if word.is_module or not 0 < len(runs) <= _MOST_RUNS:
            return []
        prefix = runs[0].end() if not runs[0].start() else 0
        begins = range(max(0, prefix - _LONGEST_PREFIX), prefix + 1)
        ends = [run.start() for run in runs if run.start()]
        guesses: list[Named] = []
        for end in (len(text), *reversed(ends)):
            for begin in begins:
                line = word.line if end == len(text) else 0
                files = self._resolved(replace(word, text=text[begin:end], line=line))
                if any(file.sure for file in files):
                    return [*files, *self._after(end, word)]
                guesses = guesses or files
        return (self._after(ends[0], word) if ends else []) or guesses

    def _after(self, end: int, word: _Word) -> list[Named]:
        rest = replace(word, text=word.text[end:])
        return self._inside(rest) if rest.text else []

    def _resolved(self, word: _Word) -> list[Named]:
        name = word.text.replace("\\", "/").removeprefix("file://")
        absolute = name.startswith(("/", "~")) or name[1:3] == ":/"
        if _THIRD_PARTY.search(name):
            return self._installed(name, word)
        if self._root and name.startswith(f"{self._root}/"):
            name, absolute = name[len(self._root) + 1 :], False
        while name.startswith(("./", "../")):
            name = name.partition("/")[2]
        bare = name.rpartition("/")[2]
        candidates = self._by_name.get(bare, [])
        if name not in candidates and "/" in name and not absolute and self._beyond is not None and self._beyond(name):
            return [Named(word.text, name, word.line, not word.is_module, word.frame)]
        if not candidates:
            return []
        paths, sure = self._fitting(name, candidates, absolute, word)
        return [Named(word.text, path, word.line, sure and len(paths) == 1, word.frame) for path in paths[:3]]

    def _installed(self, name: str, word: _Word) -> list[Named]:
        """The project's file that an installed copy corresponds to; its lines may have moved."""
        inside = _INSTALLED.search(name)
        if inside is None:
            return []
        path = inside[1]
        paths = [
            candidate
            for candidate in self._by_name.get(path.rpartition("/")[2], [])
            if f"/{candidate}".endswith(f"/{path}")
        ]
        return [Named(word.text, paths[0], 0, sure=False, frame=True)] if len(paths) == 1 else []

    def _fitting(self, name: str, candidates: list[str], absolute: bool, word: _Word) -> tuple[list[str], bool]:
        if "/" not in name:
            # package.json and config.yml exist in any project; only the bare name of a source file means one file.
            usual = name in _COMMON_NAMES or ending_of(name) not in SOURCE_ENDINGS
            sure = not absolute and (not usual or bool(word.frame and word.line))
            return (candidates, sure) if len(candidates) == 1 or word.line else ([], False)
        if not absolute and name in candidates:
            return [name], not word.is_module
        ends = [path for path in candidates if path.endswith(f"/{name}")]
        if ends and not absolute:
            return ends, not word.is_module
        inside = sorted((path for path in candidates if f"/{name}".endswith(f"/{path}")), key=len)
        if inside:
            best = inside[-1]
            folder = f"/{name}"[: -len(best) - 1].rpartition("/")[2]
            return [best], "/" in best or folder == self._root.rpartition("/")[2]
        for prefix in ("a/", "b/"):  # as a diff writes it
            if name.startswith(prefix) and name[2:] in candidates:
                return [name[2:]], True
        shared = [path for path in candidates if _shared(path, name) >= 2]
        return (shared, False) if len(shared) == 1 else ([], False)


def _shared(first: str, second: str) -> int:
    """Number of equal parts at the end of two paths."""
    pairs = zip(reversed(first.split("/")), reversed(second.split("/")), strict=False)
    return next((count for count, (part, other) in enumerate(pairs) if part != other), 99)


def _words(text: str) -> Iterator[_Word]:
    """Candidates for file names in the order of the text, frames of Python and Java before similar words."""
    words: list[tuple[int, _Word]] = []
    for match in _PYTHON.finditer(text):
        words.append((match.start(), _Word(match[1], int(match[2]), frame=True)))
    for match in _JAVA.finditer(text):
        package = match[1].split(".")[:-2]
        path = "/".join((*package, match[2]))
        words.append((match.start(), _Word(path, int(match[3] or 0), frame=True)))
    for match in _WRITTEN.finditer(text):
        line = next((int(group) for group in match.groups()[1:] if group), 0)
        before = text[max(0, match.start() - 24) : match.start()]
        frame = bool(line) and re.search(r"(?:\bat |--> ?|\(|^\s*|\bin |#\d+ |\bfrom )$", before) is not None
        words.append((match.start(), _Word(match[1], line, frame=frame)))
    words += [(match.start(), _Word(match[1], 0)) for match in _NO_ENDING.finditer(text)]
    for match in _MODULE.finditer(text):
        parts = match[1].split(".")
        for end in (len(parts), len(parts) - 1):
            if end >= 2:
                words.append((match.start(), _Word("/".join(parts[:end]) + ".py", 0, is_module=True)))
    return (word for _, word in sorted(words, key=lambda entry: entry[0]))
