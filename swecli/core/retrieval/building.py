"""Building and storing an index; also the low-priority process that does so beside a session.

As a process it reads one JSON request from stdin, writes the index, and prints one JSON line. It ends at once when its
stdin is closed, so that it never outlives the session, unless it was started to finish the index after a short run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.git import GitFailedError, read_git
from swecli.core.retrieval.index import (
    Change,
    DamagedIndexError,
    History,
    Index,
    OtherVersionError,
    build,
    pack,
    unpack,
)
from swecli.core.retrieval.indexing import documents, tree_of
from swecli.core.retrieval.ranking import query_of

# Facts from git's history: files that change together, recent changes, and words of commit messages.


MOST_COMMITS: Final = 2_000
"""Newest commits to examine."""
WIDEST: Final = 25
"""Most files of a commit that still counts as a link between them."""
_TOGETHER: Final = 10
_HALF_LIFE: Final = 150
"""Commits after which a change counts half for churn."""
_MAX_WORDS: Final = 60
FORMAT: Final = "%x01%H%x02%s%n%b%x03"
ARGUMENTS: Final = (
    *("log", f"--max-count={MOST_COMMITS}", "--no-merges", "--no-renames", "--no-show-signature", "--no-ext-diff"),
    *("--no-textconv", "--no-color", "--no-notes", "--name-only", "-z", f"--format={FORMAT}", "HEAD", "--"),
)
"""Arguments of git for ``commits_of``."""


class Commit(Struct, frozen=True):
    id: str
    message: str
    paths: tuple[str, ...]


def commits_of(output: str) -> Iterator[Commit]:
    """Parse git's output into commits, newest first."""
    for piece in output.split("\x01")[1:]:
        identifier, _, rest = piece.partition("\x02")
        message, _, names = rest.partition("\x03")
        paths = tuple(name for name in names.strip("\0\n").split("\0") if name)
        yield Commit(identifier, message, tuple(path.strip("\n") for path in paths))


def history_of(commits: Iterable[Commit], present: Iterable[str]) -> History:
    """Summarise commits, newest first, for the files that are present."""
    known = frozenset(present)
    churn: dict[str, float] = {}
    pairs: dict[str, dict[str, float]] = {}
    message_words: dict[str, Counter[str]] = {}
    changes: list[Change] = []
    head = ""
    for age, commit in enumerate(commits):
        head = head or commit.id
        paths = [path for path in dict.fromkeys(commit.paths) if path in known]
        weight = 0.5 ** (age / _HALF_LIFE)
        for path in paths:
            churn[path] = churn.get(path, 0.0) + weight
        if len(commit.paths) > WIDEST:
            continue
        _bind(pairs, paths, age)
        words = query_of(commit.message[:2_000]).terms
        if paths:
            changes.append(Change({word: max(1, round(min(10.0, 20 * worth))) for word, worth in words.items()}, paths))
        for path in paths:
            counts = message_words.setdefault(path, Counter())
            for word in words:
                counts[word] += 1
    together = {
        path: dict(sorted(others.items(), key=lambda pair: (-pair[1], pair[0]))[:_TOGETHER])
        for path, others in pairs.items()
    }
    frequent = {path: dict(counts.most_common(_MAX_WORDS)) for path, counts in message_words.items()}
    return History(together, {path: value**0.5 for path, value in churn.items()}, frequent, changes, head)


def _bind(pairs: dict[str, dict[str, float]], paths: Sequence[str], age: int) -> None:
    if len(paths) < 2:
        return
    weight = 0.5 ** (age / (4 * _HALF_LIFE)) / (len(paths) - 1)
    for path in paths:
        others = pairs.setdefault(path, {})
        for other in paths:
            if other != path:
                others[other] = others.get(other, 0.0) + weight


# --- the index ----------------------------------------------------------------------------------------------


ENDING: Final = ".index"
_MAX_INDEXES: Final = 24
"""Indexes of workspaces to keep, the newest."""
_MAX_BYTES: Final = 100_000_000
_NICE: Final = 5
"""Low enough to let the interface go first, high enough to progress on a busy machine."""
_GIT_SECONDS: Final = 15.0
_GIT_BYTES: Final = 20_000_000


def commits_below(root: Path, program: str, environment: Mapping[str, str]) -> list[Commit]:
    """The newest commits, with paths relative to ``root``. Empty if git fails or takes too long."""
    arguments = (*ARGUMENTS[:-2], "--relative", *ARGUMENTS[-2:])
    try:
        output = read_git(program, root, arguments, environment, _GIT_SECONDS)
    except GitFailedError:
        return []
    return list(commits_of(output.decode("utf-8", "replace"))) if len(output) <= _GIT_BYTES else []


def make_index(
    root: Path,
    program: str = "",
    environment: Mapping[str, str] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Index:
    """Build the index of a project as it is now. ``program`` is git; without it the index has no history."""
    tree = tree_of(root, stop=stop)
    commits = commits_below(root, program, environment or {}) if program else []
    history = history_of(commits, tree.paths)
    return build(
        documents(root, tree.paths, stop), history, tree.folders, complete=tree.complete, left_out=tree.left_out
    )


def keep(index: Index, place: Path) -> None:
    """Write the index to a file that only the user can read; deletes the oldest if there are many.

    Raises:
        OSError: it can't be written.
    """
    make_private(place.parent)
    temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pack(index))
        os.replace(temporary, place)
    finally:
        with suppress(OSError):
            temporary.unlink()
    others = sorted(
        (path for path in place.parent.glob(f"*{ENDING}*") if path.suffix != ".lock"), key=_age, reverse=True
    )
    for old in others[_MAX_INDEXES:]:
        with suppress(OSError):
            old.unlink()


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def kept_index(place: Path) -> Index | None:
    """The index in a file; None without one of this version. A damaged file is renamed and kept."""
    try:
        if place.stat().st_size > _MAX_BYTES:
            return None
        data = place.read_bytes()
    except OSError:
        return None
    try:
        return unpack(data)
    except OtherVersionError:
        return None  # the new one replaces it
    except DamagedIndexError:
        with suppress(OSError):
            os.replace(place, place.with_name(f"{place.name}.damaged"))
        return None


def main() -> int:
    """Serve one request; returns the exit status."""
    request: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    if request.get("outlives"):
        signal.alarm(OUTLIVES_SECONDS)
        lock = _alone(Path(request["place"]))
        if lock is None:
            return 0
    else:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(OSError, AttributeError):
        os.nice(int(request.get("nice", _NICE)))
    started = time.monotonic()
    environment: Mapping[str, str] = request.get("environment") or {}
    index = make_index(Path(request["root"]), str(request.get("git") or ""), environment)
    keep(index, Path(request["place"]))
    made = {"files": len(index.files), "complete": index.complete, "seconds": round(time.monotonic() - started, 3)}
    sys.stdout.write(json.dumps(made) + "\n")
    sys.stdout.flush()
    return 0


def _alone(path: Path) -> int | None:
    """A lock held to the end of the process; None if another one finishes this index."""
    import fcntl  # such a process is only started where there is a fork

    make_private(path.parent)
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _end_with_parent() -> None:
    while os.read(0, 1):  # not through the buffer of stdin, which a thread must not hold when the program ends
        pass
    os._exit(3)


BOOT: Final = "import sys;sys.path[:0]={paths!r};from swecli.core.retrieval.building import main;sys.exit(main())"


ALONE: Final = "import os;os.fork() and os._exit(0);os.setsid();"
"""Begins a process that outlives its parent and whoever waits for it."""
OUTLIVES_SECONDS: Final = 300
"""Seconds after which such a process ends, whatever it has."""


def command(paths: Sequence[str], *, outlives: bool = False) -> list[str]:
    """Command line of the process: isolated, so that neither its folder nor the environment adds modules. What
    ``outlives`` the session ends at once for whoever started it."""
    boot = BOOT.format(paths=list(paths))
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", f"{ALONE if outlives else ''}{boot}"]
