"""The whole first task as lines: by pipe, and by keyboard in a terminal that can do nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import ROOT, Program
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e


def in_order(text: str, *parts: str) -> None:
    position = 0
    for part in parts:
        found = text.find(part, position)
        assert found >= 0, (part, text)
        position = found + len(part)


TASK = (
    "New session.",
    "Reasoning:",
    "Done: search",
    "Permission needed: edit file basket/pricing.py",
    "+        if quantity >= pieces:",
    "Answer with y once",
    "Done: edit file basket/pricing.py: +1 -1",
    "Permission needed: run command",
    "5 passed, 0 failed",
    "Turn done",
)


MORE = (
    ("/context", "kept for the answer"),
    ("/mode plan", "Mode plan"),
    ("/nonsense", "Nothing was sent."),
    ("!echo $((40 + 2))", "42"),
    ("/diff", "changed in this session"),
)
"""What is typed afterwards, and what is told then."""
DRAWN = re.compile("[\u2500-\u259f\u2800-\u28ff]")
"""Lines, boxes, blocks, and what turns: nothing of it can be read aloud."""
ASKS = """
[[step]]
[[step.call]]
tool = "ask_user"
arguments = { questions = [{ question = "Which price?", options = [{ label = "low" }, { label = "high" }] }] }
[[step]]
text = "The high one it is."
[[step]]
text = "Still the high one."
"""


def test_by_pipe(tmp_path: Path) -> None:
    program = Program(tmp_path, tmp_path / "home", {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
    process = program.start("demo", "--plain", stderr=subprocess.PIPE)
    out, err = process.communicate(b"y\ny\n", timeout=PATIENCE)
    assert process.returncode == 0, err
    text = out.decode()
    in_order(text, *TASK, "Continue with:")
    assert "\x1b" not in text
    assert "\r" not in text
    assert not DRAWN.search(text)


def test_by_keyboard_in_a_dumb_terminal(tmp_path: Path) -> None:
    environment = {
        "TERM": "dumb",
        "SWECLI_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    terminal = Terminal(
        [sys.executable, "-m", "swecli.cli", "demo"], cwd=tmp_path, environment=environment, columns=100, rows=60
    )

    def written(count: int, text: bytes) -> bool:
        return terminal.raw.count(text) >= count

    try:
        for number in (1, 2):
            terminal.until(lambda number=number: written(number, b"Permission needed"))
            terminal.until(lambda number=number: written(number, b"Answer with y once"))
            answered = terminal.raw.count(b"Started:")
            while terminal.raw.count(b"Started:") == answered:  # a line typed too soon is asked for again
                asked = terminal.raw.count(b"please answer again")
                terminal.send("y\n")
                terminal.until(
                    lambda answered=answered, asked=asked: (
                        written(answered + 1, b"Started:") or written(asked + 1, b"please answer again")
                    )
                )
        terminal.until(lambda: written(1, b"Ready."))
        for typed, told in MORE:
            seen = len(terminal.raw)
            terminal.send(f"{typed}\n")
            terminal.until(lambda told=told, seen=seen: told in terminal.raw[seen:].decode(errors="replace"), typed)
        terminal.send("look around\n")
        terminal.until(lambda: written(2, b"Ready."))
        terminal.send("\x03")
        terminal.until(lambda: written(1, b"Press Ctrl+C again to leave"))
        terminal.send("\x03")
        assert terminal.wait() == 0
    finally:
        terminal.close()
    text = terminal.raw.decode().replace("\r\n", "\n")
    in_order(text, *TASK, *(told for _, told in MORE), "The script of this demonstration is over", "Continue with:")
    assert not re.search(r"[\x1b\r\b]", text)
    assert not DRAWN.search(text)


def test_a_session_that_cannot_be_stored_is_not_offered_again(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "blocked").write_text("a file where a folder should be")
    with LoopbackServer(parse_script('[[step]]\ntext = "Hello."')) as server:
        places = {**server.environment(), "SWECLI_HOME": str(tmp_path / "blocked")}
        ended = Program(tmp_path / "project", tmp_path / "home", places).run("--plain", "-m", "openai/m", stdin="hi\n")
    in_order(ended.stdout, "kept in memory only", "Hello.", "This conversation was not stored.")
    assert "swecli -c" not in ended.stdout


def test_a_conversation_is_continued_and_a_question_answered(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with LoopbackServer(parse_script(ASKS)) as server:
        program = Program(tmp_path / "project", tmp_path / "home", server.environment())
        first = program.run("--plain", "-m", "openai/m", stdin="which one?\n2\n")
        again = program.run("--plain", "-c", stdin="and now?\n")
    in_order(first.stdout, "Question: Which price?", "1. low", "2. high", "Answer:", "The high one it is.")
    assert "high" in str(server.asked[1].body["messages"][-1])
    in_order(again.stdout, "You: which one?", "The high one it is.", "Answer:", "Still the high one.", "Continue with:")
    assert (first.code, again.code) == (0, 0)
    assert not DRAWN.search(first.stdout + again.stdout)


def test_the_end_of_the_input_waits_for_a_command_of_ones_own(tmp_path: Path) -> None:
    with LoopbackServer(parse_script(ASKS)) as server:
        program = Program(tmp_path, tmp_path / "home", server.environment())
        ended = program.run("--plain", "-m", "openai/m", stdin="!sleep 1; echo it was > made\n")
    assert (ended.code, (tmp_path / "made").read_text()) == (0, "it was\n")
