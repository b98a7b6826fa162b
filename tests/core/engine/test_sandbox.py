"""Which commands run in the sandbox, what is asked when it stopped one, and what happens when it is gone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from swecli.commands.session import sandbox_text
from swecli.core.engine.consent import APPROVED_OUTSIDE, IN_SANDBOX, OUTSIDE
from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import SANDBOXED, Policy, Rule, Sandbox
from swecli.core.protocol.commands import SetMode
from swecli.core.protocol.events import ItemCompleted, Notice, PermissionRequested, SandboxChanged
from swecli.core.sandbox.launch import Launch, SandboxError
from swecli.core.sandbox.plan import Mount, Plan, SandboxOptions, SandboxState
from swecli.core.tools.run_command import RunCommand
from tests.core.engine.support import Bench, bench
from tests.support.waiting import PATIENCE

DONE = '[[step]]\ntext = "done"'
UNPROVEN, BLOCKED = "./show", "./work"
SCRIPTS = {
    "show": 'echo ran >> log; test -n "$SWECLI_SANDBOX" && echo inside; exit 0',
    "work": 'test -z "$SWECLI_SANDBOX" && echo free && exit 0; echo Read-only file system; exit 1',
}


class FakeSandbox:
    """Marks what runs in it by a variable. ``broken`` is what it fails to start with."""

    def __init__(self, level: Sandbox = "full", options: SandboxOptions | None = None) -> None:
        self.options = options or SandboxOptions()
        self.known = SandboxState(level, "bwrap" if level != "off" else "none", "why", checked=True)
        self.state = SandboxState()
        self.broken = ""
        self.checks = self.closed = self.abandoned = 0
        self.released = threading.Event()
        self.accepted: list[Sequence[str] | None] = []
        self.expected: list[Sequence[str] | None] = []
        self.settled: tuple[str, ...] = ()
        self.left: tuple[str, ...] = ()
        self.masked: tuple[str, ...] = ()
        self.kept = Path("/state/undone")

    def has_leftovers(self) -> bool:
        return bool(self.left)

    def settle(self) -> None:
        self.settled, self.left = self.left, ()

    def expect(self, paths: Sequence[str] | None) -> None:
        self.expected.append(paths)

    def check(self) -> SandboxState:
        self.checks += 1
        self.state = self.known
        return self.state

    def begin(self, cwd: Path, *, full: bool, rules: ReadRules) -> Launch:
        if full and self.check().level != "full":
            raise SandboxError(f"the sandbox is {self.state.text}")
        plan = Plan((str(cwd),), (), (), "/tmp")
        prefix: Sequence[str] = ["env"]
        if self.broken:
            prefix = ["sh", "-c", f'echo "swecli sandbox: {self.broken}"; exit 126', "--"]
        return Launch("landlock", plan, prefix, (), {"SWECLI_SANDBOX": "1"})

    def begin_masked(self, cwd: Path, rules: ReadRules) -> Launch:
        if not self.check().masks:
            raise SandboxError(f"the sandbox is {self.state.text}")
        plan = Plan((str(cwd),), (Mount(f"{cwd}/private", "hidden"),), (), "/tmp", masks_only=True)
        return Launch("bwrap", plan, ["env"], (), {"MASKED": " ".join(rule.text for rule in rules.rules)})

    def abandon(self) -> None:
        self.abandoned += 1
        self.released.set()

    def accept(self, paths: Sequence[str] | None) -> None:
        self.accepted.append(paths)

    def failed(self, reason: str) -> None:
        self.state = self.known = SandboxState(reason=reason, checked=True)

    def close(self) -> None:
        self.closed += 1


def step(command: str, **more: object) -> str:
    arguments = json.dumps({"command": command, **more})
    return f"[[step]]\n[[step.call]]\ntool = 'run_command'\narguments = {json.dumps(arguments)}\n"


def running(tmp_path: Path, sandbox: FakeSandbox, *steps: str, mode: str = "auto", **changes: Any) -> Any:
    policy = Policy(mode=mode, trust="trusted", rules=changes.pop("rules", ()))  # pyright: ignore[reportArgumentType]
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = "\n".join([*steps, DONE])
    return bench(script, tmp_path, tools=[RunCommand()], sandbox=sandbox, policy=policy, **changes)


def results(made: Bench) -> list[str]:
    return list(made.tool_texts().values())


async def test_auto_runs_unproven_commands_inside_a_full_sandbox_without_a_question(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    async with running(tmp_path, sandbox, step(UNPROVEN)) as made:
        await made.say("go")
        assert not made.bodies(PermissionRequested)
        assert "inside" in results(made)[0]
        assert [(body.level, body.label) for body in made.bodies(SandboxChanged)] == [("full", "bwrap")]
        assert made.session.view.sandbox == made.bodies(SandboxChanged)[0]
    assert sandbox.closed == 1


@pytest.mark.parametrize("level", ["off", "partial"])
async def test_without_a_full_sandbox_auto_asks_and_runs_outside(tmp_path: Path, level: Sandbox) -> None:
    async with running(tmp_path, FakeSandbox(level), step(UNPROVEN)) as made:
        made.allow_all = True
        await made.say("go")
        asked = made.bodies(PermissionRequested)[0]
        assert "no full sandbox" in asked.reason
        assert asked.facts[0] == (OUTSIDE if level == "off" else APPROVED_OUTSIDE)
        assert "inside" not in results(made)[0]
        assert made.bodies(SandboxChanged)[0].level == level


@pytest.mark.parametrize("mode", ["default", "auto"])
async def test_what_a_rule_allows_does_not_see_what_rules_keep_from_being_read(tmp_path: Path, mode: str) -> None:
    rules = (Rule("allow", "Bash(./*)", "user"), Rule("deny", "Read(private/**)", "user"))
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "plan.txt").write_text("x")
    (tmp_path / "see").write_text('#!/bin/sh\necho "masked: $MASKED"\n')
    (tmp_path / "see").chmod(0o755)
    async with running(tmp_path, FakeSandbox(), step("./see"), mode=mode, rules=rules) as made:
        await made.say("go")
        assert not made.bodies(PermissionRequested)
        result = results(made)[0]
    assert "masked: Read(private/**)" in result
    assert "For this command, files covered by Read(private/**) could not be read." in result
    async with running(tmp_path, FakeSandbox("off"), step("./see"), mode=mode, rules=rules) as made:
        made.allow_all = True
        await made.say("go")
        assert "its words do not tell what it reads" in made.bodies(PermissionRequested)[0].reason
        assert results(made)[0].endswith("masked: ")


async def test_what_a_rule_or_the_user_allows_runs_outside(tmp_path: Path) -> None:
    rule = Rule("allow", "Bash(./show)", "user")
    async with running(tmp_path, FakeSandbox(), step(UNPROVEN), rules=(rule,)) as made:
        await made.say("go")
        assert "inside" not in results(made)[0]
    sandbox = FakeSandbox()
    async with running(tmp_path, sandbox, step(UNPROVEN), mode="default") as made:
        made.allow_all = True
        await made.say("go")
        assert len(made.bodies(PermissionRequested)) == 1
        assert "inside" not in results(made)[0]
    assert sandbox.checks == 0, "it is looked for when it is needed"
    assert sandbox.expected == [None], "the watch must not take away what it writes"
    assert sandbox.accepted == [None], "what it wrote is not the doing of contained commands"


async def test_the_start_says_what_a_killed_command_had_planted(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    sandbox.left = ("/w/.npmrc", "/w/sub/.envrc")
    async with running(tmp_path, sandbox, step(UNPROVEN)) as made:
        await made.say("go")
        (notice,) = [body.text for body in made.bodies(Notice) if "was killed" in body.text]
        assert "swecli reverted /w/.npmrc, /w/sub/.envrc and kept copies in /state/undone" in notice


async def test_the_state_names_what_commands_can_not_read(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    sandbox.masked = (f"{tmp_path}/config/.env", *(f"/home/u/place{number}" for number in range(20)))
    async with running(tmp_path, sandbox, step(UNPROVEN)) as made:
        await made.say("go")
        (state,) = made.bodies(SandboxChanged)
        assert (state.masked[0], len(state.masked), state.masked_count) == ("config/.env", 12, 21)
        assert "commands can't read config/.env, " in sandbox_text(state)
        assert sandbox_text(state).endswith(" and 9 more")


CODE = "python3 -c 'print(1)'; ./show"


async def test_a_full_sandbox_offers_to_run_such_commands_there_unasked(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    sandbox.check()  # as at the start of the interface
    steps = (step(CODE), step(CODE), step("node -e 1; ./show"), step(CODE, outside=True))
    async with running(tmp_path, sandbox, *steps, mode="default", sandbox_early=True) as made:
        task = asyncio.ensure_future(made.say("go"))
        asked = await made.asked()
        assert asked.rules == (SANDBOXED,)
        assert IN_SANDBOX in asked.facts
        made.allow(asked, "always")
        outside = await made.asked(2)
        assert outside.rule is None
        assert "unsandboxed" in outside.reason
        made.allow(outside, "once")
        await task
        assert ["inside" in text for text in results(made)] == [True, True, True, False]
        assert [rule.text for rule in made.session.view.rules] == [SANDBOXED]


async def test_what_needs_the_network_is_asked_about_once_and_runs_outside(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    sandbox.check()
    async with running(tmp_path, sandbox, step("git fetch origin; ./show"), mode="default", sandbox_early=True) as made:
        made.allow_all = True
        await made.say("go")
        (asked,) = made.bodies(PermissionRequested)
        assert APPROVED_OUTSIDE in asked.facts
        assert asked.rules != (SANDBOXED,)
        assert "inside" not in results(made)[0]


async def test_an_approved_command_runs_inside_unless_the_sandbox_stops_it(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    sandbox.check()
    async with running(tmp_path, sandbox, step(UNPROVEN), step(BLOCKED), mode="default", sandbox_early=True) as made:
        made.allow_all = True
        await made.say("go")
        first, second, again = made.bodies(PermissionRequested)
        assert IN_SANDBOX in first.facts
        assert IN_SANDBOX in second.facts
        assert again.reason.startswith("The sandbox probably blocked this")
        assert "inside" in results(made)[0]
        assert "free" in results(made)[1]


async def test_on_runs_every_command_inside(tmp_path: Path) -> None:
    sandbox = FakeSandbox("partial", SandboxOptions(mode="on"))
    async with running(tmp_path, sandbox, step(UNPROVEN), mode="default") as made:
        made.allow_all = True
        await made.say("go")
        assert len(made.bodies(PermissionRequested)) == 1
        assert "inside" in results(made)[0]


@pytest.mark.parametrize("command", [UNPROVEN, "echo hello"])
async def test_the_model_may_ask_for_outside_and_the_user_decides(tmp_path: Path, command: str) -> None:
    async with running(tmp_path, FakeSandbox(), step(command, outside=True)) as made:
        made.allow_all = True
        await made.say("go")
        assert "unsandboxed" in made.bodies(PermissionRequested)[0].reason
        assert made.bodies(PermissionRequested)[0].rule is None
        assert "inside" not in results(made)[0]


async def test_a_blocked_command_is_told_and_one_key_runs_it_outside(tmp_path: Path) -> None:
    async with running(tmp_path, FakeSandbox(), step(BLOCKED)) as made:
        made.allow_all = True
        await made.say("go")
        asked = made.bodies(PermissionRequested)
        assert [one.tool for one in asked] == ["run_command"]
        assert asked[0].reason.startswith("The sandbox probably blocked this")
        assert asked[0].rule is None
        assert "free" in results(made)[0]
        assert [body.detail for body in made.bodies(ItemCompleted) if body.detail] == ["exit 0"]


async def test_a_no_keeps_the_result_and_the_model_reads_why(tmp_path: Path) -> None:
    async with running(tmp_path, FakeSandbox(), step(BLOCKED)) as made:
        task = asyncio.ensure_future(made.say("go"))
        made.allow(await made.asked(), "reject", "use the local copy")
        await task
        text = results(made)[0]
        assert "blocked by the sandbox" in text
        assert "declined to run it unsandboxed. The user says: use the local copy" in text
        assert any(body.detail == "blocked by sandbox, exit 1" for body in made.bodies(ItemCompleted))


async def test_nobody_is_asked_where_that_is_switched_off(tmp_path: Path) -> None:
    async with running(tmp_path, FakeSandbox(options=SandboxOptions(ask_outside=False)), step(BLOCKED)) as made:
        await made.say("go")
        assert not made.bodies(PermissionRequested)
        assert "outside: true" in results(made)[0]


async def test_a_sandbox_that_breaks_runs_nothing_and_asks_from_then_on(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    sandbox.broken = "no namespaces"
    async with running(tmp_path, sandbox, step(UNPROVEN), step(UNPROVEN)) as made:
        made.allow_all = True
        await made.say("go")
        first, second = results(made)
        assert "Not run" in first
        assert "no namespaces" in first
        assert "inside" not in second
        assert (tmp_path / "log").read_text() == "ran\n"
        assert [body.level for body in made.bodies(SandboxChanged)] == ["full", "off"]
        assert len(made.bodies(PermissionRequested)) == 1


async def test_switching_to_auto_looks_for_the_sandbox_when_a_command_needs_it(tmp_path: Path) -> None:
    sandbox = FakeSandbox()
    async with running(tmp_path, sandbox, step(UNPROVEN), mode="default") as made:
        made.send(SetMode("auto"))
        await made.say("go")
        assert "inside" in results(made)[0]


async def test_an_interface_learns_the_state_at_the_start(tmp_path: Path) -> None:
    async with running(tmp_path, FakeSandbox(), mode="default", sandbox_early=True) as made:
        await made.say("go")
    assert made.bodies(SandboxChanged)


class SlowSandbox(FakeSandbox):
    """Its check, as in a huge workspace, ends only when it is abandoned."""

    def check(self) -> SandboxState:
        assert self.released.wait(PATIENCE)
        return self.state


async def test_the_end_of_a_session_does_not_wait_for_the_check_of_a_huge_workspace(tmp_path: Path) -> None:
    sandbox = SlowSandbox()
    async with running(tmp_path, sandbox, mode="default", sandbox_early=True) as made:
        pass
    assert sandbox.abandoned == 1
    assert not made.bodies(SandboxChanged)
