"""Questions of the model: single, multiple and free answers, several in one request."""

from __future__ import annotations

from swecli.core.protocol.commands import Answer
from swecli.core.protocol.events import Option, Question, QuestionAsked
from tests.tui.support import Running, running

COLOURS = (Option("red", "like [b]fire[/b]"), Option("blue"))


def asked(*questions: Question) -> QuestionAsked:
    return QuestionAsked("q1", "t1", questions)


async def appear(it: Running, text: str) -> None:
    await it.say("go")
    await it.shows(text)
    it.clock.now += 1


async def test_one_of_several_by_arrow_and_enter() -> None:
    async with running((asked(Question("Which?", COLOURS, header="Colour")),)) as it:
        await appear(it, "Colour: Which?")
        assert "like [b]fire[/b]" in it.screen()
        await it.press("down", "enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("blue",),))])


async def test_one_of_several_by_number() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await appear(it, "Which?")
        await it.press("2")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("blue",),))])


async def test_several_of_several() -> None:
    async with running((asked(Question("Which?", COLOURS, multiple=True)),)) as it:
        await appear(it, "[ ] red")
        await it.press("space", "down", "space", "enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("red", "blue"),))])


async def test_free_text_and_something_else() -> None:
    async with running((asked(Question("Name?"), Question("Which?", COLOURS)),)) as it:
        await appear(it, "Name? (1 of 2)")
        await it.press(*"me", "enter")
        await it.shows("Which? (2 of 2)")
        await it.press("3")
        await it.press(*"green", "enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("me",), ("green",)))])


async def test_escape_goes_back_from_the_text_and_then_dismisses() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await appear(it, "Which?")
        await it.press("3", "escape")
        await it.shows("2. blue")
        await it.press("escape")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", ())])
        await it.until(lambda: it.editor.has_focus)


async def test_enter_right_after_the_appearance_answers_nothing() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await it.say("go")
        await it.shows("Which?")
        await it.press("enter", "1")
        assert not it.session.sent(Answer)
