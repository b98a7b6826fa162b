"""The real program with a local model that writes its calls as text, in a small window."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

pytestmark = pytest.mark.e2e

CALL = json.dumps({"name": "write_file", "arguments": {"path": "a.txt", "content": "hello\n"}})
SCRIPT = f"""
[[step]]
text = '''<think>A file is wanted.</think>I write it.
<tool_call>
{CALL}
</tool_call>'''
[[step]]
expect = {{ tools = true }}
text = "Written."
"""


@pytest.mark.parametrize("allowed", [True, False])
def test_a_call_in_text_runs_after_approval_only(tmp_path: Path, allowed: bool) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with LoopbackServer(parse_script(SCRIPT, python=sys.executable)) as server:
        program = Program(project, tmp_path / "home", {"VLLM_BASE_URL": server.url})
        rules = ("--allowed-tools", "write_file") if allowed else ()
        ended = program.run("-p", "Write a.txt", "-m", "vllm/m", *rules, "--output-format", "json")
    assert (project / "a.txt").exists() == allowed
    assert ended.code == (0 if allowed else 62)
    assert ended.result["text"] == "Written."
    assert ended.result["cost"] == "0"


@pytest.mark.parametrize(("message", "shown"), [("/status", "Model         openai/"), ("/own", "Hello.")])
def test_a_command_uses_the_only_model_of_the_users_server(tmp_path: Path, message: str, shown: str) -> None:
    project, commands = tmp_path / "project", tmp_path / "home" / "commands"
    project.mkdir()
    commands.mkdir(parents=True)
    (commands / "own.md").write_text("Say hello.", encoding="utf-8")
    with LoopbackServer(parse_script('[[step]]\ntext = "Hello."', python=sys.executable)) as server:
        environment = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": ""}
        ended = Program(project, tmp_path / "home", environment).run("-p", message)
    assert ended.code == 0, ended
    assert shown in ended.stdout
