"""Checkpoints around a session's file changes, recorded off the event loop without blocking the work.

If recording fails, the work continues, and a notice says that it can't be undone.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from swecli.core.checkpoints.built import BUILT
from swecli.core.checkpoints.history import (
    UNFINISHED,
    ChangedSince,
    Difference,
    FileHistory,
    LazyHistory,
    RunChanges,
    Running,
)
from swecli.core.checkpoints.journal import Origin
from swecli.core.checkpoints.restore import Recent, Target
from swecli.core.permissions.paths import inside
from swecli.core.permissions.types import Effects
from swecli.core.protocol.events import FilesRestored, LeftFile
from swecli.core.uninterrupted import completed, uninterrupted
from swecli.core.workspace.text_file import shown_path
from swecli.lazy_pattern import lazy_pattern

MOST = 32
"""Watched paths per command."""
_WORD = lazy_pattern(r"""(?:[^\s'"<>|&;()=]|"[^"]*"|'[^']*')+""")
_SYSTEM = ("/dev", "/proc", "/sys", "/bin", "/sbin", "/usr", "/lib", "/lib64")


def named_outside(command: str, cwd: str, roots: Sequence[str], home: str) -> tuple[list[str], list[str]]:
    """Files, links and free names outside ``roots``, and folders there: both as absolute paths. Reads only the
    command's words: paths that a program finds by itself are not included."""
    files: dict[str, None] = {}
    folders: dict[str, None] = {}
    for match in _WORD.finditer(command[:20_000]):
        word = match.group().replace('"', "").replace("'", "")
        if word.startswith("~/"):
            word = home + word[1:]
        if "\0" in word or not (word.startswith(("/", "../")) or "/../" in word or word == ".."):
            continue
        path = os.path.normpath(os.path.join(cwd, word))
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if inside(path, roots) or inside(path, _SYSTEM) or path == os.sep:
            continue
        try:
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            is_folder = False
            if not os.path.isdir(os.path.dirname(path)):
                continue
        (folders if is_folder else files)[path] = None
    return list(files)[:MOST], list(folders)[:MOST]


_NAMED = 4


class UntrackedPaths:
    """Paths outside the record, for commands that run in ``cwd``. All are absolute."""

    def __init__(self, cwd: str, roots: Sequence[str], home: str) -> None:
        self._cwd = cwd
        self._roots = tuple(roots)
        self._home = home

    def watched(self, command: str) -> list[str]:
        """Watchable paths outside the workspace that a command names. Blocks on the disk."""
        return named_outside(command, self._cwd, self._roots, self._home)[0]

    def notice(self, unusual: Sequence[LeftFile]) -> str:
        """The notice about paths that are not covered, in a sentence or two."""
        built = [file for file in unusual if file.why == BUILT]
        unusual = [file for file in unusual if file.why != BUILT]
        if built:
            more = f" and {len(built) - _NAMED} more" if len(built) > _NAMED else ""
            folders = ", ".join(f"{self._shown(file.path)}/" for file in built[:_NAMED])
            told = f"Not tracked (generated): {folders}{more}. /undo can't revert changes by commands there."
            return f"{told} {self.notice(unusual)}" if unusual else told
        named = ", ".join(self._named(file) for file in unusual[:_NAMED])
        more = f" and {len(unusual) - _NAMED} more; /undo list names them" if len(unusual) > _NAMED else ""
        return f"/undo can't revert changes by commands to: {named}{more}."

    def named(self, command: str, listed: Sequence[LeftFile]) -> str:
        """Uncovered paths that a command names, as a sentence; empty if there are none."""
        words = {word.strip("'\"").rstrip("/").removeprefix("./") for word in command.split()}
        names = [self._named(file) for file in listed if self._shown(file.path) in words]
        _, folders = named_outside(command, self._cwd, self._roots, self._home)
        names += [f"{folder} (folder outside the workspace)" for folder in folders]
        return f"/undo would not restore: {', '.join(names[:_NAMED])}" if names else ""

    def named_first(self, paths: Sequence[str]) -> str:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return f"{self._shown(paths[0])}{more}"

    def _named(self, file: LeftFile) -> str:
        return f"{self._shown(file.path)} ({file.why})"

    def _shown(self, path: str) -> str:
        return shown_path(path, self._cwd)


FIRST_COPY_SECONDS = 5.0
"""Total seconds that commands wait for the first copy of the workspace."""
LISTED = 200
"""Most operations in a list."""
_FAILURES = (sqlite3.Error, OSError)


class Checkpoints:
    """The file history of one session. ``open_history`` is called in a thread on first use."""

    def __init__(
        self,
        open_history: Callable[[], FileHistory],
        cwd: str,
        roots: Sequence[str],
        home: str,
        *,
        wait: float = FIRST_COPY_SECONDS,
    ) -> None:
        self._history = LazyHistory(open_history, lambda text: self.tell(text))
        self._roots = tuple(roots)
        self._untracked = UntrackedPaths(cwd, roots, home)
        self._reported = False
        self._wait = wait
        self._deadline: float | None = None
        self._copying: asyncio.Task[None] | None = None
        self._trees = asyncio.Lock()
        self._order = asyncio.Lock()
        """Held while an edit begins, so that edits of one step are recorded, and undone, in the order of the calls."""
        self.failure = ""
        """Why recording stopped."""
        self.run_changes: RunChanges | None = None
        """What this run changed, known after ``close``; None if it is unknown."""
        self.tell: Callable[[str], None] = lambda text: None
        """Receives a sentence for the user."""

    def start(self) -> None:
        """Start copying the workspace in the background. Idempotent."""
        if self._copying is None and not self.failure:
            self._copying = asyncio.create_task(self._copy())

    async def _copy(self) -> None:
        try:
            history = await self._history.get()
            async with self._trees:
                await uninterrupted(asyncio.to_thread(history.first_copy))
        except _FAILURES as error:
            self._failed(error)

    @asynccontextmanager
    async def around(
        self, session: str, turn: int, item: str, title: str, effects: Effects, *, reads_only: bool = False
    ) -> AsyncGenerator[None]:
        """Record a call's changes while the block runs, however it ends. A call proven to change nothing
        (``reads_only``) does not wait for the first copy."""
        changes = bool(effects.writes or effects.opaque)
        if self.failure or not changes or (reads_only and not self._is_copied):
            yield
            return
        kind = "command" if effects.opaque else "edit"
        running = await self._begin(Origin(session, turn, item, kind, title), effects)
        try:
            yield
        finally:
            if running is not None:  # in every case, because only an ended operation can be undone
                await uninterrupted(self._end(running))

    async def _begin(self, origin: Origin, effects: Effects) -> Running | None:
        try:
            history = await self._history.get()
            if not effects.opaque:
                async with self._order:
                    return await _begun(history, lambda: history.begin(origin, effects.writes, watch=False))
            paths = [*effects.writes, *await asyncio.to_thread(self._untracked.watched, effects.command or "")]
            if not await self._copied():
                return await _begun(history, lambda: history.begin(origin, paths, watch=False, note=UNFINISHED))
            async with self._trees:
                await self._report_left_out(history)
                return await _begun(history, lambda: history.begin(origin, paths, watch=True))
        except _FAILURES as error:
            self._failed(error)
            return None

    async def _report_left_out(self, history: FileHistory) -> None:
        """Report uncovered paths once per session, except those an earlier session reported."""
        if not self._reported and (news := await asyncio.to_thread(history.newly_left_out)):
            self._reported = True
            self.tell(self._untracked.notice(news))

    @property
    def _is_copied(self) -> bool:
        return self._copying is not None and self._copying.done()

    def delays(self, effects: Effects) -> bool:
        self.start()
        return effects.opaque and not self.failure and not self._is_copied and self._seconds_left() > 0

    def _seconds_left(self) -> float:
        """Counted from the first wait: all commands share one time limit."""
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._wait
        return max(0.0, self._deadline - now)

    async def ready(self) -> None:
        """Wait for the first copy, at most as long as commands do."""
        if self._copying is not None and not self._copying.done():
            await asyncio.wait((self._copying,), timeout=self._seconds_left())

    async def _copied(self, *, report: bool = True) -> bool:
        """Whether the first copy is complete, after waiting; ``report`` notifies the user if not."""
        self.start()
        if self._copying is None or self.failure:
            return False
        if report:
            await self.ready()
        elif not self._copying.done():
            await asyncio.wait((self._copying,), timeout=self._wait)
        if not self._copying.done() and report:
            self.tell(
                "swecli is still copying this large workspace for the first time, so /undo can't revert the "
                "command now running. It can revert edits."
            )
        return self._copying.done() and not self.failure

    def warning(self, effects: Effects) -> str:
        """Uncovered paths that a command names, as a sentence; empty if there are none."""
        history = self._history.ready
        if effects.command is None or history is None:
            return ""
        return self._untracked.named(effects.command, history.not_covered)

    def restores(self, paths: Sequence[str], command: str) -> bool:
        """Whether all of these paths could be restored after ``command`` changed them."""
        of_git = any(".git" in path.split(os.sep) for path in paths)
        return not of_git and not self.unrestorable(paths, command)

    def unrestorable(self, paths: Sequence[str], command: str) -> str:
        """Which of these paths could not be restored after ``command`` deleted them, with the reason; empty if all
        could."""
        history = self._history.ready
        if self.failure:
            return "it: checkpoints have failed"
        if history is None or not self._is_copied:
            return "it: the first copy of the workspace is not complete"
        outside = [path for path in paths if not inside(path, self._roots)]
        if outside and (outside := [path for path in outside if path not in self._untracked.watched(command)]):
            return f"{self._untracked.named_first(outside)} (outside the workspace)"
        # git's internal files are lost with their folder, which needs no mention.
        left = [
            file
            for file in history.not_covered
            if file.why != "git's own data"
            and any(inside(path, (file.path,)) or inside(file.path, (path,)) for path in paths)
        ]
        # The last scan may not have seen that a file has grown.
        left += [LeftFile(path, why) for path in paths if not left and (why := history.why_too_large(path))]
        if not left:
            return ""
        return f"{self._untracked.named_first([file.path for file in left])} ({left[0].why})"

    async def _end(self, running: Running) -> None:
        history = await self._history.get()
        try:
            if running.watched:
                async with self._trees:
                    await asyncio.to_thread(history.end, running)
            else:
                await asyncio.to_thread(history.end, running)
        except _FAILURES as error:
            self._failed(error)

    async def undo(self, target: Target) -> FilesRestored:
        return await self._restore("undo", lambda history: history.undo(target))

    async def redo(self) -> FilesRestored:
        return await self._restore("redo", lambda history: history.redo())

    async def _restore(
        self, direction: str, work: Callable[[FileHistory], FilesRestored], *, only_looks: bool = False
    ) -> FilesRestored:
        """The result of ``work``, which is completed and returned even if the caller is cancelled once it has begun."""
        shown = "redo" if direction == "redo" else "undo"
        if self.failure:
            return FilesRestored(shown, reason=self.failure)
        try:
            history = await self._history.get()
            async with self._trees:
                begun = asyncio.to_thread(work, history)
                return await (uninterrupted(begun) if only_looks else completed(begun))
        except _FAILURES as error:
            return FilesRestored(shown, reason=f"Cannot use the checkpoint store ({error}). Nothing was changed.")

    async def rewind(self, turn: int, name: str) -> FilesRestored:
        """Undo the changes of ``turn`` and later ones; ``unwind`` finds them by ``name``."""
        return await self._restore("undo", lambda history: history.rewind(turn, name))

    async def unwind(self, name: str, turn: int) -> FilesRestored:
        """Redo what a rewind undid, after undoing changes of turns after ``turn``."""
        return await self._restore("redo", lambda history: history.unwind(name, turn))

    async def preview(self, turn: int) -> FilesRestored:
        """The result ``rewind`` would have now."""
        return await self._restore("undo", lambda history: history.preview(turn), only_looks=True)

    async def changed_since(self, turns: Sequence[int]) -> dict[int, ChangedSince]:
        """Changes since each turn; empty if unknown."""
        if self.failure:
            return {}
        try:
            history = await self._history.get()
            return await uninterrupted(asyncio.to_thread(history.changed_since, turns))
        except _FAILURES:
            return {}

    async def recent(self) -> Recent:
        if self.failure:
            return Recent(reason=self.failure)
        try:
            history = await self._history.get()
            await self._copied(report=False)
            return await uninterrupted(asyncio.to_thread(history.recent, LISTED))
        except _FAILURES as error:
            return Recent(reason=f"Cannot read the checkpoint store ({error}).")

    async def difference(self, below: str = "") -> Difference:
        if self.failure:
            return Difference(reason=self.failure)
        try:
            history = await self._history.get()
            return await uninterrupted(asyncio.to_thread(history.difference, below))
        except _FAILURES as error:
            return Difference(reason=f"Cannot read the checkpoint store ({error}).")

    async def created(self) -> tuple[str, ...]:
        """Absolute paths of the files that the session's edits have created; none if they are unknown."""
        if self.failure:
            return ()
        try:
            history = await self._history.get()
            return await uninterrupted(asyncio.to_thread(history.created))
        except _FAILURES:
            return ()

    async def close(self) -> None:
        """Stop background work and close the store."""
        if not self._history.begun:
            return
        try:
            history = await self._history.get()
        except _FAILURES:
            return
        history.stop()
        if self._copying is not None:
            await asyncio.gather(self._copying, return_exceptions=True)
        async with self._trees:
            if not self.failure:
                with suppress(*_FAILURES):  # the front-end then lists what the tools reported
                    self.run_changes = await asyncio.to_thread(history.run_changes)
            await asyncio.to_thread(history.close)

    def _failed(self, error: Exception) -> None:
        if not self.failure:
            self.failure = (
                f"swecli can no longer record file changes ({error}), so /undo does not work. "
                "Everything else still works. Free some space or check the state folder, then restart swecli."
            )
            self.tell(self.failure)


async def _begun(history: FileHistory, work: Callable[[], Running]) -> Running:
    """``work`` in a thread; if the caller is cancelled meanwhile, the operation it began is ended: nothing ran."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await uninterrupted(_ended_after(task, history))
        raise


async def _ended_after(begun: asyncio.Future[Running], history: FileHistory) -> None:
    await asyncio.wait((begun,))
    if begun.exception() is None:
        await asyncio.to_thread(history.end, begun.result())
