"""Who carries out which command of a session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from swecli.core.checkpoints.restore import Target
from swecli.core.engine.building import SessionParts
from swecli.core.engine.inbox import Inbox
from swecli.core.engine.jobs import run_shell
from swecli.core.engine.work import edit_queue
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.commands import (
    Answer,
    ApplyPlan,
    Background,
    CancelItem,
    CarryOut,
    ChangeContext,
    Close,
    Command,
    Compact,
    EditQueue,
    Interrupt,
    Invoke,
    RedoCompaction,
    RedoFiles,
    ReplyPermission,
    RevokeRule,
    Rewind,
    RunShell,
    SetEffort,
    SetMode,
    SetModel,
    Steer,
    StopJob,
    Submit,
    UndoCompaction,
    UndoFiles,
    UndoRewind,
)
from swecli.core.protocol.events import Notice, NoticeLevel, RuleRevoked

Handler = Callable[[Any], object]
"""Carries out or starts a command of one type; called on the event loop, it never blocks."""

_BUSY: Mapping[type[Command], str] = {
    SetModel: "A turn is running; change the model when it ends.",
    Rewind: "A turn is running; rewind when it ends.",
    UndoRewind: "A turn is running; undo the rewind when it ends.",
}
_BUSY_REWIND = "A background subagent is running; rewind when it ends."
_BUSY_FILES = "A background subagent is running; restore files when it ends."


class CommandHandlers:
    """``table`` has a handler for each type of command. Some commands are refused while work runs, and those that
    restore files also while a subagent runs in the background."""

    def __init__(self, parts: SessionParts, inbox: Inbox) -> None:
        self._parts = parts
        self._core = core = parts.core
        self._recorder, self._work = core.recorder, core.work
        changes, requests, files, rewinds = parts.context.changes, core.requests, parts.files, parts.rewinds
        at_once: dict[type[Command], Handler] = {
            Submit: inbox.submit,
            Steer: inbox.steer,
            Invoke: inbox.invoke,
            EditQueue: lambda command: edit_queue(core.recorder, command.id, command.text),
            Interrupt: self._interrupt,
            Close: lambda _: core.work.interrupt(),
            CancelItem: self._cancel,
            Background: self._to_background,
            StopJob: lambda command: parts.jobs.stop_soon(command.job),
            ReplyPermission: requests.reply,
            RevokeRule: self._revoke,
            Answer: requests.answer,
            SetMode: parts.modes.choose,
            SetEffort: lambda command: core.models.announce(command.effort),
        }
        between_turns: dict[type[Command], Handler] = {
            CarryOut: inbox.carry_out,
            SetModel: self._choose_model,
            Rewind: self._alone(rewinds.begin, _BUSY_REWIND),
            UndoRewind: self._alone(lambda _: rewinds.begin_undo(), _BUSY_REWIND),
            RunShell: lambda command: core.work.begin(self._run_shell(command)),
            Compact: self._with_model(parts.context.triggers.compact_now),
            ApplyPlan: self._with_model(parts.context.compactions.apply_plan),
            UndoCompaction: lambda command: changes.undo(command.item),
            RedoCompaction: lambda command: changes.redo(command.item),
            ChangeContext: changes.change,
            UndoFiles: self._alone(
                lambda command: files.begin("undo", Target(command.scope, command.turn, command.name)), _BUSY_FILES
            ),
            RedoFiles: self._alone(lambda _: files.begin("redo", Target()), _BUSY_FILES),
        }
        refused = {kind: self._between(handler) for kind, handler in between_turns.items()}
        self.table: Mapping[type[Command], Handler] = {**at_once, **refused}

    def _notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        self._recorder.emit(Notice(text, level, "session", hint))

    # --- conditions -------------------------------------------------------------------------------------------

    def _between(self, handler: Handler) -> Handler:
        """The handler for the time when no work runs."""

        def handle(command: Command) -> None:
            if self._work.busy:
                self._notice(_BUSY.get(type(command), "A turn is running; try again when it ends."), "warning")
            else:
                handler(command)

        return handle

    def _alone(self, handler: Handler, busy: str) -> Handler:
        """The handler for the time when no subagent runs in the background; ``busy`` is said otherwise."""

        def handle(command: Command) -> None:
            if self._work.has_beside:
                self._notice(busy, "warning", "See /jobs.")
            else:
                handler(command)

        return handle

    def _with_model(self, work: Callable[[ModelClient, Any], Coroutine[Any, Any, None]]) -> Handler:
        """A handler that begins work with the current model."""

        def handle(command: Command) -> None:
            client = self._core.connection.client
            if client is None:
                self._notice("Not measured: no model is connected.", "warning")
            else:
                self._work.begin(work(client, command))

        return handle

    # --- single commands --------------------------------------------------------------------------------------

    def _interrupt(self, command: Interrupt) -> None:
        if not (command.skip and (self._core.models.skip() or self._core.offered.skip())):
            self._work.interrupt()

    def _cancel(self, command: CancelItem) -> None:
        if not self._core.scheduler.cancel(command.item):
            self._notice("That call has already ended.")

    def _to_background(self, command: Background) -> None:
        if not self._parts.jobs.jobs.to_background(command.item):
            self._notice("Only a running command can move to the background.")

    def _revoke(self, command: RevokeRule) -> None:
        if any(rule.text == command.rule for rule in self._recorder.state.rules):
            self._recorder.emit(RuleRevoked(command.rule))

    def _choose_model(self, command: SetModel) -> None:
        models = self._core.models
        trouble = models.plan(command.model) if command.later else models.choose(command.model)
        if trouble is not None:
            self._notice(trouble, "error")

    async def _run_shell(self, order: RunShell) -> None:
        parts = self._parts
        try:
            with parts.sandbox.announced(None):
                workspace = self._core.services.workspace
                await run_shell(self._recorder, workspace, parts.results, parts.jobs.jobs, order)
        finally:
            self._core.meter.measure()  # the output joined the conversation
