"""Looking at a stored session: its context and the plan of a compaction, without changing anything."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.core.mcp.support import SERVER
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program

pytestmark = pytest.mark.e2e


def script(reads: int) -> str:
    call = 'call = [{{ tool = "read_file", arguments = {{ path = "f{0}.txt" }} }}]'
    steps = [f"[[step]]\n{call.format(number)}" for number in range(reads)]
    return "\n".join(['name = "m"', *steps, '[[step]]\ntext = "All read."'])


def state(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def test_the_plan_and_the_context_of_a_stored_session(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for number in range(8):
        (project / f"f{number}.txt").write_text("\n".join(f"line {line} of file {number}" for line in range(120)))
    server = LoopbackServer(parse_script(script(8), python=sys.executable), manners=Manners(window=200_000))
    with server:
        program = Program(project, tmp_path / "home", {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"})
        ended = program.run("-p", "Read all the files.", "-m", "openai/m", "--output-format", "stream-json")
        assert ended.code == 0, ended.stderr
        asked = len(server.asked)
        before = state(tmp_path / "home")
        plan = program.run("-p", "--compact-dry-run", "-c", "-m", "openai/m")
        document = program.run("context", "--json", "-c", "-m", "openai/m")
        text = program.run("context", "-c", "-m", "openai/m")
        assert len(server.asked) == asked
    assert plan.code == 0, plan.stderr
    assert state(tmp_path / "home") == before
    planned = json.loads(plan.stdout)
    assert planned["type"] == "compaction_plan"
    assert planned["worthwhile"]
    assert planned["tokens_after"] < planned["tokens_before"]
    assert planned["kept"]
    assert planned["replaced"]
    shown = json.loads(document.stdout)
    assert shown["budget"]["used"] == planned["tokens_before"]
    assert sum(part["tokens"] for part in shown["budget"]["components"]) == shown["budget"]["used"]
    assert f"{shown['budget']['used']:,} of {shown['budget']['effective']:,} tokens" in text.stdout
    for part in shown["budget"]["components"]:
        assert part["name"] in text.stdout


def test_the_tools_of_servers_are_shown_or_named(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    servers = {"hub": {"command": sys.executable, "args": [str(SERVER)]}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (home / "config.toml").write_text("[tools]\ntool_deferral_threshold = 1.0\n")
    program = Program(project, home, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9"})
    shown = {word: program.run("-p", word, "-m", "openai/m").stdout for word in ("/mcp", "/context", "/wire")}
    assert "ready" in shown["/mcp"]
    assert "tool descriptions of hub" in shown["/context"]
    assert "hub" in shown["/wire"]
    (row,) = (line for line in Program(project, home).run("-p", "/mcp").stdout.splitlines() if line.startswith("hub"))
    assert row.split()[1:4] == ["ready", "13", "?"]  # without a model
    for words in (["context"], ["--dry-run", "-p", "hi"]):
        looked = program.run(*words, "-m", "openai/m")
        assert "mcp__hub" not in looked.stdout
        assert "MCP servers are not started here; missing are the tools of hub" in looked.stderr


def test_what_can_not_be_looked_at(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    program = Program(project, tmp_path / "home", {"OPENAI_API_KEY": "k"})
    nothing = program.run("-p", "--compact-dry-run")
    assert (nothing.code, "needs a session" in nothing.stderr) == (2, True)
    none = program.run("-p", "--compact-dry-run", "-c")
    assert none.code == 42
    assert "No sessions are stored for" in none.stderr
    assert not list((tmp_path / "home").rglob("sessions.db"))
    unknown = program.run("context", "--json", "-r", "zzz")
    assert unknown.code == 42
    assert program.run("context", "-r", "").code == 2
