"""The door to the models of an attempt."""

from __future__ import annotations

from collections.abc import AsyncIterator

from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelInfo,
    ModelRequest,
    ProviderError,
    Started,
    StreamEvent,
    SystemBlock,
    TextDelta,
    UsageUpdate,
)
from swecli.core.protocol.messages import Message, TextPart, Usage
from swecli.fleet.gate import Door, GatedClient
from swecli.fleet.link import Spent

REQUEST = ModelRequest((SystemBlock("x" * 4_000),), (), ())
ANSWER = Finished(Message("assistant", (TextPart("hi"),), "m1"))


class Answering:
    """A client whose answers are given."""

    def __init__(self, *events: StreamEvent) -> None:
        self.info = ModelInfo("p", "m")
        self.asked = 0
        self._events = events

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked += 1
        for event in self._events:
            yield event

    async def close(self) -> None:
        return


async def through(client: Answering, refusal: str = "") -> tuple[list[StreamEvent], list[Spent], Door]:
    spent: list[Spent] = []

    async def ask(_provider: str, _tokens: int) -> str:
        return refusal

    door = Door(ask, spent.append)
    gated = GatedClient(client, lambda _model, usage: f"{usage.total}e-6", door)
    return [event async for event in gated.stream(REQUEST)], spent, door


async def test_a_permitted_request_passes_and_its_usage_is_told() -> None:
    client = Answering(Started(), TextDelta(0, "hi"), UsageUpdate(Usage(2_000, output_total=3)), ANSWER)
    events, spent, door = await through(client)
    assert events[-1] == ANSWER
    assert len(events) == 4
    assert spent == [Spent("p", 2_003, "2003e-6")]
    assert door.refusal == ""


async def test_what_a_server_tells_beside_its_answers_passes_if_it_tells_it() -> None:
    class Telling(Answering):
        async def count_tokens(self, text: str) -> int | None:
            return len(text)

        async def busy_slots(self) -> tuple[int, int] | None:
            return (1, 2)

    async def ask(_provider: str, _tokens: int) -> str:
        return ""

    told = [
        (await gated.count_tokens("abc"), await gated.busy_slots())
        for gated in (GatedClient(client, lambda *_: None, Door(ask, print)) for client in (Telling(), Answering()))
    ]
    assert told == [(3, (1, 2)), (None, None)]


async def test_a_refused_request_is_never_sent_and_nothing_repeats_it() -> None:
    client = Answering(ANSWER)
    events, spent, door = await through(client, "used up")
    (failed,) = events
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.retryable, client.asked, spent) == ("quota", False, 0, [])
    assert door.refusal == "used up"


async def test_a_request_that_failed_costs_nothing_and_a_limit_pauses_everybody() -> None:
    for error, pause in (
        (ProviderError("rate_limit", "slow down", 429, retry_after=7.0), 7.0),
        (ProviderError("overloaded", "busy", 529), 5.0),
        (ProviderError("network", "no connection"), 0.0),
    ):
        _, spent, _ = await through(Answering(Failed(error)))
        assert spent == [Spent("p", 0, "0", pause)]


async def test_a_server_that_reports_nothing_does_not_make_a_run_endless() -> None:
    _, (unreported,), _ = await through(Answering(Started(), ANSWER))
    assert unreported.tokens == 1_000  # an estimate
    _, (lied,), _ = await through(Answering(UsageUpdate(Usage(0, output_total=0)), ANSWER))
    assert lied.tokens == 250
