"""Decisions without a screen: ladders, the meaning of a line, the reduced state, the activity line."""

from __future__ import annotations

import itertools

import pytest

from swecli.commands.base import SHELL_USE
from swecli.commands.registry import COMMANDS, CommandCall
from swecli.core.checkpoints.history import RunChanges
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import (
    Body,
    CallProgress,
    CompactionFailed,
    CompactionStarted,
    Event,
    FileChanged,
    HooksRunning,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    PromptProgress,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    Queued,
    RetryScheduled,
    SessionStarted,
    TodosChanged,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolCallPart
from swecli.core.protocol.request_events import Question
from swecli.tui import connect, session_state, status_bar
from swecli.tui.session_state import UiState
from swecli.tui.submission import NotSent, Say, Shell, interpret
from swecli.tui.way_out import KeyContext, cancel_step, escape_step


def state_after(*bodies: Body) -> UiState:
    reduced = UiState()
    for seq, body in enumerate(bodies, 1):
        session_state.feed(reduced, Event(seq, 1000.0 + seq, "s", 1, body))
    return reduced


# --- ladders ---


def test_escape_closes_then_clears_then_interrupts() -> None:
    everything: dict[str, bool] = dict.fromkeys(("overlay", "panel", "selection", "busy"), True)
    for name, step in (("overlay", "overlay"), ("panel", "panel"), ("selection", "selection"), ("busy", "interrupt")):
        assert escape_step(KeyContext(**everything)) == step  # type: ignore[arg-type]
        everything[name] = False
    assert escape_step(KeyContext(text=True)) == "nothing"


def test_escape_interrupts_only_when_nothing_is_open() -> None:
    for values in itertools.product((False, True), repeat=4):
        overlay, panel, selection, busy = values
        now = KeyContext(overlay, panel, False, selection, busy)
        assert (escape_step(now) == "interrupt") == (values == (False, False, False, True))
    assert escape_step(KeyContext(panel=True, approval=True, busy=True, unread=True)) == "interrupt"


def test_control_c_quits_only_on_the_second_press_without_text() -> None:
    assert cancel_step(KeyContext()) == "arm"
    assert cancel_step(KeyContext(armed=0.9)) == "quit"
    assert cancel_step(KeyContext(armed=1.1)) == "arm"
    assert cancel_step(KeyContext(armed=0.5, text=True)) == "clear"
    assert cancel_step(KeyContext(armed=0.5, busy=True)) == "quit"
    assert cancel_step(KeyContext(busy=True, text=True)) == "interrupt"
    assert cancel_step(KeyContext(panel=True, approval=True, busy=True)) == "interrupt"
    assert cancel_step(KeyContext(panel=True)) == "panel"


def test_control_c_never_quits_over_a_selection() -> None:
    assert cancel_step(KeyContext(selection=True, armed=0.1)) == "copy"
    assert set(KeyContext.__struct_fields__) >= {"armed", "selection"}


# --- lines ---


@pytest.mark.parametrize(
    "text",
    ["/etc/hosts is wrong", "/usr/bin/x why?", "/tmp/ is full", "a /help", "//", "/ help", "/a.b", "text"],
)
def test_text_for_the_model(text: str) -> None:
    assert interpret(text, lambda: COMMANDS) == Say(text)


@pytest.mark.parametrize("text", ["/tmp is full", "/tmp", "/usr zz"])
def test_one_slash_word_is_a_command_even_if_such_a_path_exists(text: str) -> None:
    assert isinstance(interpret(text, lambda: COMMANDS), NotSent)


def test_other_lines() -> None:
    assert interpret(" \n", lambda: COMMANDS) is None
    assert interpret("!ls -l\n", lambda: COMMANDS) == Shell("ls -l")
    assert interpret("!! npm login", lambda: COMMANDS) == Shell("npm login", in_terminal=True)
    assert interpret("!!", lambda: COMMANDS) == NotSent(SHELL_USE)
    assert interpret(" ! ", lambda: COMMANDS) == NotSent(SHELL_USE)
    for text, name, arguments in (
        ("?", "help", ""),
        ("/HELP", "help", ""),
        ("/q", "quit", ""),
        ("exit", "quit", ""),
        ("Quit\n", "quit", ""),
        (":q", "quit", ""),
        ("/mode  plan ", "mode", "plan"),
    ):
        meaning = interpret(text, lambda: COMMANDS)
        assert isinstance(meaning, CommandCall)
        assert (meaning.command.name, meaning.arguments) == (name, arguments)
    unknown = interpret("/contxt x", lambda: COMMANDS)
    assert isinstance(unknown, NotSent)
    assert "/context" in unknown.message


def test_a_word_that_quits_is_a_message_with_other_words_or_something_attached() -> None:
    for text in ("exit the loop", "quit?", "exits"):
        assert interpret(text, lambda: COMMANDS) == Say(text)
    assert interpret("exit", lambda: COMMANDS, bare=False) == Say("exit")


# --- state ---


def test_a_turn_from_start_to_end() -> None:
    ask = PermissionRequested("p", "t", "edit_file", "a", (), "why", "hash")
    busy = state_after(
        TurnStarted("u"), ItemStarted("t", "tool", "edit_file"), ask, QueueChanged((Queued("q", "later"),))
    )
    assert busy.busy
    assert busy.requests == [ask]
    for body in (PermissionResolved("p", "once"), TurnEnded("interrupted")):
        session_state.feed(busy, Event(9, 1009.0, "s", 1, body))
    assert not busy.busy
    assert busy.requests == []
    assert not busy.running
    assert [entry.text for entry in busy.queue] == ["later"]


def test_changed_files_are_the_newest_last_and_known_by_what_was_there_before() -> None:
    changes = (FileChanged("/a", None, "1"), FileChanged("/b", "1", "2"), FileChanged("/a", "1", "2"))
    assert list(state_after(*changes).changed.items()) == [("/b", True), ("/a", False)]


def test_the_record_tells_what_a_run_changed_and_reports_tell_the_rest() -> None:
    reports = (FileChanged("/undone", None, "1"), FileChanged("/a", None, "1"), FileChanged("/tree/x", "1", "2"))
    state = state_after(*reports)
    state.earlier = {"/a": True, "/old": True}
    run = RunChanges({"/moved": False, "/a": False}, frozenset(("/moved", "/a", "/undone")))
    found = list(session_state.changed_in_run(state, run).items())
    assert found == [("/old", True), ("/tree/x", True), ("/moved", False), ("/a", True)]
    assert list(session_state.changed_in_run(state, None)) == ["/old", "/undone", "/a", "/tree/x"]


def test_reports_of_an_earlier_run_do_not_count() -> None:
    resumed = SessionStarted("/", "m", "default", "0", resumed=True)
    assert list(state_after(FileChanged("/a", None, "1"), resumed, FileChanged("/b", None, "1")).changed) == ["/b"]


def test_a_request_of_an_item_that_ended_is_not_asked_any_more() -> None:
    ask = PermissionRequested("p", "t", "edit_file", "a", (), "why", "hash")
    assert state_after(ItemStarted("t", "tool"), ask, ItemCompleted("t", "interrupted")).requests == []
    assert state_after(TurnStarted("u"), ask, SessionStarted("/", "m", "default", "0", resumed=True)).requests == []


def test_a_question_that_no_turn_asks_outlives_turns() -> None:
    asked = QuestionAsked("q", "", (Question("Use them?", ()),))
    waiting = state_after(TurnStarted("u"), asked, TurnEnded("done"), TurnStarted("v"))
    assert waiting.requests == [asked]
    session_state.feed(waiting, Event(9, 1009.0, "s", 1, QuestionAnswered("q", ())))
    assert waiting.requests == []
    assert state_after(asked, SessionStarted("/", "m", "default", "0", resumed=True)).requests == []


def test_the_last_answer_is_text_of_the_model() -> None:
    items = ItemStarted("a", "text"), ItemCompleted("a", "ok", (TextPart("answer"),)), ItemStarted("u", "user")
    assert state_after(*items, ItemCompleted("u", "ok", (TextPart("question"),))).last_answer == "answer"


def test_todos() -> None:
    assert state_after(TodosChanged((Todo("a"),)), TodosChanged((Todo("b"),))).todos == (Todo("b"),)


# --- activity ---

BEGUN = (TurnStarted("u"),)


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        ((), ""),
        (BEGUN, "Waiting for the model… 59 s"),
        ((*BEGUN, ItemStarted("r", "reasoning")), "Reasoning… 59 s"),
        ((*BEGUN, ItemStarted("a", "text")), "Writing… 59 s"),
        ((*BEGUN, ItemStarted("t", "tool", "edit_file")), "Preparing edit_file… 59 s"),
        (
            (
                *BEGUN,
                ItemStarted("t", "tool", "run_command"),
                ItemCheckpointed("t", ToolCallPart("c", "run_command", "{}"), "make test", running=True),
            ),
            "Running make test · 57 s",
        ),
        ((*BEGUN, CallProgress()), "Preparing a call… 59 s"),
        ((*BEGUN, ItemStarted("a", "text"), CallProgress("write_file", 900)), "Preparing write_file… 59 s"),
        ((*BEGUN, ItemStarted("a", "text"), CallProgress("write_file"), ItemDelta("a", "no")), "Writing… 59 s"),
        ((*BEGUN, CallProgress("write_file", 900), RetryScheduled(1, 3, 9, "server", "x")), "Retry 1 of 3 now"),
        ((*BEGUN, PromptProgress()), "Waiting: the server has not begun to read the prompt… 59 s"),
        ((*BEGUN, PromptProgress(slots=1)), "The server's one slot serves an earlier request… 59 s"),
        ((*BEGUN, PromptProgress(slots=2)), "Both slots of the server serve earlier requests… 59 s"),
        ((*BEGUN, PromptProgress(slots=4)), "All 4 slots of the server serve earlier requests… 59 s"),
        (
            (*BEGUN, PromptProgress(512, 9_000)),
            "The model reads the prompt: 512 of 9,000 tokens… 59 s",
        ),
        (
            (*BEGUN, RetryScheduled(2, 0, 1.0, "overloaded", "Loading model"), PromptProgress(0, 9_000)),
            "The model reads the prompt: 0 of 9,000 tokens… 59 s",
        ),
        ((*BEGUN, PromptProgress(9_000, 9_000)), "Waiting for the model… 59 s"),
        ((*BEGUN, PromptProgress(512, 9_000), ItemStarted("m", "text")), "Writing… 59 s"),
        ((*BEGUN, HooksRunning(1, "Stop", ("/w/a.sh",))), "Running the Stop hook a.sh · 59 s"),
        ((*BEGUN, HooksRunning(1, "Stop", ("/w/a.sh",)), HooksRunning(1, "Stop")), "Waiting for the model… 59 s"),
        ((*BEGUN, CompactionStarted("k", "auto", "s", 5)), "Compacting the context… 59 s"),
        ((CompactionStarted("k", "manual", "s", 5),), "Compacting the context… 59 s"),
        ((*BEGUN, CompactionStarted("k", "auto", "s", 5), CompactionFailed("k", "no")), "Waiting for the model… 59 s"),
        (
            (
                *BEGUN,
                ItemStarted("t", "tool", "run_command"),
                ItemCheckpointed("t", TextPart(""), "make", awaits="recording the files first"),
            ),
            "Running make: recording the files first… 59 s",
        ),
        ((*BEGUN, RetryScheduled(2, 6, 70.0, "rate_limit", "HTTP 429")), "Retry 2 of 6 in 12 s"),
        ((*BEGUN, RetryScheduled(4, 0, 68.0, "network", "no connection", "h:1")), "Can't reach h:1; next try in 10 s"),
        (
            (*BEGUN, RetryScheduled(1, 0, 58.0, "network", "no connection to h:1: Name or service not known", "h:1")),
            "Can't reach h:1 (Name or service not known); trying again",
        ),
        (
            (*BEGUN, RetryScheduled(1, 0, 58.0, "network", "no connection to h:1 in time", "h:1")),
            "Can't reach h:1 (no answer in time); trying again",
        ),
        ((*BEGUN, RetryScheduled(4, 0, 58.0, "network", "no connection", "h:1")), "Can't reach h:1; trying again"),
        ((*BEGUN, RetryScheduled(2, 6, 70.0, "rate_limit", "HTTP 429"), ItemStarted("a", "text")), "Writing… 59 s"),
        ((*BEGUN, ItemStarted("a", "text"), ItemDelta("a", "x"), TurnEnded("done")), ""),
    ],
)
def test_what_is_going_on(bodies: tuple[Body, ...], expected: str) -> None:
    found = state_after(*bodies)
    found.heard = 1060.0
    what = status_bar.describe(found, now=1060.0).text
    assert what == expected


def test_the_time_of_a_question_is_counted_from_when_it_was_asked() -> None:
    asked = [PermissionRequested(name, "t", "run_command", "make", (), "asks", "hash") for name in ("p1", "p2")]
    waiting = state_after(*BEGUN, ItemStarted("a", "text"), asked[0], asked[1])
    assert status_bar.describe(waiting, now=1018.0).text == "Waiting for your answer 15 s"
    session_state.feed(waiting, Event(5, 1018.0, "s", 1, PermissionResolved("p1", "once")))
    assert status_bar.describe(waiting, now=1020.0).text == "Waiting for your answer 2 s"


def test_nothing_spins_while_everything_waits_for_the_user() -> None:
    asked = PermissionRequested("p1", "t", "run_command", "make", (), "asks", "hash")
    line = status_bar.ActivityLine()
    rests: list[bool] = []
    for bodies in ((), (asked,), (asked, PermissionResolved("p1", "once"))):
        line._state = state_after(*BEGUN, ItemStarted("a", "text"), *bodies)
        rests.append(line._rests)
    assert rests == [False, True, False]


def test_the_time_of_work_leaves_out_what_the_user_took() -> None:
    asked = PermissionRequested("p1", "t", "run_command", "make", (), "asks", "hash")
    working = state_after(*BEGUN, ItemStarted("a", "text"), asked)
    begun, since = working.turn_since, working.asked_since
    session_state.feed(working, Event(5, since + 40.0, "s", 1, PermissionResolved("p1", "once")))
    working.heard = since + 45.0
    assert status_bar.describe(working, now=since + 45.0).text == f"Writing… {since - begun + 5:.0f} s"


def test_a_running_call_has_the_time_that_its_line_shows() -> None:
    working = state_after(*BEGUN, ItemStarted("a", "tool", name="run_command", title="sleep 8"))
    call = ToolCallPart("c", "run_command", "{}")
    session_state.feed(working, Event(5, 1040.0, "s", 1, ItemCheckpointed("a", call, running=True)))
    session_state.feed(working, Event(6, 1042.0, "s", 1, ItemCheckpointed("a", call, "sleep 8", running=True)))
    assert status_bar.describe(working, now=1045.0).text == "Running sleep 8 · 5 s"


def test_a_long_command_tells_the_key_that_moves_it_to_the_background() -> None:
    working = state_after(*BEGUN, ItemStarted("a", "tool", name="run_command", title="sleep 8"))
    since = working.running["a"].since
    hint = "esc to interrupt · Ctrl+B moves it to the background"
    assert status_bar.describe(working, now=since + 60.0, background="Ctrl+B").stop == "esc to interrupt"
    working.running["a"].executing = True
    assert status_bar.describe(working, now=since + 4.0, background="Ctrl+B").stop == "esc to interrupt"
    assert status_bar.describe(working, now=since + 5.0, background="Ctrl+B").stop == hint
    assert status_bar.describe(working, now=since + 5.0).stop == "esc to interrupt"
    own = state_after(ItemStarted("a", "user", name="shell", title="make"))
    assert status_bar.describe(own, now=own.running["a"].since + 5.0, background="Ctrl+B").stop == hint


def test_silence_of_the_model_is_told() -> None:
    running = state_after(*BEGUN, ItemStarted("a", "text"), ItemDelta("a", "x"))
    running.heard = 1030.0
    assert status_bar.describe(running, now=1039.0).text == "Writing… 38 s"
    assert status_bar.describe(running, now=1043.0).text == "Writing… 42 s · no output for 13 s"
    running.turn_since = running.heard
    assert status_bar.describe(running, now=1043.0).text == "Writing… 13 s · no output for 13 s"
    running.running["a"].executing = True
    assert "no output" not in status_bar.describe(running, now=1043.0).text


def test_the_time_of_a_turn_tells_of_the_silence_before_its_first_word() -> None:
    waiting = state_after(*BEGUN)
    waiting.turn_since = waiting.heard = 1000.0
    assert status_bar.describe(waiting, now=1090.0).text == "Waiting for the model… 1m30s"
    waiting.turn_since = 900.0
    assert status_bar.describe(waiting, now=1090.0).text == "Waiting for the model… 3m10s · no output for 1m30s"
    waiting.prompt = PromptProgress(512, 1_035)
    assert status_bar.describe(waiting, now=1090.0).text == "The model reads the prompt: 512 of 1,035 tokens… 3m10s"


def test_what_is_waited_for_before_the_model_is_asked_is_named() -> None:
    waiting = state_after(*BEGUN, Notice("Waiting for tools: hub", topic="tools"))
    now = waiting.turn_since + 20
    assert status_bar.describe(waiting, now=now) == ("Waiting for tools: hub", " · 20 s", "esc to continue without")
    on = state_after(*BEGUN, Notice("Waiting for tools: hub", topic="tools"), Notice("Continuing", "warning", "tools"))
    assert status_bar.describe(on, now=on.turn_since + 20).text.startswith("Waiting for the model…")
    waiting.interrupting = True
    session_state.feed(waiting, Event(9, 1009.0, "s", 1, Notice("Continuing", "warning", "tools")))
    assert not waiting.interrupting


def test_the_first_run_names_keys_and_never_their_values() -> None:
    shown = repr(connect.model_lines({"OPENAI_API_KEY": "sk-very-secret", "OLLAMA_HOST": ""}, ()))
    assert "OPENAI_API_KEY" in shown
    assert "OLLAMA_HOST" not in shown
    assert "sk-very-secret" not in shown
    assert "swecli demo" in repr(connect.model_lines({}, ()))


def test_a_question_of_a_subagent_outlives_the_turn_until_it_is_settled() -> None:
    state = state_after(TurnStarted("u1"), PermissionRequested("p1", "t1", "run_command", "make", (), "why", "b"))
    asked = PermissionRequested("p2", "t2", "run_command", "make", (), "why", "b")
    session_state.feed(state, Event(8, 1008.0, "s", 1, asked, "agent-1"))
    session_state.feed(state, Event(9, 1009.0, "s", 1, TurnEnded("done")))
    assert state.requests == [asked]
    session_state.feed(state, Event(10, 1010.0, "s", 1, PermissionResolved("p2", "cancelled", "engine"), "agent-1"))
    assert state.requests == []
