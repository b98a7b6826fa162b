"""The real program with a server that names a small window."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swecli.core.llm.script_format import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program

pytestmark = pytest.mark.e2e


def script(reads: int) -> str:
    call = 'call = [{{ tool = "read_file", arguments = {{ path = "f{0}.txt" }} }}]'
    words = "I have read one more file and found nothing in it that matters for the task. " * 12
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
        ended = program.run("-p", wish, "-m", "vllm/small", "--output-format", "stream-json", timeout=120)
    assert ended.code == 0, ended.stderr
    budgets = [body["budget"] for body in ended.events if body["type"] == "step_started"]
    assert {budget["window"] for budget in budgets} == {window}
    assert all(budget["upper"] < 0.98 * budget["effective"] for budget in budgets)
    assert budgets[0]["effective"] - budgets[0]["upper"] >= window * (0.5 if window >= 8_192 else 0.45)
    compactions = [body for body in ended.events if body["type"] == "compaction_completed"]
    whole = [done for done in compactions if done["strategies"] != ["clearing"]]
    assert whole
    assert all(done["tokens_after"] <= 0.5 * budgets[0]["effective"] for done in whole)
    first = server.asked[0].body
    assert len(first["tools"]) == 6
    assert "Never change f3.txt" in str(server.asked[-1].body)
