"""The clients of a session's models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from swecli.core.engine.services import ModelFactory, ModelUnavailable
from swecli.core.llm.types import ModelClient


class Connection:
    """Holds the client of the model that answers, and those of models for work beside the conversation. A new
    model replaces the one before, whose client is closed in the background."""

    def __init__(self, make_client: ModelFactory, side_models: Mapping[str, str] | None = None) -> None:
        self._make_client = make_client
        self._side_models = dict(side_models or {})
        self._side: dict[str, ModelClient] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.client: ModelClient | None = None

    def connect(self, model: str) -> str | None:
        """Use ``provider/name`` from now on. Returns what is wrong, or None when it worked; the previous
        model stays when it did not."""
        try:
            client = self._make_client(model)
        except ModelUnavailable as error:
            return str(error)
        previous, self.client = self.client, client
        if previous is not None:
            task = asyncio.create_task(previous.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return None

    def beside(self, work: str) -> ModelClient | None:
        """The client for work of this name, if it has a model of its own. It stays open for the session.

        Raises:
            ModelUnavailable: it has one, and no client can be made.
        """
        model = self._side_models.get(work)
        if model is not None and work not in self._side:
            self._side[work] = self._make_client(model)
        return self._side.get(work)

    async def close(self) -> None:
        """Release all connections."""
        clients = [*self._side.values(), *([self.client] if self.client is not None else [])]
        await asyncio.gather(*(client.close() for client in clients), *self._closing, return_exceptions=True)
