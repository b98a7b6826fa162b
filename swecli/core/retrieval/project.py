"""The index of the session's folder: opened, built in the background, kept fresh, queried."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from swecli.core.git import git_facts, head_commit
from swecli.core.workspace.search import module_folders

if TYPE_CHECKING:  # compiles patterns at import, too slow for the start
    from swecli.core.retrieval.index import FileState, Index
    from swecli.core.retrieval.named import Files, Named
    from swecli.core.retrieval.ranking import Corpus
    from swecli.core.retrieval.retrieve import Retrieval

SETTLED: Final = 2.0
"""Seconds from the start of a session to the first look at the index, unless a message arrives first."""
FIRST_WAIT: Final = 1.0
"""Seconds that a message waits for the first index of a project; later ones use it."""
UNATTENDED_WAIT: Final = 5.0
"""The same for unattended runs, which may get no later message; only if the index can be ready by then."""
READY_FILES: Final = 500
"""Most files whose index can be ready by then: some 200 a second on a usual machine."""
TOOL_WAIT: Final = 15.0
"""The same for a tool call of the model, which has no alternative."""
FRESH_WAIT: Final = 0.15
"""Seconds that a message waits for changes on disk."""
_LOOK_SECONDS: Final = 1.0
"""Seconds for which a look at the disk is valid."""
_BUILD_SECONDS: Final = 120.0
_START_SECONDS: Final = 10.0
_LOWEST: Final = 19
"""Niceness of what nobody waits for."""
_SMALL_PROJECT: Final = 150
"""Most files to index in this process; a process of its own takes longer to start."""
_STALE_SECONDS: Final = 6 * 3_600
"""Seconds after which an index from an earlier commit is rebuilt, because its history is outdated."""


class IndexState(Struct, frozen=True):
    """``files`` are the known ones; ``complete`` is False if there are more, most of them in the folders ``left_out``.
    ``problem`` is the reason for a missing index."""

    files: int = 0
    complete: bool = True
    building: bool = False
    problem: str = ""
    left_out: tuple[tuple[str, int], ...] = ()


class OpenProject(Struct, frozen=True):
    """An index with the changes since it was built."""

    corpus: Corpus
    files: Files

    def retrieval(self, text: str) -> Retrieval:
        """Files that a text names and is about."""
        from swecli.core.retrieval.retrieve import retrieve

        return retrieve(self.corpus, text, self.files)


def open_project(
    root: Path, place: Path | None, git: str = "", environment: Mapping[str, str] | None = None
) -> OpenProject:
    """The project as it is now; takes seconds if its index must be built."""
    from swecli.core.retrieval.building import keep, kept_index, make_index

    index = kept_index(place) if place is not None else None
    opened, outdated = refreshed(index, root) if index is not None else (None, True)
    if opened is not None and not outdated:
        return opened
    index = make_index(root, git, environment)
    if place is not None:
        with suppress(OSError):  # an index that can't be kept is rebuilt
            keep(index, place)
    return refreshed(index, root)[0]


def refreshed(index: Index, root: Path, before: OpenProject | None = None) -> tuple[OpenProject, bool]:
    """The project as it is now, and whether its index must be rebuilt because of many changes. Files that ``before``
    has already read are not read again."""
    from swecli.core.retrieval.indexing import MOST_CHANGED, changes_since, is_there, read_document, state_of
    from swecli.core.retrieval.named import Files
    from swecli.core.retrieval.ranking import Corpus, Fresh

    changes = changes_since(index, root)
    known: dict[FileState | None, Fresh] = (
        {entry.state: entry for entry in before.corpus.fresh} if before is not None else {}
    )
    fresh: list[Fresh] = []
    for path in changes.changed[:MOST_CHANGED]:
        state = state_of(root, path)
        if state in known:
            fresh.append(known[state])
        elif (document := read_document(root, path)) is not None:
            fresh.append(Fresh.of(document))
    corpus = Corpus(index, tuple(fresh), changes.gone)
    if before is None or before.corpus != corpus:
        beyond = None if index.complete else partial(is_there, root)
        before = OpenProject(corpus, Files((path for _, path in corpus.paths()), str(root), beyond))
    return before, changes.too_many


class ProjectIndex:
    """All work happens off the event loop. ``git`` returns the program to query for the history, or "" if it must not
    be started."""

    def __init__(
        self,
        root: Path,
        place: Path | None,
        git: Callable[[], str] = str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``place`` is the file of the index; None keeps it in memory for this run."""
        self.root = root
        self._place = place
        self._git = git
        self._environment = dict(environment or {})
        self._index: Index | None = None
        self._known: OpenProject | None = None
        self._task: asyncio.Task[None] | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0
        self._made = False
        self._making = False
        self._problem = ""
        self._asked = False
        """Whether there was a query."""
        self._closed = False

    @property
    def state(self) -> IndexState:
        busy = self._task is not None and not self._task.done()
        index, building = self._index, self._making or (self._index is None and busy)
        if index is None:
            return IndexState(building=building, problem=self._problem)
        size = self._known.corpus.size if self._known is not None else len(index.files)
        return IndexState(size, index.complete, building, self._problem, index.left_out)

    def missing(self) -> str:
        """The reason for a missing index, as a clause."""
        return self._problem or "swecli is still building it"

    def begin(self) -> None:
        """Check the disk, and build the index if it is missing or too much has changed. On the event loop."""
        busy = self._task is not None and not self._task.done()
        if busy or self._closed or self._problem or time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._task = asyncio.create_task(self._work())

    def begin_soon(self) -> None:
        """Begin once the interface is up; reads nothing before."""
        self._timer = asyncio.get_running_loop().call_later(SETTLED, self.begin)

    async def retrieval(self, text: str, *, first_wait: float = FIRST_WAIT, if_ready: bool = False) -> Retrieval | None:
        """Files that a text names and is about; None while there is no index. ``if_ready``: wait for the first one only
        if the number of files says that it can be ready in time."""
        self._asked = True
        if if_ready and self._known is None and not await asyncio.to_thread(self._may_be_ready):
            first_wait = 0.0
        self.begin()
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=first_wait if self._known is None else FRESH_WAIT)
        return await asyncio.to_thread(self._known.retrieval, text) if self._known is not None else None

    async def named(self, text: str) -> tuple[Named, ...]:
        """Files that a text names by their paths, without an index."""
        from swecli.core.retrieval.indexing import is_there
        from swecli.core.retrieval.named import Files

        files = Files((), str(self.root), partial(is_there, self.root))
        return tuple(await asyncio.to_thread(files.named_by, text))

    def _may_be_ready(self) -> bool:
        from swecli.core.retrieval.indexing import is_small

        return (self._place is not None and os.path.exists(self._place)) or is_small(self.root, READY_FILES)

    async def close(self, *, finish: bool = False) -> None:
        """Stop the process and all tasks. ``finish``: have another process, at low priority, finish the index that
        queries lacked, so that the next run has it."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._child is not None:
            with suppress(ProcessLookupError):
                self._child.kill()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if finish and self._asked and self._index is None and self._place is not None and not self._problem:
            await asyncio.to_thread(self._finish_later, self._place)

    def _finish_later(self, path: Path) -> None:
        from swecli.core.retrieval.building import command

        if not hasattr(os, "fork"):
            return
        request = {"root": str(self.root), "place": str(path), "git": self._git(), "environment": self._environment}
        with suppress(OSError, subprocess.SubprocessError):  # the next run makes it
            subprocess.run(
                command(module_folders(), outlives=True),
                input=json.dumps({**request, "outlives": True, "nice": _LOWEST}).encode() + b"\n",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=self._environment,
                timeout=_START_SECONDS,
                check=False,
            )

    async def _work(self) -> None:
        try:
            if await asyncio.to_thread(self._refreshed):
                await self._make()
                await asyncio.to_thread(self._refreshed)
        except OSError as error:
            self._problem = f"cannot build the index: {error}"
        self._looked = time.monotonic()

    def _refreshed(self) -> bool:
        """Apply the changes on disk. True if the index must be rebuilt."""
        from swecli.core.retrieval.building import kept_index

        if self._index is None and self._place is not None:
            self._index = kept_index(self._place)
        if self._index is None:
            return True
        self._known, outdated = refreshed(self._index, self.root, self._known)
        return outdated or self._is_stale(self._index)

    def _is_stale(self, index: Index) -> bool:
        """Whether the index is from an earlier commit and too old."""
        if self._made or self._place is None or not index.head:
            return False
        try:
            age = time.time() - self._place.stat().st_mtime
        except OSError:
            return False
        git = git_facts(self.root)
        return age > _STALE_SECONDS and git is not None and head_commit(git) not in ("", index.head)

    async def _make(self) -> None:
        """Build the index: here for a small project, otherwise in a process at low priority."""
        if self._made and self._index is not None:
            return  # once in a session, or constant changes would cause constant indexing
        self._made = self._making = True
        try:
            self._index = await asyncio.to_thread(self._made_here) or await self._made_beside() or self._index
        finally:
            self._making = False

    async def _made_beside(self) -> Index | None:
        with tempfile.TemporaryDirectory(prefix="swecli-index-") as folder:
            path = self._place or Path(folder) / "project.index"
            if await self._made_there(path):
                from swecli.core.retrieval.building import kept_index

                return await asyncio.to_thread(kept_index, path)
        return None

    def _made_here(self) -> Index | None:
        from swecli.core.retrieval.building import keep, make_index
        from swecli.core.retrieval.indexing import is_small

        if not is_small(self.root, _SMALL_PROJECT):
            return None
        index = make_index(self.root, self._git(), self._environment)
        if self._place is not None:
            with suppress(OSError):  # still serves this run
                keep(index, self._place)
        return index

    async def _made_there(self, path: Path) -> bool:
        from swecli.core.retrieval.building import command

        git = await asyncio.to_thread(self._git)
        request = {"root": str(self.root), "place": str(path), "git": git, "environment": self._environment}
        self._child = child = await asyncio.create_subprocess_exec(
            *command(module_folders()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/" if sys.platform != "win32" else None,
            env=self._environment,
        )
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stderr is not None
            child.stdin.write(json.dumps(request).encode() + b"\n")
            async with asyncio.timeout(_BUILD_SECONDS):  # its stdin stays open: when it closes, the process ends
                _, stderr = await asyncio.gather(child.stdout.read(), child.stderr.read())
                status = await child.wait()
        except TimeoutError:
            self._problem = f"building the index took longer than {_BUILD_SECONDS:.0f} seconds"
            return False
        finally:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            self._child = None
        if status:
            lines = stderr.decode("utf-8", "replace").strip().splitlines()
            self._problem = f"cannot build the index: {lines[-1] if lines else f'exit status {status}'}"
        return not status
