"""The session behind the screen: opened while keys are answered already, closed in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from swecli.core.engine.view import SessionPort, SessionView
    from swecli.core.protocol.commands import Command

CLOSE_TIME = 3.0
"""Seconds for a session to end in order when the user quits."""

OpenSession: TypeAlias = "Callable[[], Awaitable[SessionPort]]"


class SessionNotOpened(Exception):
    """The session can't be opened; the message is for the user, ``code`` the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class SessionLink:
    """Holds the port once there is one. Until then commands wait in order."""

    def __init__(self) -> None:
        self._port: SessionPort | None = None
        self._waiting: list[Command] = []
        self._opened = asyncio.Event()

    @property
    def port(self) -> SessionPort | None:
        return self._port

    @property
    def view(self) -> SessionView | None:
        return None if self._port is None else self._port.view

    async def opened(self) -> None:
        """Returns when there is a session."""
        await self._opened.wait()

    def send(self, command: Command) -> None:
        """Hand over a command, or keep it until the session is open."""
        if self._port is None:
            self._waiting.append(command)
        else:
            self._port.send(command)

    def attach(self, port: SessionPort) -> None:
        """The session is open: what waited is sent."""
        self._port = port
        self._opened.set()
        waiting, self._waiting = self._waiting, []
        for command in waiting:
            port.send(command)

    async def close(self, timeout: float = CLOSE_TIME) -> None:
        """End the session, for at most ``timeout`` seconds."""
        port, self._port = self._port, None
        self._opened.clear()
        if port is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(port.close(), timeout)
