"""A rewind of files that a kill cut off is taken back, and told once, at whatever start comes next."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.mcp_server.test_program import HELLO, READY
from tests.support.loopback import LoopbackServer
from tests.support.program import Program
from tests.support.trees import tree
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e

ACTS = """
[[step]]
call = [
    { tool = "write_file", arguments = { path = "d/a.txt", content = "new a\\n" } },
    { tool = "write_file", arguments = { path = "b.txt", content = "new b\\n" } },
    { tool = "write_file", arguments = { path = "AGENTS.md", content = "new c\\n" } },
]
[[step]]
text = "done"
"""
KILLED = """
import os, signal, sys
from swecli.core.checkpoints import restore

done, count = restore._do, 0

def one_step(step, content):
    global count
    if count == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    done(step, content)

restore._do = one_step
from swecli.cli import main
sys.argv = ["swecli", "-c", "-p", "/rewind 1", "-m", "openai/m"]
main()
"""
TOLD = "swecli was killed during an undo or a rewind of files."


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Path]]:
    """A program whose rewind was killed half way, and a copy of everything before it."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("killed")))
    work = base / "work"
    work.mkdir()
    (work / "b.txt").write_text("old b\n")
    with LoopbackServer(parse_script(ACTS + '[[step]]\ntext = "ok"\n' * 9, python=sys.executable)) as provider:
        program = Program(work, base / "home", provider.environment())
        assert program.run("-p", "go on", "-m", "openai/m", "--yolo").stdout == "done\n"
        shutil.copytree(work, base / "before")
        killed = subprocess.run(
            [sys.executable, "-c", KILLED], cwd=work, env=program.environment, check=False, timeout=PATIENCE
        )
        assert killed.returncode == -9
        assert tree(work) != tree(base / "before")
        for folder in ("work", "home"):
            shutil.copytree(base / folder, base / f"half-{folder}", symlinks=True)
        yield program, base / "before"


@pytest.fixture
def half(cut_off: tuple[Program, Path]) -> tuple[Program, Path]:
    """The same for each test: a session left half way."""
    program, before = cut_off
    for folder in (program.folder, program.home):
        shutil.rmtree(folder)
        shutil.copytree(folder.with_name(f"half-{folder.name}"), folder, symlinks=True)
    return program, before


STARTS = {
    "command": ("-c", "-p", "/status"),
    "message": ("-c", "-p", "hi"),
    "fork": ("-c", "--fork", "-p", "/status"),
    "new session": ("-p", "/status"),
    "nothing stored": ("--no-session", "-p", "/status"),
    "safe mode": ("--safe-mode", "-c", "-p", "/status"),
}


@pytest.mark.parametrize("arguments", STARTS.values(), ids=STARTS)
def test_a_headless_start_takes_it_back(half: tuple[Program, Path], arguments: tuple[str, ...]) -> None:
    program, before = half
    ended = program.run(*arguments, "-m", "openai/m")
    assert tree(program.folder) == tree(before)
    assert ended.stderr.count(TOLD) == 1, ended
    again = program.run(*arguments, "-m", "openai/m")
    assert TOLD not in again.stderr
    assert tree(program.folder) == tree(before)


def test_also_if_checkpoints_are_now_off(half: tuple[Program, Path]) -> None:
    program, before = half
    (program.home / "config").mkdir(exist_ok=True)
    (program.home / "config" / "settings.toml").write_text("[checkpoints]\nenabled = false\n")
    ended = program.run("-c", "-p", "/status", "-m", "openai/m")
    assert tree(program.folder) == tree(before), ended
    assert ended.stderr.count(TOLD) == 1


def test_an_mcp_server_takes_it_back_when_it_starts(half: tuple[Program, Path]) -> None:
    program, before = half
    process = program.start("mcp", "serve", "-m", "openai/m", text=True)
    out, errors = process.communicate(f"{HELLO}\n{READY}\n", PATIENCE)  # pyright: ignore[reportArgumentType]
    assert '"id":0' in str(out).replace(" ", "")
    assert tree(program.folder) == tree(before)
    assert str(errors).count(TOLD) == 1


def test_an_editor_that_loads_the_session_takes_it_back(half: tuple[Program, Path]) -> None:
    program, before = half
    stored = json.loads(program.run("sessions", "list", "--json").stdout.splitlines()[0])
    hello = {"protocolVersion": 1, "clientCapabilities": {}}
    load = {"sessionId": stored["id"], "cwd": str(program.folder), "mcpServers": []}
    requests = [("initialize", hello), ("session/load", load)]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": parameters})
        for at, (method, parameters) in enumerate(requests)
    ]
    process = program.start("acp", "-m", "openai/m", text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in lines))  # pyright: ignore[reportArgumentType]
    process.stdin.flush()
    heard: list[str] = []
    while not (heard and json.loads(heard[-1]).get("id") == 1):
        heard.append(str(process.stdout.readline()))
    assert tree(program.folder) == tree(before), heard
    assert process.stderr is not None
    while TOLD not in (line := str(process.stderr.readline())):
        assert line  # before the client goes: what comes later is not written any more
    _, errors = process.communicate(timeout=PATIENCE)
    assert TOLD not in str(errors)  # the next answer has it, too


def test_looking_at_the_context_changes_no_file(half: tuple[Program, Path]) -> None:
    program, before = half
    program.run("context", "-c")
    assert tree(program.folder) != tree(before)
