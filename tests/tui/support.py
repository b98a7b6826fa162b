"""A running application on a prepared session, with a clock that tests move, and the screen as text."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import textual.pilot
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from swecli.assembly.succession import OpenSession
from swecli.commands.base import CommandResult, Screen, SlashCommand, fixed_words
from swecli.core.protocol.commands import Command, EditQueue, SetMode, Steer, Submit
from swecli.core.protocol.events import ModeChanged, QueueChanged, Queued
from swecli.tui.app import SwecliApp
from swecli.tui.program import Program
from tests.support.fake_session import FakeSession, Turn
from tests.support.waiting import Condition, until
from tests.tui.frames import FRAMES

NOW = 1_700_000_000.0


class Session(FakeSession):
    """Also knows modes and waiting messages."""

    def send(self, command: Command) -> None:
        busy = self.view.busy
        super().send(command)
        match command:
            case SetMode():
                self.view.mode = command.mode
                self.emit(ModeChanged(command.mode))
            case Steer() | Submit() if busy:
                entry = Queued(f"q{len(self.commands)}", command.text, isinstance(command, Steer))
                self._show((*self.view.queue, entry))
            case EditQueue(id, None):
                self._show(tuple(entry for entry in self.view.queue if entry.id != id))
            case _:
                pass

    def _show(self, queue: tuple[Queued, ...]) -> None:
        self.view.queue = queue
        self.emit(QueueChanged(queue))

    def sent(self, kind: type[Any]) -> list[Any]:
        return [command for command in self.commands if isinstance(command, kind)]


def _command(
    name: str, screen: Screen | None = None, *, busy: bool = True, arguments: str = "", **more: Any
) -> SlashCommand:
    async def run(port: Session, text: str) -> CommandResult:
        if screen is not None:
            return CommandResult(screen=screen, argument=text)
        return CommandResult.text(f"{name} got [{text}]")

    return SlashCommand(name, f"What {name} does", run, arguments=arguments, while_busy=busy, **more)


COMMANDS = (
    _command("help", "help", aliases=("?",)),
    _command("init", busy=False),
    _command("model", "pick_model", arguments="[provider/name]"),
    _command("mode", "pick_mode", arguments="[mode]", words=fixed_words(default="asks", plan="only reads")),
    _command("context", aliases=("tokens",), arguments="[words]"),
    _command("theme", "pick_theme", arguments="[name]"),
    _command("clear", "clear", busy=False, aliases=("new", "reset")),
    _command("jobs", "jobs", arguments="[job]"),
    _command("quit", "quit", aliases=("exit", "q")),
)


async def _works(ref: str) -> tuple[bool, str]:
    return True, f"{ref} answers"


class Opening:
    """Opens what a test gives it."""

    resume_hint = "swecli -c"
    kept = "all"

    def __init__(
        self, first: OpenSession, next: OpenSession | None = None, stored: Callable[..., OpenSession] | None = None
    ) -> None:
        self.first = first
        self.next = next or first
        self.stored = stored or (lambda session_id, fork=False: first)
        self.added: list[Path] = []

    def add_folder(self, folder: Path) -> None:
        self.added.append(folder)


class Accounts:
    """Providers (name and state of the key) of which ``known`` exist. ``store`` takes a key, and returns a sentence
    and the provider's default model."""

    def __init__(
        self,
        store: Callable[[str, str], tuple[str, str]],
        offered: Sequence[tuple[str, str]] = (),
        known: Sequence[str] | None = None,
    ) -> None:
        self._store = store
        self._offered = offered
        self._known = known
        self._default = ""

    def anew(self) -> Accounts:
        return self

    def offered(self) -> Sequence[tuple[str, str]]:
        return self._offered

    def find(self, provider: str) -> str:
        if self._known is not None and provider not in self._known:
            raise ValueError(f"Provider {provider!r} is unknown")
        return provider

    def store(self, provider: str, key: str) -> str:
        said, self._default = self._store(provider, key)
        return said

    def default_of(self, provider: str) -> str:
        return self._default


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Running:
    """A running application."""

    def __init__(self, app: SwecliApp, pilot: Pilot[Any], session: Session, clock: Clock) -> None:
        self.app = app
        self.pilot = pilot
        self.session = session
        self.clock = clock
        self.added: list[Path] = []
        """Folders that were added to the sessions to come."""

    @property
    def editor(self) -> Any:
        return self.app.main.prompt.editor

    @property
    def text(self) -> str:
        return self.app.main.prompt.editor.text

    def screen(self) -> str:
        """What is on the screen, line by line."""
        compositor = self.app.screen._compositor
        lines = compositor.render_strips()
        FRAMES.seen(compositor)
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in lines)

    async def press(self, *keys: str) -> None:
        """
        Raises:
            AssertionError: the app has failed, so that it takes no key.
        """
        assert self.app._exception is None, repr(self.app._exception)
        await self.pilot.press(*keys)

    async def at_once(self, *keys: str) -> None:
        """Keys that all come before the first of them is worked on."""
        self.post(*keys)
        await self.pilot.pause()

    def post(self, *keys: str) -> None:
        """Keys whose work is not waited for: it ends only with what the test does next."""
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.app.post_message(events.Key(name, key if len(key) == 1 else None))

    async def type(self, text: str) -> None:
        self.editor.add(text)
        await self.pilot.pause()

    async def say(self, text: str) -> None:
        """Type a line and send it."""
        await self.type(text)
        await self.press("enter")

    async def settled(self) -> None:
        """Wait until everything has found its place: what was said is worked off, and no frame is due. A pause of the
        pilot ends with a frame, and what that changes comes after it."""
        await textual.pilot.wait_for_idle(0)
        while self.app.screen._update_timer._active.is_set():
            self.app.screen._on_timer_update()
            await textual.pilot.wait_for_idle(0)

    async def until(self, condition: Condition) -> None:
        await until(condition, self.screen)

    async def shows(self, *texts: str) -> None:
        """Wait until all texts are on the screen."""
        await self.sees(lambda screen: all(text in screen for text in texts))

    async def hides(self, text: str) -> None:
        await self.sees(lambda screen: text not in screen)

    async def sees(self, condition: Callable[[str], bool]) -> None:
        """Wait until what is on the screen fulfils the condition, which looks again after each frame only."""
        seen, found = -1, False

        def look() -> bool:
            nonlocal seen, found
            if seen != FRAMES.count:
                seen, found = FRAMES.count, condition(self.screen())
            return found

        await self.until(look)


@contextlib.asynccontextmanager
async def running(
    *turns: Turn,
    session: Session | None = None,
    size: tuple[int, int] = (80, 24),
    state: Path | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """The application with an open session whose turns are prepared."""
    session = session or Session(*turns)

    async def open_session() -> Session:
        return session

    clock = Clock()
    given: dict[str, Any] = {"commands": lambda: COMMANDS, "state": state, "try_model": _works, **options}
    first = given.pop("open_session", open_session)
    opening: Any = Opening(first, given.pop("new_session", None), given.pop("stored_session", None))
    app = SwecliApp(Program(open=opening, **given), clock=clock, wall=lambda: NOW)
    async with app.run_test(size=size) as pilot:
        it = Running(app, pilot, session, clock)
        it.added = opening.added
        if first is open_session:
            await it.until(lambda: app.loaded and app.session.port)
        yield it
        FRAMES.draw()
