"""Worker process that walks and searches, so that patterns from a model or a repository can be killed.

Reads one JSON request from stdin, writes the result to stdout. Exit status 2 with a message on stderr: the request
can't be fulfilled. Each search starts one, so what it imports defines its records as tuples: msgspec would take as long
as everything else.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swecli.core.secret_names import SecretNames, secret_names
from swecli.core.workspace.text_file import decode, read_bytes
from swecli.core.workspace.walk import Glob, walk

_MAX_FILE = 32_000_000
MAX_COLUMNS = 400
"""Characters of a line that are shown."""
COLUMNS_BEFORE = 150
"""Of these, the characters of a long line before a match."""


class PatternError(Exception):
    """Invalid regular expression; the message shows the position."""


def compile_pattern(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """The compiled expression.

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
    leave_out: SecretNames | None = None,
) -> None:
    """Write ``path NUL number : text`` for each match, with ``-`` instead of ``:`` for context lines, as ripgrep does,
    and finally ``NUL number`` if files were left out."""
    chosen = Glob(glob) if glob else None
    if start.is_file():
        _search(start, start.name, pattern, context, write)
        return
    is_left_out, left_out = leaving_out(leave_out, start, roots), 0
    for entry in walk(start, roots, stop=stop):
        if not entry.is_file or (chosen is not None and not chosen.matches(entry.path)):
            continue
        if is_left_out(entry.path):
            left_out += 1
            continue
        _search(start / entry.path, entry.path, pattern, context, write)
    if left_out:
        write(f"\0{left_out}\n")


def leaving_out(names: SecretNames | None, start: Path, roots: tuple[Path, ...]) -> Callable[[str], bool]:
    """Predicate: whether the names exclude a path relative to ``start``, by its place in the workspace."""
    if names is None:
        return lambda path: False
    root = next((root for root in roots if start.is_relative_to(root)), start)
    prefix = "/" if start == root else f"/{start.relative_to(root).as_posix()}/"
    if names.matches(prefix):  # it was named, and the user agreed
        return lambda path: False
    return lambda path: names.matches(prefix + path)


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
    matches = ((number, pattern.search(line.removesuffix("\r"))) for number, line in enumerate(lines))
    hits = {number: match.start() for number, match in matches if match}
    wanted = {near for hit in hits for near in range(max(0, hit - context), min(len(lines), hit + context + 1))}
    if hits:
        write(
            "".join(
                f"{name}\0{number + 1}{':' if number in hits else '-'}{cut(lines[number], hits.get(number, 0))}\n"
                for number in sorted(wanted)
            )
        )


def cut(line: str, at: int = 0) -> str:
    """The line, or the part of a long one that is around ``at``."""
    line = line.removesuffix("\r")
    if len(line) <= MAX_COLUMNS:
        return line
    first = 0 if at <= COLUMNS_BEFORE else at - COLUMNS_BEFORE
    before = f"[… {first:,} characters] " if first else ""
    rest = len(line) - first - MAX_COLUMNS
    return f"{before}{line[first : first + MAX_COLUMNS]}" + (f" [… {rest:,} more characters]" if rest > 0 else "")


_MAX_ENTRIES = 200_000


def main() -> int:
    """Serve one request; returns the exit status."""
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    deadline = time.monotonic() + float(request["seconds"])
    job = {"list": _list, "search": _search_request}[request["job"]]
    try:
        job(request, lambda: time.monotonic() > deadline)
    except PatternError as error:
        sys.stderr.write(str(error))
        return 2
    sys.stdout.flush()
    return 0


def _list(request: dict[str, Any], stop: Callable[[], bool]) -> None:
    glob = Glob(request["glob"]) if request["glob"] else None
    entries: list[tuple[str, bool, int]] = []
    complete = True
    for count, entry in enumerate(walk(*_place(request), max_depth=request["depth"], stop=stop)):
        if count >= _MAX_ENTRIES:
            complete = False
            break
        if glob is None or glob.matches(entry.path):
            entries.append((entry.path, entry.is_dir, entry.depth))
    # Whole levels of the tree as far as they fit, then the first entries of the next level.
    shown = sorted(entries, key=lambda entry: (entry[2], entry[0]))[: int(request["limit"])]
    result = {"total": len(entries), "complete": complete and not stop(), "entries": sorted(shown)}
    sys.stdout.write(json.dumps(result))


def _search_request(request: dict[str, Any], stop: Callable[[], bool]) -> None:
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    grep(
        *_place(request),
        compile_pattern(request["pattern"], request["ignore_case"]),
        glob=request["glob"],
        context=int(request["context"]),
        write=write,
        stop=stop,
        leave_out=None if request.get("leave_out") is None else secret_names(tuple(request["leave_out"])),
    )


def _place(request: dict[str, Any]) -> tuple[Path, tuple[Path, ...]]:
    return Path(request["start"]), tuple(Path(root) for root in request["roots"])
