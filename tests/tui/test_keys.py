"""Every key of the interface, on the whole application."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual import events

from swecli.assembly.session_list import StoredSession
from swecli.commands.base import CommandResult, SlashCommand
from swecli.commands.files import ADD_DIR
from swecli.core.protocol.blocks import DiffBlock, Todo
from swecli.core.protocol.commands import (
    EditQueue,
    Interrupt,
    ReplyPermission,
    Rewind,
    RunShell,
    SetMode,
    SetModel,
    Steer,
    Submit,
)
from swecli.core.protocol.events import (
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    QueueChanged,
    Queued,
    Rewound,
    TodosChanged,
    TurnEnded,
)
from swecli.core.protocol.messages import TextPart
from swecli.tui import session_controller
from swecli.tui.external import Ran
from swecli.tui.preferences import Preferences
from swecli.tui.prompt import completion, editor
from swecli.tui.transcript.blocks import ShownBlock
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.support.waiting import PATIENCE
from tests.tui.scenes import ASK, TODOS, tool
from tests.tui.screens.fakes import Sessions, ports
from tests.tui.support import COMMANDS, Running, Session, running, until

WAITS = (WAIT_FOR_INTERRUPT,)


def answer(text: str) -> tuple[ItemStarted, ItemCompleted]:
    return ItemStarted("a1", "text"), ItemCompleted("a1", "ok", (TextPart(text),))


async def test_a_mention_says_that_the_files_are_being_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "SOON", 0.0)
    listed = threading.Event()
    async with running(answer("ok"), files=lambda: ["src/app.py"] if listed.wait(PATIENCE) else []) as it:
        try:
            it.post("@", "a")
            await it.sees(lambda screen: "Listing the files…" in screen)
            it.post("tab", "b")
            await it.until(lambda: it.editor.text == "@ab")
            it.post("backspace", " ")
            await it.sees(lambda screen: "Listing the files…" not in screen)
            it.post("backspace")
            await it.sees(lambda screen: "Listing the files…" in screen)
        finally:
            listed.set()
        await it.shows("src/app.py")
        await it.hides("Listing the files…")


async def test_enter_sends_and_empties_the_prompt() -> None:
    async with running(answer("Hello there")) as it:
        await it.say("say hello")
        await it.shows("Hello there")
        assert it.session.sent(Submit) == [Submit("say hello")]
        assert it.text == ""


@pytest.mark.parametrize("key", ["shift+enter", "ctrl+j", "alt+enter"])
async def test_keys_that_make_a_new_line(key: str) -> None:
    async with running() as it:
        await it.type("one")
        await it.press(key)
        await it.type("two")
        assert it.text == "one\ntwo"
        assert not it.session.commands


async def test_backslash_enter_makes_a_new_line_and_two_backslashes_send() -> None:
    async with running(answer("ok")) as it:
        await it.say("one\\")
        assert it.text == "one\n"
        await it.say("two\\\\")
        assert it.session.sent(Submit) == [Submit("one\ntwo\\\\")]


ASKED = (ItemStarted("u1", "user"), ItemCompleted("u1", "ok", (TextPart("begin"),)))


async def test_a_message_that_is_interrupted_before_an_answer_returns_to_the_prompt() -> None:
    async with running((*ASKED, WAIT_FOR_INTERRUPT)) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.unanswered)
        await it.press("escape")
        await it.until(lambda: it.session.sent(Rewind) == [Rewind("u1")])
        it.session.emit(Rewound("u1", text="begin"))
        await it.until(lambda: it.text == "begin")
        await it.shows("Interrupted before an answer; your message is back in the prompt")


async def test_a_message_that_is_interrupted_while_it_is_still_told_returns_to_the_prompt() -> None:
    started, completed = ASKED
    async with running((started, WAIT_FOR_INTERRUPT)) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.unanswered)
        it.app.session.interrupt()
        it.session.emit(completed)  # before the end of the turn
        await it.until(lambda: it.session.sent(Rewind) == [Rewind("u1")])


async def returned(it: Running, text: str) -> None:
    """A message that is interrupted before its answer and comes back."""
    await it.say(text)
    await it.until(lambda: it.app.session.state.unanswered)
    await it.press("escape")
    await it.until(lambda: it.session.sent(Rewind))
    it.session.emit(Rewound("u1", text=text))
    await it.until(lambda: it.text == text)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("/theme", "/theme"),
        ("!ls", "!ls"),
        ("#note", "#note"),
        ("next", "begin\nnext"),
        (" and more", "begin and more"),
        ("?", "begin?"),
        (("escape", "/", "x"), "/x"),
        (("backspace", "x"), "begix"),
        (("left", "x"), "begixn"),
        (("left", "right", "x"), "beginx"),
    ],
)
async def test_what_is_typed_behind_a_returned_message_is_not_joined_to_it(keys: Sequence[str], text: str) -> None:
    async with running((*ASKED, WAIT_FOR_INTERRUPT)) as it:
        await returned(it, "begin")
        await it.press(*("slash" if key == "/" else key for key in keys))
        assert it.text == text
        if text.startswith(("/", "!", "#")):
            await it.shows("Put aside: begin (Ctrl+Y restores it)")
            await it.press("ctrl+u", "ctrl+y", "alt+y")
            assert it.text == "begin"


async def test_a_paste_behind_a_returned_message_is_not_joined_to_it() -> None:
    async with running((*ASKED, WAIT_FOR_INTERRUPT)) as it:
        await returned(it, "begin")
        it.app.post_message(events.Paste("/theme"))
        await it.until(lambda: it.text == "/theme")


async def test_a_message_that_returns_is_not_put_before_a_command() -> None:
    async with running((*ASKED, WAIT_FOR_INTERRUPT)) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.unanswered)
        await it.press("escape")
        await it.until(lambda: it.session.sent(Rewind))
        await it.press(*"!ls")
        it.session.emit(Rewound("u1", text="begin"))
        await it.shows("Put aside: begin")
        assert it.text == "!ls"


@pytest.mark.parametrize(("answered", "draft"), [(True, ""), (False, "more")])
async def test_an_interrupted_message_stays_with_an_answer_or_another_draft(answered: bool, draft: str) -> None:
    begun = (ItemStarted("a1", "text"), ItemDelta("a1", "Well")) if answered else ()
    async with running((*ASKED, *begun, WAIT_FOR_INTERRUPT)) as it:
        await it.say("begin")
        state = it.app.session.state
        await it.until(lambda: "a1" in state.running if answered else state.unanswered)
        await it.type(draft)
        await it.press("escape")
        await it.shows("⊘ interrupted")
        assert it.session.sent(Rewind) == []
        assert it.text == draft


async def test_enter_steers_and_tab_queues_while_the_model_works() -> None:
    async with running(WAITS) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        await it.say("also this")
        await it.type("and then that")
        await it.press("tab")
        await it.until(lambda: len(it.session.commands) == 3)
        assert it.session.commands[1:] == [Steer("also this"), Submit("and then that")]
        await it.shows("next step: also this", "after this turn: and then that")


async def test_up_takes_the_newest_waiting_message_back() -> None:
    async with running(WAITS) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        await it.type("later")
        await it.press("tab")
        await it.shows("after this turn: later · Up takes it back")
        await it.press("up")
        await it.until(lambda: it.text == "later")
        assert len(it.session.sent(EditQueue)) == 1
        await it.hides("after this turn: later")


async def test_the_newest_waiting_message_names_the_key_for_it_even_if_it_is_long() -> None:
    async with running(WAITS) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        for text in ("first", "word " * 60):
            await it.type(text)
            await it.press("tab")
        await it.shows("… · Up takes it back")
        assert it.screen().count("takes it back") == 1
        await it.press("escape")
        await it.until(lambda: it.text.startswith("first\nword word"))


async def test_a_message_left_over_from_an_earlier_turn_does_not_wait_for_a_running_one() -> None:
    left = (Queued("n1", "later"), Queued("n2", "at once", steer=True))
    async with running(session=Session(WAITS, history=[QueueChanged(left)])) as it:
        await it.shows(*(f"after the next turn: {text}" for text in ("later", "at once · Up takes it back")))
        await it.say("begin")
        await it.shows("after this turn: later", "next step: at once")


async def test_escape_gives_ten_waiting_messages_back_in_their_order() -> None:
    async with running(WAITS) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        for number in range(10):
            await it.type(f"message {number}")
            await it.press("tab" if number % 2 else "enter")
        await it.until(lambda: len(it.app.session.state.queue) == 10)
        await it.type("half")
        await it.press("escape")
        await it.until(lambda: it.session.sent(Interrupt))
        wanted = [*(f"message {number}" for number in range(10)), "half"]
        assert it.editor.message.split("\n") == wanted
        await it.until(lambda: not it.app.session.state.queue)
        assert len(it.session.sent(Submit)) == 6  # and none of them was sent again


async def test_what_was_written_at_a_budget_is_back_in_the_prompt() -> None:
    stopped = TurnEnded("interrupted", "stopped at a budget: $1.00 of the $1.00 of this turn are spent", "budget")
    async with running((stopped,)) as it:
        it.session.view.queue = (Queued("n1", "Only read the first two"),)
        await it.say("begin")
        await it.until(lambda: it.editor.message == "Only read the first two")
        await it.until(lambda: not it.session.view.queue)
        assert len(it.session.sent(Submit)) == 1


async def test_escape_closes_suggestions_then_clears_a_selection_then_interrupts() -> None:
    async with running(WAITS) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        await it.press("slash")
        await it.shows("What context does")
        await it.press("escape")
        await it.hides("What context does")
        await it.press("shift+left")
        assert not it.editor.selection.is_empty
        await it.press("escape")
        assert it.editor.selection.is_empty
        assert not it.session.sent(Interrupt)
        await it.press("escape")
        await it.until(lambda: it.session.sent(Interrupt))
        await it.until(lambda: not it.app.session.state.busy)
        assert it.text == "/"


async def test_an_interrupt_shows_at_once_even_when_the_session_does_not_answer() -> None:
    session = Session(WAITS)
    async with running(session=session) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        session.send = session.commands.append  # type: ignore[method-assign]
        await it.press("escape")
        assert "Interrupting…" in it.screen()


async def test_control_c_clears_the_text_and_control_y_brings_it_back() -> None:
    async with running() as it:
        await it.type("some words")
        await it.press("ctrl+c")
        assert it.text == ""
        await it.press("ctrl+y")
        assert it.text == "some words"


async def test_control_c_twice_within_a_second_quits_on_an_empty_prompt() -> None:
    async with running() as it:
        await it.press("ctrl+c")
        await it.shows("Press Ctrl+C again to quit")
        it.clock.now += 1.5
        await it.press("ctrl+c")
        assert not it.session.closed
        it.clock.now += 0.5
        await it.press("ctrl+c")
        await until(lambda: it.session.closed)


async def test_control_c_counts_as_the_second_only_right_after_the_first() -> None:
    async with running((TurnEnded("done"),)) as it:
        await it.at_once("ctrl+c", "h", "i", "enter", "ctrl+c")
        await it.until(lambda: it.session.sent(Submit))
        assert not it.session.closed


async def test_control_c_interrupts_a_turn_and_a_second_one_quits_even_if_it_hangs() -> None:
    session = Session(WAITS)
    async with running(session=session) as it:
        await it.say("begin")
        await it.until(lambda: it.app.session.state.busy)
        session.send = session.commands.append  # type: ignore[method-assign]
        await it.press("ctrl+c")
        assert it.session.sent(Interrupt)
        await it.press("ctrl+c")
        await until(lambda: it.session.closed)


async def test_over_a_turn_esc_closes_a_screen_and_says_only_that() -> None:
    async with running(session=Session(WAITS)) as it:
        await it.say("begin")
        await it.shows("esc to interrupt")
        it.app.interface.open("help")
        await it.until(lambda: it.app.main.list_view is not None)
        await it.until(lambda: "esc to interrupt" not in it.screen())
        await it.press("escape")
        await it.shows("esc to interrupt")


async def test_what_control_c_clears_comes_back() -> None:
    async with running() as it:
        await it.type("a draft")
        await it.press("ctrl+c")
        await it.shows("Cleared; Ctrl+Y restores the text")
        await it.press("ctrl+y")
        assert it.text == "a draft"


async def test_control_d_quits_on_an_empty_prompt_and_deletes_otherwise() -> None:
    async with running() as it:
        await it.type("abc")
        await it.press("ctrl+a", "ctrl+d")
        assert it.text == "bc"
        await it.press("delete", "delete", "ctrl+d")
        await until(lambda: it.session.closed)


async def test_control_n_continues_the_newest_session_before_the_first_message() -> None:
    earlier = StoredSession("old1", "Fix the login", "/proj", 0.0, 3, 100)
    resumed: list[str] = []

    async def resume(port: object, words: str) -> CommandResult:
        resumed.append(words)
        return CommandResult()

    commands = (*COMMANDS, SlashCommand("resume", "Continue", resume, arguments="[id]"))  # pyright: ignore[reportArgumentType]
    stored = ports(sessions=Sessions(lambda name: pytest.fail(name), [earlier]))
    options = {"commands": lambda: commands, "greets": True, **stored}
    async with running(answer("ok"), size=(120, 30), **options) as it:
        await it.type("draft")
        await it.press("ctrl+n")
        assert it.text == "draft"
        await it.press("ctrl+u")
        await it.until(lambda: it.app.session_start._newest)
        await it.press("ctrl+n")
        await it.until(lambda: resumed == ["old1"])
        await it.say("go")
        await it.shows("done")
        await it.press("ctrl+n")
        await it.shows("This session has begun; /resume lists the others")
        assert resumed == ["old1"]


async def test_shift_tab_goes_through_the_modes() -> None:
    async with running() as it:
        for mode in ("accept-edits", "plan", "auto", "default"):
            await it.press("shift+tab")
            await it.until(lambda mode=mode: f"\n {mode} ·" in it.screen())
        assert [command.mode for command in it.session.sent(SetMode)] == ["accept-edits", "plan", "auto", "default"]


async def test_shift_tab_leaves_out_the_modes_that_are_off_and_says_why() -> None:
    session = Session()
    why = "Mode accept-edits is off: you declined to trust this folder."
    session.view.refused_modes = {"accept-edits": why, "auto": why.replace("accept-edits", "auto")}
    async with running(session=session, size=(80, 24)) as it:
        for mode, skipped in (("plan", "accept-edits"), ("default", "auto")):
            await it.press("shift+tab")
            await it.until(lambda mode=mode: f"\n {mode} ·" in it.screen())
            await it.shows(f"Mode: {mode}. {session.view.refused_modes[skipped]}")
        await it.say("/mode")
        await it.shows("accept-edits  off: you declined to trust this folder.")
        assert [command.mode for command in it.session.sent(SetMode)] == ["plan", "default"]


async def test_shift_tab_settles_what_waits_only_where_the_user_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_controller, "MODE_REST", 1000.0)
    asks = [replace(ASK, request=f"p{number}", item=f"t{number}", acceptable=True) for number in (2, 3, 4)]
    running_tool = tool("t1", "run_command", "make test")
    async with running((*running_tool, WAIT_FOR_INTERRUPT)) as it:
        await it.say("go")
        await it.until(lambda: "t1" in it.app.session.state.running)
        for one in asks:
            it.session.emit(one)
        await it.shows("Make this change?", "(1 of 3)")
        await it.press("shift+tab")
        await it.shows("\n accept-edits ·", "Mode: accept-edits (accepts 3 waiting edits in a moment)")
        await it.press("shift+tab")
        await it.shows("\n plan ·", "Mode: plan (rejects 3 waiting edits in a moment)")
        assert not it.session.sent(SetMode)
        await it.press("shift+tab", "shift+tab")
        await it.shows("\n default ·")
        it.session.emit(replace(ASK, request="p5", item="t5", tool="read_file"))  # it may ask in every mode
        await it.shows("(1 of 4)")
        await it.press("shift+tab")
        await it.shows("Mode: accept-edits (runs the waiting calls that it allows in a moment)")
        await it.press("shift+tab")
        await it.shows("Mode: plan (rejects the waiting calls that it refuses in a moment)")
        await it.press("shift+tab", "shift+tab")
        await it.shows("\n default ·")
        assert not it.session.sent(SetMode)
        monkeypatch.setattr(session_controller, "MODE_REST", 0.01)
        await it.press("shift+tab")
        await it.until(lambda: it.session.sent(SetMode) == [SetMode("accept-edits")])
        await it.shows("Mode: accept-edits (file edits are accepted, commands still ask)")
        assert "t1" in it.app.session.state.running


async def test_a_mode_that_is_named_counts_at_once_in_place_of_the_one_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_controller, "MODE_REST", 1000.0)
    async with running((ASK, WAIT_FOR_INTERRUPT)) as it:
        await it.say("go")
        await it.shows("Make this change?")
        await it.press("shift+tab")
        await it.shows("\n accept-edits ·")
        it.app.interface.modes.set("plan")
        await it.shows("\n plan ·")
        assert it.session.sent(SetMode) == [SetMode("plan")]


async def test_control_t_shows_todos_when_there_are_some() -> None:
    async with running((TodosChanged((Todo("look", "completed"), Todo("fix [b]it[/b]", "in_progress"))),)) as it:
        await it.press("ctrl+t")
        await it.shows("No todos yet")
        await it.say("go")
        await it.until(lambda: it.app.session.state.todos)
        await it.press("ctrl+t")
        await it.shows("Todos 1/2", "☑ look", "▶ fix [b]it[/b]")
        await it.press("ctrl+t")
        await it.hides("Todos 1/2")


async def test_control_l_draws_again_and_changes_nothing() -> None:
    async with running(answer("Some answer")) as it:
        await it.say("go")
        await it.shows("Some answer")
        before = it.screen()
        await it.press("ctrl+l")
        assert it.screen() == before


async def test_page_keys_scroll_the_transcript_and_end_follows_again() -> None:
    async with running(answer("\n\n".join(f"paragraph {n}" for n in range(80)))) as it:
        await it.say("go")
        await it.shows("paragraph 79")
        await it.press("pageup")
        await it.hides("paragraph 79")
        assert not it.app.main.transcript.following
        await it.press("home")
        await it.shows("paragraph 0")
        await it.press("pagedown")
        await it.hides("› go")
        await it.press("end")
        await it.shows("paragraph 79")
        assert it.app.main.transcript.following


async def test_what_is_sent_from_further_up_is_in_sight() -> None:
    async with running(answer("\n\n".join(f"paragraph {n}" for n in range(80))), answer("the second answer")) as it:
        await it.say("go")
        await it.shows("paragraph 79")
        await it.press("home")
        await it.shows("paragraph 0")
        await it.say("/nothing")
        await it.shows("Unknown command /nothing")
        await it.press("home")
        await it.shows("paragraph 0")
        await it.say("and now?")
        await it.shows("the second answer")
        assert it.app.main.transcript.following


async def test_home_and_end_move_in_the_line_first() -> None:
    async with running(answer("\n\n".join(f"paragraph {n}" for n in range(80)))) as it:
        await it.say("go")
        await it.shows("paragraph 79")
        await it.type("words")
        await it.press("home")
        assert it.editor.cursor_location == (0, 0)
        assert "paragraph 79" in it.screen()
        await it.press("home")
        await it.shows("paragraph 0")


async def test_control_o_goes_through_three_densities() -> None:
    async with running() as it:
        for density, words in (("full", "Details on"), ("short", "Short view"), ("usual", "Normal view")):
            await it.press("ctrl+o")
            assert it.app.main.transcript.density == density
            await it.shows(words)


async def test_the_density_to_begin_with_and_the_form_of_diffs_are_settings() -> None:
    wanted = Preferences(density="short", diff="split")
    async with running(preferences=lambda: wanted) as it:
        assert it.app.main.transcript.density == "short"
        assert it.app.main.transcript.page.palette.split_from == 0


async def test_control_f_finds_in_the_transcript_and_escape_comes_back() -> None:
    async with running(answer("first needle\n\nsecond needle")) as it:
        await it.say("go")
        await it.shows("second needle")
        await it.type("draft")
        await it.press("ctrl+f")
        await it.press(*"needle")
        await it.shows("1 of 1")
        await it.press("escape")
        await it.shows("› draft")
        assert it.app.main.transcript.search_state.query == ""
        await it.until(lambda: it.app.focused is it.editor)


async def test_tab_on_an_empty_prompt_walks_the_transcript_and_typing_returns() -> None:
    async with running(answer("an answer")) as it:
        await it.say("go")
        await it.shows("an answer")
        await it.press("tab")
        await it.until(lambda: it.app.main.transcript.has_focus)
        assert it.app.main.transcript.cursor is not None
        await it.press("escape")
        await it.until(lambda: it.editor.has_focus)
        await it.press("tab", "x")
        await it.until(lambda: it.text == "x" and it.editor.has_focus)


@pytest.mark.parametrize("words", ["next", "yes", "open it", "undo this", "why", "jk", "go on", "by", "fix", "N"])
async def test_what_is_typed_while_browsing_goes_to_the_prompt_whole(words: str) -> None:
    async with running(answer("an answer")) as it:
        await it.say("go")
        await it.shows("an answer")
        await it.at_once("tab", *words)
        await it.until(lambda: it.text == words and it.editor.has_focus)
        assert it.app.main.transcript.cursor is None


async def test_a_letter_alone_acts_while_browsing() -> None:
    async with running(answer("an answer")) as it:
        await it.say("go")
        await it.shows("an answer")
        await it.press("tab")
        await it.shows("Browsing: Enter expands, y copies")
        last = it.app.main.transcript.cursor or 0
        await it.press("k", "k")
        assert it.app.main.transcript.cursor == last - 2
        it.clock.now += 5
        await it.press("y")
        await it.until(lambda: "Copied" in it.screen())
        it.clock.now += 5
        await it.press("x")
        await it.until(lambda: it.text == "x")


async def test_a_paste_into_the_transcript_goes_to_the_prompt() -> None:
    async with running(answer("an answer")) as it:
        await it.say("go")
        await it.shows("an answer")
        await it.press("tab")
        await it.until(lambda: it.app.main.transcript.has_focus)
        it.app.post_message(events.Paste("and then this"))
        await it.until(lambda: it.text == "and then this")
        await it.press("!")
        assert it.text == "and then this!"


async def test_up_and_down_walk_the_history_and_come_back_to_the_draft(tmp_path: Path) -> None:
    async with running(answer("1"), answer("2"), state=tmp_path) as it:
        await it.say("first")
        await it.until(lambda: not it.app.session.state.busy and len(it.session.sent(Submit)) == 1)
        await it.say("second")
        await it.until(lambda: len(it.session.sent(Submit)) == 2)
        await it.until(lambda: not it.app.session.state.busy)
        await it.type("draft")
        await it.press("up")
        assert it.text == "second"
        await it.press("up")
        assert it.text == "first"
        await it.press("up")
        assert it.text == "first"
        await it.press("down", "down")
        assert it.text == "draft"
    async with running(state=tmp_path) as it:
        await it.press("up")
        assert it.text == "second"


async def test_up_inside_of_several_lines_moves_the_cursor(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('"older"\n')
    async with running(state=tmp_path) as it:
        await it.type("one\ntwo")
        await it.press("up")
        assert it.text == "one\ntwo"
        assert it.editor.cursor_location[0] == 0
        await it.press("up")
        assert it.text == "older"


async def test_control_r_searches_the_history(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('"fix login"\n"run tests"\n"fix logout"\n')
    async with running(state=tmp_path) as it:
        await it.type("draft")
        await it.press("ctrl+r", "f", "i", "x")
        await it.shows("search history: fix")
        assert it.text == "fix logout"
        await it.press("ctrl+r")
        assert it.text == "fix login"
        await it.press("ctrl+r")
        assert it.text == "fix login"
        await it.press("escape")
        await it.until(lambda: it.text == "draft")
        await it.press("ctrl+r", "r", "u", "n", "enter")
        assert it.text == "run tests"
        assert not it.session.commands
        await it.hides("search history")


async def test_editing_keys_edit_the_query_of_a_history_search(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('"fix login page"\n"run tests"\n"fix logout"\n')
    async with running(state=tmp_path) as it:
        await it.press("ctrl+r", *"fix login")
        assert it.text == "fix login page"
        await it.press("ctrl+w")
        await it.shows("search history: fix ")
        assert it.text == "fix logout"
        await it.press("ctrl+u", *"run")
        assert it.text == "run tests"
        await it.press("ctrl+u")
        it.editor.take_paste("login\n")
        await it.shows("search history: login")
        assert it.text == "fix login page"
        await it.press("ctrl+a", "ctrl+k")
        await it.hides("search history")
        assert it.text == ""


async def test_line_editing_with_a_kill_ring_and_undo() -> None:
    async with running() as it:
        await it.type("alpha beta gamma")
        await it.press("ctrl+w")
        assert it.text == "alpha beta "
        await it.press("alt+b", "alt+d")
        assert it.text == "alpha  "
        await it.press("ctrl+y")
        assert it.text == "alpha beta "
        await it.press("ctrl+u")
        assert it.text == " "
        await it.press("ctrl+underscore")
        assert it.text == "alpha beta "
        await it.press("ctrl+a", "alt+f")
        assert it.editor.cursor_location == (0, 5)
        await it.press("ctrl+k")
        assert it.text == "alpha"
        await it.press("ctrl+y")
        assert it.text == "alpha beta "


async def test_several_kills_in_a_row_come_back_as_one() -> None:
    async with running() as it:
        await it.type("one two three")
        await it.press("ctrl+w", "ctrl+w")
        assert it.text == "one "
        await it.press("ctrl+y")
        assert it.text == "one two three"


async def test_completion_goes_on_in_a_folder_with_a_blank_in_its_name() -> None:
    files = ("my dir/one note.md", "my dir/two.md")
    async with running((TurnEnded("done"),), files=lambda: files) as it:
        await it.press(*"@my")
        await it.shows("my dir/")
        await it.press("tab")
        await it.until(lambda: it.text.startswith('@"my dir/'))
        it.editor.put('@"my dir/on')
        await it.shows("my dir/one note.md")
        await it.press("enter")
        assert it.text == '@"my dir/one note.md" '


async def test_kills_around_another_text_are_separate() -> None:
    async with running((TurnEnded("done"),)) as it:
        await it.say("an older message")
        await it.until(lambda: not it.app.session.state.busy)
        await it.type("one two")
        await it.press("ctrl+w", "up")
        await it.until(lambda: it.text == "an older message")
        await it.press("ctrl+w", "ctrl+u", "ctrl+y")
        assert it.text == "an older message"
        await it.press("alt+y")
        assert it.text == "two"


async def test_a_yank_is_replaced_only_where_it_was_made() -> None:
    async with running((TurnEnded("done"),)) as it:
        await it.say("an older message")
        await it.until(lambda: not it.app.session.state.busy)
        await it.type("one two")
        await it.press("ctrl+w", "x", "ctrl+u", "ctrl+y", "up")
        await it.until(lambda: it.text == "an older message")
        await it.press("alt+y")
        assert it.text == "an older message"


async def test_the_history_begins_beyond_the_rows_of_a_long_line() -> None:
    long = "word " * 40
    async with running((TurnEnded("done"),)) as it:
        await it.say("older")
        await it.until(lambda: not it.app.session.state.busy)
        await it.type(long)
        await it.press("up")
        assert it.text == long
        await it.press("up", "up")
        assert it.text == "older"
        await it.press("down")
        assert it.text == long


async def test_slash_popup_completes_with_tab_and_runs_with_enter() -> None:
    async with running() as it:
        await it.press("slash", "m", "o", "d", "e")
        await it.shows("/mode [mode]", "/model [provider/name]")
        await it.press("down", "tab")
        assert it.text == "/model "
        await it.press("ctrl+u", "slash", "c", "o", "n", "enter")
        await it.shows("context got []")
        assert it.text == ""


async def test_a_key_right_behind_a_name_completes_it_before_the_list_is_drawn() -> None:
    async with running() as it:
        await it.at_once(*"/mod", "tab")
        assert it.text == "/mode "
        await it.at_once("ctrl+u", *"/con", "enter")
        await it.shows("context got []")


async def test_arguments_complete_with_tab_and_run_with_enter_once_selected() -> None:
    async with running() as it:
        opened: list[tuple[str, ...]] = []
        it.app.interface.input._open_screen = lambda *asked: opened.append(asked)
        await it.press(*"/mode ")
        await it.shows("  default  asks", "  plan     only reads")
        await it.press("p", "tab")
        assert it.text == "/mode plan"
        await it.hides("only reads")
        await it.press("ctrl+u", *"/mode ", "up")
        await it.shows("› plan")
        await it.press("enter")
        await it.until(lambda: opened == [("pick_mode", "plan")])
        assert it.text == ""


async def test_enter_sends_arguments_as_typed_while_none_is_selected() -> None:
    async with running() as it:
        opened: list[tuple[str, ...]] = []
        it.app.interface.input._open_screen = lambda *asked: opened.append(asked)
        await it.press(*"/mode pl")
        await it.shows("  plan  only reads")
        await it.press("enter")
        await it.until(lambda: opened == [("pick_mode", "pl")])


async def test_file_completion_after_an_at_sign() -> None:
    async with running(files=lambda: ["src/app/main.py", "src/app/view.py", "README.md"]) as it:
        await it.press(*"see @view")
        await it.shows("› src/app/view.py")
        await it.press("tab")
        assert it.text == "see @src/app/view.py "
        await it.hides("› src/app/view.py")


@pytest.mark.parametrize("name", ["src/", "src/app.py"])
async def test_enter_sends_a_mention_that_is_typed_in_full(name: str) -> None:
    async with running(answer("ok"), files=lambda: ["src/app.py", "src/apple.py"]) as it:
        await it.press(*f"see @{name}")
        await it.shows(f"› {name}")
        await it.press("enter")
        await it.until(lambda: it.session.sent(Submit))
        assert it.session.sent(Submit)[0].text == f"see @{name}"


async def test_unknown_command_names_the_nearest_and_sends_nothing() -> None:
    async with running() as it:
        await it.say("/contxt")
        await it.shows("Unknown command /contxt. Did you mean /context? Nothing was sent.")
        assert not it.session.commands


async def test_a_path_is_text() -> None:
    async with running(answer("ok"), answer("ok")) as it:
        await it.say("/etc/hosts is wrong")
        await it.until(lambda: it.session.sent(Submit))
        await it.until(lambda: not it.app.session.state.busy)
        await it.say("/tmp/ is full")
        await it.until(lambda: len(it.session.sent(Submit)) == 2)
        assert [command.text for command in it.session.sent(Submit)] == ["/etc/hosts is wrong", "/tmp/ is full"]


async def test_exclamation_mark_runs_a_command_of_the_user() -> None:
    async with running() as it:
        await it.say("!ls -l")
        assert it.session.commands == [RunShell("ls -l")]
        await it.say("!")
        await it.shows("runs it in your own shell, for example !git status")
        assert it.session.commands == [RunShell("ls -l")]


async def test_a_hash_asks_where_a_note_goes_and_can_be_a_message(tmp_path: Path) -> None:
    async with running(answer("ok")) as it:
        await it.say("# use pytest -q")
        await it.shows("Add to the instructions: use pytest -q", "Add it to OPENCLI.md", "Send it as a message")
        assert not it.session.commands
        it.clock.now += 1
        await it.press("escape")
        await it.until(lambda: it.text == "# use pytest -q")
        await it.press("enter")
        await it.shows("Send it as a message")
        it.clock.now += 1
        await it.press("down", "down", "enter")
        await it.until(lambda: it.session.sent(Submit) == [Submit("# use pytest -q")])


async def test_a_note_is_shown_above_the_call_that_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[object] = []

    async def remember(*_: object, own: bool) -> CommandResult:
        blocks = it.app.main.transcript.page.blocks
        before.extend(blocks[place] for place in range(len(blocks)))
        return CommandResult.text("Added to OPENCLI.md")

    monkeypatch.setattr("swecli.tui.remembering.remember", remember)
    async with running() as it:
        await it.say("# use pytest -q")
        await it.shows("Add it to OPENCLI.md")
        it.clock.now += 1
        await it.press("1")
        await it.shows("Added to OPENCLI.md")
        assert it.screen().count("# use pytest -q") == 1
        assert isinstance(before[-1], ShownBlock)
        assert before[-1].title == "# use pytest -q"


async def test_a_command_with_the_terminal_gets_no_key_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Mapping[str, str]] = []

    async def run(app: object, command: str, cwd: Path, environment: Mapping[str, str]) -> Ran:
        given.append(environment)
        return Ran("", 0, 0.1)

    monkeypatch.setattr("swecli.tui.external.run_in_terminal", run)
    monkeypatch.setenv("GATEWAY", "sk-secret")
    monkeypatch.setenv("OTHER", "kept")
    async with running(preferences=lambda: Preferences(key_variables=frozenset({"GATEWAY"}))) as it:
        await it.say("!!ls")
        await it.until(lambda: given)
    assert "GATEWAY" not in given[0]
    assert given[0]["OTHER"] == "kept"


async def test_mode_and_model_are_picked_from_a_list() -> None:
    async with running(models=lambda: ["openai/gpt", "anthropic/sonnet"]) as it:
        await it.say("/mode")
        await it.shows("read-only")
        await it.press("p", "l", "enter")
        await it.until(lambda: it.session.sent(SetMode) == [SetMode("plan")])
        await it.say("/model")
        await it.shows("openai/gpt")
        await it.press(*"other/one", "enter")
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("other/one")])
        await it.until(lambda: it.editor.has_focus)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command opens may take as long as a busy machine needs."""
    monkeypatch.setattr(editor, "OPENING", PATIENCE)


@pytest.mark.usefixtures("patient")
async def test_keys_right_behind_a_command_go_to_what_it_opens() -> None:
    async with running(models=lambda: ["openai/gpt", "anthropic/sonnet"]) as it:
        it.post(*"/mode", "enter", *"plan", "enter", *"/model", "enter", "down", "enter", *"next")
        await it.until(lambda: it.session.sent(SetModel) == [SetModel("openai/gpt")])
        assert it.session.sent(SetMode) == [SetMode("plan")]
        await it.until(lambda: it.text == "next")


async def test_what_is_typed_behind_a_command_that_opens_nothing_stays_in_order() -> None:
    async with running(answer("ok")) as it:
        it.post(*"/context", "enter", "a")
        it.app.post_message(events.Paste("bc"))
        it.post(*"de", "enter", *"f")
        await it.until(lambda: [sent.text for sent in it.session.sent(Submit)] == ["abcde"])
        await it.until(lambda: it.text == "f")
        assert "context got []" in it.screen()


@pytest.mark.usefixtures("patient")
async def test_keys_that_come_while_others_wait_do_not_overtake_them() -> None:
    async with running(models=lambda: ["openai/gpt", "anthropic/sonnet"]) as it:

        async def one_by_one(keys: str, passes: int) -> None:
            for _ in range(passes):
                await asyncio.sleep(0)
            for key in keys:
                it.post(key)
                await asyncio.sleep(0)

        for passes in range(16):  # of the loop, until the rest comes
            it.post(*"/context", "enter", *"ab")
            await one_by_one("cdefgh", passes)
            await it.until(lambda: len(it.text) == 8)
            assert it.text == "abcdefgh"
            it.editor.clear()
            await it.settled()
        for passes in range(0, 40, 4):
            it.post(*"/model", "enter", *"so")
            await one_by_one("nnet", passes)
            it.post("enter", *"ab")
            await one_by_one("cdefgh", passes)
            await it.until(lambda: len(it.text) == 8)
            assert it.text == "abcdefgh"
            assert set(it.session.sent(SetModel)) == {SetModel("anthropic/sonnet")}
            it.editor.clear()
            await it.settled()


async def test_a_command_that_takes_long_does_not_keep_what_is_typed() -> None:
    gate = asyncio.Event()

    async def wait(_port: Any, _text: str) -> CommandResult:
        await gate.wait()
        return CommandResult.text("at last")

    command = SlashCommand("slow", "takes long", wait, while_busy=True)
    async with running(commands=lambda: (command,)) as it:
        it.post(*"/slow", "enter", *"meanwhile")
        await it.until(lambda: it.text == "meanwhile")
        assert "at last" not in it.screen()
        gate.set()
        await it.shows("at last")


async def test_help_lists_keys_and_commands() -> None:
    async with running(size=(120, 90)) as it:
        await it.press("question_mark")
        await it.shows("Shift+Tab", "What context does")
        await it.press(*"tokens")
        await it.shows("/tokens")


async def test_one_more_folder_opens_the_session_again(tmp_path: Path) -> None:
    again = Session(answer("opened again"))

    async def new_session() -> Session:
        return again

    async with running(new_session=new_session, commands=lambda: (ADD_DIR,)) as it:
        await it.say(f"/add-dir {tmp_path}")
        await it.until(lambda: it.added == [tmp_path.resolve()])
        await it.until(lambda: it.app.session.port is again)
        await it.say("hello")
        await it.shows("opened again")


async def test_clear_opens_a_new_session_when_there_is_a_way_to() -> None:
    fresh = Session(answer("fresh"))

    async def new_session() -> Session:
        return fresh

    async with running((TODOS, *answer("stale")), new_session=new_session) as it:
        await it.say("go")
        await it.shows("stale")
        await it.until(lambda: not it.app.session.state.busy)
        await it.press("ctrl+t")
        await it.shows("Todos 1/3")
        await it.say("/clear")
        await it.until(lambda: it.session.closed and it.app.session.port is fresh)
        await it.hides("stale")
        await it.hides("Todos")
        await it.say("again")
        await it.shows("fresh")


async def test_quit_saves_nothing_and_closes_the_session() -> None:
    async with running() as it:
        await it.say("/quit")
        await until(lambda: it.session.closed)


async def test_replies_reach_the_session_while_a_draft_waits() -> None:
    ask = PermissionRequested(
        "p1", "t1", "edit_file", "a.py", (DiffBlock("a.py", "x\n", "y\n"),), "edits ask", "b", "Edit"
    )
    async with running((ask,)) as it:
        await it.say("go")
        await it.shows("Make this change?")
        it.clock.now += 1
        await it.press("y")
        await it.until(lambda: it.session.sent(ReplyPermission) == [ReplyPermission("p1", "once")])
        await it.until(lambda: it.editor.has_focus)


async def test_a_message_that_no_model_can_take_stays_in_the_prompt() -> None:
    async with running(session=Session(model=False)) as it:
        await it.shows("Connect a model")
        await it.press("escape")
        await it.until(lambda: it.editor.has_focus)
        await it.say("my long question")
        await it.shows("your message waits in the prompt")
        assert it.text == "my long question"


async def test_a_command_that_waits_for_consent_can_be_answered() -> None:
    ask = PermissionRequested(
        "p9", "t9", "write_file", "OPENCLI.md", (DiffBlock("OPENCLI.md", None, "x\n"),), "ask", "b"
    )
    session = Session()

    async def write(port: Any, arguments: str) -> CommandResult:
        session.emit(ask)
        await until(lambda: session.sent(ReplyPermission))
        session.emit(PermissionResolved("p9", "once"))
        return CommandResult.text("written")

    command = SlashCommand("write", "Writes", write)
    async with running(session=session, commands=lambda: (command,)) as it:
        await it.say("/write")
        await it.shows("Write this file?")
        it.clock.now += 1
        await it.press("y")
        await it.shows("written")
