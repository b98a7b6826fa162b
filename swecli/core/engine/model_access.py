"""How a session reaches models."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelClient, ModelInfo, ProviderError
from swecli.core.protocol.events import Price
from swecli.core.protocol.messages import Origin, Usage

ModelFactory = Callable[[str], ModelClient]
"""Factory of a client for ``provider/name`` or an alias. Raises ``ModelUnavailable`` with a remedy."""


class ModelUnavailable(Exception):
    """No client can be created: unknown provider or missing key. The message says what to do."""


class WindowKnowledge(Protocol):
    """Sources of a model's context window while a session runs. Results are in the client's ``info`` when a method
    returns."""

    def may_tell(self, client: ModelClient) -> bool:
        """Whether asking the model's server may yield anything."""
        ...

    async def ask(self, client: ModelClient) -> bool:
        """Ask the model's server, if that may yield anything. True if more is known than before."""
        ...

    def doubt(self, client: ModelClient) -> None:
        """The server was away: it may be back with another model or window, so asking it may yield something."""
        ...

    def recall(self, client: ModelClient, window: int, origin: Origin) -> None:
        """Use a window that the server of ``origin`` reported in an earlier run until it is asked again, unless a
        better one is known."""
        ...

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        """Adopt the numbers of an error. Returns a sentence for the user, empty if nothing is new."""
        ...


class NoWindowKnowledge:
    """A source without information."""

    def may_tell(self, client: ModelClient) -> bool:
        return False

    async def ask(self, client: ModelClient) -> bool:
        return False

    def doubt(self, client: ModelClient) -> None:
        pass

    def recall(self, client: ModelClient, window: int, origin: Origin) -> None:
        """Ignore the window."""

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        return ""


async def no_offers() -> Sequence[ModelOffer]:
    return ()


async def no_servers() -> Sequence[str]:
    return ()


def no_price(model: str, usage: Usage) -> str | None:
    """Price of a response without a price list: the provider's own report, else None."""
    return str(usage.cost) if usage.cost is not None else None


class ModelAccess(Struct, frozen=True):
    """What a session and its subagents know of models and their servers."""

    make_client: ModelFactory
    price: Callable[[str, Usage], str | None] = no_price
    """Price of a model's answer by its usage, in US dollars as text; None if it is unknown."""
    windows: WindowKnowledge = field(default_factory=NoWindowKnowledge)
    effort: Callable[[str], str | None] = lambda model: None
    """The user's reasoning effort for a model (``provider/name``); None = the provider's default."""
    renewed: Callable[[ModelClient], ModelClient | None] = lambda client: None
    """A client with the key that the user stored since this one was made; None if its key is still the same."""
    reached: set[str] = field(default_factory=set[str])
    """Model servers that answered in this run, with whatever result."""
    answered: set[str] = field(default_factory=set[str])
    """Those of them that gave a model's answer."""


class ModelCatalog(Struct, frozen=True):
    """The models that the user can choose from."""

    offers: Callable[[], Awaitable[Sequence[ModelOffer]]] = no_offers
    unlisted: Callable[[], Sequence[str]] = lambda: ()
    """Sentences about servers that listed no models in the last call of ``offers``."""
    omitted: Callable[[], int] = lambda: 0
    """Number of models that the last call of ``offers`` left out, because they do not chat."""
    nearby: Callable[[], Awaitable[Sequence[str]]] = no_servers
    """Addresses on this machine at which a model server may answer now. Nothing is sent to them."""
    keep_price: Callable[[str, Price], str] | None = None
    """Writes the price of a model (``provider/name``) into the user's settings, effective at once. Returns the file;
    raises ValueError. None: prices can't be set here."""


class Connection:
    """Clients of the answering model and of models for side work. A new model replaces the previous one, whose client
    is closed in the background."""

    def __init__(self, make_client: ModelFactory, side_models: Mapping[str, str] | None = None) -> None:
        self._make_client = make_client
        self._side_models = dict(side_models or {})
        self._side: dict[str, ModelClient] = {}
        self._replaced: list[ModelClient] = []
        """Replaced side clients, one of which may still be answering."""
        self._closing: set[asyncio.Task[None]] = set()
        self._looked_at: dict[str, ModelClient] = {}
        """Clients of models that the user may choose, by the user's names for them."""
        self.client: ModelClient | None = None
        self.name = ""
        """The user's name for its model."""

    def connect(self, model: str) -> str | None:
        """Switch to ``provider/name``. Returns what is wrong, or None on success; after a failure the previous model
        stays."""
        try:
            client = self._make_client(model)
        except ModelUnavailable as error:
            return str(error)
        self.use(client)
        self.name = model
        return None

    def trouble(self, model: str) -> str:
        """Why a model is not available, as a sentence; empty if it is."""
        try:
            self._looked_at[model] = self._make_client(model)
        except ModelUnavailable as error:
            return str(error)
        return ""

    def look_at(self, model: str) -> ModelInfo | None:
        """Data of a model that could answer; None if it is not available."""
        if model not in self._looked_at and self.trouble(model):
            return None
        return self._looked_at[model].info

    def use(self, client: ModelClient) -> None:
        """Answer with this client from now on."""
        previous, self.client = self.client, client
        if previous is not None:
            task = asyncio.create_task(previous.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def beside(self, work: str) -> ModelClient | None:
        """Client for side work of this name, if it has a model of its own. It stays open for the session.

        Raises:
            ModelUnavailable: its client can't be created.
        """
        model = self._side_models.get(work)
        if model is not None and work not in self._side:
            self._side[work] = self._make_client(model)
        return self._side.get(work)

    def use_beside(self, side_models: Mapping[str, str]) -> None:
        """Switch to these models for side work."""
        for work in [work for work in self._side if side_models.get(work) != self._side_models.get(work)]:
            self._replaced.append(self._side.pop(work))
        self._side_models = dict(side_models)

    async def close(self) -> None:
        beside = (*self._side.values(), *self._looked_at.values())
        clients = [*beside, *self._replaced, *([self.client] if self.client is not None else [])]
        await asyncio.gather(*(client.close() for client in clients), *self._closing, return_exceptions=True)
