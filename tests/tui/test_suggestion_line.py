"""The suggestion of the sentinel: one quiet line, a key to do it, a key to hear no more of it."""

from __future__ import annotations

import pytest

from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import ContextSuggested
from swecli.tui.suggestion_line import suggestion_words
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.golden import check
from tests.tui.scenes import DONE
from tests.tui.support import COMMANDS, Running, Session, _command, running

REASON = "52% is old and unused"
TOLD = ContextSuggested(
    "stale", "", 31_000, REASON, "offload 14 stale outputs", 80_000, 49_000, (ContextChange("offload", "t1.result"),)
)
SHOWN = (*COMMANDS, _command("sentinel", arguments="[take | silence]"))


def test_the_line_gives_way_in_order() -> None:
    def words(width: int) -> str:
        return suggestion_words(TOLD, "Alt+S", "Alt+X", width)

    assert words(90) == f"{REASON} · Alt+S: offload 14 stale outputs, -31K · Alt+X: never again"
    assert words(78) == f"{REASON} · Alt+S: offload 14 stale outputs, -31K · Alt+X: never"
    assert words(72) == "52% is old and u… · Alt+S: offload 14 stale outputs, -31K · Alt+X: never"
    assert words(60) == "Alt+S: offload 14 stale outputs, -31K · Alt+X: never again"
    assert words(45) == "Alt+S: offload 14 stale outputs, -31K · Alt+X"
    assert words(38) == "Alt+S: offload 14 stale outputs, -31K"
    assert words(33) == "Alt+S: offload 14 stale outputs"
    assert words(12) == ""


def test_a_reason_that_is_too_long_keeps_its_beginning() -> None:
    told = ContextSuggested(
        "reverted", "", 3, "3 edits undone: shop.py", "branch from turn 2 with handoff", 9_900, 9_154
    )
    assert suggestion_words(told, "Alt+S", "Alt+X", 78) == (
        "3 edits undone… · Alt+S: branch from turn 2 with handoff, -746 · Alt+X: never"
    )


def test_what_frees_nothing_says_no_number() -> None:
    told = ContextSuggested("repeated", "", 3, "said 3 times: “No tabs.”", "pin it", 80_000, 80_000)
    assert suggestion_words(told, "A", "X", 99) == "said 3 times: “No tabs.” · A: pin it · X: never again"


async def test_the_key_that_takes_it_looks_anew_where_the_line_is_gone() -> None:
    async with running(session=Session(()), commands=lambda: SHOWN) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.ended is not None)
        assert it.app.session.suggestion is None
        await it.press("alt+s")
        await it.shows("sentinel got [take]")


async def rotten(it: Running) -> None:
    it.session.view.suggestion = TOLD
    it.session.emit(TOLD)


@pytest.mark.parametrize("size", [(80, 24), (40, 15), (160, 30)])
async def test_it_stands_above_the_prompt_at_the_end_of_a_turn(size: tuple[int, int]) -> None:
    session = Session(DONE)
    async with running(session=session, size=size) as it:
        await it.say("go")
        await it.until(lambda: not it.app.session.state.busy and "done in 12 s" in it.screen())
        await rotten(it)
        await it.shows("offload 14 stale outputs")
        await it.settled()  # the transcript above gives way to the line
        check(f"suggestion-{size[0]}x{size[1]}", it.screen())


async def test_it_is_not_there_while_anything_else_goes_on() -> None:
    session = Session((), (WAIT_FOR_INTERRUPT,))
    async with running(session=session, commands=lambda: SHOWN) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.ended is not None)
        await rotten(it)
        await it.shows("Alt+X: never")
        await it.type("more")
        await it.hides("Alt+X: never")
        await it.press("ctrl+u")
        await it.shows("Alt+X: never")
        await it.press("slash")
        await it.press("escape", "ctrl+u")
        await it.shows("Alt+X: never")
        it.app.interface.open("pick_mode")
        await it.hides("Alt+X: never")
        await it.press("escape")
        await it.shows("Alt+X: never")
        it.app.interface.open("help")
        await it.shows("Help · the most used")
        assert "Alt+X: never" not in it.screen()
        await it.press("escape")
        await it.shows("Alt+X: never")
        await it.say("go on")
        await it.shows("esc to interrupt")
        assert "Alt+X: never" not in it.screen()
        await it.press("alt+s")
        await it.shows("No suggestion now")


@pytest.mark.parametrize(("key", "verb"), [("alt+s", "take"), ("alt+x", "silence")])
async def test_a_key_does_it_and_a_key_silences_it(key: str, verb: str) -> None:
    async with running(session=Session(()), commands=lambda: SHOWN) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.ended is not None)
        await it.press("alt+x")
        await it.shows("No suggestion now; /sentinel looks again")
        await rotten(it)
        await it.press(key)
        await it.shows(f"sentinel got [{verb}]")
        it.session.view.suggestion = None
        it.app.session.show()
        await it.hides("Alt+X: never")
