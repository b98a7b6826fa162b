"""The errors that an agent's edits bring: in the results of its calls, or before its next request if they come late."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from swecli.core.engine.companion import CallCompanion
from swecli.core.engine.notes import add_note
from swecli.core.engine.prepared_call import PreparedCall
from swecli.core.engine.recorder import Recorder
from swecli.core.language_servers.servers import LanguageServers
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Command, Interrupt
from swecli.core.protocol.events import Notice
from swecli.core.tools.base import ToolOutcome

NOTICE_AFTER = 1.0
"""Seconds of waiting after which a notice explains the wait."""


class EditErrors(CallCompanion):
    """Lets the servers examine files before a call of ``agent`` changes them, and again after it."""

    def __init__(self, servers: LanguageServers, recorder: Recorder, agent: str) -> None:
        self._servers = servers
        self._recorder = recorder
        self._agent = agent
        self._skipped: asyncio.Event | None = None
        """Set when the user cancels the wait; None if nothing waits."""

    def heard(self, command: Command) -> bool:
        """Continue without the errors that the next request waits for."""
        if not isinstance(command, Interrupt) or not command.skip or self._skipped is None:
            return False
        self._skipped.set()
        return True

    async def before_call(self, call: PreparedCall) -> PreparedCall:
        await self.before_run(call)  # servers get ready while the user decides
        return call

    async def before_run(self, call: PreparedCall) -> None:
        if call.effects.writes and not call.effects.opaque:
            await self._servers.expect(call.effects.writes)

    async def after_run(self, call: PreparedCall, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome with new errors caused by its changes, if any, and a subagent's late ones of earlier changes."""
        errors = await self._servers.brought([change.path for change in outcome.changed], self._agent)
        if not errors:
            return outcome
        blocks = (*outcome.blocks, TextBlock(errors, "warning"))
        return replace(outcome, text=f"{outcome.text}\n{errors}", blocks=blocks)

    async def after_calls(self) -> None:
        """Wait while a server says that it works on an edit whose result went without it. The conversation of a
        subagent gets what has come; the session's own gets it from the servers."""
        names = self._servers.at_work(self._agent)
        if names:
            skipped = self._skipped = asyncio.Event()
            either = (
                asyncio.ensure_future(self._servers.caught_up(self._agent)),
                asyncio.ensure_future(skipped.wait()),
            )
            try:
                done, _ = await asyncio.wait(either, timeout=NOTICE_AFTER, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    text = f"Waiting for {', '.join(names)}: errors of the last edit"
                    self._recorder.emit(Notice(text, topic="tools", hint="Esc continues without them"))
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._skipped = None
                for task in either:
                    task.cancel()
        for text in self._servers.late(self._agent):
            add_note(self._recorder, text.partition("\n")[0].rstrip(":"), text)
