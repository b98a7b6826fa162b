"""Questions of the interface itself, answered by a choice in the dock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from swecli.commands.base import LATER, Offer
from swecli.core.protocol.commands import Command
from swecli.tui.dock.picker import Choice, Picker
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController

_BUSY = "Answer the model's question first"


def put_offer(screen: MainScreen, session: SessionController, offer: Offer) -> None:
    """Ask whether to do something; Enter accepts, Esc declines."""
    later = [Choice("later", *LATER)] if offer.later is not None else []
    choices = [Choice("yes", *offer.yes), *later, Choice("no", *offer.no)]

    def picked(value: str) -> None:
        if value == "yes":
            session.send(offer.command)
        elif value == "later" and offer.later is not None:
            session.send(offer.later)

    screen.dock.show(Picker(offer.title, choices, picked, narrow=False))


def ask(
    screen: MainScreen,
    session: SessionController,
    question: str,
    yes: tuple[str, str],
    do: Callable[[], object],
    later: Command | None = None,
) -> None:
    """Ask before doing something; Esc cancels. ``later`` as in ``Offer``."""
    waits = [Choice("later", *LATER)] if later is not None else []
    choices = [Choice("yes", *yes), *waits, Choice("no", "Cancel", "nothing changes")]

    def picked(value: str) -> None:
        if value == "yes":
            do()
        elif value == "later" and later is not None:
            session.send(later)

    picker = Picker(question, choices, picked)
    screen.dock.show(picker)
    if screen.dock.panel is not picker:
        screen.flash(_BUSY)


async def choose(screen: MainScreen, title: str, choices: Sequence[Choice]) -> str:
    """Ask and wait for the choice; "cancel" if the question is closed or displaced."""
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def given(value: str = "cancel") -> None:
        if not answer.done():
            answer.set_result(value)

    picker = Picker(title, choices, given, narrow=False, gone=given)
    screen.dock.show(picker)
    if screen.dock.panel is not picker:
        screen.flash(_BUSY)
        return "cancel"
    return await answer
