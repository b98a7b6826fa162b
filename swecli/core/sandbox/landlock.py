"""From a plan to Landlock rules, where bubblewrap can't be had.

Landlock only ever adds rights, and a right on a directory holds for everything below it. A place inside a directory can
therefore only be left out by naming all of its siblings. What follows from that: no new name can be made directly in a
directory that has something to protect, the top of the workspace above all.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from swecli.core.permissions.paths import inside
from swecli.core.sandbox.disk import Disk
from swecli.core.sandbox.values import Plan

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(13, 16))
_FIRST = (1 << 13) - 1
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""Rights that a rule on a single file may have."""
_READ = EXECUTE | READ_FILE | READ_DIR
_CHANGE = (
    WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_MAX_ENTRIES = 2_000
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT, _SCOPE_SIGNAL = 1, 2


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights on a path and, for a directory, on everything below it."""

    path: str
    rights: int


@dataclass(frozen=True, slots=True)
class Ruleset:
    """What is refused by default (``files``, ``net``, ``scope`` as the kernel's bits) and what is granted."""

    files: int
    net: int
    scope: int
    grants: tuple[Grant, ...]


def handled(abi: int, *, network: bool) -> tuple[int, int, int]:
    """The rights that this version of the interface can refuse: files, network, scope."""
    files = _FIRST
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        files |= right if abi >= since else 0
    net = _NET_BIND | _NET_CONNECT if abi >= 4 and not network else 0
    return files, net, _SCOPE_ABSTRACT | _SCOPE_SIGNAL if abi >= 6 else 0


def uncovered(abi: int, *, network: bool) -> tuple[str, ...]:
    """What stays open, as clauses."""
    found = [
        "modes, owners, times and attributes of files that are yours",
        "Unix sockets of other programs",
        "names of hidden files",
    ]
    found += ["truncating files outside"] if abi < 3 else []
    found += ["signals to other programs", "abstract sockets"] if abi < 6 else []
    return (*found, *(("the network",) if network else ()))


def ruleset(plan: Plan, disk: Disk, abi: int) -> Ruleset:
    """The rules for one command. Entries that appear later, beside something protected, have no rights."""
    files, net, scope = handled(abi, network=plan.network)
    grants: dict[str, int] = {}

    def grant(path: str, rights: int) -> None:
        kind = disk.kind(path)
        if kind not in ("missing", "link"):
            allowed = rights & files & (-1 if kind == "directory" else _OF_FILES)
            grants[path] = grants.get(path, 0) | allowed

    unseen = (*plan.paths("hidden", "denied", "private"), "/dev")
    grant("/", READ_DIR)
    for path in _without("/", unseen, disk):
        grant(path, _READ)
    for path in plan.paths("read"):
        grant(path, _READ)
    writable = plan.paths("write")
    spared = (*plan.paths("read", "hidden", "denied"), *(one.path for one in plan.placeholders))
    for path in writable:
        # A folder that is only a step on the way to something protected is written through its other entries.
        for entry in _without(path, spared, disk):
            grant(entry, _READ | _CHANGE)
        grant(path, READ_DIR)
    grant(plan.private, _READ | _CHANGE)
    for path in _DEVICES:
        grant(path, READ_FILE | WRITE_FILE | IOCTL_DEV)
    return Ruleset(files, net, scope, tuple(Grant(path, grants[path]) for path in sorted(grants) if grants[path]))


def _without(path: str, left_out: tuple[str, ...], disk: Disk) -> list[str]:
    """Places that together are all of ``path`` except what is left out: itself where nothing below it is."""
    if inside(path, left_out):
        return []
    prefix = path.rstrip("/") + "/"
    below = tuple(one for one in left_out if one.startswith(prefix))
    if not below:
        return [path]
    names = disk.names(path)
    if len(names) > _MAX_ENTRIES:
        return []
    found: list[str] = []
    for name in names:
        entry = posixpath.join(path, name)
        kind = disk.kind(entry)
        if kind == "directory":
            found += _without(entry, below, disk)
        elif kind in ("file", "other") and entry not in below:
            found.append(entry)
    return found
