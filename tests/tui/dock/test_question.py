"""Questions of the model: single, multiple and free answers, several in one request."""

from __future__ import annotations

import pytest
from textual import events

from swecli.core.protocol.commands import Answer
from swecli.core.protocol.events import QuestionAsked
from swecli.core.protocol.request_events import Option, Question
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import Running, Session, running

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
        it.clock.now += 1
        await it.press("3")
        await it.press(*"green", "enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("me",), ("green",)))])


async def test_an_empty_line_answers_only_where_it_means_something() -> None:
    questions = (Question("Name?"), Question("Mail?", header="Mail", blank="leaves it out"))
    async with running((asked(*questions),)) as it:
        await appear(it, "Name? (1 of 2)")
        await it.press("enter")
        await it.shows("Type an answer first; Esc leaves without one.")
        await it.press("m", "enter")
        await it.shows("Mail (2 of 2): Mail?", "Your answer; Enter leaves it out")
        it.clock.now += 1
        await it.press("enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("m",), ("",)))])


async def test_several_questions_are_tabs_that_keep_what_was_begun() -> None:
    questions = (
        Question("Name?", header="Name"),
        Question("Which?", COLOURS, header="Colour"),
        Question("What else?", COLOURS, multiple=True),
    )
    async with running((asked(*questions),)) as it:
        await appear(it, "[Name] · Colour · 3")
        await it.press(*"mi", "tab")
        await it.shows("Name · [Colour] · 3", "tab another question")
        await it.press("2")
        await it.shows("Name · Colour ✓ · [3]", "What else? (3 of 3)")
        it.clock.now += 1
        await it.press("space", "right")
        await it.shows("[Name] · Colour ✓ · 3", "mi")
        await it.press(*"ne", "enter")
        await it.shows("Name ✓ · Colour ✓ · [3]", "[x] red")
        it.clock.now += 1
        await it.press("left")
        await it.shows("[Colour ✓]")
        await it.press("1")
        await it.shows("[x] red")
        it.clock.now += 1
        assert not it.session.sent(Answer)
        await it.press("enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("mine",), ("red",), ("red",)))])


async def test_escape_goes_back_from_the_text_and_then_dismisses() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await appear(it, "Which?")
        await it.press("3", "escape")
        await it.shows("2 blue")
        await it.press("escape")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", ())])
        await it.until(lambda: it.editor.has_focus)


async def test_enter_answers_only_what_the_user_moved_to() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await appear(it, "Which?")
        await it.press("enter")
        await it.shows(", or move with ↑↓ before Enter.")
        assert not it.session.sent(Answer)
        await it.press("down", "up", "enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("red",),))])


async def test_of_several_choices_enter_answers_only_what_is_ticked() -> None:
    async with running((asked(Question("Which?", COLOURS, multiple=True)),)) as it:
        await appear(it, "Which?")
        await it.press("enter")
        await it.shows("Tick an answer first")
        assert not it.session.sent(Answer)
        await it.press("2", "enter")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("blue",),))])


async def test_a_key_that_comes_twice_does_not_answer_the_next_question() -> None:
    async with running((asked(Question("Which?", COLOURS), Question("And which?", COLOURS)),)) as it:
        await appear(it, "Which? (1 of 2)")
        await it.press("2", "2", "2")
        await it.shows("And which? (2 of 2)", "Ignored: you pressed that key before you could read this.")
        assert not it.session.sent(Answer)
        it.clock.now += 1
        await it.press("1")
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("blue",), ("red",)))])


async def test_enter_right_after_the_appearance_answers_nothing() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await it.say("go")
        await it.shows("Which?")
        await it.press("enter", "1")
        assert not it.session.sent(Answer)


SENTENCE = "and keep just 2 of the jobs, please"


async def type_through(it: Running, question: Question, *, pause: float = 0.1) -> None:
    """A sentence of which the last letters and Enter come while the question appears."""
    await it.say("go")
    await it.until(lambda: it.app.session.state.busy)
    names = [{" ": "space", ",": "comma"}.get(key, key) for key in SENTENCE]
    await it.press(*names[:6])
    it.session.emit(asked(question))
    await it.shows("Which?")
    for name in names[6:]:
        it.clock.now += pause
        await it.press(name)
    it.clock.now += pause
    await it.press("enter")


@pytest.mark.parametrize("options", [COLOURS, ()])
async def test_a_sentence_typed_ahead_goes_to_the_draft_and_its_enter_answers_nothing(
    options: tuple[Option, ...],
) -> None:
    async with running(session=Session((WAIT_FOR_INTERRUPT,))) as it:
        await type_through(it, Question("Which?", options))
        assert not it.session.sent(Answer)
        assert it.text == SENTENCE
        it.clock.now += 1.0
        await it.press(*(["1"] if options else ["r", "e", "d", "enter"]))
        await it.until(lambda: it.session.sent(Answer) == [Answer("q1", (("red",),))])
        await it.shows(f"› {SENTENCE}")


async def test_a_sentence_begun_after_the_appearance_answers_nothing_either() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await appear(it, "Which?")
        for key in "go 2 it":
            await it.press("space" if key == " " else key)
            it.clock.now += 0.3
        await it.press("enter")
        assert not it.session.sent(Answer)
        assert it.text == "go 2 it"


async def test_a_paste_goes_to_the_draft_and_its_enter_answers_nothing() -> None:
    async with running((asked(Question("Which?", COLOURS)),)) as it:
        await appear(it, "Which?")
        it.app.post_message(events.Paste("2\nthree"))
        await it.until(lambda: it.text == "2\nthree")
        await it.press("enter")
        assert not it.session.sent(Answer)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (30, 8), (20, 9)])
async def test_a_question_shows_itself_and_its_answers_at_every_size(size: tuple[int, int]) -> None:
    async with running(
        (asked(Question("Which colour is it to be, of all those that there are? " * 3, COLOURS)),), size=size
    ) as it:
        await appear(it, "Which colour is")
        await it.shows("1 red", "esc")


async def test_where_a_question_has_no_room_nothing_is_answered() -> None:
    async with running((asked(Question("Which?", COLOURS)),), size=(30, 4)) as it:
        await appear(it, "Enlarge the window")
        await it.press("1", "enter")
        assert not it.session.sent(Answer)
