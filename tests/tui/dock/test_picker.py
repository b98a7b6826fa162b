"""Lists to pick from: typing in order, whatever comes at once."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence

import pytest

from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.models import MODEL
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import ReplyPermission, SetEffort, SetMode, SetModel
from swecli.tui.dock.choices import Choice as Row
from swecli.tui.dock.choices import ChoiceList
from swecli.tui.dock.picker import Choice, Picker
from swecli.tui.prompt.completion import last_part, score_folded
from tests.tui.scenes import RUN, WORK
from tests.tui.support import Running, Session, running

MODELS = ("a/one", "a/two", "b/two", "b/twenty")


async def models(it: Running, shown: str = "b/twenty") -> None:
    it.app.interface.open("pick_model")
    await it.shows("Model:", shown)
    await it.until(lambda: (panel := it.app.main.dock.panel) is not None and it.app.focused is panel.field)


async def picked(it: Running) -> str:
    await it.until(lambda: it.session.sent(SetModel))
    return it.session.sent(SetModel)[0].model


async def test_choices_stay_in_sight_in_a_tiny_window() -> None:
    async with running(models=lambda: MODELS, size=(20, 6)) as it:
        await models(it, "fake/model")
        await it.press("down", "down")
        await it.shows("a/two")
        await it.press(*"twenty")
        await it.shows("b/twenty")
        await it.press("enter")
        assert await picked(it) == "b/twenty"


async def test_letters_right_behind_an_editing_key_stay_in_order() -> None:
    async with running(models=lambda: MODELS) as it:
        await models(it)
        await it.at_once(
            *"wrong", "ctrl+u", *"b/twx", "backspace", *"en", "left", "left", "left", "delete", "w", "enter"
        )
        assert await picked(it) == "b/twenty"


async def test_an_arrow_right_behind_letters_moves_in_what_they_leave() -> None:
    async with running(models=lambda: MODELS) as it:
        await models(it)
        await it.at_once(*"two", "down", "enter")
        assert await picked(it) == "b/two"


async def test_what_is_typed_before_the_line_has_the_keyboard_is_not_lost() -> None:
    async with running(models=lambda: MODELS) as it:
        it.app.interface.open("pick_model")
        await it.until(lambda: it.app.main.dock.panel is not None)
        await it.at_once(*"one", "enter")
        assert await picked(it) == "a/one"


async def test_servers_that_are_asked_for_their_models_are_waited_for_in_sight() -> None:
    answered = threading.Event()

    def listed() -> tuple[str, ...]:
        answered.wait()
        return MODELS

    async with running(models=listed) as it:
        try:
            it.app.interface.open("pick_model")
            await it.shows("Looking for models…")
        finally:
            answered.set()
        await it.shows("Model:", "b/twenty")
        await it.hides("Looking for models…")


async def test_words_behind_the_command_are_for_the_list_of_models() -> None:
    """Not half for the prompt and half for the list, which appears when the servers have answered."""
    session, asked = Session(), asyncio.Event()

    async def models() -> Sequence[ModelOffer]:
        await asked.wait()
        return (ModelOffer("local/other", "environment"), ModelOffer("local/served", "environment"))

    session.offers.find = models  # type: ignore[method-assign]
    async with running(session=session, models=lambda: MODELS) as it:
        it.app.interface.open("pick_model")
        await it.shows("Model:", "● fake/model", "Looking for models…")
        await it.press(*"serv")
        await it.hides("fake/model  ")
        asked.set()
        await it.shows("local/served  window ?")
        await it.hides("Looking for models…")
        await it.press("enter")
        assert await picked(it) == "local/served"
        assert it.text == ""


async def test_a_server_without_a_list_is_named_with_its_remedy_in_a_narrow_window() -> None:
    session = Session()
    session.offers.unlisted = (
        "openai at http://127.0.0.1:18411/v1: no connection to 127.0.0.1:18411: connection refused. "
        "Start the server and use /model, or type openai/NAME.",
    )
    async with running(session=session, models=lambda: MODELS, size=(60, 24)) as it:
        await models(it)
        await it.shows("connection refused", "or type openai/NAME.")
        await it.press("escape")
        await it.hides("Model: select")
        await it.shows("or type openai/NAME.")


async def test_the_servers_are_asked_once() -> None:
    session, asked = Session(), 0

    async def models() -> Sequence[ModelOffer]:
        nonlocal asked
        asked += 1
        return (ModelOffer("local/served", "environment"),)

    session.offers.find = models  # type: ignore[method-assign]
    async with running(session=session, commands=lambda: (MODEL,)) as it:
        await it.say("/model")
        await it.shows("Model:", "local/served")
        assert asked == 1


async def test_a_name_typed_before_the_servers_answer_waits_for_them() -> None:
    session, asked, ran = Session(), asyncio.Event(), list[str]()

    async def models() -> Sequence[ModelOffer]:
        await asked.wait()
        return ()

    async def run(port: Session, text: str) -> CommandResult:
        ran.append(text)
        return CommandResult(screen="pick_model" if not text else None)

    session.offers.find = models  # type: ignore[method-assign]
    commands = (SlashCommand("model", "What model does", run, arguments="[name]"),)  # type: ignore[arg-type]
    async with running(session=session, commands=lambda: commands) as it:
        await it.at_once(*"/model", "enter")
        await it.shows("Model:")
        await it.at_once(*"qwen", "enter")
        await it.until(lambda: ran == ["", "qwen"])
        assert it.session.commands == []


async def test_a_word_with_a_no_can_be_typed_at_once() -> None:
    async with running((*WORK, RUN)) as it:
        await it.say("go")
        await it.until(lambda: it.app.main.dock.panel)
        await it.shows("make test")
        it.clock.now += 5
        await it.at_once("n", *"try make", "ctrl+w", *"ninja", "enter")
        await it.until(lambda: it.session.sent(ReplyPermission))
        assert it.session.sent(ReplyPermission) == [ReplyPermission("p2", "reject", "try ninja", span="session")]


async def test_an_effort_that_the_model_has_not_is_refused_with_those_that_it_has() -> None:
    for efforts, has in (
        (("low", "high"), "a/b accepts low, high, or default."),
        (None, "common ones are none, minimal, low,"),
    ):
        session = Session()
        session.view.model = ModelInfo("a", "b", efforts=efforts)
        async with running(session=session) as it:
            it.app.interface.open("pick_effort")
            await it.shows("Effort")
            await it.at_once(*"extreme", "enter")
            await it.shows(has, "esc closes")
            assert session.sent(SetEffort) == []
            await it.at_once("ctrl+u", *"hi", "enter")
            await it.until(lambda session=session: session.sent(SetEffort) == [SetEffort("high")])


async def test_a_model_that_is_not_listed_can_be_typed() -> None:
    async with running(models=lambda: MODELS) as it:
        await models(it)
        await it.press(*"new/one")
        await it.shows("enter uses the typed text")
        await it.press("enter")
        assert await picked(it) == "new/one"


async def test_of_3000_models_a_key_looks_only_at_what_the_keys_before_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, as every machine has its own time: names that are folded, judged and made into rows."""
    many = tuple(f"vendor-{n % 50}/model-{n}" for n in range(3_000))
    judged: list[str] = []
    folded: list[str] = []
    made: list[str] = []

    def judging(wanted: str, text: str, base: str, name: str) -> tuple[int, int, str] | None:
        judged.append(name)
        return score_folded(wanted, text, base, name)

    def splitting(text: str) -> str:
        folded.append(text)
        return last_part(text)

    def making(label: str, key: str, detail: str, mark: str) -> Row:
        made.append(label)
        return Row(label, key, detail, mark)

    monkeypatch.setattr("swecli.tui.dock.picker.score_folded", judging)
    monkeypatch.setattr("swecli.tui.dock.picker.last_part", splitting)
    monkeypatch.setattr("swecli.tui.dock.picker.Row", making)
    async with running(models=lambda: many) as it:
        it.app.interface.open("pick_model")
        await it.shows("Model:", many[0])
        for typed in ("2", "29", "299", "2999"):
            left = {name for name in many if re.search(".*".join(typed[:-1]), name)}
            judged.clear()
            await it.press(typed[-1])
            await it.until(lambda: judged)
            assert set(judged) - {"fake/model"} == left
        await it.shows("vendor-49/model-2999")
        assert len(folded) == len(many) + 1  # and the model in use
        assert len(made) == len(set(made)) == len(many) + 1
        await it.press("backspace", "backspace", "backspace", "backspace")
        await it.shows(many[0])
        assert len(made) == len(many) + 1


async def test_a_long_list_says_which_of_its_choices_are_in_sight() -> None:
    async with running(models=lambda: tuple(f"a/model-{number}" for number in range(2_999))) as it:
        it.app.interface.open("pick_model")
        await it.shows("1-10 of 3,000")
        await it.press("up")
        await it.shows("2,991-3,000 of 3,000", "a/model-2998")
        await it.press(*"model-2998")
        await it.shows("a/model-2998")
        await it.hides("of 3,000")


async def test_a_short_list_is_numbered_and_a_number_picks() -> None:
    session = Session()
    session.view.model = ModelInfo("a", "b", efforts=("low", "high"))
    async with running(session=session) as it:
        it.app.interface.open("pick_effort")
        await it.shows("1 ● default", "3   high", "letters filter")
        await it.press("9")
        await it.shows("9 is not a choice here.")
        await it.press("3")
        await it.until(lambda: session.sent(SetEffort) == [SetEffort("high")])


async def test_digits_filter_a_list_whose_names_have_digits() -> None:
    async with running(models=lambda: ("a/gpt-4o", "a/gpt-5")) as it:
        it.app.interface.open("pick_model")
        await it.shows("a/gpt-4o")
        await it.at_once("4", "enter")
        assert await picked(it) == "a/gpt-4o"


async def test_a_click_points_and_another_one_picks() -> None:
    async with running() as it:
        it.app.interface.open("pick_mode")
        await it.shows("3   plan")
        assert it.app.main.dock.panel is not None
        choices = it.app.main.dock.panel.query_one(ChoiceList)
        await it.pilot.click(choices, offset=(8, 2))
        await it.shows("› 3   plan")
        assert not it.session.sent(SetMode)
        await it.pilot.click(choices, offset=(8, 2))
        await it.until(lambda: it.session.sent(SetMode) == [SetMode("plan")])


async def test_a_name_that_begins_with_the_typed_words_comes_first() -> None:
    names = ("x/gpt-50x", "x/gpt-5-mini", "x/gpt-5")
    async with running(models=lambda: names) as it:
        await models(it, "x/gpt-50x")
        await it.press(*"gpt-5")
        await it.until(lambda: "fake/model" not in it.screen().split("Model:")[1].split("esc")[0])
        shown = it.screen()
        assert shown.index("x/gpt-5-mini") < shown.index("x/gpt-50x")


async def test_a_long_choice_without_a_detail_moves_no_details() -> None:
    choices = [Choice("a", "one", "the first"), Choice("b", "three", "the third"), Choice("c", "long/" * 12)]
    async with running(size=(80, 24)) as it:
        it.app.main.dock.show(Picker("Choose", choices, lambda value: None))
        await it.shows("the first", "the third", "long/long")
        lines = it.screen().splitlines()
        assert len({line.index("the ") for line in lines if "the first" in line or "the third" in line}) == 1
