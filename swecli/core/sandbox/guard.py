"""Control files of a workspace while contained commands run: their state from before, also on the disk, and a watch
that undoes what the commands plant where no mount can prevent it."""

from __future__ import annotations

import base64
import binascii
import contextlib
import fcntl
import json
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from swecli.core.atomic_text import make_private
from swecli.core.permissions.paths import inside
from swecli.core.sandbox.survey import Content, Surveyor, undo
from swecli.lazy_pattern import lazy_pattern

_NAME = lazy_pattern(r"running-\d+-[0-9a-f]{8}\.json")
_PAUSE = 0.1
"""Least seconds between two looks of the watch."""
_SHARE = 20
"""A look may take one part in so many of the time."""
_ALIVE = 0.5
"""Seconds between two signs of life, however long a look takes: less than ``_AFTER``."""
_AFTER = 2.0
"""Seconds after the last sign of life in which a file still counts as written by the command."""


class Guard:
    """``folder`` is private to the workspace and outside it. Its methods may be called from any thread, but ``begin``
    and ``end`` in turn: they enclose the time in which commands run."""

    def __init__(self, folder: Path, surveyor: Surveyor) -> None:
        self._folder = folder
        self.kept = folder / "undone"
        """Where what was undone is kept."""
        self._surveyor = surveyor
        self._lock = threading.RLock()
        self._baseline: Mapping[str, Content] = {}
        self._out_of_reach: tuple[str, ...] = ()
        self._journal: _Journal | None = None
        self._over: threading.Event | None = None
        self._undone: list[str] = []
        self._expected: Counter[str | None] = Counter()
        """Paths that calls outside the sandbox write right now; None stands for any."""

    def begin(self, baseline: Mapping[str, Content], out_of_reach: Sequence[str]) -> None:
        """Note the state from before the first command, and begin to watch. ``out_of_reach`` are places that commands
        can't change.

        Raises:
            OSError: it can't be noted.
        """
        with self._lock:
            self._baseline, self._out_of_reach = baseline, tuple(out_of_reach)
            self._journal = _Journal(self._folder)
            try:
                self._journal.write(baseline)
            except OSError:
                self._journal.close()
                self._journal = None
                raise
            journal = self._journal
        self._over = over = threading.Event()
        threading.Thread(target=self._watch, args=(over,), name="sandbox watch", daemon=True).start()
        threading.Thread(target=self._live, args=(journal, over), name="sandbox journal", daemon=True).start()

    def end(self) -> None:
        """Undo what is left, and forget the state from before."""
        if self._over is not None:
            self._over.set()
            self._over = None
        with self._lock:
            if self._journal is not None:
                self.look()
                self._journal.close()
                self._journal = None

    @property
    def mark(self) -> int:
        """A point in time for ``undone_since``."""
        return len(self._undone)

    def undone_since(self, mark: int) -> tuple[str, ...]:
        """Undo commands' changes to control files; returns the paths of all that was undone since ``mark``."""
        self.look()
        return tuple(dict.fromkeys(self._undone[mark:]))

    def look(self) -> None:
        with self._lock:
            if self._journal is None or self._expected[None]:
                return
            after = self._surveyor.steering()
            reached = {
                path: content
                for path, content in after.items()
                if not self._expected[path] and inside(path, self._out_of_reach) is None
            }
            self._undone += undo(self._baseline, reached, self.kept)

    def expect(self, paths: Sequence[str] | None) -> None:
        """Announce that a call with consent is about to write control files; None stands for any of them."""
        with self._lock:
            self._expected.update([None] if paths is None else paths)

    def accept(self, paths: Sequence[str] | None) -> None:
        """Take the present state of these control files, which were announced or written with consent, as that from
        before; None takes all."""
        with self._lock:
            if self._journal is not None:
                now = self._surveyor.steering()
                chosen = now if paths is None else {path: now[path] for path in paths if path in now}
                self._baseline = {**self._baseline, **chosen}
                with contextlib.suppress(OSError):
                    self._journal.write(self._baseline)
            self._expected.subtract([None] if paths is None else paths)
            self._expected = +self._expected

    def _watch(self, over: threading.Event) -> None:
        pause = _PAUSE
        while not over.wait(pause):
            began = time.monotonic()
            with contextlib.suppress(OSError):  # the disk: the next look tries again
                self.look()
            pause = max(_PAUSE, _SHARE * (time.monotonic() - began))

    def _live(self, journal: _Journal, over: threading.Event) -> None:
        """Give signs of life: what is written after the last one counts as written after a kill."""
        while not over.wait(_ALIVE):
            with contextlib.suppress(OSError):
                journal.touch()

    # --- after a crash --------------------------------------------------------------------------------------------

    def has_leftovers(self) -> bool:
        """Whether a killed swecli may have left planted files. One look into a folder."""
        return any(_leftovers(self._folder))

    def settle(self, placeholders: Sequence[str] = (), *, commands_run: bool = False) -> tuple[str, ...]:
        """Undo what commands of killed processes planted; returns the paths. Placeholders, and changes that somebody
        made after the kill, stay. Takes a survey if there is something to settle. With ``commands_run`` a command may
        have outlived its swecli for a moment and still plant, so the state from before is kept for another time."""
        undone: list[str] = []
        for path in _leftovers(self._folder):
            with _locked(path) as leftover:
                if leftover is None:
                    continue
                baseline, last = leftover
                after = {
                    name: content
                    for name, content in self._surveyor.steering().items()
                    if name not in placeholders and _changed_before(name, last + _AFTER)
                }
                if baseline is not None:
                    undone += undo(baseline, after, self.kept)
                if not commands_run:
                    path.unlink(missing_ok=True)
        return tuple(undone)


class _Journal:
    """The state from before, on the disk as long as commands run. The file is locked while its process lives, and its
    time is that of the last sign of life."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"running-{os.getpid()}-{secrets.token_hex(4)}.json"
        self._lock: int | None = None

    def write(self, baseline: Mapping[str, Content]) -> None:
        make_private(self._path.parent)
        data = {
            path: None if content is None else base64.b64encode(content).decode() for path, content in baseline.items()
        }
        new = self._path.with_suffix(".new")
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            text = json.dumps(data).encode("utf-8", "surrogateescape")
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(text)
            new.replace(self._path)
        except OSError:
            os.close(descriptor)
            raise
        before, self._lock = self._lock, descriptor
        if before is not None:
            os.close(before)

    def touch(self) -> None:
        os.utime(self._path)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _leftovers(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    # Those of this process are locked as well. Its number tells nothing: in a container the next one may have it again.
    yield from (folder / name for name in sorted(names) if _NAME.fullmatch(name))


@contextlib.contextmanager
def _locked(path: Path) -> Generator[tuple[Mapping[str, Content] | None, float] | None]:
    """The state in a journal (None if it is unreadable) and the time of its last sign of life, in Unix seconds; None if
    its process lives."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            text = stream.read()
        yield _parsed(text), os.fstat(descriptor).st_mtime
    except BlockingIOError:
        yield None
    finally:
        os.close(descriptor)


def _parsed(text: bytes) -> Mapping[str, Content] | None:
    try:
        data = cast("dict[str, Any]", json.loads(text.decode("utf-8", "surrogateescape")))
        return {
            str(path): None if content is None else base64.b64decode(content, validate=True)
            for path, content in data.items()
        }
    except (ValueError, AttributeError, TypeError, binascii.Error):
        return None


def _changed_before(path: str, moment: float) -> bool:
    """Whether a file last changed before this time (Unix seconds). The time of a change of its state can't be set."""
    try:
        return os.lstat(path).st_ctime <= moment
    except OSError:
        return False
