"""What the session knows of its sandbox: found out off the event loop, told as an event whenever it changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.permissions.types import Decision, Effects
from swecli.core.protocol.events import SandboxChanged
from swecli.core.tools.base import ToolContext


class SandboxWatch:
    """The session's view of ``services.sandbox``."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        self._sandbox = services.sandbox
        self._recorder = recorder
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to find out; nobody waits for it."""
        self._task = asyncio.create_task(self._check())

    async def stop(self) -> None:
        """Wait for what was begun: it has files open that are to be closed."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def ready(self, effects: Effects) -> None:
        """Know the state before a command is decided about whose verdict depends on it."""
        wanted = self._recorder.state.mode == "auto" or self._sandbox.options.mode == "on"
        if effects.command is not None and wanted and not self._sandbox.state.checked:
            await self._check()
        elif effects.command is not None:
            self.tell()

    def tell(self) -> None:
        """Put the state on record if it is known and new."""
        state = self._sandbox.state
        if state.checked:
            body = SandboxChanged(state.level, state.layer, state.reason, state.uncovered, state.label)
            if body != self._recorder.state.sandbox:
                self._recorder.emit(body)

    def context(self, ctx: ToolContext, effects: Effects, decision: Decision) -> ToolContext:
        """Where this call's command runs: in the sandbox if only that lets it run unasked, or if the user wants every
        command there and did not consent to this one outside."""
        inside = decision.contained or (self._sandbox.options.mode == "on" and not effects.outside)
        if effects.command is None or not inside:
            return ctx
        return replace(ctx, sandbox=self._sandbox, contained=decision.contained)

    @property
    def offers(self) -> bool:
        """Whether the user is asked at once when the sandbox stopped a command."""
        return self._sandbox.options.ask_outside

    async def _check(self) -> None:
        await asyncio.to_thread(self._sandbox.check)
        self.tell()
