"""Test of the sandbox: canaries run inside, and their effects are checked from outside.

Output from inside is never trusted. An escaped canary shows in a file, or at a socket that listens here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.atomic_text import make_private
from swecli.core.permissions.paths import inside
from swecli.core.sandbox import landlock, seatbelt
from swecli.core.sandbox.bubblewrap import PlaceholderError, Placeholders
from swecli.core.sandbox.launch import (
    HELPER,
    Bubblewrap,
    Launch,
    SandboxError,
    advice,
    can_mask_many,
    filter_program,
    find_bubblewrap,
    landlock_abi,
    launch_bubblewrap,
    launch_landlock,
    launch_seatbelt,
)
from swecli.core.sandbox.plan import (
    MAX_MASKED,
    MOST_MASKED,
    Disk,
    Plan,
    Request,
    SandboxOptions,
    SandboxState,
    mount_plan,
)
from swecli.core.sandbox.survey import Survey, Surveyor
from swecli.core.workspace import process_tree as tree

SECONDS = 15.0
MOST_SURVEYS = 5
"""Surveys of a probe, while sockets of other programs disappear under it."""
_CANARIES = """
import os, socket, sys
port, mark = int(sys.argv[1]), sys.argv[2]
def write(path, text="x"):
    with open(path, "w") as stream:
        stream.write(text)
def connect():
    socket.create_connection(("127.0.0.1", port), 2).close()
def connect_unix():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("../outside/service")
for canary in (
    lambda: write("../outside/written"),
    lambda: write(".git/config"),
    lambda: write(".git/hooks/planted"),
    lambda: os.rename(".git", "moved"),
    connect,
    connect_unix,
):
    try:
        canary()
    except OSError:
        pass
write("source/finished", mark)
"""

Start = Callable[[Request, str], Launch]
"""Create a launch for a request and a working directory."""


class ProbeResult(Struct, frozen=True):
    """``works``: a command ran inside and could write the workspace. ``escaped`` names the canaries that escaped."""

    works: bool
    escaped: tuple[str, ...] = ()
    reason: str = ""
    unix: bool = False
    """Whether an outside program's Unix socket was reachable: the sandbox is then partial."""

    @property
    def held(self) -> bool:
        return self.works and not self.escaped


def probe(request: Request, start: Start, folder: Path | None) -> ProbeResult:
    """Run the canaries under the request's settings, in a scratch workspace below ``folder``."""
    try:
        with (
            _scratch(folder) as base,
            socket.create_server(("127.0.0.1", 0)) as server,
            _service(base / "outside") as service,
        ):
            server.setblocking(False)
            surveyor = Surveyor((str(base / "work"),), "")
            result = ProbeResult(False)
            for _ in range(MOST_SURVEYS):
                survey = without_refused_sockets(surveyor.survey(), request.options)
                result = _run(replace(request, roots=(str(base / "work"),), found=survey), start, base, server, service)
                missing = [path for path in survey.sockets if path in result.reason and not os.path.lexists(path)]
                if result.works or not missing:
                    break
                # Another program's socket disappeared between survey and mount.
            return result
    except OSError as error:
        return ProbeResult(
            False, reason=f"cannot set up the probe: {error.strerror or error}: {error.filename or folder}"
        )
    except SandboxError as error:
        return ProbeResult(False, reason=str(error))


def without_refused_sockets(found: Survey, options: SandboxOptions) -> Survey:
    """The survey without sockets to mask, where the filter refuses all of them."""
    refused = not options.unix_sockets and landlock.machine(os.uname().machine) is not None
    return replace(found, sockets=()) if refused else found


@contextmanager
def _service(folder: Path) -> Generator[socket.socket]:
    """A service that listens outside the workspace. Socket addresses must be short, so it binds through a short
    link."""
    with tempfile.TemporaryDirectory(prefix="sw") as short, socket.socket(socket.AF_UNIX) as service:
        link = Path(short) / "l"
        link.symlink_to(folder)
        service.bind(str(link / "service"))
        service.listen()
        service.setblocking(False)
        yield service


def _run(request: Request, start: Start, base: Path, server: socket.socket, service: socket.socket) -> ProbeResult:
    work, mark = base / "work", secrets.token_hex(8)
    launch = start(request, str(work))
    argv = [*launch.prefix, os.path.realpath(sys.executable), "-I", "-S", "-c", _CANARIES]
    try:
        process = subprocess.Popen(
            [*argv, str(server.getsockname()[1]), mark],
            cwd=work,
            env={**request.environment, **launch.environment, tree.MARK: tree.new_mark(own=True)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=launch.inherited,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=SECONDS)[0].decode("utf-8", "replace").strip()
        except subprocess.TimeoutExpired:
            return ProbeResult(False, reason="the probe timed out")
        finally:
            if process.poll() is None:  # bubblewrap's child waits forever if only its parent is killed
                tree.signal_group(process.pid, signal.SIGKILL)
                process.communicate()
    finally:
        launch.end()
    if _text(work / "source" / "finished") != mark:
        return ProbeResult(False, reason=output.splitlines()[0][:300] if output else "the probe did not finish")
    escaped = tuple(_escapes(base, None if request.options.network else server))
    return ProbeResult(True, escaped, unix=_reached(service))


def _escapes(base: Path, server: socket.socket | None) -> Iterator[str]:
    """Canaries that escaped. ``server`` None: connecting is allowed."""
    git = base / "work" / ".git"
    if (base / "outside" / "written").exists():
        yield "writing outside the workspace"
    if (base / "work" / "moved").exists() or not git.is_dir():
        yield "moving .git away"
    elif _text(git / "config") != _CONFIG or (git / "hooks" / "planted").exists():
        yield "writing git's configuration and hooks"
    if server is not None and _reached(server):
        yield "connecting"


def _reached(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


_CONFIG = "[core]\n\tbare = false\n"


@contextmanager
def _scratch(folder: Path | None) -> Generator[Path]:
    if folder is not None:
        make_private(folder)
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="probe-", dir=folder)))
    try:
        for name in ("outside", "work/source", "work/.git/hooks"):
            (base / name).mkdir(parents=True)
        (base / "work" / ".git" / "config").write_text(_CONFIG)
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


_NAME = "sandbox-verdict.json"


class VerdictCache:
    """One cached verdict; ``folder`` None disables the cache."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / _NAME

    def holds(self, facts: Sequence[str]) -> bool:
        if self._path is None:
            return False
        try:
            known = cast("object", json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return False
        return known == {"full": _key(facts)}

    def keep(self, facts: Sequence[str]) -> None:
        """Cache a full verdict. If it can't be written, the next start probes again."""
        if self._path is None:
            return
        temporary = self._path.with_name(f"{_NAME}.{os.getpid()}")
        try:
            make_private(self._path.parent)
            temporary.write_text(json.dumps({"full": _key(facts)}), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def forget(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _key(facts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()


_UNIX_SOCKETS = "Unix sockets of other programs"


class Folders(Struct, frozen=True):
    """The sandbox's own folders: ``state`` for locks and scratch, ``cache`` for the verdict (None: no cache)."""

    state: Path
    cache: Path | None = None


class SandboxWorkspace(Struct, frozen=True):
    """The session's surroundings. ``environment`` is that of commands; ``key`` names the workspace."""

    roots: tuple[str, ...]
    home: str
    environment: Mapping[str, str]
    own_dirs: tuple[str, ...] = ()
    own_code: tuple[str, ...] = ()
    key: str = "workspace"
    own_names: tuple[str, ...] = ()
    """Patterns of the user's for names of files that may hold secrets."""


class Machine:
    """Search for the first layer that passes the probe: bubblewrap, else Landlock, else seatbelt."""

    def __init__(self, workspace: SandboxWorkspace, folders: Folders) -> None:
        self._workspace = workspace
        self._folders = folders
        self._cache = VerdictCache(folders.cache)
        self._bubblewrap: Bubblewrap | None = None
        self._abi = 0

    def forget(self) -> None:
        self._cache.forget()

    def most_masked(self, wanted: int) -> int:
        """How many files can be hidden here. The helper for many is tried only if they are ``wanted``."""
        if wanted <= MAX_MASKED or sys.platform != "linux":
            return MAX_MASKED
        workspace = self._workspace
        bubblewrap = self._bubblewrap or find_bubblewrap(workspace.environment, workspace.roots)
        return MOST_MASKED if isinstance(bubblewrap, Bubblewrap) and can_mask_many(workspace.roots) else MAX_MASKED

    def examine(self, request: Request) -> SandboxState:
        """Containment of commands under this request. Raises ``OSError`` if it can't be determined."""
        if sys.platform == "darwin":
            return self._examine_seatbelt(request)
        if sys.platform != "linux":
            return off(f"there is none for {platform.system()}")
        bubblewrap = find_bubblewrap(self._workspace.environment, self._workspace.roots)
        if isinstance(bubblewrap, Bubblewrap):
            self._bubblewrap = bubblewrap
            why = self._examine_bubblewrap(bubblewrap, request)
            if isinstance(why, SandboxState):
                return why
        else:
            why = bubblewrap
        missing = isinstance(bubblewrap, str) and "not installed" in bubblewrap
        state = self._examine_landlock(request, why)
        return replace(state, advice=advice(), closable=False) if missing else state

    def _examine_bubblewrap(self, bubblewrap: Bubblewrap, request: Request) -> SandboxState | str:
        """The state under bubblewrap, or why it is unusable here."""
        plan = planned(request)
        uncovered = plan.uncovered
        if not filter_program(os.uname().machine, "bwrap", request.options.network):
            uncovered += (f"special sockets (no system call table for {os.uname().machine})",)
        facts = (
            "canaries 4",
            *(platform.release(), platform.version(), bubblewrap.path, str(bubblewrap.version), bubblewrap.identity),
            *(
                str(os.geteuid()),
                str(request.options.network),
                str(request.options.unix_sockets),
                *request.options.writable,
                *request.options.hide,
            ),
        )
        if not self._cache.holds(facts):
            result = self._probe(request, "bwrap")
            if not result.held:
                return f"{bubblewrap.name} {_why(result)}"
            if result.unix:
                uncovered += (_UNIX_SOCKETS,)
            else:
                self._cache.keep(facts)
        state = SandboxState("partial" if uncovered else "full", "bwrap", "", uncovered, checked=True)
        return replace(state, advice=plan.advice, closable=bool(plan.advice)) if uncovered == plan.uncovered else state

    def _examine_landlock(self, request: Request, why: str) -> SandboxState:
        self._abi = landlock_abi()
        if self._abi < 1:
            return off(f"{why}, and this kernel has no Landlock")
        if any(inside(path, request.roots) for path in (os.path.realpath(sys.executable), str(HELPER))):
            return off(f"{why}, and Landlock requires swecli to be installed outside the workspace")
        result = self._probe(request, "landlock")
        if not result.held:
            return off(f"{why}, and Landlock {_why(result)}")
        plan = planned(request)
        network = request.options.network
        filtered = bool(filter_program(os.uname().machine, "landlock", network))
        open_ = (*landlock.uncovered(self._abi, network=network, filtered=filtered), *plan.uncovered)
        holds = landlock.holds(self._abi, network=network, filtered=filtered)
        holds = holds and not result.unix
        state = SandboxState("partial", "landlock", why, open_, checked=True, holds=holds and not plan.uncovered)
        return replace(state, advice=plan.advice, closable=bool(plan.advice)) if holds else state

    def _examine_seatbelt(self, request: Request) -> SandboxState:
        if not os.access(seatbelt.PROGRAM, os.X_OK):
            return off(f"{seatbelt.PROGRAM} is missing")
        result = self._probe(request, "seatbelt")
        if not result.held:
            return off(f"seatbelt {_why(result)}")
        open_ = (*seatbelt.UNCOVERED, *planned(request).uncovered)
        return SandboxState("partial", "seatbelt", "", open_, checked=True)

    def _probe(self, request: Request, layer: str) -> ProbeResult:
        folder = self._folders.state / "sandbox"

        def start(scratch: Request, cwd: str) -> Launch:
            placeholders = Placeholders(Path(cwd).parent / "held")
            return self.launch(layer, planned(scratch), cwd, placeholders)

        # The scratch workspace is among swecli's own files, which are otherwise hidden.
        return probe(replace(request, own_dirs=(), own_code=()), start, folder)

    def launch(self, layer: str, plan: Plan, cwd: str, placeholders: Placeholders) -> Launch:
        """A command in the detected layer.

        Raises:
            SandboxError: the layer can't be set up.
        """
        if layer == "landlock":
            return launch_landlock(plan, self._abi)
        if layer == "seatbelt":
            return launch_seatbelt(plan)
        assert self._bubblewrap is not None
        try:
            lock = placeholders.hold(plan.placeholders)
        except PlaceholderError as error:
            raise SandboxError(str(error)) from error
        try:
            launch = launch_bubblewrap(self._bubblewrap, plan, cwd, lock)
        except SandboxError:
            placeholders.release(lock)
            raise
        launch.release = lambda: placeholders.release(lock)
        return launch


def planned(request: Request, placeholders: Collection[str] = ()) -> Plan:
    """The plan for a request. ``placeholders`` stand on the disk, but count as missing."""
    return mount_plan(request, Disk(placeholders))


def off(reason: str) -> SandboxState:
    return SandboxState(reason=reason, checked=True)


def _why(result: ProbeResult) -> str:
    if result.escaped:
        return f"failed its test here ({', '.join(result.escaped)} was possible)"
    return f"does not work here ({result.reason})"
