"""Tells of a prompt that the provider should have had in its cache and did not."""

from __future__ import annotations

from swecli.core.context_management.context_manager import PreparedRequest
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import CacheBreak
from swecli.core.protocol.messages import Message


def report_cache_miss(
    services: Services, recorder: Recorder, info: ModelInfo, prepared: PreparedRequest, message: Message, at: float
) -> None:
    """Compare an answered request with the one before it and emit the miss, if it was one.

    ``at`` is when the request was sent, in Unix seconds. A switch of the model was told of when it was made.
    """
    usage = message.response.usage if message.response else None
    miss = services.context.cache_miss(prepared.request, usage, info, recorder.ledger.view, at)
    if miss is not None and miss.kind != "model":
        recorder.emit(CacheBreak(miss.cause, miss.tokens))
