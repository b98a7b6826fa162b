"""Tools that come and go while a session runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swecli.core.engine.offered_tools import change_of
from swecli.core.engine.services import ExtensionHost
from swecli.core.permissions.types import Effects, Policy, Rule
from swecli.core.protocol.commands import Compact, Interrupt, Rewind, Submit
from swecli.core.protocol.events import (
    CompactionCompleted,
    ItemStarted,
    Notice,
    PermissionRequested,
    ToolDefinition,
    ToolsChanged,
    TurnEnded,
    UntrustedContent,
)
from swecli.core.protocol.messages import TextPart
from swecli.core.tools.base import ToolContext, ToolOutcome
from swecli.core.tools.dynamic import DynamicTool, RawParams
from tests.core.engine.support import Bench, bench, call, new_notes, until

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


class Echo(DynamicTool):
    """Says what it is told. ``vouched`` as in its effects."""

    vouched = False

    def effects(self, params: RawParams, ctx: ToolContext) -> Effects:
        return Effects(external=f"the server {self.source}", vouched=self.vouched)

    async def run(self, params: RawParams, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome(f"echo {params.arguments.get('text')}", untrusted=f"the server {self.source}")


def echo(name: str, source: str = "hub", description: str = "Echoes.") -> Echo:
    return Echo(name, description, SCHEMA, source, verb="echo")


class Source:
    """An extension that does at its start what the test says."""

    def __init__(self, begin: Callable[[ExtensionHost], object]) -> None:
        self._begin = begin
        self.closed = False

    def start(self, host: ExtensionHost) -> None:
        self._begin(host)

    async def close(self) -> None:
        self.closed = True


def listed(made: Bench) -> list[list[str]]:
    """Names of the tools in each request, without those that the session began with."""
    own = {"read_file", "run_command", "write_file"}
    return [[tool.name for tool in request.tools if tool.name not in own] for request in made.model.requests]


CALL = """[[step]]
[[step.call]]
tool = "mcp__hub__say"
arguments = { text = "hi" }
"""
TEXT = '[[step]]\ntext = "done"\n'
ALLOWED = Policy(rules=(Rule("allow", "mcp__hub", "user"),))


def definition(name: str, source: str = "hub", description: str = "Echoes.") -> ToolDefinition:
    return ToolDefinition(name, description, SCHEMA, source)


def test_what_is_new_comes_last_and_what_is_there_stays() -> None:
    offered = {one.name: one for one in (definition("b"), definition("a"), definition("z", "late"))}
    wanted = [definition("a"), definition("b", description="Other."), definition("c")]
    change = change_of(offered, wanted, {"late"})
    assert [tool.name for tool in change.added] == ["b", "c"]
    assert change.removed == ()
    assert change_of(offered, wanted, ()).removed == ("z",)
    assert not change_of({"a": definition("a")}, [definition("a")], ())


async def test_a_tool_of_a_source_is_called_after_a_question(tmp_path: Path) -> None:
    source = Source(lambda host: host.tools.settle("hub", [echo("mcp__hub__say"), echo("mcp__hub__also")]))
    async with bench(CALL + TEXT, tmp_path, extensions=(source,)) as made:
        made.send(Submit("go"))
        request = await made.asked()
        assert request.rules == ("mcp__hub__say",)
        assert "not sandboxed" in request.reason
        made.allow(request)
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert listed(made) == [["mcp__hub__also", "mcp__hub__say"]] * 2
        assert list(made.tool_texts().values()) == ["echo hi"]
        assert [[one.name for one in body.added] for body in made.bodies(ToolsChanged)] == [listed(made)[0]]
        assert [body.origin for body in made.bodies(UntrustedContent)] == ["the server hub"]
        assert "tool descriptions of hub" in {part.name for part in made.session.view.budget.components}
    assert source.closed


async def test_what_arrived_is_measured_before_the_first_request(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []

    def begin(host: ExtensionHost) -> None:
        host.tools.expect("hub")
        hosts.append(host)

    def parts() -> dict[str, int]:
        budget = made.session.view.budget
        return {part.name: part.tokens for part in budget.components} if budget is not None else {}

    async with bench(TEXT, tmp_path, extensions=(Source(begin),)) as made:
        await until(lambda: bool(parts()))
        assert "tool descriptions of hub" not in parts()
        hosts[0].tools.settle("hub", [echo("mcp__hub__say"), echo("mcp__hub__gone")])
        await until(lambda: "tool descriptions of hub" in parts())
        both = parts()["tool descriptions of hub"]
        assert not made.bodies(ToolsChanged)
        hosts[0].tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("go")
        assert listed(made) == [["mcp__hub__say"]]
        assert 0 < parts()["tool descriptions of hub"] < both


async def test_what_is_measured_and_leaves_is_in_no_request(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []

    def begin(host: ExtensionHost) -> None:
        host.tools.settle("hub", [echo("mcp__hub__say")])
        hosts.append(host)

    async with bench(TEXT, tmp_path, extensions=(Source(begin),)) as made:
        await made.session.extensions_settled()
        hosts[0].tools.drop("hub")
        await made.say("go")
        assert listed(made) == [[]]
        assert not made.bodies(ToolsChanged)


async def test_the_first_request_waits_for_what_is_expected(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []

    def begin(host: ExtensionHost) -> None:
        hosts.append(host)
        host.tools.expect("hub")

    async with bench(TEXT * 2, tmp_path, extensions=(Source(begin),)) as made:
        made.send(Submit("go"))
        await until(lambda: bool(made.bodies(Notice)))
        assert "Waiting for tools: hub" in made.bodies(Notice)[0].text
        assert not made.model.requests
        hosts[0].tools.settle("hub", [echo("mcp__hub__say")])
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert listed(made) == [["mcp__hub__say"]]


async def test_what_comes_too_late_joins_the_next_request(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []

    def begin(host: ExtensionHost) -> None:
        hosts.append(host)
        host.tools.expect("hub")

    async with bench(TEXT * 2, tmp_path, extensions=(Source(begin),), tools_wait=1.0) as made:
        await made.say("go")
        assert "Continuing without hub" in made.bodies(Notice)[1].text
        hosts[0].tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("again")
        assert listed(made) == [[], ["mcp__hub__say"]]
        first, second = made.model.requests
        assert second.tools[: len(first.tools)] == first.tools


async def test_esc_skips_the_wait_and_the_message_goes_on(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []

    def begin(host: ExtensionHost) -> None:
        hosts.append(host)
        host.tools.expect("hub")

    async with bench(TEXT * 2, tmp_path, extensions=(Source(begin),), tools_wait=3_600.0) as made:
        made.send(Submit("go"))
        await until(lambda: bool(made.bodies(Notice)))
        made.send(Interrupt(skip=True))
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert made.bodies(TurnEnded)[0].outcome == "done"
        assert made.bodies(Notice)[1].text == "Continuing without hub: you skipped the wait. Its tools join when ready."
        hosts[0].tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("again")
        assert listed(made) == [[], ["mcp__hub__say"]]


async def test_an_interrupt_without_skip_ends_the_turn_in_the_wait(tmp_path: Path) -> None:
    extension = Source(lambda host: host.tools.expect("hub"))
    async with bench(TEXT, tmp_path, extensions=(extension,), tools_wait=3_600.0) as made:
        made.send(Submit("go"))
        await until(lambda: bool(made.bodies(Notice)))
        made.send(Interrupt())
        await until(lambda: bool(made.bodies(TurnEnded)))
        assert made.bodies(TurnEnded)[0].outcome == "interrupted"
        assert not made.model.requests


async def test_order_of_arrival_changed_descriptions_and_removal(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []
    async with bench(TEXT * 4, tmp_path, extensions=(Source(hosts.append),)) as made:
        tools = hosts[0].tools
        tools.settle("zed", [echo("mcp__zed__b", "zed"), echo("mcp__zed__a", "zed")])
        await made.say("1")
        tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("2")
        tools.settle("zed", [echo("mcp__zed__b", "zed", "Other.")])
        await made.say("3")
        tools.drop("zed")
        await made.say("4")
        zed = ["mcp__zed__a", "mcp__zed__b"]
        assert listed(made) == [zed, *[[*zed, "mcp__hub__say"]] * 3]
        first, second, third, fourth = map(new_notes, made.model.requests)
        assert "mcp__zed" not in first + second
        assert "No longer available: mcp__zed__a. Do not call them." in third
        assert '"name":"mcp__zed__b","description":"Other."' in third
        assert "No longer available: mcp__zed__b. Do not call them." in fourth


async def test_a_tool_that_is_back_is_said_to_be_and_a_rewind_says_anew_what_is_gone(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []
    async with bench(TEXT * 5, tmp_path, extensions=(Source(hosts.append),)) as made:
        tools = hosts[0].tools
        tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("1")
        tools.drop("hub")
        await made.say("2")
        second = [body.item for body in made.bodies(ItemStarted) if body.kind == "user"][1]
        made.send(Rewind(second))
        await made.say("instead")
        assert "No longer available: mcp__hub__say" in new_notes(made.model.requests[2])
        tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("3")
        assert "Available again: mcp__hub__say." in new_notes(made.model.requests[3])
        await made.say("4")
        assert not new_notes(made.model.requests[4])
        assert {tuple(names) for names in listed(made)} == {("mcp__hub__say",)}


async def test_the_list_is_up_to_date_after_a_compaction(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []
    aside = 'aside = "## Goal\\nRead the files.\\n## Done\\nAll of them were read.\\n## Next\\nGo on."\n'
    script = aside + "".join(f"[[step]]\ncall = [{call('read_file', name)}]\n{TEXT}" for name in "abcd")
    async with bench(script, tmp_path, extensions=(Source(hosts.append),)) as made:
        made.gates.outputs |= {name: f"line of {name}\n" * 2_000 for name in "abcd"}
        tools = hosts[0].tools
        tools.settle("hub", [echo("mcp__hub__say"), echo("mcp__hub__also")])
        await made.say("1")
        tools.settle("hub", [echo("mcp__hub__say", description="Other.")])
        for word in "23":
            await made.say(word)
        made.send(Compact())
        await until(lambda: bool(made.bodies(CompactionCompleted)) and not made.session.view.busy)
        await made.say("4")
        newest = made.model.requests[-1]
        assert listed(made)[-1] == ["mcp__hub__say"]
        assert next(tool for tool in newest.tools if tool.source).description == "Other."
        assert "mcp__hub__also" not in new_notes(newest)


async def test_a_resumed_session_tells_the_same_list_in_the_same_order(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []
    async with bench(TEXT * 2, tmp_path, extensions=(Source(hosts.append),)) as made:
        hosts[0].tools.settle("zed", [echo("mcp__zed__a", "zed")])
        await made.say("1")
        hosts[0].tools.settle("hub", [echo("mcp__hub__say")])
        await made.say("2")
        facts, before = list(made.facts), made.model.requests[-1].tools

    def both(host: ExtensionHost) -> None:
        host.tools.settle("hub", [echo("mcp__hub__say")])
        host.tools.settle("zed", [echo("mcp__zed__a", "zed")])

    async with bench(TEXT, tmp_path, extensions=(Source(both),), history=facts) as made:
        await made.say("3")
        assert made.model.requests[-1].tools == before
        assert not made.bodies(ToolsChanged)

    def late(host: ExtensionHost) -> None:
        host.tools.settle("hub", [echo("mcp__hub__say")])
        host.tools.expect("zed")

    async with bench(TEXT, tmp_path, extensions=(Source(late),), history=facts, tools_wait=1.0) as made:
        await made.say("3")
        assert made.model.requests[-1].tools == before
    async with bench(TEXT, tmp_path, history=facts) as made:  # nothing is configured any more
        await made.say("3")
        assert made.model.requests[-1].tools == before
        assert "No longer available: mcp__zed__a, mcp__hub__say." in new_notes(made.model.requests[-1])


@pytest.mark.parametrize(("mode", "vouched", "asked"), [("plan", True, False), ("default", True, False)])
async def test_what_the_user_vouches_for_runs_unasked(mode: Any, vouched: bool, asked: bool, tmp_path: Path) -> None:
    tool = echo("mcp__hub__say")
    tool.vouched = vouched
    source = Source(lambda host: host.tools.settle("hub", [tool]))
    async with bench(CALL + TEXT, tmp_path, extensions=(source,), policy=Policy(mode=mode)) as made:
        await made.say("go")
        assert bool(made.bodies(PermissionRequested)) is asked
        assert list(made.tool_texts().values()) == ["echo hi"]


async def test_plan_mode_refuses_what_may_change_something(tmp_path: Path) -> None:
    source = Source(lambda host: host.tools.settle("hub", [echo("mcp__hub__say")]))
    policy = Policy(mode="plan", rules=ALLOWED.rules)
    async with bench(CALL + TEXT, tmp_path, extensions=(source,), policy=policy) as made:
        await made.say("go")
        assert "Plan mode is read-only" in next(iter(made.tool_texts().values()))


async def test_text_of_one_server_makes_the_next_call_of_another_ask(tmp_path: Path) -> None:
    script = CALL + CALL + CALL.replace("hub", "other") + TEXT
    rules = (*ALLOWED.rules, Rule("allow", "mcp__other__say", "user"))

    def begin(host: ExtensionHost) -> None:
        host.tools.settle("hub", [echo("mcp__hub__say")])
        host.tools.settle("other", [echo("mcp__other__say", "other")])

    async with bench(script, tmp_path, extensions=(Source(begin),), policy=Policy(rules=rules)) as made:
        made.allow_all = True
        await made.say("go")
        (question,) = made.bodies(PermissionRequested)
        assert question.tool == "mcp__other__say"
        assert "text from the server hub" in question.reason


async def test_a_note_is_appended_once_and_shown_by_its_title(tmp_path: Path) -> None:
    hosts: list[ExtensionHost] = []
    async with bench(TEXT * 2, tmp_path, extensions=(Source(hosts.append),)) as made:
        await made.say("1")
        hosts[0].tell_model("1 skill changed", "The skill pdf is now in /skills/pdf.")
        await made.say("2")
        first, second = made.model.requests
        assert second.messages[: len(first.messages)] == first.messages
        new = second.messages[len(first.messages) :]
        texts = [part.text for message in new for part in message.parts if isinstance(part, TextPart)]
        note = "<swecli-note>\nThe skill pdf is now in /skills/pdf.\n</swecli-note>"
        assert texts.count(note) == 1
        assert texts.index(note) < texts.index("2")  # nothing ran when it came
        assert [body.title for body in made.bodies(ItemStarted) if body.kind == "note"] == ["1 skill changed"]
