"""Searching and listing files: ripgrep where the user has it, a worker process otherwise."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from msgspec import Struct

from swecli.core.workspace.command_output import Captured, capture
from swecli.core.workspace.walk import Entry, IgnoreRules, ignore_root
from swecli.core.workspace.worker import MAX_COLUMNS, leaving_out

_BOOT = "import sys;sys.path[:0]={paths!r};from swecli.core.workspace.worker import main;sys.exit(main())"
_GRACE = 1.0
"""Seconds that the worker gets beyond its own deadline, which it looks at between two files only."""


async def run_worker(
    request: Mapping[str, object], *, environment: Mapping[str, str], seconds: float, limit: int
) -> Captured:
    """Send ``request`` to a new worker and wait for its result, ``seconds`` at most.

    The interpreter runs isolated: neither the directory it starts in nor the environment adds modules.
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
    """Where swecli and what the worker needs of other packages are installed."""
    specs = (find_spec("swecli"), find_spec("pathspec"))
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    return list(dict.fromkeys(str(Path(origin).resolve().parent.parent) for origin in origins))


_LISTING_SECONDS = 10.0


class ListingError(Exception):
    """The tree can't be listed."""


class Listing(Struct, frozen=True):
    """``entries`` sorted by path, relative to the start; ``total`` may be more than are listed. ``complete`` is
    False when the walk was cut short, so that there may be more than ``total``."""

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
_LINE = re.compile(r"(\d+)([:-])(.*)", re.DOTALL)


class SearchError(Exception):
    """The search can't be made: an invalid expression, shown with its position, or a program that failed."""


class SearchRequest(Struct, frozen=True):
    """``start`` is a resolved file or directory; ``context`` is lines before and after each match."""

    pattern: str
    start: Path
    roots: tuple[Path, ...]
    glob: str | None = None
    ignore_case: bool = False
    context: int = 0
    seconds: float = _SECONDS
    leave_out: str = ""
    """A regular expression; files in which it finds something in ``/`` and the path in lower case, relative to the
    workspace directory, are neither read for the result nor distinguished by what they hold, only counted."""


class Line(Struct, frozen=True):
    """One line of a result; ``matched`` is False for a line around a match."""

    path: Path
    number: int
    text: str
    matched: bool


class SearchResult(Struct, frozen=True):
    """``lines`` by path and number. ``incomplete`` says why there may be more, empty when there is not."""

    lines: tuple[Line, ...]
    matches: int
    files: int
    incomplete: str = ""
    left_out: int = 0
    """Files that ``leave_out`` kept out, whether or not they match."""


async def search(request: SearchRequest, environment: Mapping[str, str]) -> SearchResult:
    """Lines that match ``request.pattern``. Ignored, binary and unreadable files are passed over.

    Raises:
        SearchError: the message is for the model.
    """
    ripgrep = find_ripgrep(environment.get("PATH", ""), request.roots)
    left_out: set[str] | None = None
    done = None
    if ripgrep:
        left_out = await _to_leave_out(ripgrep, request, environment)
        done = None if left_out is None else await _ripgrep(ripgrep, request, environment, left_out)
    if done is None:
        done = await _worker(request, environment)
    return _result(request, done, len(left_out or ()))


async def _to_leave_out(program: str, request: SearchRequest, environment: Mapping[str, str]) -> set[str] | None:
    """What ripgrep would read and must not, as paths relative to the start; None where it does not tell."""
    if not request.leave_out or not request.start.is_dir():
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
    """ripgrep of the user, never one that lies in the workspace."""
    for folder in search_path.split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        found = which("rg", path=folder)
        if found and not any(Path(found).resolve().is_relative_to(root) for root in roots):
            return found
    return None


_REACH = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--no-messages")
_MAX_LEFT_OUT = 500
"""Beyond as many the worker searches, which needs no list."""


async def _ripgrep(
    program: str, request: SearchRequest, environment: Mapping[str, str], left_out: Collection[str]
) -> Captured | None:
    """None when this ripgrep does not know our options: then the worker does it."""
    if len(left_out) > _MAX_LEFT_OUT:
        return None
    argv = [program, *_REACH, "--color=never", "--no-heading", "--with-filename", "--line-number", "--null", "--crlf"]
    argv += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", f"--context={request.context}"]
    argv += ["--ignore-case"] if request.ignore_case else []
    argv += ["--glob", request.glob] if request.glob else []
    argv += [word for name in left_out for word in ("--glob", f"!/{_literal(name)}")]
    argv += ["--glob", "!.git", "--regexp", request.pattern, "--"]
    folder = request.start if request.start.is_dir() else request.start.parent
    argv.append("." if folder == request.start else f"./{request.start.name}")
    try:
        done = await capture(argv, cwd=folder, environment=environment, timeout=request.seconds, limit=_BYTES)
    except OSError:
        return None
    if done.status in (0, 1, None) or done.output:
        return done
    errors = done.errors.decode("utf-8", "replace")
    if "regex" in errors or "glob" in errors:
        raise SearchError(f"Invalid pattern. {errors.strip()[:1_000]}\n{_LITERAL}")
    return None


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
        "leave_out": request.leave_out,
    }
    done = await run_worker(job, environment=environment, seconds=request.seconds, limit=_BYTES)
    errors = done.errors.decode("utf-8", "replace").strip()
    if done.status == 2:
        raise SearchError(f"Invalid pattern: {errors}\n{_LITERAL}")
    if done.status not in (0, None):
        raise SearchError(f"The search failed: {errors[-400:]}")
    return done


def _result(request: SearchRequest, done: Captured, left_out: int) -> SearchResult:
    folder = request.start if request.start.is_dir() else request.start.parent
    lines: list[Line] = []
    for raw in done.output.split(b"\n"):
        name, separator, rest = raw.partition(b"\0")
        if separator and not name and rest.isdigit():
            left_out = int(rest)
            continue
        match = _LINE.fullmatch(rest.decode("utf-8", "replace")) if separator else None
        if match is not None:
            path = folder / os.fsdecode(name).removeprefix("./")
            lines.append(Line(path, int(match[1]), match[3].removesuffix("\r"), match[2] == ":"))
    hidden = _own_ignores(request, {line.path for line in lines}) if folder == request.start else set[Path]()
    kept = sorted((line for line in lines if line.path not in hidden), key=lambda line: (str(line.path), line.number))
    incomplete = ""
    if done.timed_out:
        incomplete = f"stopped after {request.seconds:.0f} s"
    elif done.overflowed:
        incomplete = "stopped: too many results"
    matched = [line for line in kept if line.matched]
    return SearchResult(tuple(kept), len(matched), len({line.path for line in matched}), incomplete, left_out)


def _own_ignores(request: SearchRequest, paths: set[Path]) -> set[Path]:
    """Those that ``.swecliignore`` leaves out: ripgrep does not read it."""
    root = ignore_root(request.start, request.roots)
    rules = IgnoreRules(root, (".swecliignore",))
    start = "" if request.start == root else request.start.relative_to(root).as_posix()
    if start and rules.ignored(start, True):
        return set()
    return {path for path in paths if rules.ignored(path.relative_to(root).as_posix(), False)}
