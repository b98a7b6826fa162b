"""Errors that language servers find later than an edit's result: the next request waits for those that are coming."""

from __future__ import annotations

import asyncio

from swecli.core.engine.notes import add_note
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.protocol.events import Notice

NOTICE_AFTER = 1.0
"""Seconds of waiting after which a notice explains the wait."""


class LateErrors:
    """Those of one agent's edits."""

    def __init__(self, services: Services, recorder: Recorder, agent: str) -> None:
        self._code = services.code
        self._recorder = recorder
        self._agent = agent
        self._skipped: asyncio.Event | None = None
        """Set when the user cancels the wait; None if nothing waits."""

    def skip(self) -> bool:
        """Continue without the errors that the next request waits for. False if it waits for none."""
        if self._skipped is None:
            return False
        self._skipped.set()
        return True

    async def settle(self) -> None:
        """Wait while a server says that it works on an edit whose result went without it. The conversation of a
        subagent gets what has come; the session's own gets it from the servers."""
        if self._code is None:
            return
        servers = self._code.at_work(self._agent)
        if servers:
            skipped = self._skipped = asyncio.Event()
            either = (
                asyncio.ensure_future(self._code.caught_up(self._agent)),
                asyncio.ensure_future(skipped.wait()),
            )
            try:
                done, _ = await asyncio.wait(either, timeout=NOTICE_AFTER, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    text = f"Waiting for {', '.join(servers)}: errors of the last edit"
                    self._recorder.emit(Notice(text, topic="tools", hint="Esc continues without them"))
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._skipped = None
                for task in either:
                    task.cancel()
        for text in self._code.late(self._agent):
            add_note(self._recorder, text.partition("\n")[0].rstrip(":"), text)
