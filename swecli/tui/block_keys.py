"""What the keys on a block of the transcript ask for: its text in an editor, its context, a compaction undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.safe_text import safe_line

if TYPE_CHECKING:
    from swecli.tui.interface import Interface
    from swecli.tui.transcript.view import Transcript


async def edit_block(interface: Interface, message: Transcript.EditRequested) -> None:
    """Open a workspace file, or else a copy of the text, in the user's editor."""
    from swecli.tui.external import ExternalError, edit, open_file

    view, app = interface.session.view, interface.main.app
    target = view.cwd / message.path if view is not None and message.path else None
    try:
        if target is not None and target.is_file():
            await open_file(app, target)
        else:
            await edit(app, message.text)
    except ExternalError as error:
        interface.main.activity.flash(safe_line(str(error)))


def show_context(interface: Interface, message: Transcript.ContextRequested) -> None:
    """Show the context in which the block was written."""
    port = interface.session.port
    turn = port.inspection.turn_of(message.item) if port is not None else 0
    if turn:
        interface.open("context", f"at {turn}")
    else:
        interface.main.flash("The model did not see or write this")


def say_undo(interface: Interface, message: Transcript.AtCompaction) -> None:
    """Name the key that undoes or redoes the compaction, and what that costs."""
    from swecli.core.context_management.edit_effects import price_words

    key = interface.keymap.shown("block_undo")
    what = "redoes this compaction" if message.undone else "undoes this compaction and all later ones"
    port, effect = interface.session.port, None
    if port is not None:
        effect = port.prices.redo(message.item) if message.undone else port.prices.undo(message.item)
    interface.main.flash(f"{key} {what}{f': {price_words(effect)}' if effect is not None else ''}")


def undo(interface: Interface, message: Transcript.UndoRequested) -> None:
    """Undo or redo the compaction."""
    from swecli.core.protocol.commands import RedoCompaction, UndoCompaction

    interface.session.send(RedoCompaction(message.item) if message.undone else UndoCompaction(message.item))
