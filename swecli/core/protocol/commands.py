"""Commands: everything that a front-end can ask of a session. Each is plain data with a JSON form, so that scripts,
editors, tests and the terminal interface drive the same agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import Mode, RewindScope
from swecli.core.protocol.messages import ImagePart, Tagged
from swecli.core.protocol.request_events import EditedText, GrantSpan, PermissionChoice


class Submit(Tagged, frozen=True, tag="submit"):
    """Send a user message; during a turn it is queued. ``mentions`` are the files and folders to attach, written as
    after an ``@`` (``src/a.py:10-40``); None attaches those that the text mentions."""

    type: ClassVar[Literal["submit"]] = "submit"
    text: str
    images: tuple[ImagePart, ...] = ()
    mentions: tuple[str, ...] | None = None


class Invoke(Tagged, frozen=True, tag="invoke"):
    """Call a Markdown command or skill, like ``/name arguments``: its text, with the output of the commands in it,
    becomes the message. During a turn it is queued."""

    type: ClassVar[Literal["invoke"]] = "invoke"
    name: str
    arguments: str = ""


class Steer(Tagged, frozen=True, tag="steer"):
    """Add a message to the running turn at the next tool boundary; without a turn it acts as Submit. ``mentions`` as
    in Submit."""

    type: ClassVar[Literal["steer"]] = "steer"
    text: str
    mentions: tuple[str, ...] | None = None


class EditQueue(Tagged, frozen=True, tag="edit_queue"):
    """Change or remove (``text`` None) a waiting message."""

    type: ClassVar[Literal["edit_queue"]] = "edit_queue"
    id: str
    text: str | None


class Interrupt(Tagged, frozen=True, tag="interrupt"):
    """Stop the running turn and commit the partial answer. With ``skip``, a turn that waits for something optional only
    stops waiting."""

    type: ClassVar[Literal["interrupt"]] = "interrupt"
    skip: bool = False


class CancelItem(Tagged, frozen=True, tag="cancel_item"):
    """Stop one running tool call; the turn continues."""

    type: ClassVar[Literal["cancel_item"]] = "cancel_item"
    item: str


class Background(Tagged, frozen=True, tag="background"):
    """Turn a running command into a background job."""

    type: ClassVar[Literal["background"]] = "background"
    item: str


class StopJob(Tagged, frozen=True, tag="stop_job"):
    """End all processes of a job. JobChanged reports the end."""

    type: ClassVar[Literal["stop_job"]] = "stop_job"
    job: str


class ReplyPermission(Tagged, frozen=True, tag="reply_permission"):
    """Answer a permission request. ``note`` is a message to the model, ``span`` the lifetime of "always"; ``by`` tells
    whether a person chose.

    A reply can change the call in one of three ways: ``arguments`` replace the model's; ``hunks`` are the numbers (from
    1) of the accepted hunks; ``texts`` replace the new texts of its diffs. The choice "edit" decides the changed call
    again and asks again if needed; "once" and "always" approve the changed call, unless it must always ask.
    """

    type: ClassVar[Literal["reply_permission"]] = "reply_permission"
    request: str
    choice: PermissionChoice
    note: str = ""
    by: Literal["user", "headless"] = "user"
    span: GrantSpan = "session"
    arguments: Mapping[str, Any] | None = None
    hunks: tuple[int, ...] | None = None
    texts: tuple[EditedText, ...] = ()


class RevokeRule(Tagged, frozen=True, tag="revoke_rule"):
    """Revoke a rule that "always" added for this session or turn; calls that it covered ask again."""

    type: ClassVar[Literal["revoke_rule"]] = "revoke_rule"
    rule: str


class Answer(Tagged, frozen=True, tag="answer"):
    """Answer questions: one tuple of chosen labels or free text per question; empty to dismiss them."""

    type: ClassVar[Literal["answer"]] = "answer"
    request: str
    answers: tuple[tuple[str, ...], ...]
    by: Literal["user", "headless"] = "user"


class SetMode(Tagged, frozen=True, tag="set_mode"):
    type: ClassVar[Literal["set_mode"]] = "set_mode"
    mode: Mode


class CarryOut(Tagged, frozen=True, tag="carry_out"):
    """Carry out the plan in the newest answer: switch to ``mode``, turn the plan's steps into todos, and begin a
    turn."""

    type: ClassVar[Literal["carry_out"]] = "carry_out"
    mode: Literal["default", "accept-edits"] = "default"


class SetModel(Tagged, frozen=True, tag="set_model"):
    """``model`` is ``provider/name``, an alias from the settings, or an unambiguous name. ``later``: it answers from
    the next compaction on."""

    type: ClassVar[Literal["set_model"]] = "set_model"
    model: str
    later: bool = False


class SetEffort(Tagged, frozen=True, tag="set_effort"):
    type: ClassVar[Literal["set_effort"]] = "set_effort"
    effort: str | None


class Compact(Tagged, frozen=True, tag="compact"):
    """Compact now. ``focus`` is what the summary should emphasise; ``without_model`` uses only steps without a model
    request."""

    type: ClassVar[Literal["compact"]] = "compact"
    focus: str = ""
    without_model: bool = False


class UndoCompaction(Tagged, frozen=True, tag="undo_compaction"):
    """Undo compactions back to ``item`` inclusive; empty: only the newest."""

    type: ClassVar[Literal["undo_compaction"]] = "undo_compaction"
    item: str = ""


class RedoCompaction(Tagged, frozen=True, tag="redo_compaction"):
    """Redo undone compactions up to ``item`` inclusive; empty: only the last undone."""

    type: ClassVar[Literal["redo_compaction"]] = "redo_compaction"
    item: str = ""


class ApplyPlan(Tagged, frozen=True, tag="apply_plan"):
    """Compact by the user's plan: summarise some entries of the view, replace others with references (``offload``).
    ``summary`` is the summary's text; empty keeps only the record, None lets the model write it."""

    type: ClassVar[Literal["apply_plan"]] = "apply_plan"
    summarise: tuple[str, ...]
    offload: tuple[str, ...] = ()
    summary: str | None = None
    fold: bool = False
    """Only these entries are meant, a stretch of the conversation: a few lines replace them, without the record of the
    whole."""


class ChangeContext(Tagged, frozen=True, tag="change_context"):
    """Pin, drop, offload or restore items of the conversation; all changes apply, or none. ``later``: with the next
    compaction, which rewrites the conversation anyway."""

    type: ClassVar[Literal["change_context"]] = "change_context"
    changes: tuple[ContextChange, ...]
    later: bool = False


class UndoFiles(Tagged, frozen=True, tag="undo_files"):
    """Undo file changes. ``last``: of the newest edit or command; ``turn``: of a whole turn (0: the newest);
    ``call``: of the tool call with id ``name``; ``path``: the newest change of the file, or below the folder, at path
    ``name``. Files that have changed since are left alone. FilesRestored reports the result."""

    type: ClassVar[Literal["undo_files"]] = "undo_files"
    scope: Literal["last", "turn", "call", "path"] = "last"
    turn: int = 0
    name: str = ""


class RedoFiles(Tagged, frozen=True, tag="redo_files"):
    """Redo the newest undone file changes."""

    type: ClassVar[Literal["redo_files"]] = "redo_files"


class Rewind(Tagged, frozen=True, tag="rewind"):
    """Continue from before ``item`` (a user item). Files revert unless they have changed since; this requires an item
    that began a turn. With ``handoff`` the model gets a record of the work since then."""

    type: ClassVar[Literal["rewind"]] = "rewind"
    item: str
    scope: RewindScope = "conversation"
    handoff: bool = False


class UndoRewind(Tagged, frozen=True, tag="undo_rewind"):
    """Undo the newest rewind, within its scope; later messages or file changes are undone with it."""

    type: ClassVar[Literal["undo_rewind"]] = "undo_rewind"


class RunShell(Tagged, frozen=True, tag="run_shell"):
    """Run the user's own ``!command`` without asking; its output joins the context. With ``output`` (and
    ``exit_status``, and ``duration`` in seconds) a front-end has already run it in the user's terminal."""

    type: ClassVar[Literal["run_shell"]] = "run_shell"
    command: str
    output: str | None = None
    exit_status: int | None = None
    duration: float | None = None


class Close(Tagged, frozen=True, tag="close"):
    """End the session: interrupt the turn, commit, stop jobs."""

    type: ClassVar[Literal["close"]] = "close"


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
