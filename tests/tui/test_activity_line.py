"""The line above the prompt."""

from __future__ import annotations

import asyncio

import pytest

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.protocol.commands import Interrupt, ReplyPermission
from swecli.core.protocol.events import (
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemStarted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    RetryScheduled,
    TurnStarted,
)
from swecli.core.protocol.messages import ToolCallPart
from swecli.features.git.command import COMMIT
from swecli.features.init.command import INIT
from swecli.tui.session_state import UiState, feed
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.support import COMMANDS, Running, Session, running


async def test_a_short_message_leaves_the_way_to_stop_in_sight() -> None:
    async with running((WAIT_FOR_INTERRUPT,)) as it:
        await it.say("go")
        await it.shows("esc to interrupt")
        it.app.main.activity.flash("x" * 200)
        await it.shows("xxxx", "… · esc to interrupt")


async def test_without_a_command_to_move_the_way_to_the_jobs_fits_beside_the_way_to_stop() -> None:
    async with running((WAIT_FOR_INTERRUPT,), size=(80, 24)) as it:
        await it.say("go")
        await it.shows("esc to interrupt")
        await it.press("ctrl+b")
        await it.shows("No command to move to the background; /jobs lists all · esc to interrupt")


async def test_a_short_message_ends_with_the_next_key_but_not_while_the_user_types() -> None:
    async with running() as it:
        it.app.main.activity.flash("Theme: dark", 600.0)
        await it.press("a")
        assert it.text == "a"
        assert "Theme: dark" in it.screen()
        await it.press("left")
        await it.hides("Theme: dark")


async def test_a_short_message_that_a_key_makes_stays() -> None:
    async with running() as it:
        await it.press("ctrl+o")
        await it.shows("etails")
        await it.press("ctrl+t")
        await it.shows("No todos yet")
        assert "etails" not in it.screen()


async def test_a_short_message_ends_when_something_is_sent_and_when_a_screen_opens() -> None:
    async with running() as it:
        it.app.main.activity.flash("Not sent; it is back", 600.0)
        it.editor.add("/init")
        it.editor.submit()
        await it.shows("init got []")
        assert "it is back" not in it.screen()
        it.app.main.activity.flash("Not sent; it is back", 600.0)
        it.app.interface.open("help")
        await it.until(lambda: it.app.main.list_view is not None)
        assert "it is back" not in it.screen()


async def test_the_users_own_command_is_named_while_it_runs() -> None:
    async with running() as it:
        it.session.emit(ItemStarted("u1", "user", "shell", "make all"))
        await it.shows("Running make all", "esc to interrupt")
        await it.press("escape")
        await it.shows("Interrupting")
        it.session.emit(ItemCompleted("u1", "interrupted"))
        it.session.emit(ItemStarted("u2", "user", "shell", "make more"))
        await it.shows("Running make more")


async def test_a_short_message_ends_with_what_it_says() -> None:
    async with running() as it:
        true = True
        it.app.main.activity.flash("Still opening", 600.0, lambda: true)
        it.app.session.show()
        await it.shows("Still opening")
        true = False
        it.app.session.show()
        await it.hides("Still opening")


class Aside:
    """A command that asks the model; it answers when a test says so."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()

    async def run(self, session: object, question: str) -> CommandResult:
        del session
        await self.answers.wait()
        return CommandResult.text(f"the answer to {question}")

    def among(self, *others: SlashCommand) -> tuple[SlashCommand, ...]:
        return (*others, SlashCommand("btw", "Ask", self.run, arguments="question", asks_model=True))  # type: ignore[arg-type]


async def test_a_question_beside_the_conversation_is_in_sight_until_it_is_answered() -> None:
    aside = Aside()
    async with running(commands=lambda: aside.among(*COMMANDS)) as it:
        await it.say("/btw where are the prices?")
        await it.shows("Answering /btw where are the prices?", "esc to cancel")
        aside.answers.set()
        await it.shows("the answer to where are the prices?")
        await it.hides("esc to cancel")


async def test_escape_cancels_the_newest_question_beside_the_conversation() -> None:
    aside = Aside()
    async with running(commands=lambda: aside.among(*COMMANDS)) as it:
        await it.say("/btw first")
        await it.say("/btw second")
        await it.shows("Answering /btw second")
        await it.press("escape")
        await it.shows("Cancelled. The conversation is unchanged", "Answering /btw first")
        await it.press("escape")
        await it.hides("esc to cancel")
        aside.answers.set()
        await it.say("/init")
        await it.shows("init got []")
        assert "the answer to" not in it.screen()
        assert it.app.main.list_view is None


async def test_a_command_that_has_the_model_prepare_its_call_is_in_sight_and_can_be_cancelled() -> None:
    assert COMMIT.asks_model
    assert INIT.asks_model
    aside = Aside()
    rest = {"arguments": "[hint]", "while_busy": False, "asks_model": True}
    command = SlashCommand("commit", "Commit", aside.run, **rest)  # type: ignore[arg-type]
    async with running(commands=lambda: (command, *COMMANDS)) as it:
        await it.say("/commit")
        await it.shows("Preparing /commit", "esc to cancel")
        await it.press("escape")
        await it.shows("Cancelled. The conversation is unchanged")
        await it.say("/commit now")
        await it.shows("Preparing /commit now", "esc to cancel")
        it.session.emit(ItemStarted("u1", "user", "shell", "git commit"))
        await it.shows("Running git commit", "esc to interrupt")
        await it.hides("Preparing /commit now")
        it.session.emit(ItemCompleted("u1", "ok"))
        aside.answers.set()
        await it.shows("the answer to now")


async def test_a_question_beside_a_conversation_ends_with_it() -> None:
    aside, new = Aside(), Session()

    async def new_session() -> Session:
        return new

    async with running(commands=lambda: aside.among(*COMMANDS), new_session=new_session) as it:
        await it.say("/btw why?")
        await it.shows("Answering /btw why?")
        await it.say("/clear")
        await it.until(lambda: it.app.session.port is new)
        await it.hides("esc to cancel")
        aside.answers.set()
        await it.say("/context")
        await it.shows("context got []")
        assert "/btw" not in it.screen()


async def test_escape_interrupts_the_turn_before_it_cancels_a_question_beside_it() -> None:
    aside = Aside()
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session, commands=lambda: aside.among(*COMMANDS)) as it:
        await it.say("go")
        await it.shows("esc to interrupt")
        await it.say("/btw why?")
        await it.shows("· Answering /btw why?")
        await it.press("escape")
        await it.until(lambda: session.sent(Interrupt))
        await it.shows("Answering /btw why?", "esc to cancel")
        await it.press("escape")
        await it.shows("Cancelled. The conversation is unchanged")


async def _escape_twice(it: Running) -> None:
    await it.press("escape")
    await it.shows("Esc again clears")
    await it.press("escape")


async def test_escape_twice_clears_the_prompt_and_the_text_can_be_had_back() -> None:
    async with running() as it:
        await it.type("a long thought")
        await _escape_twice(it)
        assert it.text == ""
        await it.shows("Ctrl+Y restores the text")
        await it.press("ctrl+y")
        assert it.text == "a long thought"


async def test_escape_clears_only_within_its_time_and_not_what_was_typed_since() -> None:
    async with running() as it:
        await it.type("kept")
        await it.press("escape")
        it.clock.now += 5
        await it.press("escape")
        assert it.text == "kept"
        await it.type("!")
        await it.press("escape")
        assert it.text == "kept!"


async def test_the_time_of_an_answer_counts_although_the_question_leaves_the_screen_before() -> None:
    async with running((WAIT_FOR_INTERRUPT,)) as it:
        await it.say("begin")
        it.session.emit(PermissionRequested("p1", "t", "run_command", "make", (), "asks", "hash"))
        await it.until(lambda: it.app.session.state.requests)
        session, asked = it.app.session, it.app.session.state.asked_since
        session._wall = lambda: asked + 40.0
        session.answer(ReplyPermission("p1", "once"))
        it.session.emit(PermissionResolved("p1", "once"))
        heard = session.state.heard
        await it.until(lambda: session.state.heard > heard)
        assert session.state.waited == 40.0


@pytest.mark.parametrize("width", [60, 80, 100])
async def test_a_narrow_screen_cuts_names_and_never_times(width: int) -> None:
    name = "a-very-long-name." * 12
    retry = RetryScheduled(3, 0, 17.0, "network", f"Can't reach {name}: no such host.", unreached=name)
    call = ItemCheckpointed("t1", ToolCallPart("c", "run_command", "{}"), f"make {name}", running=True)
    begun = (TurnStarted("u1"), ItemStarted("t1", "tool", name="run_command", title=f"make {name}"), call)
    waits = (TurnStarted("u1"), Notice(f"Waiting for tools: {name}", topic="tools"))
    async with running(size=(width, 24)) as it:
        line = it.app.main.activity
        line._clock = lambda: 1010.0
        for bodies, end in (
            ((TurnStarted("u1"), retry), "; next try in 9 s · esc to stop"),
            (begun, " · 7 s · esc to interrupt"),
            (waits, " · 9 s · esc to continue without"),
        ):
            state = UiState()
            for seq, body in enumerate(bodies, 1):
                feed(state, Event(seq, 1000.0 + seq, "s", 1, body))
            line.show(state, starting=False)
            text = line.content(width - 2).plain
            beyond_width = width >= 80 and "make" in text  # names a second key
            assert text.endswith(f"…{end}") or (beyond_width and f"…{end}" in text), text
            assert len(text) <= width - 2
            with line.beside("Answering beside the conversation…", "esc to cancel"):
                assert end.partition(" · esc")[0] in line.content(width - 2).plain
