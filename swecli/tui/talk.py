"""From what the user typed to what happens: messages, slash commands, the user's own shell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, get_args

from swecli.commands.base import Clip, CommandResult, Offer, SlashCommand
from swecli.commands.running import run_command
from swecli.core.protocol.blocks import DisplayBlock, TextBlock
from swecli.core.protocol.commands import Command, RunShell, SetEffort, SetMode, SetModel, Steer, Submit
from swecli.core.protocol.events import Mode
from swecli.core.protocol.messages import ImagePart
from swecli.safe_text import safe_line
from swecli.tui.link import SessionLink
from swecli.tui.submission import Nothing, Say, Shell, Slash, UnknownSlash, interpret

ScreenName = Literal["help", "settings", "permissions", "sessions"]
"""Screens that commands open."""


class Desk(Protocol):
    """What talking needs of the screen."""

    def show(self, blocks: Sequence[DisplayBlock], title: str = "") -> None: ...
    def flash(self, text: str) -> None: ...
    def offer(self, offer: Offer) -> None: ...
    def copy(self, clip: Clip) -> None: ...
    def find(self, words: str) -> None: ...
    def pick_mode(self) -> None: ...
    def pick_model(self) -> None: ...
    def pick_effort(self) -> None: ...
    def pick_theme(self, name: str) -> None: ...
    def log_in(self, provider: str) -> None: ...
    def open_screen(self, name: ScreenName, words: str) -> None: ...
    def show_keys(self, words: str) -> None: ...
    def start_over(self) -> None: ...
    def put_back(self, text: str) -> None: ...
    def leave(self) -> None: ...
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
            case UnknownSlash(message):
                self._desk.show((TextBlock(message, "warning"),))
            case Slash(command, arguments):
                await self._run(command, arguments)

    async def _shell(self, command: str) -> None:
        """Run the user's command in their terminal; while a turn runs there is none to give away."""
        view = self._link.view
        ran = None if self._busy() or view is None else await self._desk.run_in_terminal(command, view.cwd)
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
                self._desk.leave()
            else:
                self._desk.flash(f"{title}: the session is still opening")
            return
        if self._busy() and not command.while_busy:
            self._desk.flash(f"/{command.name} has to wait until the turn has ended; Esc interrupts it")
            return
        result = await run_command(command, port, arguments)
        if result.blocks:
            self._desk.show(result.blocks, title)
        if result.offer is not None:
            self._desk.offer(result.offer)
        if result.clip is not None:
            self._desk.copy(result.clip)
        self._open(result)

    def _open(self, result: CommandResult) -> None:
        match result.screen:
            case "quit":
                self._desk.leave()
            case "clear":
                self._desk.start_over()
            case "pick_mode":
                self._desk.pick_mode()
            case "pick_model":
                self._desk.pick_model()
            case "pick_effort":
                self._desk.pick_effort()
            case "pick_theme":
                self._desk.pick_theme(result.argument)
            case "find":
                self._desk.find(result.argument)
            case "login":
                self._desk.log_in(result.argument)
            case "help" | "settings" | "permissions" | "sessions" as name:
                self._desk.open_screen(name, result.argument)
            case "keys":
                self._desk.show_keys(result.argument)
            case None:
                pass

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
