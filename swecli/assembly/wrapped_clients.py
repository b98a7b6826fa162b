"""Model clients in place of a session's own, or around them."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from swecli.core.engine.model_access import WindowKnowledge
from swecli.core.engine.services import Services
from swecli.core.llm.addresses import is_local
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.types import ModelClient, ProviderError
from swecli.core.protocol.messages import Origin


def with_clients(
    services: Services, change: Callable[[ModelClient], ModelClient], *, only_local: bool = False
) -> Services:
    """Services with changed clients. ``only_local``: no other server is asked about its models."""
    windows = _WindowsBehind(services.access.windows, only_local)

    def make(model: str) -> ModelClient:
        client = services.access.make_client(model)
        windows.clients[changed := change(client)] = client
        return changed

    return replace(services, access=replace(services.access, make_client=make, windows=windows))


class _WindowsBehind:
    """What is known of the windows of changed clients: a request depends on it. ``only_local``: no other server is
    asked."""

    def __init__(self, windows: WindowKnowledge, only_local: bool) -> None:
        self._windows = windows
        self._only_local = only_local
        self.clients: WeakKeyDictionary[ModelClient, ModelClient] = WeakKeyDictionary()

    def may_tell(self, client: ModelClient) -> bool:
        behind = self.clients[client]
        local = isinstance(behind, HttpModelClient) and is_local(behind.config.base_url)
        return (local or not self._only_local) and self._windows.may_tell(behind)

    async def ask(self, client: ModelClient) -> bool:
        return self.may_tell(client) and await self._windows.ask(self.clients[client])

    def doubt(self, client: ModelClient) -> None:
        self._windows.doubt(self.clients[client])

    def recall(self, client: ModelClient, window: int, origin: Origin) -> None:
        self._windows.recall(self.clients[client], window, origin)

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        return await self._windows.learn(self.clients[client], error)
