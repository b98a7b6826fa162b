"""Killed at any moment, the session goes on with everything that had been shown."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program
from tests.support.waiting import PATIENCE

KILLS = int(os.environ.get("SWECLI_KILLS", "8"))
WORDS = " ".join(f"word{number}" for number in range(120))
SCRIPT = f"""
window = 128000
delay = 0.002
[[step]]
reasoning = "I look at the file before anything else, then I decide what to do about it."
text = "Looking. {WORDS}"
call = [{{ tool = "read_file", arguments = {{ path = "a.txt" }} }}]
[[step]]
text = "Running a command now."
call = [{{ tool = "run_command", arguments = {{ command = "sleep 0.2; echo done" }} }}]
[[step]]
text = "Finished. {WORDS}"
"""
ANSWER = '[[step]]\ntext = "I know where we were."'


@pytest.mark.e2e
@pytest.mark.parametrize("trial", range(KILLS))
def test_what_was_shown_before_a_kill_is_there_afterwards(tmp_path: Path, trial: int) -> None:
    moment = random.Random(f"{os.environ.get('SWECLI_HISTORY', '')}-{trial}")
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    (project / "a.txt").write_text("content of a\n")
    with LoopbackServer(parse_script(SCRIPT), manners=Manners(play_delays=True)) as server:
        shown = killed_after(moment.randint(4, 420), Program(project, home, server.environment()))
    with LoopbackServer(parse_script(ANSWER)) as server:
        again = Program(project, home, server.environment()).run("-c", "-p", "continue", "-m", "openai/m")
        assert again.code == 0, again.stderr
        assert "I know where we were." in again.stdout
        history = json.dumps(server.asked[0].body["messages"])
    for text in said(shown):
        assert json.dumps(text)[1:-1] in history, f"lost: {text[:80]!r}"


def killed_after(lines: int, program: Program) -> list[dict[str, Any]]:
    """Run until so many events were printed, kill, and return what was acknowledged until then."""
    arguments = ["-p", "please fix it", "-m", "openai/m", "--yolo", "--output-format", "stream-json"]
    process = program.start(*arguments, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    shown: list[dict[str, Any]] = []
    for line in process.stdout:
        shown.append(json.loads(line))
        if len(shown) >= lines or shown[-1].get("type") == "result":
            break
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    rest = process.stdout.read()  # what it had written before it died was shown as well
    shown += [json.loads(line) for line in rest.splitlines() if line.endswith(b"}")]
    process.stdout.close()
    return shown


def said(events: list[dict[str, Any]]) -> list[str]:
    """Texts of items and checkpoints, which are facts and so must have been stored."""
    texts: dict[str, str] = {}
    for event in events:
        body = event.get("body", {})
        parts = body.get("parts", []) if body.get("type") == "item_completed" else []
        if body.get("type") == "item_checkpointed":
            parts = [body["part"]]
        for part in parts:
            if part["type"] in ("text", "tool_result"):
                texts[f"{body['item']}{part['type']}"] = part["text"]
    return list(texts.values())
