"""``swecli logs``: the logs of this folder's sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.command_line.arguments import folder_parser, working_directory
from swecli.command_line.standard_streams import complain, print_lines, print_text
from swecli.exit_codes import ExitCode
from swecli.launch import StartError

if TYPE_CHECKING:
    from swecli.core.sessions.log import Entry


def logs(arguments: Sequence[str]) -> int:
    """``swecli logs [list|show|path|export] [ID]``."""
    parser = folder_parser(
        "swecli logs",
        "Logs of this folder's sessions: .swecli/logs/ID.log, one JSON object per line, written "
        "while you trust the folder. export prints any stored session as one document with events "
        "and totals.",
        "logs of this folder",
    )
    parser.add_argument("what", nargs="?", choices=("list", "show", "path", "export"), default="list")
    parser.add_argument("id", nargs="?", default="", help="the session's id or the start of it; default: the newest")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    if chosen.what == "list":
        return _list(folder)
    if chosen.what == "export":
        return _export(folder, chosen.id)
    name = _logged(folder, chosen.id)
    if chosen.what == "path":
        from swecli.core.sessions.log import log_path

        return print_text(f"{log_path(folder, name)}\n")
    return print_text("".join(f"{_line(entry)}\n" for entry in _entries(folder, name)))


def _names(folder: Path) -> list[str]:
    """Sessions with a log here, the newest first."""
    from swecli.core.sessions.log import FOLDER

    log_folder = folder.joinpath(*FOLDER)
    try:
        files = [path for path in log_folder.iterdir() if path.suffix == ".log" and path.is_file()]
    except OSError:
        return []
    return [path.stem for path in sorted(files, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)]


def _list(folder: Path) -> int:
    from swecli.core.sessions.log import log_files
    from swecli.core.tools.base import readable_size
    from swecli.safe_text import safe_line

    names = _names(folder)
    if not names:
        complain(
            f"swecli: no logs in {folder}. swecli writes them in folders you trust (`swecli permissions trust`) "
            "unless log.enabled is false; `swecli logs export ID` works without."
        )
        return ExitCode.OK
    lines: list[str] = []
    for name in names:
        size = sum(path.stat().st_size for path in log_files(folder, name))
        lines.append(f"{safe_line(name)}  {readable_size(size)}\n")
    return print_text("".join(lines))


def _logged(folder: Path, wanted: str) -> str:
    """The session whose log is meant.

    Raises:
        StartError: there is none, or several.
    """
    names = _names(folder)
    matches = [name for name in names if name == wanted] or [name for name in names if name.startswith(wanted)]
    if not matches:
        about = f" for session {wanted!r}" if wanted else ""
        raise StartError(f"There is no log{about} in {folder}; `swecli logs` lists them", ExitCode.BAD_INPUT)
    if wanted and len(matches) > 1:
        raise StartError(f"Several logs start with {wanted!r}: {', '.join(matches[:5])}", ExitCode.BAD_INPUT)
    return matches[0]


def _entries(folder: Path, name: str) -> Iterator[Entry]:
    from swecli.core.sessions.log import log_files, read_lines

    for path in log_files(folder, name):
        with path.open("rb") as file:
            yield from read_lines(file)


def _line(entry: Entry) -> str:
    from swecli.safe_text import safe_line

    rest = ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in entry.items()
        if name not in ("timestamp", "type")
    )
    return safe_line(f"{entry.get('timestamp', '')} {entry.get('type', '')}: {rest}")


def _export(folder: Path, wanted: str) -> int:
    """Export the complete stored session; without one, the log."""
    from swecli.core.protocol.codec import to_text
    from swecli.core.sessions.log import log_document, visible_json

    name, entries = _stored(folder, wanted)
    if not name:
        name = _logged(folder, wanted)
        entries = list(_entries(folder, name))
    document = json.loads(to_text(log_document(name, entries)))  # without lone surrogates, as in the log
    return print_lines(visible_json(json.dumps(document, ensure_ascii=False, indent=2)).split("\n"))


def _stored(folder: Path, wanted: str) -> tuple[str, list[Entry]]:
    """Id and entries of a stored session; both empty without one."""
    from swecli.command_line.session_files import cover_of
    from swecli.command_line.session_store import database_of, opened
    from swecli.core.context_management.counter import PieceEstimator
    from swecli.core.sessions.journal import masked_events
    from swecli.core.sessions.log import LogEntries
    from swecli.core.sessions.store import SessionError, SeveralSessions

    if not database_of(folder).exists():
        return "", []
    with opened(folder) as store:
        try:
            newest = next(iter(store.list(limit=1)), None)
            name = store.get(wanted).id if wanted else newest.id if newest is not None else ""
        except SeveralSessions:
            raise
        except SessionError:
            return "", []
        events = store.load(name, lambda text: complain(f"warning: {text}")) if name else []
    reading = LogEntries(PieceEstimator().count)
    return name, [entry for event in masked_events(events, cover_of(folder)) for entry in reading.take(event)]
