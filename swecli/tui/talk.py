"""From what the user typed to what happens: messages, slash commands, the user's own shell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, get_args

from swecli.commands.base import Clip, Offer, Screen, SlashCommand
from swecli.commands.running import run_command
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Command, RunShell, SetEffort, SetMode, SetModel, Steer, Submit
from swecli.core.protocol.events import Mode
from swecli.core.protocol.messages import ImagePart
from swecli.safe_text import safe_line
from swecli.tui.link import SessionLink
from swecli.tui.submission import Nothing, NotSent, Say, Shell, Slash, interpret


class Desk(Protocol):
    """What talking needs of the screen."""

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None: ...
    def flash(self, text: str) -> None: ...
    def offer(self, offer: Offer) -> None: ...
    def copy(self, clip: Clip) -> None: ...
    def open(self, name: Screen, words: str = "") -> None: ...
    def put_back(self, text: str) -> None: ...
    async def run_in_terminal(self, command: str, cwd: Path) -> tuple[str, int, float] | None: ...


class Talk:
    """Interprets one submission after the other. ``commands`` is the registry's list, once it is loaded."""

    def __init__(self, link: SessionLink, desk: Desk, busy: Callable[[], bool]) -> None:
        self._link = link
        self.commands: Sequence[SlashCommand] = ()
        self._desk = desk
        self._busy = busy

    async def submit(self, text: str, *, queue: bool = False, images: tuple[ImagePart, ...] = ()) -> None:
        """Do what the text asks for. ``queue`` keeps a message for after the running turn, as do images."""
        match interpret(text, self.commands):
            case Nothing():
                pass
            case Say():
                self._link.send(self._message(text, queue, images))
                if self._link.view is not None and self._link.view.model is None:
                    self._desk.put_back(text)  # the session says that it was not sent
            case Shell(command):
                await self._shell(command)
            case NotSent(message):
                self._desk.show((TextBlock(message, "warning"),))
            case Slash(command, arguments):
                await self._run(command, arguments)

    async def _shell(self, command: str) -> None:
        """Run the user's command in their terminal; not while a turn runs, whose work it would get in the way of."""
        if self._busy():
            self._desk.put_back(f"!{command}")
            self._desk.flash("Your command has to wait until the turn has ended; Esc interrupts it")
            return
        view = self._link.view
        ran = None if view is None else await self._desk.run_in_terminal(command, view.cwd)
        self._link.send(RunShell(command) if ran is None else RunShell(command, *ran))

    def _message(self, text: str, queue: bool, images: tuple[ImagePart, ...]) -> Command:
        return Steer(text) if self._busy() and not queue and not images else Submit(text, images)

    def blind(self) -> str:
        """Why the model can't be sent images; empty where it can, or may."""
        model = None if self._link.view is None else self._link.view.model
        if model is None or model.images is not False:
            return ""
        return f"{model.ref} can't see images; the path was pasted as text"

    async def _run(self, command: SlashCommand, arguments: str) -> None:
        title = f"/{command.name} {arguments}".rstrip()
        port = self._link.port
        if port is None:
            if command.name == "quit":
                self._desk.open("quit")
            else:
                self._desk.put_back(title)
                self._desk.flash("The session is still opening; the command is kept")
            return
        if self._busy() and not command.while_busy:
            self._desk.put_back(title)
            self._desk.flash(f"/{command.name} has to wait until the turn has ended; Esc interrupts it")
            return
        result = await run_command(command, port, arguments)
        if result.blocks:
            self._desk.show(result.blocks, title)
        if result.offer is not None:
            self._desk.offer(result.offer)
        if result.clip is not None:
            self._desk.copy(result.clip)
        if result.screen is not None:
            self._desk.open(result.screen, result.argument)

    def next_mode(self) -> None:
        """Shift+Tab: the mode after the present one."""
        modes: tuple[Mode, ...] = get_args(Mode)
        view = self._link.view
        if view is None:
            self._desk.flash("The session is still opening")
            return
        self.set_mode(modes[(modes.index(view.mode) + 1) % len(modes)])

    def set_mode(self, name: str) -> None:
        """Ask the session for a mode."""
        from swecli.commands.mode import MODE_MEANINGS

        for mode, meaning in MODE_MEANINGS.items():
            if mode == name:
                self._link.send(SetMode(mode))
                self._desk.flash(f"Mode {mode}: {meaning}")

    def set_effort(self, word: str) -> None:
        """Ask the session for an effort: one of the model's words, or what it does by itself."""
        from swecli.commands.effort import DEFAULT

        self._link.send(SetEffort(None if word == DEFAULT else word))
        self._desk.flash(f"Effort {safe_line(word)}, from the next request on")

    def set_model(self, ref: str) -> None:
        """Ask the session for a model (``provider/name``)."""
        self._link.send(SetModel(ref))
        self._desk.flash(f"Model {safe_line(ref)}")
