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
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from swecli.core.atomic_text import make_private
from swecli.core.permissions.paths import inside
from swecli.core.sandbox.survey import Content, Surveyor, changed, undo
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
        self._folders: frozenset[str] = frozenset()
        """Folders from before that hold only control files."""
        self._out_of_reach: tuple[str, ...] = ()
        self._journal: _Journal | None = None
        self._over: threading.Event | None = None
        self._undone: list[str] = []
        self._expected: Counter[str | None] = Counter()
        """Paths that calls outside the sandbox write right now; None stands for any."""

    def begin(
        self, baseline: Mapping[str, Content], out_of_reach: Sequence[str], folders: frozenset[str] = frozenset()
    ) -> None:
        """Note the state from before the first command, and begin to watch. ``out_of_reach`` are places that commands
        can't change, ``folders`` those that hold only control files.

        Raises:
            OSError: it can't be noted.
        """
        with self._lock:
            self._baseline, self._out_of_reach, self._folders = baseline, tuple(out_of_reach), folders
            self._journal = _Journal(self._folder)
            try:
                self._journal.write(baseline, folders)
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
            planted = changed(self._baseline, reached)
            if planted:
                self._journal.add(planted)  # first: what a kill cuts short is told at the next start
                undone = undo(self._baseline, reached, self.kept)
                self._surveyor.remove_folders(undone, self._folders)
                self._undone += undone

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
                self._folders |= {os.path.dirname(path) for path in chosen}
                with contextlib.suppress(OSError):
                    self._journal.write(self._baseline, self._folders)
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
        """Undo what commands of killed processes planted; returns the paths, also of what was undone before the kill.
        Placeholders, and changes that somebody made after the kill, stay. Takes a survey if there is something to
        settle. With ``commands_run`` a command may have outlived its swecli for a moment and still plant, so the state
        from before is kept for another time."""
        undone: list[str] = []
        for path in _leftovers(self._folder):
            with _locked(path) as leftover:
                if leftover is None:
                    continue
                state, last = leftover
                if state is not None:
                    undone += self._settled(state, last + _AFTER, placeholders)
                if commands_run:
                    _keep_state(path, last)
                else:
                    path.unlink(missing_ok=True)
        return tuple(dict.fromkeys(undone))

    def _settled(self, state: _State, until: float, placeholders: Sequence[str]) -> Sequence[str]:
        """Undo what was planted ``until`` then (Unix seconds); returns the paths with those undone before."""
        now = self._surveyor.steering()
        after = {
            name: content for name, content in now.items() if name not in placeholders and _changed_before(name, until)
        }
        undone = undo(state.before, after, self.kept)
        stays = frozenset(changed(state.before, now)) - {*undone}
        earlier = [path for path in state.undone if path not in stays]
        self._surveyor.remove_folders((*earlier, *undone), state.folders)
        return (*earlier, *undone)


class _State(Struct, frozen=True):
    """A journal's content: control files and their folders before the first command, and the paths of files that were
    undone, or were about to be."""

    before: Mapping[str, Content]
    folders: frozenset[str]
    undone: Sequence[str]


class _Journal:
    """The state from before, on the disk as long as commands run; each further line is the path of a file that is
    undone. The file is locked while its process lives, and its time is that of the last sign of life."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"running-{os.getpid()}-{secrets.token_hex(4)}.json"
        self._lock: int | None = None
        self._undone: dict[str, None] = {}

    def write(self, baseline: Mapping[str, Content], folders: frozenset[str]) -> None:
        make_private(self._path.parent)
        before = {
            path: None if content is None else base64.b64encode(content).decode() for path, content in baseline.items()
        }
        lines = [json.dumps({"before": before, "folders": sorted(folders)}), *map(json.dumps, self._undone)]
        new = self._path.with_suffix(".new")
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(_text(lines))
            new.replace(self._path)
        except OSError:
            os.close(descriptor)
            raise
        replaced, self._lock = self._lock, descriptor
        if replaced is not None:
            os.close(replaced)

    def add(self, undone: Sequence[str]) -> None:
        """Note paths of files that are about to be undone. A full disk keeps nothing from being undone."""
        new = [path for path in undone if path not in self._undone]
        self._undone.update(dict.fromkeys(new))
        if new and self._lock is not None:
            with contextlib.suppress(OSError):
                os.write(self._lock, _text(map(json.dumps, new)))

    def touch(self) -> None:
        os.utime(self._path)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _leftovers(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    # Those of this process are locked as well. Its number tells nothing: in a container the next one may have it again.
    yield from (folder / name for name in sorted(names) if _NAME.fullmatch(name))


@contextlib.contextmanager
def _locked(path: Path) -> Generator[tuple[_State | None, float] | None]:
    """The content of a journal (None if it is unreadable) and the time of its last sign of life, in Unix seconds;
    None if its process lives."""
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


def _parsed(text: bytes) -> _State | None:
    """A journal's content; None if it is unreadable. A last line that was cut off does not count."""
    state, *undone = text.decode("utf-8", "surrogateescape").split("\n")
    try:
        data = cast("dict[str, Any]", json.loads(state))
        return _State(
            {
                str(path): None if content is None else base64.b64decode(content, validate=True)
                for path, content in data["before"].items()
            },
            frozenset(map(str, data["folders"])),
            [str(json.loads(path)) for path in undone[:-1]],
        )
    except (ValueError, AttributeError, KeyError, TypeError, binascii.Error):
        return None


def _keep_state(path: Path, last: float) -> None:
    """Forget the undone files of a journal, which were told; ``last`` stays its last sign of life (Unix seconds)."""
    with contextlib.suppress(OSError), open(path, "r+b") as stream:
        stream.readline()
        stream.truncate(stream.tell())
        os.utime(stream.fileno(), (last, last))


def _changed_before(path: str, moment: float) -> bool:
    """Whether a file last changed before this time (Unix seconds). The time of a change of its state can't be set."""
    try:
        return os.lstat(path).st_ctime <= moment
    except OSError:
        return False
