"""The real program with a server that names a small window."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program

pytestmark = pytest.mark.e2e


def script(reads: int, words: int = 12) -> str:
    call = 'call = [{{ tool = "read_file", arguments = {{ path = "f{0}.txt" }} }}]'
    words = "I have read one more file and found nothing in it that matters for the task. " * words
    steps = [f'[[step]]\ntext = "{words}"\n{call.format(number)}' for number in range(reads)]
    return 'name = "small"\n' + "\n".join(steps) + '\n[[step]]\ntext = "All read."'


@pytest.mark.parametrize("window", [4_096, 8_192])
def test_a_long_task_in_a_small_window(tmp_path: Path, window: int) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for number in range(24):
        lines = "\n".join(f"line {line} of file {number}, nothing special" for line in range(window // 200))
        (project / f"f{number}.txt").write_text(lines)
    server = LoopbackServer(parse_script(script(24), python=sys.executable), manners=Manners(window=window))
    with server:
        program = Program(project, tmp_path / "home", {"VLLM_BASE_URL": server.url})
        wish = "Never change f3.txt. Read all the files."
        ended = program.run("-p", wish, "-m", "vllm/small", "--output-format", "stream-json")
    assert ended.code == 0, ended.stderr
    budgets = [body["budget"] for body in ended.events if body["type"] == "step_started"]
    assert {budget["window"] for budget in budgets} == {window}
    assert all(budget["upper"] < 0.98 * budget["effective"] for budget in budgets)
    assert budgets[0]["effective"] - budgets[0]["used"] >= window / 2
    compactions = [body for body in ended.events if body["type"] == "compaction_completed"]
    whole = [done for done in compactions if done["strategies"] != ["clearing"]]
    assert whole
    always = ("system prompt", "tool descriptions")
    fixed = sum(part["tokens"] for part in budgets[0]["components"] if part["name"] in always)
    # What is in every request can't be compacted: half of the rest is kept free.
    assert all(done["tokens_after"] - fixed <= 0.5 * (budgets[0]["effective"] - fixed) for done in whole)
    first = server.asked[0].body
    assert len(first["tools"]) == (4 if window <= 4_096 else 7)
    assert "Never change f3.txt" in str(server.asked[-1].body)


def test_what_left_a_small_window_is_read_back_with_a_tool_that_is_offered(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    lines = [f"line {line} of the log, nothing special" for line in range(2_000)]
    lines[1_234] = "the answer is 4711"
    (project / "log.txt").write_text("\n".join(lines))
    for number in range(24):
        (project / f"f{number}.txt").write_text("\n".join(lines[number * 40 :][:40]))
    home = tmp_path / "home"
    cat = '[[step]]\ncall = [{ tool = "run_command", arguments = { command = "cat log.txt" } }]\n'
    # So many that the context is not near a compaction afterwards: its summary would take a step of the second script.
    first = _run(project, home, script(20, 1).replace("[[step]]", cat + "[[step]]", 1), "Read all.")
    said = "\n".join(str(message["content"]) for body in first for message in body["messages"])
    reference = re.search(r'read_result\(ref_id="(r\w+)", offset=(\d+)\)', said)
    cleared = re.search(r"\[cleared: \d{3} tokens, \d+ lines; id (t\w+\.result)", said)
    assert reference
    assert cleared
    back = '[[step]]\ncall = [{ tool = "read_result", arguments = { %s } }]\n'
    steps = (
        back % f'ref_id = "{reference[1]}", pattern = "answer"',
        back % f'ref_id = "{reference[1]}", offset = {reference[2]}, limit = 800',
        back % f'ref_id = "{cleared[1]}"',
        '[[step]]\ntext = "It is 4711."\n',
    )
    second = _run(project, home, 'name = "small"\n' + "".join(steps), "Find it.", "-c")
    offered = [[tool["function"]["name"] for tool in body["tools"]] for body in (*first, *second) if "tools" in body]
    assert all("read_result" in names for names in offered)
    read = [str(message["content"]) for body in second for message in body["messages"] if message["role"] == "tool"]
    assert any("the answer is 4711" in text for text in read)
    assert any(text.startswith(f"[{reference[1]}: bytes {int(reference[2]):,} to ") for text in read)
    assert any(text.startswith(f"[{cleared[1]}: all ") and "of the log, nothing special" in text for text in read)


def _run(project: Path, home: Path, text: str, *arguments: str) -> list[Mapping[str, Any]]:
    """The bodies of the requests of one run, in order. It reaches the end of its script."""
    server = LoopbackServer(parse_script(text, python=sys.executable), manners=Manners(window=8_192))
    with server:
        program = Program(project, home, {"VLLM_BASE_URL": server.url})
        ended = program.run("-p", *arguments, "-m", "vllm/small")
    assert ended.code == 0, ended.stderr
    return [asked.body for asked in server.asked]
