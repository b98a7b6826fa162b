"""Undo of files in a running session: edits and commands, turns, calls and paths; killed and resumed sessions."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from swecli.core.checkpoints import history
from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import CheckpointOptions, FileHistory, Running
from swecli.core.checkpoints.journal import Origin
from swecli.core.checkpoints.restore import Content, Step, Target
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.engine.files import OFF
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Decision, Policy, Rule
from swecli.core.protocol.commands import Interrupt, RedoFiles, Rewind, Submit, UndoFiles
from swecli.core.protocol.events import (
    FilesRestored,
    ItemCheckpointed,
    LeftFile,
    Notice,
    PermissionRequested,
    Rewound,
    TurnEnded,
)
from swecli.core.sessions.database import open_database
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import bench, new_notes, until
from tests.support.trees import tree
from tests.support.waiting import PATIENCE

FREE = Policy(mode="default", yolo=True)


def step(tool: str, **arguments: object) -> str:
    return f"[[step]]\ncall = [{{ tool = {json.dumps(tool)}, arguments = {json.dumps(json.dumps(arguments))} }}]\n"


def parallel(*calls: tuple[str, dict[str, str]]) -> str:
    """One step with several calls."""
    listed = ", ".join(
        f"{{ tool = {json.dumps(tool)}, arguments = {json.dumps(json.dumps(arguments))} }}" for tool, arguments in calls
    )
    return f"[[step]]\ncall = [{listed}]\n"


def script(*turns: str) -> str:
    done = '[[step]]\ntext = "done"\n'
    return "window = 200000\nmax_output = 2000\n" + done.join(turns) + done


def run(command: str) -> str:
    return step("run_command", command=command)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "work"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "b.txt").write_text("bee\n")
    return folder


def checkpoints(work: Path, session: str = "s") -> Checkpoints:
    roots = (str(work),)

    def open_history() -> FileHistory:
        rows = open_database(work.parent / "state" / "checkpoints.db", migrations=SCHEMA)
        return FileHistory(rows, session, roots, CheckpointOptions())

    return Checkpoints(open_history, str(work), roots, str(work.parent / "home"), wait=30)


def files_of(done: FilesRestored, work: Path) -> dict[str, str]:
    return {os.path.relpath(file.path, work): file.how for file in done.files}


def left(listed: Sequence[LeftFile], work: Path) -> dict[str, str]:
    return {os.path.relpath(one.path, work): one.why for one in listed}


async def test_edits_and_commands_are_taken_back_one_by_one_and_brought_back(work: Path) -> None:
    first = tree(work)
    turns = script(
        step("edit_file", path="a.txt", old_string="two", new_string="2")
        + run("rm b.txt; mkdir d; printf x > d/new; chmod 600 a.txt"),
        step("write_file", path="deep/er/c.txt", content="c\n"),
    )
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        middle = tree(work)
        await b.say("more")
        last = tree(work)
        assert files_of(await b.session.files.undo(Target()), work) == {
            "deep": "removed",
            "deep/er": "removed",
            "deep/er/c.txt": "removed",
        }
        assert tree(work) == middle
        done = await b.session.files.undo(Target())
        assert files_of(done, work) == {
            "a.txt": "mode restored",
            "b.txt": "restored",
            "d": "removed",
            "d/new": "removed",
        }
        assert done.operations[0].endswith("rm b.txt; mkdir d; printf x > d/new; chmod 600 a.txt")
        done = await b.session.files.undo(Target())
        assert files_of(done, work) == {"a.txt": "restored"}
        assert [(file.added, file.removed) for file in done.files] == [(1, 1)]
        assert tree(work) == first
        assert "no file changes to undo" in (await b.session.files.undo(Target())).reason
        for _ in range(3):
            assert not (await b.session.files.redo()).conflicts
        assert tree(work) == last
        assert "nothing to redo" in (await b.session.files.redo()).reason
        assert len(b.bodies(FilesRestored)) == 8


async def test_edits_of_one_file_in_one_step_are_undone_from_the_last_one(work: Path) -> None:
    edits = [
        ("edit_file", {"path": "b.txt", "old_string": old, "new_string": new})
        for old, new in (("bee", "cat"), ("cat", "dog"), ("dog", "elk"))
    ]
    turns = script(parallel(*edits, ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"})))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        assert (work / "b.txt").read_text() == "elk\n"
        await b.session.files.undo(Target("path", name=str(work / "a.txt")))
        for text in ("dog\n", "cat\n", "bee\n"):
            await b.session.files.undo(Target())
            assert (work / "b.txt").read_text() == text
        for _ in range(3):
            await b.session.files.redo()
        assert (work / "b.txt").read_text() == "elk\n"
        await b.session.files.undo(Target("turn"))
        assert (work / "b.txt").read_text() == "bee\n"


async def test_edits_of_one_step_are_undone_in_reverse_order_of_the_calls(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, names = FileHistory.begin, ("x", "y", "z")

    def slower_for_the_first(self: FileHistory, origin: Origin, *rest: Any, **options: Any) -> Running:
        time.sleep(0.04 * (2 - names.index(origin.title.rpartition(" ")[2])))
        return begin(self, origin, *rest, **options)

    monkeypatch.setattr(FileHistory, "begin", slower_for_the_first)
    turns = script(parallel(*(("write_file", {"path": name, "content": "new\n"}) for name in names)))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        for name in reversed(names):
            assert files_of(await b.session.files.undo(Target()), work) == {name: "removed"}


async def test_what_a_run_changed_is_known_at_its_end(work: Path) -> None:
    turns = script(step("write_file", path="c.txt", content="c\n") + run("mv b.txt d.txt; rm c.txt"))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        assert b.session.files.run_changes is None
    changes = b.session.files.run_changes
    assert changes is not None
    assert changes.changed == {str(work / "b.txt"): True, str(work / "d.txt"): False}


async def test_a_turn_is_taken_back_as_a_whole(work: Path) -> None:
    turns = script(
        run("echo 1 > one"),
        step("edit_file", path="a.txt", old_string="one", new_string="1") + run("mv a.txt z.txt; echo 2 >> b.txt"),
    )
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        middle = tree(work)
        await b.say("more")
        done = await b.session.files.undo(Target("turn"))
        assert files_of(done, work).keys() == {"a.txt", "z.txt", "b.txt"}
        assert len(done.operations) == 2
        assert tree(work) == middle
        assert "Turn 2 changed no files" in (await b.session.files.undo(Target("turn", 2))).reason
        await b.session.files.undo(Target("turn", 1))
        assert not (work / "one").exists()


async def test_what_the_user_changed_since_is_left_alone_and_named(work: Path) -> None:
    turns = script(run("echo agent > a.txt; echo agent > b.txt; mkdir d; echo agent > d/x; rm -f gone"))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        (work / "b.txt").write_text("mine\n")
        (work / "mine.txt").write_text("mine\n")
        (work / "d" / "mine").write_text("mine\n")
        done = await b.session.files.undo(Target())
        assert files_of(done, work).keys() == {"a.txt", "d/x"}
        assert left(done.conflicts, work) == {
            "b.txt": "changed since",
            "d": "the folder now contains other files",
        }
        assert (work / "b.txt").read_text() == "mine\n"
        assert (work / "mine.txt").exists()
        assert (work / "d" / "mine").read_text() == "mine\n"
        assert (work / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        again = await b.session.files.redo()
        assert files_of(again, work).keys() == {"a.txt", "d/x"}
        assert (work / "a.txt").read_text() == "agent\n"


async def test_one_file_and_one_call(work: Path) -> None:
    turns = script(run("echo 1 > a.txt; echo 1 > b.txt"), run("echo 2 > a.txt"))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        await b.say("more")
        recent = await b.session.files.changes()
        newest, oldest = recent.operations
        done = await b.session.files.undo(Target("call", name=oldest.origin.item))
        assert [os.path.basename(one.path) for one in done.conflicts] == ["a.txt"]
        assert files_of(done, work) == {"b.txt": "restored"}
        done = await b.session.files.undo(Target("path", name=str(work / "a.txt")))
        assert files_of(done, work) == {"a.txt": "restored"}
        assert (work / "a.txt").read_text() == "1\n"
        await b.session.files.undo(Target("path", name=str(work)))
        assert (work / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert newest.origin.turn == 2


async def test_the_commands_of_the_protocol_do_the_same(work: Path) -> None:
    async with bench(
        script(run("echo 1 > a.txt")), work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)
    ) as b:
        await b.say("go")
        b.send(UndoFiles())
        await until(lambda: len(b.bodies(FilesRestored)) == 1, "undo")
        assert (work / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        await until(lambda: not b.session.view.busy, "idle")
        b.send(RedoFiles())
        await until(lambda: len(b.bodies(FilesRestored)) == 2, "redo")
        assert (work / "a.txt").read_text() == "1\n"


async def test_a_resumed_session_takes_back_what_it_did_before(work: Path) -> None:
    first = tree(work)
    async with bench(
        script(run("echo 1 > a.txt; ln -s a.txt l")),
        work,
        tools=builtin_tools(),
        policy=FREE,
        checkpoints=checkpoints(work),
    ) as b:
        await b.say("go")
        facts = b.facts
    async with bench(
        script(run("true")), work, history=facts, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)
    ) as b:
        done = await b.session.files.undo(Target())
        assert len(done.files) == 2
    assert tree(work) == first
    other = checkpoints(work, "another session")
    async with bench(script(run("true")), work, tools=builtin_tools(), policy=FREE, checkpoints=other) as b:
        assert "no file changes to undo" in (await b.session.files.undo(Target())).reason


async def test_a_file_outside_that_a_command_names_is_covered_and_a_folder_there_is_warned_of(work: Path) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("before\n")
    turns = script(run(f"echo after > {outside}/f; echo new > {outside}/g"), run(f"rm -rf {outside}"))
    async with bench(turns, work, tools=builtin_tools(), checkpoints=checkpoints(work)) as b:
        b.allow_all = True
        await b.say("go")
        done = await b.session.files.undo(Target())
        assert [file.how for file in done.files] == ["restored", "removed"]
        assert (outside / "f").read_text() == "before\n"
        assert not (outside / "g").exists()
        await b.say("more")
        asked = b.bodies(PermissionRequested)[-1]
        assert "/undo can't restore" in asked.danger


@pytest.mark.parametrize("recorded", [True, False])
async def test_what_undo_can_restore_is_overwritten_under_a_rule_without_a_question(work: Path, recorded: bool) -> None:
    rules = tuple(Rule("allow", text, "user") for text in ("Bash(echo *)", "Edit(/b.txt)"))
    turns = script(run("echo 1 > b.txt"), run("echo 2 > b.txt"))
    policy = Policy(rules=rules, facts=OsFacts({"PATH": "/usr/bin:/bin"}))
    record = checkpoints(work) if recorded else None
    async with bench(turns, work, tools=builtin_tools(), policy=policy, checkpoints=record) as b:
        b.allow_all = True
        await b.say("go")
        await b.say("again")
        asked = [one.danger for one in b.bodies(PermissionRequested)]
        assert asked == ([] if recorded else 2 * ["overwrites 1 file; /undo can't restore it: checkpoints are off"])
        assert (work / "b.txt").read_text() == "2\n"


async def test_exceptions_are_named_before_the_first_command_and_again_by_the_undo(work: Path) -> None:
    (work / "big.bin").write_bytes(bytes(2_000_001))
    (work / ".env").write_text("TOKEN=x\n")
    turns = script(run("echo >> big.bin; rm .env; echo 1 > a.txt"))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        told: list[str] = []
        made = b.session._services.workspace.checkpoints
        assert made is not None
        made.tell = told.append
        await b.say("go")
        assert "big.bin (larger than 2 MB)" in told[0]
        assert ".env (may hold secrets, judging by its name)" in told[0]
        done = await b.session.files.undo(Target())
        assert files_of(done, work) == {"a.txt": "restored"}
        assert left(done.not_covered, work) == {
            "big.bin": "larger than 2 MB",
            ".env": "may hold secrets, judging by its name",
        }
        assert not b.bodies(Notice)


async def test_without_checkpoints_it_says_so(work: Path) -> None:
    async with bench(script(run("true")), work, tools=builtin_tools(), policy=FREE) as b:
        assert (await b.session.files.undo(Target())).reason == OFF
        assert (await b.session.files.changes()).reason == OFF


async def test_a_store_that_fails_is_told_and_the_work_goes_on(work: Path) -> None:
    def broken() -> FileHistory:
        raise OSError(28, "No space left on device")

    failing = Checkpoints(broken, str(work), (str(work),), "/home/nobody")
    told: list[str] = []
    failing.tell = told.append
    async with bench(script(run("echo 1 > a.txt")), work, tools=builtin_tools(), policy=FREE, checkpoints=failing) as b:
        ended = await b.say("go")
        assert ended.outcome == "done"
        assert (work / "a.txt").read_text() == "1\n"
        assert len(told) == 1
        assert "No space left" in told[0]
        assert "No space left" in (await b.session.files.undo(Target())).reason


async def test_the_model_is_told_what_was_taken_back(work: Path) -> None:
    turns = script(
        step("edit_file", path="a.txt", old_string="two", new_string="2")
        + step("write_file", path="n.txt", content="n\n"),
        step("list_files"),
        step("list_files"),
    )
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        await b.session.files.undo(Target("turn"))
        await b.say("more")
        told = new_notes(b.model.requests[-2])
        assert "a.txt (the user undid your change)" in told
        assert "n.txt (deleted, the user undid your change)" in told
        await b.session.files.redo()
        await b.say("and more")
        assert "undid your change" not in new_notes(b.model.requests[-1])


@pytest.mark.parametrize(("command", "waits"), [("pwd", False), ("rm b.txt", True)])
async def test_a_command_says_that_it_waits_for_the_record_of_the_files(
    work: Path, monkeypatch: pytest.MonkeyPatch, command: str, waits: bool
) -> None:
    release = threading.Event()
    monkeypatch.setattr(FileHistory, "first_copy", lambda self: release.wait(PATIENCE))
    allowed = Decision("allow", "for the test", reads_only=not waits)
    async with bench(
        script(run(command)),
        work,
        tools=builtin_tools(),
        decide=lambda _policy, _call: allowed,
        checkpoints=checkpoints(work),
    ) as b:
        b.send(Submit("go"))
        if waits:
            await until(lambda: any(body.awaits for body in b.bodies(ItemCheckpointed)))
            assert not any(body.running for body in b.bodies(ItemCheckpointed))
            assert (work / "b.txt").exists()
            release.set()
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert any(body.running for body in b.bodies(ItemCheckpointed))
        assert any(body.awaits for body in b.bodies(ItemCheckpointed)) == waits
        assert (work / "b.txt").exists() != waits
        release.set()


@pytest.mark.parametrize("rewind", [False, True])
async def test_a_restore_that_has_begun_is_completed_and_reported_despite_an_interrupt(
    work: Path, monkeypatch: pytest.MonkeyPatch, rewind: bool
) -> None:
    begun, go_on, restore = threading.Event(), threading.Event(), history.restore

    def held(steps: Sequence[Step], content: Content) -> tuple[LeftFile, ...]:
        begun.set()
        go_on.wait(PATIENCE)
        return restore(steps, content)

    monkeypatch.setattr(history, "restore", held)
    turns = script(step("edit_file", path="a.txt", old_string="two", new_string="2"))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work)) as b:
        await b.say("go")
        b.send(Rewind("u1", "both") if rewind else UndoFiles())
        await until(begun.is_set)
        b.send(Interrupt())
        b.send(Interrupt())
        await asyncio.sleep(0.01)
        go_on.set()
        await until(lambda: not b.session.view.busy and bool(b.bodies(FilesRestored)))
        assert files_of(b.bodies(FilesRestored)[0], work) == {"a.txt": "restored"}
        assert (work / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert len(b.bodies(Rewound)) == rewind
        assert len(b.session.view.messages) == (0 if rewind else 4)


async def test_only_a_question_about_changes_tells_what_undo_would_not_restore(work: Path) -> None:
    keys = work.parent / "home" / ".ssh"
    keys.mkdir(parents=True)
    policy = Policy(facts=OsFacts({"PATH": os.environ["PATH"]}), home=str(work.parent / "home"))
    kept = checkpoints(work)
    kept.start()
    await kept.ready()
    turns = script(run("ls ~/.ssh"), run("touch ~/.ssh"))
    async with bench(turns, work, tools=builtin_tools(), policy=policy, checkpoints=kept) as b:
        told: list[bool] = []
        for number in (1, 2):
            b.send(Submit("go"))
            asked = await b.asked(number)
            told.append(any("/undo would not restore" in text for text in (asked.danger, *asked.warnings)))
            b.allow(asked, "reject")
            await until(lambda: not b.session.view.busy, "end of the turn")
        assert told == [False, True]
