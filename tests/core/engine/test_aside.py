"""A side question: the model sees the conversation, which stays as it is."""

from __future__ import annotations

from pathlib import Path

from swecli.core.protocol.events import SideAnswered
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
