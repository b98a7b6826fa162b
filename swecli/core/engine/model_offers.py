"""The models that a user can choose from, with their windows and prices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from swecli.core.engine.model_access import Connection, ModelAccess, ModelCatalog
from swecli.core.engine.recorder import Recorder
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import Price, PriceSet
from swecli.core.protocol.messages import Usage


class ModelOffers:
    """What servers and catalogue offer to a session, with the figures that its meter uses."""

    def __init__(self, access: ModelAccess, catalog: ModelCatalog, recorder: Recorder, connection: Connection) -> None:
        self._access = access
        self._catalog = catalog
        self._recorder = recorder
        self._connection = connection

    async def find(self) -> Sequence[ModelOffer]:
        """Models to choose from, the likeliest first. May take a moment, because it asks the user's servers."""
        model = self.current
        return [
            replace(offer, window=model.window, assumed=model.window_source == "assumed", tools=model.tools)
            if model is not None and offer.ref == model.ref
            else offer
            for offer in await self._catalog.offers()
        ]

    async def nearby(self) -> Sequence[str]:
        """Addresses on this machine at which a model server may answer now; they change when one starts or ends."""
        return await self._catalog.nearby()

    @property
    def unlisted(self) -> Sequence[str]:
        """Sentences about servers that listed no models in the last call of ``find``."""
        return self._catalog.unlisted()

    @property
    def omitted(self) -> int:
        """Number of models that the last call of ``find`` left out, because they do not chat."""
        return self._catalog.omitted()

    @property
    def current(self) -> ModelInfo | None:
        """The connected model, with the window that limits its requests."""
        client, budget = self._connection.client, self._recorder.state.budget
        model = client.info if client is not None else None
        if model is None or budget is None or self._recorder.state.model != model.ref:
            return model
        return replace(model, window=budget.window, window_source=budget.window_source)

    @property
    def unpriced(self) -> Sequence[str]:
        """Models (``provider/name``) whose unknown price can be set: the current one first, then others used by this
        session."""
        tallies = self._recorder.state.spending.by_model
        if self._catalog.keep_price is None:
            return ()
        found = [model for model, tally in tallies.items() if tally.unpriced]
        current = self._recorder.state.model
        probe = Usage(input_total=1, output_total=1)
        if current in found or (current and current not in tallies and self._access.price(current, probe) is None):
            return [current, *(model for model in found if model != current)]
        return found

    async def set_price(self, model: str, price: Price) -> str:
        """Store the price of a model; it also applies to this session's past answers. Returns the file.

        Raises:
            ValueError: it can't be stored; a sentence.
        """
        if self._catalog.keep_price is None:
            raise ValueError("Prices can't be set here.")
        where = await asyncio.to_thread(self._catalog.keep_price, model, price)
        self._recorder.emit(PriceSet(model, price))
        return where
