"""A command's view of the disk: secret, writable and protected places, and the mount plan. Pure."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.git import linked_target
from swecli.core.permissions.paths import inside
from swecli.core.permissions.protected import PROTECTED_NAMES, held_in_sandbox
from swecli.core.permissions.types import Sandbox as Level
from swecli.core.sandbox.survey import Survey
from swecli.core.secret_names import SecretNames, secret_names
from swecli.lazy_pattern import lazy_pattern

Kind = Literal["file", "directory", "link", "other", "missing"]
_HEAD_BYTES = 65_536


class Disk:
    """Queries about absolute paths. ``absent`` ones count as missing: placeholders, which may disappear."""

    def __init__(self, absent: Collection[str] = ()) -> None:
        self._absent = frozenset(absent)

    def kind(self, path: str) -> Kind:
        """The kind of entry, without following a link."""
        if path in self._absent:
            return "missing"
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return "missing"
        if stat.S_ISDIR(mode):
            return "directory"
        if stat.S_ISREG(mode):
            return "file"
        return "link" if stat.S_ISLNK(mode) else "other"

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def names(self, directory: str) -> tuple[str, ...]:
        """The names in a directory, sorted; empty if unreadable."""
        try:
            names = os.listdir(directory)
            return tuple(sorted(name for name in names if posixpath.join(directory, name) not in self._absent))
        except OSError:
            return ()

    def text(self, path: str) -> str:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ""
            return os.read(descriptor, _HEAD_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(descriptor)


HELD_NAMES = (".swecli", *(name.parts[0] for name in PROTECTED_NAMES if name.held))
"""Names at the top of a workspace that must not appear while a command runs, beside ``.git``: other programs obey
them."""

_SOCKET_DIRECTORIES = (
    *("/run", "/var/run", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd/common/lxd", "/var/lib/libvirt"),
    *("/var/lib/mysql", "/var/lib/docker", "/var/spool/cron"),
)
"""Directories with sockets of local services: a container or session service would run a command outside."""
_RUN_NEEDED = ("/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/booted-system")
"""Parts of ``/run`` that programs need on some systems."""
_RUN_FOR_NETWORK = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf")
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "XDG_RUNTIME_DIR")
_SOCKET_PATH = lazy_pattern(r"(?:^|unix:(?:path=)?(?://)?)(/[^,;:]+)")
_CACHES = (
    (("PIP_CACHE_DIR",), ("XDG_CACHE_HOME", "pip"), ".cache/pip"),
    (("UV_CACHE_DIR",), ("XDG_CACHE_HOME", "uv"), ".cache/uv"),
    (("npm_config_cache",), (), ".npm"),
    ((), ("CARGO_HOME", "registry"), ".cargo/registry"),
    ((), ("CARGO_HOME", "git"), ".cargo/git"),
    (("GOMODCACHE",), ("GOPATH", "pkg/mod"), "go/pkg/mod"),
    (("GOCACHE",), ("XDG_CACHE_HOME", "go-build"), ".cache/go-build"),
)
"""Package caches: variables that name one, a variable plus a folder below it, the default below home."""


def home_secrets(home: str, names: SecretNames) -> tuple[str, ...]:
    """Keys, passwords, private histories and the state of other agents, below the home directory."""
    return tuple(posixpath.join(home, name) for name in names.below_home()) if home else ()


def socket_places(environment: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Directories and sockets of services outside the sandbox."""
    named: list[str] = []
    for variable in _SOCKET_VARIABLES:
        match = _SOCKET_PATH.search(environment.get(variable, ""))
        path = posixpath.normpath(match.group(1)) if match else ""
        if (
            path and inside(home or "/", (path,)) is None
        ):  # a variable could name anything, but not a parent of everything
            named.append(path)
    return (*_SOCKET_DIRECTORIES, *named)


def needed_of_run(network: bool) -> tuple[str, ...]:
    """Places below ``/run`` that stay readable."""
    return (*_RUN_NEEDED, *(_RUN_FOR_NETWORK if network else ()))


def caches(environment: Mapping[str, str], home: str, disk: Disk) -> Iterator[str]:
    """Existing package caches. Only directories below home count: a variable could name anything."""
    if not home:
        return
    for variables, (*folder,), usual in _CACHES:
        named = next((environment[name] for name in variables if environment.get(name)), "")
        if not named and folder and environment.get(folder[0]):
            named = posixpath.join(environment[folder[0]], folder[1])
        path = disk.real(named if named.startswith("/") else posixpath.join(home, usual))
        if path != home and inside(path, (home,)) and disk.kind(path) == "directory":
            yield path


COMMON_CONTENT = b".\n"
"""Content of a placeholder ``commondir``: the directory itself, same as without the file."""
_HOOKS_PATH = lazy_pattern(r"^\s*hookspath\s*=\s*\"?([^\"#;\n]+)", re.IGNORECASE | re.MULTILINE)
_WORK_TREE = lazy_pattern(r"^\s*worktree\s*=\s*\"?([^\"#;\n]+)", re.IGNORECASE | re.MULTILINE)


class GitPlaces(Struct, frozen=True):
    """``writable`` are git's own directories outside the folder, if they really belong to it. ``guarded`` must not be
    written; ``absent`` must not appear (content None: a directory). ``problem`` is why the repository can't be
    protected, as a clause."""

    writable: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    absent: tuple[tuple[str, bytes | None], ...] = ()
    problem: str = ""


def git_places(folder: str, disk: Disk) -> GitPlaces:
    """Protection needed for the ``.git`` of a folder; empty if it has none."""
    git = posixpath.join(folder, ".git")
    kind = disk.kind(git)
    if kind == "missing":
        return GitPlaces()
    if kind == "link":
        return GitPlaces(problem=f"{git} is a symbolic link")
    if kind == "directory":
        return _directory(git, folder, disk)
    return _file(git, folder, disk) if kind == "file" else GitPlaces(guarded=(git,))


def _directory(git: str, folder: str, disk: Disk) -> GitPlaces:
    guarded, absent = _steering(git, disk)
    guarded += _hooks_path(git, folder, disk)
    links = [path for path in guarded if disk.kind(path) == "link"]
    problem = f"{links[0]} is a symbolic link" if links else ""
    return GitPlaces(
        guarded=tuple(path for path in guarded if path not in links), absent=tuple(absent), problem=problem
    )


def _steering(git: str, disk: Disk) -> tuple[list[str], list[tuple[str, bytes | None]]]:
    guarded: list[str] = []
    absent: list[tuple[str, bytes | None]] = []
    for name, content in (
        ("hooks", None),
        ("config", b""),
        ("config.worktree", b""),
        ("commondir", COMMON_CONTENT),
        ("info", None),
        ("modules", None),
        ("worktrees", None),
    ):
        path = posixpath.join(git, name)
        if disk.kind(path) == "missing":
            absent.append((path, content))
        else:
            guarded.append(path)
    return guarded, absent


def _hooks_path(git: str, folder: str, disk: Disk) -> list[str]:
    """The directory in the folder from which the repository's own configuration takes hooks."""
    match = _HOOKS_PATH.search(disk.text(posixpath.join(git, "config")))
    if match is None:
        return []
    path = posixpath.normpath(posixpath.join(folder, match.group(1).strip()))
    known = path != folder and inside(path, (folder,)) and disk.kind(path) != "missing"
    return [path] if known and not inside(path, (git,)) else []


def _file(git: str, folder: str, disk: Disk) -> GitPlaces:
    """A work tree or a submodule: the file names git's directory elsewhere. It counts only if that directory names this
    folder in turn: a repository could point anywhere."""
    named = linked_target(disk.text(git))
    target = disk.real(posixpath.join(folder, named)) if named else git
    if disk.kind(target) != "directory" or inside(target, (folder,)):
        return GitPlaces(guarded=(git,))
    common = disk.text(posixpath.join(target, "commondir")).strip()
    if common:
        back = disk.text(posixpath.join(target, "gitdir")).strip()
        shared = disk.real(posixpath.join(target, common))
        if not back or disk.real(posixpath.join(target, back)) != git or inside(target, (shared,)) is None:
            return GitPlaces(guarded=(git,))
        guarded, absent = _steering(shared, disk)
        own = ("commondir", "gitdir", "config.worktree")
        guarded += [path for name in own if disk.kind(path := posixpath.join(target, name)) != "missing"]
        if posixpath.join(target, "config.worktree") not in guarded:
            absent.append((posixpath.join(target, "config.worktree"), b""))
        return GitPlaces((shared, target), (git, *guarded), tuple(absent))
    match = _WORK_TREE.search(disk.text(posixpath.join(target, "config")))
    if match is None or disk.real(posixpath.join(target, match.group(1).strip())) != folder:
        return GitPlaces(guarded=(git,))
    guarded, absent = _steering(target, disk)
    return GitPlaces((target,), (git, *guarded), tuple(absent))


_MOST_BELOW = 300


def nested(root: str, disk: Disk) -> Iterator[str]:
    """Folders directly below ``root`` with a ``.git`` of their own. Checks at most ``_MOST_BELOW`` folders."""
    looked = 0
    for name in disk.names(root):
        if name in (".git", "node_modules"):
            continue
        path = posixpath.join(root, name)
        if looked >= _MOST_BELOW:
            return
        looked += 1
        if disk.kind(posixpath.join(path, ".git")) != "missing" and disk.kind(path) == "directory":
            yield path


Layer = Literal["bwrap", "landlock", "seatbelt", "none"]
UseMode = Literal["auto", "on", "off"]
Access = Literal["write", "read", "private", "hidden", "denied"]
"""Access of a command to a place: ``private`` is a directory of its own, ``hidden`` looks empty, ``denied`` can't be
opened."""


class SandboxOptions(Struct, frozen=True):
    """The user's settings. ``writable`` and ``hide`` are absolute paths."""

    mode: UseMode = "auto"
    """ "auto": if it lets a command run without a question; "on": every command; "off": none."""
    network: bool = False
    unix_sockets: bool = False
    """Whether commands may open Unix sockets other than connected pairs."""
    writable: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    ask_outside: bool = True
    """Whether to ask the user at once after the sandbox stopped a command."""


class Request(Struct, frozen=True):
    """Input of a plan. All paths are absolute and resolved; ``private`` is a directory on this machine that becomes the
    command's temporary directory."""

    roots: tuple[str, ...]
    home: str
    private: str
    own_dirs: tuple[str, ...] = ()
    """swecli's configuration and data: hidden."""
    own_code: tuple[str, ...] = ()
    """swecli's installation: read-only, even inside the workspace."""
    environment: Mapping[str, str] = field(default_factory=lambda: {})
    options: SandboxOptions = SandboxOptions()
    found: Survey = Survey()
    """Findings on disk beyond the paths."""
    own_names: tuple[str, ...] = ()
    """Patterns of the user's for names of files that may hold secrets."""
    most_masked: int = 500
    """``MAX_MASKED``, or ``MOST_MASKED`` where the helper works."""


class Mount(Struct, frozen=True):
    """One place and the access to it. ``directory`` distinguishes the two kinds of hiding."""

    path: str
    access: Access
    directory: bool = True


class Placeholder(Struct, frozen=True):
    """A missing protected name: created before the command runs, so that the command can't create it, and removed
    afterwards. ``content`` None is a directory."""

    path: str
    content: bytes | None = None


class Plan(Struct, frozen=True):
    """A command's view of the disk. Mounts are in order, parents first: a later one covers an earlier one. Everything
    else is read-only."""

    roots: tuple[str, ...]
    mounts: tuple[Mount, ...]
    placeholders: tuple[Placeholder, ...]
    private: str
    temporary: str = "/tmp"
    """Path at which the command sees the private directory."""
    network: bool = False
    uncovered: tuple[str, ...] = ()
    """Gaps in the protection of this workspace, as clauses."""
    advice: str = ""
    """How the user can close all of these gaps, as a sentence; empty if swecli knows no way."""
    unix_sockets: bool = False
    masks_only: bool = False
    """Whether the command may do everything else: the mounts only hide files from it."""

    def paths(self, *accesses: Access) -> tuple[str, ...]:
        return tuple(mount.path for mount in self.mounts if mount.access in accesses)


class SandboxState(Struct, frozen=True):
    """Degree of containment. ``uncovered`` names the gaps of a partial sandbox; ``reason`` says why there is none, or
    only a partial one."""

    level: Level = "off"
    layer: Layer = "none"
    reason: str = ""
    uncovered: tuple[str, ...] = ()
    checked: bool = False
    """False before the probe."""
    holds: bool = False
    """Whether commands can write and connect only where allowed, whatever other gaps a partial sandbox has."""
    advice: str = ""
    """How to get a full sandbox, as a sentence; empty if swecli knows no way."""
    closable: bool = False
    """Whether the advice takes effect at once: the gaps are in the workspace."""

    @property
    def contains(self) -> bool:
        """Whether auto mode runs commands in it without asking."""
        return self.level == "full" or self.holds

    @property
    def masks(self) -> bool:
        """Whether files can be hidden from a command that may do everything else. Landlock could do so only by
        listing all others."""
        return self.layer == "bwrap" and self.level != "off"

    @property
    def label(self) -> str:
        """The state in a few words, for a status line."""
        if not self.checked:
            return "checking"
        return "off" if self.level == "off" else self.layer if self.contains else f"{self.layer}, partial"

    @property
    def text(self) -> str:
        if not self.checked:
            return "not checked yet"
        open_ = f"; not protected: {', '.join(self.uncovered)}" if self.uncovered else ""
        why = f": {self.reason}" if self.reason else ""
        return f"off{why}" if self.level == "off" else f"{self.level} ({self.layer}){why}{open_}"


def reading(plan: Plan) -> Plan:
    """The plan for a program that may not write in the workspace, so no placeholder is needed."""
    placeholder_paths = {placeholder.path for placeholder in plan.placeholders}
    mounts = tuple(
        replace(mount, access="read") if mount.access == "write" and inside(mount.path, plan.roots) else mount
        for mount in plan.mounts
        if mount.path not in placeholder_paths
    )
    return replace(plan, mounts=mounts, placeholders=())


def grouped(paths: Sequence[str], kept: Sequence[str], disk: Disk) -> tuple[str, ...]:
    """The files and folders to hide. If there are too many, folders that mostly hold such files stand for them, those
    with the most first; never one with a folder that is ``kept``."""
    if len(paths) <= MAX_MASKED:
        return tuple(paths)
    counts = Counter(posixpath.dirname(path) for path in paths)
    left, whole = len(paths), set[str]()
    for folder, count in counts.most_common():
        if left <= MAX_MASKED or count < _MOSTLY:
            break
        around = any(path and inside(path, (folder,)) for path in kept)
        if not around and 2 * count >= len(disk.names(folder)):
            whole.add(folder)
            left -= count - 1
    return (*sorted(whole), *(path for path in paths if posixpath.dirname(path) not in whole))


def masking(roots: tuple[str, ...], private: str, paths: Sequence[str], disk: Disk) -> Plan:
    """The plan for a command that may do everything but read these files and folders."""
    mounts: dict[str, Mount] = {}
    for path in sorted(disk.real(path) for path in grouped(paths, roots, disk)):
        kind = disk.kind(path)
        if kind != "missing" and path not in roots and inside(path, tuple(mounts)) is None:
            mounts[path] = Mount(path, "hidden" if kind == "directory" else "denied", directory=kind == "directory")
    return Plan(roots, tuple(mounts.values()), (), private, network=True, masks_only=True)


_TEMPORARY = ("/tmp", "/dev/shm")
MAX_MASKED = 500
"""Files and folders that bubblewrap alone hides because they may hold secrets or a rule covers them. For each of them,
it reads the table of all mounts: 100 took it 0.1 s, 500 took 1 s; more than 9,000 words it refuses."""
MOST_MASKED = 5_000
"""The same with the helper, which needs a system call for each file: 500 took 0.4 s, 3,000 took
3 s, most of it bubblewrap's reading of the table for its own mounts."""
_MOSTLY = 10
"""Files of one folder from which on the folder may be hidden as a whole."""
_MAX_LINKS = 64
"""Single files made read-only because they have another hard link outside."""
_OBJECTS = "/.git/objects/"
"""Where `git clone` of a local path makes hard links. Git makes new files there under random names and then renames
them, so its folders can't be read-only."""
_WRITTEN_BY_TOOLS = (".cache", ".vite", ".vite-temp", ".vitest", ".tmp")
"""Folders in node_modules that tools write while they run."""
_STRENGTH: dict[Access, int] = {"private": 0, "write": 1, "read": 2, "hidden": 3, "denied": 4}
"""If a place appears twice, the stricter access applies."""


def mount_plan(request: Request, disk: Disk) -> Plan:
    """The plan for one command. It may write the workspace, the package caches and its own temporary directory; control
    files, secrets and service sockets are excluded even there."""
    return _PlanBuilder(request, disk).plan()


class _PlanBuilder:
    def __init__(self, request: Request, disk: Disk) -> None:
        self._request = request
        self._disk = disk
        self._mounts: dict[str, Mount] = {}
        self._absent: dict[str, Placeholder] = {}
        self._uncovered: list[str] = []
        self._shared: list[str] = []
        """Object stores of repositories with too many files that have names outside."""

    def plan(self) -> Plan:
        request = self._request
        for path in _TEMPORARY:
            self._add(self._disk.real(path), "private")
        self._services()
        for path in self._writable():
            self._add(path, "write")
        for root in request.roots:
            self._root(root)
        for path in request.own_code:
            root = inside(path, request.roots)
            if root is not None and path != root:
                self._guard(path, root)
        self._links()
        self._secrets()
        for path in request.found.sockets:
            self._add(path, "denied", directory=False)
        if request.options.network:
            self._uncovered.append("your settings open the network")
        if request.options.unix_sockets:
            self._uncovered.append("Unix sockets that programs open while a command runs")
        mounts = tuple(sorted(self._mounts.values(), key=lambda mount: (mount.path.count("/"), mount.path)))
        return Plan(
            request.roots,
            tuple(mount for mount in mounts if self._is_effective(mount)),
            tuple(self._absent[path] for path in sorted(self._absent)),
            request.private,
            self._disk.real(_TEMPORARY[0]),
            request.options.network,
            tuple(self._uncovered),
            _unshare(self._shared, request.roots) if len(self._uncovered) == len(self._shared) else "",
            request.options.unix_sockets,
        )

    # --- writable places ------------------------------------------------------------------------------------------

    def _writable(self) -> list[str]:
        request = self._request
        writable = list(request.roots)
        wished = (self._disk.real(path) for path in request.options.writable)
        writable += [path for path in wished if self._disk.kind(path) != "missing"]
        for path in caches(request.environment, request.home, self._disk):
            if not any(inside(path, (own,)) for own in request.own_dirs):
                writable.append(path)
        for path in writable:
            if path == "/" or inside(request.home or "/", (path,)):
                self._uncovered.append(f"{path} contains your home directory")
        return [path for path in writable if path != "/"]

    def _root(self, root: str) -> None:
        """Protect parts of a workspace."""
        disk = self._disk
        names, names_of_secrets = disk.names(root), secret_names(self._request.own_names)
        for name in names:
            path = posixpath.join(root, name)
            if name != ".git" and name not in HELD_NAMES and held_in_sandbox(name):
                self._guard(path, root)
            if names_of_secrets.matches(f"/{name}") and disk.kind(path) in ("file", "link"):
                self._deny(path)
        for deeper in PROTECTED_NAMES:
            if deeper.contained and len(deeper.parts) > 1 and deeper.parts[0] in names:
                path = posixpath.join(root, *deeper.parts)
                if disk.kind(path) != "missing":
                    self._guard(path, root)
        for name in HELD_NAMES:
            if name in names:
                self._guard(posixpath.join(root, name), root)
            else:
                self._hold(posixpath.join(root, name), None)
        repositories = [root, *nested(root, disk)]
        for folder in repositories:
            self._repository(git_places(folder, disk), root)
        if ".git" not in names:
            self._hold(posixpath.join(root, ".git"), None)

    def _repository(self, places: GitPlaces, root: str) -> None:
        if places.problem:
            self._uncovered.append(places.problem)
        for path in places.writable:
            self._add(path, "write")
        bases = (root, *places.writable)
        for path in places.guarded:
            self._guard(path, inside(path, bases) or root)
        for path, content in places.absent:
            self._hold(path, content)
            self._pin(path, inside(path, bases) or root)

    def _guard(self, path: str, base: str) -> None:
        kind = self._disk.kind(path)
        if kind == "link":
            self._uncovered.append(f"{path} is a symbolic link")
            path = self._disk.real(path)
            kind = self._disk.kind(path)
            if kind in ("missing", "link") or inside(path, (base,)) is None:
                return
        self._add(path, "read", directory=kind == "directory")
        self._pin(path, base)

    def _hold(self, path: str, content: bytes | None) -> None:
        self._absent[path] = Placeholder(path, content)
        self._add(path, "read", directory=content is None)

    def _pin(self, path: str, base: str) -> None:
        """Mount every folder on the way separately: otherwise it could be moved and replaced."""
        folder = posixpath.dirname(path)
        while folder != base and inside(folder, (base,)):
            self._add(folder, "write")
            folder = posixpath.dirname(folder)

    def _links(self) -> None:
        """Make files with a hard link outside the workspace read-only: writing them would change the outside. For files
        from a package manager, that covers a whole folder."""
        survey = self._request.found
        places = {path: _package_folder(path) for path in survey.links}
        folders = {folder for folder in places.values() if folder}
        files = [path for path, folder in places.items() if not folder]
        for path in sorted(folders):
            self._guard(path, inside(path, self._request.roots) or path)
            for name in _WRITTEN_BY_TOOLS:
                if self._disk.kind(posixpath.join(path, name)) == "directory":
                    self._add(posixpath.join(path, name), "write")
        stores = {path: path.partition(_OBJECTS)[0] + _OBJECTS.rstrip("/") for path in files if _OBJECTS in path}
        others = [path for path in files if path not in stores]
        for path in [*others, *stores][:_MAX_LINKS]:
            self._guard(path, inside(path, self._request.roots) or path)
        if len(others) > _MAX_LINKS:
            self._uncovered.append(f"{len(others):,} files such as {others[0]} also have names outside the workspace")
        if len(files) > _MAX_LINKS:
            counted = Counter(stores.values())
            self._shared += counted
            self._uncovered += (
                f"{count:,} files in {store}, shared with the repository it was cloned from"
                for store, count in counted.items()
            )
        if not survey.whole:
            self._uncovered.append("the workspace has too many files to check all for hard links")

    # --- hidden places --------------------------------------------------------------------------------------------

    def _services(self) -> None:
        disk, network = self._disk, self._request.options.network
        for path in socket_places(self._request.environment, self._request.home):
            self._hide(path)
        for path in needed_of_run(network):
            if disk.kind(path) == "missing":
                continue
            real = disk.real(path)
            if disk.kind(real) != "missing":
                self._add(path if disk.kind(path) != "link" else real, "read", disk.kind(real) == "directory")

    def _secrets(self) -> None:
        request = self._request
        for path in home_secrets(request.home, secret_names(request.own_names)):
            self._hide(path)
        survey = request.found
        secrets = grouped(survey.secrets, (*request.roots, request.home), self._disk)
        for path in survey.unlooked:
            self._hide(path)
        if survey.open:
            self._uncovered.append(
                f"{len(survey.open):,} folders below home that are too many to look into, such as {survey.open[0]}"
            )
        for path in secrets[: request.most_masked]:
            if self._disk.kind(path) == "directory":
                self._hide(path)
            else:
                self._deny(path)
        if survey.unruled:
            self._uncovered.append(f"files that your rule {survey.unruled} covers, which are too many to look for")
        if left := secrets[request.most_masked :]:
            which = f"{len(left):,} of {len(survey.secrets):,} files that may hold secrets"
            self._uncovered.append(f"{which}, from {left[0]} to {left[-1]}")
        for path in (*request.own_dirs, *request.options.hide):
            self._hide(path, hold=True)

    def _hide(self, path: str, *, hold: bool = False) -> None:
        """Make a place look empty; ``hold`` keeps a missing one from appearing. A workspace inside it stays visible."""
        kind = self._disk.kind(path)
        if kind == "missing" and not hold:
            return  # most of them: resolving a link is expensive
        path = self._disk.real(path)
        kind = self._disk.kind(path)
        root = inside(path, self._request.roots)
        if path == root:
            return
        if kind != "missing":
            self._add(path, "hidden", directory=kind == "directory")
            if root is not None:
                self._pin(path, root)
        elif hold and root is not None:
            self._hold(path, None)
            self._pin(path, root)

    def _deny(self, path: str) -> None:
        real = self._disk.real(path)
        if self._disk.kind(real) == "file":
            self._add(real, "denied", directory=False)

    # --- assembly -------------------------------------------------------------------------------------------------

    def _add(self, path: str, access: Access, directory: bool = True) -> None:
        known = self._mounts.get(path)
        if known is None or _STRENGTH[known.access] < _STRENGTH[access]:
            self._mounts[path] = Mount(path, access, directory)

    def _is_effective(self, mount: Mount) -> bool:
        """Whether the mount restricts anything: below a hidden or private place nothing is left to restrict, unless
        something was mounted there."""
        if mount.access in ("write", "private"):
            return True
        above = _nearest(mount.path, self._mounts)
        if above is None or above.access in ("write", "read"):
            return True
        return mount.access == "read" and above.access == "hidden" and above.directory


def _unshare(stores: Sequence[str], roots: Sequence[str]) -> str:
    """How to give repositories their own copies of all objects, as a sentence; loses none."""
    folders = [store.removesuffix(_OBJECTS.rstrip("/")) for store in stores]
    places = ["" if folder == roots[0] else f"-C {shlex.quote(folder)} " for folder in folders]
    commands = " and ".join(f"`git {argument}repack -a -d -k`" for argument in places)
    return f"To be asked less, run {commands}: it copies the shared files." if commands else ""


def _package_folder(path: str) -> str:
    """The folder around a file that package managers fill with hard links to their store; empty if there is none."""
    parts = path.split("/")
    for name in (".pnpm", "site-packages", "node_modules"):
        if name in parts[:-1]:
            return "/".join(parts[: parts.index(name) + 1])
    return ""


def _nearest(path: str, mounts: dict[str, Mount]) -> Mount | None:
    folder = posixpath.dirname(path)
    while folder != "/":
        if folder in mounts:
            return mounts[folder]
        folder = posixpath.dirname(folder)
    return None
