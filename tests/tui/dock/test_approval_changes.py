"""Changing a call in the approval panel: the command, the hunks, the text; and what the panel shows at every size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.protocol.blocks import DiffBlock, TerminalBlock
from swecli.core.protocol.commands import ReplyPermission
from swecli.core.protocol.events import PermissionRequested
from swecli.core.protocol.request_events import EditedText, Hunk, RefusedEdit
from swecli.safe_text import visible_part
from tests.tui.golden import check
from tests.tui.support import Running, running

OLD = "".join(f"line {number}\n" for number in range(1, 41))
NEW = OLD.replace("line 3\n", "LINE 3\n").replace("line 20\n", "").replace("line 33\n", "line 33\nmore\n")
HUNKS = (Hunk(0, 3, 1, 3, 1), Hunk(0, 20, 1, 20, 0), Hunk(0, 34, 0, 33, 1))
CHANGE = PermissionRequested(
    "p1",
    "t1",
    "edit_file",
    "src/a.py",
    (DiffBlock("src/a.py", OLD, NEW),),
    "This would change /proj/src/a.py.",
    "hash",
    "Edit(/src/a.py)",
    ("/proj/src/a.py",),
    HUNKS,
    ("+4 -5",),
)
COMMAND = PermissionRequested(
    "p1",
    "t1",
    "run_command",
    "rm -rf build",
    (TerminalBlock("rm -rf build", "", cwd="/proj"),),
    "rm -rf build removes whole directories.",
    "hash",
    None,
    (
        "3 files, 1,204 bytes",
        "/proj/build/a",
        "/proj/build/b",
        "/proj/build/c",
        "rm -rf build: may change files",
    ),
    (),
    ("Not sandboxed.",),
    (),
    {"command": "rm -rf build", "timeout": 5},
    rule_note="Can't be allowed in general: swecli always asks about this.",
    danger="deletes 3 files, 1,204 bytes; /undo would not restore: build (an ignored folder)",
)
PATCH = PermissionRequested(
    "p1",
    "t1",
    "apply_patch",
    "a.txt and 1 more",
    (DiffBlock("a.txt", None, "new\n"), DiffBlock("b.txt", "one\ntwo\n", "ONE\ntwo\nthree\n")),
    "This would change /proj/a.txt.",
    "hash",
    None,
    ("/proj/a.txt", "/proj/b.txt"),
    (Hunk(0, 1, 0, 1, 1), Hunk(1, 1, 1, 1, 1), Hunk(1, 3, 0, 3, 1)),
    ("new file, 1 line", "+1 -1"),
)


def replies(it: Running) -> list[Any]:
    return it.session.sent(ReplyPermission)


async def appear(it: Running) -> None:
    await it.say("go")
    await it.until(lambda: it.app.main.dock.panel)
    await it.shows("yes")
    it.clock.now += 1.0


async def test_a_command_is_edited_in_the_panel_and_enter_only_shows_it_anew() -> None:
    async with running((COMMAND,)) as it:
        await appear(it)
        await it.press("e")
        await it.shows("enter shows it for approval")
        await it.press("home", "delete", "r", "end", "x", "backspace", "space", "y")
        await it.press("enter")
        await it.until(lambda: replies(it))
        changed = {"command": "rm -rf build y", "timeout": 5}
        assert replies(it) == [ReplyPermission("p1", "edit", arguments=changed)]


async def test_a_command_that_was_left_as_it_is_stays_asked_about() -> None:
    async with running((COMMAND,)) as it:
        await appear(it)
        await it.press("e")
        await it.shows("enter shows it for approval")
        await it.press("enter")
        await it.hides("enter shows it for approval")
        assert not replies(it)
        await it.press("e", "x", "escape")
        await it.shows("1 yes")
        assert not replies(it)
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


async def test_a_line_more_in_a_command() -> None:
    async with running((COMMAND,)) as it:
        await appear(it)
        await it.press("e", "ctrl+j", *"ls", "ctrl+shift+enter", *"id", "enter")
        await it.until(lambda: replies(it))
        assert replies(it)[0].arguments["command"] == "rm -rf build\nls\nid"


def test_what_can_not_be_seen_is_not_offered_for_editing() -> None:
    assert visible_part("echo\u202e a\x1b[2K\r\n\tb\u200b\x00") == "echo a[2K\n\tb"


async def test_hunks_are_chosen_singly() -> None:
    async with running((CHANGE,)) as it:
        await appear(it)
        await it.press("e")
        await it.shows("[x] 1 of 3", "apply 3 of 3")
        await it.press("j", "space")
        await it.shows("[ ] 2 of 3", "apply 2 of 3")
        await it.press("enter")
        assert not replies(it)
        await it.press("y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once", hunks=(1, 3))])


async def test_a_hunk_is_named_after_its_first_line() -> None:
    diff = DiffBlock("src/a.py", "a\nb\nc\n", "+\na\nb\n")
    moved = replace(CHANGE, blocks=(diff,), hunks=(Hunk(0, 1, 0, 1, 1), Hunk(0, 3, 1, 4, 0)))
    async with running((moved,)) as it:
        await appear(it)
        await it.press("e")
        await it.shows("1 of 2  src/a.py:1  +1 -0", "2 of 2  src/a.py:3  +0 -1")


async def test_no_key_among_the_hunks_means_the_opposite_of_what_it_means_before() -> None:
    async with running((CHANGE,)) as it:
        await appear(it)
        await it.press("e", "-")
        await it.shows("[ ] 1 of 3", "apply 0 of 3")
        await it.press("y")
        await it.shows("Tick a hunk first")
        await it.press("a")
        await it.shows("one level up")
        await it.press("2")
        await it.shows("Numbers do nothing here")
        assert not replies(it), "yes is never a no, and all is never a rule"
        await it.press("+")
        await it.shows("apply 3 of 3")
        await it.press("n")
        await it.shows("What should it do instead")
        await it.press("escape", "y")
        await it.until(lambda: replies(it) == [ReplyPermission("p1", "once")])


async def test_the_proposed_text_is_edited_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def edit(app: object, text: str, suffix: str) -> str:
        seen.append(text + suffix)
        return text.replace("three", "3")

    monkeypatch.setattr("swecli.tui.external.edit", edit)
    async with running((PATCH,)) as it:
        await appear(it)
        await it.press("e", "j", "space", "j", "e")
        await it.until(lambda: replies(it))
        assert seen == ["one\ntwo\nthree\n.txt"]
        assert replies(it) == [ReplyPermission("p1", "edit", texts=(EditedText(1, "one\ntwo\n3\n"),))]


async def test_full_view_and_back() -> None:
    async with running((CHANGE,)) as it:
        await appear(it)
        await it.sees(lambda screen: re.search(r"v [1-9][0-9]* more lines", screen) is not None)
        await it.pilot.pause()
        before = it.app.main.dock.size.height
        await it.press("v")
        await it.until(lambda: it.app.main.dock.size.height > before)
        await it.press("end")
        await it.shows("+ more", "1 yes")
        await it.press("v")
        await it.until(lambda: it.app.main.dock.size.height == before)


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", ["destructive", "hunks", "patch", "edited"])
async def test_screens(scene: str, size: tuple[int, int]) -> None:
    request = {"destructive": COMMAND, "hunks": CHANGE, "patch": PATCH, "edited": COMMAND}[scene]
    async with running((request,), size=size) as it:
        await appear(it)
        if scene == "hunks":
            await it.press("e", "j", "space")
            await it.shows("apply 2 of 3")
        elif scene == "edited":
            await it.press("e")
            await it.shows("for approval")
        await it.shows("esc back" if scene in ("hunks", "edited") else "yes")
        await it.settled()
        screen = it.screen()
        if scene == "destructive":
            assert "deletes 3 files, 1,204 bytes" in screen
            assert "not restore" in screen
            assert "Not sandboxed." in screen
            assert "12 bytes" not in screen
        check(f"approval-{scene}-{size[0]}x{size[1]}", screen)


async def test_a_refused_edit_comes_back_in_the_editor_with_the_reason() -> None:
    refused = RefusedEdit({"command": "rm -rf .", "timeout": 5}, "It would remove the working directory.")
    again = replace(COMMAND, warnings=(f"Your edit was refused: {refused.reason}",), refused=refused)
    async with running((again,)) as it:
        await it.say("go")
        await it.shows("It would remove the working directory.", "rm -rf .", "shows it for approval")
        it.clock.now += 1
        await it.press(*"/x", "enter")
        await it.until(lambda: replies(it))
        assert replies(it)[0].arguments == {"command": "rm -rf ./x", "timeout": 5}


async def test_esc_leads_from_a_refused_edit_to_the_call_as_it_was() -> None:
    again = replace(COMMAND, refused=RefusedEdit({"command": "rm -rf ."}, "No."))
    async with running((again,)) as it:
        await it.say("go")
        await it.shows("shows it for approval")
        it.clock.now += 1
        await it.press("escape")
        await it.shows("rm -rf build", "1 yes")
        await it.press("y")
        await it.until(lambda: [reply.choice for reply in replies(it)] == ["once"])


async def test_moving_among_hunks_that_are_not_drawn_yet() -> None:
    async with running((CHANGE,)) as it:
        await appear(it)
        await it.at_once("e", "j", "j", "space")
        await it.shows("apply 2 of 3")
