"""The examples of the documentation for scripts and CI, as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import ROOT, Program
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs" / "headless.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return next(each for each in blocks if containing in each)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH in which swecli is this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "swecli"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m swecli.cli "$@"\n')
    command.chmod(0o755)
    return folder


def environment(tmp_path: Path, tools: Path, server: LoopbackServer) -> dict[str, str]:
    variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "SWECLI_MODEL": "openai/m"}
    program = Program(tmp_path, tmp_path / "home", variables)
    return {**program.environment, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_a_conversation_of_twenty_turns_from_another_language(tmp_path: Path, tools: Path) -> None:
    source = block("js", "createInterface")
    assert len(source.splitlines()) <= 40
    script, prompts = [], []
    for number in range(20):
        prompts.append(f"Message {number}.")
        if number % 4 == 1:
            script.append(
                '[[step]]\n[[step.call]]\ntool = "write_file"\n'
                f'arguments = {{ path = "made{number}.txt", content = "{number}" }}'
            )
        elif number % 4 == 3:
            script.append('[[step]]\n[[step.call]]\ntool = "run_command"\narguments = { command = "touch never" }')
        script.append(f'[[step]]\ntext = "Answer {number}."')
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "talk.mjs").write_text(source)
    with LoopbackServer(parse_script("\n".join(script), python=sys.executable)) as server:
        ended = subprocess.run(
            ["node", str(tmp_path / "talk.mjs"), *prompts],
            cwd=folder,
            env=environment(tmp_path, tools, server),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines == [*(f"done: Answer {number}." for number in range(20)), "20 turns, status done"]
    assert sorted(path.name for path in folder.iterdir()) == [f"made{number}.txt" for number in (1, 13, 17, 5, 9)]


@pytest.mark.parametrize(("defects", "status"), [([], 0), (["a.py:1: divides by zero"], 1)])
def test_the_review_before_a_commit(tmp_path: Path, tools: Path, defects: list[str], status: int) -> None:
    (command,) = re.findall(r"entry: (.*)", block("yaml", "pass_filenames"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "review.sh").write_text(block("sh", "json-schema"))
    (folder / "a.py").write_text("x = 1\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false", "-C", str(folder)]
    for step in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *step], check=True)
    (folder / "a.py").write_text("x = 1 / 0\n")
    subprocess.run([*git, "add", "."], check=True)
    script = f"[[step]]\ntext = {json.dumps(json.dumps(defects))}\nexpect = {{ request = ['x = 1 / 0'] }}\n"
    with LoopbackServer(parse_script(script, python=sys.executable)) as server:
        ended = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment(tmp_path, tools, server),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert ended.returncode == status, ended.stderr
    assert ended.stdout.strip() == "\n".join(defects)


def test_a_review_of_nothing_asks_no_model(tmp_path: Path, tools: Path) -> None:
    (tmp_path / "review.sh").write_text(block("sh", "json-schema"))
    with LoopbackServer(parse_script('[[step]]\ntext = "There is nothing to review."')) as server:
        ended = subprocess.run(
            ["sh", "review.sh"],
            cwd=tmp_path,
            env=environment(tmp_path, tools, server),
            input="",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert server.asked == []
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
