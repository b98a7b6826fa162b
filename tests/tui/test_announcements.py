"""Title, progress and notifications: what is written for which state, and to which terminal."""

from __future__ import annotations

import pytest

from swecli.core.protocol.events import QuestionAsked, TurnEnded
from swecli.tui.preferences import Notify
from swecli.tui.session_state import UiState
from swecli.tui.terminal import Announcer, shows_progress, through, usual_notification

QUESTION = QuestionAsked("q1", "i1", ())


def announcer(
    notify: Notify = "bell", *, title: bool = False, progress: bool = False, place: str = "work", **environ: str
) -> Announcer:
    environ = {"TERM": "xterm-256color", **environ}
    return Announcer(environ, place, notify=notify, title=title, progress="on" if progress else "off")


def test_nothing_is_told_while_the_terminal_has_the_focus() -> None:
    it = announcer()
    assert it.follow(UiState(busy=True), watched=True) == ""
    assert it.follow(UiState(busy=True, requests=[QUESTION]), watched=True) == ""
    assert it.follow(UiState(ended=TurnEnded("done")), watched=True) == ""


def test_a_question_and_the_end_of_a_turn_are_told_once_each() -> None:
    it = announcer("osc9")
    assert it.follow(UiState(busy=True), watched=False) == ""
    waits = UiState(busy=True, requests=[QUESTION])
    assert it.follow(waits, watched=False) == "\x1b]9;work: needs your answer\x07"
    assert it.follow(waits, watched=False) == ""
    assert it.follow(UiState(busy=True), watched=False) == ""
    ended = UiState(ended=TurnEnded("error"))
    assert it.follow(ended, watched=False) == "\x1b]9;work: the turn ended with an error\x07"
    assert it.follow(ended, watched=False) == ""


def test_a_session_that_opens_unwatched_tells_nothing() -> None:
    it = announcer()
    assert it.follow(UiState(ended=TurnEnded("done")), watched=False) == ""


@pytest.mark.parametrize(
    ("notify", "written"),
    [
        ("bell", "\x07"),
        ("osc777", "\x1b]777;notify;swecli;a,b: needs your answer\x07"),
        ("off", ""),
    ],
)
def test_ways_of_telling(notify: Notify, written: str) -> None:
    it = announcer(notify, place="a;b")
    assert it.follow(UiState(requests=[QUESTION]), watched=False) == written


def test_names_with_control_characters_can_not_end_a_sequence() -> None:
    it = announcer("osc9", title=True, place="x\x07\x1b]52;c;AAAA\x07\x9c\ny")
    out = it.follow(UiState(requests=[QUESTION]), watched=False)
    assert out.count("\x07") == 2
    assert out.count("\x1b") == 3
    assert "\n" not in out
    assert "\x9c" not in out


def test_the_title_follows_and_the_shells_own_comes_back() -> None:
    it = announcer(title=True)
    assert it.farewell() == ""
    assert it.follow(UiState(), watched=True) == "\x1b[22;0t\x1b]0;work\x07"
    assert it.follow(UiState(), watched=True) == ""
    assert it.follow(UiState(busy=True), watched=True) == "\x1b]0;● work\x07"
    assert it.follow(UiState(busy=True, requests=[QUESTION]), watched=True) == "\x1b]0;? work\x07"
    assert it.farewell() == "\x1b[23;0t"


@pytest.mark.parametrize("term", ["", "linux", "dumb", "unknown"])
def test_terminals_without_a_title_get_none(term: str) -> None:
    assert announcer(title=True, TERM=term).follow(UiState(busy=True), watched=True) == ""


def test_progress_begins_halts_and_ends() -> None:
    it = announcer(progress=True)
    assert it.follow(UiState(busy=True), watched=True) == "\x1b]9;4;3;0\x07"
    assert it.follow(UiState(busy=True, requests=[QUESTION]), watched=True) == "\x1b]9;4;4;100\x07"
    assert it.farewell() == "\x1b]9;4;0;0\x07"
    assert it.follow(UiState(), watched=True) == "\x1b]9;4;0;0\x07"
    assert it.farewell() == ""


def test_before_the_settings_are_known_nothing_is_told() -> None:
    it = Announcer({"TERM": "xterm"}, "work")
    assert it.follow(UiState(busy=True, requests=[QUESTION]), watched=False) == ""


def test_multiplexers_pass_it_on() -> None:
    it = announcer("osc9", TMUX="/tmp/tmux,1,0")
    told = it.follow(UiState(requests=[QUESTION]), watched=False)
    assert told == "\x1bPtmux;\x1b\x1b]9;work: needs your answer\x07\x1b\\"
    assert through("\x1b]9;x\x07", {"STY": "1.tty"}) == "\x1bP\x1b]9;x\x07\x1b\\"
    assert announcer(title=True, STY="1.tty").follow(UiState(), watched=True).endswith("\x1bkwork\x1b\\")


def test_known_terminals() -> None:
    assert usual_notification({"TERM_PROGRAM": "ghostty"}) == "osc9"
    assert usual_notification({"TERM": "foot"}) == "osc777"
    assert usual_notification({"TERM": "xterm-256color"}) == "bell"
    assert shows_progress({"WT_SESSION": "1"})
    assert not shows_progress({"TERM_PROGRAM": "ghostty", "TMUX": "x"})
    assert not shows_progress({"TERM_PROGRAM": "iTerm.app"})
