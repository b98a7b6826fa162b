"""What is said about the sandbox where it is missing, refused, broken or lying."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swecli.core.sandbox import probe as module
from swecli.core.sandbox.bubblewrap import Placeholders
from swecli.core.sandbox.launch import SandboxError, install_hint
from swecli.core.sandbox.plan import SandboxOptions, SandboxState
from swecli.core.sandbox.sandbox import PrivateTemporary, Sandbox
from tests.core.sandbox.support import Grounds, contained, laid_out
from tests.support.waiting import wait_until

PYTHON_HERE = sys.executable


@pytest.fixture
def grounds() -> Iterator[Grounds]:
    with laid_out() as made:
        yield made


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "landlock_abi", lambda: 0)


def fake(grounds: Grounds, script: str) -> str:
    """A directory with a program that calls itself bwrap."""
    folder = grounds.base / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "bwrap"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap 0.9.0" && exit 0\n{script}\n')
    program.chmod(0o755)
    return str(folder)


def full(grounds: Grounds) -> Sandbox:
    sandbox = grounds.sandbox()
    if sandbox.check().level != "full":
        pytest.skip(f"no full sandbox here: {sandbox.state.text}")
    return sandbox


@pytest.mark.usefixtures("no_landlock")
def test_a_missing_bubblewrap_is_named(grounds: Grounds) -> None:
    state = grounds.sandbox(path="/nowhere").check()
    assert (state.level, state.layer, state.label) == ("off", "none", "off")
    assert "not installed" in state.text
    assert "no Landlock" in state.text


@pytest.mark.usefixtures("no_landlock")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('echo "bwrap: setting up uid map: Permission denied" >&2; exit 1', "setting up uid map: Permission denied"),
        ('echo "bwrap: No permissions to create new namespace" >&2; exit 1', "No permissions to create new namespace"),
        ("exit 0", "the probe did not finish"),
        ("kill -9 $$", "the probe did not finish"),
    ],
)
def test_a_refused_bubblewrap_is_named_and_nothing_runs(grounds: Grounds, script: str, said: str) -> None:
    sandbox = grounds.sandbox(path=fake(grounds, script))
    state = sandbox.check()
    assert state.level == "off"
    assert said in state.reason
    with pytest.raises(SandboxError, match="off"):
        sandbox.begin(grounds.work, full=False)


@pytest.mark.usefixtures("no_landlock")
def test_a_bubblewrap_that_contains_nothing_is_found_out(grounds: Grounds) -> None:
    through = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'
    state = grounds.sandbox(path=fake(grounds, through)).check()
    assert state.level == "off"
    for escape in ("writing outside the workspace", "moving .git away", "connecting"):
        assert escape in state.reason


@pytest.mark.usefixtures("no_landlock")
def test_a_socket_that_goes_away_while_the_probe_is_set_up_is_looked_for_again(grounds: Grounds) -> None:
    real = shutil.which("bwrap")
    if real is None or full(grounds).state.level != "full":
        pytest.skip("no full sandbox here")
    with (
        tempfile.TemporaryDirectory(prefix="sw") as folder,
        socket.socket(socket.AF_UNIX) as one,
        socket.socket(socket.AF_UNIX) as other,
    ):
        paths = [f"{os.path.realpath(folder)}/{name}" for name in "st"]
        for service, path in zip((one, other), paths, strict=True):
            service.bind(path)
            service.listen()
        gone = "\n".join(
            f'if [ -S {path} ]; then /bin/rm {path}; echo "bwrap: Can\'t find source path {path}" >&2; exit 1; fi'
            for path in paths
        )
        options = SandboxOptions(mode="on", unix_sockets=True)  # otherwise none is masked
        sandbox = grounds.sandbox(path=fake(grounds, f'{gone}\nexec {real} "$@"'), options=options)
        assert (sandbox.check().layer, *map(os.path.lexists, paths)) == ("bwrap", False, False)


@pytest.mark.usefixtures("no_landlock")
def test_a_program_of_the_workspace_is_never_asked(grounds: Grounds) -> None:
    planted = grounds.work / "bwrap"
    planted.write_text("#!/bin/sh\ntouch ran\n")
    planted.chmod(0o755)
    state = grounds.sandbox(path=f"{grounds.work}:.:").check()
    assert "not installed" in state.reason
    assert not (grounds.work / "ran").exists()


def test_landlock_is_only_ever_partial_and_says_what_is_open(grounds: Grounds) -> None:
    sandbox = grounds.sandbox(path="/nowhere")
    state = sandbox.check()
    if state.layer != "landlock":
        pytest.skip(f"no Landlock here: {state.text}")
    assert state.level == "partial"
    assert state.uncovered == ("names of hidden files", "command lines of other processes")
    assert "not installed" in state.text
    assert (state.holds, state.label) == (True, "landlock")
    assert "bubblewrap" in state.advice
    script = (
        "import os, socket\n"
        "for act in (lambda: socket.socket(socket.AF_UNIX), lambda: socket.socket(), lambda: open('../out', 'w')):\n"
        "    try: act()\n"
        "    except OSError as error: print(error.errno)\n"
        "socket.socketpair(); open('source/made', 'w').close(); print('done')"
    )
    python = Path(sys.executable).resolve()  # that of the environment may stand in a folder that is held back
    result = contained(sandbox, f"{python} -c {shlex.quote(script)}", grounds.work)
    assert result.output.split() == ["1", "1", "13", "done"]


def test_landlock_with_the_network_holds_nothing_unasked(grounds: Grounds) -> None:
    sandbox = grounds.sandbox(path="/nowhere", options=SandboxOptions(network=True))
    state = sandbox.check()
    if state.layer != "landlock":
        pytest.skip(f"no Landlock here: {state.text}")
    assert (state.holds, state.label) == (False, "landlock, partial")
    with pytest.raises(SandboxError, match="partial"):
        sandbox.begin(grounds.work, full=True)


@pytest.mark.parametrize(
    ("release", "line"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "sudo apt install bubblewrap"),
        ('ID="fedora"\n', "sudo dnf install bubblewrap"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "sudo dnf install bubblewrap"),
        ("ID=arch\n", "sudo pacman -S bubblewrap"),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "sudo zypper install bubblewrap"),
        ("ID=alpine\n", "sudo apk add bubblewrap"),
        ("ID=own\nID_LIKE=debian\n", "sudo apt install bubblewrap"),
        ("", "install the package bubblewrap"),
    ],
)
def test_the_line_that_installs_bubblewrap_is_that_of_the_system(release: str, line: str) -> None:
    assert install_hint(release) == line


def test_the_verdict_is_remembered_for_the_same_bubblewrap_only(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(grounds)
    monkeypatch.setattr(module, "probe", lambda *_: pytest.fail("probed again"))
    assert grounds.sandbox().check().level == "full"
    monkeypatch.undo()
    (grounds.state / "cache" / "sandbox-verdict.json").write_text("{")
    assert grounds.sandbox().check().level == "full", "a damaged note is as good as none"


@pytest.mark.usefixtures("no_landlock")
def test_a_refusal_is_not_remembered(grounds: Grounds) -> None:
    path = fake(grounds, "exit 1")
    assert grounds.sandbox(path=path).check().level == "off"
    assert not (grounds.state / "cache").exists()


def test_a_sandbox_that_stops_working_is_told_from_a_command_that_fails(grounds: Grounds) -> None:
    sandbox = full(grounds)
    launch = sandbox.begin(grounds.work, full=True)
    bad = [*launch.prefix[:1], "--bind", "/does/not/exist", "/x", *launch.prefix[1:]]
    ended = subprocess.run([*bad, "true"], capture_output=True, text=True, pass_fds=launch.inherited, check=False)
    assert "bwrap: " in launch.failure(ended.stderr, ended.returncode)
    launch.end()
    launch = sandbox.begin(grounds.work, full=True)
    command = [*launch.prefix, "sh", "-c", 'echo "bwrap: I lie"; exit 1']
    ended = subprocess.run(command, capture_output=True, text=True, pass_fds=launch.inherited, check=False)
    assert ended.stdout == "bwrap: I lie\n"
    assert launch.failure(ended.stdout, ended.returncode) == ""
    launch.end()
    sandbox.failed("gone")
    assert sandbox.state.level == "off"
    assert "gone" in sandbox.state.text


def test_a_workspace_that_can_not_be_guarded_is_not_full(grounds: Grounds) -> None:
    sandbox = full(grounds)
    os.rename(grounds.work / ".git", grounds.outside / "git")
    os.symlink(grounds.outside / "git", grounds.work / ".git")
    with pytest.raises(SandboxError, match="symbolic link"):
        sandbox.begin(grounds.work, full=True)
    assert sandbox.state.level == "partial"
    result = contained(sandbox, "echo still", grounds.work)
    assert result.output == "still\n"


def test_the_network_by_setting_makes_it_partial(grounds: Grounds) -> None:
    full(grounds)
    state = grounds.sandbox(options=SandboxOptions(network=True)).check()
    assert (state.level, state.layer) == ("partial", "bwrap")
    assert "network" in state.text


def test_switched_off(grounds: Grounds) -> None:
    sandbox = grounds.sandbox(options=SandboxOptions(mode="off"))
    assert sandbox.check().text == "off: turned off in the settings"
    assert Sandbox.none().check().level == "off"


def test_words_for_the_states() -> None:
    assert SandboxState().label == "checking"
    assert SandboxState("full", "bwrap", checked=True).label == "bwrap"
    assert SandboxState("partial", "landlock", "", ("x",), checked=True).label == "landlock, partial"
    assert SandboxState("partial", "landlock", "no bwrap", ("x", "y"), checked=True).text == (
        "partial (landlock): no bwrap; not protected: x, y"
    )


def test_what_a_running_command_makes_does_not_enter_the_plan_of_the_next(grounds: Grounds) -> None:
    sandbox = full(grounds)
    first = sandbox.begin(grounds.work, full=True)
    (grounds.work / "later" / ".git" / "hooks").mkdir(parents=True)
    second = sandbox.begin(grounds.work, full=True)
    assert second.plan == first.plan
    second.end()
    first.end()
    third = sandbox.begin(grounds.work, full=True)
    assert str(grounds.work / "later" / ".git" / "hooks") in third.plan.paths("read")
    third.end()


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.core.sandbox.support import contained
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.sandbox.plan import SandboxOptions as Options
import os
base = Path(sys.argv[2])
ground = SandboxWorkspace((str(base / "work"),), str(base / "home"), dict(os.environ), (str(base / "own"),))
sandbox = Sandbox(Options(mode="on"), ground, Folders(base / "state", base / "state" / "cache"))
contained(sandbox, "echo begun > source/begun; setsid sleep 300 & sleep 300", base / "work")
"""


def test_a_killed_swecli_leaves_neither_processes_nor_placeholders(grounds: Grounds) -> None:
    sandbox = full(grounds)
    arguments = [PYTHON_HERE, "-c", KILLED, str(Path(__file__).parents[3]), str(grounds.base)]
    process = subprocess.Popen(arguments, cwd=grounds.base)
    wait_until((grounds.work / "source" / "begun").exists)
    assert (grounds.work / ".mcp.json").is_dir()
    process.kill()
    process.wait()
    record = grounds.state / "sandbox" / "workspace" / "placeholders"
    wait_until(lambda: Placeholders(record.parent).sweep())  # possible only when nothing runs in there any more
    assert not record.exists()
    assert not (grounds.work / ".mcp.json").exists()
    assert not (grounds.work / ".git" / "commondir").exists()
    sandbox.close()


def test_temporary_directories_are_removed(grounds: Grounds) -> None:
    sandbox = full(grounds)
    launch = sandbox.begin(grounds.work, full=True)
    private = Path(launch.plan.private)
    launch.end()
    assert private.stat().st_mode & 0o777 == 0o700
    (private / "x").write_text("x")
    sandbox.close()
    assert not private.exists()


def test_closing_without_a_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    temporary = PrivateTemporary()
    made = temporary.path
    monkeypatch.setattr("tempfile.gettempdir", none)
    temporary.close()
    assert not Path(made).exists()
