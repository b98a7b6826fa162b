"""What each command does to a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from swecli.core.checkpoints.targets import Target
from swecli.core.engine.compactions import Compactions
from swecli.core.engine.context_keeper import ContextKeeper
from swecli.core.engine.file_undo import FileUndo
from swecli.core.engine.job_watch import JobWatch
from swecli.core.engine.message_queue import MessageQueue
from swecli.core.engine.model_choice import ModelChoice
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.requests import Requests
from swecli.core.engine.results import Results
from swecli.core.engine.scheduler import Scheduler
from swecli.core.engine.services import Services
from swecli.core.engine.side_work import run_shell
from swecli.core.engine.turn import Turn
from swecli.core.engine.work import Work
from swecli.core.llm.types import ModelClient
from swecli.core.protocol import commands as c
from swecli.core.protocol.events import (
    ModeChanged,
    Notice,
    NoticeLevel,
    Rewound,
    TurnStarted,
)
from swecli.core.protocol.messages import ImagePart


class Dispatcher:
    """Carries out commands. Every method returns at once; what takes time becomes the session's work."""

    def __init__(
        self,
        services: Services,
        recorder: Recorder,
        requests: Requests,
        scheduler: Scheduler,
        keeper: ContextKeeper,
        compactions: Compactions,
        models: ModelChoice,
        results: Results,
        undo: FileUndo,
        jobs: JobWatch,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._requests = requests
        self._scheduler = scheduler
        self._keeper = keeper
        self._queue = MessageQueue(recorder)
        self._models = models
        self._results = results
        self._jobs = jobs
        self.work = Work(self._ended)
        self.closed = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            c.Submit: self._submit,
            c.Steer: self._steer,
            c.EditQueue: lambda command: self._queue.edit(command.id, command.text),
            c.Interrupt: lambda _: self.work.interrupt(),
            c.CancelItem: self._cancel_item,
            c.Background: self._background,
            c.StopJob: lambda command: jobs.stop_soon(command.job),
            c.ReplyPermission: requests.reply,
            c.Answer: requests.answer,
            c.SetMode: self._set_mode,
            c.SetModel: self._set_model,
            c.SetEffort: lambda command: models.set_effort(command.effort),
            c.Rewind: self._rewind,
            c.RunShell: lambda command: self._when_idle(
                lambda _: self.work.begin(run_shell(self._recorder, self._services, self._results, jobs.jobs, command))
            ),
            c.Compact: self._compact,
            c.UndoCompaction: lambda _: self._when_idle(compactions.undo),
            c.UndoFiles: lambda command: self._when_idle(
                lambda _: self.work.begin(undo.undo(Target(command.scope, command.turn, command.name)))
            ),
            c.RedoFiles: lambda _: self._when_idle(lambda _: self.work.begin(undo.redo())),
            c.RedoCompaction: lambda _: self._when_idle(compactions.redo),
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
            self._queue.add(command.text, command.images, steer=False)
        elif self._models.client is None:
            self.notice(
                "No model is connected; your message was not sent.", "error", "Set a key or use /model; see /help."
            )
        else:
            self._begin_turn(command.text, command.images)

    def _steer(self, command: c.Steer) -> None:
        if self.work.busy:
            self._queue.add(command.text, steer=True)
        else:
            self._submit(c.Submit(command.text))

    def _cancel_item(self, command: c.CancelItem) -> None:
        if not self._scheduler.cancel(command.item):
            self.notice("That call does not run any more.")

    def _background(self, command: c.Background) -> None:
        if not self._jobs.jobs.to_background(command.item):
            self.notice("Only a command that runs can go on in the background.")

    def _set_mode(self, command: c.SetMode) -> None:
        if command.mode != self._recorder.state.mode:
            self._recorder.emit(ModeChanged(command.mode, "chosen by the user"))

    def _set_model(self, command: c.SetModel) -> None:
        if self.work.busy:
            self.notice("A turn is running; the model can be changed when it has ended.", "warning")
            return
        trouble = self._models.choose(command.model)
        if trouble is not None:
            self.notice(trouble, "error")

    def _rewind(self, command: c.Rewind) -> None:
        if self.work.busy:
            self.notice("A turn is running; rewind when it has ended.", "warning")
        elif command.item not in {entry.id for entry in self._recorder.ledger.view}:
            self.notice(f"There is no message {command.item!r} in the conversation.", "warning")
        else:
            self._recorder.emit(Rewound(command.item, "chosen by the user"))
            self._models.measure()

    def _compact(self, command: c.Compact) -> None:
        client = self._models.client
        if client is None:
            self.notice("No model is connected, so nothing can be measured or summarised.", "warning")
        else:
            self._when_idle(lambda _: self.work.begin(self._keeper.compact_now(client, command)))

    def _when_idle(self, action: Callable[[ModelClient | None], object]) -> None:
        if self.work.busy:
            self.notice("A turn is running; try again when it has ended.", "warning")
        else:
            action(self._models.client)

    def _begin_turn(self, text: str, images: Sequence[ImagePart] = ()) -> None:
        client = self._models.client
        assert client is not None
        self._recorder.turn += 1
        item = self._recorder.new_item("u")
        self._recorder.emit(TurnStarted(item))
        self._queue.say(item, text, images)
        turn = Turn(
            self._services, self._recorder, self._requests, self._scheduler, self._keeper, self._models, self._jobs
        )
        if self._services.checkpoints is not None:
            self._services.checkpoints.start()
        self.work.begin(turn.run())

    def _ended(self, defect: BaseException | None) -> None:
        if defect is not None:
            self._services.report_defect(defect)
            self.notice(
                f"swecli failed internally: {type(defect).__name__}: {defect}",
                "error",
                "What was said is kept; you can go on. The details are in the log.",
            )
        # What waits goes on by itself only after work that ended well; otherwise the user decides.
        goes_on = not self.closed and not self.work.interrupted and self._recorder.state.outcome in ("done", "limit")
        if goes_on and self._models.client is not None:
            waiting = self._queue.take_first()
            if waiting is not None:
                self._begin_turn(waiting.text, waiting.images)
