"""Warming: the beginning of the next request is sent ahead while the user reads and types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.prompt import PromptTexts
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import Finished, ModelInfo, ModelRequest, StreamEvent, StreamNotice
from swecli.core.protocol.commands import Rewind, SetModel, Submit
from swecli.core.protocol.events import Notice, SideAnswered, StepEnded, TurnEnded
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart, Usage
from tests.core.engine.support import bench, until

SCRIPT = "\n".join(f'[[step]]\ntext = "{text}"' for text in ("one", "two", "three"))


class Server:
    """A scripted model whose server keeps what it has evaluated. ``ahead`` are the requests for its cache; it answers
    them once ``ready`` is set."""

    def __init__(self, *, warms: bool = True, prewarms: bool = False, script: str = SCRIPT) -> None:
        self.scripted = ScriptedModel(parse_script(script))
        self.info: ModelInfo = replace(self.scripted.info, warms=warms, prewarms=prewarms)
        self.ahead: list[ModelRequest] = []
        self.aborted = 0
        self.ready = asyncio.Event()
        self.drops_tools = False
        """Whether the next answer shows that the server leaves the tools out of the prompt."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.max_output_tokens != 1 and not request.prewarm:
            async for event in self.scripted.stream(request):
                yield event
            return
        self.ahead.append(request)
        try:
            await self.ready.wait()
        except (asyncio.CancelledError, GeneratorExit):
            self.aborted += 1
            raise
        usage = Usage(input_total=None if self.drops_tools else 5_000, output_total=1)
        if self.drops_tools:
            self.drops_tools, self.info = False, replace(self.info, tools=False)
            yield StreamNotice("no tools")
        response = Response(Origin("", "", self.info.name), Stop("length"), usage)
        yield Finished(Message("assistant", (TextPart("."),), "warm", response=response))

    async def close(self) -> None:
        await self.scripted.close()


def warm_bench(server: Server, folder: Path, **changes: Any) -> Any:
    return bench("", folder, make_client=lambda _: server, **changes)


def begins(real: ModelRequest, ahead: ModelRequest, said: str) -> bool:
    """Whether a request is one sent ahead up to the user's words, and new from there on."""
    same = (real.system, real.tools) == (ahead.system, ahead.tools)
    place = len(ahead.messages) - 1
    before, words = "".join(texts(ahead.messages[place])).removesuffix("."), "".join(texts(real.messages[place]))
    return same and real.messages[:place] == ahead.messages[:place] and words == before + said


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


async def test_the_beginning_is_sent_ahead_and_aborted_by_a_message(tmp_path: Path) -> None:
    server = Server()
    async with warm_bench(server, tmp_path) as b:
        await until(lambda: len(server.ahead) == 1, "the beginning")
        b.send(Submit("hi"))
        await until(lambda: server.aborted == 1, "the end of the warming")
        await b.idle()
        assert [body.outcome for body in b.bodies(TurnEnded)] == ["done"]
        assert begins(server.scripted.requests[0], server.ahead[0], "hi")
        assert len(server.ahead) == 1, "an answer leaves the server's cache as it is"


async def test_after_an_edit_the_conversation_is_sent_ahead_again(tmp_path: Path) -> None:
    server = Server()
    server.ready.set()
    async with warm_bench(server, tmp_path) as b:
        await b.say("first")
        await b.say("second")
        before = len(server.ahead)
        user = [message.id for message in b.session.view.messages if message.role == "user"]
        b.send(Rewind(user[-1]))
        await until(lambda: len(server.ahead) > before, "the shorter conversation")
        await b.say("other")
        assert begins(server.scripted.requests[-1], server.ahead[-1], "other")
        assert len(server.ahead[-1].messages) > 1
        assert len(b.bodies(StepEnded)) == 3
        assert b.bodies(SideAnswered) == [], "it costs nothing and counts nowhere"


async def test_a_turn_with_thoughts_is_sent_ahead_again(tmp_path: Path) -> None:
    """Chat templates leave thoughts out once a message of the user follows: all behind them is then new."""
    server = Server(script='[[step]]\nreasoning = "hm"\ntext = "one"\n' + SCRIPT)
    server.ready.set()
    async with warm_bench(server, tmp_path) as b:
        await until(lambda: len(server.ahead) == 1, "the beginning")
        await b.say("first")
        await until(lambda: len(server.ahead) == 2, "the conversation without its thoughts")
        await b.say("second")
        assert begins(server.scripted.requests[-1], server.ahead[-1], "second")
        assert len(server.ahead[-1].messages) == 3
        assert len(server.ahead) == 2, "an answer without thoughts leaves the server's cache as it is"


async def test_the_servers_count_is_the_measure_before_the_first_message(tmp_path: Path) -> None:
    server = Server()
    server.ready.set()
    async with warm_bench(server, tmp_path) as b:
        await until(lambda: b.session.view.budget.source == "measured", "the measure")
        assert 4_900 <= b.session.view.budget.used <= 5_000


async def test_a_server_that_drops_the_tools_is_sent_the_beginning_with_their_description(tmp_path: Path) -> None:
    server = Server()
    server.drops_tools = True
    server.ready.set()
    async with warm_bench(server, tmp_path) as b:
        await until(lambda: b.session.view.budget.source == "measured", "the measure")
        assert len(server.ahead) == 2, "the first had no tools, so the next message would not begin with it"
        assert b.session.view.budget.used >= 4_900, "only the second says how large a request is"
        assert [notice.text for notice in b.bodies(Notice)] == ["no tools"]


async def test_a_server_without_a_cache_of_its_own_gets_no_request_ahead(tmp_path: Path) -> None:
    server = Server(warms=False)
    async with warm_bench(server, tmp_path) as b:
        await b.say("first")
        assert server.ahead == []


async def test_a_run_without_a_user_sends_its_message_at_once(tmp_path: Path) -> None:
    server = Server()
    context = ContextManager((), texts=PromptTexts(headless=True))
    async with warm_bench(server, tmp_path, context=context) as b:
        await b.say("first")
        assert server.ahead == []


async def test_the_end_of_a_session_leaves_no_request_behind(tmp_path: Path) -> None:
    server = Server()
    async with warm_bench(server, tmp_path):
        await until(lambda: len(server.ahead) == 1, "the beginning")
    assert server.aborted == 1


async def test_a_hosted_provider_fills_its_cache_for_a_conversation_and_the_price_is_told(tmp_path: Path) -> None:
    """Never for an empty one, which it could not keep, nor after an answer, with which the cache is full."""
    server = Server(warms=False, prewarms=True)
    server.ready.set()
    async with warm_bench(server, tmp_path, price=lambda _model, _usage: "0.0125") as b:
        await b.say("first")
        await b.say("second")
        assert server.ahead == []
        b.send(SetModel("fake/other"))
        await until(lambda: bool(b.bodies(SideAnswered)), "the filled cache")
        [filled] = [body for body in b.bodies(SideAnswered) if body.purpose == "prewarm"]
        assert filled.cost == "0.0125"
        assert any("5,000 tokens" in notice.text and "$0.0125" in notice.text for notice in b.bodies(Notice))
        await b.say("third")
        [ahead] = server.ahead
        real = server.scripted.requests[-1]
        assert real.messages[: len(ahead.messages)] == ahead.messages


async def test_a_hosted_provider_is_asked_only_by_choice(tmp_path: Path) -> None:
    server = Server(warms=False)
    async with warm_bench(server, tmp_path) as b:
        await b.say("first")
        b.send(SetModel("fake/other"))
        await b.say("second")
        assert server.ahead == []


async def test_a_resumed_conversation_is_filled_in_before_its_next_message(tmp_path: Path) -> None:
    server = Server(warms=False, prewarms=True)
    server.ready.set()
    async with warm_bench(server, tmp_path) as b:
        await b.say("first")
        facts = list(b.facts)
    assert server.ahead == []
    async with warm_bench(server, tmp_path, history=facts) as b:
        await until(lambda: len(server.ahead) == 1, "the filled cache")
        await b.say("second")
        [ahead] = server.ahead
        assert server.scripted.requests[-1].messages[: len(ahead.messages)] == ahead.messages
