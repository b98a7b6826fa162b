"""What is said of a command that runs or has run."""

from __future__ import annotations

from swecli.core.tools.files import readable_size
from swecli.core.workspace.jobs import shown_age
from swecli.safe_text import safe_line
from swecli.tui.screens.ports import ShownCommand


def one_line(command: ShownCommand) -> str:
    """Its text on one line."""
    return safe_line(" ".join(command.command.split()))


def label(command: ShownCommand) -> str:
    """A command in a sentence: its id, or its text."""
    text = one_line(command)
    text = text if len(text) <= 40 else f"{text[:39]}…"
    return f"{command.name} ({text})" if command.job else text


def state(command: ShownCommand) -> str:
    """What a command is at, or what became of it, in a word or two."""
    if command.running:
        return "running" if command.exit_status is None else "left running"
    if command.stopped:
        return "stopped"
    return "ended" if command.exit_status is None else f"exit {command.exit_status}"


def size(command: ShownCommand) -> str:
    """How much a command wrote."""
    return ("> " if command.beyond else "") + readable_size(command.size)


def facts(command: ShownCommand, now: float) -> str:
    """Everything on one line but the command."""
    age = shown_age((command.ended or now) - command.started)
    since = 0.0 if command.ended is None else now - command.ended
    ended = f", {shown_age(since)} ago" if since >= 1 else ""
    took = f"for {age}" if command.running else f"after {age}{ended}"
    parts = [f"{state(command)} {took}", f"{size(command)} of output", command.about]
    return " · ".join(part for part in parts if part)
