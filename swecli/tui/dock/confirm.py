"""Questions of the interface itself, answered by a choice in the dock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from swecli.commands.base import LATER, Offer
from swecli.core.protocol.commands import Command
from swecli.safe_text import safe_line
from swecli.tui.dock.picker import Choice, Picker
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController

if TYPE_CHECKING:
    from swecli.core.engine.message_weight import Weight

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


async def ask_large(screen: MainScreen, weight: Weight, *, pastes: bool, mentions: int) -> str:
    """Ask what to do with a large message: "send", "keep" only the paths of its attachments, or "cancel"."""
    how = "after a compaction of the conversation" if weight.needs_room else "all of it goes to the model"
    choices = [Choice("send", "Send it unchanged", how)] if weight.fits else []
    if pastes or mentions:
        keep = "Keep it as a file, send its path" if pastes else f"Send only the {'path' if mentions == 1 else 'paths'}"
        choices.append(Choice("keep", keep, "the model reads the parts it needs"))
    choices.append(Choice("cancel", "Cancel", "back into the prompt"))
    fits = "" if weight.fits else ": too large to send"
    return await choose(screen, f"This message takes {weight.shown}{fits}", choices)


async def ask_note(screen: MainScreen, note: str, here: str, own: str) -> str:
    """Ask where to store a note: "here", the user's "own" file, "send" (as a message instead) or "cancel"."""
    choices = [
        Choice("here", f"Add it to {here}", "this folder's instructions"),
        Choice("own", f"Add it to {safe_line(own)}", "your own"),
        Choice("send", "Send it as a message", "nothing is added"),
        Choice("cancel", "Cancel", "back into the prompt"),
    ]
    return await choose(screen, f"Add to the instructions: {safe_line(note)}", choices)


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
