"""What of storage, terminal and tools works and what does not, and the repairs that can be asked for."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from swecli.assembly.storage import DATABASE
from swecli.core.config.paths import Paths
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.sessions.database import has_locks
from swecli.core.sessions.health import health_of, quarantined, rebuild_index, recover, shrink
from swecli.core.sessions.losses import loss_sentence
from swecli.core.sessions.search import FILE as INDEX
from swecli.core.sessions.search import SearchIndex
from swecli.core.tools.base import readable_size

Repair = Literal["vacuum", "index", "permissions", "recover"]
SESSIONS = "sessions"
"""What the finding on the database of a folder is about."""
LEAST_FREE = 200_000_000
"""Bytes of free space below which it is worth a word."""
_TOOLS = {
    "git": "branch and changes are not shown",
    "rg": "search is slower",
    "bash": "commands can't be run",
}
"""Programs that are used where they are there, and what is missing without them."""


class Finding(Struct, frozen=True):
    """One thing that was looked at. ``repair`` is what would mend it, where something does."""

    what: str
    text: str
    level: Literal["ok", "warning", "error"] = "ok"
    repair: Repair | None = None


def examine_storage(paths: Paths, folder: Path, environment: Mapping[str, str]) -> list[Finding]:
    """Look at everything. Reads the whole database: for a thread."""
    database = paths.workspace_data(folder) / DATABASE
    return [
        *_database(database),
        *_place(paths, database),
        *_permissions(paths, database),
        _terminal(environment),
        *_programs(environment),
    ]


def _database(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(SESSIONS, "none stored for this folder yet")
    else:
        health = health_of(path)
        size = f"{health.sessions:,} in {readable_size(health.size)}"
        if health.damage:
            text = f"damaged: {health.damage}. The next start recovers what can be read and keeps the file"
            yield Finding(SESSIONS, text, "error")
        elif health.trouble:
            yield Finding(SESSIONS, f"{path} can't be read: {health.trouble}", "error")
        elif health.wasteful:
            yield Finding(SESSIONS, f"{size}, {readable_size(health.free)} of it unused", "warning", "vacuum")
        else:
            yield Finding(SESSIONS, f"{size}, intact")
        yield _index(path.with_name(INDEX))
    for one in quarantined(path):
        yield Finding("put aside", f"{one.name}: a damaged database", "warning", "recover")


def _index(path: Path) -> Finding:
    if not path.exists():
        return Finding("search index", "not made yet")
    if not os.access(path.parent, os.W_OK):
        return Finding("search index", f"{readable_size(path.stat().st_size)}, not checked: its folder is read-only")
    try:
        if SearchIndex.sound(path):
            return Finding("search index", readable_size(path.stat().st_size))
    except (sqlite3.Error, OSError) as error:
        return Finding("search index", f"can't be read: {error}", "warning", "index")
    return Finding("search index", "damaged", "warning", "index")


def _place(paths: Paths, database: Path) -> Iterator[Finding]:
    there = next((one for one in (database.parent, *database.parents) if one.is_dir()), paths.data)
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        yield Finding("data folder", f"{there} can't be read: {error.strerror}", "error")
        return
    if not os.access(there, os.W_OK):
        yield Finding("data folder", f"{there} can't be written: sessions are kept in memory only", "error")
        return
    level: Literal["ok", "warning"] = "warning" if free < LEAST_FREE else "ok"
    yield Finding("data folder", f"{there}, {readable_size(free)} free", level)
    if not has_locks(there):
        text = "has no file locks: slower, and open a session in one swecli at a time only"
        yield Finding("file system", text, "warning")


def _permissions(paths: Paths, database: Path) -> Iterator[Finding]:
    named = [str(path) for path in _open_to_others(paths, database)]
    if named:
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        yield Finding("permissions", f"others may read {', '.join(named[:3])}{more}", "error", "permissions")
    else:
        yield Finding("permissions", "files are readable by you only")


def _open_to_others(paths: Paths, database: Path) -> Iterator[Path]:
    """Folders and files of this user that others may look into."""
    for path in (*paths.all, *(database.parent.glob("*") if database.parent.is_dir() else ()), database.parent):
        with suppress(OSError):
            status = path.lstat()
            mine = status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
            if mine and status.st_mode & 0o077:
                yield path


def _terminal(environment: Mapping[str, str]) -> Finding:
    term, encoding = environment.get("TERM", ""), (sys.getfilesystemencoding() or "").lower()
    size = shutil.get_terminal_size((0, 0))
    facts = [
        term or "TERM is not set",
        f"{size.columns}x{size.lines}" if size.columns and size.lines else "no terminal",
        f"COLORTERM {environment.get('COLORTERM', '-')}",
    ]
    facts += ["in tmux"] if environment.get("TMUX") else []
    if term in ("", "dumb"):
        return Finding("terminal", f"{', '.join(facts)}: only swecli --plain works here", "warning")
    if "utf" not in encoding:
        return Finding("terminal", f"{', '.join(facts)}, encoding {encoding}: set LANG to a UTF-8 one", "warning")
    return Finding("terminal", ", ".join(facts))


def _programs(environment: Mapping[str, str]) -> Iterator[Finding]:
    path = environment.get("PATH")
    missing = {name: why for name, why in _TOOLS.items() if shutil.which(name, path=path) is None}
    for name, why in missing.items():
        yield Finding("programs", f"{name} is not installed: {why}", "error" if name == "bash" else "warning")
    if not missing:
        yield Finding("programs", ", ".join(_TOOLS))


def is_damaged(findings: Sequence[Finding]) -> bool:
    """Whether stored sessions can't be read as they were written."""
    return any(one.what == SESSIONS and one.level == "error" for one in findings)


def finding_blocks(findings: Sequence[Finding]) -> tuple[DisplayBlock, ...]:
    """A table, what is wrong, and the repairs that are offered."""
    rows = tuple((one.what, one.text if one.level == "ok" else f"{one.level}, see below") for one in findings)
    table = TableBlock(("Checked", "Result"), rows, "Storage and terminal")
    blocks: list[DisplayBlock] = [table]
    blocks += [TextBlock(f"{one.what}: {one.text}", one.level) for one in findings if one.level != "ok"]
    offered: dict[Repair, str] = {one.repair: OFFERS[one.repair] for one in findings if one.repair is not None}
    blocks += [TextBlock(f"{offer}: swecli doctor --repair {name}") for name, offer in offered.items()]
    return tuple(blocks)


OFFERS: Mapping[Repair, str] = {
    "vacuum": "Give unused space back",
    "index": "Rebuild the search index",
    "permissions": "Close the files to others",
    "recover": "Bring over what can be read of the database that was put aside",
}


class Repaired(Struct, frozen=True):
    """What a repair did, in sentences. ``complete``: nothing is known to be missing afterwards."""

    text: str
    complete: bool = True


def repair(name: Repair, paths: Paths, folder: Path) -> Repaired:
    """Carry out one repair.

    Raises:
        OSError, sqlite3.Error: it failed; nothing was lost.
    """
    database = paths.workspace_data(folder) / DATABASE
    return _REPAIRS[name](paths, database)


NOTHING_STORED = Repaired("There is nothing stored here.")


def _vacuum(paths: Paths, database: Path) -> Repaired:
    return Repaired(f"{readable_size(shrink(database))} given back.") if database.exists() else NOTHING_STORED


def _new_index(paths: Paths, database: Path) -> Repaired:
    if not database.exists():
        return NOTHING_STORED
    rebuild_index(database)
    return Repaired("The search index was rebuilt.")


def _close(paths: Paths, database: Path) -> Repaired:
    closed = 0
    for path in list(_open_to_others(paths, database)):
        os.chmod(path, stat.S_IMODE(path.lstat().st_mode) & 0o700)
        closed += 1
    return Repaired(f"{closed} files and folders are readable by you only now.")


def _recover(paths: Paths, database: Path) -> Repaired:
    aside = quarantined(database)
    if not aside:
        return Repaired("No damaged database was put aside here.")
    done = [recover(database, one) for one in aside]
    said: list[str] = []
    added = sum(one.added for one in done)
    if added:
        said.append("1 session was recovered." if added == 1 else f"{added:,} sessions were recovered.")
    elif any(one.found for one in done):
        said.append("Every session that can be read is here already.")
    unreadable = [path.name for path, one in zip(aside, done, strict=True) if not one.found]
    said += [f"No session can be read in {name}." for name in unreadable]
    lost = list({one.session: one for each in done for one in each.lost}.values())
    said += [f"{loss_sentence(lost)}."] if lost else []
    said.append("The damaged file stays." if len(aside) == 1 else f"The {len(aside):,} damaged files stay.")
    return Repaired(" ".join(said), complete=not unreadable and not lost)


_REPAIRS: Mapping[Repair, Callable[[Paths, Path], Repaired]] = {
    "vacuum": _vacuum,
    "index": _new_index,
    "permissions": _close,
    "recover": _recover,
}
REPAIRS: tuple[Repair, ...] = tuple(_REPAIRS)
