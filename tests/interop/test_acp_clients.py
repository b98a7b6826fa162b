"""Clients of the Agent Client Protocol from npm, the TypeScript SDK's and acpx: `make test-interop` installs and runs
them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

PLACE = Path(os.environ.get("SWECLI_INTEROP_ACP", ""))
MODULES = PLACE / "node_modules"
CLIENT = Path(__file__).with_name("acp_client.mjs")
AGENT = (sys.executable, "-m", "swecli.cli", "acp", "-m", "openai/m")
LONGEST = 120.0
"""Seconds."""
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("SWECLI_INTEROP_ACP" not in os.environ, reason="make test-interop"),
]

EDIT = """
[[step]]
text = "I look at it."
[[step.call]]
tool = "edit_file"
arguments = { path = "a.txt", old_string = "one", new_string = "two" }
[[step]]
text = "Edited."
"""
SESSION = (
    EDIT
    + """
[[step]]
[[step.call]]
tool = "ask_user"
arguments = { questions = [{ question = "Which color?", options = [{ label = "red" }, { label = "blue" }] }] }
[[step]]
expect = { last_result = "red" }
text = "Red."
[[step]]
[[step.call]]
tool = "run_command"
arguments = { command = "sleep 1000" }
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


@pytest.fixture
def serving(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of an agent whose model follows the script."""
    with LoopbackServer(parse_script(request.param, python=sys.executable)) as server:
        variables = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        yield Program(folder, tmp_path / "home", variables).environment


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
    )


@pytest.mark.parametrize("serving", [SESSION], indirect=True)
def test_the_typescript_sdk_runs_through_a_session(folder: Path, serving: dict[str, str]) -> None:
    sdk = str(MODULES / "@agentclientprotocol" / "sdk")
    ended = run(["node", str(CLIENT), sdk, str(folder), *AGENT], folder, serving)
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    capabilities = told["initialized"]["agentCapabilities"]["sessionCapabilities"]
    assert {"list", "resume", "close", "fork", "delete"} <= set(capabilities)
    assert told["stops"] == ["end_turn", "end_turn", "cancelled", "end_turn"]
    assert (folder / "a.txt").read_text() == "two\n"
    assert told["writes"] == [str(folder / "a.txt")]
    assert told["asked"][0]["title"] == "Edit a.txt"
    assert told["forms"] == ["Which color?"]
    first = told["opened"]["sessionId"]
    assert told["listed"] == [first]
    assert told["left"] == [told["forked"]]
    assert {"user_message_chunk", "agent_message_chunk", "tool_call"} <= set(told["replayed"])
    assert (told["wrong"], told["code"]) == (-32002, 0)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("serving", [EDIT], indirect=True)
def test_acpx_edits_a_file(folder: Path, serving: dict[str, str]) -> None:
    acpx = ["node", str(MODULES / "acpx" / "dist" / "cli.js"), "--agent", " ".join(AGENT), "--approve-all"]
    ended = run([*acpx, "exec", "edit it"], folder, {**serving, "HOME": str(folder.parent)})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Edited." in ended.stdout
    assert "[done] end_turn" in ended.stdout
    assert (folder / "a.txt").read_text() == "two\n"
