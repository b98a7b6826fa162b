"""Lines that cannot run during a turn wait, visibly and in order, and run once the session is free."""

from __future__ import annotations

from typing import Any

import pytest

from swecli.commands.base import CommandResult, Offer, SlashCommand, opens
from swecli.core.protocol.commands import Compact, EditQueue, RunShell, Steer, Submit
from swecli.core.protocol.events import TurnEnded, TurnOutcome
from swecli.tui import external
from tests.support.fake_session import WAIT_FOR_INTERRUPT, FakeSession
from tests.tui.screens.fakes import Sessions, ports
from tests.tui.support import COMMANDS, Running, Session, running

WAITS = (WAIT_FOR_INTERRUPT,)


async def begin(it: Running) -> None:
    await it.say("begin")
    await it.until(lambda: it.app.session.state.busy)


def end(it: Running, outcome: TurnOutcome = "done", error_kind: str = "") -> None:
    it.session.view.busy = False
    it.session.emit(TurnEnded(outcome, error_kind=error_kind))


def texts(session: Session) -> list[str]:
    return [command.text for command in session.sent(Submit)]


async def test_a_command_runs_when_the_turn_ends() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("/init")
        await it.shows("⧗ after this turn: /init")
        assert it.text == ""
        await it.say("!ls -l")
        await it.shows("⧗ after this turn: !ls -l")
        await it.say("/context now")  # needs no rest
        await it.shows("context got [now]")
        assert "init got" not in it.screen()
        assert it.session.sent(RunShell) == []
        end(it)
        await it.shows("init got []")
        await it.until(lambda: it.session.sent(RunShell) == [RunShell("ls -l")])
        await it.hides("⧗")


async def test_of_many_lines_the_next_ones_and_the_newest_are_shown() -> None:
    async with running(WAITS) as it:
        await begin(it)
        for number in range(4):
            await it.say(f"!echo {number}")
        await it.shows(*(f"this turn: !echo {number}" for number in range(4)))
        await it.say("!echo 4")
        await it.shows("!echo 0", "!echo 1", "… 2 more", "!echo 4")
        end(it)
        await it.hides("…")
        await it.until(lambda: it.session.sent(RunShell)[:1] == [RunShell("echo 0")])


async def test_a_message_behind_it_belongs_after_it() -> None:
    new = Session(WAITS)

    async def new_session() -> Session:
        return new

    async def deploy(port: FakeSession, words: str) -> CommandResult:
        assert port is new
        return CommandResult.text("deployed")

    own = SlashCommand("deploy", "Deploy", deploy, own=True)  # type: ignore[arg-type]
    async with running(WAITS, new_session=new_session, commands=lambda: (*COMMANDS, own)) as it:
        await begin(it)
        await it.say("/clear")
        await it.say("/deploy")
        await it.say("another task")
        await it.shows("⧗ after this turn: /clear", "⧗ after this turn: another task")
        end(it)
        await it.until(lambda: texts(new) == ["another task"])
        await it.shows("deployed")
        assert texts(it.session) == ["begin"]
        assert it.session.sent(Steer) == []


async def test_a_command_that_is_found_late_overtakes_no_waiting_line(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[SlashCommand] = []

    async def deploy(port: FakeSession, words: str) -> CommandResult:
        return CommandResult.text("deployed")

    def look(port: object) -> tuple[SlashCommand, ...]:
        found[:] = [SlashCommand("deploy", "Deploy", deploy, own=True)]  # type: ignore[arg-type]
        return (*COMMANDS, *found)

    async with running(WAITS, commands=lambda: (*COMMANDS, *found)) as it:
        monkeypatch.setattr("swecli.commands.registry.session_commands", look)
        await begin(it)
        await it.say("!ls -l")
        await it.say("/deploy")
        await it.shows("⧗ after this turn: !ls -l", "⧗ after this turn: /deploy")
        end(it)
        await it.shows("deployed")
        assert it.session.sent(RunShell) == [RunShell("ls -l")]


async def test_up_takes_the_newest_one_back() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("steer it")
        await it.say("/init")
        await it.shows("↳ next step: steer it", "⧗ after this turn: /init")
        await it.press("up")
        await it.until(lambda: it.text == "/init")
        await it.hides("⧗")
        assert it.session.sent(EditQueue) == []
        assert not it.app.session.later.lines


async def test_a_second_up_does_not_take_the_same_one_back_again() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("steer it")
        await it.shows("↳ next step: steer it")
        await it.at_once("up", "up", "!")
        await it.until(lambda: "!" in it.text)
        assert it.text.replace("!", "").strip() == "steer it"
        assert it.session.view.queue == ()


async def test_up_takes_nothing_back_that_has_begun() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("steer it")
        await it.shows("↳ next step: steer it")
        it.session.view.queue = ()  # the model has it, which no event has told yet
        await it.at_once("up", "!")
        await it.until(lambda: "!" in it.text)
        assert it.text == "!"
        assert it.session.sent(EditQueue) == []


async def test_what_returns_while_the_editor_is_open_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def edit(app: Any, text: str) -> str:
        end(it, "interrupted", "budget")
        await it.until(lambda: it.text == "then this\nhalf a")
        return f"{text} sentence"

    monkeypatch.setattr(external, "edit", edit)
    async with running(WAITS) as it:
        await begin(it)
        await it.say("then this")
        await it.shows("then this")
        await it.type("half a")
        await it.app.action_external_editor()
        assert it.text == "then this\nhalf a sentence"


async def test_an_interrupt_returns_messages_and_keeps_commands_in_the_history() -> None:
    async with running(WAITS) as it:
        await begin(it)
        for line in ("/init", "then this", "and that"):
            await it.say(line)
        await it.shows("⧗ after this turn: and that")
        await it.press("escape")
        await it.until(lambda: it.text == "then this\nand that")
        await it.shows("Not run: /init (Up recalls it)")
        await it.hides("⧗")


async def test_an_interrupt_returns_the_first_of_several_commands() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("/init")
        await it.say("!ls")
        await it.shows("⧗ after this turn: !ls")
        await it.press("escape")
        await it.until(lambda: it.text == "/init")
        await it.shows("Not run: !ls (Up recalls it)")


@pytest.mark.parametrize(("outcome", "runs"), [("limit", True), ("error", False), ("blocked", False)])
async def test_after_a_failed_turn_the_user_decides(outcome: TurnOutcome, runs: bool) -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("/init")
        await it.shows("⧗ after this turn: /init")
        end(it, outcome)
        if runs:
            await it.shows("init got []")
        else:
            await it.until(lambda: it.text == "/init")


async def test_it_waits_for_a_pause_in_typing_and_for_lists() -> None:
    """What it opens would take the keys."""
    async with running(WAITS) as it:
        await begin(it)
        await it.say("/init")
        await it.shows("⧗ after this turn: /init")
        await it.press(*"half")
        end(it)
        await it.shows("⧗ next: /init")
        it.app.interface.input.run_later()
        assert it.app.session.later.lines
        it.clock.now += 2
        await it.shows("init got []")
        assert it.text == "half"


async def test_it_waits_while_another_program_has_the_terminal() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("!git rebase -i HEAD~3")
        await it.shows("⧗ after this turn: !git rebase")
        it.app.app_suspend_signal.publish(it.app)  # as for the user's editor
        end(it)
        await it.until(lambda: not it.app.session.busy)
        it.app.interface.input.run_later()
        assert it.app.session.later.lines
        it.app.app_resume_signal.publish(it.app)
        await it.until(lambda: it.session.sent(RunShell))


async def test_another_session_from_the_list_gets_no_line_for_the_one_that_is_left() -> None:
    other = Session(history=())

    async def continued() -> Any:
        return other

    shows = SlashCommand("resume", "Resume", opens("sessions"))
    options = ports(sessions=Sessions(lambda name: continued))
    async with running(WAITS, commands=lambda: (*COMMANDS, shows), **options) as it:
        await begin(it)
        await it.say("!rm -r build")
        await it.shows("⧗ after this turn: !rm -r build")
        await it.say("/resume")
        await it.shows("Fix the login bug")
        end(it)
        await it.until(lambda: not it.app.session.busy)
        await it.press("enter")
        await it.until(lambda: it.app.session.port is other)
        await it.until(lambda: it.text == "!rm -r build")
        assert not it.app.session.later.lines
        assert other.sent(RunShell) == it.session.sent(RunShell) == []


async def test_another_command_waits_for_the_running_one() -> None:
    async with running() as it:
        it.session.view.busy = True  # as during the first one, outside of turns
        await it.say("!echo two")
        await it.shows("⧗ next: !echo two")
        assert it.session.sent(RunShell) == []
        it.session.view.busy = False
        await it.until(lambda: it.session.sent(RunShell) == [RunShell("echo two")])


async def test_what_a_waiting_command_would_offer_it_does() -> None:
    async def run(port: FakeSession, words: str) -> CommandResult:
        offer = Offer("Compact?", Compact(words), ("Apply", ""), ("Cancel", ""))
        return CommandResult(screen="compact", offer=offer)

    compact = SlashCommand("compact", "Compact", run, waits=lambda words: words != "plan")  # type: ignore[arg-type]
    async with running(WAITS, commands=lambda: (*COMMANDS, compact)) as it:
        await begin(it)
        await it.say("/compact")
        await it.shows("⧗ after this turn: /compact")
        end(it)
        await it.until(lambda: it.session.sent(Compact) == [Compact("")])
        assert it.app.main.list_view is None


async def test_an_offer_that_the_words_do_not_name_is_made_when_the_line_has_waited() -> None:
    async def run(port: FakeSession, words: str) -> CommandResult:
        offer = Offer("Offload 8 stale outputs?", Compact(), ("Apply", ""), ("Cancel", ""), named=False)
        return CommandResult(offer=offer)

    take = SlashCommand("take", "Take", run, while_busy=False)  # type: ignore[arg-type]
    async with running(WAITS, commands=lambda: (*COMMANDS, take)) as it:
        await begin(it)
        await it.say("/take")
        await it.say("!ls")
        end(it)
        await it.shows("Offload 8 stale outputs?")
        assert it.session.sent(Compact) == it.session.sent(RunShell) == []
        it.clock.now += 5
        await it.press("enter")
        await it.until(lambda: it.session.sent(RunShell) == [RunShell("ls")])
        assert it.session.sent(Compact) == [Compact()]


async def test_a_note_waits_too() -> None:
    async with running(WAITS) as it:
        await begin(it)
        await it.say("# use pytest -q")
        await it.shows("⧗ after this turn: # use pytest -q")
        end(it)
        await it.shows("Add it to OPENCLI.md")
