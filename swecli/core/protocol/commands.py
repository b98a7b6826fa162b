"""Commands: everything that a front-end can ask of a session. All of them are plain data and have a JSON
form, so that a script, an editor, a test and the terminal interface drive the same agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from swecli.core.protocol.events import EditedText, GrantSpan, Mode, PermissionChoice
from swecli.core.protocol.messages import ImagePart
from swecli.core.protocol.value import value


@value
class Submit:
    """A message of the user. While a turn runs it is queued for after it. ``mentions`` are the files and folders to
    attach, as after an ``@`` (``src/a.py:10-40``); None: those that the text mentions so."""

    text: str
    images: tuple[ImagePart, ...] = ()
    mentions: tuple[str, ...] | None = None
    type: Literal["submit"] = field(default="submit", kw_only=True)


@value
class Steer:
    """A message for the running turn, put in at the next tool boundary. Without a turn it is a Submit. ``mentions`` as
    there."""

    text: str
    mentions: tuple[str, ...] | None = None
    type: Literal["steer"] = field(default="steer", kw_only=True)


@value
class EditQueue:
    """Change or remove (``text`` None) a waiting message."""

    id: str
    text: str | None
    type: Literal["edit_queue"] = field(default="edit_queue", kw_only=True)


@value
class Interrupt:
    """Stop the running turn; what was written so far is committed. With ``skip``, a turn that waits for something that
    it can do without only stops waiting."""

    skip: bool = False
    type: Literal["interrupt"] = field(default="interrupt", kw_only=True)


@value
class CancelItem:
    """Stop one running tool call; the turn goes on."""

    item: str
    type: Literal["cancel_item"] = field(default="cancel_item", kw_only=True)


@value
class Background:
    """Move a running command to the background: it goes on as a job."""

    item: str
    type: Literal["background"] = field(default="background", kw_only=True)


@value
class StopJob:
    """End all processes of a job. That it ended comes as JobChanged."""

    job: str
    type: Literal["stop_job"] = field(default="stop_job", kw_only=True)


@value
class ReplyPermission:
    """``note`` is a word to the model that goes with the choice, ``span`` how long "always" holds. ``by`` says whether
    a person chose.

    A call can be changed on the way: ``arguments`` in place of the model's, or of the request's hunks the numbers (from
    1) of those that are accepted, or other ``texts`` for its diffs. With the choice "edit" the changed call is judged
    anew and, unless it needs no question, asked about again; "once" and "always" consent to it as changed, as far as
    it is nothing that always has to be asked.
    """

    request: str
    choice: PermissionChoice
    note: str = ""
    by: Literal["user", "headless"] = "user"
    span: GrantSpan = "session"
    arguments: Mapping[str, Any] | None = None
    hunks: tuple[int, ...] | None = None
    texts: tuple[EditedText, ...] = ()
    type: Literal["reply_permission"] = field(default="reply_permission", kw_only=True)


@value
class Answer:
    """One tuple of chosen labels or free text for each question; empty to dismiss."""

    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless"] = "user"
    type: Literal["answer"] = field(default="answer", kw_only=True)


@value
class SetMode:
    mode: Mode
    type: Literal["set_mode"] = field(default="set_mode", kw_only=True)


@value
class SetModel:
    """``model`` is ``provider/name``, an alias of the settings, or a name at the present provider."""

    model: str
    type: Literal["set_model"] = field(default="set_model", kw_only=True)


@value
class SetEffort:
    effort: str | None
    type: Literal["set_effort"] = field(default="set_effort", kw_only=True)


@value
class Compact:
    """Make room now. ``focus`` is what a summary should pay attention to; ``without_model`` takes only steps that ask
    no model."""

    focus: str = ""
    without_model: bool = False
    type: Literal["compact"] = field(default="compact", kw_only=True)


@value
class UndoCompaction:
    type: Literal["undo_compaction"] = field(default="undo_compaction", kw_only=True)


@value
class RedoCompaction:
    type: Literal["redo_compaction"] = field(default="redo_compaction", kw_only=True)


@value
class UndoFiles:
    """Take changes of files back. ``last``: of the newest edit or command; ``turn``: of a whole turn (0: the newest);
    ``call``: of one tool call, ``name`` is its id; ``path``: the newest change of a file or below a folder, ``name``
    is its path. What was changed since is left alone. The result comes as FilesRestored."""

    scope: Literal["last", "turn", "call", "path"] = "last"
    turn: int = 0
    name: str = ""
    type: Literal["undo_files"] = field(default="undo_files", kw_only=True)


@value
class RedoFiles:
    """Bring back what the newest UndoFiles took back."""

    type: Literal["redo_files"] = field(default="redo_files", kw_only=True)


@value
class Rewind:
    """Continue from before ``item`` (a user item)."""

    item: str
    type: Literal["rewind"] = field(default="rewind", kw_only=True)


@value
class RunShell:
    """The user's own ``!command``: runs without asking, its output joins the context. With ``output`` (and
    ``exit_status``, and ``duration`` in seconds) a front-end has run it in the user's terminal already."""

    command: str
    output: str | None = None
    exit_status: int | None = None
    duration: float | None = None
    type: Literal["run_shell"] = field(default="run_shell", kw_only=True)


@value
class Close:
    """End the session: interrupt the turn, commit, stop jobs."""

    type: Literal["close"] = field(default="close", kw_only=True)


Command = (
    Submit
    | Steer
    | EditQueue
    | Interrupt
    | CancelItem
    | Background
    | StopJob
    | ReplyPermission
    | Answer
    | SetMode
    | SetModel
    | SetEffort
    | Compact
    | UndoCompaction
    | RedoCompaction
    | UndoFiles
    | RedoFiles
    | Rewind
    | RunShell
    | Close
)
"""The closed union of commands, discriminated by ``type``."""
