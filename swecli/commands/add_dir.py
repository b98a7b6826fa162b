"""/add-dir: one more folder to work in."""

from __future__ import annotations

import os
from pathlib import Path

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.engine.view import SessionPort
from swecli.core.protocol.blocks import TextBlock


async def _run(port: SessionPort, arguments: str) -> CommandResult:
    view = port.view
    if not arguments.strip():
        return CommandResult.text(f"Folders of this session: {', '.join(map(str, view.roots))}.")
    path, refusal = folder_of(arguments.strip(), view.cwd)
    if path is None:
        return CommandResult.text(refusal, "error")
    if any(path.is_relative_to(root) for root in view.roots):
        return CommandResult.text(f"{path} belongs to this session already.")
    if any(job.status == "running" for job in view.jobs):
        return CommandResult.text(
            "Background jobs run, and the session is opened again to work in one more folder, which would end them; "
            "/jobs lists and stops them.",
            "error",
        )
    instead = TextBlock(f"Folders are given at the start here: --add-dir {path}", "warning")
    return CommandResult(screen="add_folder", argument=str(path), instead=(instead,))


def folder_of(name: str, base: Path) -> tuple[Path | None, str]:
    """The folder that is meant, or why it can't be used."""
    try:
        path = (base / Path(name).expanduser()).resolve()
        if not path.is_dir():
            return None, f"{name}: {'not a directory' if path.exists() else 'no such directory'}; nothing was added"
    except (OSError, ValueError, RuntimeError) as error:
        return None, f"{name} can't be used ({error}); nothing was added"
    if not os.access(path, os.R_OK | os.X_OK):
        return None, f"{name}: not readable; nothing was added"
    return path, ""


ADD_DIR = SlashCommand(
    "add-dir", "Work in one more folder, until the end of this run", _run, arguments="[folder]", while_busy=False
)
