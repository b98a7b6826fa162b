"""The list of the user's messages to rewind to before, and the question what to restore."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from swecli.core.protocol.commands import Rewind
from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.core.engine.rewind import RewindPoint
    from swecli.tui.app import SwecliApp


def show_rewind(app: SwecliApp, words: str = "") -> None:
    """List the user's messages to rewind to, unless a turn runs."""
    from swecli.tui.screens.rewind import RewindPage, SessionPoints

    port = app.session.port
    if port is None or app.session.state.busy:
        app.main.flash(
            "A turn is running; press Esc to interrupt it, then rewind" if port else "The session is still opening"
        )
        return
    app.main.open_list(RewindPage(SessionPoints(port), partial(_rewind_to, app), app.wall), words)


def _rewind_to(app: SwecliApp, point: RewindPoint) -> None:
    """Ask what to restore to its state before a message."""
    from swecli.commands.rewind import changed_words, short, since
    from swecli.core.context_management.edit_effects import price_words
    from swecli.tui.dock.picker import Choice, Picker

    app.main.close_list()
    changed, port = changed_words(point), app.session.port
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
            app.session.send(Rewind(point.item, value))

    title = f"Rewind to before: {safe_line(short(point.text))}"
    app.main.dock.show(Picker(title, choices, picked, narrow=False, cancelled=partial(show_rewind, app)))
