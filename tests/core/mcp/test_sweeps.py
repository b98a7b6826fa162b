"""Plan mode and cancelling, through every tool of a server, by the main agent and by a subagent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from swecli.core.mcp.servers import McpServers
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.commands import Interrupt, Submit
from swecli.core.protocol.events import AgentEnded, ItemCompleted, PermissionRequested, TurnEnded
from swecli.core.protocol.messages import ToolResultPart
from tests.core.engine.support import Bench, bench, until
from tests.core.mcp.support import TEXT, call, servers_of, unkind
from tests.features.subagents.test_companion import parent, task, with_agents

CALLS = {
    "echo": '{"text": "hi"}',
    "write": '{"path": "PLACE"}',
    "crash": "{}",
    "slow": "{}",
    "large": '{"size": 100}',
    "mixed": "{}",
    "fail": "{}",
    "ask": "{}",
    "sample": "{}",
    "change": "{}",
}
ALLOW = (Rule("allow", "mcp__hub", "user"),)
Who = Literal["main", "agent"]


@asynccontextmanager
async def working(
    who: Who, script: str, folder: Path, policy: Policy, **definition: Any
) -> AsyncIterator[tuple[Bench, McpServers]]:
    """A session in which the main agent or a subagent plays the script."""
    servers = servers_of(folder, [unkind(**definition)])
    if who == "main":
        async with bench(script, folder, extensions=(servers,), policy=policy) as made:
            yield made, servers
    else:
        async with with_agents(parent(task()), folder, script, extensions=(servers,), policy=policy) as made:
            yield made, servers


def results(made: Bench) -> list[ToolResultPart]:
    parts = [part for body in made.bodies(ItemCompleted) for part in body.parts]
    return [part for part in parts if isinstance(part, ToolResultPart) and part.name.startswith("mcp__")]


@pytest.mark.parametrize(("who", "way"), [("main", "yolo"), ("main", "trusted"), ("agent", "allowed")])
async def test_plan_mode_calls_nothing_but_what_only_reads_on_a_trusted_server(
    tmp_path: Path, who: Who, way: str
) -> None:
    script = "".join(call(name, given.replace("PLACE", str(tmp_path / "x"))) for name, given in CALLS.items()) + TEXT
    policy = Policy(mode="plan", rules=ALLOW, yolo=way == "yolo")
    async with working(who, script, tmp_path, policy, trust=way == "trusted") as (made, servers):
        await made.say("go")
        told = results(made)
        assert [part.name for part in told] == [f"mcp__hub__{name}" for name in CALLS]
        ran = [part.name for part in told if "Plan mode is read-only" not in part.text]
        assert ran == (["mcp__hub__echo"] if way == "trusted" else [])
        assert servers.connections["hub"].calls == len(ran)
        assert not made.bodies(PermissionRequested)
    assert not (tmp_path / "x").exists()


async def test_an_interrupt_in_a_call_of_a_subagent_leaves_the_server_in_use(tmp_path: Path) -> None:
    script = call("slow") + call("echo", '{"text": "still here"}') + TEXT
    async with working("agent", script, tmp_path, Policy(rules=ALLOW)) as (made, servers):
        made.send(Submit("go"))
        connection = servers.connections["hub"]
        await until(lambda: bool(connection._running))
        made.send(Interrupt())
        await until(lambda: not made.session.view.busy and not connection._running)
        assert made.bodies(TurnEnded)[-1].outcome == "interrupted"
        assert [body.outcome for body in made.bodies(AgentEnded)] == ["interrupted"]
        assert connection.state == "ready"
        assert results(made)[0].text.startswith("Interrupted by the user")


async def test_an_interrupt_before_the_approval_of_a_subagent_calls_nothing(tmp_path: Path) -> None:
    script = call("write", f'{{"path": "{tmp_path}/x"}}') + TEXT
    async with working("agent", script, tmp_path, Policy()) as (made, servers):
        made.send(Submit("go"))
        await until(lambda: bool(made.bodies(PermissionRequested)))
        made.send(Interrupt())
        await until(lambda: not made.session.view.busy)
        assert servers.connections["hub"].calls == 0
        assert made.session.view.permission is None
    assert not (tmp_path / "x").exists()
