"""Line numbers of keys in TOML text, for messages; ``tomllib`` does not keep them."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?(?P<name>[^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*(?P<name>(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"|'[^']*'|#.*|[\[\]{}]""")


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Line (from 1) of every key and table of valid TOML text, by its path; the tables of a list have their number
    (from 0) in it. Keys inside inline tables have the line of their table's key or none."""
    lines: dict[tuple[str, ...], int] = {}
    lists: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    depth, quote = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if not depth and not quote:
            header = _HEADER.match(line)
            if header:
                table = _parts(header["name"])
                lines.setdefault(table, number)
                if line.lstrip().startswith("[["):
                    lists[table] = lists.get(table, -1) + 1
                    table = (*table, str(lists[table]))
                    lines[table] = number
                continue
            key = _KEY.match(line)
            if key:
                lines.setdefault(table + _parts(key["name"]), number)
                line = line[key.end() :]
        depth, quote = _scan(line, depth, quote)
    return lines


def line_of(lines: dict[tuple[str, ...], int], path: tuple[str, ...]) -> int | None:
    """The line of a key, or of the nearest table around it."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _parts(name: str) -> tuple[str, ...]:
    return tuple(double or single or bare for double, single, bare in _PART.findall(name))


def _scan(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Bracket depth and open triple quote after a line."""
    position = 0
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        token = _TOKEN.search(line, position)
        if token is None:
            break
        found, position = token.group(), token.end()
        if found in ('"""', "'''"):
            quote = found
        elif found in ("[", "{"):
            depth += 1
        elif found in ("]", "}"):
            depth -= 1
    return depth, quote
