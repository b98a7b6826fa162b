"""Commands that go back, branch or rename a session: /rewind, /fork, /rename."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand, fixed_words
from swecli.commands.compaction import priced
from swecli.commands.files import BRIEF, left_alone
from swecli.core.context_management.edit_effects import price_words
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.commands import Rewind, UndoRewind
from swecli.core.protocol.events import FilesRestored, RewindScope
from swecli.core.workspace.jobs import shown_age
from swecli.core.workspace.text_file import shown_path
from swecli.figures import cut, plural, tokens

if TYPE_CHECKING:
    from swecli.core.engine.rewind import RewindPoint
    from swecli.core.engine.session import Session

USAGE = (
    "/rewind N both goes back to before message N, conversation and files; also: /rewind N conversation, "
    "/rewind N files, /rewind N preview, /rewind undo. /rewind list shows the messages."
)
_SCOPES: dict[str, RewindScope] = {
    "both": "both",
    "all": "both",
    "conversation": "conversation",
    "chat": "conversation",
    "files": "files",
    "code": "files",
}
CLEAR = "--clear"
"""Argument that removes the session's name."""
_TEXT = 60
"""Characters of a message in the list."""
_SHOWN = 20
"""Files of a preview."""


async def _run_rewind(session: Session, arguments: str) -> CommandResult:
    words = arguments.lower().split()
    if words == ["undo"]:
        if not session.rewinds.undoable:
            return CommandResult.text("There is no rewind to undo.", "error")
        effect = session.prices.rewind_undo()
        result = priced(session, UndoRewind(), effect, "Undo the rewind")
        await session.worked()
        return result
    points = await session.rewinds.points()
    if not words or words == ["list"]:
        listed = rewind_table(points, time.time())
        return CommandResult(screen="rewind", instead=listed) if not words else CommandResult(listed)
    number = words[0].removeprefix("#")
    chosen = next((point for point in points if number == str(point.number)), None)
    scope = "both" if len(words) == 1 else words[1]
    if not number.isdecimal() or len(words) > 2 or (scope not in _SCOPES and scope != "preview"):
        return CommandResult.text(USAGE, "error")
    if chosen is None:
        have = f"messages: 1 to {points[-1].number}" if points else "there are none yet"
        return CommandResult.text(f"No message {number} to go back to; {have}.", "error")
    if scope == "preview":
        return CommandResult(preview_blocks(session, chosen, await session.rewinds.preview(chosen.item)))
    session.send(Rewind(chosen.item, _SCOPES[scope]))
    await session.worked()
    return CommandResult()


REWIND = SlashCommand(
    "rewind",
    "Go back to before a message: conversation, files or both",
    _run_rewind,
    aliases=("checkpoint",),
    arguments="[N [both|conversation|files|preview] | undo]",
    words=fixed_words(list="list your messages", undo="undo the last rewind"),
    while_busy=False,
)


def rewind_table(points: Sequence[RewindPoint], now: float) -> tuple[DisplayBlock, ...]:
    """The messages, the newest last, and how to choose one."""
    if not points:
        return (TextBlock("Nothing to go back to: no message was sent yet.", "dim"),)
    rows = tuple(
        (str(point.number), shown_age(max(0.0, now - point.at)), changed_words(point), since(point), short(point.text))
        for point in points
    )
    headers = ("N", "age", "changed since", "context since", "message")
    return TableBlock(headers, rows, "Messages"), TextBlock(USAGE, "dim")


def short(text: str, most: int = _TEXT) -> str:
    """A message on one line of at most ``most`` characters."""
    return cut(" ".join(text.split()) or "(no words)", most)


def changed_words(point: RewindPoint) -> str:
    """Summary of file changes since."""
    if point.files is None:
        return "?"
    if not point.files:
        return "no files"
    lines = f" +{point.added:,} -{point.removed:,}" if point.added or point.removed else ""
    return f"{plural(point.files, 'file')}{lines}"


def since(point: RewindPoint) -> str:
    return f"{tokens(point.tokens)} tokens"


def preview_blocks(session: Session, point: RewindPoint, files: FilesRestored) -> tuple[DisplayBlock, ...]:
    """Effect of going back to before a message."""
    from swecli.core.engine.rewind import counted, files_alone

    cwd = session.view.cwd
    effect = session.prices.rewind(point.item)
    what = f"{since(point)} leave the context and can be restored"
    if effect is not None:
        what = f"{price_words(effect)}; /rewind undo restores it"
    blocks: list[DisplayBlock] = [TextBlock(f"Before message {point.number}: {what}.")]
    going = files_alone(files)
    if going:
        rows = tuple((shown_path(file.path, cwd), file.how) for file in going[:_SHOWN])
        more = len(going) - len(rows)
        if len(rows) <= BRIEF:
            blocks.append(TextBlock(f"If you go back: {', '.join(f'{path} {how}' for path, how in rows)}."))
        else:
            blocks.append(TableBlock(("File", "Would be"), rows, f"If you go back: {counted(going)}"))
        blocks += [TextBlock(f"and {more:,} more files", "dim")] if more else []
    else:
        blocks.append(TextBlock(files.reason or "No file would change.", "dim"))
    if files.conflicts:
        blocks.append(TextBlock(f"Left alone:\n{left_alone(files.conflicts, cwd)}", "warning"))
    if files.not_covered:
        blocks.append(TextBlock(f"Not tracked:\n{left_alone(files.not_covered, cwd)}", "warning"))
    return tuple(blocks)


async def _run_fork(session: Session, arguments: str) -> CommandResult:
    if not session.view.totals.turns:
        return CommandResult.text("Nothing to fork yet: no message was sent.", "warning")
    instead = (TextBlock(f"Fork it with: swecli -r {session.view.session_id} --fork"),)
    return CommandResult(screen="fork", argument=arguments, instead=instead)


FORK = SlashCommand(
    "fork", "Continue in a copy of this session", _run_fork, ("branch",), arguments="[name]", while_busy=False
)


async def _run_rename(session: Session, arguments: str) -> CommandResult:
    if not arguments:
        name = await session.name()
        if not name:
            return CommandResult.text("This session has a title but no name. /rename NAME gives it one.")
        other = f"/rename NAME changes it, /rename {CLEAR} removes it."
        return CommandResult.text(f"This session is called {name}. {other}")
    try:
        name = await session.rename("" if arguments == CLEAR else arguments)
    except ValueError as error:
        return CommandResult.text(str(error), "error")
    if not name:
        return CommandResult.text("The session now has a title but no name.")
    return CommandResult.text(f"This session is called {name}. Continue it with: swecli -r {shlex.quote(name)}")


RENAME = SlashCommand("rename", "Name this session, for use with -r", _run_rename, arguments=f"[name | {CLEAR}]")
