"""The settings of the sandbox that commands run in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from swecli.core.config.section import Section


def _place(value: str) -> str:
    if "\0" in value or not value.startswith(("/", "~/")):
        raise ValueError("must be an absolute path, or begin with ~/")
    return value


Place = Annotated[str, AfterValidator(_place)]


class SandboxSettings(Section):
    """Where commands are contained, and what they may reach there."""

    mode: Literal["auto", "on", "off"] = "auto"
    """"auto": in auto mode, where it lets a command run without a question; "on": every command; "off": none."""
    required: bool = False
    """Whether swecli starts only where the sandbox is full."""
    network: bool = False
    """Whether contained commands reach the network; the sandbox is only partial then."""
    writable: tuple[Place, ...] = ()
    """Places besides the workspace that commands may write."""
    hide: tuple[Place, ...] = ()
    """Places that commands do not see, besides the usual ones for keys and passwords."""
    ask_outside: bool = True
    """Whether the user is asked at once when the sandbox stopped a command."""
