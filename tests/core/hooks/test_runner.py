"""Hooks as real processes: whatever they do, the answer is one line and nothing is left of them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swecli.core.hooks.hook import Hook, HookEvent
from swecli.core.hooks.runner import AT_ONCE, TAIL, HookPlace, HookRun, Hooks
from swecli.core.permissions.workspace_scripts import workspace_scripts
from tests.core.engine.support import until
from tests.support.waiting import PATIENCE, at_some_pace

ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nowhere"}


def made(folder: Path, *hooks: Hook, cover: Callable[[str], str] = lambda text: text) -> Hooks:
    return Hooks(hooks, HookPlace(folder, ENVIRONMENT, cover))


async def run(
    folder: Path, command: str, event: HookEvent = "PreToolUse", timeout: float = PATIENCE, **more: Any
) -> HookRun:
    hooks = made(folder, Hook(event, command, timeout=timeout, **more))
    (found,) = await hooks.run(event, [(("Bash", "run_command"), {"tool_name": "Bash", "text": "ä\n"})])
    return found


async def test_the_event_comes_on_stdin_and_the_project_in_the_environment(tmp_path: Path) -> None:
    found = await run(tmp_path, 'cat; echo "$PWD $CLAUDE_PROJECT_DIR $SWECLI_PROJECT_DIR" >&2')
    assert json.loads(found.ran.stdout) == {"tool_name": "Bash", "text": "ä\n"}
    assert found.ran.stderr.split() == [str(tmp_path)] * 3
    assert found.ran.exit_status == 0
    assert found.answer.problem == ""


async def test_a_hook_that_reads_nothing_of_a_large_event_is_not_held_up(tmp_path: Path) -> None:
    hooks = made(tmp_path, Hook("PostToolUse", "exit 0"))
    (found,) = await hooks.run("PostToolUse", [((), {"tool_response": "x" * 3_000_000})])
    assert found.ran.exit_status == 0


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-program-anywhere", "exit 127 (not found)"),
        ("./not-executable.sh", "exit 126 (not executable)"),
        ("kill -9 $$", "killed by signal 9"),
        ("echo one >&2; echo two >&2; exit 3", "exit 3: one two"),
        ("head -c 10000000 /dev/urandom; exit 1", "exit 1"),
        ("printf '{'; head -c 10000000 /dev/zero | tr '\\0' x", "too long"),
        ("printf '\\033[2J{}' >&2; exit 4", "exit 4"),
    ],
)
async def test_trouble_is_one_line(tmp_path: Path, command: str, problem: str) -> None:
    (tmp_path / "not-executable.sh").write_text("exit 0")
    found = await run(tmp_path, command, scripts=workspace_scripts(command, tmp_path))
    assert problem in found.answer.problem
    assert "\n" not in found.answer.problem
    unable = "not found" in problem or "not executable" in problem or "signal" in problem
    assert found.answer.wish == ("ask" if unable else "none")
    assert len(found.ran.stdout) <= TAIL


async def test_the_time_limit_ends_the_hook_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"

    async def attempt(seconds: float) -> None:
        found = await run(tmp_path, "sleep 3000 & echo $! > child; wait", timeout=seconds)
        assert "time limit" in found.answer.problem
        assert child.is_file()
        assert child.read_text()

    await at_some_pace(attempt, 0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)


async def test_a_child_that_goes_on_holds_nothing_up(tmp_path: Path) -> None:
    found = await run(tmp_path, "sleep 300 & echo $! > child; echo '{}'")
    pid = int((tmp_path / "child").read_text())
    os.kill(pid, 9)
    assert found.ran.exit_status == 0
    assert found.ran.duration < 100


async def test_skipping_ends_those_that_wait_for_a_slot_too(tmp_path: Path) -> None:
    commands = [f"touch began-{number}; sleep 300" for number in range(AT_ONCE + 3)]
    hooks = made(tmp_path, *(Hook("Stop", command) for command in commands))
    running = asyncio.create_task(hooks.run("Stop", [((), {})]))

    def begun() -> int:
        return len(list(tmp_path.glob("began-*")))

    await until(lambda: begun() == AT_ONCE)
    assert hooks.running("Stop") == tuple(commands)
    assert hooks.skip()
    assert [found.ran.ending for found in await running] == ["skipped"] * len(commands)
    assert begun() == AT_ONCE
    assert not hooks.skip()


async def test_skipping_ends_it_without_an_answer(tmp_path: Path) -> None:
    hooks = made(tmp_path, Hook("Stop", "touch began; sleep 300"))
    assert not hooks.skip()
    running = asyncio.create_task(hooks.run("Stop", [((), {})]))
    await until(lambda: (tmp_path / "began").exists())
    assert hooks.skip()
    (found,) = await running
    assert (found.ran.ending, found.answer.wish, found.answer.problem) == ("skipped", "none", "skipped by you")
    assert hooks.records[0].failures == 0
    assert not hooks.skip()


async def test_cancelling_leaves_no_process(tmp_path: Path) -> None:
    hooks = made(tmp_path, Hook("Stop", "echo $$ > pid; sleep 300"))
    running = asyncio.create_task(hooks.run("Stop", [((), {})]))
    await until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text().strip()))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_hooks_run_side_by_side_and_answer_in_their_order(tmp_path: Path) -> None:
    """Each waits for the other, so one after the other they would not end."""
    wait = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done; echo {0} >&2; exit 2"
    hooks = made(tmp_path, Hook("Stop", wait.format("a", "b")), Hook("Stop", wait.format("b", "a")))
    found = await hooks.run("Stop", [((), {})])
    assert [one.answer.reason for one in found] == ["a", "b"]


async def test_only_what_matches_runs_and_the_same_command_once(tmp_path: Path) -> None:
    hooks = made(
        tmp_path,
        Hook("PreToolUse", "echo x >> log", "Edit|Write"),
        Hook("PreToolUse", "echo y >> log", "Bash"),
        Hook("PreToolUse", "echo y >> log", "*"),
        Hook("PreToolUse", "echo z >> log", "Bash", waiting="not allowed"),
        Hook("PostToolUse", "echo w >> log"),
    )
    found = await hooks.run("PreToolUse", [(("Bash", "run_command"), {})])
    assert len(found) == 1
    assert (tmp_path / "log").read_text() == "y\n"
    assert [record.runs for record in hooks.records] == [0, 1, 0, 0, 0]


async def test_one_that_is_off_does_not_listen(tmp_path: Path) -> None:
    hooks = made(tmp_path, Hook("Stop", "echo x"))
    assert hooks.listening("Stop")
    hooks.records[0].enabled = False
    assert not hooks.listening("Stop")


async def test_a_changed_script_does_not_run(tmp_path: Path) -> None:
    script = tmp_path / "check.sh"
    script.write_text("touch ran")
    scripts = workspace_scripts("sh check.sh", tmp_path)
    script.write_text("touch PWNED")
    found = await run(tmp_path, "sh check.sh", scripts=scripts)
    assert "check.sh has changed" in found.answer.problem
    assert sorted(os.listdir(tmp_path)) == ["check.sh"]


async def test_a_script_that_was_not_there_when_the_user_agreed_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "check.sh").write_text("touch PWNED")
    found = await run(tmp_path, "sh check.sh || true")
    assert found.answer.problem == "not run: check.sh is new; /hooks allow 1 allows it again"
    assert sorted(os.listdir(tmp_path)) == ["check.sh"]


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hook_without_a_word_leaves_the_call_to_the_user(tmp_path: Path, event: HookEvent) -> None:
    script = tmp_path / "check.sh"
    script.write_text("exit 2")
    scripts = workspace_scripts("./check.sh", tmp_path)
    script.write_text("exit 2 # changed")
    found = await run(tmp_path, "./check.sh", event, scripts=scripts)
    why = "check.sh has changed; /hooks allow 1 allows it again"
    assert (found.ran.ending, found.answer.problem) == ("changed", f"not run: {why}")
    assert (found.answer.wish, found.answer.reason) == (
        "ask",
        f"The {event} hook check.sh did not judge this call: {why}",
    )

    found = await run(tmp_path, "touch ran", event, waiting="it is new", unconfirmed=True)
    assert (found.answer.wish, found.ran.ending) == ("ask", "not allowed")
    assert "it is new; /hooks allow 1 allows it" in found.answer.reason
    assert not (tmp_path / "ran").exists()
    found = await run(tmp_path, "sleep 300", event, timeout=0.1)
    assert found.answer.wish == "ask"
    assert "its time limit" in found.answer.reason
    found = await run(tmp_path / "gone", "true", event)
    assert (found.ran.ending, found.answer.wish) == ("not started", "ask")


async def test_where_no_call_waits_for_its_word_nothing_is_asked(tmp_path: Path) -> None:
    more: dict[str, Any] = {"waiting": "it is new", "unconfirmed": True}
    assert not made(tmp_path, Hook("PostToolUse", "true", **more)).listening("PostToolUse")
    assert not made(tmp_path, Hook("PreToolUse", "true", background=True, **more)).listening("PreToolUse")
    assert not made(tmp_path, Hook("PreToolUse", "true", waiting="not trusted")).listening("PreToolUse")
    found = await run(tmp_path, "sleep 300", "Stop", timeout=0.1)
    assert (found.answer.wish, found.answer.reason) == ("none", "")


async def test_the_same_command_that_may_run_judges_for_one_that_waits(tmp_path: Path) -> None:
    waiting = Hook("PreToolUse", "exit 2", "Bash", waiting="it is new", unconfirmed=True)
    hooks = made(tmp_path, waiting, Hook("PreToolUse", "exit 2"))
    (found,) = await hooks.run("PreToolUse", [(("Bash",), {})])
    assert (found.answer.wish, found.ran.ending) == ("block", "exited")


async def test_secrets_are_covered_in_what_is_kept(tmp_path: Path) -> None:
    def cover(text: str) -> str:
        return text.replace("hunter2-hunter2", "***")

    hooks = made(tmp_path, Hook("PreToolUse", "echo hunter2-hunter2"), cover=cover)
    await hooks.run("PreToolUse", [((), {})])
    assert hooks.records[0].tail == "***"
