"""The models that lists on screen offer: the current one, those that the servers name, and known names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from swecli.tui.main_screen import MainScreen
from swecli.tui.program import Program
from swecli.tui.session_controller import SessionController
from swecli.tui.status_bar import LOOKING

if TYPE_CHECKING:
    from swecli.core.llm.offers import ModelOffer


class KnownModels:
    """Remembers what the servers answered."""

    def __init__(
        self, screen: MainScreen, session: SessionController, program: Program, clock: Callable[[], float]
    ) -> None:
        self._screen = screen
        self._session = session
        self._program = program
        self._clock = clock
        self._offered: tuple[object, float, Sequence[ModelOffer]] = (None, 0.0, ())
        """The session whose servers were asked for their models, when, and their answers."""

    @property
    def current(self) -> str | None:
        view = self._session.view
        return view.model.ref if view is not None and view.model is not None else None

    @property
    def last(self) -> Sequence[str]:
        """Usable models of the newest answers, without a wait."""
        of, _, offers = self._offered
        return tuple(self.usable((), offers if of is self._session.port else ()))

    async def find(self, names: Sequence[str] | None = None, within: float = 0) -> dict[str, ModelOffer | None]:
        """Usable models; ``names`` are those of ``names()`` if they have been read. May take a moment."""
        with self._screen.activity.beside(LOOKING):
            names = await self.names() if names is None else names
            offers = await self.offers(within)
        return self.usable(names, offers)

    async def names(self) -> Sequence[str]:
        """Names of models known without asking a server."""
        return await asyncio.to_thread(self._program.models)

    async def offers(self, within: float = 0) -> Sequence[ModelOffer]:
        """What the servers offer. If all answered less than ``within`` seconds ago, they are not asked again."""
        port = self._session.port
        of, at, offers = self._offered
        if port is not of or not 0 <= self._clock() - at < within:
            offers = await port.offers.find() if port is not None else ()
            silent = port is None or port.offers.unlisted
            self._offered = (None, 0.0, ()) if silent else (port, self._clock(), offers)
        return offers

    def usable(self, names: Sequence[str], offers: Sequence[ModelOffer]) -> dict[str, ModelOffer | None]:
        """The current model first, then those of the servers, then known names."""
        usable, current = {offer.ref: offer for offer in offers if offer.usable}, self.current
        return {ref: usable.get(ref) for ref in (*([current] if current else ()), *usable, *names)}
