"""Lines that begin with ``#``: added to the instructions of the folder or of the user."""

from __future__ import annotations

import os
from pathlib import Path

from swecli.commands.instructions import instructions_file, remember
from swecli.core.config.paths import user_paths
from swecli.safe_text import safe_line
from swecli.tui.dock.confirm import choose
from swecli.tui.dock.picker import Choice
from swecli.tui.greeting import short
from swecli.tui.main_screen import MainScreen
from swecli.tui.session_controller import SessionController


async def remembered(screen: MainScreen, session: SessionController, text: str, note: str) -> bool:
    """Add ``note``, the line in ``text``, to the instructions that the user chooses; False if it is a message."""
    port = session.port
    if port is None:
        return False
    folders = {"here": port.view.cwd, "own": user_paths(os.environ).config}
    names = {key: str(instructions_file(folder)) for key, folder in folders.items()}
    own = short(Path(names["own"]), os.environ.get("HOME", ""))
    match await ask_note(screen, note, os.path.basename(names["here"]), own):
        case "here" | "own" as key:
            writes = key == "here"  # with a call, which appears below the note
            if writes:
                screen.transcript.show((), text)
            result = await remember(port, note, folders[key], own=not writes)
            screen.transcript.show(result.blocks, "" if writes else text)
        case "send":
            return False
        case _:
            screen.prompt.put_back(text)
    return True


async def ask_note(screen: MainScreen, note: str, here: str, own: str) -> str:
    """Ask where to store a note: "here", the user's "own" file, "send" (as a message instead) or "cancel"."""
    choices = [
        Choice("here", f"Add it to {here}", "this folder's instructions"),
        Choice("own", f"Add it to {safe_line(own)}", "your own"),
        Choice("send", "Send it as a message", "nothing is added"),
        Choice("cancel", "Cancel", "back into the prompt"),
    ]
    return await choose(screen, f"Add to the instructions: {safe_line(note)}", choices)
