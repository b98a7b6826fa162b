"""Search and listing of files: ripgrep if installed, a worker process otherwise."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.secret_names import SecretNames
from swecli.core.workspace.command_output import Captured, capture
from swecli.core.workspace.text_file import decode, read_bytes
from swecli.core.workspace.walk import Entry, IgnoreRules, ignore_root
from swecli.core.workspace.worker import COLUMNS_BEFORE, MAX_COLUMNS, leaving_out
from swecli.lazy_pattern import lazy_pattern

_BOOT = "import sys;sys.path[:0]={paths!r};from swecli.core.workspace.worker import main;sys.exit(main())"
_GRACE = 1.0
"""Seconds beyond the worker's own deadline, which it checks only between files."""


async def run_worker(
    request: Mapping[str, object], *, environment: Mapping[str, str], seconds: float, limit: int
) -> Captured:
    """Send ``request`` to a new worker and wait at most ``seconds`` for its result.

    The interpreter runs isolated: neither its working directory nor the environment adds modules.
    """
    boot = _BOOT.format(paths=module_folders())
    data = json.dumps({**request, "seconds": seconds}).encode()
    argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", boot]
    return await capture(
        argv,
        cwd=Path("/") if sys.platform != "win32" else Path.cwd(),
        environment=environment,
        timeout=seconds + _GRACE,
        limit=limit,
        stdin=data,
    )


def module_folders() -> list[str]:
    """Installation folders of swecli and of the worker's dependencies."""
    specs = (find_spec("swecli"), find_spec("pathspec"))
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    return list(dict.fromkeys(str(Path(origin).resolve().parent.parent) for origin in origins))


_LISTING_SECONDS = 10.0


class ListingError(Exception):
    """The tree can't be listed."""


class Listing(Struct, frozen=True):
    """``entries`` sorted by path, relative to the start; ``total`` may exceed their number. ``complete`` is False if
    the walk was cut short, so that there may be more than ``total``."""

    entries: tuple[Entry, ...]
    total: int
    complete: bool = True


async def list_tree(
    start: Path,
    roots: tuple[Path, ...],
    *,
    environment: Mapping[str, str],
    glob: str | None = None,
    depth: int | None = None,
    limit: int = 300,
) -> Listing:
    """Entries below ``start`` that are not ignored, ``depth`` levels deep, at most ``limit``: whole levels first.

    Raises:
        ListingError: it took too long.
    """
    request: dict[str, object] = {
        "job": "list",
        "start": str(start),
        "roots": [str(root) for root in roots],
        "glob": glob,
        "depth": depth,
        "limit": limit,
    }
    done = await run_worker(request, environment=environment, seconds=_LISTING_SECONDS, limit=_BYTES)
    if done.status != 0:
        reason = "it took too long" if done.timed_out else done.errors.decode("utf-8", "replace")[-400:].strip()
        raise ListingError(f"could not list {start}: {reason}")
    result = json.loads(done.output)
    entries = tuple(Entry(path, is_dir, level) for path, is_dir, level in result["entries"])
    return Listing(entries, int(result["total"]), bool(result["complete"]))


_SECONDS = 20.0
_BYTES = 8_000_000
_LINE = lazy_pattern(r"(\d+)([:-])(.*)", re.DOTALL)


class SearchError(Exception):
    """The search failed: an invalid expression or a program error."""


class InvalidPatternError(SearchError):
    """The expression is invalid; the message shows the position."""


class SearchRequest(Struct, frozen=True):
    """``start`` is a resolved file or directory; ``context`` is lines before and after each match."""

    pattern: str
    start: Path
    roots: tuple[Path, ...]
    glob: str | None = None
    ignore_case: bool = False
    context: int = 0
    seconds: float = _SECONDS
    leave_out: SecretNames | None = None
    """Files of these names are only counted: they are not read for the result or distinguished by content."""


class Line(Struct, frozen=True):
    """One line of a result; ``matched`` is False for a context line."""

    path: Path
    number: int
    text: str
    matched: bool


class SearchResult(Struct, frozen=True):
    """``lines`` by path and number. ``incomplete`` says why there may be more; empty if complete."""

    lines: tuple[Line, ...]
    matches: int
    files: int
    incomplete: str = ""
    left_out: int = 0
    """Files that ``leave_out`` excluded, whether or not they match."""


async def search(request: SearchRequest, environment: Mapping[str, str]) -> SearchResult:
    """Lines that match ``request.pattern``. Ignored, binary and unreadable files are skipped.

    Raises:
        SearchError: the message is for the model.
    """
    ripgrep = find_ripgrep(environment.get("PATH", ""), request.roots)
    left_out: set[str] | None = None
    done = None
    if ripgrep:
        left_out = await _to_leave_out(ripgrep, request, environment)
        done = None if left_out is None else await _ripgrep(ripgrep, request, environment, left_out)
    if ripgrep is None or left_out is None or done is None:
        return _result(request, await _worker(request, environment), len(left_out or ()))
    result = await _around_matches(_result(request, done, len(left_out)), ripgrep, request, environment)
    if request.pattern.isascii():
        return result
    # ripgrep takes files without a byte order mark for UTF-8, in which their other letters match nothing.
    for name, codecs in _OTHER_ENCODINGS if max(request.pattern) >= _EAST_ASIAN else _OTHER_ENCODINGS[:1]:
        again = await _ripgrep(ripgrep, request, environment, left_out, f"--encoding={name}")
        if again is not None and again.output:
            result = await asyncio.to_thread(_with_files_in, codecs, result, _result(request, again, 0))
    return result


_OTHER_ENCODINGS = (
    ("windows-1252", ("cp1252", "latin-1")),
    ("shift_jis", ("cp932",)),
    ("euc-jp", ("euc_jp",)),
    ("euc-kr", ("cp949",)),
    ("gbk", ("gbk",)),
    ("big5", ("big5", "cp950")),
)
"""Encodings by ripgrep's name, and the codecs with which the file tools read files in them."""
_EAST_ASIAN = "\u2e80"
"""The first letter of East Asian scripts."""


async def _around_matches(
    result: SearchResult, program: str, request: SearchRequest, environment: Mapping[str, str]
) -> SearchResult:
    """``result`` with the surroundings of the match in place of the beginning of a long line. Only the first
    ``_MOST_LONG`` files with such lines are read again."""
    long = dict.fromkeys(line.path for line in result.lines if line.matched and line.text.endswith(_CUT))
    paths = list(long)[:_MOST_LONG]
    if not paths:
        return result
    before, after = COLUMNS_BEFORE, MAX_COLUMNS - COLUMNS_BEFORE
    around = replace(request, pattern=f".{{0,{before}}}(?:{request.pattern}).{{0,{after}}}", context=0)
    try:
        done = await _ripgrep(program, around, environment, (), "--only-matching", paths=paths)
    except SearchError:  # for the larger expression only: the lines stay as they are
        return result
    pieces: dict[tuple[Path, int], str] = {}
    for line in _result(request, done, 0).lines if done else ():
        pieces.setdefault((line.path, line.number), _CUT_PIECE.sub("", line.text))

    def shown(line: Line) -> Line:
        piece = pieces.get((line.path, line.number), "") if line.matched and line.text.endswith(_CUT) else ""
        return line if line.text.startswith(piece) else replace(line, text=f"[…] {piece} […]")

    return replace(result, lines=tuple(map(shown, result.lines)))


_CUT = " [... omitted end of long line]"
"""What ripgrep puts at the end of a line that it cut."""
_CUT_PIECE = lazy_pattern(r" \[\.{3} (?:omitted end of long line|\d+ more match(?:es)?)\]\Z")
"""The same where it shows only the match."""
_MOST_LONG = 20


def _with_files_in(codecs: tuple[str, ...], result: SearchResult, decoded: SearchResult) -> SearchResult:
    """``result`` with the lines that ``decoded``, the result for files read in one encoding, has of such files."""
    chosen = {path for path in {line.path for line in decoded.lines} if _codec_of(path) in codecs}
    lines = [line for line in result.lines if line.path not in chosen]
    lines += [line for line in decoded.lines if line.path in chosen]
    return _found(lines, result.incomplete or decoded.incomplete, result.left_out)


def _codec_of(path: Path) -> str:
    """The codec with which the file tools read the file; empty if they can't."""
    try:
        data, _ = read_bytes(path, _MAX_DECODED)
    except OSError:
        return ""
    return decode(data).codec


_MAX_DECODED = 10_000_000
"""Bytes of a file whose encoding is determined."""


async def _to_leave_out(program: str, request: SearchRequest, environment: Mapping[str, str]) -> set[str] | None:
    """Files that ripgrep would read but must not, as paths relative to the start; None if it does not list them."""
    if request.leave_out is None or not request.start.is_dir():
        return set()
    argv = [program, *_REACH, "--files", "--null", *(["--glob", request.glob] if request.glob else [])]
    try:
        argv += ["--glob", "!.git", "--", "."]
        done = await capture(argv, cwd=request.start, environment=environment, timeout=request.seconds, limit=_BYTES)
    except OSError:
        return None
    if done.status not in (0, 1) or done.overflowed or done.timed_out:
        return None
    names = (os.fsdecode(name).removeprefix("./") for name in done.output.split(b"\0") if name)
    leave_out = leaving_out(request.leave_out, request.start, request.roots)
    return {name for name in names if leave_out(name)}


def find_ripgrep(search_path: str, roots: tuple[Path, ...]) -> str | None:
    """The user's ripgrep, never one inside the workspace."""
    for folder in search_path.split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        program = which("rg", path=folder)
        if program and not any(Path(program).resolve().is_relative_to(root) for root in roots):
            return program
    return None


_REACH = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--no-messages")
_MAX_LEFT_OUT = 500
"""Above this number the worker searches, which needs no list."""


async def _ripgrep(
    program: str,
    request: SearchRequest,
    environment: Mapping[str, str],
    left_out: Collection[str],
    *options: str,
    paths: Sequence[Path] = (),
) -> Captured | None:
    """Result of ripgrep; None if this version lacks our options, or ripgrep an element of the expression, such as
    look-around: then the worker searches. ``paths`` below the start are searched instead of all."""
    if len(left_out) > _MAX_LEFT_OUT:
        return None
    argv = [program, *_REACH, "--color=never", "--no-heading", "--with-filename", "--line-number", "--null", "--crlf"]
    argv += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", f"--context={request.context}"]
    argv += [*options, *(["--ignore-case"] if request.ignore_case else [])]
    argv += ["--glob", request.glob] if request.glob else []
    argv += [word for name in left_out for word in ("--glob", f"!/{_literal(name)}")]
    argv += ["--glob", "!.git", "--regexp", request.pattern, "--"]
    folder = request.start if request.start.is_dir() else request.start.parent
    names = [f"./{path.relative_to(folder)}" for path in paths]
    argv += names or ["." if folder == request.start else f"./{request.start.name}"]
    try:
        done = await capture(argv, cwd=folder, environment=environment, timeout=request.seconds, limit=_BYTES)
    except OSError:
        return None
    if done.status in (0, 1, None) or done.output:
        return done
    errors = done.errors.decode("utf-8", "replace")
    if "is not allowed in a regex" in errors:
        raise SearchError(SINGLE_LINES)
    if "regex parse error" in errors and len(request.pattern) <= _MAX_PATTERN:
        return None
    if "regex" in errors:
        raise InvalidPatternError(f"Invalid pattern. {errors.strip()[:1_000]}\n{_LITERAL}")
    if "glob" in errors:
        raise SearchError(f"Invalid glob. {errors.strip()[:1_000]}")
    return None


SINGLE_LINES = "The pattern matches single lines, so it can't contain a line break or NUL."
_MAX_PATTERN = 2_000
"""Characters of an expression up to which the worker may search with it."""


def literal(text: str) -> str:
    """The expression that matches ``text`` itself, for ripgrep and the worker."""
    return re.sub(r"([.()\[\]{}*+?^$|\\])", r"\\\1", text)


def _literal(name: str) -> str:
    return re.sub(r"([*?\[\]{}\\!])", r"\\\1", name)


_LITERAL = "To find the characters themselves, put a backslash before each of . ( ) [ ] { } * + ? ^ $ | and \\."


async def _worker(request: SearchRequest, environment: Mapping[str, str]) -> Captured:
    job: dict[str, object] = {
        "job": "search",
        "start": str(request.start),
        "roots": [str(root) for root in request.roots],
        "pattern": request.pattern,
        "glob": request.glob,
        "ignore_case": request.ignore_case,
        "context": request.context,
        "leave_out": None if request.leave_out is None else request.leave_out.own,
    }
    done = await run_worker(job, environment=environment, seconds=request.seconds, limit=_BYTES)
    errors = done.errors.decode("utf-8", "replace").strip()
    if done.status == 2:
        raise InvalidPatternError(f"Invalid pattern: {errors}\n{_LITERAL}")
    if done.status not in (0, None):
        raise SearchError(f"The search failed: {errors[-400:]}")
    return done


def _result(request: SearchRequest, done: Captured, left_out: int) -> SearchResult:
    folder = request.start if request.start.is_dir() else request.start.parent
    lines: list[Line] = []
    begun = b""  # lines without a name: the beginning of one with a line break, or a remark of the program
    for raw in done.output.split(b"\n"):
        name, separator, rest = raw.partition(b"\0")
        if not separator:
            begun += raw + b"\n"
            continue
        if begun:
            name, begun = _whole_name(begun.removeprefix(b"--\n"), name, folder), b""
        if not name and rest.isdigit():
            left_out = int(rest)
            continue
        match = _LINE.fullmatch(rest.decode("utf-8", "replace"))
        if match is not None:
            path = folder / os.fsdecode(name).removeprefix("./")
            lines.append(Line(path, int(match[1]), match[3].removesuffix("\r"), match[2] == ":"))
    hidden = _own_ignores(request, {line.path for line in lines}) if folder == request.start else set[Path]()
    incomplete = ""
    if done.timed_out:
        incomplete = f"stopped after {request.seconds:.0f} s"
    elif done.overflowed:
        incomplete = "stopped: too many results"
    return _found([line for line in lines if line.path not in hidden], incomplete, left_out)


def _found(lines: Iterable[Line], incomplete: str, left_out: int) -> SearchResult:
    ordered = sorted(lines, key=lambda line: (str(line.path), line.number))
    matched = [line for line in ordered if line.matched]
    return SearchResult(tuple(ordered), len(matched), len({line.path for line in matched}), incomplete, left_out)


def _whole_name(begun: bytes, rest: bytes, folder: Path) -> bytes:
    """The name of a file whose end is ``rest``, and its beginning perhaps ``begun``."""
    whole = begun + rest
    return whole if begun and os.path.lexists(os.path.join(os.fsencode(folder), whole)) else rest


def _own_ignores(request: SearchRequest, paths: set[Path]) -> set[Path]:
    """Paths that ``.swecliignore`` excludes: ripgrep does not read it."""
    root = ignore_root(request.start, request.roots)
    rules = IgnoreRules(root, (".swecliignore",))
    start = "" if request.start == root else request.start.relative_to(root).as_posix()
    if start and rules.ignored(start, True):
        return set()
    return {path for path in paths if rules.ignored(path.relative_to(root).as_posix(), False)}
