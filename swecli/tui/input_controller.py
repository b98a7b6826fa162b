"""What a submitted line means: a message, a slash command, or the user's own shell command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swecli.commands.base import SHELL_USE, SlashCommand, run_command
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import RunShell, Steer, Submit
from swecli.core.protocol.messages import ImagePart
from swecli.tui.actions import Actions
from swecli.tui.clipboard import Copier
from swecli.tui.external import NoTerminal, run_in_terminal, terminal_environment
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty line."""


@dataclass(frozen=True, slots=True)
class Say:
    """A message for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Shell:
    """The user's own command."""

    command: str


@dataclass(frozen=True, slots=True)
class Slash:
    """A known slash command and the text after its name."""

    command: SlashCommand
    arguments: str


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing that can be done, as a slash command that does not exist; ``message`` says so and names the nearest."""

    message: str


Submission = Nothing | Say | Shell | Slash | NotSent


def interpret(
    text: str, commands: Sequence[SlashCommand], exists: Callable[[str], bool] = os.path.exists
) -> Submission:
    """The meaning of ``text``. A line that begins with a path (one with a second slash, or one that
    ``exists``) is a message."""
    from swecli.commands.registry import Invocation, parse  # has every command; loaded beside the screen

    stripped = text.strip()
    if not stripped:
        return Nothing()
    if stripped == "?":
        stripped = "/help"
    if stripped.startswith("!") and stripped[1:].strip():
        return Shell(stripped[1:].strip())
    if stripped == "!":
        return NotSent(SHELL_USE)
    parsed = parse(stripped, commands)
    if parsed is None:
        return Say(text)
    if isinstance(parsed, Invocation):
        return Slash(parsed.command, parsed.arguments)
    return Say(text) if exists("/" + parsed.name) else NotSent(parsed.message)


class InputController:
    """Does what submitted lines ask for, one after the other."""

    def __init__(self, screen: MainScreen, session: SessionController, actions: Actions, copier: Copier) -> None:
        self._screen = screen
        self._session = session
        self._actions = actions
        self._copier = copier
        self._early = asyncio.Lock()
        """Held by what was sent before the session was open; waiting for it is in order."""

    async def submit(
        self,
        text: str,
        *,
        queue: bool = False,
        images: tuple[ImagePart, ...] = (),
        mentions: tuple[str, ...] | None = None,
    ) -> None:
        """Do what the text asks for. ``queue`` keeps a message for after the running turn, as do images. ``mentions``
        are the files that it attaches; None: those that it mentions. What comes while the session still opens is done
        in order once it is open, each when the one before is done."""
        meaning = interpret(text, self._actions.commands)
        leaves = isinstance(meaning, Slash) and meaning.command.name == "quit"
        at_once = leaves or isinstance(meaning, Nothing | NotSent)
        if self._session.port is not None or at_once:
            await self._do(meaning, text, queue, images, mentions)
            return
        self._screen.activity.flash("The session is still opening; your input is queued")
        async with self._early:
            await self._session.opened()
            await self._do(meaning, text, queue, images, mentions)

    async def _do(
        self,
        meaning: Submission,
        text: str,
        queue: bool,
        images: tuple[ImagePart, ...],
        mentions: tuple[str, ...] | None,
    ) -> None:
        session = self._session
        match meaning:
            case Nothing():
                pass
            case Say():
                steers = session.state.busy and not queue and not images
                session.send(Steer(text, mentions) if steers else Submit(text, images, mentions))
                if session.view is not None and session.view.model is None:
                    self._screen.prompt.put_back(text)  # the session says that it was not sent
            case Shell(command):
                await self._run_shell(command)
            case NotSent(message):
                self._screen.transcript.show((TextBlock(message, "warning"),))
            case Slash(command, arguments):
                await self._run(command, arguments)

    async def _run_shell(self, command: str) -> None:
        """Run the user's command in their terminal, or else in the session; not while a turn runs, whose work it would
        get in the way of."""
        if self._session.state.busy:
            self._screen.prompt.put_back(f"!{command}")
            self._screen.activity.flash("Your command waits until the turn ends; Esc interrupts the turn")
            return
        view = self._session.view
        sent = RunShell(command)
        if view is not None:
            try:
                ran = await run_in_terminal(self._screen.app, command, view.cwd, terminal_environment(os.environ))
                sent = RunShell(command, ran.output, ran.exit_status, ran.duration)
            except NoTerminal:
                pass
        self._session.send(sent)

    async def _run(self, command: SlashCommand, arguments: str) -> None:
        title = f"/{command.name} {arguments}".rstrip()
        port = self._session.port
        if port is None:
            self._actions.open("quit")  # the one command that needs no session
            return
        if self._session.state.busy and not command.while_busy:
            self._screen.prompt.put_back(title)
            self._screen.activity.flash(f"/{command.name} waits until the turn ends; Esc interrupts the turn")
            return
        result = await run_command(command, port, arguments)
        if result.blocks:
            self._screen.transcript.show(result.blocks, title)
        if result.offer is not None:
            self._actions.offer(result.offer)
        if result.clip is not None:
            self._copier.copy(result.clip.text, result.clip.what)
        if result.screen is not None:
            self._actions.open(result.screen, result.argument)
