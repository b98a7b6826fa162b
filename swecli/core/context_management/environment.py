"""What the model is told about the machine, once, in front of the session's first message.

It stays as it was when the session began: a date in the system prompt would change every prompt at midnight.
"""

from __future__ import annotations

from datetime import date


def environment_note(*, today: date, cwd: str, platform: str, shell: str, git: bool) -> str:
    """Equal values give equal bytes. Line breaks in names are shown as ``?``."""
    lines = (
        f"Date: {today.isoformat()}",
        f"Working directory: {_line(cwd)}",
        f"Platform: {_line(platform)}",
        f"Shell: {_line(shell)}" if shell else "",
        f"Git work tree: {'yes' if git else 'no'}",
    )
    return "\n".join(["<environment>", *(line for line in lines if line), "</environment>"])


def _line(value: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in value)
