"""Commands about files: /undo, /redo, /diff, /add-dir."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.commands.base import CommandResult, SlashCommand, fixed_words
from swecli.core.checkpoints.generated import USUAL, GeneratedFiles, is_usual, named_folders
from swecli.core.checkpoints.git_changes import GitRefused
from swecli.core.git import repository_of
from swecli.core.protocol.blocks import DiffBlock, DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.events import FilesRestored, LeftFile
from swecli.core.workspace.text_file import shown_path, typed_path, usable_folder
from swecli.figures import cut
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.checkpoints.journal import Operation
    from swecli.core.checkpoints.restore import Recent, Target
    from swecli.core.engine.session import Session


SHOWN = 50
"""Files of one kind to list."""


async def restored_result(session: Session, done: FilesRestored) -> CommandResult:
    cwd = session.view.cwd
    blocks: list[DisplayBlock] = []
    undone = done.direction == "undo"
    brief = bool(done.files) and len(done.files) <= BRIEF
    if brief:
        blocks.append(TextBlock(f"{_few_words(done, cwd)} · {'/redo' if undone else '/undo'}"))
    elif done.files:
        more = f" and {len(done.operations) - 3} more" if len(done.operations) > 3 else ""
        verb = "Undid" if undone else "Changed again"
        blocks.append(TextBlock(f"{verb}: {'; '.join(map(_without_id, done.operations[:3]))}{more}"))
        how = {file.path: file.how for file in done.files}
        listed, generated = await session.files.generated(list(how))
        if not listed:  # there were no others
            listed, generated = list(how), GeneratedFiles()
        rows = tuple((shown_path(path, cwd), how[path]) for path in listed[:SHOWN])
        blocks.append(
            TableBlock(("File", "Now"), rows, _count(len(listed) + generated.files, "file changed", "files changed"))
        )
        if len(listed) > SHOWN:
            blocks.append(TextBlock(f"and {len(listed) - SHOWN:,} more files", "dim"))
        if generated:
            blocks.append(TextBlock(generated.line(cwd), "dim"))
    if done.direction == "undo" and (staged := await session.files.still_staged([file.path for file in done.files])):
        blocks.append(_staged(staged, cwd))
    if done.conflicts:
        head = _count(len(done.conflicts), "file left alone", "files left alone")
        blocks.append(TextBlock(f"{head}:\n{left_alone(done.conflicts, cwd)}", "warning"))
    usual = [file for file in done.not_covered if is_usual(file.why)]
    unusual = [file for file in done.not_covered if file not in usual]
    if unusual:
        blocks.append(TextBlock(f"Not tracked:\n{left_alone(unusual, cwd)}", "warning"))
    if usual:
        blocks.append(_untracked_as_usual(usual, cwd))
    if done.reason:
        blocks.append(TextBlock(done.reason, "plain" if not done.not_covered else "dim"))
    elif done.files and not brief:
        other = "/redo reapplies it" if done.direction == "undo" else "/undo reverts it again"
        blocks.append(TextBlock(f"{other}. The conversation is unchanged.", "dim"))
    elif not done.files:
        hint = "/undo list shows what else can be undone." if done.direction == "undo" else ""
        blocks.append(TextBlock(f"Nothing was changed. {hint}".strip()))
    return CommandResult(tuple(blocks))


BRIEF = 2
"""Files up to which a result is one line."""
_EDITS = ("Edit ", "Write ", "Patch ")
"""Words that titles of edits begin with."""


def _without_id(operation: str) -> str:
    """The description of an operation without the id of its call."""
    first, _, rest = operation.partition(" ")
    return rest if rest and _CALL.fullmatch(first) else operation


def _few_words(done: FilesRestored, cwd: Path) -> str:
    """What was undone or redone, with its one or two files."""
    titles = [_without_id(operation) for operation in done.operations]
    shown = [
        f"{shown_path(file.path, cwd)}{f' (+{file.added} -{file.removed})' if file.added or file.removed else ''}"
        for file in done.files
    ]
    if done.direction == "redo":
        return f"Changed again: {' and '.join(shown)}"
    if titles and all(title.startswith(_EDITS) for title in titles):
        several = "edits" if len(titles) > 1 else "edit"
        return f"Undid the {several} of {' and '.join(shown)}"
    what = "; ".join(f"`{title}`" for title in titles[:3]) or "the change"
    return f"Undid {what}: {', '.join(f'{name} {file.how}' for name, file in zip(shown, done.files, strict=True))}"


def _staged(files: Sequence[str], cwd: Path) -> TextBlock:
    names = [os.path.relpath(path, cwd) for path in files]
    first, more = shlex.join(names[:_NAMED_FILES]), len(names) - _NAMED_FILES
    pronoun = "it" if len(names) == 1 else "them"
    text = f"git still has the undone version of {_count(len(names), 'file', 'files')} staged; "
    text += (
        f"`git restore --staged -- {first}` unstages {pronoun if more <= 0 else f'the first, {more:,} more remain'}."
    )
    return TextBlock(text, "warning")


def _untracked_as_usual(files: Sequence[LeftFile], cwd: Path) -> TextBlock:
    names = ", ".join(dict.fromkeys(shown_path(file.path, cwd) for file in files[:_NAMED_FILES]))
    more = f" and {len(files) - _NAMED_FILES:,} more" if len(files) > _NAMED_FILES else ""
    return TextBlock(f"Not tracked, as usual: {names}{more}", "dim")


def left_alone(files: Sequence[LeftFile], cwd: Path) -> str:
    """The files, those with the same reason on one line."""
    by_reason: dict[str, list[str]] = {}
    for file in files[:SHOWN]:
        by_reason.setdefault(file.why, []).append(shown_path(file.path, cwd))
    lines = [f"  {', '.join(paths)}: {why}" for why, paths in by_reason.items()]
    more = [f"  and {len(files) - SHOWN:,} more"] if len(files) > SHOWN else []
    return "\n".join([*lines, *more])


def _count(number: int, singular: str, several: str) -> str:
    return f"{number:,} {singular if number == 1 else several}"


async def _run_redo(session: Session, arguments: str) -> CommandResult:
    return await restored_result(session, await session.files.redo())


REDO = SlashCommand("redo", "Reapply what /undo reverted", _run_redo, while_busy=False, under="undo")


async def _run_diff(session: Session, arguments: str) -> CommandResult:
    """A path filters the session's changes; anything else, and ``HEAD``, is a revision of git."""
    cwd = session.view.cwd
    first, _, rest = arguments.partition(" ")
    if first.upper() == "HEAD":
        return await _against(session, "HEAD", rest.strip())
    (below, *target), is_there = _places(arguments, cwd) if arguments else ([""], True)
    difference = await session.files.difference(below)
    if target and not difference.files and not difference.generated:
        difference = await session.files.difference(*target)
    unknown = ""
    if not is_there and not difference.files and not difference.generated:
        try:
            return await _against(session, first, rest.strip(), sure=False)
        except GitRefused as error:
            unknown = _unknown(arguments, error)
    if difference.reason:
        return CommandResult.text(difference.reason, "warning")
    blocks = _diffs(difference.files, difference.more, difference.generated, cwd)
    where = f" below {arguments}" if arguments else ""
    if not difference.files:
        more = "" if arguments or repository_of(str(cwd)) is None else " /diff HEAD compares with the last commit."
        text = f"This session changed no file{where}{unknown or ', or you undid every change'}.{more}"
        blocks.insert(0, TextBlock(text, "warning" if unknown else "plain"))
    else:
        ways = "/undo reverts the newest change, /rewind every change since a message"
        blocks.append(TextBlock(f"{_sum(difference.files, 'changed in this session')}; {ways}.", "dim"))
    return CommandResult(tuple(blocks))


def _unknown(words: str, error: GitRefused) -> str:
    """That nothing has this name, as a clause, and the way to what /diff does not show."""
    if error.kind == "no repository":
        return ", and there is no file of this name"
    if error.kind != "no revision":
        return f", and there is no file of this name. {str(error).rstrip('.')}"
    other = f"; !git diff {words} shows any comparison" if words.startswith("-") or ".." in words else ""
    return f", and there is no file or git revision of this name{other}"


async def _against(session: Session, revision: str, path: str, *, sure: bool = True) -> CommandResult:
    """Raises:
    GitRefused: there is nothing to show, unless a revision is surely meant (``sure``).
    """
    cwd = session.view.cwd
    (below, *target), is_there = _places(path, cwd) if path else ([""], True)
    try:
        difference = await session.files.against(revision, below)
        if target and not difference.files and not difference.generated:
            difference = await session.files.against(revision, *target)
    except GitRefused as error:
        if not sure:
            raise
        return CommandResult.text(str(error), "warning")
    blocks = _diffs(difference.files, difference.more, difference.generated, cwd)
    if difference.nested:
        what = "a repository of its own" if len(difference.nested) == 1 else "repositories of their own"
        blocks.append(TextBlock(f"{what}, not compared: {named_folders(difference.nested, cwd)}", "dim"))
    where = f" below {path}" if path else ""
    if difference.files:
        blocks.append(
            TextBlock(f"{_sum(difference.files, f'differ from {revision}', 'differs from ' + revision)}.", "dim")
        )
    elif difference.generated or difference.nested:
        blocks.insert(0, TextBlock(f"No other file{where} differs from {revision}."))
    elif not is_there:
        blocks.append(TextBlock(f"There is no file of the name {path}, neither here nor in {revision}.", "warning"))
    else:
        blocks.append(TextBlock(f"No file{where} differs from {revision}."))
    return CommandResult(tuple(blocks))


def _diffs(files: Sequence[DiffBlock], more: int, generated: GeneratedFiles, cwd: Path) -> list[DisplayBlock]:
    blocks: list[DisplayBlock] = [replace(block, path=shown_path(block.path, cwd)) for block in files]
    if more:
        blocks.append(TextBlock(f"and {more:,} more files; a path narrows the list", "dim"))
    if generated:
        blocks.append(TextBlock(generated.line(cwd), "dim"))
    return blocks


def _places(words: str, cwd: Path) -> tuple[list[str], bool]:
    """The path meant by the words, for a link also its target, and whether the path exists."""
    typed = os.path.join(cwd, os.path.expanduser(typed_path(words))).rstrip(os.sep)
    target = os.path.realpath(typed)
    if not os.path.islink(typed):
        return [target], os.path.lexists(target)
    own = os.path.join(os.path.realpath(os.path.dirname(typed)), os.path.basename(typed))
    return [own, target], True


def _sum(files: Sequence[DiffBlock], several: str, singular: str = "") -> str:
    new = sum(block.old is None and block.new is not None for block in files)
    removed = sum(block.new is None and block.old is not None for block in files)
    kinds = [f"{count:,} {what}" for count, what in ((new, "new"), (removed, "removed")) if count]
    detail = f" ({', '.join(kinds)})" if kinds else ""
    return f"{_count(len(files), f'file {singular or several}', f'files {several}')}{detail}"


DIFF = SlashCommand(
    "diff",
    "Show what this session changed, or what differs from git HEAD",
    _run_diff,
    arguments="[path | HEAD [path]]",
    words=fixed_words(HEAD="what differs from git HEAD"),
)


async def _run_add_dir(session: Session, arguments: str) -> CommandResult:
    view = session.view
    name = typed_path(arguments)
    if not name:
        return CommandResult.text(f"Folders of this session: {', '.join(map(str, view.roots))}.")
    try:
        path = usable_folder(name, view.cwd)
    except ValueError as error:
        return CommandResult.text(f"{name}: {error}. Nothing was added.", "error")
    if any(path.is_relative_to(root) for root in view.roots):
        return CommandResult.text(f"{path} is already part of this session.")
    if any(job.status == "running" for job in view.jobs):
        return CommandResult.text(
            "Adding a folder reopens the session, which would end its background jobs. /jobs lists and stops them.",
            "error",
        )
    instead = TextBlock(f"Add folders at the start: --add-dir {shlex.quote(str(path))}", "warning")
    return CommandResult(screen="add_folder", argument=str(path), instead=(instead,))


ADD_DIR = SlashCommand(
    "add-dir",
    "Add a folder to work in, for this run",
    _run_add_dir,
    arguments="[folder]",
    while_busy=False,
)


USAGE = "/undo reverts the newest edit or command; also: turn, turn 3, t12 (a call), a path, list."
_SHOWN = 20
_NAMED_FILES = 6
_CALL = lazy_pattern(r"t\d+")
_WORDS = ("turn", "list", "ls", "last")
_TURN = lazy_pattern(r"turn(?:\s+(\d+))?", re.IGNORECASE)


async def _run_undo(session: Session, arguments: str) -> CommandResult:
    wanted = arguments.strip()
    if wanted.lower() in ("list", "ls"):
        return await _listed(session, await session.files.changes())
    if wanted in ("help", "?", "-h", "--help"):
        return CommandResult.text(USAGE)
    words = wanted.partition(" ")[0].lower() in _WORDS and " " in wanted and not _TURN.fullmatch(wanted)
    if words or wanted.isdecimal():
        return CommandResult.text(f"{USAGE} Nothing was changed; a file of that name is ./{wanted}", "error")
    return await restored_result(session, await session.files.undo(target(wanted, session.view.cwd)))


def target(wanted: str, cwd: Path) -> Target:
    """Parse the words after /undo. A file named like a call, or like "turn 3", is written ./t12."""
    from swecli.core.checkpoints.restore import Target

    if wanted.lower() in ("", "last"):
        return Target()
    turn = _TURN.fullmatch(wanted)
    if turn:
        return Target("turn", int(turn.group(1) or 0))
    if _CALL.fullmatch(wanted):
        return Target("call", name=wanted)
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(typed_path(wanted))))
    # The last part may be a changed link itself, so resolve only its folder.
    return Target("path", name=os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)))


async def _listed(session: Session, recent: Recent) -> CommandResult:
    cwd = session.view.cwd
    if recent.reason:
        return CommandResult.text(recent.reason, "warning")
    blocks: list[DisplayBlock] = []
    if recent.operations:
        shown = recent.operations[:_SHOWN]
        paths = dict.fromkeys(change.path for operation in shown for change in operation.active)
        listed = frozenset((await session.files.generated(list(paths)))[0])
        rows = tuple(_row(operation, cwd, listed) for operation in shown)
        blocks.append(TableBlock(("Call", "Turn", "At", "Files", "What"), rows, "Can be undone, newest first"))
        if len(recent.operations) > _SHOWN:
            blocks.append(TextBlock("and older ones", "dim"))
    else:
        blocks.append(TextBlock("This session has no file changes to undo."))
    usual = [file for file in recent.not_covered if file.why in USUAL]
    others = [file for file in recent.not_covered if file.why not in USUAL]
    if usual:
        blocks.append(_untracked_as_usual(usual, cwd))
    if others:
        lines = [f"  {shown_path(file.path, cwd)}: {file.why}" for file in others[:_SHOWN]]
        more = [f"  and {len(others) - _SHOWN:,} more"] if len(others) > _SHOWN else []
        blocks.append(TextBlock("\n".join(["Not tracked when a command changes it:", *lines, *more]), "dim"))
    return CommandResult(tuple(blocks))


def _row(operation: Operation, cwd: Path, listed: frozenset[str]) -> tuple[str, ...]:
    """``listed`` are paths outside generated folders: these are named first, the others only counted."""
    title = " ".join(operation.origin.title.split())
    unsure = " (swecli was killed during it)" if operation.state == "unsure" else ""
    own = [change.path for change in operation.active if change.path in listed]
    folders = sum("folder" in (change.before.kind, change.after.kind) for change in operation.active)
    made = max(0, len(operation.active) - len(own) - folders)
    parts = [", ".join(shown_path(path, cwd) for path in own[:3]) + (f" +{len(own) - 3}" if len(own) > 3 else "")]
    parts += [f"{made:,} generated"] if made else []
    names = ", ".join(filter(None, parts))
    shown = cut(title, 50)
    clock = time.strftime("%H:%M", time.localtime(operation.started))
    return operation.origin.item, str(operation.origin.turn), clock, names, shown + unsure


UNDO = SlashCommand(
    "undo",
    "Undo file changes by edits and commands",
    _run_undo,
    arguments="[turn [n] | call | path | list]",
    words=fixed_words(turn="all of the last turn", list="list what can be undone"),
    while_busy=False,
)
