"""A model behind a prompt cache with a provider's rules, for tests and benchmarks that measure hits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from msgspec import structs

from swecli.core.llm.types import Finished, ModelClient, ModelInfo, ModelRequest, StreamEvent, UsageUpdate
from swecli.core.protocol.messages import Message, Usage
from swecli.features.lab.prefix_cache import Charge, PrefixCache


@dataclass
class CachedModel:
    """A model client in front of another one, which reports usage as the cache charged it.

    ``output`` counts the tokens of an answer. ``charges`` has one entry for each request.
    """

    inner: ModelClient
    cache: PrefixCache
    output: Callable[[Message], int] = lambda message: 50
    charges: list[Charge] = field(default_factory=list)

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        charge = self.cache.charge(request, self.info.ref)
        self.charges.append(charge)
        async for event in self.inner.stream(request):
            match event:
                case UsageUpdate():
                    continue
                case Finished(message=message) if message.response is not None:
                    usage = Usage(
                        input_total=charge.total,
                        cache_read=charge.read,
                        cache_write=charge.written,
                        output_total=self.output(message),
                    )
                    yield UsageUpdate(usage)
                    yield Finished(structs.replace(message, response=structs.replace(message.response, usage=usage)))
                case _:
                    yield event

    async def close(self) -> None:
        await self.inner.close()
