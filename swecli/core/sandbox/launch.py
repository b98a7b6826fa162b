"""One command in the sandbox: what is put in front of it, what it inherits, and what became of it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from swecli.core.sandbox.blocked import blocked
from swecli.core.sandbox.values import Layer, Plan

_RAN = re.compile(rb'"exit-code"\s*:')
_HELPER_FAILED = "swecli sandbox:"


class SandboxError(Exception):
    """The command was not run, because the sandbox can't hold it; the message says why."""


@dataclass(slots=True)
class Launch:
    """``prefix`` goes in front of the command, ``inherited`` are open in it, ``environment`` is changed for it.
    ``end`` must be called once, when the command has ended or was never started."""

    layer: Layer
    plan: Plan
    prefix: Sequence[str]
    descriptors: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: {})
    status: int | None = None
    """Where bubblewrap says what became of it."""
    lock: int | None = None
    """Inherited too: it marks the command as running. ``release`` closes it."""
    release: Callable[[], object] = lambda: None

    @property
    def inherited(self) -> tuple[int, ...]:
        """All descriptors that the command's process gets."""
        return (*self.descriptors, *(() if self.lock is None else (self.lock,)))

    def end(self) -> None:
        """Close what was open and take away what was made for this command."""
        for descriptor in {*self.descriptors, *(() if self.status is None else (self.status,))}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self.descriptors, self.status, self.lock = (), None, None
        release, self.release = self.release, lambda: None
        release()

    def failure(self, output: str, status: int | None) -> str:
        """Why the sandbox could not be set up, so that the command never ran; empty when it ran. To be asked before
        ``end``; a command that was killed counts as run."""
        if status is None or status == 0:
            return ""
        line = output.strip().partition("\n")[0][:300]
        if self.layer == "landlock":
            return line if status == 126 and output.startswith(_HELPER_FAILED) else ""
        if self.layer != "bwrap" or self.status is None or not output.startswith("bwrap: "):
            return ""
        try:
            told = os.read(self.status, 65_536)
        except BlockingIOError:
            told = b""
        return "" if _RAN.search(told) else line

    def blocked(self, output: str, status: int | None) -> str:
        """What the sandbox stopped, as a clause; empty when nothing points to it."""
        return blocked(output, status, self.plan, self.layer)
