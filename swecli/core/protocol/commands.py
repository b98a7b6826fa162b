"""Commands: everything that a front-end can ask of a session. All of them are plain data and have a JSON
form, so that a script, an editor, a test and the terminal interface drive the same agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from swecli.core.protocol.events import ContextChange, EditedText, GrantSpan, Mode, PermissionChoice, RewindScope
from swecli.core.protocol.messages import ImagePart, Tagged


class Submit(Tagged, frozen=True, tag="submit"):
    """A message of the user. While a turn runs it is queued for after it. ``mentions`` are the files and folders to
    attach, as after an ``@`` (``src/a.py:10-40``); None: those that the text mentions so."""

    text: str
    images: tuple[ImagePart, ...] = ()
    mentions: tuple[str, ...] | None = None


class Invoke(Tagged, frozen=True, tag="invoke"):
    """Call a Markdown command or a skill by its name, as ``/name arguments`` does: its text, with the output of the
    commands in it, becomes the message. While a turn runs it is queued for after it."""

    name: str
    arguments: str = ""


class Steer(Tagged, frozen=True, tag="steer"):
    """A message for the running turn, put in at the next tool boundary. Without a turn it is a Submit. ``mentions`` as
    there."""

    text: str
    mentions: tuple[str, ...] | None = None


class EditQueue(Tagged, frozen=True, tag="edit_queue"):
    """Change or remove (``text`` None) a waiting message."""

    id: str
    text: str | None


class Interrupt(Tagged, frozen=True, tag="interrupt"):
    """Stop the running turn; what was written so far is committed. With ``skip``, a turn that waits for something that
    it can do without only stops waiting."""

    skip: bool = False


class CancelItem(Tagged, frozen=True, tag="cancel_item"):
    """Stop one running tool call; the turn goes on."""

    item: str


class Background(Tagged, frozen=True, tag="background"):
    """Move a running command to the background: it goes on as a job."""

    item: str


class StopJob(Tagged, frozen=True, tag="stop_job"):
    """End all processes of a job. That it ended comes as JobChanged."""

    job: str


class ReplyPermission(Tagged, frozen=True, tag="reply_permission"):
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


class RevokeRule(Tagged, frozen=True, tag="revoke_rule"):
    """Take back a rule that "always" allowed in this session, or for this turn; what it covers asks again."""

    rule: str


class Answer(Tagged, frozen=True, tag="answer"):
    """One tuple of chosen labels or free text for each question; empty to dismiss."""

    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless"] = "user"


class SetMode(Tagged, frozen=True, tag="set_mode"):
    mode: Mode


class CarryOut(Tagged, frozen=True, tag="carry_out"):
    """Carry out the plan that the newest answer proposes: the mode becomes ``mode``, the plan's steps the todo list,
    and a turn begins."""

    mode: Literal["default", "accept-edits"] = "default"


class SetModel(Tagged, frozen=True, tag="set_model"):
    """``model`` is ``provider/name``, an alias of the settings, or a name that one model has."""

    model: str


class SetEffort(Tagged, frozen=True, tag="set_effort"):
    effort: str | None


class Compact(Tagged, frozen=True, tag="compact"):
    """Make room now. ``focus`` is what a summary should pay attention to; ``without_model`` takes only steps that ask
    no model."""

    focus: str = ""
    without_model: bool = False


class UndoCompaction(Tagged, frozen=True, tag="undo_compaction"):
    """Take compactions back, up to and with the one of ``item``; empty: the newest."""

    item: str = ""


class RedoCompaction(Tagged, frozen=True, tag="redo_compaction"):
    """Bring compactions back, up to and with the one of ``item``; empty: the one undone last."""

    item: str = ""


class ApplyPlan(Tagged, frozen=True, tag="apply_plan"):
    """Compact as the user has planned it: entries of the view to ``summarise``, and those that a reference takes the
    place of. ``summary`` is its text, empty for none besides the record; None has the model write it."""

    summarise: tuple[str, ...]
    offload: tuple[str, ...] = ()
    summary: str | None = None


class ChangeContext(Tagged, frozen=True, tag="change_context"):
    """Pin, drop, offload or restore items of the conversation, all of them or none."""

    changes: tuple[ContextChange, ...]


class UndoFiles(Tagged, frozen=True, tag="undo_files"):
    """Take changes of files back. ``last``: of the newest edit or command; ``turn``: of a whole turn (0: the newest);
    ``call``: of one tool call, ``name`` is its id; ``path``: the newest change of a file or below a folder, ``name``
    is its path. What was changed since is left alone. The result comes as FilesRestored."""

    scope: Literal["last", "turn", "call", "path"] = "last"
    turn: int = 0
    name: str = ""


class RedoFiles(Tagged, frozen=True, tag="redo_files"):
    """Bring back what the newest UndoFiles took back."""


class Rewind(Tagged, frozen=True, tag="rewind"):
    """Continue from before ``item`` (a user item). Files go back as far as nobody changed them since; for them the item
    has to be a message that began a turn. With ``handoff`` the model learns what was done since, from the record."""

    item: str
    scope: RewindScope = "conversation"
    handoff: bool = False


class UndoRewind(Tagged, frozen=True, tag="undo_rewind"):
    """Take the newest rewind back, for what it was about: what was said since, or changed in files, goes with it."""


class RunShell(Tagged, frozen=True, tag="run_shell"):
    """The user's own ``!command``: runs without asking, its output joins the context. With ``output`` (and
    ``exit_status``, and ``duration`` in seconds) a front-end has run it in the user's terminal already."""

    command: str
    output: str | None = None
    exit_status: int | None = None
    duration: float | None = None


class Close(Tagged, frozen=True, tag="close"):
    """End the session: interrupt the turn, commit, stop jobs."""


Command = (
    Submit
    | Invoke
    | Steer
    | EditQueue
    | Interrupt
    | CancelItem
    | Background
    | StopJob
    | ReplyPermission
    | RevokeRule
    | Answer
    | SetMode
    | CarryOut
    | SetModel
    | SetEffort
    | Compact
    | UndoCompaction
    | RedoCompaction
    | ApplyPlan
    | ChangeContext
    | UndoFiles
    | RedoFiles
    | Rewind
    | UndoRewind
    | RunShell
    | Close
)
"""The closed union of commands, discriminated by ``type``."""
