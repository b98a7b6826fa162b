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


class Killed:
    """A guard whose process was killed right now, after a command planted and perhaps made what lies there."""

    def __init__(self, work: Path, state: Path) -> None:
        self.surveyor, self._state = Surveyor((str(work),), ""), state
        self._guard = Guard(state, self.surveyor)

    def begin(self) -> Guard:
        survey = self.surveyor.survey()
        self._guard.begin(survey.steering, (), survey.controlling)
        assert self._guard._over is not None
        self._guard._over.set()
        return self._guard

    def settle(self, *, commands_run: bool = False) -> tuple[str, ...]:
        """Die, if still alive, and settle at the next start."""
        journal = self._guard._journal
        assert journal is not None
        if journal._lock is not None:
            os.close(journal._lock)
            journal._lock = None
        return Guard(self._state, self.surveyor).settle(commands_run=commands_run)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = Path(os.path.realpath(tmp_path)) / "work"
    work.mkdir()
    return work


def plant(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("planted")
    return str(path)


def test_the_next_start_names_what_was_undone_before_the_kill(work: Path, tmp_path: Path) -> None:
    killed = Killed(work, tmp_path / "state")
    guard = killed.begin()
    early = plant(work / "sub" / ".claude" / "settings.json")
    guard.look()
    assert not (work / "sub" / ".claude").exists()
    late = plant(work / "lib" / ".npmrc")
    assert killed.settle(commands_run=True) == (early, late)
    assert killed.settle() == (), "once"
    assert not list((tmp_path / "state").glob("running-*"))


def test_what_was_undone_before_the_kill_is_named_after_consent_as_well(work: Path, tmp_path: Path) -> None:
    killed = Killed(work, tmp_path / "state")
    guard = killed.begin()
    planted = plant(work / "sub" / ".npmrc")
    guard.look()
    own = plant(work / "mine" / ".vscode" / "tasks.json")
    guard.expect([own])
    guard.accept([own])
    assert killed.settle() == (planted,)
    assert Path(own).exists()


def test_what_lies_there_again_is_not_said_to_be_undone(work: Path, tmp_path: Path) -> None:
    """The user wrote the file again after the kill."""
    killed = Killed(work, tmp_path / "state")
    guard = killed.begin()
    plant(work / "sub" / ".npmrc")
    guard.look()
    plant(work / "sub" / ".npmrc")
    (journal,) = (tmp_path / "state").glob("running-*.json")
    os.utime(journal, (1, 1))
    assert killed.settle() == ()
    assert (work / "sub" / ".npmrc").exists()


@pytest.mark.parametrize("looked", [True, False])
def test_folders_that_a_command_made_for_control_files_go_with_them(work: Path, tmp_path: Path, looked: bool) -> None:
    (work / "mine" / ".claude").mkdir(parents=True)
    (work / "kept" / ".vscode").mkdir(parents=True)
    killed = Killed(work, tmp_path / "state")
    guard = killed.begin()
    names = ["sub/.claude/settings.json", "src/.vscode/deep/tasks.json", "mine/.claude/settings.json", "lib/.npmrc"]
    planted = {plant(work / name) for name in names}
    (work / "src" / ".idea").mkdir()
    if looked:
        guard.look()
    assert {*killed.settle()} == planted
    folders = {str(path.relative_to(work)) for path in work.rglob("*")}
    assert folders == {"sub", "src", "src/.idea", "mine", "mine/.claude", "kept", "kept/.vscode", "lib"}


def test_a_folder_with_something_else_in_it_stays(work: Path, tmp_path: Path) -> None:
    killed = Killed(work, tmp_path / "state")
    killed.begin()
    planted = plant(work / "sub" / ".claude" / "settings.json")
    (work / "sub" / ".claude" / "empty").mkdir()
    assert killed.settle() == (planted,)
    assert (work / "sub" / ".claude" / "empty").is_dir()


def test_a_journal_whose_last_line_was_cut_off_still_settles(work: Path, tmp_path: Path) -> None:
    killed = Killed(work, tmp_path / "state")
    guard = killed.begin()
    early = plant(work / "sub" / ".npmrc")
    guard.look()
    (path,) = (tmp_path / "state").glob("running-*.json")
    with path.open("a") as stream:
        stream.write('"/torn')
    assert killed.settle() == (early,)


def test_a_full_disk_keeps_nothing_from_being_undone(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Killed(work, tmp_path / "state").begin()
    planted = Path(plant(work / "sub" / ".npmrc"))

    def full_disk(descriptor: int, text: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full_disk)
    guard.look()
    assert not planted.exists()
    guard.end()
