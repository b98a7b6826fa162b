"""One server for one project, across its runs: started when needed, stopped when idle, asked about edits."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.language_servers.definitions import SKIPPED, Program, Surroundings
from swecli.core.language_servers.findings import Finding, brought
from swecli.core.language_servers.peer import Command, ServerEnded, beside
from swecli.core.language_servers.protocol import Diagnostic, read_errors
from swecli.core.language_servers.server import Document, RunningServer, python_of
from swecli.core.language_servers.typescript import LACKING, tsserver_for
from swecli.core.llm.json_values import as_object
from swecli.core.sandbox.launch import SandboxError, begun
from swecli.core.workspace.server_log import ServerLog

MOST_FAILURES: Final = 3
"""Failures after which only the user starts the server again."""
FOLLOWED: Final = 30.0
"""Seconds after a check during which later reports about the same files are passed on."""
SETTLED: Final = 1.0
"""Seconds after which the last list of a server without versions counts if nothing waits for it."""
MOST_FILES: Final = 20_000
"""Maximum number of examined names; changes beyond it go unnoticed."""
_CREATED, _CHANGED, _DELETED = 1, 2, 3

State = Literal["not started", "starting", "reading", "checking", "ready", "idle", "stopped", "failed"]


class Change(Struct, frozen=True):
    """A file's text before and after a call; None = no file. ``name`` is its path as the model knows it."""

    path: Path
    name: str
    before: str | None
    after: str | None


class _Known(Struct):
    """State of a file: its text, its errors, and until when its changes are reported."""

    text: str
    errors: tuple[Diagnostic, ...]
    name: str = ""
    agent: str = ""
    until: float = 0.0


class ProjectServer:
    """``late`` receives findings that arrive after their call, with the agent that made the call; ``failed`` is called
    once if the server fails."""

    def __init__(
        self,
        program: Program,
        root: Path,
        log: ServerLog,
        around: Surroundings,
        late: Callable[[ProjectServer, Sequence[Finding], str], None],
        failed: Callable[[ProjectServer], None],
        idle: float,
    ) -> None:
        self.program = program
        self.root = root
        self.log = log
        self._around = around
        self._late = late
        self._failed = failed
        self._idle = idle
        self._run: RunningServer | None = None
        self._state: State = "not started"
        self._starting = asyncio.Lock()
        self._turn = asyncio.Lock()
        """Serialises checks in the order of the calls."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._files = FileSnapshot(root, program.server.languages, program.server.roots)
        self._used = 0.0
        self._queued: Counter[Path] = Counter()
        self._carried: dict[Path, _Known] = {}
        """Files as they were before edits with unreported errors."""
        self._before: dict[Path, str | None] = {}
        """Texts before edits whose checks were left to later ones."""
        self._last: dict[Path, _Known] = {}
        self._late_checks: list[Check] = []
        """Checks that edits did not wait for, and the next request does."""
        self._awaited_in_vain = False
        """Whether a request went without them; none waits again until the server has caught up."""
        self._behind = 0
        self._failures = 0
        self._has_run = False
        self._tsserver: Path | None = None
        self.lacks = ""
        """What prevents a start, as a clause."""
        self.contained = False
        self.error = ""
        """The last error, as a clause."""

    @property
    def name(self) -> str:
        return self.program.server.name

    @property
    def state(self) -> State:
        if self._state == "ready" and self._run is not None and self._run.doing:
            return "reading"
        if self._state == "ready" and self._turn.locked():
            return "checking"
        return self._state

    @property
    def doing(self) -> str:
        return self._run.doing if self._run is not None else ""

    @property
    def pid(self) -> int | None:
        return self._run.peer.pid if self._run is not None else None

    @property
    def open_files(self) -> int:
        return len(self._run.documents) if self._run is not None else 0

    @property
    def behind(self) -> bool:
        """Whether a caller stopped waiting for it and it has not caught up since."""
        return self._behind > 0

    @property
    def is_useless(self) -> bool:
        """Whether it could never be started."""
        return bool(self.lacks) or (self._failures > 0 and not self._has_run)

    def prepare(self, path: Path) -> None:
        """Look for its requirements besides the program, for this file; they may have been installed since."""
        if self._run is not None or self.program.server.needs != "tsserver":
            return
        if "path" in as_object(self.program.server.options.get("tsserver")):
            return  # the user's choice
        search = self._around.environment.get("PATH", "")
        self._tsserver, possible = tsserver_for(path.parent, self.program.path, search)
        if possible and self.lacks:
            self.lacks, self.error, self._state = "", "", "not started"
        elif not possible and not self.lacks:
            self.lacks = self.error = LACKING
            self._state = "failed"
            self._failed(self)

    # --- a run ------------------------------------------------------------------------------------------------

    async def running(self) -> RunningServer:
        """The server, started if necessary.

        Raises:
            ServerEnded: it can't be started, or has failed too often.
        """
        self._used = asyncio.get_running_loop().time()
        async with self._starting:
            if self._run is not None and not self._run.peer.ended.is_set():
                return self._run
            if self.lacks:
                raise ServerEnded(self.lacks)
            if self._state == "stopped":
                raise ServerEnded("it was stopped")
            if self._failures >= MOST_FAILURES:
                raise ServerEnded(f"it failed {self._failures} times, the last time because {self.error}")
            self._state = "starting"
            try:
                return await self._started()
            except ServerEnded as error:
                self._note_failure(str(error))
                raise
            except BaseException:
                self._state = "not started"
                raise

    async def _started(self) -> RunningServer:
        await asyncio.to_thread(self._files.look)
        command = await _start_command(self.program, self.root, self._around)  # its launch is the peer's from here on
        self.contained = command.launch is not None
        server = self.program.server
        python = python_of(self.root) if ".py" in server.languages and self.contained else None
        if python is not None:  # it runs there, so only in the sandbox
            server = replace(server, settings={"python": {"pythonPath": python}, **server.settings})
        if self._tsserver is not None:
            own = {"fallbackPath": str(self._tsserver), **as_object(server.options.get("tsserver"))}
            server = replace(server, options={**server.options, "tsserver": own})
        run = RunningServer(server, self.root, self.log, self._published)
        self.log.line(f"starts: {' '.join(command.words)}")
        await run.start(command)
        self._run, self._state, self._has_run = run, "ready", True
        beside(self._watch(run), self._tasks)
        return run

    async def _watch(self, run: RunningServer) -> None:
        """Record when the server ends by itself, and stop it after its idle time."""
        loop = asyncio.get_running_loop()
        while not run.peer.ended.is_set():
            left = self._used + self._idle - loop.time()
            if left <= 0 and not self._turn.locked():
                self._forget(run, "idle")  # whoever comes meanwhile starts another one
                await run.close("it was idle")
                return
            try:
                await asyncio.wait_for(run.peer.ended.wait(), max(left, 0.05))
            except TimeoutError:
                continue
        if self._run is run:
            await run.close("")
            self._forget(run, "failed")
            self._note_failure(run.peer.trouble)

    def _forget(self, run: RunningServer, state: State) -> None:
        if self._run is run:
            self._run, self._state = None, state
            self._last.clear()
            self._carried.clear()
            self._before.clear()

    def _note_failure(self, reason: str) -> None:
        self._state = "failed"
        self._failures += 1
        self.error = reason
        self.log.line(f"failed: {reason}")
        if self._failures == 1:
            self._failed(self)

    async def stop(self, state: State = "stopped") -> None:
        """Stop the server and its open checks."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        run, self._state = self._run, state
        if run is not None:
            await run.close("it was stopped")
            self._forget(run, state)
        self._behind = 0

    async def restart(self) -> None:
        await self.stop("not started")
        self._failures, self.error = 0, ""
        beside(self._quietly(self.running()), self._tasks)

    async def _quietly(self, work: Awaitable[object]) -> None:
        try:
            await work
        except ServerEnded:
            return  # it is noted where it failed

    # --- what an edit brings ----------------------------------------------------------------------------------

    def expect(self, path: Path, text: str) -> None:
        """Announce a change of this file, so that the server knows its current text."""
        beside(self._quietly(self._primed(path, text)), self._tasks)

    async def _primed(self, path: Path, text: str) -> None:
        run = await self.running()
        if self._queued[path]:
            return  # what comes before it is not known to the server yet
        async with self._turn:
            if not self._queued[path]:
                document = run.show(path, text)
                await run.ready()
                await run.errors((document,))

    async def show(self, run: RunningServer, path: Path, text: str) -> None:
        """Give the server the current text of a file, between two checks.

        Raises:
            ServerEnded: it has ended.
        """
        async with self._turn:
            run.show(path, text)

    async def notify_changes(self, run: RunningServer) -> None:
        """Notify the server of changes on disk.

        Raises:
            ServerEnded: it has ended.
        """
        run.changed_on_disk(await asyncio.to_thread(self._files.look))

    def check(self, changes: Sequence[Change], agent: str) -> Check:
        """Check these changes in the background."""
        for change in changes:
            self._queued[change.path] += 1
        result: asyncio.Future[tuple[Finding, ...]] = asyncio.get_running_loop().create_future()
        check = Check(tuple(changes), agent, result)
        if self.program.server.reads_disk:
            check.doubtful = frozenset(change.path for change in changes if not self._has_reported(change))
        beside(self._checked(check), self._tasks)
        return check

    def _has_reported(self, change: Change) -> bool:
        """Whether the server sent a list for a file as it was before a change."""
        document = self._run.documents.get(change.path) if self._run is not None else None
        return change.before is None or (document is not None and document.text == change.before and document.heard)

    async def _checked(self, check: Check) -> None:
        findings: tuple[Finding, ...] = ()
        try:
            run = await self.running()
            async with self._turn:
                if not self._is_superseded(check):
                    findings = await self._compared(run, check)
        except ServerEnded:
            pass  # noted where it failed; the edit's result goes without
        finally:
            if check.given_up:
                self._behind = max(0, self._behind - 1)
                self._awaited_in_vain = self._awaited_in_vain and self.behind
            for change in check.changes:
                self._queued[change.path] -= 1
            self._queued = +self._queued
            if not check.found.done():
                check.found.set_result(findings)
        if check.given_up and findings:
            waiting = [change for change in check.changes if self._queued[change.path]]
            names = {change.name for change in waiting}
            for change in waiting:  # the next check tells them, if they are still there then
                self._carried.setdefault(change.path, check.bases[change.path])
            left = tuple(finding for finding in findings if finding.path not in names)
            if left:
                self._late(self, left, check.agent)

    def give_up(self, check: Check) -> None:
        """Stop waiting for a check; its findings are reported later."""
        if not check.found.done():
            check.given_up = True
            self._behind += 1
            self._late_checks.append(check)

    def late_checks(self, agent: str) -> Sequence[Check]:
        self._late_checks = [check for check in self._late_checks if not check.found.done()]
        return [check for check in self._late_checks if check.agent == agent]

    def is_at_work(self, agent: str) -> bool:
        """Whether an agent's changes wait for it and it will say something about them: because it starts, reports work,
        has a question to answer, or has so far sent a list of errors for every text, clean ones included."""
        run = self._run
        works = run is None or run.doing or run.peer.is_asked or not run.leaves_unanswered
        return bool(works and not self._awaited_in_vain and self.late_checks(agent))

    def wait_no_more(self, agent: str) -> None:
        """What comes for the agent's changes so far is told whenever it comes."""
        self._awaited_in_vain = self._awaited_in_vain or bool(self.late_checks(agent))
        self._late_checks = [check for check in self._late_checks if check.agent != agent]

    def _is_superseded(self, check: Check) -> bool:
        """Whether later checks of the same files wait, which will answer for this one too."""
        if not check.given_up or any(self._queued[change.path] < 2 for change in check.changes):
            return False
        for change in check.changes:
            self._before.setdefault(change.path, change.before)
        return True

    async def _compared(self, run: RunningServer, check: Check) -> tuple[Finding, ...]:
        check.changes = tuple(
            replace(change, before=self._before.pop(change.path, change.before)) for change in check.changes
        )
        check.bases = await self._bases(run, check.changes)
        run.changed_on_disk(await asyncio.to_thread(self._files.look))
        documents: list[Document] = []
        there = [change for change in check.changes if change.after is not None]
        for change in check.changes:
            self._last.pop(change.path, None)
            if change.after is None:
                run.hide(change.path)
        for change in there:
            document = run.show(change.path, change.after or "")
            run.saved(document)
            documents.append(document)
        current = await run.errors(documents)
        if check.given_up and not run.is_exact:  # a list for an older text may have been late, too
            await asyncio.sleep(SETTLED)
            current = await run.errors(documents)
        findings: list[Finding] = []
        until = asyncio.get_running_loop().time() + FOLLOWED
        for change, errors in zip(there, current, strict=True):
            base, text = check.bases[change.path], change.after or ""
            new = await _compare(change.name, base.errors, errors, base.text, text)
            findings += new
            if change.path in check.doubtful:
                listed = await _compare(change.name, (), errors, "", text)
                findings += (replace(finding, unsure=True) for finding in listed if finding not in new)
            self._last[change.path] = _Known(text, errors, change.name, check.agent, until)
        self._used = asyncio.get_running_loop().time()
        return tuple(findings)

    async def _bases(self, run: RunningServer, changes: Sequence[Change]) -> dict[Path, _Known]:
        """The files before the changes. A moved file had its errors under its old name."""
        before = [change for change in changes if change.before is not None]
        documents = [run.show(change.path, change.before or "") for change in before]
        await run.ready()
        errors = await run.errors(documents)
        bases = {
            change.path: _Known(change.before or "", listed) for change, listed in zip(before, errors, strict=True)
        }
        removed = [change for change in before if change.after is None]
        for change in changes:
            if change.path in self._carried:
                bases[change.path] = self._carried.pop(change.path)
            elif change.path not in bases:
                same = [other for other in removed if other.path.suffix == change.path.suffix]
                moved = next(
                    (other for other in same if other.path.name == change.path.name), same[0] if same else None
                )
                bases[change.path] = bases[moved.path] if moved is not None else _Known("", ())
        return bases

    def _published(self, document: Document) -> None:
        """Handle a list that the server sent by itself; if the file was checked recently, report its changes."""
        last = self._last.get(document.path)
        now = asyncio.get_running_loop().time()
        if last is None or now > last.until or self._queued[document.path] or document.text != last.text:
            return
        beside(self._followed(document, last), self._tasks)

    async def _followed(self, document: Document, last: _Known) -> None:
        if document.published is None:
            return
        errors = await asyncio.to_thread(read_errors, document.published)
        findings = await _compare(last.name, last.errors, errors, last.text, last.text)
        if findings and self._last.get(document.path) is last and not self._queued[document.path]:
            self._last[document.path] = _Known(
                last.text, tuple(dict.fromkeys((*last.errors, *errors))), last.name, last.agent, last.until
            )
            self._late(self, findings, last.agent)


class Check:
    """One question to a server, with its answer once known. ``given_up``: the caller stopped waiting."""

    def __init__(self, changes: tuple[Change, ...], agent: str, found: asyncio.Future[tuple[Finding, ...]]) -> None:
        self.changes = changes
        self.agent = agent
        self.found = found
        self.given_up = False
        self.bases: Mapping[Path, _Known] = {}
        self.doubtful: frozenset[Path] = frozenset()
        """Files whose errors before the changes the server had not reported when it could last read them."""


async def _compare(
    name: str, before: Sequence[Diagnostic], after: Sequence[Diagnostic], old: str, new: str
) -> tuple[Finding, ...]:
    """Compare in a thread if there is much to compare."""
    if len(before) + len(after) < 200 and len(old) + len(new) < 200_000:
        return brought(name, before, after, old, new)
    return await asyncio.to_thread(brought, name, before, after, old, new)


CACHES: Mapping[str, str] = MappingProxyType(
    {
        "MYPY_CACHE_DIR": "mypy",  # a plug-in of pylsp runs mypy, which otherwise writes into the project
        "RUFF_CACHE_DIR": "ruff",
        "PYTHONPYCACHEPREFIX": "pycache",
    }
)
"""Variables that name caches which would be in the project, and their places in the private temporary folder of a
contained server."""


async def _start_command(program: Program, root: Path, around: Surroundings) -> Command:
    """The command to start a server.

    Raises:
        ServerEnded: it must not be started.
    """
    server = program.server
    launch = None
    with contextlib.suppress(SandboxError):
        launch = await begun(partial(around.sandbox.begin_reader, root)) if server.sandboxed else None
    if launch is None and program.inside:
        raise ServerEnded(f"{program.path} is a file of the workspace and would run unsandboxed; install it elsewhere")
    if launch is None and server.sandboxed and around.contain:
        raise ServerEnded(f"the sandbox is {around.sandbox.state.text}")
    environment = {**around.environment, **(launch.environment if launch is not None else around.environment)}
    folder = environment.get("TMPDIR") or "/tmp"
    if launch is not None:  # it may not write in the project, and some servers report nothing without a cache
        environment |= {name: f"{folder}/{subfolder}" for name, subfolder in CACHES.items()}
    environment |= {name: value.replace("${TMPDIR}", folder) for name, value in server.env.items()}
    return Command((program.path, *server.command[1:]), root, environment, launch)


class FileSnapshot:
    """The files with certain extensions below a folder, as of the last look. Blocks on the disk."""

    def __init__(self, root: Path, endings: Collection[str], marks: Collection[str] = ()) -> None:
        """``marks`` are names of other relevant files, such as a project's configuration."""
        self._root = str(root)
        self._endings = tuple(endings)
        self._marks = frozenset(marks)
        self._known: dict[str, tuple[int, int]] = {}

    def look(self) -> list[tuple[str, int]]:
        """Files created (1), changed (2) or deleted (3) since the last look."""
        now = self._files()
        changes = [
            (path, _CHANGED if path in self._known else _CREATED)
            for path, stamp in now.items()
            if self._known.get(path) != stamp
        ]
        changes += [(path, _DELETED) for path in self._known if path not in now]
        self._known = now
        return changes

    def _files(self) -> dict[str, tuple[int, int]]:
        stamps: dict[str, tuple[int, int]] = {}
        folders, left = [self._root], MOST_FILES
        while folders and left > 0:
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        left -= 1
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in SKIPPED:
                                folders.append(entry.path)
                        elif entry.name.lower().endswith(self._endings) or entry.name in self._marks:
                            with contextlib.suppress(OSError):  # a link that leads nowhere, such as an editor's lock
                                status = entry.stat()
                                stamps[entry.path] = (status.st_mtime_ns, status.st_size)
            except OSError:
                continue  # gone meanwhile, or not ours to read
        return stamps
