"""``swecli mcp serve`` as a program, with clients that know no manners."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from swecli.core.llm.scripted import parse_script
from tests.mcp_server.support import EDIT
from tests.support.loopback import LoopbackServer
from tests.support.program import Program
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e


def request(id: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


HELLO = request(
    0,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={"elicitation": {}},
    clientInfo={"name": "peer", "version": "1"},
)
READY = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})


@contextmanager
def peer(tmp_path: Path, script: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    folder = tmp_path / "project"
    folder.mkdir()
    with LoopbackServer(parse_script(script, python=sys.executable)) as server:
        program = Program(folder, tmp_path / "home", {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"})
        process = cast("subprocess.Popen[str]", program.start("mcp", "serve", "-m", "openai/m", text=True))
        try:
            yield process, folder
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()


def say(process: subprocess.Popen[str], *lines: str) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines))
    process.stdin.flush()


def hear(process: subprocess.Popen[str], wanted: str) -> dict[str, Any]:
    """The next message with this id or method."""
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        named = "error" if message.get("id") is None and "error" in message else str(message.get("id"))
        if wanted in (named, message.get("method")):
            return message
    raise AssertionError(f"no {wanted}")


def test_bad_lines_are_answered_and_the_connection_goes_on(tmp_path: Path) -> None:
    with peer(tmp_path, "") as (process, _):
        say(process, "this is no JSON", "[1, 2]", "", '{"jsonrpc": "2.0"}', HELLO, READY)
        assert hear(process, "error")["error"]["code"] == -32700
        assert hear(process, "0")["result"]["serverInfo"]["name"] == "swecli"
        say(process, request(1, "tools/call", name="rm_rf", arguments={}))
        assert "unknown tool" in hear(process, "1")["error"]["message"]
        say(process, request(2, "tools/call", name="run_task", arguments={"prompt": "x" * 20_000_000}))
        assert hear(process, "2")["result"]["isError"]
        say(process, request(3, "tools/call", name="run_task", arguments=["x"]))
        assert "error" in hear(process, "3")
        say(process, '{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": [1]}')
        assert hear(process, "5")["error"]["code"] == -32600
        say(process, request(6, "tools/call", name="half \ud83d", arguments={}))
        assert "unknown tool" in hear(process, "6")["error"]["message"]
        say(process, request(4, "tools/list"))
        assert len(hear(process, "4")["result"]["tools"]) == 4
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143


@pytest.mark.parametrize("way", ["leaves", "reads no more"])
def test_a_client_that_goes_in_the_middle_of_a_question(tmp_path: Path, way: str) -> None:
    with peer(tmp_path, EDIT.rpartition("[[step]]")[0]) as (process, folder):
        say(process, HELLO, READY, request(1, "tools/call", name="run_task", arguments={"prompt": "write it"}))
        asked = hear(process, "elicitation/create")
        assert "new.txt" in asked["params"]["message"]
        assert process.stdin is not None
        assert process.stdout is not None
        if way == "leaves":
            process.stdin.close()
        else:
            process.stdout.close()
            say(process, request(2, "tools/list"))
        assert process.wait(PATIENCE) == 0
        assert not (folder / "new.txt").exists()
