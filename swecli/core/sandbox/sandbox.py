"""A session's sandbox: the machine's layer, detected once, and a launch for each command."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from swecli.core.permissions.rules import NO_READ_RULES, ReadRules
from swecli.core.sandbox.bubblewrap import Placeholders, placeholders_folder
from swecli.core.sandbox.guard import Guard
from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.plan import (
    Disk,
    Plan,
    Request,
    SandboxOptions,
    SandboxState,
    home_secrets,
    masking,
    reading,
)
from swecli.core.sandbox.probe import Folders, Machine, SandboxWorkspace, off, planned, without_refused_sockets
from swecli.core.sandbox.survey import Abandoned, Surveyor
from swecli.core.secret_names import secret_names
from swecli.core.workspace.process_tree import is_running
from swecli.lazy_pattern import lazy_pattern

LINGER = 1.0
"""Seconds for which placeholders stay for a next command: removing a folder takes a file system time."""
_NAME = lazy_pattern(r"swecli-sandbox-(\d+)-.*")


class PrivateTemporary:
    """Temporary directory of commands: created on first use; ``close`` removes it together with those of dead
    processes."""

    def __init__(self) -> None:
        self._path: str | None = None

    @property
    def path(self) -> str:
        """The directory.

        Raises:
            OSError: it can't be created.
        """
        if self._path is None or not os.path.isdir(self._path):
            made = tempfile.mkdtemp(prefix=f"swecli-sandbox-{os.getpid()}-")
            self._path = os.path.realpath(made)
        return self._path

    def close(self) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None
        try:
            left = list(Path(tempfile.gettempdir()).glob("swecli-sandbox-*"))
        except OSError:  # no folder for temporary files can be written, as on a full disk
            return
        for path in left:
            match = _NAME.fullmatch(path.name)
            if match and not is_running(int(match[1])) and _ours(path):
                shutil.rmtree(path, ignore_errors=True)


def _ours(path: Path) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_uid == os.geteuid()
    except OSError:
        return False


OFF_BY_SETTING = SandboxState(reason="turned off in the settings", checked=True)


class Sandbox:
    """Containment available on this machine. Methods may block: keep them off the event loop."""

    def __init__(self, options: SandboxOptions, workspace: SandboxWorkspace, folders: Folders) -> None:
        self.options = options
        self._workspace = workspace
        self._machine = Machine(workspace, folders)
        self._placeholders = Placeholders(placeholders_folder(folders.state, workspace.key))
        self._temporary = PrivateTemporary()
        self.state = OFF_BY_SETTING if options.mode == "off" else SandboxState()
        """Last known state."""
        self._checking = threading.Lock()
        self._counting = threading.Lock()
        self._settling = threading.Lock()
        self._running = 0
        self._tidying: threading.Timer | None = None
        programs = (
            os.path.dirname(os.path.realpath(entry)) for entry in workspace.environment.get("PATH", "").split(":")
        )
        self._surveyor = Surveyor(
            workspace.roots,
            workspace.home,
            partial(secret_names, workspace.own_names),
            (*workspace.own_code, *options.writable, *programs),
            (*options.hide, *workspace.own_dirs),
        )
        self._sockets: tuple[str, ...] = ()
        """Sockets masked last."""
        self._guard = Guard(folders.state / "sandbox" / workspace.key, self._surveyor)
        self.masked: tuple[str, ...] = ()
        """Files and folders that may hold secrets or that rules keep from being read, as of the last command or check:
        contained commands can't read them."""
        self.settled: tuple[str, ...] = ()
        """Planted files that were removed or restored at the start, because swecli was killed while a command ran."""
        self._shared: Plan | None = None
        """Plan of the commands that run now."""

    @classmethod
    def none(cls) -> Sandbox:
        return cls(SandboxOptions(mode="off"), SandboxWorkspace((), "", {}), Folders(Path(os.devnull)))

    def check(self) -> SandboxState:
        """Find a working layer, after removing leftovers of earlier runs. Gaps that the user can close are looked for
        again, unless a command runs."""
        with self._checking:
            again = self.state.closable and not self._running
            if not self.state.checked or again:
                if not again:
                    self._placeholders.sweep()
                    self.settle()
                try:
                    self.state = self._machine.examine(self._request())
                except OSError as error:
                    self.state = off(f"setup failed: {error}")
                except Abandoned:
                    return self.state  # nobody asks for it any more
            return self.state

    @property
    def kept(self) -> Path:
        """Where copies of what was undone are."""
        return self._guard.kept

    def has_leftovers(self) -> bool:
        """Whether a killed swecli may have left planted files in this workspace."""
        return self._guard.has_leftovers()

    def settle(self) -> None:
        """Undo what commands planted whose swecli was killed."""
        with self._settling:
            if self._guard.has_leftovers():
                self.settled += _settled(self._guard, self._placeholders)

    def abandon(self) -> None:
        """End a check that runs in another thread; no command can begin afterwards. Returns at once."""
        self._surveyor.abandon()

    def begin(self, cwd: Path, *, full: bool, rules: ReadRules = NO_READ_RULES) -> Launch:
        """A launch for one command; ``full`` if it may run only with full containment. ``rules`` keep files from being
        read.

        Raises:
            SandboxError: there is none.
        """
        state = self.check()
        if state.level == "off":
            raise SandboxError(f"the sandbox is off: {state.reason}")
        plan = self._enter(rules)
        try:
            return self._begun(plan, state, cwd, full)
        except BaseException:
            self._leave()
            raise

    def begin_masked(self, cwd: Path, rules: ReadRules) -> Launch:
        """A launch for a command that may do everything but read what the rules cover.

        Raises:
            SandboxError: that can't be hidden.
        """
        state = self.check()
        if not state.masks:
            raise SandboxError(f"the sandbox is {state.text}, so it can't hide what your rules about reading cover")
        try:
            survey = self._surveyor.survey(rules)
            plan = masking(self._workspace.roots, self._temporary.path, survey.ruled, Disk())
        except OSError as error:
            raise SandboxError(f"cannot set up the sandbox: {error}") from error
        except Abandoned:
            raise SandboxError("the session has ended") from None
        if survey.unruled:
            raise SandboxError(f"your rule {survey.unruled} covers more files than swecli can look for")
        if len(plan.mounts) > self._machine.most_masked(len(plan.mounts)):
            raise SandboxError(f"your rules about reading cover {len(plan.mounts):,} files, too many to hide")
        if not plan.mounts:
            return Launch("none", plan, ())
        return self._machine.launch(state.layer, plan, str(cwd), self._placeholders)

    def begin_reader(self, cwd: Path) -> Launch:
        """A launch for a program that runs beside commands for a long time and may not write in the workspace.

        Raises:
            SandboxError: there is none.
        """
        state = self.check()
        if not state.contains:
            raise SandboxError(f"the sandbox is {state.text}")
        try:
            plan = reading(planned(self._request(), self._placeholders.standing()))
        except OSError as error:
            raise SandboxError(f"there is no temporary directory: {error}") from error
        except Abandoned:
            raise SandboxError("the session has ended") from None
        return self._machine.launch(state.layer, plan, str(cwd), self._placeholders)

    def _enter(self, rules: ReadRules) -> Plan:
        """The plan for one more command. It stays the same while one runs: that command could swap a file it made for a
        link between the survey and the mount."""
        with self._counting:
            if self._running == 0 or self._shared is None:
                try:
                    request = self._request(rules)
                    self._shared = planned(request, self._placeholders.standing())
                    reserved = self._shared.paths("read", "hidden", "denied")
                    self._guard.begin(request.found.steering, reserved, request.found.controlling)
                except OSError as error:
                    raise SandboxError(f"cannot set up the sandbox: {error}") from error
                except Abandoned:
                    raise SandboxError("the session has ended") from None
            self._running += 1
            return self._shared

    def _leave(self) -> None:
        with self._counting:
            self._running -= 1
            if not self._running:
                self._guard.end()
                self._cancel_tidying()
                self._tidying = threading.Timer(LINGER, self._placeholders.sweep)
                self._tidying.daemon = True
                self._tidying.start()

    def tidy(self) -> None:
        """Remove placeholders now, unless a command runs."""
        with self._counting:
            self._cancel_tidying()
        self._placeholders.sweep()

    def _cancel_tidying(self) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
            self._tidying = None

    def _begun(self, plan: Plan, state: SandboxState, cwd: Path, full: bool) -> Launch:
        if plan.uncovered and state.contains:
            open_ = tuple(dict.fromkeys((*state.uncovered, *plan.uncovered)))
            closable = bool(plan.advice) and open_ == plan.uncovered
            state = replace(state, level="partial", holds=False, uncovered=open_)
            self.state = state = replace(state, advice=plan.advice if closable else "", closable=closable)
        if full and not state.contains:
            raise SandboxError(f"the sandbox is {state.text}")
        launch = self._machine.launch(state.layer, plan, str(cwd), self._placeholders)
        lock = launch.lock
        launch.release = _both((lambda: None) if lock is None else partial(os.close, lock), self._leave)
        launch.undo = partial(self._guard.undone_since, self._guard.mark)
        return launch

    def expect(self, paths: Sequence[str] | None) -> None:
        """Announce that a call outside the sandbox is about to write these files; None stands for any."""
        self._guard.expect(paths)

    def accept(self, paths: Sequence[str] | None) -> None:
        """Accept control files that an announced call wrote while contained commands run; None accepts all present
        ones. Each call needs an announcement."""
        self._guard.accept(paths)

    def failed(self, reason: str) -> None:
        """Handle a failed launch: the known state no longer applies."""
        mentioned = (path for path in self._sockets if path in reason)
        if any(not os.path.lexists(path) for path in mentioned):
            return  # its service ended during setup; the next command runs without it
        self._machine.forget()
        self.state = off(f"setup failed: {reason}")

    def close(self) -> None:
        self.tidy()
        self._temporary.close()

    # --- one command ----------------------------------------------------------------------------------------------

    def _request(self, rules: ReadRules = NO_READ_RULES) -> Request:
        workspace = self._workspace
        survey = without_refused_sockets(self._surveyor.survey(rules), self.options)
        self._sockets = survey.sockets
        home = home_secrets(workspace.home, secret_names(workspace.own_names))
        self.masked = tuple(dict.fromkeys((*survey.secrets, *survey.unlooked, *filter(os.path.lexists, home))))
        return Request(
            workspace.roots,
            workspace.home,
            self._temporary.path,
            workspace.own_dirs,
            workspace.own_code,
            workspace.environment,
            self.options,
            survey,
            workspace.own_names,
            self._machine.most_masked(len(survey.secrets)),
        )


def _both(first: Callable[[], object], second: Callable[[], object]) -> Callable[[], object]:
    def release() -> None:
        try:
            first()
        finally:
            second()

    return release


def settle_leftovers(folder: Path, roots: Sequence[str]) -> tuple[str, ...]:
    """Remove what commands of a killed swecli left in a workspace, before any of its files counts: placeholders, and
    what the commands planted, whose paths are returned. ``folder`` is the sandbox's for this workspace."""
    placeholders, guard = Placeholders(folder), Guard(folder, Surveyor(roots, ""))
    placeholders.sweep()
    return _settled(guard, placeholders) if guard.has_leftovers() else ()


def _settled(guard: Guard, placeholders: Placeholders) -> tuple[str, ...]:
    commands_run = placeholders.in_use()  # before the survey: what ends after it may have planted after it
    placeholders.sweep()
    return guard.settle(placeholders.standing(), commands_run=commands_run)


def own_code() -> Sequence[str]:
    """Locations of swecli itself and of its interpreter's packages."""
    package = Path(__file__).resolve().parents[2]
    return tuple(dict.fromkeys((str(package), os.path.realpath(sys.prefix))))
