"""JSON and TOML files that other programs share or people write: their content, and what is wrong with them, by line.

Nothing in them counts as absent without a word: a problem names the file, the line and what is ignored.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct

from swecli.lazy_pattern import lazy_pattern

LARGEST = 1_000_000
"""Bytes of a file."""

Form = Literal["json", "jsonc", "toml"]
"""``jsonc``: with comments and last commas, as editors write it."""

_COMMENT = lazy_pattern(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = lazy_pattern(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^\s{}\[\],:"]+')


class Document(Struct, frozen=True):
    """``content`` is the file's outermost object, None if it has none that can be used. ``problems`` are sentences."""

    path: Path
    content: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    text: str = ""
    form: Form = "json"

    def at(self, *keys: str) -> str:
        """The place of a value for a person: the file, and the line of the nearest key around it."""
        lines = _positions(self.text, self.form)[0]
        while keys and keys not in lines:
            keys = keys[:-1]
        return f"{self.path}:{lines[keys]}" if keys else str(self.path)


def read_document(path: Path, form: Form, ignored: str, *, link: bool = True) -> Document | None:
    """The file as it is; None without one. ``ignored`` says what a file that can't be used loses, as a clause ("its
    servers are ignored"). ``link``: a link may lead to it."""

    def broken(why: str, line: int | None = None) -> Document:
        location = f"{path}:{line}" if line else str(path)
        return Document(path, problems=(f"{location}: {why}; {ignored}.",))

    try:
        raw = _bytes(path, link=link)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return broken("is a link, and swecli follows none here")
        return broken(f"cannot be read ({error.strerror or error})")
    if isinstance(raw, str):
        return broken(raw)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return broken("is UTF-16 text; save it as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return broken("is not UTF-8 text here", raw.count(b"\n", 0, error.start) + 1)
    if not text.strip():
        return Document(path, {}) if form == "toml" else broken("is empty")
    return _parsed(path, text, form, broken)


def _bytes(path: Path, *, link: bool) -> bytes | str:
    """The bytes of a regular file, or why there are none, as a clause.

    Raises:
        OSError: it can't be opened.
    """
    nofollow = 0 if link else getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | nofollow)
    try:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            return "is a folder, not a file"
        if not stat.S_ISREG(state.st_mode):
            return "is not a regular file"
        if state.st_size > LARGEST:
            return f"is larger than {LARGEST:,} bytes"
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST)
    finally:
        os.close(descriptor)


def _parsed(path: Path, text: str, form: Form, broken: Callable[[str, int | None], Document]) -> Document:
    try:
        content = parse(text, form)
    except json.JSONDecodeError as error:
        return broken(f"is not valid JSON ({error.msg})", error.lineno)
    except RecursionError:
        return broken("is nested too deeply", None)
    except ValueError as error:
        where = re.search(r"line (\d+)", str(error))
        why = str(error).partition(" (at ")[0]
        name = "TOML" if form == "toml" else "JSON"
        return broken(f"is not valid {name} ({why})", int(where[1]) if where else None)
    if not isinstance(content, dict):
        return broken("holds no object at its top", 1)
    twice = () if form == "toml" else _positions(text, form)[1]
    told = tuple(f"{path}:{line}: {name!r} appears twice in one object; the last one counts." for name, line in twice)
    return Document(path, cast("dict[str, Any]", content), told, text, form)


def parse(text: str, form: Form) -> object:
    """The value of a file's text.

    Raises:
        ValueError: it is not in this form; a ``JSONDecodeError`` has the line.
        RecursionError: it is nested too deeply.
    """
    if form == "toml":
        import tomllib

        return tomllib.loads(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        if form == "json":
            raise
        return json.loads(_bare(text))


def _bare(text: str) -> str:
    """JSON without comments and last commas, every character at its place."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])

    return _LAST_COMMA.sub(blank, _COMMENT.sub(blank, text))


_Lines = dict[tuple[str, ...], int]


@lru_cache(maxsize=4)
def _positions(text: str, form: Form) -> tuple[_Lines, tuple[tuple[str, int], ...]]:
    """The line of each key by its path, items of a list by their number, and keys that an object repeats."""
    if form == "toml":
        from swecli.core.config.load import key_lines

        return key_lines(text), ()
    text = _bare(text) if form == "jsonc" else text
    lines: _Lines = {}
    twice: list[tuple[str, int]] = []
    path: list[str] = []
    frames: list[set[str] | int] = []
    """The keys of each open object, or the number of an open list's next item."""
    is_key, line, seen = False, 1, 0
    for token in _TOKEN.finditer(text):
        line, seen = line + text.count("\n", seen, token.start()), token.start()
        sign = token[0]
        top = frames[-1] if frames else None
        if isinstance(top, int) and sign not in "],":
            lines[tuple(path)] = line
        if sign in "{[":
            frames.append(set() if sign == "{" else 0)
            path.append("0" if sign == "[" else "")
            is_key = sign == "{"
        elif sign in "}]":
            frames.pop()
            path.pop()
            is_key = False
        elif sign == ",":
            is_key = isinstance(top, set)
            if isinstance(top, int):
                frames[-1] = top + 1
                path[-1] = str(top + 1)
        elif is_key and isinstance(top, set) and sign[0] == '"':
            path[-1] = str(json.loads(sign, strict=False))
            if path[-1] in top:
                twice.append((path[-1], line))
            top.add(path[-1])
            lines[tuple(path)] = line
            is_key = False
    return lines, tuple(twice)
