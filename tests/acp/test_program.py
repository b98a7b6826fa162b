"""The real program, driven by the official SDK's client over its pipes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from acp import spawn_agent_process
from acp.schema import ClientCapabilities

from swecli.core.llm.scripted import parse_script
from tests.acp.support import Editor, text
from tests.support.loopback import LoopbackServer
from tests.support.processes import lives
from tests.support.program import Program
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

SCRIPT = """
[[step]]
text = "I look at it."
[[step.call]]
tool = "edit_file"
arguments = { path = "a.txt", old_string = "one", new_string = "two" }
[[step]]
text = "Edited."
[[step]]
[[step.call]]
tool = "run_command"
arguments = { command = "touch begun && sleep 1000" }
[[step]]
text = "Never."
"""


def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


async def test_a_session_with_an_edit_a_cancel_and_a_reload(tmp_path: Path) -> None:
    folder = project(tmp_path)
    with LoopbackServer(parse_script(SCRIPT, python=sys.executable)) as server:
        program = Program(folder, tmp_path / "home", {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"})
        command = (sys.executable, "-m", "swecli.cli", "acp", "-m", "openai/m")
        editor = Editor(answers=["allow_once", "allow_once"])
        session = ""
        async with spawn_agent_process(
            editor,  # pyright: ignore[reportArgumentType]
            *command,
            env=program.environment,
            cwd=folder,
            use_unstable_protocol=True,
        ) as (connection, process):
            initialized = await connection.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
            assert initialized.agent_capabilities is not None
            assert initialized.agent_capabilities.load_session
            session = (await connection.new_session(cwd=str(folder), mcp_servers=[])).session_id
            answer = await connection.prompt(session_id=session, prompt=text("edit it"))
            assert answer.stop_reason == "end_turn"
            assert (folder / "a.txt").read_text() == "two\n"
            diff = editor.asked[0][0].content[-1]  # pyright: ignore[reportOptionalSubscript]
            assert (diff.old_text, diff.new_text) == ("one\n", "two\n")  # pyright: ignore
            assert editor.said().endswith("I look at it.Edited.")
            turn = asyncio.create_task(connection.prompt(session_id=session, prompt=text("run it")))
            await until((folder / "begun").exists)
            sleeping = [each for each in psutil.Process(process.pid).children(recursive=True) if each.is_running()]
            assert sleeping
            await connection.cancel(session_id=session)
            assert (await turn).stop_reason == "cancelled"
            await until(lambda: not any(lives(each) for each in sleeping))  # a killed process ends when it next runs
        again = Editor()
        async with spawn_agent_process(
            again,  # pyright: ignore[reportArgumentType]
            *command,
            env=program.environment,
            cwd=folder,
        ) as (connection, _):
            await connection.initialize(protocol_version=1)
            await connection.load_session(session_id=session, cwd=str(folder), mcp_servers=[])
            assert again.said("user_message_chunk") == "edit itrun it"
            assert [each.status for each in again.of("tool_call")] == ["completed", "failed"]


class Lines:
    """The program with its pipes, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, id: int | None, method: str, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        self.raw(json.dumps(message if id is None else {**message, "id": id}).encode())

    def raw(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def until(self, key: int | str | None) -> dict[str, Any]:
        """The message with this id, or of this method."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if (message.get("method") if isinstance(key, str) else message.get("id", "")) == key:
                return message
        raise AssertionError(f"the program ended without {key}")


@pytest.mark.parametrize("leaving", ["input", "both", "signal"])
def test_a_client_that_leaves_in_a_question_leaves_nothing_behind(tmp_path: Path, leaving: str) -> None:
    folder = project(tmp_path)
    with LoopbackServer(parse_script(SCRIPT, python=sys.executable)) as server:
        program = Program(folder, tmp_path / "home", {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"})
        # How Python itself ends shows where nobody listens any more.
        process = replace(program, fresh=leaving == "both").start("acp", "-m", "openai/m")
        lines = Lines(process)
        lines.raw(b"no json")
        assert lines.until(None)["error"]["code"] == -32700
        lines.send(1, "initialize", protocolVersion=1)
        lines.until(1)
        lines.send(2, "no/such/method")
        assert lines.until(2)["error"]["code"] == -32601
        lines.send(3, "session/new", cwd=str(folder), mcpServers=[])
        session = lines.until(3)["result"]["sessionId"]
        lines.send(4, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "edit it"}])
        lines.until("session/request_permission")
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if leaving == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
        if leaving == "both":
            process.stdout.close()
        code = process.wait(PATIENCE)
        assert code == (143 if leaving == "signal" else 0)
        errors = process.stderr.read().decode()
        assert "Traceback" not in errors
        assert (folder / "a.txt").read_text() == "one\n"
        listed = program.run("sessions")
        assert session in listed.stdout


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    program = Program(project(tmp_path), tmp_path / "home")
    for arguments in (("hello",), ("-c",), ("-p", "x"), ("--json-schema", "{}"), ("--login",)):
        ended = program.run("acp", *arguments)
        assert (ended.code, ended.stdout) == (2, "")
        assert "terminal" in ended.stderr if "--login" in arguments else "Unrecognized" in ended.stderr
    assert "--permission-mode" in program.run("acp", "--help").stdout
