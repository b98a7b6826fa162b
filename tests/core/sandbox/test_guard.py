"""What contained commands plant is undone while they live, and at the next start after a kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from swecli.core.sandbox.bubblewrap import Placeholders
from swecli.core.sandbox.guard import Guard
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.sandbox.survey import Surveyor
from tests.core.sandbox.support import Grounds, contained, laid_out
from tests.support.waiting import PATIENCE, wait_until

_NAMES = """.npmrc .pre-commit-config.yaml .cursor/mcp.json sub/.claude/settings.json sub/.npmrc .husky/pre-commit
  .vscode/tasks.json .idea/x.xml .envrc .mcp.json sub/deep/.git/hooks/pre-commit .cargo/config.toml lefthook.yml
  mise.toml .tool-versions rust-toolchain.toml .yarnrc.yml .python-version sub/.vimrc .gemini/settings.json
  lib/.pre-commit-config.yaml a/b/c/.mcp.json lib/.git/config app/.cargo/config.toml app/.envrc lib/.githooks/pre-push
  bare/hooks/post-checkout"""
PLANTED = _NAMES.split()


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        yield made


def full(grounds: Grounds) -> Sandbox:
    sandbox = grounds.sandbox()
    if sandbox.check().level != "full":
        pytest.skip(f"no full sandbox here: {sandbox.state.text}")
    return sandbox


def planting(then: str = "") -> str:
    lines = [f"mkdir -p {os.path.dirname(name) or '.'} && echo planted > {name}" for name in PLANTED]
    lines += ["mkdir -p bare/objects bare/refs && echo 'ref: refs/heads/main' > bare/HEAD"]
    return "\n".join(f"({line}) 2>/dev/null" for line in lines) + f"\ntouch source/begun; {then}"


def left(grounds: Grounds) -> list[str]:
    return [name for name in PLANTED if (grounds.work / name).is_file()]


def test_nothing_planted_lies_there_while_the_command_still_runs(grounds: Grounds) -> None:
    sandbox = full(grounds)
    launch = sandbox.begin(grounds.work, full=True)
    argv = [*launch.prefix, "bash", "-c", planting("sleep 300")]
    environment = {**os.environ, **launch.environment}
    process = subprocess.Popen(argv, pass_fds=launch.inherited, env=environment, start_new_session=True)
    wait_until((grounds.work / "source" / "begun").exists)
    wait_until(lambda: not left(grounds), lambda: str(left(grounds)))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert {str(grounds.work / name) for name in ("sub/.npmrc", "mise.toml")} <= set(launch.undone())
    launch.end()
    sandbox.close()
    assert not left(grounds)


def test_what_is_absent_at_the_top_can_not_be_planted_at_all(grounds: Grounds) -> None:
    result = contained(full(grounds), "echo x > .npmrc; echo x > .pre-commit-config.yaml; ls .cursor", grounds.work)
    assert result.output.count("irectory") + result.output.count("Read-only") >= 2
    assert not (grounds.work / ".npmrc").exists()


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from swecli.core.sandbox import guard
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.sandbox.plan import SandboxOptions
from tests.core.sandbox.support import contained
guard._PAUSE = 3600  # the watch does not come to it
base = Path(sys.argv[2])
ground = SandboxWorkspace((str(base / "work"),), str(base / "home"), dict(os.environ), (str(base / "own"),))
sandbox = Sandbox(SandboxOptions(mode="on"), ground, Folders(base / "state", base / "state" / "cache"))
contained(sandbox, sys.argv[3], base / "work")
"""


def killed(grounds: Grounds, command: str) -> None:
    """A swecli that is killed in the middle of a contained command."""
    kill_when(grounds, command, (grounds.work / "source" / "begun").exists)


def kill_when(grounds: Grounds, command: str, holds: Callable[[], bool], times: int = 1) -> None:
    """A swecli that is killed in the middle of a contained command, once a condition held so many times."""
    root = Path(__file__).parents[3]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(root), str(grounds.base), command], cwd=grounds.base)
    for _ in range(times):
        wait_until(holds)
    process.kill()
    process.wait()


def test_the_next_start_undoes_what_a_killed_swecli_left_and_names_it(grounds: Grounds) -> None:
    sandbox = full(grounds)
    (grounds.work / "sub").mkdir()
    (grounds.work / "sub" / ".exrc").write_text("mine")
    killed(grounds, "echo changed > sub/.exrc\n" + planting("sleep 300"))
    planted = left(grounds)
    assert "sub/.npmrc" in planted
    assert sandbox.has_leftovers()
    wait_until(lambda: bool(sandbox.settle() or not sandbox.has_leftovers()))
    assert {str(grounds.work / name) for name in (*planted, "sub/.exrc")} == set(sandbox.settled)
    assert not left(grounds)
    assert (grounds.work / "sub" / ".exrc").read_text() == "mine"
    kept = sandbox.kept / str(grounds.work / "sub" / ".npmrc").lstrip("/")
    assert kept.read_text() == "planted\n"
    sandbox.settled = ()
    sandbox.settle()
    assert not sandbox.settled, "once"
    sandbox.close()


def test_a_command_that_outlives_its_swecli_for_a_moment_is_undone_as_well(grounds: Grounds) -> None:
    sandbox = full(grounds)
    killed(grounds, planting("sleep 300"))
    folder = sandbox.kept.parent
    placeholders = Placeholders(folder)
    wait_until(lambda: not placeholders.in_use())
    descriptor = placeholders.hold(())  # as the command's own does
    for journal in folder.glob("running-*.json"):
        os.utime(journal, (time.time() + 3600,) * 2)  # as if swecli had been killed right now, however busy the machine
    sandbox.settle()
    assert not left(grounds)
    (grounds.work / "sub" / ".npmrc").write_text("planted late")
    os.close(descriptor)
    assert sandbox.has_leftovers()
    wait_until(lambda: bool(sandbox.settle() or not sandbox.has_leftovers()))
    assert not left(grounds)
    sandbox.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_nothing_behind_the_next_start(grounds: Grounds, seed: int) -> None:
    """The command plants and removes its files again and again, beside a job that lives on; swecli is killed once some
    files have been there."""
    sandbox, chance = full(grounds), random.Random(seed)
    looks = chance.randrange(1, 40)
    kill_when(
        grounds, f"sleep 300 & while true; do {planting()}\n rm -rf sub lib; done", lambda: bool(left(grounds)), looks
    )
    assert sandbox.has_leftovers()
    wait_until(lambda: bool(sandbox.settle() or not sandbox.has_leftovers()))
    assert not left(grounds)
    own = {".git", ".swecli", ".env", "source", "nested", "sub", "lib", "a", "app", "bare"}
    wait_until(lambda: sandbox.tidy() is None and {path.name for path in grounds.work.iterdir()} <= own)
    sandbox.settled = ()
    sandbox.settle()
    assert not sandbox.settled, "once"
    sandbox.close()


def test_signs_of_life_do_not_wait_for_a_long_look(tmp_path: Path) -> None:
    looking, go_on = threading.Event(), threading.Event()

    class Slow(Surveyor):
        def steering(self) -> Mapping[str, bytes | None]:
            looking.set()
            go_on.wait(PATIENCE)
            return super().steering()

    work = Path(os.path.realpath(tmp_path)) / "work"
    work.mkdir()
    guard = Guard(tmp_path / "state", Slow((str(work),), ""))
    guard.begin({}, ())
    assert looking.wait(PATIENCE)
    (path,) = (tmp_path / "state").glob("running-*.json")
    os.utime(path, (1, 1))
    wait_until(lambda: path.stat().st_mtime > 1)
    go_on.set()
    guard.end()


def test_a_process_with_the_number_of_the_killed_one_settles_too(tmp_path: Path) -> None:
    work = Path(os.path.realpath(tmp_path)) / "work"
    work.mkdir()
    guard = Guard(tmp_path / "state", Surveyor((str(work),), ""))
    guard.begin({}, ())
    assert guard._over is not None
    guard._over.set()
    assert guard._journal is not None
    assert guard._journal._lock is not None
    os.close(guard._journal._lock)  # as the end of a killed process does
    (work / "sub").mkdir()
    (work / "sub" / ".npmrc").write_text("x")
    assert Guard(tmp_path / "state", Surveyor((str(work),), "")).settle() == (str(work / "sub" / ".npmrc"),)


def settled_later(work: Path, folder: Path, seconds: float) -> tuple[str, ...]:
    """What a guard settles for one that was killed this long ago."""
    guard = Guard(folder, Surveyor((str(work),), ""))
    guard.begin({}, ())
    assert guard._over is not None
    guard._over.set()
    journal = guard._journal
    assert journal is not None
    assert journal._lock is not None
    os.close(journal._lock)  # as the end of a killed process does
    (path,) = folder.glob("running-*.json")
    died = path.stat().st_mtime - seconds
    other = path.with_name(f"running-1-{'0' * 8}.json")
    path.rename(other)
    os.utime(other, (died, died))
    (work / "sub").mkdir(exist_ok=True)
    (work / "sub" / ".npmrc").write_text("x")
    return Guard(folder, Surveyor((str(work),), "")).settle()


def test_what_somebody_changed_after_the_kill_stays(tmp_path: Path) -> None:
    work = Path(os.path.realpath(tmp_path)) / "work"
    work.mkdir()
    assert settled_later(work, tmp_path / "one", 0) == (str(work / "sub" / ".npmrc"),)
    assert settled_later(work, tmp_path / "two", 3_600) == ()
    assert (work / "sub" / ".npmrc").exists()


def test_a_journal_of_a_living_swecli_is_left_alone(tmp_path: Path) -> None:
    work = Path(os.path.realpath(tmp_path)) / "work"
    work.mkdir()
    guard = Guard(tmp_path / "state", Surveyor((str(work),), ""))
    guard.begin({}, ())
    (path,) = (tmp_path / "state").glob("running-*.json")
    path.rename(path.with_name(f"running-1-{'0' * 8}.json"))
    other = Guard(tmp_path / "state", Surveyor((str(work),), ""))
    assert other.has_leftovers()
    assert other.settle() == ()
    assert other.has_leftovers()
    guard.end()


def test_a_journal_that_can_not_be_read_undoes_nothing(tmp_path: Path) -> None:
    work = Path(os.path.realpath(tmp_path)) / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / ".npmrc").write_text("x")
    state = tmp_path / "state"
    state.mkdir()
    (state / f"running-1-{'0' * 8}.json").write_text('{"/torn')
    assert Guard(state, Surveyor((str(work),), "")).settle() == ()
    assert (work / "sub" / ".npmrc").exists()
    assert not list(state.glob("running-*"))
