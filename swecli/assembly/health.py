"""Checks of stored sessions, terminal and programs, and repairs of what is stored."""

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

from swecli.assembly.checkpoints import FILE as CHECKPOINTS
from swecli.core.config.paths import Paths
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.sessions.database import CONTINUED, DATABASE, has_locks
from swecli.core.sessions.health import health_of, quarantined, rebuild_index, recover, shrink, shrink_other
from swecli.core.sessions.losses import loss_sentence
from swecli.core.sessions.search import FILE as INDEX
from swecli.core.sessions.search import SearchIndex
from swecli.core.tools.base import readable_size

Repair = Literal["vacuum", "index", "permissions", "recover"]
SESSIONS = "sessions"
"""Subject of the finding on the database of a folder."""
LEAST_FREE = 200_000_000
"""Bytes of free space below which a warning appears."""
_TOOLS = {
    "git": "branch and changes are not shown",
    "rg": "search is slower",
    "bash": "commands can't run",
}
"""Optional programs, with the effect of their absence."""


class Finding(Struct, frozen=True):
    """Result of one check. ``repair`` is the available remedy, if any."""

    what: str
    text: str
    level: Literal["ok", "warning", "error"] = "ok"
    repair: Repair | None = None


def examine_storage(paths: Paths, folder: Path, environment: Mapping[str, str]) -> list[Finding]:
    """Run all checks of the storage. Reads the whole database: for a thread."""
    database = paths.workspace_data(folder) / DATABASE
    return [
        *_database(database),
        *_place(paths, database),
        *_permissions(paths, database),
        _terminal(environment),
        *_programs(environment),
    ]


_NONE = "none stored for this folder yet"


def _database(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(SESSIONS, _NONE)
    else:
        health = health_of(path)
        size = f"{health.sessions:,} in {readable_size(health.size)}"
        if health.damage:
            text = f"damaged: {health.damage}. The next start recovers the readable data and keeps the file"
            yield Finding(SESSIONS, text, "error")
        elif health.trouble:
            yield Finding(SESSIONS, f"cannot read {path}: {health.trouble}", "error")
        elif health.wasteful:
            yield Finding(SESSIONS, f"{size}, {readable_size(health.free)} of it unused", "warning", "vacuum")
        elif not health.sessions:
            yield Finding(SESSIONS, _NONE)
        else:
            yield Finding(SESSIONS, f"{size}, intact")
        yield _index(path.with_name(INDEX))
    for one in quarantined(path):
        what = "a session went on in it" if CONTINUED in one.name else "a damaged database"
        yield Finding("set aside", f"{one.name}: {what}", "warning", "recover")


def _index(path: Path) -> Finding:
    if not path.exists():
        return Finding("search index", "not built yet")
    if not os.access(path.parent, os.W_OK):
        return Finding("search index", f"{readable_size(path.stat().st_size)}, not checked: its folder is read-only")
    try:
        if SearchIndex.sound(path):
            return Finding("search index", readable_size(path.stat().st_size))
    except (sqlite3.Error, OSError) as error:
        return Finding("search index", f"cannot read it: {error}", "warning", "index")
    return Finding("search index", "damaged", "warning", "index")


def _place(paths: Paths, database: Path) -> Iterator[Finding]:
    there = next((one for one in database.parents if one.exists()), paths.data)
    if not there.is_dir():
        yield Finding("data folder", f"{there} is no folder: sessions stay in memory only", "error")
        return
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        yield Finding("data folder", f"cannot read {there}: {error.strerror}", "error")
        return
    if not os.access(there, os.W_OK):
        yield Finding("data folder", f"cannot write {there}: sessions stay in memory only", "error")
        return
    level: Literal["ok", "warning"] = "warning" if free < LEAST_FREE else "ok"
    yield Finding("data folder", f"{there}, {readable_size(free)} free", level)
    if not has_locks(there):
        text = "has no file locks: slower; open each session in only one swecli at a time"
        yield Finding("file system", text, "warning")


def _permissions(paths: Paths, database: Path) -> Iterator[Finding]:
    named = [str(path) for path in _open_to_others(paths, database)]
    if named:
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        yield Finding("permissions", f"others may read {', '.join(named[:3])}{more}", "error", "permissions")
    else:
        yield Finding("permissions", "only you can read the files")


def _open_to_others(paths: Paths, database: Path) -> Iterator[Path]:
    """Folders and files of this user that others may read."""
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
    """Whether stored sessions can't be read as written."""
    return any(one.what == SESSIONS and one.level == "error" for one in findings)


def finding_blocks(findings: Sequence[Finding]) -> tuple[DisplayBlock, ...]:
    """A table, the problems, and the available repairs."""
    rows = tuple((one.what, one.text if one.level == "ok" else f"{one.level}, see below") for one in findings)
    table = TableBlock(("Checked", "Result"), rows, "Storage and terminal")
    blocks: list[DisplayBlock] = [table]
    blocks += [TextBlock(f"{one.what}: {one.text}", one.level) for one in findings if one.level != "ok"]
    offered: dict[Repair, str] = {one.repair: OFFERS[one.repair] for one in findings if one.repair is not None}
    blocks += [TextBlock(f"{offer}: swecli doctor --repair {name}") for name, offer in offered.items()]
    return tuple(blocks)


OFFERS: Mapping[Repair, str] = {
    "vacuum": "Return unused space to the disk",
    "index": "Rebuild the search index",
    "permissions": "Make the files private",
    "recover": "Recover readable data from the damaged database",
}


class Repaired(Struct, frozen=True):
    """Result of a repair, in sentences. ``complete``: nothing is known to be missing afterwards."""

    text: str
    complete: bool = True


def repair(name: Repair, paths: Paths, folder: Path) -> Repaired:
    """Carry out one repair.

    Raises:
        OSError, sqlite3.Error: it failed; nothing was lost.
    """
    database = paths.workspace_data(folder) / DATABASE
    return _REPAIRS[name](paths, database)


NOTHING_STORED = Repaired("Nothing is stored here.")


def _vacuum(paths: Paths, database: Path) -> Repaired:
    if not database.exists():
        return NOTHING_STORED
    freed = shrink(database)
    for other in (database.with_name(INDEX), paths.state / "checkpoints" / database.parent.name / CHECKPOINTS):
        freed += shrink_other(other)
    return Repaired(f"Returned {readable_size(freed)} to the disk.")


def _new_index(paths: Paths, database: Path) -> Repaired:
    if not database.exists():
        return NOTHING_STORED
    rebuild_index(database)
    return Repaired("Rebuilt the search index.")


def _close(paths: Paths, database: Path) -> Repaired:
    closed = 0
    for path in list(_open_to_others(paths, database)):
        os.chmod(path, stat.S_IMODE(path.lstat().st_mode) & 0o700)
        closed += 1
    return Repaired(f"Made {closed} files and folders private to you.")


def _recover(paths: Paths, database: Path) -> Repaired:
    aside = quarantined(database)
    if not aside:
        return Repaired("There is no damaged database here.")
    done = [recover(database, one) for one in aside]
    said: list[str] = []
    added, grown = sum(one.added for one in done), sum(one.grown for one in done)
    if added:
        said.append("Recovered 1 session." if added == 1 else f"Recovered {added:,} sessions.")
    if grown:
        said.append(f"Added what was missing to {'1 session' if grown == 1 else f'{grown:,} sessions'}.")
    if not added and not grown and any(one.found for one in done):
        said.append("All readable sessions are already here.")
    unreadable = [path.name for path, one in zip(aside, done, strict=True) if not one.found]
    said += [f"{name} has no readable session." for name in unreadable]
    lost = list({one.session: one for each in done for one in each.lost}.values())
    said += [f"{loss_sentence(lost)}."] if lost else []
    damaged = "" if any(CONTINUED in one.name for one in aside) else "damaged "
    said.append(f"The {damaged}file is kept." if len(aside) == 1 else f"The {len(aside):,} {damaged}files are kept.")
    return Repaired(" ".join(said), complete=not unreadable and not lost)


_REPAIRS: Mapping[Repair, Callable[[Paths, Path], Repaired]] = {
    "vacuum": _vacuum,
    "index": _new_index,
    "permissions": _close,
    "recover": _recover,
}
