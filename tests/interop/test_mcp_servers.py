"""Real MCP servers from npm and PyPI: `make test-interop` installs and runs them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from swecli.core.mcp.definitions import ServerDefinition
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.commands import Answer, CancelItem, Submit
from swecli.core.protocol.events import ItemDelta, ItemStarted, QuestionAsked, TurnEnded
from swecli.core.workspace.process_tree import owned
from tests.core.engine.support import until
from tests.core.mcp.support import TEXT, served

PLACE = Path(os.environ.get("SWECLI_INTEROP_MCP", ""))
pytestmark = pytest.mark.skipif("SWECLI_INTEROP_MCP" not in os.environ, reason="make test-interop")
POLICY = Policy(rules=tuple(Rule("allow", f"mcp__{name}", "user") for name in ("everything", "files", "git", "time")))


def npm(name: str, *words: str) -> ServerDefinition:
    program = PLACE / "node_modules" / ".bin" / f"mcp-server-{name}"
    return ServerDefinition("files" if name == "filesystem" else name, "stdio", "node", (str(program), *words))


def pypi(name: str, *words: str) -> ServerDefinition:
    return ServerDefinition(name, "stdio", str(PLACE / "py" / "bin" / f"mcp-server-{name}"), words)


def call(tool: str, arguments: str = "{}") -> str:
    return f"[[step]]\n[[step.call]]\ntool = 'mcp__{tool}'\narguments = '''{arguments}'''\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("the first line\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


async def test_four_servers_side_by_side(workspace: Path) -> None:
    tmp_path = workspace
    script = (
        call("everything__get-sum", '{"a": 2, "b": 3}')
        + call("files__read_text_file", f'{{"path": "{tmp_path}/a.txt"}}')
        + call("git__git_status", f'{{"repo_path": "{tmp_path}"}}')
        + call("time__get_current_time", '{"timezone": "UTC"}')
        + call("everything__get-tiny-image")
        + TEXT
    )
    definitions = (
        npm("everything"),
        npm("filesystem", str(tmp_path)),
        pypi("git", "--repository", str(tmp_path)),
        pypi("time"),
    )
    async with served(script, tmp_path, *definitions, policy=POLICY) as (made, servers):
        made.allow_all = True  # text of one server makes a call of another ask
        await made.say("go")
        total, text, status, now, image = made.tool_texts().values()
        assert "5" in total
        assert "the first line" in text
        assert "a.txt" in status
        assert "UTC" in now
        assert "image" in image
        results = [part for message in made.session.view.messages for part in message.tool_results]
        assert results[-1].images
        offered = servers.connections["everything"].offered
        assert {"simple-prompt", "args-prompt"} <= {prompt.name for prompt in offered.prompts}
        assert offered.resources
    assert not owned()


async def test_elicitation_cancellation_and_a_kill_in_mid_call(tmp_path: Path) -> None:
    script = (
        call("everything__trigger-elicitation-request")
        + call("everything__trigger-long-running-operation", '{"duration": 600, "steps": 600}')
        + call("everything__echo", '{"message": "still here"}')
        + call("everything__trigger-long-running-operation", '{"duration": 600, "steps": 600}')
        + call("everything__echo", '{"message": "back again"}')
        + TEXT
    )
    async with served(script, tmp_path, npm("everything"), policy=POLICY) as (made, _):
        made.send(Submit("go"))
        await until(lambda: bool(made.bodies(QuestionAsked)))
        made.send(Answer(made.bodies(QuestionAsked)[0].request, ()))
        long = "mcp__everything__trigger-long-running-operation"

        def running() -> list[str]:
            return [body.item for body in made.bodies(ItemStarted) if body.name == long]

        def progress(item: str) -> bool:
            return any(delta.item == item and "%" in delta.text for delta in made.bodies(ItemDelta))

        await until(lambda: len(running()) == 1 and progress(running()[0]))
        made.send(CancelItem(running()[0]))
        await until(lambda: len(running()) == 2 and progress(running()[1]))
        for process in owned():
            os.kill(process.pid, signal.SIGKILL)
        await until(lambda: bool(made.bodies(TurnEnded)))
        _, cancelled, here, killed, back = made.tool_texts().values()
        assert cancelled.startswith("Interrupted by the user")
        assert "still here" in here
        assert "its effect is unknown" in killed
        assert "back again" in back
