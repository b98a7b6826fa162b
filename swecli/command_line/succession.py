"""One session after the other in one run of the program: what /clear opens goes on with model, effort and mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from swecli.launch import LaunchOptions

if TYPE_CHECKING:  # nothing that takes long is loaded before the first paint
    from swecli.core.engine.view import SessionPort
    from swecli.core.llm.types import ModelInfo


class Succession:
    """Opens sessions with ``open_session`` and remembers the newest. ``options`` are those of the start."""

    def __init__(self, options: LaunchOptions, open_session: Callable[[LaunchOptions], Awaitable[SessionPort]]) -> None:
        self._options = options
        self._open = open_session
        self._last: SessionPort | None = None
        self._spoke = False
        self._added: tuple[Path, ...] = ()

    def add_folder(self, folder: Path) -> None:
        """One more folder to work in, in every session that is opened from now on."""
        self._added = (*self._added, folder)

    @property
    def spoke(self) -> bool:
        """Whether there was a conversation that can be continued."""
        return self._spoke or (self._last is not None and self._last.view.totals.turns > 0)

    async def open(self, options: LaunchOptions) -> SessionPort:
        """The session that the options ask for.

        Raises:
            StartError: it can't start.
        """
        session = await self._open(replace(options, add_dirs=(*options.add_dirs, *self._added)))
        self._spoke = self.spoke
        self._last = session
        return session

    async def first(self) -> SessionPort:
        """The session of the start."""
        return await self.open(self._options)

    async def next(self) -> SessionPort:
        """A new session in place of the newest, with its model, effort and mode: without the first message of the
        start, and not where another session was continued."""
        fresh = replace(self._options, prompt="", resume=None, continue_newest=False, pick_session=False)
        if self._last is None:
            return await self.open(fresh)
        view = self._last.view
        model, effort = view.model, view.effort
        fresh = replace(fresh, mode=view.mode)
        if model is None:
            return await self.open(fresh)
        address = _kept(self._options.base_url, model)
        session = await self.open(replace(fresh, model=model.ref, address=model.address, base_url=address))
        if session.view.effort != effort:
            from swecli.core.protocol.commands import SetEffort

            session.send(SetEffort(effort))
        return session


def _kept(given: str | None, model: ModelInfo) -> str | None:
    """``--base-url``, as far as the model is asked there: it may hold a password, which no session knows."""
    from swecli.core.llm.base_url import normalise, origin_of

    same = given and model.address and origin_of(normalise(given, "openai-chat")) == origin_of(model.address)
    return given if same else None
