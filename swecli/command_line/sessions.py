"""``swecli sessions``: the stored sessions of this folder, or of all."""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from swecli.command_line.arguments import Parser, UsageError, count, folder_parser, run_word, working_directory
from swecli.command_line.session_files import cover_of, export_session, import_session
from swecli.command_line.session_store import database_of, opened, paths_of
from swecli.command_line.standard_streams import complain, print_lines, print_text
from swecli.exit_codes import ExitCode
from swecli.figures import plural
from swecli.launch import LaunchOptions, StartError
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.assembly.session_list import Expired, Folder, Retention
    from swecli.core.sessions.store import SessionInfo


def parser_of(word: str, about: str, *, every: bool = False, dry: bool = False) -> Parser:
    """Arguments shared by the subcommands: ``every`` adds all folders, ``dry`` a preview of a deletion."""
    parser = folder_parser(f"swecli sessions {word}", about, "use this folder instead")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    if every:
        parser.add_argument("--all", action="store_true", help="of all folders")
    if dry:
        parser.add_argument("--dry-run", action="store_true", help="list what would be deleted; delete nothing")
    return parser


_BAD = ExitCode.BAD_INPUT
NO_TITLE = "(no message)"


# --- reading ---------------------------------------------------------------------------------------------------


def list_sessions(arguments: Sequence[str]) -> int:
    parser = parser_of("list", "List stored sessions, most recently used first.", every=True)
    parser.add_argument("-n", "--limit", type=count, default=0, metavar="N", help="at most this many per folder")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    listed = [
        (stored, each)
        for stored in _folders(folder, every=chosen.all)
        for each in islice((each for each in stored.sessions if each.turns or each.shown), chosen.limit or None)
    ]
    if chosen.json:
        return print_lines(_json_of(session, open_=session.id in stored.held) for stored, session in listed)
    if not listed:
        from swecli.assembly.continuing import no_sessions

        complain("swecli: " + ("No sessions are stored" if chosen.all else str(no_sessions(folder))))
        return ExitCode.OK
    headers = ("id", "last used", "turns", "size", "model", "branch", *(("folder",) if chosen.all else ()), "title")
    rows: list[tuple[str, ...]] = []
    for stored, session in listed:
        missing = "" if not chosen.all or os.path.isdir(session.cwd) else " (gone)"
        folder_cell = (f"{session.cwd}{missing}",) if chosen.all else ()
        is_open = " (open)" if session.id in stored.held else ""
        cells = (session.id, _when(session.updated), str(session.turns), _size(session.size), session.model)
        rows.append((*cells, session.branch, *folder_cell, f"{' '.join(session.shown.split())}{is_open}"))
    return _table(headers, rows)


def show(arguments: Sequence[str]) -> int:
    parser = parser_of("show", "Show a session: its details and its transcript.")
    parser.add_argument("session", metavar="ID", help="its id, the start of it, or its name")
    chosen = parser.parse_args(arguments)
    from swecli.core.sessions.journal import masked_events

    cover = cover_of(working_directory(chosen.cwd))
    with opened(working_directory(chosen.cwd)) as store:
        session = store.get(chosen.session)
        # An older swecli may have stored what is masked today.
        events = masked_events(store.load(session.id, lambda text: complain(f"warning: {text}")), cover)
        is_open = store.holder(session.id) is not None
        lost = store.loss(session.id)
    if chosen.json:
        from swecli.core.protocol.codec import encode_event

        return print_lines((_json_of(session, open_=is_open), *(encode_event(event) for event in events)))
    from swecli.event_lines import EventLines

    used = f"{_when(session.created)} to {_when(session.updated)}"
    lines = [
        f"Session {session.id}{' (open in another swecli)' if is_open else ''}",
        f"Title   {session.shown or NO_TITLE}",
        f"Folder  {session.cwd}{'' if os.path.isdir(session.cwd) else ' (gone; see swecli sessions relink)'}",
        f"Model   {session.model or 'none'}",
        f"Used    {used}, {plural(session.turns, 'message')}, {_size(session.size)}",
        *([f"Branch  {session.branch}"] if session.branch else []),
        *([f"Parent  {session.parent}"] if session.parent else []),
        *([f"Lost    {lost}; the database was damaged"] if lost is not None else []),
        "",
    ]
    writer = EventLines(lines.append, past=True)
    for event in events:
        writer.event(event)
    writer.end()
    return _printed(lines)


def search(arguments: Sequence[str]) -> int:
    parser = parser_of("search", "Find sessions that contain all the words.", every=True)
    parser.add_argument("words", nargs="+", metavar="WORD")
    chosen = parser.parse_args(arguments)
    from swecli.core.sessions.search import searched

    cover = cover_of(working_directory(chosen.cwd))
    hits = [
        (session, replace(hit, text=cover(hit.text)))
        for stored in _folders(working_directory(chosen.cwd), every=chosen.all)
        for known in [{session.id: session for session in stored.sessions}]
        for hit in searched(stored.database, " ".join(chosen.words))
        if (session := known.get(hit.session)) is not None
    ]
    if chosen.json:
        return print_lines(_json_of(session, text=hit.text, places=hit.places) for session, hit in hits)
    if not hits:
        complain(f"swecli: no session contains {' '.join(chosen.words)!r}" + ("" if chosen.all else "; try --all"))
        return ExitCode.FAILURE
    lines: list[str] = []
    for session, hit in hits:
        suffix = f"  {session.cwd}" if chosen.all else ""
        lines += [f"{session.id}  {_when(session.updated)}  {session.shown or NO_TITLE}{suffix}", f"    {hit.text}"]
    return _printed(lines)


# --- changing --------------------------------------------------------------------------------------------------


def rename(arguments: Sequence[str]) -> int:
    parser = parser_of("rename", "Name a session, for use with -r; an empty name removes it.")
    parser.add_argument("session", metavar="ID")
    parser.add_argument("name", metavar="NAME")
    chosen = parser.parse_args(arguments)
    with opened(working_directory(chosen.cwd), changes=True) as store:
        session = store.get(chosen.session)
        name = store.rename(session.id, chosen.name)
    if chosen.json:
        return print_lines((_json_of(replace(session, name=name)),))
    return print_text(f"{session.id} is now called {name!r}.\n" if name else f"{session.id} no longer has a name.\n")


def delete(arguments: Sequence[str]) -> int:
    parser = parser_of("delete", "Delete sessions with their stored results, file changes and logs.", dry=True)
    parser.add_argument("sessions", nargs="+", metavar="ID")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    with opened(folder, changes=not chosen.dry_run) as store:
        named = list({session.id: session for session in map(store.get, chosen.sessions)}.values())
        open_ids = [session.id for session in named if store.holder(session.id) is not None]
    if open_ids:
        raise StartError(f"Session {open_ids[0]} is open in another swecli; close it first. Nothing was deleted.", _BAD)
    if not chosen.dry_run:
        _removed(database_of(folder), named)
    return _reported(((session, "named") for session in named), as_json=chosen.json, dry=chosen.dry_run)


def purge(arguments: Sequence[str]) -> int:
    parser = parser_of(
        "purge", "Delete sessions by age and size; without flags, as the settings say.", every=True, dry=True
    )
    parser.add_argument("--older-than", metavar="DAYS", help="unused for this long (30, 12h, 4w)")
    parser.add_argument(
        "--max-size", metavar="SIZE", help=("delete the oldest until the rest of a folder fits (500M, 2G)")
    )
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    older_than = None if chosen.older_than is None else _days(chosen.older_than)
    rules = _rules(folder, older_than, chosen.max_size)
    if not rules.limits:
        complain("swecli: no limit is set; use --older-than or --max-size, or set sessions.delete_after_days")
        return ExitCode.OK
    from swecli.assembly.session_list import expired

    deleted: list[Expired] = []
    for stored in _folders(folder, every=chosen.all):
        outdated = expired(stored.sessions, rules, time.time(), stored.held)
        if outdated and not chosen.dry_run:
            _removed(stored.database, [each.session for each in outdated], vacuum=True)
        deleted += outdated
    return _reported(((entry.session, entry.why) for entry in deleted), as_json=chosen.json, dry=chosen.dry_run)


def _rules(folder: Path, older_than: float | None, size: str | None) -> Retention:
    """Flags apply to sessions of any age; without flags, the settings apply."""
    from swecli.assembly.session_list import Retention
    from swecli.assembly.startup import startup_of

    if older_than is not None or size is not None:
        return Retention(older_than, None if size is None else _bytes(size), 0)
    settings = startup_of(LaunchOptions(cwd=folder), dict(os.environ)).loaded.settings.sessions
    return Retention(settings.delete_after_days, settings.max_total_bytes, settings.protect_days)


def relink(arguments: Sequence[str]) -> int:
    parser = parser_of("relink", "Reassign the sessions of a moved or renamed folder to its new place.")
    parser.add_argument("old", metavar="OLD", help="the old path of the folder")
    parser.add_argument("new", metavar="NEW", nargs="?", help="its new path; default: this folder")
    parser.add_argument("--dry-run", action="store_true", help="list what would be moved; move nothing")
    chosen = parser.parse_args(arguments)
    new = working_directory(chosen.new if chosen.new is not None else chosen.cwd)
    old = Path(os.path.abspath(os.path.expanduser(chosen.old)))
    from swecli.assembly.session_list import move_sessions
    from swecli.core.sessions.store import SessionError

    try:
        moved = move_sessions(paths_of(), old, new, dry=chosen.dry_run)
    except (SessionError, sqlite3.Error) as error:
        raise StartError(f"{error}", _BAD) from error
    if moved.trouble:
        complain(f"warning: {moved.trouble}")
    if chosen.json:
        return print_lines(_json_of(session) for session in moved.sessions)
    verb, count = "would move" if chosen.dry_run else "moved", len(moved.sessions)
    return print_text(f"{verb} {plural(count, 'session')} from {old} to {new}\n")


# --- shared parts ----------------------------------------------------------------------------------------------


def _folders(folder: Path, *, every: bool) -> list[Folder]:
    """The database of the folder, or of all folders, the most recently used first."""
    from swecli.assembly.session_list import databases, folder_of
    from swecli.core.sessions.database import changed_at

    own = database_of(folder)
    files = sorted(databases(paths_of().data), key=changed_at, reverse=True) if every else [own] if own.exists() else []
    if own.exists() and not every:
        from swecli.core.sessions.database import LOOKED_AT, open_database

        database = open_database(own, purpose=LOOKED_AT)  # repairs and migrates it
        for problem in database.problems if not database.copied else ():
            complain(f"warning: {problem}")
        database.close()
    return [folder_of(file) for file in files]


def _removed(database: Path, sessions: Sequence[SessionInfo], *, vacuum: bool = False) -> None:
    from swecli.assembly.session_list import remove
    from swecli.core.sessions.store import SessionError

    try:
        for trouble in remove(paths_of(), database, sessions, vacuum=vacuum):
            complain(f"warning: {trouble}")
    except (SessionError, sqlite3.Error) as error:
        raise StartError(f"{error}", _BAD) from error


def _reported(deleted: Iterable[tuple[SessionInfo, str]], *, as_json: bool, dry: bool) -> int:
    listed = list(deleted)
    if as_json:
        return print_lines(_json_of(session, why=why, deleted=not dry) for session, why in listed)
    verb = "would be deleted" if dry else "deleted"
    lines = [f"{session.id}  {_when(session.updated)}  {session.shown or NO_TITLE}  ({why})" for session, why in listed]
    total = sum(session.size for session, _ in listed)
    return _printed([*lines, f"{plural(len(listed), 'session')} {verb}, {_size(total)}"])


def _json_of(session: SessionInfo, *, open_: bool | None = None, **more: object) -> str:
    fields: dict[str, Any] = {
        "id": session.id,
        "name": session.name,
        "title": session.title,
        "first": session.first,
        "cwd": session.cwd,
        "branch": session.branch,
        "model": session.model,
        "created": session.created,
        "updated": session.updated,
        "turns": session.turns,
        "tokens": session.tokens,
        "cost": session.cost or None,
        "size": session.size,
        "parent": session.parent,
        "swecli": session.swecli,
    }
    if open_ is not None:
        fields["open"] = open_
    return json.dumps(fields | more)


_AGE = lazy_pattern(r"(\d+(?:\.\d*)?|\.\d+)\s*([hdw]?)", re.IGNORECASE)
_MAX_BYTES = 1e18
"""Sizes from here on are invalid."""
_BYTES = lazy_pattern(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def _days(text: str) -> float:
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--older-than {text!r} is not an age such as 30 (days), 12h or 4w")
    return float(match[1]) * {"h": 1 / 24, "d": 1, "": 1, "w": 7}[match[2].lower()]


def _bytes(text: str) -> int:
    match = _BYTES.fullmatch(text.strip())
    size = float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[match[2].upper()] if match else math.inf
    if size >= _MAX_BYTES:
        raise UsageError(f"--max-size {text!r} is not a size such as 500M")
    return int(size)


def _size(size: int) -> str:
    from swecli.core.tools.base import readable_size

    return readable_size(size)


def _when(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).strftime("%Y-%m-%d %H:%M")


def _table(headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> int:
    from swecli.block_text import block_lines
    from swecli.core.protocol.blocks import TableBlock

    return _printed(block_lines(TableBlock(headers, tuple(rows))))


def _printed(lines: Sequence[str]) -> int:
    return print_text("\n".join(lines) + "\n")


ACTIONS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "list": list_sessions,
    "show": show,
    "search": search,
    "export": export_session,
    "import": import_session,
    "rename": rename,
    "delete": delete,
    "purge": purge,
    "relink": relink,
}
"""The subcommands by their words, in the order of the help."""


_DESCRIPTION = """Show and change stored sessions. Each word has --help.

  swecli sessions [list] [--all]    list this folder's sessions, or those of all folders
  swecli sessions show ID           show details and transcript
  swecli sessions search WORD ...   find sessions by their content
  swecli sessions export ID         write one as Markdown, HTML or JSON
  swecli sessions import FILE       store a session from a file, also of another agent
  swecli sessions rename ID NAME    name one
  swecli sessions delete ID ...     delete some, with their results, file changes and logs
  swecli sessions purge             delete by age or size
  swecli sessions relink OLD [NEW]  assign the sessions of a moved folder to its new place
"""


def sessions(arguments: Sequence[str]) -> int:
    """``swecli sessions [ACTION]``; without one: list."""
    return run_word("swecli sessions", _DESCRIPTION, ACTIONS, arguments, "list")
