"""Searching files with Python's regular expressions, for where there is no ripgrep.

Runs only in the worker process, which can be killed: one expression can take longer than anybody waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from swecli.core.workspace.glob import Glob
from swecli.core.workspace.regular_file import read_bytes
from swecli.core.workspace.text_file import decode
from swecli.core.workspace.walk import walk

_MAX_FILE = 32_000_000
MAX_COLUMNS = 400
"""Characters of a line that are shown."""


class PatternError(Exception):
    """No valid regular expression; the message shows where."""


def compile_pattern(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """The expression.

    Raises:
        PatternError: with the position.
    """
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        at = error.pos or 0
        raise PatternError(f"{error.msg} at position {at}:\n    {pattern}\n    {' ' * at}^") from error
    except (RecursionError, OverflowError) as error:
        raise PatternError("the expression is too large") from error


def grep(
    start: Path,
    roots: tuple[Path, ...],
    pattern: re.Pattern[str],
    *,
    glob: str | None,
    context: int,
    write: Callable[[str], None],
    stop: Callable[[], bool],
) -> None:
    """Write ``path NUL number : text`` for each match, ``-`` in place of ``:`` for lines around it, as ripgrep
    prints them."""
    chosen = Glob(glob) if glob else None
    if start.is_file():
        _search(start, start.name, pattern, context, write)
        return
    for entry in walk(start, roots, stop=stop):
        if entry.is_file and (chosen is None or chosen.matches(entry.path)):
            _search(start / entry.path, entry.path, pattern, context, write)


def _search(path: Path, name: str, pattern: re.Pattern[str], context: int, write: Callable[[str], None]) -> None:
    try:
        data, _ = read_bytes(path, _MAX_FILE)
    except OSError:
        return
    file = decode(data)
    if file.looks_binary:
        return
    lines = file.text.split("\n")
    if file.final_newline:
        lines.pop()
    hits = [number for number, line in enumerate(lines) if pattern.search(line.removesuffix("\r"))]
    wanted = {near for hit in hits for near in range(max(0, hit - context), min(len(lines), hit + context + 1))}
    matched = set(hits)
    if hits:
        write(
            "".join(
                f"{name}\0{number + 1}{':' if number in matched else '-'}{cut(lines[number])}\n"
                for number in sorted(wanted)
            )
        )


def cut(line: str) -> str:
    """The line without its CR, and not too long."""
    line = line.removesuffix("\r")
    return line if len(line) <= MAX_COLUMNS else f"{line[:MAX_COLUMNS]} [… {len(line) - MAX_COLUMNS:,} more characters]"
