"""Messages that would fill much of the window: asked about before they are sent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from swecli.core.engine.message_weight import Weight, all_of
from swecli.core.workspace.mentions import mentioned, mentioned_by_hand
from swecli.tui.dock.confirm import choose
from swecli.tui.dock.picker import Choice
from swecli.tui.main_screen import MainScreen
from swecli.tui.prompt.attachments import keep_as_files
from swecli.tui.session_controller import SessionController

if TYPE_CHECKING:
    from swecli.tui.prompt.editor import PromptEditor


async def lightened(
    screen: MainScreen, session: SessionController, message: PromptEditor.Submitted, most: float
) -> tuple[str, tuple[str, ...] | None] | None:
    """The text to send and its mentions. Ask about a message above ``most`` of the window: send it as is, replace
    pastes by files and mentions by paths, or return it to the prompt (None)."""
    as_it_is = message.text, mentioned_by_hand(message.text, message.typed)
    words = mentioned(message.typed)
    if not message.pastes and not message.images and not words:
        return as_it_is
    weighed = await session.weigh_mentions(words)
    attaches = sum(mention.tokens > 0 for mention in weighed)
    weight = all_of(session.weigh(message.text, len(message.images)), weighed)
    if weight.share <= most:
        return as_it_is
    match await ask_large(screen, weight, pastes=bool(message.pastes), mentions=attaches):
        case "send":
            return as_it_is
        case "keep" if session.view is not None:
            cwd = session.view.cwd
            try:
                return (await asyncio.to_thread(keep_as_files, message.typed, message.pastes, cwd), ())
            except OSError as error:
                why = error.strerror or str(error)
                screen.activity.flash(f"Cannot write the file ({why}); nothing was sent", 8.0)
        case _:
            screen.activity.flash("Not sent; the message is back in the prompt")
    editor = screen.prompt.editor
    editor.restore(editor.attachments.back(message.typed, message.images), message.pastes)
    return None


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
