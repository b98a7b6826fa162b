"""Undo in the real program: in later runs, over JSON, after kill -9, and without a file in the workspace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from swecli.core.protocol.codec import to_text
from swecli.core.protocol.commands import RedoFiles, Submit, UndoFiles
from tests.support.loopback import LoopbackServer
from tests.support.program import Program
from tests.support.trees import tree
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.e2e

ACTS = """
[[step]]
call = [{ tool = "edit_file", arguments = { path = "a.txt", old_string = "two", new_string = "2" } }]
[[step]]
call = [{ tool = "run_command", arguments = { command = "rm b.txt; git add -A; echo new > c.txt; chmod 640 a.txt" } }]
[[step]]
text = "done"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "work"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "b.txt").write_text("bee\n")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    return folder


def files(work: Path) -> dict[str, tuple[object, ...]]:
    return {name: entry for name, entry in tree(work).items() if not name.startswith(".git")}


def git_files(work: Path) -> dict[str, tuple[object, ...]]:
    return tree(work / ".git")


def test_a_later_run_takes_back_what_an_earlier_one_did(work: Path) -> None:
    first = files(work)
    with LoopbackServer(parse_script(ACTS, python=sys.executable)) as provider:
        program = Program(work, work.parent / "home", provider.environment())
        ended = program.run("-p", "go", "-m", "openai/m", "--yolo")
        assert ended.stdout == "done\n"
        last = files(work)
        git = git_files(work)
        ended = program.run("-p", "-c", "/undo turn", "-m", "openai/m")
        assert ended.code == 0
        assert "b.txt  restored" in ended.stdout
        assert files(work) == first
        assert git_files(work) == git
        ended = program.run("-p", "-c", "/redo", "-m", "openai/m")
        assert "Changed again" in ended.stdout
        assert files(work) == last
        (work / "a.txt").write_text("mine\n")
        ended = program.run("-p", "-c", "/undo turn", "-m", "openai/m")
        assert "a.txt: changed since" in ended.stdout
        assert (work / "a.txt").read_text() == "mine\n"
        assert (work / "b.txt").exists()
    stores = list((work.parent / "home" / "state" / "checkpoints").rglob("*"))
    assert stores
    assert all(path.stat().st_mode & 0o077 == 0 for path in stores)


def test_over_json(work: Path) -> None:
    first = files(work)
    with LoopbackServer(parse_script(ACTS, python=sys.executable)) as provider:
        program = Program(work, work.parent / "home", provider.environment())
        process = program.start(
            "-p", "--input-format", "stream-json", "--output-format", "stream-json", "-m", "openai/m", "--yolo"
        )
        assert process.stdin is not None
        assert process.stdout is not None
        seen: list[dict[str, object]] = []

        def until(kind: str) -> dict[str, object]:
            assert process.stdout is not None
            for line in process.stdout:
                body = json.loads(line).get("body", {})
                seen.append(body)
                if body.get("type") == kind:
                    return body
            raise AssertionError(f"no {kind}: {seen[-3:]}")

        def say(command: Submit | UndoFiles | RedoFiles) -> None:
            assert process.stdin is not None
            process.stdin.write(to_text(command).encode() + b"\n")
            process.stdin.flush()

        say(Submit("go"))
        until("turn_ended")
        say(UndoFiles("turn"))
        done = until("files_restored")
        assert done["direction"] == "undo"
        assert files(work) == first
        process.stdin.close()
        process.wait(PATIENCE)


def test_after_kill_in_the_middle_of_a_command(work: Path) -> None:
    first = files(work)
    acts = """
[[step]]
call = [{ tool = "edit_file", arguments = { path = "a.txt", old_string = "two", new_string = "2" } }]
[[step]]
call = [{ tool = "run_command", arguments = { command = "rm b.txt; echo > began; kill -9 $PPID; echo > ended" } }]
"""
    with LoopbackServer(parse_script(acts, python=sys.executable)) as provider:
        program = Program(work, work.parent / "home", provider.environment())
        ended = program.run("-p", "go", "-m", "openai/m", "--yolo")
        assert ended.code == -signal.SIGKILL
        wait_until((work / "ended").exists)
        ended = program.run("-p", "-c", "/undo list", "-m", "openai/m")
        assert "(swecli was killed during it)" in ended.stdout
        ended = program.run("-p", "-c", "/undo", "-m", "openai/m")
        assert "b.txt, began, ended: swecli was killed while t4 ran" in ended.stdout
        assert not (work / "b.txt").exists()
        ended = program.run("-p", "-c", "/undo t4", "-m", "openai/m")
        assert (work / "b.txt").read_text() == "bee\n"
        assert not (work / "began").exists()
        program.run("-p", "-c", "/undo", "-m", "openai/m")
        assert files(work) == first


def test_a_run_that_stores_nothing_leaves_nothing(work: Path) -> None:
    with LoopbackServer(parse_script(ACTS, python=sys.executable)) as provider:
        program = Program(work, work.parent / "home", provider.environment())
        ended = program.run("-p", "go", "-m", "openai/m", "--yolo", "--no-session")
        assert ended.stdout == "done\n"
    assert not (work.parent / "home" / "state" / "checkpoints").exists()
