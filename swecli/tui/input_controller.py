"""Execution of submitted lines, in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, Screen, SlashCommand, run_command
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Steer, Submit
from swecli.safe_text import safe_line
from swecli.tui.clipboard import Copier
from swecli.tui.dock.confirm import put_offer
from swecli.tui.main_screen import MainScreen
from swecli.tui.model_choice import ModelChoice
from swecli.tui.prompt.command_table import CommandTable
from swecli.tui.session_controller import SessionController
from swecli.tui.submission import Note, NotSent, Say, Shell, interpret, needs_rest, needs_session, sends

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.worker import Worker

    from swecli.core.engine.session import Session
    from swecli.core.protocol.events import TurnEnded
    from swecli.tui.prompt.editor import PromptEditor


TYPING = 1.5
"""Seconds without typing before a waiting line runs: what it opens would take the keys."""
LOOK = 0.1
"""Seconds between two looks at whether the session is free."""


class InputController:
    """Executes submitted lines in order."""

    def __init__(
        self,
        screen: MainScreen,
        session: SessionController,
        commands: CommandTable,
        models: ModelChoice,
        open_screen: Callable[[Screen, str], None],
        copier: Copier,
    ) -> None:
        self._screen = screen
        self._session = session
        self._commands = commands
        self._models = models
        self._open_screen = open_screen
        self._copier = copier
        self._early = asyncio.Lock()
        """Held by input sent before the session opened; waiters proceed in order."""
        self._cut_short = False
        """Whether the user interrupted work that early input waited for."""
        self._weighing = asyncio.Lock()
        """Held while a message is weighed or confirmed, so that no later one overtakes it."""
        self._beside: list[asyncio.Task[CommandResult]] = []
        """Pending side questions."""
        self.key_variables: frozenset[str] = frozenset()
        """Variables that commands do not get."""
        self._look: Timer | None = None
        """Looks whether the next waiting line can run."""
        self._next: Worker[bool] | None = None
        """The waiting line that runs."""
        self._ended: TurnEnded | None = None
        """End of the newest turn when a line began to wait, or the previous one ran."""
        self.away = False
        """Whether another program has the terminal, such as the user's editor."""

    async def submit(self, text: str) -> None:
        """Execute the text."""
        from swecli.tui.prompt.editor import PromptEditor

        await self.submit_message(PromptEditor.Submitted(text, text))

    async def submit_message(self, message: PromptEditor.Submitted, most: float = 1.0, *, waited: bool = False) -> bool:
        """Execute the message, with the files mentioned in its typed part. Messages with images and queued ones wait
        for the running turn to end, and so do commands that cannot run during a turn, with everything sent after them.
        Above ``most`` of the window, ask first. Input sent while the session opens is processed in order once it is
        open. ``waited``: its turn has come. Returns whether it opens something for the next keys."""
        session, bare = self._session, not message.pastes and not message.images
        meaning = interpret(message.text, self._commands.all, bare=bare)
        behind = bool(session.later.lines) and not waited
        if behind and (sends(meaning) or needs_rest(meaning)):
            self._wait(message, most)
            return False
        unknown = isinstance(meaning, NotSent) and message.text.lstrip().startswith("/")
        early = session.port is None and (unknown or needs_session(meaning))
        if early:
            opening = "The session is still opening; your input is queued"
            self._screen.activity.flash(opening, holds=lambda: session.port is None)
        async with self._early if early else contextlib.nullcontext():
            if early:
                await session.opened()
            if unknown:
                await self.own_commands()
                meaning = interpret(message.text, self._commands.all)
                if isinstance(meaning, NotSent) and session.port is not None and session.port.tools.pending:
                    with self._screen.activity.beside("Waiting for MCP servers, which may provide this command…"):
                        await session.port.extensions_settled()
                    await self.own_commands()
                    meaning = interpret(message.text, self._commands.all)
                if behind and (sends(meaning) or needs_rest(meaning)):
                    self._wait(message, most)
                    return False
            if not early and not isinstance(meaning, Say) and needs_rest(meaning) and session.busy:
                self._wait(message, most, first=waited)
                return False
            async with self._weighing:
                if session.port is None and needs_session(meaning):  # an earlier line replaced it
                    await session.opened()
                if isinstance(meaning, Say | Note):
                    await self._say(message, meaning, most)
                    if early and session.view is not None and session.view.model is not None:
                        await session.begun()  # a command's output belongs below the earlier message
            holds = early and not waited and not isinstance(meaning, Say | Note) and needs_rest(meaning)
            if holds:
                if await self._halted(message.text.strip()):
                    return False
                await session.opened()  # the user may have left for another one
            match meaning:
                case None | Say() | Note():
                    pass
                case Shell():
                    from swecli.tui.shell_lines import run_shell

                    await run_shell(self._screen, session, meaning, self.key_variables)
                case NotSent(why):
                    self._screen.transcript.show((TextBlock(why, "warning"),))
                case _:
                    return await self._run(meaning.command, meaning.arguments, waited=waited)
        return False

    def _wait(self, message: PromptEditor.Submitted, most: float, *, first: bool = False) -> None:
        """Let a line wait for the session and for earlier lines, or before all of them (``first``)."""
        session = self._session
        session.later.add(message, most, first=first)
        if self._look is None:
            self._ended = session.state.ended
            self._look = self._screen.set_interval(LOOK, self.run_later)

    def run_later(self) -> None:
        """Run the next waiting line if the session is free. After a failed turn the user decides."""
        session = self._session
        if not session.later.lines and self._look is not None:
            self._look.stop()
            self._look = None
        if not session.later.lines or not self._is_free():
            return
        before, self._ended = self._ended, session.state.ended
        if self._ended not in (None, before) and self._ended.outcome not in ("done", "limit"):
            session.take_back(session.later.take_all())
            return
        line = session.later.next()
        self._next = self._screen.run_worker(self.submit_message(line.message, line.most, waited=True), group="later")

    def _is_free(self) -> bool:
        """Whether nothing runs, no panel, list or other program is open, and nobody is typing."""
        screen, idle = self._screen, self._screen.prompt.idle
        rests = screen.dock.panel is None and screen.list_view is None and (idle is None or idle >= TYPING)
        rests = rests and not self.away and not self._session.busy
        return rests and (self._next is None or self._next.is_finished)

    async def _halted(self, line: str) -> bool:
        """Wait for the work of earlier lines that were sent while the session opened. True if the user interrupts it:
        this line and later ones do not run, and the first returns to the prompt."""
        session, port = self._session, self._session.port
        assert port is not None
        if port.view.busy and not self._cut_short:
            interrupts = session.interrupts
            with self._screen.activity.beside(f"Next: {safe_line(line)}"):
                await port.worked()
                await session.rested()
            self._cut_short = session.interrupts > interrupts
        if self._cut_short:
            if self._screen.prompt.editor.text:
                self._screen.activity.flash(f"Not run: {safe_line(line)} (Up recalls it)", 8.0)
            else:
                self._screen.prompt.put_back(line)
        return self._cut_short

    async def own_commands(self) -> None:
        """Load and offer the user's and the project's commands."""
        from swecli.commands.registry import session_commands

        port = self._session.port
        if port is None:
            return
        commands = await asyncio.to_thread(session_commands, port)
        names = [(command.name, command.summary, command.arguments) for command in commands]
        if names != [(command.name, command.summary, command.arguments) for command in self._commands.own]:
            self._commands.own = commands
            self._screen.prompt.suggestions.follow()

    async def _say(self, message: PromptEditor.Submitted, meaning: Say | Note, most: float) -> None:
        session = self._session
        if session.port is not None and session.port.view.model is None and not session.state.busy:
            editor = self._screen.prompt.editor
            editor.restore(editor.attachments.back(message.typed, message.images), message.pastes)
            self._models.connect(waits=True)
            return
        if isinstance(meaning, Note):
            from swecli.tui.remembering import remembered

            if await remembered(self._screen, session, message.text, meaning.line):
                return
        text, mentions = message.text, None
        if message.pastes or message.images or "@" in text:
            from swecli.tui.large_messages import lightened

            sent = await lightened(self._screen, session, message, most)
            if sent is None:
                return
            text, mentions = sent
        steers = session.state.busy and not message.queue and not message.images
        session.send(Steer(text, mentions) if steers else Submit(text, message.images, mentions))

    async def _run(self, command: SlashCommand, arguments: str, *, waited: bool) -> bool:
        """Run a slash command. One that ``waited`` does what it would offer if its words name that: the user may be
        away. Returns whether it opens something."""
        title = f"/{command.name} {arguments}".rstrip()
        port = self._session.port
        if port is None:
            self._open_screen("quit", "")  # the one command that needs no session
            return True
        transcript, announced = self._screen.transcript, False

        def announce() -> None:
            nonlocal announced
            announced = True
            transcript.show((), title)

        if not self._session.state.busy:  # a call now is the command's own
            self._session.before_call = announce
        try:
            result = await self._answered(command, port, arguments, title)
        finally:
            self._session.before_call = None
        if self._session.port is not port:  # another session was opened meanwhile
            return False
        self._screen.activity.refresh()  # a suggestion may be available now
        if result.blocks:
            transcript.show(result.blocks, "" if announced else title)
        if result.offer is not None and waited and result.offer.named:
            self._session.send(result.offer.command)
            return False
        if result.offer is not None and result.screen is None:
            put_offer(self._screen, self._session, result.offer)
        if result.clip is not None:
            self._copier.copy(result.clip.text, result.clip.what)
        if result.screen is not None:
            self._open_screen(result.screen, result.argument)
        return result.screen is not None or result.offer is not None

    async def _answered(self, command: SlashCommand, port: Session, arguments: str, title: str) -> CommandResult:
        """Run the command. One that asks the model shows that it waits and can be cancelled."""
        if not command.asks_model:
            return await run_command(command, port, arguments, screens=True)
        task = asyncio.create_task(run_command(command, port, arguments, screens=True))
        self._beside.append(task)
        try:
            # One that must not run beside a turn gets the answer for its own call, which shows its own state.
            doing = "Answering" if command.while_busy else "Preparing"
            with self._screen.activity.beside(f"{doing} {title}", "esc to cancel", always=command.while_busy):
                await asyncio.wait([task])
        finally:
            self._beside.remove(task)
            task.cancel()
        if task.cancelled():
            return CommandResult.text("Cancelled. The conversation is unchanged.", "dim")
        return task.result()

    @property
    def waits_beside(self) -> bool:
        """Whether a side question waits for its answer."""
        return bool(self._beside)

    def cancel_all_beside(self) -> None:
        """Cancel all side questions, because their session ends."""
        for task in self._beside:
            task.cancel()

    def cancel_beside(self) -> None:
        """Cancel the newest side question."""
        if self._beside:
            self._beside[-1].cancel()
