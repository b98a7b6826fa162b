"""The playbook on disk: one JSON object per line, so that git can merge it; read leniently, written under a lock."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, field

from swecli.core.atomic_text import make_private, name_aside, one_writer, write_whole
from swecli.core.config.paths import keep_unshared
from swecli.core.playbook.bullet import PREFERENCES, Bullet, Expiry, from_record, to_record
from swecli.core.playbook.novelty import unfit
from swecli.core.playbook.playbook import Playbook, taken_in

NAME: Final = "playbook.jsonl"
ARCHIVE: Final = "playbook.archive.jsonl"
MAX_BYTES: Final = 4_000_000
MAX_LINE: Final = 20_000
MAX_LINES: Final = 10_000
_T = TypeVar("_T")
_State = tuple[int, int, int] | None
"""Modification time, size and inode of a file; None if it does not exist."""


class Reading(Struct):
    """Bullets of one file, and the lines that were not bullets."""

    bullets: list[Bullet] = field(default_factory=list[Bullet])
    problems: list[str] = field(default_factory=list[str])


def read_lines(text: str, name: str = NAME) -> Reading:
    """Every line that is a bullet. git's conflict markers and the common ancestor of a conflict are skipped; torn or
    foreign lines are reported."""
    reading, marks, bad, base = Reading(), 0, 0, False
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        reading.problems.append(f"{name} has {len(lines):,} lines; only the first {MAX_LINES:,} are used")
    for line in lines[:MAX_LINES]:
        if line.startswith(("<<<<<<<", "=======", ">>>>>>>", "|||||||")):
            marks += 1
            base = line.startswith("|||||||")
            continue
        if base or not line.strip():
            continue
        try:
            reading.bullets.append(from_record(json.loads(line) if len(line) <= MAX_LINE else None))
        except (ValueError, RecursionError):
            bad += 1
    if marks:
        reading.problems.append(f"{name} has the marks of a merge conflict; both sides are used")
    if bad:
        reading.problems.append(
            f"{bad} line{'s' if bad != 1 else ''} of {name} can't be read and {'are' if bad != 1 else 'is'} left out"
        )
    return reading


def written(bullets: Iterable[Bullet]) -> str:
    """Lines in an order that is independent of when bullets were added."""
    ordered = sorted(bullets, key=lambda bullet: (bullet.id, bullet.content))
    return "".join(json.dumps(to_record(bullet), ensure_ascii=False) + "\n" for bullet in ordered)


def read_file(path: Path) -> Reading:
    """The bullets of a file; empty if it does not exist.

    Raises:
        OSError: the file can't be read.
    """
    from swecli.core.workspace.text_file import NotRegularError, TooLargeError, read_bytes

    try:
        data, _ = read_bytes(path, MAX_BYTES)
    except FileNotFoundError:
        return Reading()
    except TooLargeError:
        return Reading([], [f"{path.name} is larger than {MAX_BYTES:,} bytes and is not used"])
    except NotRegularError:
        return Reading([], [f"{path.name} is no regular file and is not used"])
    return read_lines(data.decode("utf-8", "replace"), path.name)


class PlaybookFile:
    """One file with its archive. ``early`` holds bullets from before the file could be written; ``lock`` is the
    sessions' lock file, in a folder of the user's. A new file ``in_project`` is kept out of git until it is added."""

    def __init__(
        self,
        path: Path,
        archive: Path,
        lock: Path,
        *,
        early: Path | None = None,
        preferences: bool = False,
        in_project: bool = False,
    ):
        self.path = path
        self._archive = archive
        self._lock = lock
        self._early = early
        self._preferences = preferences
        self._in_project = in_project
        self.problems: tuple[str, ...] = ()
        """Problems found at the last read."""
        self._seen: tuple[_State, ...] = ()

    def has_news(self) -> bool:
        """Whether another process wrote the files since they were last read or written here, judged by their times."""
        return self._states() != self._seen

    def _states(self) -> tuple[_State, ...]:
        return tuple(_state(path) for path in (self.path, self._early, self._archive) if path is not None)

    def read(self) -> Playbook:
        """The current content of the files.

        Raises:
            OSError: a file can't be read.
        """
        playbook, problems = Playbook(), list[str]()
        self._seen = self._states()  # before it is read: what comes between is news
        for path in filter(None, (self.path, self._early, self._archive)):
            reading = read_file(path)
            problems += reading.problems
            for bullet in reading.bullets:
                if not self._preferences or bullet.section == PREFERENCES:
                    taken_in(playbook, bullet)
        playbook.bound()
        playbook.forgotten = 0
        self.problems = tuple(problems)
        return playbook

    def change(self, change: Callable[[Playbook], _T]) -> tuple[Playbook, _T, str]:
        """Reread the files, apply the change, and write them. Returns the new playbook, the change's result, and a
        sentence for the user or an empty text.

        Raises:
            OSError: the files can't be written; each bullet is still in one of them.
        """
        with one_writer(self._lock):
            playbook = self.read()
            result = change(playbook)
            playbook.bound()
            told = self._write(playbook)
            self._seen = self._states()
            if playbook.forgotten:
                told = f"{told} {playbook.forgotten} archived bullets were let go, the oldest first.".strip()
            return playbook, result, told

    def _write(self, playbook: Playbook) -> str:
        current = [bullet for bullet in playbook.all() if bullet.status != "archived"]
        archived = [bullet for bullet in playbook.all() if bullet.status == "archived"]
        there, old = os.path.exists(self.path), os.path.exists(self._archive)
        told = self._put_aside()
        names = {bullet.id for bullet in current}
        back = [bullet for bullet in read_file(self._archive).bullets if bullet.id in names] if old else []
        if archived or old:  # first, and with those that return: a bullet leaves a file once the other one has it
            make_private(self._archive.parent)
            _replace(self._archive, written((*archived, *back)))
        if current or there:
            make_private(self.path.parent)
            if self._in_project and not there:
                keep_unshared(self.path.parent)
            _replace(self.path, written(current))
        if back:
            _replace(self._archive, written(archived))
        if self._early is not None:
            with suppress(FileNotFoundError):
                self._early.unlink()
        return told

    def _put_aside(self) -> str:
        """Rename damaged files before writing new ones."""
        if not self.problems:
            return ""
        aside: list[str] = []
        for path in (self.path, self._archive):
            if os.path.lexists(path) and read_file(path).problems:
                target = name_aside(path)
                path.rename(target)
                aside.append(target.name)
        if not aside:
            return ""
        problems, self.problems = "; ".join(self.problems), ()
        outcome = (
            f"The file as it was is kept as {aside[0]}" if len(aside) == 1 else f"They are kept as {', '.join(aside)}"
        )
        return f"{problems}. {outcome}."


def _state(path: Path) -> _State:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def _replace(path: Path, text: str) -> None:
    """Write only a different text, so that a file of a repository is not touched needlessly."""
    with suppress(OSError, UnicodeDecodeError):
        if not os.path.islink(path) and path.read_text(encoding="utf-8") == text:
            return
    write_whole(path, text)


MAX_SEARCHED: Final = 1_000_000


def stale(bullet: Bullet, root: Path) -> str:
    """Why a bullet must not be shown, as a clause: it has expired, or somebody wrote text into the file that is not a
    record. Empty if it may be shown. Looks at files and runs nothing."""
    return unfit(bullet.content) or expired(bullet.expiry, root)


def expired(expiry: Expiry, root: Path) -> str:
    """What the sentence depends on that no longer exists in the project, as a clause; empty if everything exists."""
    texts: list[str] = []
    for name in expiry.paths:
        path = root / name
        if os.path.isabs(name) or ".." in Path(name).parts:
            continue
        if not os.path.exists(path):
            return f"{name} is gone"
        if expiry.symbol and os.path.isfile(path):
            with suppress(OSError), path.open("rb") as file:
                texts.append(file.read(MAX_SEARCHED).decode("utf-8", "replace"))
    if expiry.symbol and texts and not any(expiry.symbol in text for text in texts):
        return f"{expiry.symbol} is not in {' or '.join(expiry.paths)} any more"
    return ""


class PlaybookOptions(Struct, frozen=True):
    """``learn``: whether sentences are learned and outcomes counted, both of which write the file. ``reflect``: whether
    a model is asked at the end of an unattended session and after ``idle`` seconds without a message."""

    learn: bool = True
    reflect: bool = False
    idle: float = 600.0


class Playbooks(Struct, frozen=True):
    """The project's playbook, and the user's with preferences for every project. ``known`` are texts that the model
    sees anyway; ``masked`` masks secrets; ``clock`` returns Unix seconds."""

    root: Path
    project: PlaybookFile
    own: PlaybookFile
    options: PlaybookOptions = PlaybookOptions()
    known: Callable[[], tuple[str, ...]] = tuple
    masked: Callable[[str], str] = lambda text: text
    clock: Callable[[], float] = time.time
    core: frozenset[str] = frozenset()
    """Ids of the bullets in the prompt."""
