"""Following a model's stream so that leaving it ends the request."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from swecli.core.llm.types import ModelClient, ModelRequest, StreamEvent


async def stream_events(client: ModelClient, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
    """The events of one request. Closing this generator (``contextlib.aclosing``) aborts the request at once."""
    stream = client.stream(request)
    try:
        async for event in stream:
            yield event
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
