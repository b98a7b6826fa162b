"""The user's messages on their way into the conversation: each begins a turn, or waits until earlier work has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.core.engine.core import Core
from swecli.core.engine.invoked import NotInvoked, invocation_of
from swecli.core.engine.joining import Begun, words_of
from swecli.core.engine.mode_choice import ModeChoice
from swecli.core.engine.plan import ACCEPTED, Plans, go_ahead, todos_of
from swecli.core.engine.turn import Turn
from swecli.core.engine.work import add_user_message, enqueue, take_first
from swecli.core.protocol.commands import CarryOut, Invoke, Steer, Submit
from swecli.core.protocol.events import ItemStarted, Notice, Queued, TodosChanged, TurnStarted

if TYPE_CHECKING:
    from swecli.core.extensions.markdown_commands import Invocation

_CONNECT = "Choose one with /model or -m; /login stores a key."


class Inbox:
    """Begins the turns of one session. Without a model no message is taken."""

    def __init__(self, core: Core, plans: Plans, modes: ModeChoice) -> None:
        self._core = core
        self._recorder = core.recorder
        self._connection = core.connection
        self._work = core.work
        self._plans = plans
        self._modes = modes
        self._settled = core.recorder.turn
        """The newest turn whose end was handled: other work, such as a command of the user, may end after it."""
        self._held = {waiting.id for waiting in core.recorder.state.queue}
        """Messages that a turn without success left waiting: the user decides about them."""
        self._refused: dict[str, str] = {}
        """Waiting commands and skills that could not be sent, with the reason."""

    def submit(self, message: Submit) -> None:
        """Begin a turn with a message, or let it wait for its own."""
        if self._work.busy:
            enqueue(self._recorder, message)
        elif self._connection.client is None:
            self._refuse("No model is connected; your message was not sent.", _CONNECT)
        else:
            self._begin_turn(message)

    def steer(self, message: Steer) -> None:
        """Let a message join the running turn, or begin one with it."""
        if self._work.busy:
            enqueue(self._recorder, message)
        else:
            self.submit(Submit(message.text, mentions=message.mentions))

    def invoke(self, call: Invoke) -> None:
        """Begin a turn with a Markdown command or a skill, or let it wait."""
        if self._work.busy:
            enqueue(self._recorder, call)
        elif self._connection.client is None:
            self._refuse(f"No model is connected; /{call.name} was not sent.", _CONNECT)
        else:
            if (files := self._core.services.extension_files) is not None:
                files.look()  # run the current version of the file
            self._begin_turn(call)

    def carry_out(self, command: CarryOut) -> None:
        """Begin a turn with the proposed plan, in the mode of the command. Only between turns."""
        plan = self._plans.proposed
        if plan is None:
            text = "The newest answer proposes no plan. Describe the task in plan mode first."
            self._recorder.emit(Notice(text, "warning", "session"))
        elif self._connection.client is None:
            self._refuse("No model is connected; the plan was not started.", "Use /model; see /help.")
        else:
            shown, plan = plan.text, self._plans.accept(plan)
            todos = todos_of(plan, self._recorder.state.todos)
            if todos != self._recorder.state.todos:
                self._recorder.emit(TodosChanged(todos))
            mode = self._modes.available(command.mode)
            if mode != command.mode:
                self._modes.refuse(command.mode)
            self._modes.change(mode, ACCEPTED)
            self._begin_titled(*go_ahead(plan, shown, todos=bool(todos) and (plan.listed or bool(plan.steps))))

    def begin(self, title: str, text: str) -> str:
        """Begin a turn with a message from a slash command; the user sees ``title``. Only between turns. Returns why it
        failed, as a sentence, or an empty text."""
        if self._work.busy:
            return "A turn is running; try again when it ends."
        if self._connection.client is None:
            return "No model is connected; nothing was sent. Use /model; see /help."
        self._begin_titled(title, text)
        return ""

    def _begin_titled(self, title: str, text: str) -> None:
        from swecli.core.extensions.markdown_commands import Invocation

        self._begin_turn(Invocation(title, (text,)))

    def _begin_turn(self, message: Submit | Queued | Invoke | Invocation) -> None:
        services, recorder = self._core.services, self._recorder
        invocation = message if not isinstance(message, Submit | Queued | Invoke) else None
        if isinstance(message, Invoke) or (isinstance(message, Queued) and message.invokes):
            try:
                invocation = invocation_of(services.extension_files, message)
            except NotInvoked as error:
                self._refuse(str(error))
                return
        recorder.turn += 1
        item = recorder.new_item("u")
        recorder.emit(TurnStarted(item, invocation.allow if invocation is not None else ()))
        todos = recorder.state.todos
        if todos and all(todo.status == "completed" for todo in todos):
            recorder.emit(TodosChanged(()))  # a list that is done says nothing about the next request
        if invocation is not None:
            recorder.emit(ItemStarted(item, "user", "command", invocation.title))
            begun = Begun(item, invocation.title, invocation.mentions, invocation)
        else:
            assert isinstance(message, Submit | Queued)
            add_user_message(recorder, item, message)
            begun = Begun(item, message.text, words_of(message))
        turn = Turn(self._core, begun)
        if services.workspace.checkpoints is not None:
            services.workspace.checkpoints.start()
        self._work.begin(turn.run())

    def go_on(self) -> None:
        """Work has ended: begin with the first waiting message. Only successful work is followed by one; otherwise the
        user decides."""
        state = self._recorder.state
        turned, self._settled = self._recorder.turn != self._settled, self._recorder.turn
        if self._work.interrupted or (turned and state.outcome not in ("done", "limit")):
            self._held = {waiting.id for waiting in state.queue}
        elif turned:
            self._held.clear()
        if not self._work.interrupted and self._connection.client is not None:
            waiting = take_first(self._recorder, self._held | self._not_invoked())
            if waiting is not None:
                self._begin_turn(waiting)

    def _not_invoked(self) -> set[str]:
        """Waiting commands and skills that can't be sent now. They stay, each with one notice of the reason."""
        why: dict[str, str] = {}
        for waiting in self._recorder.state.queue:
            if waiting.invokes and waiting.id not in self._held:
                try:
                    invocation_of(self._core.services.extension_files, waiting)
                except NotInvoked as error:
                    why[waiting.id] = str(error)
                    if self._refused.get(waiting.id) != str(error):
                        self._refuse(str(error), f"{waiting.text} stays among the waiting messages.")
        self._refused = why
        return set(why)

    def _refuse(self, text: str, hint: str = "") -> None:
        self._recorder.emit(Notice(text, "error", "session", hint))
