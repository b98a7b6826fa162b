"""Searching the text of files: ripgrep where the user has it, our own worker process otherwise."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from swecli.core.workspace.capture import Captured, capture
from swecli.core.workspace.grep import MAX_COLUMNS
from swecli.core.workspace.ignore import IgnoreRules, ignore_root
from swecli.core.workspace.work_process import run_worker

_SECONDS = 20.0
_BYTES = 8_000_000
_LINE = re.compile(r"(\d+)([:-])(.*)", re.DOTALL)


class SearchError(Exception):
    """The search can't be made: an invalid expression, shown with its position, or a program that failed."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """``start`` is a resolved file or directory; ``context`` is lines before and after each match."""

    pattern: str
    start: Path
    roots: tuple[Path, ...]
    glob: str | None = None
    ignore_case: bool = False
    context: int = 0
    seconds: float = _SECONDS


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a result; ``matched`` is False for a line around a match."""

    path: Path
    number: int
    text: str
    matched: bool


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``lines`` by path and number. ``incomplete`` says why there may be more, empty when there is not."""

    lines: tuple[Line, ...]
    matches: int
    files: int
    incomplete: str = ""


async def search(request: SearchRequest, environment: Mapping[str, str]) -> SearchResult:
    """Lines that match ``request.pattern``. Ignored, binary and unreadable files are passed over.

    Raises:
        SearchError: the message is for the model.
    """
    ripgrep = find_ripgrep(environment.get("PATH", ""), request.roots)
    done = await _ripgrep(ripgrep, request, environment) if ripgrep else None
    if done is None:
        done = await _worker(request, environment)
    return _result(request, done)


def find_ripgrep(search_path: str, roots: tuple[Path, ...]) -> str | None:
    """ripgrep of the user, never one that lies in the workspace."""
    for folder in search_path.split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        found = which("rg", path=folder)
        if found and not any(Path(found).resolve().is_relative_to(root) for root in roots):
            return found
    return None


async def _ripgrep(program: str, request: SearchRequest, environment: Mapping[str, str]) -> Captured | None:
    """None when this ripgrep does not know our options: then the worker does it."""
    argv = [program, "--no-config", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null"]
    argv += ["--hidden", "--no-require-git", "--no-ignore-global", "--no-messages", "--crlf"]
    argv += [f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", f"--context={request.context}"]
    argv += ["--ignore-case"] if request.ignore_case else []
    argv += ["--glob", request.glob] if request.glob else []
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
    }
    done = await run_worker(job, environment=environment, seconds=request.seconds, limit=_BYTES)
    errors = done.errors.decode("utf-8", "replace").strip()
    if done.status == 2:
        raise SearchError(f"Invalid pattern: {errors}\n{_LITERAL}")
    if done.status not in (0, None):
        raise SearchError(f"The search failed: {errors[-400:]}")
    return done


def _result(request: SearchRequest, done: Captured) -> SearchResult:
    folder = request.start if request.start.is_dir() else request.start.parent
    lines: list[Line] = []
    for raw in done.output.split(b"\n"):
        name, separator, rest = raw.partition(b"\0")
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
    return SearchResult(tuple(kept), len(matched), len({line.path for line in matched}), incomplete)


def _own_ignores(request: SearchRequest, paths: set[Path]) -> set[Path]:
    """Those that ``.swecliignore`` leaves out: ripgrep does not read it."""
    root = ignore_root(request.start, request.roots)
    rules = IgnoreRules(root, (".swecliignore",))
    start = "" if request.start == root else request.start.relative_to(root).as_posix()
    if start and rules.ignored(start, True):
        return set()
    return {path for path in paths if rules.ignored(path.relative_to(root).as_posix(), False)}
