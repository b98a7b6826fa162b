"""The approval panel: it shows what would run, and nothing approves by accident."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from textual import events
from textual._compositor import Compositor

from swecli.core.protocol.blocks import DiffBlock, TerminalBlock, TextBlock
from swecli.core.protocol.commands import Interrupt, ReplyPermission
from swecli.core.protocol.events import PermissionRequested, PermissionResolved
from swecli.tui.dock import panel
from swecli.tui.dock.approval import ApprovalPanel
from swecli.tui.screens.board import Board
from tests.support.fake_session import WAIT_FOR_INTERRUPT
from tests.tui.scenes import TODOS
from tests.tui.support import Running, Session, running


def ask(
    number: int = 1, *, rule: str | None = "Edit(src/**)", old: str = "a\n", new: str = "b\n"
) -> PermissionRequested:
    blocks = (DiffBlock("src/a.py", old, new),)
    return PermissionRequested(f"p{number}", f"t{number}", "edit_file", "src/a.py", blocks, "Edits ask.", "hash", rule)


def run(command: str) -> PermissionRequested:
    blocks = (TerminalBlock(command, ""),)
    return PermissionRequested("p1", "t1", "run_command", command, blocks, "Commands ask.", "hash", None, ("writes x",))


async def appear(it: Running, *, after: float = 1.0) -> None:
    await it.say("go")
    await it.shows("Make this change?")
    await it.settled()  # its lower rows may come a frame later
    it.clock.now += after


def replies(it: Running) -> list[Any]:
    return it.session.sent(ReplyPermission)


@pytest.mark.parametrize(("key", "choice"), [("y", "once"), ("a", "always"), ("Y", "once")])
async def test_keys_that_approve(key: str, choice: str) -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press(key)
        await it.until(lambda: replies(it) == [ReplyPermission("p1", choice)])  # type: ignore[arg-type]
        await it.hides("Make this change?")


async def test_the_panel_shows_change_reason_rule_and_keys() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.shows(
            "src/a.py",
            "- a",
            "+ b",
            "Edits ask.",
            "1 yes",
            "2 yes, and don't ask again for Edit(src/**) (this session)",
            "3 no, and say",
        )


async def test_keys_soon_after_the_appearance_are_ignored() -> None:
    async with running((ask(),)) as it:
        await appear(it, after=0.0)
        for _ in range(2):
            it.clock.now += 0.149
            await it.press("y", "a", "n")
        assert not replies(it)


async def test_a_first_key_after_three_hundred_milliseconds_counts() -> None:
    async with running((ask(),)) as it:
        await appear(it, after=0.301)
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


async def test_after_an_ignored_key_a_pause_is_enough() -> None:
    async with running((ask(),)) as it:
        await appear(it, after=0.1)
        await it.press("y")
        it.clock.now += 0.35
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])
        assert it.text == "", "what was pressed for the panel is not typed"


async def test_hammering_never_approves() -> None:
    async with running((ask(),)) as it:
        await appear(it, after=0.0)
        for _ in range(60):
            it.clock.now += 0.1
            await it.press("y")
        assert not replies(it)


async def test_typing_on_while_the_panel_appears_approves_nothing_and_is_kept() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        for key in "yaya":
            await it.press(key)
            it.clock.now += 0.1
        session.emit(ask())
        await it.shows("Make this change?")
        for key in "yayayayayaya":
            it.clock.now += 0.1
            await it.press(key)
        assert not replies(it)
        assert it.text == "yaya" + "yayayayayaya"
        it.clock.now += 0.31
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])
        await it.shows("› yayayayayayayaya")


@pytest.mark.parametrize("pause", [0.05, 0.1, 0.25, 0.4])
async def test_a_sentence_that_begins_before_the_panel_reaches_the_prompt_whole(pause: float) -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    before, after = "well, try ", "not any space jokes, keep vast easy yards"
    async with running(session=session) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        await it.press(*("space" if key == " " else "comma" if key == "," else key for key in before))
        session.emit(ask())
        await it.shows("Make this change?")
        for key in after:
            it.clock.now += pause if key != after[0] else 0.01
            await it.press({" ": "space", ",": "comma"}.get(key, key))
        await it.press("enter")
        assert not replies(it)
        assert it.text == before + after


async def test_letters_before_the_first_one_without_meaning_belong_to_the_sentence() -> None:
    async with running((ask(),)) as it:
        await appear(it, after=0.05)
        for key in ("y", "e", "s", "space", "i", "t", "space", "i", "s"):
            await it.press(key)
            it.clock.now += 0.1
        assert not replies(it)
        assert it.text == "yes it is"


async def test_a_letter_that_scrolled_belongs_to_the_word_that_it_begins() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        for key in "but":
            await it.press(key)
            it.clock.now += 0.1
        assert it.text == "but"


@pytest.mark.parametrize("after", [0.05, 1.0])
async def test_digits_are_for_the_panel_and_never_reach_the_hidden_prompt(after: float) -> None:
    async with running((ask(),)) as it:
        await appear(it, after=after)
        for key in "879":
            await it.press(key)
            it.clock.now += 0.4
        await it.shows("9 is not a choice here")
        assert it.text == ""
        assert not replies(it)
        it.clock.now += 1
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


async def test_a_paste_goes_to_the_draft_and_counts_as_typing() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        it.app.post_message(events.Paste("yes, all of it\ny\n"))
        await it.until(lambda: it.text == "yes, all of it\ny\n")
        await it.press("y")
        assert not replies(it)


async def test_the_panel_shows_from_when_on_keys_count() -> None:
    def pale() -> bool:
        strips = it.app.screen._compositor.render_strips()
        segments = [segment for strip in strips for segment in strip if " yes" in segment.text]
        return len(segments) == 2 and len({segment.style and segment.style.color for segment in segments}) == 1

    async with running((ask(),)) as it:
        await appear(it, after=0.0)
        assert pale()
        it.clock.now += 0.3
        await it.until(lambda: not pale())
        await it.press("z")
        await it.until(pale)
        await it.press("y")
        assert not replies(it)
        it.clock.now += 1.0
        await it.until(lambda: not pale())
        await it.press("y")
        await it.until(lambda: replies(it))


async def test_enter_never_approves() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("enter", "enter", "space", "tab", "enter")
        assert not replies(it)
        assert "Make this change?" in it.screen()


async def test_always_only_where_it_is_offered() -> None:
    async with running((ask(rule=None),)) as it:
        await appear(it)
        await it.press("a")
        assert not replies(it)
        assert "dangerous" not in it.screen()
        shown = it.screen().splitlines()
        assert [line for line in shown if "1 yes" in line or "3 no" in line] == shown[-4:-2]
        assert not [line for line in shown if line.lstrip().startswith("2 ")], "no choice that can't be chosen"


async def test_one_line_without_a_number_says_why_no_rule_is_offered() -> None:
    why = "Can't be allowed in general: swecli always asks about this."
    async with running((replace(ask(rule=None), rule_note=why),)) as it:
        await appear(it)
        (line,) = [line for line in it.screen().splitlines() if why in line]
        assert line.strip() == why
        await it.press("2")
        await it.shows("2 does nothing here")
        assert not replies(it)


async def test_a_sentence_that_was_meant_for_the_prompt_decides_nothing() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        for key in "use another way":
            await it.press("space" if key == " " else key)
            it.clock.now += 0.4  # slower than the grace of the appearance
        assert not replies(it)
        assert it.text == "use another way"
        await it.shows("Make this change?")
        it.clock.now += 1.1
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


@pytest.fixture
def endless_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter never becomes an answer by waiting."""
    monkeypatch.setattr(panel, "ANSWER_PAUSE", 3600.0)


@pytest.mark.usefixtures("endless_pause")
@pytest.mark.parametrize("text", ["abc", "yes", "want", "a2", "y tho"])
async def test_a_sentence_that_begins_with_a_letter_that_approves_approves_nothing(text: str) -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press(*("space" if key == " " else key for key in text))
        assert it.text == text
        await it.shows(f"Kept in the prompt: {text}")
        assert not replies(it)


@pytest.mark.usefixtures("endless_pause")
async def test_sentences_typed_into_a_question_are_kept_as_lines() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("enter", "l", "o", "o", "k", "enter", "enter", "t", "h", "e", "n", "enter")
        assert it.text == "look\nthen"
        assert not replies(it)


@pytest.mark.usefixtures("endless_pause")
@pytest.mark.parametrize(
    ("keys", "choice"), [("y enter", "once"), ("a enter", "always"), ("y down", "once"), ("1", "once"), ("2", "always")]
)
async def test_digits_and_a_letter_with_another_key_behind_it_answer_at_once(keys: str, choice: str) -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press(*keys.split())
        await it.until(lambda: replies(it) == [ReplyPermission("p1", choice)])  # type: ignore[arg-type]
        assert it.text == ""


@pytest.mark.usefixtures("endless_pause")
async def test_esc_takes_the_letter_before_it_back() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.at_once("y", "escape")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject")])


@pytest.mark.usefixtures("endless_pause")
async def test_a_paste_behind_a_letter_takes_it_along() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.at_once("y")
        it.app.post_message(events.Paste("ou see"))
        await it.until(lambda: it.text == "you see")
        assert not replies(it)


async def test_no_takes_a_word_to_the_model() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("n")
        await it.shows("What should it do instead")
        await it.press(*"yes any", "enter")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject", "yes any")])
        await it.press("ctrl+r", *"any")
        await it.until(lambda: it.text == "yes any")


async def test_a_word_to_the_model_is_kept_while_the_question_is_read_again() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("n", *"use ", "escape")
        await it.hides("enter rejects with this note")
        await it.press("n", *"b", "enter")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject", "use b")])


async def test_escape_leaves_the_word_then_rejects_then_interrupts() -> None:
    async with running((ask(), WAIT_FOR_INTERRUPT)) as it:
        await appear(it)
        await it.press("n", "x", "escape")
        await it.hides("What should it do instead")
        assert not replies(it)
        await it.press("escape")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject")])
        assert not it.session.sent(Interrupt)
        await it.press("escape")
        await it.until(lambda: it.session.sent(Interrupt))


@pytest.mark.parametrize("keys", [("1", "n"), ("1", "down", "down", "enter", "n"), ("n", "x", "enter", "n")])
async def test_letters_behind_an_answer_go_to_the_prompt(
    keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running((ask(), WAIT_FOR_INTERRUPT)) as it:
        await appear(it)
        monkeypatch.setattr(it.session, "_replies", {})  # it has not heard the answer yet
        await it.press(*keys, *"ext time, 1 test")
        await it.until(lambda: it.text == "next time, 1 test")
        assert len(replies(it)) == 1


async def second_appears(it: Running) -> None:
    def is_there() -> bool:
        shown = it.app.main.dock.panel
        return isinstance(shown, ApprovalPanel) and shown.request.request == "p2" and shown.grace is not None

    await it.until(is_there)


async def test_a_quick_second_escape_interrupts_instead_of_rejecting_what_nobody_read() -> None:
    async with running((ask(1), ask(2), WAIT_FOR_INTERRUPT)) as it:
        await appear(it)
        await it.press("escape")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject")])
        await second_appears(it)
        await it.press("escape")
        await it.until(lambda: it.session.sent(Interrupt))
        assert replies(it) == [ReplyPermission("p1", "reject")]


async def test_a_second_escape_after_a_look_rejects_the_next_request() -> None:
    async with running((ask(1), ask(2), WAIT_FOR_INTERRUPT)) as it:
        await appear(it)
        await it.press("escape")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject")])
        await second_appears(it)
        it.clock.now += 1
        await it.press("escape")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject"), ReplyPermission("p2", "reject")])
        assert not it.session.sent(Interrupt)


async def test_control_c_interrupts_the_turn() -> None:
    async with running((ask(),)) as it:
        await appear(it, after=0.0)
        await it.press("ctrl+c")
        await it.until(lambda: it.session.sent(Interrupt))
        await it.hides("Make this change?")
        assert not replies(it)


async def test_hidden_characters_of_a_command_are_visible() -> None:
    async with running((run("echo hi\u202e \x1b[2K\trm -rf x\r\nsecond [b]line[/b]"),)) as it:
        await it.say("go")
        await it.shows("Run this command?", "echo hi⟨U+202E⟩ ␛[2K␉rm -rf x␍", "second [b]line[/b]")
        it.clock.now += 1
        await it.press("v")
        await it.shows("writes x")


async def test_all_lines_of_a_paste_are_in_the_note() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("3", *"Do:")
        it.app.post_message(events.Paste(" first\r\n\n\tthen\x1b[31m\u202e second\nlast\n"))
        await it.until(lambda: "last" in it.screen())
        await it.press("enter")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "reject", "Do:first then[31m second last")])


async def test_the_danger_is_said_once_in_full_view_too() -> None:
    danger = "rm -rf x removes whole directories"
    asks = replace(run("rm -rf x"), reason=f"{danger}.", evidence=("Nothing exists.",), danger=danger, warnings=())
    async with running((asks,)) as it:
        await it.say("go")
        await it.shows("Run this command?")
        it.clock.now += 1
        await it.press("v")
        await it.shows("Nothing exists.")
        assert it.screen().count("removes whole directories") == 1


async def test_a_long_change_scrolls_inside_of_the_panel() -> None:
    old = "".join(f"old {n}\n" for n in range(100))
    new = "".join(f"new {n}\n" for n in range(100))
    async with running((ask(old=old, new=new),)) as it:
        await appear(it)
        await it.press("end")
        await it.until(lambda: "+ new 99" in it.screen())
        assert "yes" in it.screen()
        await it.press("home")
        await it.until(lambda: "- old 0" in it.screen())
        assert it.screen().splitlines()[-1].startswith(" default")


async def test_the_panel_can_use_more_of_the_screen() -> None:
    old = "".join(f"old {n}\n" for n in range(100))
    async with running((ask(old=old, new=""),), size=(80, 40)) as it:
        await appear(it)
        before = it.app.main.dock.size.height
        await it.press("ctrl+o")
        await it.until(lambda: it.app.main.dock.size.height > before)
        assert it.app.main.dock.size.height <= 38


async def test_several_requests_queue() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        for number in (1, 2, 3):
            session.emit(ask(number))
        await it.shows("(1 of 3)")
        it.clock.now += 1
        await it.press("y")
        await it.shows("(2 of 3)")
        await it.press("y")
        assert len(replies(it)) == 1, "the second question has its own grace"
        it.clock.now += 1
        await it.press("y")
        await it.shows("(3 of 3)")
        it.clock.now += 1
        await it.press("y")
        await it.until(lambda: len(replies(it)) == 3)
        await it.until(lambda: it.editor.has_focus)


async def test_what_is_settled_otherwise_counts_as_done_in_the_place() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        for number in (1, 2, 3, 4):
            session.emit(ask(number))
        await it.shows("(1 of 4)")
        it.clock.now += 1
        await it.press("y")
        await it.shows("(2 of 4)")
        for number in (2, 3):
            session.emit(PermissionResolved(f"p{number}", "once", "engine"))
        await it.shows("(4 of 4)")
        session.emit(ask(5))
        await it.shows("(4 of 5)")


async def test_a_request_that_the_session_takes_back_goes_away_and_the_draft_stays() -> None:
    session = Session((ask(),))
    async with running(session=session) as it:
        await it.say("go")
        await it.shows("Make this change?")
        session.send(Interrupt())
        await it.hides("Make this change?")
        await it.until(lambda: it.editor.has_focus)


async def test_the_prompt_keeps_what_was_typed_while_a_request_is_shown() -> None:
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        await it.type("half a sent")
        session.emit(ask())
        await it.shows("Make this change?")
        it.clock.now += 1
        await it.press("y")
        await it.shows("› half a sent")


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (30, 8)])
async def test_the_panel_fits_into_small_screens(size: tuple[int, int]) -> None:
    old = "".join(f"old {n}\n" for n in range(100))
    async with running((ask(old=old, new="new\n"),), size=size) as it:
        await appear(it)
        await it.shows("yes")
        lines = it.screen().splitlines()
        assert len(lines) == size[1]
        assert all(len(line) <= size[0] for line in lines)
        await it.press("y")
        await it.until(lambda: replies(it))


async def test_a_key_whose_answer_has_the_height_of_the_keys_lays_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[object] = []
    reflow = Compositor.reflow
    monkeypatch.setattr(Compositor, "reflow", lambda *given: laid_out.append(given) or reflow(*given))
    async with running((ask(),)) as it:
        await appear(it)
        await it.settled()
        assert laid_out
        laid_out.clear()
        await it.press("7")
        await it.shows("7 is not a choice here")
        await it.press("down", "up")
        await it.settled()
        assert not laid_out


async def test_the_focus_of_a_panel_changes_no_style() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        shown = it.app.main.dock.panel
        assert shown is not None
        assert it.app.focused is shown
        parts = list(shown.walk_children(with_self=True))
        assert len(parts) > 5

        def styles() -> list[object]:
            return [part.styles.base.get_rules() for part in parts]

        found: list[list[object]] = []
        for widget in (shown, None):
            it.app.screen.set_focus(widget)
            await it.settled()
            shown.update_node_styles(animate=False)
            found.append(styles())
        assert found[0] == found[1]


async def test_a_lower_window_never_hides_the_keys() -> None:
    old = "".join(f"old {n}\n" for n in range(100))
    async with running((ask(old=old, new="new\n"),), size=(80, 40)) as it:
        await appear(it)
        await it.pilot.resize_terminal(80, 12)
        await it.until(lambda: len(it.screen().split("\n")) == 12 and "yes" in it.screen())


async def test_tab_leaves_the_keyboard_with_the_question() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("tab", "tab", "y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


async def test_how_long_always_holds_is_shown_and_chosen() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.shows("(this session)")
        for shown in ("(this turn)", "(here for 7 days)", "(here until revoked)", "(this session)", "(this turn)"):
            await it.press("s")
            await it.shows(shown)
        await it.press("s", "a")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "always", span="week")])


async def test_choosing_how_long_says_nothing_about_a_single_yes() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        await it.press("s", "y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


@pytest.mark.parametrize("size", [(80, 24), (120, 10), (40, 15), (24, 8), (20, 6)])
async def test_open_todos_give_way_to_what_is_asked(size: tuple[int, int]) -> None:
    async with running((TODOS, run("touch new.txt")), size=size) as it:
        await it.say("go")
        await it.shows("Run this command?", "$ touch new.txt")
        await it.until(lambda: it.app.session.state.todos)
        await it.press("ctrl+t")
        await it.until(lambda: it.app.main.todos.open)
        await it.shows("$ touch new.txt", *(("1 yes", "esc") if size != (20, 6) else ("y yes",)))
        await it.until(lambda: ("Todos 1/3" in it.screen()) == (size[1] > 10))
        await it.pilot.resize_terminal(80, 40)
        await it.shows("Todos 1/3", "run the tests", "1 yes", "default")


LINES = "".join(f"line {number}\n" for number in range(1, 41))
FAR = ask(old=LINES, new=LINES.replace("line 20\n", "LINE 20\n"))


@pytest.mark.parametrize("size", [(80, 24), (40, 15), (40, 12), (30, 8), (30, 7)])
async def test_what_would_change_can_be_seen_at_every_size(size: tuple[int, int]) -> None:
    async with running((FAR,), size=size) as it:
        await appear(it)
        await it.shows("20 - line 20", "20 + LINE 20", "Make this change?", "yes")


async def test_the_user_can_scroll_away_from_the_first_change() -> None:
    async with running((FAR,), size=(40, 12)) as it:
        await appear(it)
        await it.shows("20 - line 20")
        await it.pilot.pause()  # the panel scrolls to the change once it is laid out; the user comes after that
        await it.press("home")
        await it.shows("16 unchanged lines")
        await it.pilot.resize_terminal(40, 11)
        await it.shows("16 unchanged lines")


async def test_where_nothing_can_be_seen_nothing_is_decided() -> None:
    async with running((ask(),), size=(20, 4)) as it:
        await it.say("go")
        await it.shows("Enlarge the window")
        it.clock.now += 5
        await it.press("y", "a", "n", "v", "y")
        assert not replies(it)
        await it.pilot.resize_terminal(80, 24)
        await it.shows("Make this change?", "yes", "default")
        await it.until(lambda: "Enlarge" not in it.screen())  # not in a half-drawn frame
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


async def test_a_title_that_breaks_between_words_leaves_the_keys_in_sight() -> None:
    address, note = "http://127.0.0.1:1/x", "It also allows every page of 127.0.0.1 and its subdomains."
    body, why, rule = (TextBlock(f"GET {address}"),), "This connects to 127.0.0.1.", "WebFetch(domain:127.0.0.1)"
    fetch = PermissionRequested("p1", "t1", "web_fetch", address, body, why, "hash", rule, rule_note=note)
    session = Session((WAIT_FOR_INTERRUPT,))
    async with running(session=session, size=(27, 9)) as it:
        await it.say("go")
        await it.until(lambda: it.app.session.state.busy)
        session.emit(fetch)
        session.emit(replace(fetch, request="p2"))
        await it.shows("(1 of\n2)\n", "y yes")


async def test_a_panel_that_had_the_whole_screen_gives_it_back() -> None:
    async with running((ask(),), size=(30, 7)) as it:
        await appear(it)
        assert "default" not in it.screen()
        await it.press("y")
        await it.shows("default", "New session")


async def test_a_screen_that_opens_behind_it_leaves_it_the_keyboard() -> None:
    async with running((ask(),)) as it:
        await appear(it)
        it.app.main.open_board(Board())
        await it.at_once("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])
