"""What a command sees of the disk: a pure function of the workspace, the wishes and what is there."""

from __future__ import annotations

import posixpath

from swecli.core.permissions.paths import inside, protected_reason
from swecli.core.sandbox.disk import Disk
from swecli.core.sandbox.places import (
    GUARDED_NAMES,
    caches,
    home_secrets,
    is_dotenv,
    needed_of_run,
    socket_places,
)
from swecli.core.sandbox.repositories import GitPlaces, git_places, nested
from swecli.core.sandbox.values import Access, Mount, Placeholder, Plan, Request

_TEMPORARY = ("/tmp", "/dev/shm")
_STRENGTH: dict[Access, int] = {"private": 0, "write": 1, "read": 2, "hidden": 3, "denied": 4}
"""Where one place is meant twice, the narrower meaning holds."""


def mount_plan(request: Request, disk: Disk) -> Plan:
    """The plan for one command. The workspace, the package caches and a temporary directory of its own may be written;
    what steers other programs, secrets and the sockets of services may not even there."""
    return _Drawing(request, disk).plan()


class _Drawing:
    """One plan in the making."""

    def __init__(self, request: Request, disk: Disk) -> None:
        self._request = request
        self._disk = disk
        self._mounts: dict[str, Mount] = {}
        self._absent: dict[str, Placeholder] = {}
        self._uncovered: list[str] = []

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
        self._secrets()
        if request.options.network:
            self._uncovered.append("the network is open, by your setting")
        mounts = tuple(sorted(self._mounts.values(), key=lambda mount: (mount.path.count("/"), mount.path)))
        return Plan(
            request.roots,
            tuple(mount for mount in mounts if self._matters(mount)),
            tuple(self._absent[path] for path in sorted(self._absent)),
            request.private,
            self._disk.real(_TEMPORARY[0]),
            request.options.network,
            tuple(self._uncovered),
        )

    # --- what may be written --------------------------------------------------------------------------------------

    def _writable(self) -> list[str]:
        request = self._request
        found = list(request.roots)
        wished = (self._disk.real(path) for path in request.options.writable)
        found += [path for path in wished if self._disk.kind(path) != "missing"]
        for path in caches(request.environment, request.home, self._disk):
            if not any(inside(path, (own,)) for own in request.own_dirs):
                found.append(path)
        for path in found:
            if path == "/" or inside(request.home or "/", (path,)):
                self._uncovered.append(f"{path} holds your home directory")
        return [path for path in found if path != "/"]

    def _root(self, root: str) -> None:
        """What stays as it is inside a workspace."""
        disk = self._disk
        names = disk.names(root)
        for name in names:
            path = posixpath.join(root, name)
            if name != ".git" and name not in GUARDED_NAMES and self._steers(path, root):
                self._guard(path, root)
            if is_dotenv(name):
                self._deny(path)
        for name in GUARDED_NAMES[1:]:
            self._guard_or_hold(posixpath.join(root, name), root)
        repositories = [root, *nested(root, disk)]
        for folder in repositories:
            self._repository(git_places(folder, disk), root)
            if folder != root:
                for name in disk.names(folder):
                    if is_dotenv(name):
                        self._deny(posixpath.join(folder, name))
        if ".git" not in names:
            self._hold(posixpath.join(root, ".git"), None)

    def _steers(self, path: str, root: str) -> bool:
        return protected_reason(path, (root,), self._request.home) is not None

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

    def _guard_or_hold(self, path: str, base: str) -> None:
        if self._disk.kind(path) == "missing":
            self._hold(path, None)
        else:
            self._guard(path, base)

    def _guard(self, path: str, base: str) -> None:
        """Keep a place that is there from being written, moved or replaced."""
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
        """Keep a name that is not there from appearing."""
        self._absent[path] = Placeholder(path, content)
        self._add(path, "read", directory=content is None)

    def _pin(self, path: str, base: str) -> None:
        """Make every folder on the way a place of its own: otherwise it could be moved, and a new one put there."""
        folder = posixpath.dirname(path)
        while folder != base and inside(folder, (base,)):
            self._add(folder, "write")
            folder = posixpath.dirname(folder)

    # --- what is not seen -----------------------------------------------------------------------------------------

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
        for path in home_secrets(request.home):
            self._hide(path)
        for path in (*request.own_dirs, *request.options.hide):
            self._hide(path, hold=True)

    def _hide(self, path: str, *, hold: bool = False) -> None:
        """Make a place look empty, and with ``hold`` keep it from appearing where it is not there. A workspace in it
        stays in sight."""
        kind = self._disk.kind(path)
        if kind == "missing" and not hold:
            return  # most of them: finding out where a link leads is dear
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
        """Keep a file from being opened."""
        real = self._disk.real(path)
        if self._disk.kind(real) == "file":
            self._add(real, "denied", directory=False)

    # --- putting together -----------------------------------------------------------------------------------------

    def _add(self, path: str, access: Access, directory: bool = True) -> None:
        known = self._mounts.get(path)
        if known is None or _STRENGTH[known.access] < _STRENGTH[access]:
            self._mounts[path] = Mount(path, access, directory)

    def _matters(self, mount: Mount) -> bool:
        """Whether there is anything at the place to narrow: below a hidden or private one there is not, unless
        something was put there."""
        if mount.access in ("write", "private"):
            return True
        above = _nearest(mount.path, self._mounts)
        if above is None or above.access in ("write", "read"):
            return True
        return mount.access == "read" and above.access == "hidden" and above.directory


def _nearest(path: str, mounts: dict[str, Mount]) -> Mount | None:
    folder = posixpath.dirname(path)
    while folder != "/":
        if folder in mounts:
            return mounts[folder]
        folder = posixpath.dirname(folder)
    return None
