"""The list of the user's messages to rewind to before, and the question what to restore."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from swecli.core.protocol.commands import Rewind
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.engine.rewind import RewindPoint
    from swecli.tui.interface import Interface


def show_rewind(interface: Interface, words: str = "") -> None:
    """List the user's messages to rewind to, unless a turn runs."""
    from swecli.tui.screens.rewind import RewindPage, SessionPoints

    port = interface.session.port
    if port is None or interface.session.state.busy:
        interface.main.flash(
            "A turn is running; press Esc to interrupt it, then rewind" if port else "The session is still opening"
        )
        return
    interface.main.open_list(RewindPage(SessionPoints(port), partial(_rewind_to, interface), interface.wall), words)


def _rewind_to(interface: Interface, point: RewindPoint) -> None:
    """Ask what to restore to its state before a message."""
    from swecli.commands.rewind import changed_words, short, since
    from swecli.core.context_management.edit_effects import price_words
    from swecli.tui.dock.picker import Choice, Picker

    interface.main.close_list()
    changed, port = changed_words(point), interface.session.port
    effect = port.prices.rewind(point.item) if port is not None else None
    price = price_words(effect) if effect is not None else since(point)
    choices = [
        Choice("both", "Conversation and files", f"{price} · {changed}"),
        Choice("conversation", "Conversation only", f"{price} · files are unchanged"),
        Choice("files", "Files only", "the conversation is unchanged"),
        Choice("no", "Cancel", "nothing changes"),
    ]
    choices = choices if point.files else [choices[1], choices[3]]

    def picked(value: str) -> None:
        if value == "both" or value == "conversation" or value == "files":
            interface.session.send(Rewind(point.item, value))

    title = f"Rewind to before: {safe_line(short(point.text))}"
    interface.main.dock.show(Picker(title, choices, picked, narrow=False, cancelled=partial(show_rewind, interface)))
