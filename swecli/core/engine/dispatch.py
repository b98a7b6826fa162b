"""What each command does to a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from swecli.core.engine.connection import Connection
from swecli.core.engine.context_keeper import ContextKeeper
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.requests import Requests
from swecli.core.engine.scheduler import Scheduler
from swecli.core.engine.services import Services
from swecli.core.engine.side_work import run_shell
from swecli.core.engine.turn import Turn
from swecli.core.engine.work import Work
from swecli.core.llm.types import ModelClient
from swecli.core.protocol import commands as c
from swecli.core.protocol.events import (
    ItemCompleted,
    ItemStarted,
    ModeChanged,
    ModelChanged,
    Notice,
    NoticeLevel,
    QueueChanged,
    Queued,
    Rewound,
    TurnStarted,
)
from swecli.core.protocol.messages import ImagePart, TextPart


class Dispatcher:
    """Carries out commands. Every method returns at once; what takes time becomes the session's work."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        requests: Requests,
        scheduler: Scheduler,
        keeper: ContextKeeper,
        connection: Connection,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._scheduler = scheduler
        self._keeper = keeper
        self._connection = connection
        self.work = Work(self._ended)
        self.closed = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            c.Submit: self._submit,
            c.Steer: self._steer,
            c.EditQueue: self._edit_queue,
            c.Interrupt: lambda _: self.work.interrupt(),
            c.CancelItem: self._cancel_item,
            c.ReplyPermission: requests.reply,
            c.Answer: requests.answer,
            c.SetMode: self._set_mode,
            c.SetModel: self._set_model,
            c.SetEffort: self._set_effort,
            c.Rewind: self._rewind,
            c.RunShell: self._run_shell,
            c.Compact: self._compact,
            c.UndoCompaction: lambda _: self._between_turns(self._keeper.undo),
            c.RedoCompaction: lambda _: self._between_turns(self._keeper.redo),
        }

    def dispatch(self, command: c.Command) -> None:
        """Carry out a command, or start to."""
        handler = self._handlers.get(type(command))
        if handler is None:
            self.notice(f"This version can't do {command.type!r}.", "warning")
        else:
            handler(command)

    def notice(self, text: str, level: NoticeLevel = "info", hint: str = "") -> None:
        """A line for the user."""
        self._recorder.emit(Notice(text, level, "session", hint))

    def _submit(self, command: c.Submit) -> None:
        if self.work.busy:
            self._enqueue(command.text, steer=False)
        elif self._connection.client is None:
            self.notice(
                "No model is connected; your message was not sent.", "error", "Set a key or use /model; see /help."
            )
        else:
            self._begin_turn(command.text, command.images)

    def _steer(self, command: c.Steer) -> None:
        if self.work.busy:
            self._enqueue(command.text, steer=True)
        else:
            self._submit(c.Submit(command.text))

    def _enqueue(self, text: str, *, steer: bool) -> None:
        queued = Queued(f"n{self._recorder.state.seq + 1}", text, steer)
        self._recorder.emit(QueueChanged((*self._recorder.state.queue, queued)))

    def _edit_queue(self, command: c.EditQueue) -> None:
        queue = tuple(
            Queued(queued.id, command.text, queued.steer) if queued.id == command.id and command.text else queued
            for queued in self._recorder.state.queue
            if queued.id != command.id or command.text
        )
        self._recorder.emit(QueueChanged(queue))

    def _cancel_item(self, command: c.CancelItem) -> None:
        if not self._scheduler.cancel(command.item):
            self.notice("That call does not run any more.")

    def _set_mode(self, command: c.SetMode) -> None:
        if command.mode != self._recorder.state.mode:
            self._recorder.emit(ModeChanged(command.mode, "chosen by the user"))

    def _set_model(self, command: c.SetModel) -> None:
        if self.work.busy:
            self.notice("A turn is running; the model can be changed when it has ended.", "warning")
            return
        trouble = self._connection.connect(command.model)
        client = self._connection.client
        if trouble is not None:
            self.notice(trouble, "error")
        elif client is not None:
            self._recorder.emit(ModelChanged(command.model, self._recorder.state.effort, client.info.window))
            self._keeper.measure(client)

    def _set_effort(self, command: c.SetEffort) -> None:
        self._recorder.emit(ModelChanged(self._recorder.state.model, command.effort))

    def _rewind(self, command: c.Rewind) -> None:
        if self.work.busy:
            self.notice("A turn is running; rewind when it has ended.", "warning")
        elif command.item not in {entry.id for entry in self._recorder.ledger.view}:
            self.notice(f"There is no message {command.item!r} in the conversation.", "warning")
        else:
            self._recorder.emit(Rewound(command.item, "chosen by the user"))
            if self._connection.client is not None:
                self._keeper.measure(self._connection.client)

    def _run_shell(self, command: c.RunShell) -> None:
        if self.work.busy:
            self.notice("A turn is running; run your command when it has ended.", "warning")
        else:
            self.work.begin(run_shell(self._recorder, self._services, command.command))

    def _compact(self, command: c.Compact) -> None:
        client = self._connection.client
        if self.work.busy:
            self.notice("A turn is running; compact when it has ended.", "warning")
        elif client is None:
            self.notice("No model is connected, so nothing can be measured or summarised.", "warning")
        else:
            self.work.begin(self._keeper.compact_now(client, command.focus))

    def _between_turns(self, action: Callable[[ModelClient | None], None]) -> None:
        if self.work.busy:
            self.notice("A turn is running; try again when it has ended.", "warning")
        else:
            action(self._connection.client)

    def _begin_turn(self, text: str, images: Sequence[ImagePart] = ()) -> None:
        client = self._connection.client
        assert client is not None
        self._recorder.turn += 1
        item = self._recorder.new_item("u")
        self._recorder.emit(TurnStarted(item))
        self._recorder.emit(ItemStarted(item, "user"))
        self._recorder.emit(ItemCompleted(item, "ok", (TextPart(text), *images)))
        self.work.begin(Turn(self._services, self._recorder, self._scheduler, self._keeper, client).run())

    def _ended(self, defect: BaseException | None) -> None:
        if defect is not None:
            self._services.report_defect(defect)
            self.notice(
                f"swecli failed internally: {type(defect).__name__}: {defect}",
                "error",
                "What was said is kept; you can go on. The details are in the log.",
            )
        queue = self._recorder.state.queue
        if queue and not self.closed and not self.work.interrupted and self._connection.client is not None:
            self._recorder.emit(QueueChanged(queue[1:]))
            self._begin_turn(queue[0].text)
