"""The model that a session talks to at the moment."""

from __future__ import annotations

import asyncio

from swecli.core.engine.services import ModelFactory, ModelUnavailable
from swecli.core.llm.types import ModelClient


class Connection:
    """Holds one client; a new model replaces it and the old client is closed in the background."""

    def __init__(self, make_client: ModelFactory) -> None:
        self._make_client = make_client
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

    async def close(self) -> None:
        """Release all connections."""
        if self.client is not None:
            await self.client.close()
        await asyncio.gather(*self._closing, return_exceptions=True)
