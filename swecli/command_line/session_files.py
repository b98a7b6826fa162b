"""``swecli sessions export`` and ``import``: a stored session as a file, and a file as a stored session."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from swecli.command_line.arguments import UsageError, folder_parser, working_directory
from swecli.command_line.session_store import opened
from swecli.command_line.standard_streams import complain, print_lines, print_text
from swecli.exit_codes import ExitCode
from swecli.export.destination import FORMATS, DestinationError, ExportFormat, format_of, write_export
from swecli.figures import plural
from swecli.launch import LaunchOptions, StartError, folder_option

if TYPE_CHECKING:
    from swecli.core.sessions.portable import Portable


def export_session(arguments: Sequence[str]) -> int:
    """``swecli sessions export ID``."""
    parser = folder_parser(
        "swecli sessions export",
        "Write a stored session as Markdown, as a self-contained HTML page, or as JSON for `swecli "
        "sessions import`. swecli masks known keys in all three.",
        "a session of this folder",
    )
    parser.add_argument("id", help="the session's id, the start of it, or its name")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        type=lambda word: "markdown" if word == "md" else word,
        help="default: from the ending of FILE, else markdown",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="output file; default: standard output")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    try:
        wanted: ExportFormat = chosen.format or (format_of(chosen.output) if chosen.output else "markdown")
    except DestinationError as error:
        raise UsageError(str(error)) from None
    text = _exported(folder, chosen.id, wanted)
    if not chosen.output:
        return print_lines(text.rstrip("\n").split("\n")) if wanted == "json" else print_text(text)
    target = Path(os.path.expanduser(chosen.output)).absolute()
    try:
        write_export(target, text, replace=chosen.force)
    except DestinationError as error:
        raise StartError(str(error), ExitCode.BAD_INPUT) from None
    from swecli.core.tools.base import readable_size

    complain(f"swecli: exported to {target} ({readable_size(target.stat().st_size)})")
    return ExitCode.OK


def _exported(folder: Path, name: str, wanted: ExportFormat) -> str:
    from swecli.core.sessions.portable import portable_document, stored_session
    from swecli.export.rendering import readable

    cover = cover_of(folder)
    with opened(folder) as store:
        session = stored_session(store, name, lambda text: complain(f"warning: {text}"))
    if wanted == "json":
        return portable_document(session, cover)
    return readable(session.events, wanted, cover, session.title)


def import_session(arguments: Sequence[str]) -> int:
    """``swecli sessions import FILE``."""
    parser = folder_parser(
        "swecli sessions import",
        "Store a session from a file in this folder: swecli's own JSON export, or a session file of "
        "Claude Code (~/.claude/projects) or Codex (~/.codex/sessions). "
        "Permissions, waiting messages and model addresses are not imported.",
        "the folder it will belong to",
    )
    parser.add_argument("file")
    chosen = parser.parse_args(arguments)
    folder = working_directory(chosen.cwd)
    path = Path(os.path.expanduser(chosen.file)).absolute()
    session = _read(path)
    from swecli.core.sessions.portable import take_in

    cover = cover_of(folder)
    with opened(folder, changes=True, make=True) as store:
        identifier = take_in(store, session, str(folder), cover, f"imported {path.name}")
        turns = store.get(identifier).turns
    for line in session.left_out:
        complain(f"swecli: {line}")
    if session.cwd and session.cwd != str(folder):
        complain(f"swecli: it was made in {session.cwd}; the files it mentions may differ here.")
    command = f"swecli{folder_option(folder)} -r {identifier}"
    return print_text(f"Imported {plural(turns, 'turn')}. Continue with: {command}\n")


def _read(path: Path) -> Portable:
    from swecli.core.sessions.portable import MAX_BYTES, PortableError, read_portable
    from swecli.core.sessions.store import new_session_id
    from swecli.core.workspace.text_file import NotRegularError, TooLargeError, read_bytes
    from swecli.export.foreign import portable_of, read_foreign

    try:
        data, _ = read_bytes(Path(os.path.realpath(path)), MAX_BYTES)  # the user named it, so a link is followed
    except NotRegularError:
        raise StartError(f"{path} is not a file. Nothing was imported.", ExitCode.BAD_INPUT) from None
    except TooLargeError as error:
        raise StartError(f"{error}. Nothing was imported.", ExitCode.BAD_INPUT) from None
    except OSError as error:
        raise StartError(f"{path}: {error.strerror or error}", ExitCode.BAD_INPUT) from None
    text = data.decode("utf-8-sig", "replace")
    try:
        if text.lstrip()[:200].startswith("{") and '"format"' in text[:200] and '"swecli-session"' in text[:200]:
            return read_portable(text)
        if text.lstrip().startswith(("<!DOCTYPE", "# ", "<html")):
            raise PortableError("Markdown and HTML exports are for reading; import takes the JSON export")
        foreign = read_foreign(text)
        began = next((message.at for message in foreign.said if message.at > 0), 0.0)
        moment = datetime.fromtimestamp(began) if began else datetime.now()
        return portable_of(foreign, new_session_id(moment, SystemRandom()))
    except PortableError as error:
        raise StartError(f"{path} cannot be imported: {error}. Nothing was changed.", ExitCode.BAD_INPUT) from None


def cover_of(folder: Path) -> Callable[[str], str]:
    """Masks keys as in the stored sessions of this folder."""
    from swecli.assembly.startup import startup_of
    from swecli.core.llm.secrets import masker_of

    startup = startup_of(LaunchOptions(cwd=folder, headless=True), dict(os.environ))
    return masker_of(startup.secrets).cover
