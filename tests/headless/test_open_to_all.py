"""What being open costs: with servers, skills and hooks the beginning of a request stays as it was sent, and what is
not configured is not loaded."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from swecli.features import FEATURES
from tests.support.everything import HOOKED, configure
from tests.support.loopback import LoopbackServer, Manners
from tests.support.program import Program

pytestmark = pytest.mark.e2e

OPEN = ("mcp", "acp", "swecli.acp", "swecli.mcp_server", "swecli.core.extensions.reading")
OPEN += tuple(f"swecli.core.{name}" for name in ("mcp", "hooks.runner", "language_servers"))
"""Packages of what can be configured."""

CALLS = """
[[step]]
call = [{ tool = "mcp__two__echo", arguments = { text = "hello" } }]
[[step]]
call = [{ tool = "skill", arguments = { name = "skill-3" } }]
[[step]]
text = "first"
[[step]]
text = "second"
[[step]]
text = "third"
"""


def test_the_beginning_of_requests_stays_with_servers_skills_and_hooks(tmp_path: Path) -> None:
    folder, home = tmp_path / "project", tmp_path / "home"
    folder.mkdir()
    configure(folder, home)
    lines = "".join(json.dumps({"type": "submit", "text": f"message {number}"}) + "\n" for number in range(3))
    with LoopbackServer(parse_script(CALLS), manners=Manners(window=128_000)) as provider:
        program = Program(folder, home, provider.environment())
        form = ("--input-format", "stream-json", "--output-format", "stream-json")
        ended = program.run("-m", "openai/m", "--trust", "--allowed-tools", "mcp__two", *form, stdin=lines)
        assert ended.code == 0, ended.stderr
        bodies = [request.body for request in provider.requests if "messages" in request.body]
    assert len(bodies) == 5
    first = json.dumps(bodies[0])
    assert all(f"skill-{number}: Does thing {number}" in first for number in range(5))
    assert all(f"mcp__{name}__echo" in first for name in ("one", "two"))
    events = [json.loads(line).get("body", {}) for line in ended.stdout.splitlines()]
    assert {event["event"] for event in events if event.get("type") == "hook_ran"} == set(HOOKED)
    results = [message["content"] for message in bodies[-1]["messages"] if message["role"] == "tool"]
    assert "hello" in results[0]
    assert "Do it." in results[1]
    for earlier, later in itertools.pairwise(bodies):
        assert later["tools"] == earlier["tools"]
        settled = earlier["messages"][:-1]  # what stands at the end of a request is told anew with the next
        assert later["messages"][: len(settled)] == settled
    assert not [event for event in events if event.get("type") in ("cache_break", "tools_changed")][1:]


@pytest.mark.parametrize("configured", [False, True])
def test_what_is_not_configured_is_not_loaded(tmp_path: Path, configured: bool) -> None:
    folder, home = Path(os.path.realpath(tmp_path)) / "work", tmp_path / "home"
    folder.mkdir()
    if configured:
        configure(folder, home)
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom swecli.app import open_session\n"
        "from swecli.launch import LaunchOptions\n"
        f"options = LaunchOptions(cwd=Path({str(folder)!r}), headless=True, store=False, model='openai/m')\n"
        "async def main():\n    session = await open_session(options)\n    await session.close()\n"
        "asyncio.run(main())\nprint('\\n'.join(sys.modules))\n"
    )
    program = Program(folder, home, {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:9"})
    ran = subprocess.run(
        [sys.executable, "-c", code], env=program.environment, capture_output=True, text=True, check=True
    )
    names = ran.stdout.split()
    loaded = {package for package in OPEN if any(f"{name}.".startswith(f"{package}.") for name in names)}
    ours = {"mcp", "hooks.runner", "extensions.reading"}  # those, as the folder is trusted
    ours |= {"language_servers"} & {*FEATURES}
    assert loaded == ({f"swecli.core.{name}" for name in ours} if configured else set())
