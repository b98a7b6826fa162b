"""No request leaves that is too large for the model it goes to, whatever it is for."""

from __future__ import annotations

import ast
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import swecli
from swecli.core.context_management.compaction.summary import TOO_SMALL, Summarizer
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.llm.protocols.anthropic import build_request
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import Failed, Finished, ModelRequest, StreamEvent, SystemBlock, TextDelta
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart

ANSWER = '[[step]]\ntext = "## Goal\\nA summary that is long enough to count as one."\n'


def model(window: int) -> ScriptedModel:
    return ScriptedModel(parse_script(f"window = {window}\n{ANSWER * 6}"))


def request(*texts: str) -> ModelRequest:
    messages = tuple(
        Message("assistant" if number % 2 else "user", (TextPart(text),), f"m{number}")
        for number, text in enumerate(texts)
    )
    return ModelRequest((SystemBlock("s"),), (), messages, max_output_tokens=4_000)


async def sent(gateway: RequestGateway, client: ScriptedModel, wanted: ModelRequest) -> Finished | Failed:
    events = [event async for event in gateway.send(client, wanted)]
    assert isinstance(events[-1], Finished | Failed)
    return events[-1]


async def no_sleep(_seconds: float) -> None:
    return None


async def test_what_is_too_large_is_not_sent_and_leaves_the_measure_of_the_conversation_alone() -> None:
    context, client = ContextManager(()), model(26_000)
    messages = request("hello").messages
    before = context.prepare(messages, info=client.info).budget
    refused = await sent(RequestGateway(context), client, request("word " * 200_000))
    assert isinstance(refused, Failed)
    assert refused.error.kind == "context_overflow"
    assert "was not sent" in refused.error.message
    assert client.requests == []
    assert context.prepare(messages, info=client.info).budget == before
    assert isinstance(await sent(RequestGateway(context), client, request("hello")), Finished)


async def test_the_longest_answer_is_what_the_window_has_left() -> None:
    client = model(8_000)
    await sent(RequestGateway(ContextManager(())), client, request("word " * 4_000))
    assert 0 < (client.requests[0].max_output_tokens or 0) < 4_000


async def test_what_is_left_of_the_cap_holds_for_everything() -> None:
    client = model(26_000)
    refused = await sent(RequestGateway(ContextManager(()), lambda: 10), client, request("word " * 100))
    assert isinstance(refused, Failed)
    assert "10 are left of the cap" in refused.error.message
    assert client.requests == []
    assert isinstance(
        await sent(RequestGateway(ContextManager(()), lambda: 10_000), client, request("word " * 100)), Finished
    )


@pytest.mark.parametrize("window", [4_000, 26_000])
@pytest.mark.parametrize("other", [None, 3_000])
@pytest.mark.parametrize("word", ["word ", "漢字", "\x00\u2603"])
async def test_summaries_of_a_conversation_beyond_the_window(window: int, other: int | None, word: str) -> None:
    client, beside = model(window), model(other) if other else None
    context = ContextManager(())
    summarizer = Summarizer(RequestGateway(context, sleep=no_sleep), client, None, beside)
    wanted = request("hello", "hi", word * 100_000, "so much", "go on")
    summary = await summarizer.summarize(wanted, "", 300, window * 4 // 5)
    asked = beside or client
    assert summary.text.startswith("## Goal")
    assert asked.requests
    for one in asked.requests:
        assert not await RequestGateway(context).too_long(one, asked.info)
    assert beside is None or client.requests == []


@pytest.mark.parametrize("usable", [True, False])
async def test_a_refused_summary_is_told_only_if_none_is_usable(usable: bool) -> None:
    refused = '[[step]]\ntext = "No."\n'
    script = refused + (ANSWER if usable else refused * 5)
    client = ScriptedModel(parse_script(f"window = 26000\n{script}"))
    summary = await Summarizer(RequestGateway(ContextManager(()), sleep=no_sleep), client, None).summarize(
        request("hello", "hi", "go on"), "", 300, 20_000
    )
    assert len(client.requests) >= 2
    assert bool(summary.text) == usable
    assert summary.notes == (() if usable else ('no usable summary: it was only "No."',))


@pytest.mark.parametrize(("asked", "waits"), [(None, [1.0]), (20, [20.0]), (600, [])])
async def test_a_summary_waits_as_long_as_its_server_asks(asked: float | None, waits: list[float]) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    after = "" if asked is None else f", retry_after = {asked}"
    limited = f'[[step]]\nfault = {{ kind = "rate_limit"{after} }}\n'
    client = ScriptedModel(parse_script(f"window = 26000\n{limited}{ANSWER}"))
    summary = await Summarizer(RequestGateway(ContextManager(()), sleep=sleep), client, None).summarize(
        request("hello", "hi", "go on"), "", 300, 20_000
    )
    assert waited == waits
    assert bool(summary.text) == bool(waits)


async def test_without_room_for_any_part_no_model_is_asked() -> None:
    client = model(300)
    summary = await Summarizer(RequestGateway(ContextManager(()), sleep=no_sleep), client, None).summarize(
        request("word " * 1_000), "", 200, 240
    )
    assert summary.text == ""
    assert summary.notes == (TOO_SMALL,)
    assert client.requests == []


def test_nothing_else_sends_requests() -> None:
    root = Path(swecli.__file__).parent
    senders = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if ".stream(" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stream"
        if len(node.args) == 1  # httpx takes a method and an address
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "self")  # the library's own
    }
    # A fleet's gate stands behind the gateway, as a client that passes requests on.
    assert senders == {"core/context_management/gateway.py", "fleet/gate.py"}


async def test_the_usual_limit_of_an_answer_fits_the_window_as_well() -> None:
    """A protocol that needs a limit asks for a usual one where nothing is known of the model."""
    config = resolve("anthropic/some-new-model", {"ANTHROPIC_API_KEY": "k"}, overrides=Overrides(window=12_000))
    assert config.info.max_output is None
    manager = ContextManager(())
    messages = (Message("user", (TextPart("word " * 6_000),), "u0"),)
    prepared = manager.prepare(messages, info=config.info)
    most = build_request(prepared.request, config.target).body["max_tokens"]
    assert isinstance(most, int)
    assert prepared.budget.upper + most <= 12_000
    roomy = replace(config.info, window=64_000)
    short = manager.prepare((Message("user", (TextPart("hello"),), "u0"),), info=roomy)
    assert build_request(short.request, config.target).body["max_tokens"] == config.info.usual_output


async def test_the_size_that_a_rejection_states_counts_from_then_on() -> None:
    rejected = '[[step]]\nfault = { kind = "overflow", tokens = 10500, window = 12000 }\n'
    context, client = ContextManager(()), ScriptedModel(parse_script(f"window = 12000\n{rejected}{ANSWER * 2}"))
    gateway = RequestGateway(context)
    wanted = context.prepare(request("word " * 6_000).messages, info=client.info)
    before = context.monitor.ratio(client.info)
    assert isinstance(await sent(gateway, client, wanted.request), Failed)
    # The model has a vocabulary of its own, and its server reports no usage.
    assert context.measure(request("word " * 6_000).messages, client.info).used == pytest.approx(10_500, rel=0.05)
    assert context.monitor.ratio(client.info) > 1.25 * before
    assert await gateway.too_long(replace(wanted.request, max_output_tokens=4_000), client.info, likely=True)
    assert len(client.requests) == 1


@pytest.mark.parametrize("stated", [100, 9_000_000])
async def test_a_rejection_that_states_an_impossible_size_teaches_nothing(stated: int) -> None:
    rejected = f'[[step]]\nfault = {{ kind = "overflow", tokens = {stated}, window = 12000 }}\n'
    context, client = ContextManager(()), ScriptedModel(parse_script(f"window = 12000\n{rejected}"))
    wanted = context.prepare(request("word " * 6_000).messages, info=client.info)
    before = context.monitor.ratio(client.info)
    assert isinstance(await sent(RequestGateway(context), client, wanted.request), Failed)
    assert context.monitor.ratio(client.info) == before
    assert context.prepare(wanted.request.messages, info=client.info).budget == wanted.budget


async def test_a_summary_of_a_few_words_is_not_asked_for() -> None:
    client = model(8_192)
    summary = await Summarizer(RequestGateway(ContextManager(()), sleep=no_sleep), client, None).summarize(
        request("hello", "hi", "go on"), "", 60, 1_536
    )
    assert (summary.text, client.requests) == ("", [])
    assert "60 tokens" in summary.notes[0]


class Babbling(ScriptedModel):
    """Writes one piece a second, on the clock of the test; without an end if ``pieces`` is None."""

    def __init__(self, piece: str, pieces: int | None) -> None:
        super().__init__(parse_script(f"window = 26000\n{ANSWER}"))
        self.piece, self.most, self.now, self.written = piece, pieces, 0.0, 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        for number in itertools.count() if self.most is None else range(self.most):
            self.now += 1.0
            self.written += 1
            yield TextDelta(0, self.piece.format(number=number))
        text = TextPart("".join(self.piece.format(number=number) for number in range(self.most or 0)))
        yield Finished(Message("assistant", (text,), "a", Response(Origin("", "", "m"), Stop("length"))))


@pytest.mark.parametrize(
    ("piece", "pieces", "reason", "calls", "most"),
    [
        ("and so on, ", None, "it repeated itself without end", 1, 70),
        ("Item {number} is open. ", None, "it was not complete after 90 s", 1, 92),
        ("Item {number} is open. ", 70, "it was cut off", 1, 70),
        ("Item {number} is open. ", 25, "it was cut off", 3, 75),
    ],
)
async def test_a_summary_without_end_is_given_up(
    piece: str, pieces: int | None, reason: str, calls: int, most: int
) -> None:
    """It is not asked for again if it took a minute; the record takes its place."""
    client = Babbling(piece, pieces)
    summarizer = Summarizer(
        RequestGateway(ContextManager(()), sleep=no_sleep), client, None, monotonic=lambda: client.now
    )
    summary = await summarizer.summarize(request("hello", "hi", "go on"), "", 300, 20_000)
    assert summary.text == ""
    assert summary.notes == (f"no usable summary: {reason}",)
    assert len(client.requests) == calls
    assert client.written <= most


@pytest.mark.parametrize(("speed", "asked"), [(50, 1_000), (10, 600), (2, 120), (1, None)])
async def test_a_summary_is_as_long_as_the_model_can_write_in_a_minute(speed: int, asked: int | None) -> None:
    client, context = model(200_000), ContextManager(())
    context.monitor.wrote(client.info, 19, 0.1)  # too short an answer to tell
    context.monitor.wrote(client.info, speed * 40, 40.0)
    summary = await Summarizer(RequestGateway(context, sleep=no_sleep), client, None).summarize(
        request("hello", "hi", "go on"), "", 1_000, 20_000
    )
    assert [one.max_output_tokens for one in client.requests] == ([] if asked is None else [asked])
    said = "no summary was requested: the model writes only 60 tokens a minute"
    assert summary.notes == (() if asked else (said,))
