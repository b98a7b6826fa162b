"""Switching models, how much they think, and models for work beside the conversation."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.commands.session import STATUS
from swecli.core.engine import models
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelClient, ProviderError
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Compact, Interrupt, SetEffort, SetModel, Submit
from swecli.core.protocol.events import (
    CacheBreak,
    CompactionCompleted,
    CompactionStarted,
    ContextMeasured,
    ModelChanged,
    Notice,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import Origin, Usage
from tests.core.engine.support import Bench, bench, until

ONE = '[[step]]\ntext = "one"\n[[step]]\ntext = "two"'


class Family:
    """Several scripted models by name; ``made`` are those that were asked for."""

    def __init__(self, **scripts: str) -> None:
        self.models = {
            name: ScriptedModel(parse_script(f'name = "{name}"\n{text}'), provider="p")
            for name, text in scripts.items()
        }
        self.made: list[str] = []

    def __call__(self, name: str) -> ModelClient:
        self.made.append(name)
        if name.removeprefix("p/") not in self.models or "/" not in name:
            raise ModelUnavailable(f"there is no {name}")
        return self.models[name.removeprefix("p/")]


def family_bench(family: Family, cwd: Path, **changes: Any) -> Any:
    return bench("", cwd, make_client=family, name="p/main", **changes)


def notices(b: Bench, topic: str = "model") -> list[str]:
    return [body.text for body in b.bodies(Notice) if body.topic == topic]


async def test_after_a_rejected_key_the_next_turn_uses_the_one_stored_since(tmp_path: Path) -> None:
    family = Family(main='[[step]]\nfault = { kind = "auth" }', other=ONE)
    stored: list[ModelClient] = []
    async with family_bench(family, tmp_path, renewed=lambda _: stored[0] if stored else None) as b:
        assert (await b.say("hi")).outcome == "error"
        stored.append(family.models["other"])
        assert (await b.say("continue")).outcome == "done"
        assert b.session.view.messages[-1].text == "one"
        family.models.clear()
        assert (await b.say("again")).outcome == "done", "not asked for again"


async def test_a_switch_in_the_middle_says_what_the_lost_cache_costs(tmp_path: Path) -> None:
    family = Family(main=ONE, other=ONE)

    def price(model: str, usage: Usage) -> str | None:
        return str(Decimal(usage.input_total or 0) / 1000) if model == "p/other" else None

    async with family_bench(family, tmp_path, price=price) as b:
        b.send(SetModel("p/main"))
        await b.say("hi")
        assert notices(b) == []
        b.send(SetModel("p/other"))
        await until(lambda: bool(notices(b)))
        assert b.session.view.budget is not None
        used = b.session.view.budget.used
        assert used > 0
        assert f"{used:,} tokens will be sent uncached (about ${used / 1000:.2f})" in notices(b)[0]
        await b.say("again")
        assert [message.text for message in family.models["other"].requests[0].messages][-2:] == ["one", "again"]
        assert [body.cause for body in b.bodies(CacheBreak)] == ["the model changed from p/main to p/other"]
        b.send(SetModel("p/main"))
        await until(lambda: len(notices(b)) == 2)
        assert "price unknown" in notices(b)[1]


async def test_a_switch_there_and_back_without_a_request_loses_nothing(tmp_path: Path) -> None:
    async with family_bench(Family(main=ONE, other=ONE), tmp_path) as b:
        await b.say("hi")
        b.send(SetModel("p/other"))
        b.send(SetModel("p/main"))
        await b.say("again")
        assert b.bodies(CacheBreak) == []


async def test_a_name_that_means_no_model_changes_nothing(tmp_path: Path) -> None:
    async with family_bench(Family(main=ONE, other=ONE), tmp_path) as b:
        b.send(SetModel("p/other"))
        await until(lambda: b.session.view.model is not None and b.session.view.model.ref == "p/other")
        b.send(SetModel("nothing"))
        await until(lambda: any("there is no nothing" in text for text in notices(b, "session")))
        assert b.session.view.model.ref == "p/other"
        assert [body.model for body in b.bodies(ModelChanged)] == ["p/other"]


async def test_each_model_thinks_as_the_user_wants_it_to(tmp_path: Path) -> None:
    family = Family(main=ONE, other=ONE)
    async with family_bench(family, tmp_path, effort={"p/main": "high"}.get) as b:
        await b.say("hi")
        assert family.models["main"].requests[0].effort == "high"
        b.send(SetEffort("low"))
        await b.say("hi")
        assert family.models["main"].requests[1].effort == "low"
        b.send(SetModel("p/other"))
        await b.say("hi")
        assert family.models["other"].requests[0].effort is None


@pytest.mark.parametrize(
    ("efforts", "said"),
    [
        (("low", "high"), ["p/main may refuse the effort 'huge': it accepts low, high."]),
        ((), ["p/main may refuse the effort 'huge': it has no effort levels."]),
        (("low", "huge"), []),
        (None, []),
    ],
)
async def test_an_effort_that_the_model_is_known_not_to_have_is_reported(
    tmp_path: Path, efforts: tuple[str, ...] | None, said: list[str]
) -> None:
    family = Family(main=ONE)
    family.models["main"]._info = replace(family.models["main"].info, efforts=efforts)
    async with family_bench(family, tmp_path, effort={"p/main": "huge"}.get) as b:
        await b.say("hi")
        assert notices(b) == said
        assert family.models["main"].requests[0].effort == "huge"


async def test_work_beside_the_conversation_has_its_own_model(tmp_path: Path) -> None:
    family = Family(main=ONE, small='[[step]]\ntext = "small talk"')
    async with family_bench(family, tmp_path, side_models={"small": "p/small"}) as b:
        assert await b.session.questions.ask("s", "q") == "small talk"
        assert family.models["main"].requests == []
    assert family.made == ["p/main", "p/small"]


async def test_a_model_beside_that_can_not_be_used_is_replaced_by_the_one_at_hand(tmp_path: Path) -> None:
    async with family_bench(Family(main=ONE), tmp_path, side_models={"small": "p/small"}) as b:
        assert await b.session.questions.ask("s", "q") == "one"
        await until(lambda: bool(notices(b)))
        assert "there is no p/small" in notices(b)[0]


async def test_summaries_are_written_by_the_model_for_summaries(tmp_path: Path) -> None:
    answers = "\n".join(f'[[step]]\nchunk = 200\ntext = "{"long answer " * 800}"' for _ in range(3))
    summary = f'[[step]]\ntext = "{"The user wants it done; it is half done. " * 20}"'
    family = Family(main=answers, summary=summary)
    async with family_bench(family, tmp_path, side_models={"summary": "p/summary"}) as b:
        for _ in range(3):
            await b.say("go on")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)), "compaction")
        assert len(family.models["summary"].requests) == 1
        assert len(family.models["main"].requests) == 3


class SlowWindows:
    """A server that takes its time to say what window its model has."""

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.asked = 0
        self.doubted = 0

    def may_tell(self, client: ModelClient) -> bool:
        return True

    async def ask(self, client: ModelClient) -> bool:
        self.asked += 1
        await self.answer.wait()
        assert isinstance(client, ScriptedModel)
        client._info = replace(client.info, window=50_000, window_source="endpoint")
        return True

    def doubt(self, client: ModelClient) -> None:
        self.doubted += 1

    def recall(self, client: ModelClient, window: int, origin: Origin) -> None:
        assert isinstance(client, ScriptedModel)
        client._info = replace(client.info, window=window, window_source="endpoint")

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        return ""


class LearningWindows(SlowWindows):
    """Adopts the window that an overflow error states."""

    async def learn(self, client: ModelClient, error: ProviderError) -> str:
        assert isinstance(client, ScriptedModel)
        client._info = replace(client.info, window=9_000, window_source="learned")
        return "The window is smaller."


async def test_a_server_that_was_away_is_doubted(tmp_path: Path) -> None:
    windows = SlowWindows()
    windows.answer.set()
    script = '[[step]]\nfault = { kind = "network" }\n[[step]]\ntext = "Back."\n'
    async with bench(script, tmp_path, windows=windows) as b:
        await b.say("hi")
    assert windows.doubted == 1


async def test_a_server_that_is_back_with_another_window_is_named(tmp_path: Path) -> None:
    """The prompt may change with the window, which then is no defect."""
    windows = SlowWindows()
    windows.answer.set()
    script = 'window = 2048\n[[step]]\ntext = "One."\n[[step]]\ntext = "Two."\n'
    async with bench(script, tmp_path, windows=windows) as b:
        b.model._info = replace(b.model.info, window=2_048, window_source="endpoint")
        await b.say("hi")
        await b.say("hi again")
        texts = [notice.text for notice in b.bodies(Notice)]
        assert [text for text in texts if "50,000" in text and "2,048" in text]
        assert not b.bodies(CacheBreak)


async def test_another_model_that_answers_to_the_name_is_named_once(tmp_path: Path) -> None:
    windows = SlowWindows()
    windows.answer.set()
    script = '[[step]]\ntext = "One."\n[[step]]\ntext = "Two."\n'
    async with bench(script, tmp_path, windows=windows) as b:
        b.model._info = replace(b.model.info, answering="/models/new.gguf")
        await b.say("hi")
        await b.say("hi again")
        told = [text for text in notices(b) if "scripted/…/new.gguf answers" in text]
        assert len(told) == 1, "once, without the folders of a file"


async def test_a_compaction_after_an_overflow_is_measured_by_the_stated_window(tmp_path: Path) -> None:
    overflow = '[[step]]\nfault = { kind = "overflow", tokens = 40000, window = 9000 }\n'
    first = f'[[step]]\ntext = "{"word " * 3_000}"\n'
    fits = '[[step]]\ntext = "It fits now."\n' * 3
    script = f"window = 200000\n{first}{overflow}{fits}"
    async with bench(script, tmp_path, windows=LearningWindows()) as b:
        await b.say("hi")
        await b.say("again")
        (begun,), (done,) = b.bodies(CompactionStarted), b.bodies(CompactionCompleted)
        assert begun.effective == done.effective < 9_000
        assert b.bodies(ContextMeasured)[-1].budget.effective == done.effective


async def test_the_first_request_waits_for_the_window_but_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "READY_SECONDS", 0.02)
    windows = SlowWindows()
    async with bench(ONE, tmp_path, windows=windows) as b:
        assert (await b.say("hi")).outcome == "done"
        assert b.bodies(ContextMeasured)[-1].budget.window_source == "script"
        windows.answer.set()
        await until(lambda: bool(b.bodies(ModelChanged)))
        assert b.bodies(ModelChanged)[0].window == 50_000
        await until(lambda: b.bodies(ContextMeasured)[-1].budget.window == 50_000)
        assert windows.asked == 1


async def test_what_is_told_early_follows_when_the_window_becomes_known(tmp_path: Path) -> None:
    windows = SlowWindows()
    async with bench(ONE, tmp_path, windows=windows) as b:
        await until(lambda: windows.asked == 1)
        before = b.session.inspection.revision
        early = b.session.inspection.picture()
        assert early is not None
        assert early.budget.window != 50_000
        told = asyncio.ensure_future(STATUS.run(b.session, ""))
        windows.answer.set()
        text = (await told).blocks[0]
        assert isinstance(text, TextBlock)
        assert "50,000" in text.text
        assert b.session.inspection.revision != before
        late = b.session.inspection.picture()
        assert late is not None
        assert late.budget.window == 50_000


async def test_a_session_can_be_closed_while_the_server_is_asked(tmp_path: Path) -> None:
    windows = SlowWindows()
    async with bench(ONE, tmp_path, windows=windows):
        await until(lambda: windows.asked == 1)


async def test_a_window_that_would_be_assumed_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that leaves is of the size that the server told, however late it did."""
    monkeypatch.setattr(models, "READY_SECONDS", 0.0)
    windows = SlowWindows()
    async with bench(ONE, tmp_path, windows=windows) as b:
        b.model._info = replace(b.model.info, window=None, window_source="assumed")
        b.send(Submit("hi"))
        await until(lambda: any("Waiting for the server" in text for text in notices(b)), "notice")
        assert b.model.requests == []
        windows.answer.set()
        await until(lambda: bool(b.bodies(TurnEnded)), "end of turn")
        assert b.bodies(StepStarted)[0].budget.window == 50_000
        assert not any("has not reported" in text for text in notices(b))


async def test_the_wait_for_a_window_can_be_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "READY_SECONDS", 0.0)
    async with bench(ONE, tmp_path, windows=SlowWindows()) as b:
        b.model._info = replace(b.model.info, window=None, window_source="assumed")
        b.send(Submit("hi"))
        await until(lambda: any("Waiting for the server" in text for text in notices(b)), "notice")
        b.send(Interrupt(skip=True))
        await until(lambda: bool(b.bodies(TurnEnded)), "end of turn")
        assert b.bodies(TurnEnded)[0].outcome == "done"
        assert b.bodies(StepStarted)[0].budget.window == 32_000
        assert any("has not reported" in text for text in notices(b))
        assert (await b.say("again")).outcome == "done"
        assert sum("Waiting for the server" in text for text in notices(b)) == 1


async def test_a_turn_can_be_interrupted_while_it_waits_for_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "READY_SECONDS", 0.0)
    async with bench(ONE, tmp_path, windows=SlowWindows()) as b:
        b.model._info = replace(b.model.info, window=None, window_source="assumed")
        b.send(Submit("hi"))
        await until(lambda: bool(notices(b)), "notice")
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)), "end of turn")
        assert b.bodies(TurnEnded)[0].outcome == "interrupted"
        b.send(Interrupt(skip=True))
        assert not b.session.view.busy


async def test_a_session_goes_on_with_the_window_that_the_server_told(tmp_path: Path) -> None:
    windows = SlowWindows()
    windows.answer.set()
    async with bench(ONE, tmp_path, windows=windows) as b:
        assert (await b.say("hi")).outcome == "done"
        before, facts = b.session.view.budget, list(b.facts)
        assert before is not None
        assert before.window == 50_000
    async with bench(ONE, tmp_path, history=facts, windows=SlowWindows()) as b:
        await until(lambda: bool(b.bodies(ContextMeasured)))
        after = b.session.view.budget
        assert after is not None
        assert (after.used, after.window, after.effective) == (before.used, before.window, before.effective)
