"""A llama.cpp server's view of a chat: what is not the common prefix with the newest prompt is evaluated."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from swecli.core.protocol.messages import StopKind, Usage
from tests.support.loopback import ProtocolName, Received
from tests.support.prompt_caches import Charged, NewestPrefix
from tests.support.wire import Answering
from tests.support.wire_openai import OpenAIChat


@dataclass
class LlamaRules:
    """``cache.charges`` has the evaluated tokens of each request as ``plain``."""

    cache: NewestPrefix = field(default_factory=NewestPrefix)
    protocol: ProtocolName = "openai"

    def wire(self) -> LlamaChat:
        return LlamaChat(self)

    def refusal(self, number: int, received: Received) -> str:
        return ""


class LlamaChat(OpenAIChat):
    """One answer, with the timings of the server."""

    def __init__(self, rules: LlamaRules) -> None:
        super().__init__()
        self._rules = rules
        self._charged = Charged(0, 0, 0)

    def opening(self, answering: Answering) -> list[bytes]:
        self._charged = self._rules.cache.charge(self.prefix(answering.body))
        return super().opening(answering)

    def closing(self, stop: StopKind, answering: Answering) -> list[bytes]:
        charged = self._charged
        output = (answering.usage.output_total if answering.usage else None) or 1
        usage = Usage(input_total=charged.total, cache_read=charged.read, output_total=output)
        told = Answering(answering.body, answering.model, answering.number, usage, answering.headers)
        timings = {"cache_n": charged.read, "prompt_n": charged.plain, "predicted_n": output}
        *events, done = super().closing(stop, told)
        last = json.loads(events[-1].removeprefix(b"data: "))
        return [*events[:-1], self._event({**last, "timings": timings}), done]
