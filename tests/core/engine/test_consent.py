"""Calls that the user changes before they run: judged anew, bound to the new bytes, and the model is told."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.blocks import DiffBlock
from swecli.core.protocol.commands import ReplyPermission, SetMode, Submit
from swecli.core.protocol.events import (
    ItemCheckpointed,
    ItemCompleted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    TurnEnded,
)
from swecli.core.protocol.request_events import EditedText, PermissionChoice
from swecli.core.tools.edit_file import EditFile, WriteFile
from swecli.core.tools.read_file import ReadFile
from swecli.core.tools.run_command import RunCommand
from tests.core.engine.support import Bench, bench, until
from tests.support.waiting import PATIENCE

TOOLS = (RunCommand(), EditFile(), WriteFile())
POLICY = Policy(facts=OsFacts({"PATH": "/usr/bin:/bin"}))


def script(tool: str, **arguments: Any) -> str:
    raw = json.dumps(json.dumps(arguments))
    return f'[[step]]\ncall = [{{ tool = "{tool}", arguments = {raw} }}]\n[[step]]\ntext = "Done."\n'


def result(b: Bench) -> ItemCompleted:
    return next(body for body in b.bodies(ItemCompleted) if body.parts and body.parts[0].type == "tool_result")


def told(b: Bench) -> str:
    (text,) = b.tool_texts().values()
    return text


async def started(b: Bench) -> PermissionRequested:
    b.send(Submit("go"))
    return await b.asked()


async def ended(b: Bench) -> None:
    await until(lambda: not b.session.view.busy and b.session.view.totals.turns == 1, "end of the turn")


async def test_an_edited_command_is_asked_about_anew_and_runs_as_edited(tmp_path: Path) -> None:
    async with bench(script("run_command", command="touch a", timeout=5), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        assert first.arguments == {"command": "touch a", "timeout": 5}
        changed = {"command": "touch b", "timeout": 5}
        b.send(ReplyPermission(first.request, "edit", arguments=changed))
        second = await b.asked(2)
        assert second.title == "touch b"
        assert second.binding != first.binding
        b.allow(second)
        await ended(b)
        assert os.listdir(tmp_path) == ["b"]
        assert "The user changed this call" in told(b)
        assert "touch b" in told(b)
        assert [body.title for body in b.bodies(ItemCheckpointed) if body.running] == ["touch b"]
        resolved = b.bodies(PermissionResolved)
        assert [body.choice for body in resolved] == ["edit", "once"]
        assert resolved[0].arguments == changed


async def test_a_yes_with_another_command_runs_that_one(tmp_path: Path) -> None:
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, "once", arguments={"command": "touch b"}))
        await ended(b)
        assert os.listdir(tmp_path) == ["b"]
        assert len(b.bodies(PermissionRequested)) == 1


async def test_what_is_proven_to_only_read_needs_no_second_question(tmp_path: Path) -> None:
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, "edit", arguments={"command": "pwd"}))
        await ended(b)
        assert str(tmp_path) in told(b)
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize("choice", ["once", "always", "edit"])
async def test_a_destructive_command_is_asked_about_as_it_is_now(tmp_path: Path, choice: Any) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x").write_text("12345")
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, choice, arguments={"command": "rm -rf build"}))
        second = await b.asked(2)
        assert any("1 file" in line and "5 bytes" in line for line in second.evidence)
        assert (tmp_path / "build" / "x").exists()
        b.allow(second, "reject", "keep it")
        await ended(b)
        assert (tmp_path / "build" / "x").exists()
        assert "rm -rf build" in told(b)
        assert "keep it" in told(b)


@pytest.mark.parametrize("command", ["rm -rf .", "curl x", "echo \0"])
async def test_what_is_refused_stays_refused(tmp_path: Path, command: str) -> None:
    policy = replace(POLICY, rules=(Rule("deny", "Bash(curl *)", "user"),))
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=policy) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, "once", arguments={"command": command}))
        await ended(b)
        assert result(b).status == "rejected"
        assert "Not allowed" in told(b)
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize("command", ["rm -rf .", "curl x", "echo \0"])
async def test_an_edit_that_is_refused_leaves_the_question_open(tmp_path: Path, command: str) -> None:
    policy = replace(POLICY, rules=(Rule("deny", "Bash(curl *)", "user"),))
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=policy) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, "edit", arguments={"command": command}))
        second = await b.asked(2)
        assert second.title == "touch a"
        assert second.arguments == first.arguments
        assert second.refused is not None
        assert second.refused.arguments == {"command": command}
        assert second.refused.reason
        assert any(second.refused.reason in warning for warning in second.warnings)
        assert not any(body.status == "rejected" for body in b.bodies(ItemCompleted))
        b.send(ReplyPermission(second.request, "edit", arguments={"command": "touch c"}))
        third = await b.asked(3)
        assert third.refused is None
        b.allow(third)
        await ended(b)
        assert os.listdir(tmp_path) == ["c"]


async def test_an_edit_of_an_edit_that_is_refused_goes_back_to_the_first_edit(tmp_path: Path) -> None:
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        b.send(ReplyPermission((await started(b)).request, "edit", arguments={"command": "touch b"}))
        b.send(ReplyPermission((await b.asked(2)).request, "edit", arguments={"command": "rm -rf ."}))
        third = await b.asked(3)
        assert third.title == "touch b"
        b.allow(third, "reject")
        await ended(b)
        assert not os.listdir(tmp_path)


async def test_arguments_that_are_not_valid_leave_the_question_open(tmp_path: Path) -> None:
    async with bench(script("run_command", command="touch a"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, "once", arguments={"cmd": 1, "x": 2}))
        second = await b.asked(2)
        assert second.title == "touch a"
        assert any("The call is unchanged" in notice.text for notice in b.bodies(Notice))
        b.allow(second)
        await ended(b)
        assert os.listdir(tmp_path) == ["a"]
        assert "The user changed" not in told(b)


EDITS = [{"old_string": "one", "new_string": "ONE"}, {"old_string": "three", "new_string": "THREE"}]


async def test_some_hunks_are_accepted_and_the_model_hears_of_the_others(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one\ntwo\nthree\n")
    async with bench(script("edit_file", path="f", edits=EDITS), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        assert [(hunk.old_start, hunk.old_lines) for hunk in first.hunks] == [(1, 1), (3, 1)]
        b.send(ReplyPermission(first.request, "once", "too loud", hunks=(1,)))
        await ended(b)
        assert file.read_text() == "ONE\ntwo\nthree\n"
        text = told(b)
        assert "accepted 1 of 2" in text
        assert "f, line 3:\n-three\n+THREE" in text
        assert "too loud" in text
        assert len(b.bodies(PermissionRequested)) == 1


async def test_no_hunk_is_a_rejection_and_all_hunks_are_a_plain_yes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    for hunks, left in (((), "one\ntwo\nthree\n"), ((1, 2), "ONE\ntwo\nTHREE\n")):
        file.write_text("one\ntwo\nthree\n")
        async with bench(script("edit_file", path="f", edits=EDITS), tmp_path, tools=TOOLS, policy=POLICY) as b:
            first = await started(b)
            b.send(ReplyPermission(first.request, "once", hunks=hunks))
            await ended(b)
            assert file.read_text() == left
            assert result(b).status == ("ok" if hunks else "rejected")


async def test_an_unknown_reply_of_a_program_rejects(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one\ntwo\nthree\n")
    async with bench(script("edit_file", path="f", edits=EDITS), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, cast("PermissionChoice", "deny")))
        await ended(b)
        assert file.read_text() == "one\ntwo\nthree\n"
        assert result(b).status == "rejected"
        assert "'deny'" in b.bodies(Notice)[-1].text


async def test_hunks_of_a_file_that_changed_meanwhile_are_asked_about_again(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one\ntwo\nthree\n")
    async with bench(script("edit_file", path="f", edits=EDITS), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        file.write_text("zero\none\ntwo\nthree\n")
        b.send(ReplyPermission(first.request, "once", hunks=(2,)))
        second = await b.asked(2)
        assert [hunk.old_start for hunk in second.hunks] == [2, 4]
        assert file.read_text() == "zero\none\ntwo\nthree\n"
        b.send(ReplyPermission(second.request, "once", hunks=(2,)))
        await ended(b)
        assert file.read_text() == "zero\none\ntwo\nTHREE\n"


async def test_an_edited_text_is_shown_again_and_written_exactly(tmp_path: Path) -> None:
    file = tmp_path / "f"
    async with bench(script("write_file", path="f", content="a\nb\n"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        assert "new file, 2 lines" in first.facts
        b.send(ReplyPermission(first.request, "edit", texts=(EditedText(0, "a\r\n\tB\nno end"),)))
        second = await b.asked(2)
        assert getattr(second.blocks[0], "new", None) == "a\r\n\tB\nno end"
        assert not file.exists()
        b.allow(second)
        await ended(b)
        assert file.read_bytes() == b"a\r\n\tB\nno end"
        assert "-b" in told(b)
        assert "+\tB" in told(b)


@pytest.mark.parametrize(
    "reply",
    [
        {"hunks": (7,)},
        {"hunks": (1,), "texts": (EditedText(0, "x"),)},
        {"texts": (EditedText(4, "x"),)},
        {"arguments": {"path": "f"}},
    ],
)
async def test_a_reply_that_does_not_fit_changes_nothing(tmp_path: Path, reply: dict[str, Any]) -> None:
    file = tmp_path / "f"
    file.write_text("one\ntwo\nthree\n")
    async with bench(script("edit_file", path="f", edits=EDITS), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        b.send(ReplyPermission(first.request, "once", **reply))
        second = await b.asked(2)
        assert second.binding == first.binding
        assert file.read_text() == "one\ntwo\nthree\n"
        b.allow(second, "reject")
        await ended(b)


async def test_a_script_that_is_swapped_while_the_panel_is_open_is_asked_about_again(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo harmless > out\n")
    async with bench(script("run_command", command="sh run.sh"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        first = await started(b)
        (tmp_path / "run.sh").write_text("echo swapped > out\n")
        b.send(ReplyPermission(first.request, "once"))
        second = await b.asked(2)
        assert second.binding != first.binding
        assert any("changed after it was shown" in notice.text for notice in b.bodies(Notice))
        assert not (tmp_path / "out").exists()
        b.send(ReplyPermission(second.request, "once"))
        await ended(b)
        assert (tmp_path / "out").read_text() == "swapped\n"


async def test_accept_edits_asks_before_it_overwrites_what_was_never_read(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("of the user\n")
    (tmp_path / "empty.txt").write_text("")
    calls = ", ".join(
        f"{{ tool = 'write_file', arguments = '{json.dumps({'path': name, 'content': text})}' }}"
        for name, text in (("new.txt", "a"), ("empty.txt", "b"), ("old.txt", "c"))
    )
    again = f"{{ tool = 'write_file', arguments = '{json.dumps({'path': 'new.txt', 'content': 'd'})}' }}"
    steps = f'[[step]]\ncall = [{calls}]\n[[step]]\ncall = [{again}]\n[[step]]\ntext = "Done."\n'
    async with bench(steps, tmp_path, tools=TOOLS, policy=replace(POLICY, mode="accept-edits")) as b:
        asked = await started(b)
        assert asked.title == "old.txt"
        assert "the model has not read it" in asked.reason
        b.send(ReplyPermission(asked.request, "once"))
        await ended(b)
        assert len(b.bodies(PermissionRequested)) == 1
    texts = {name: (tmp_path / name).read_text() for name in ("new.txt", "empty.txt", "old.txt")}
    assert texts == {"new.txt": "d", "empty.txt": "b", "old.txt": "c"}


def commands(*lines: str) -> str:
    calls = [f"{{ tool = 'run_command', arguments = '{json.dumps({'command': line})}' }}" for line in lines]
    return f'[[step]]\ncall = [{", ".join(calls)}]\n[[step]]\ntext = "Done."\n'


async def test_an_edit_is_judged_by_the_files_that_earlier_calls_of_the_step_leave(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    steps = commands("cp a.txt b.txt", "mv b.txt c.txt", "cat c.txt")
    async with bench(steps, tmp_path, tools=TOOLS, policy=replace(POLICY, mode="accept-edits")) as b:
        b.send(Submit("go"))
        await ended(b)
        assert b.bodies(PermissionRequested) == []
    assert (tmp_path / "c.txt").read_text() == "a\n"


async def test_a_question_that_the_files_of_an_earlier_call_answer_is_settled(tmp_path: Path) -> None:
    steps = commands("touch a.txt", "mv a.txt b.txt", "git push")
    async with bench(steps, tmp_path, tools=TOOLS, policy=POLICY) as b:
        b.send(Submit("go"))
        await b.asked(3)
        b.send(SetMode("accept-edits"))
        await until(lambda: (tmp_path / "b.txt").exists())
        resolved = [(body.choice, body.by) for body in b.bodies(PermissionResolved)]
        assert resolved == [("once", "engine"), ("once", "engine")]
        b.send(ReplyPermission(b.bodies(PermissionRequested)[2].request, "reject"))
        await ended(b)


async def test_an_edit_that_earlier_calls_of_the_step_make_overwrite_asks(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(name)
    steps = commands("mv a.txt c.txt", "mv b.txt c.txt")
    async with bench(steps, tmp_path, tools=TOOLS, policy=replace(POLICY, mode="accept-edits")) as b:
        asked = await started(b)
        assert asked.title == "mv b.txt c.txt"
        assert "overwrite" in asked.reason
        b.send(ReplyPermission(asked.request, "reject"))
        await ended(b)
    assert {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path)} == {"b.txt": "b", "c.txt": "a"}


class SlowGit(OsFacts):
    """Git answers once the test lets it, and never on the event loop."""

    def __init__(self) -> None:
        super().__init__({"PATH": "/usr/bin:/bin"})
        self.asked, self.answers = threading.Event(), threading.Event()

    def git_lines(self, cwd: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
        assert threading.current_thread() is not threading.main_thread()
        self.asked.set()
        assert self.answers.wait(PATIENCE)
        return ("Would remove kept.txt",)


async def test_the_warning_names_every_danger(tmp_path: Path) -> None:
    steps = script("run_command", command="rm -rf gone && git push --force")
    async with bench(steps, tmp_path, tools=TOOLS, policy=POLICY) as b:
        asked = await started(b)
        assert asked.danger.startswith("rm -rf gone removes whole directories; git push --force can destroy work")
        assert "; /undo can't restore the remote" in asked.danger
        b.send(ReplyPermission(asked.request, "reject"))
        await ended(b)


async def test_the_event_loop_does_not_wait_for_git(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("x\n")
    git = SlowGit()
    steps = script("run_command", command="git clean -fd")
    async with bench(steps, tmp_path, tools=TOOLS, policy=replace(POLICY, facts=git)) as b:
        b.send(Submit("go"))
        await until(git.asked.is_set, "git is asked")
        b.send(SetMode("accept-edits"))  # is worked on meanwhile
        await until(lambda: b.session.view.mode == "accept-edits")
        assert b.bodies(PermissionRequested) == []
        git.answers.set()
        asked = await b.asked()
        assert "deletes 1 file" in asked.danger
        b.send(SetMode("default"))  # decided about again, without git
        b.send(ReplyPermission(asked.request, "reject"))
        await ended(b)
        assert (tmp_path / "kept.txt").exists()


class GitNames(SlowGit):
    """A repository that tracks a secret, and names the changed files."""

    def __init__(self, root: Path, *names: str) -> None:
        super().__init__()
        self._secret, self._names = str(root / ".npmrc"), names

    def without_programs(self) -> OsFacts:
        return GitNames.Quick(self)

    class Quick(OsFacts):
        def __init__(self, git: GitNames) -> None:
            super().__init__({"PATH": "/usr/bin:/bin"})
            self._secret = git._secret

        def tracked_files(self, cwd: str) -> tuple[str, ...]:
            return (self._secret,)

    def tracked_files(self, cwd: str) -> tuple[str, ...]:
        return (self._secret,)

    def names_shown(self, cwd: str, arguments: Sequence[str]) -> tuple[str, ...]:
        assert threading.current_thread() is not threading.main_thread()
        return self._names


@pytest.mark.parametrize(("names", "asks"), [(("a.py",), False), (("a.py", ".npmrc"), True)])
async def test_a_diff_asks_only_if_git_names_a_secret_in_it(tmp_path: Path, names: tuple[str, ...], asks: bool) -> None:
    policy = replace(POLICY, facts=GitNames(tmp_path, *names))
    async with bench(script("run_command", command="git diff"), tmp_path, tools=TOOLS, policy=policy) as b:
        b.send(Submit("go"))
        if asks:
            asked = await b.asked()
            assert ".npmrc" in asked.reason
            b.send(ReplyPermission(asked.request, "reject"))
        await ended(b)
        assert bool(b.bodies(PermissionRequested)) == asks


async def test_writing_what_a_file_already_contains_is_no_question(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("same\n")
    async with bench(script("write_file", path="a", content="same\n"), tmp_path, tools=TOOLS, policy=POLICY) as b:
        b.send(Submit("go"))
        await ended(b)
        assert not b.bodies(PermissionRequested)
        assert [body.status for body in b.bodies(ItemCompleted) if body.item.startswith("t")] == ["ok"]


@pytest.mark.parametrize("why", ["a rule", "outside"])
async def test_what_needs_a_question_to_read_needs_one_for_a_write_without_effect(tmp_path: Path, why: str) -> None:
    """Otherwise the model could try what a file contains."""
    folder = tmp_path / "project"
    folder.mkdir()
    path = folder / "a" if why == "a rule" else tmp_path / "a"
    path.write_text("same\n")
    rules = (Rule("ask", "write_file", "user"),) if why == "a rule" else ()
    policy, call = replace(POLICY, rules=rules), script("write_file", path=str(path), content="same\n")
    async with bench(call, folder, tools=TOOLS, policy=policy) as b:
        asked = await started(b)
        assert asked.facts == ()
        (block,) = asked.blocks
        assert isinstance(block, DiffBlock)
        assert block.note.startswith("already has this content, 5 bytes")
        b.allow(asked)
        await ended(b)


@pytest.mark.parametrize("while_asked", [False, True])
async def test_a_folder_that_is_gone_is_not_created_again(tmp_path: Path, while_asked: bool) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    async with bench(script("write_file", path="a.txt", content="x"), folder, tools=TOOLS, policy=POLICY) as b:
        if while_asked:
            request = await started(b)
            folder.rename(tmp_path / "moved")
            b.allow(request)
        else:
            folder.rename(tmp_path / "moved")
            b.send(Submit("go"))
        await ended(b)
        assert len(b.bodies(PermissionRequested)) == while_asked
        assert "no longer exists: it was moved or deleted. Nothing was done." in told(b)
        assert not folder.exists()


def step(*calls: tuple[str, dict[str, Any]]) -> str:
    made = ", ".join(f'{{ tool = "{tool}", arguments = {json.dumps(json.dumps(given))} }}' for tool, given in calls)
    return f'[[step]]\ncall = [{made}]\n[[step]]\ntext = "Done."\n'


LINKING = replace(POLICY, rules=(Rule("allow", "Bash(make *)", "user"),))


@pytest.mark.parametrize("mode", ["default", "accept-edits"])
async def test_a_link_that_an_earlier_call_of_the_step_makes_is_judged_by_its_target(tmp_path: Path, mode: Any) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
    (outside / "notes").write_text("hush\n")
    (inside / "Makefile").write_text("all:\n\tln -s ../outside link\n")
    calls = step(
        ("run_command", {"command": "make all"}),
        ("read_file", {"path": "link/notes"}),
        ("write_file", {"path": "link/new", "content": "x\n"}),
    )
    tools = (*TOOLS, ReadFile())
    async with bench(calls, inside, tools=tools, policy=replace(LINKING, mode=mode)) as b:
        b.send(Submit("go"))
        places = {str(outside / "notes"), str(outside / "new")}

        def titles() -> set[str]:
            return {asked.title for asked in b.bodies(PermissionRequested)}

        def ended() -> bool:
            answered = {body.request for body in b.bodies(PermissionResolved)}
            for asked in b.bodies(PermissionRequested):
                if asked.request not in answered:
                    # A yes to the place that the path named before the link was there is no yes to another one.
                    b.send(ReplyPermission(asked.request, "reject" if asked.title in places else "once"))
            return bool(b.bodies(TurnEnded))

        await until(ended, "the turn ends")
        assert all("outside" in asked.reason for asked in b.bodies(PermissionRequested) if asked.title in places)
        # The preview of the write may see how the link appears; then it fails before there is anything to ask.
        seen = [done for done in b.bodies(ItemCompleted) if "has just become a link" in done.detail]
        assert places - titles() <= ({str(outside / "new")} if seen else set())
    assert os.listdir(outside) == ["notes"]
    assert not any("hush" in text for text in b.tool_texts().values())
