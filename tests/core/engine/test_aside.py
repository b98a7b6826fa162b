"""A side question: the model sees the conversation, which stays as it is."""

from __future__ import annotations

from pathlib import Path

from swecli.core.engine.settings import TurnLimits
from swecli.core.protocol.events import Notice, SideAnswered
from tests.core.engine.support import bench, until

SCRIPT = '[[step]]\ntext = "The first answer."\n[[step]]\ntext = "Four."\n[[step]]\ntext = "The next answer."'


async def test_neither_question_nor_answer_joins_the_conversation(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path) as b:
        await b.say("Hello.")
        before = tuple(b.session.view.messages)
        assert await b.session.questions.ask_aside("What is 2 + 2?") == "Four."
        assert tuple(b.session.view.messages) == before
        first, aside = b.model.requests[0], b.model.requests[1]
        assert (aside.system, aside.tools) == (first.system, first.tools)
        assert "The first answer." in str(aside.messages)
        assert aside.messages[-1].text.endswith("What is 2 + 2?")
        await until(lambda: len(b.bodies(SideAnswered)) == 1)
        await b.say("Go on.")
        assert "2 + 2" not in str(b.model.requests[2].messages)


async def test_without_a_model_it_says_so(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, name="") as b:
        assert await b.session.questions.ask_aside("What?") is None
        await until(lambda: any("No model is connected" in str(event.body) for event in b.events))


OVERLOADED = '[[step]]\nfault = { kind = "overloaded" }\n'


async def test_a_passing_failure_of_its_server_is_outlived(tmp_path: Path) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    limited = '[[step]]\nfault = { kind = "rate_limit", retry_after = 7 }\n'
    cut = '[[step]]\ntext = "half an answer that is cut"\nfault = { kind = "network", after = 4 }\n'
    script = f'{limited}{cut}{OVERLOADED}[[step]]\ntext = "Four."'
    async with bench(script, tmp_path, sleep=sleep, jitter=lambda: 1.0) as b:
        assert await b.session.questions.ask_aside("What is 2 + 2?") == "Four."
        assert waits == [7.0, 1.0, 2.0]
        assert b.bodies(Notice) == []


async def test_a_lasting_failure_names_the_model_and_a_remedy(tmp_path: Path) -> None:
    async def sleep(_seconds: float) -> None:
        return None

    async with bench(OVERLOADED * 9, tmp_path, sleep=sleep) as b:
        assert await b.session.questions.ask_aside("What is 2 + 2?") is None
        await until(lambda: len(b.bodies(Notice)) == 1)
        (told,) = b.bodies(Notice)
        assert told.text.startswith("scripted/")
        assert "could not answer: the model is overloaded" in told.text
        assert len(b.model.requests) == 1 + TurnLimits().max_retries
