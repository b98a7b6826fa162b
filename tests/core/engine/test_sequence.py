"""The order of what a session does stays as it is written down in ``sequences/``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from swecli.core.checkpoints.history import RunChanges
from swecli.core.engine.services import Mentionable
from swecli.core.engine.settings import SubagentOptions
from swecli.core.hooks.answer import Answer as HookAnswer
from swecli.core.hooks.answer import Ran
from swecli.core.hooks.hook import Hook, HookEvent
from swecli.core.hooks.runner import HookPlace, HookRecord, HookRun, Hooks
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelClient
from swecli.core.permissions.types import Effects, Policy, Rule
from swecli.core.protocol.commands import Answer, Interrupt, Invoke, ReplyPermission, Steer, Submit
from swecli.core.protocol.events import HookRan, QuestionAsked
from swecli.core.retrieval.retrieve import Ranked, Retrieval
from swecli.core.tools.base import Params, Tool, ToolContext, ToolOutcome
from swecli.features import FEATURES
from swecli.features.subagents.profiles import AgentProfile
from swecli.features.subagents.tool import TaskTool
from tests.core.engine.sequence import Order, check, watched
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_compaction import SUMMARY, fill
from tests.core.engine.test_compaction import script as windowed
from tests.core.extensions.support import Places
from tests.features.memory.test_companion import options as memory_options
from tests.features.playbook.test_command import TESTS, opener

DONE = '[[step]]\ntext = "done"\nchunk = "whole"\n'
ALLOWED = Policy(rules=(Rule("allow", "Bash", "user"), Rule("allow", "run_command", "user")))
CHILD = "scripted/child"


class ScriptedHooks(Hooks):
    """Hooks for every event that answer at once: in order what is given for an event, then nothing."""

    def __init__(self, folder: Path, answers: Mapping[HookEvent, Sequence[HookAnswer]]) -> None:
        events: Sequence[HookEvent] = (
            *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
            *("PermissionRequest", "PreCompact", "PostCompact", "SubagentStart", "SubagentStop", "Stop"),
        )
        super().__init__([Hook(event, "hook") for event in events], HookPlace(folder, {}), lambda: 0.0)
        self._answers = {event: list(given) for event, given in answers.items()}

    async def _one(self, record: HookRecord, data: bytes, limit: float | None) -> HookRun:
        waiting = self._answers.get(record.hook.event)
        return HookRun(record.hook, Ran("exited", 0), waiting.pop(0) if waiting else HookAnswer())


class Index:
    """An index that points every message to one file."""

    def __init__(self, root: Path, order: Order) -> None:
        self.root = root
        self._order = order

    def begin_soon(self) -> None:
        self._order.note("index: begin soon")

    async def retrieval(self, text: str, **options: Any) -> Retrieval:
        return Retrieval(pointers=(Ranked("src/a.py", 1.0, "run", 3),))

    async def close(self, *, finish: bool) -> None:
        self._order.note("index: close")


class Recorded:
    """Checkpoints that only write down what is asked of them."""

    run_changes: RunChanges | None = None

    def __init__(self, order: Order) -> None:
        self._order = order

    def start(self) -> None:
        self._order.note("checkpoints: start")

    def delays(self, effects: Effects) -> bool:
        self._order.note("checkpoints: delay?")
        return effects.opaque

    async def ready(self) -> None:
        self._order.note("checkpoints: ready")

    @asynccontextmanager
    async def around(self, *about: Any, reads_only: bool) -> AsyncIterator[None]:
        self._order.note("checkpoints: begin")
        yield
        self._order.note("checkpoints: end")

    def restores(self, paths: Sequence[str], command: str) -> bool:
        return True

    def warning(self, effects: Effects) -> str:
        return ""

    async def close(self) -> None:
        self._order.note("checkpoints: close")


class Code:
    """Language servers that find an error in each changed file."""

    def __init__(self, order: Order) -> None:
        self._order = order

    async def expect(self, paths: Sequence[str]) -> None:
        self._order.note("code: expect")

    async def brought(self, paths: Sequence[str], agent: str) -> str:
        self._order.note("code: find errors")
        return "one new error" if paths else ""

    def at_work(self, agent: str) -> Sequence[str]:
        return ()

    async def caught_up(self, agent: str) -> None:
        return None

    def late(self, agent: str) -> Sequence[str]:
        return ()


class Command(Params):
    command: str


class Make(Tool[Command]):
    """Runs a command of a Markdown command."""

    name = "run_command"
    params = Command

    def effects(self, params: Command, ctx: ToolContext) -> Effects:
        return Effects(command=params.command)

    def title(self, params: Command, ctx: ToolContext) -> str:
        return params.command

    async def run(self, params: Command, ctx: ToolContext) -> ToolOutcome:
        return ToolOutcome("exit status 0 after 0.1 s\nmade")


class Source:
    """An extension without tools."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def start(self, host: Any) -> None:
        self._order.note("extension: start")
        host.offer("hub", mentionables=(Mentionable("hub:notes", "read_file", {"target": "notes"}),))

    async def close(self) -> None:
        self._order.note("extension: close")


def budget(tokens: int) -> dict[str, Any]:
    """A budget of the session, as long as there are budgets."""
    if "spending" not in FEATURES:
        return {}
    limits = import_module("swecli.features.spending.limits")
    return {"spending": limits.SpendingLimits({"session": limits.Amount(None, tokens)})}


def everything(
    folder: Path, order: Order, answers: Mapping[HookEvent, Sequence[HookAnswer]] = {}, **changes: Any
) -> dict[str, Any]:
    """A session in which every part has something to do."""
    tick = count(1_700_000_000)
    return {
        "hooks": ScriptedHooks(folder, answers),
        "playbook": opener(folder, TESTS),
        "project": Index(folder, order),
        "extensions": (Source(order),),
        "checkpoints": Recorded(order),
        **({"code": Code(order)} if "language_servers" in FEATURES else {}),
        "memory": memory_options(folder),
        **budget(10_000_000),
        "clock": lambda: float(next(tick)),
        "monotonic": lambda: 0.0,
        **changes,
    }


@asynccontextmanager
async def session(
    script: str, folder: Path, order: Order, answers: Mapping[HookEvent, Sequence[HookAnswer]] = {}, **changes: Any
) -> AsyncIterator[Bench]:
    """Such a session, once its first hook has run, which runs beside the turn otherwise."""
    async with bench(script, folder, **everything(folder, order, answers, **changes)) as b:
        await until(lambda: bool(b.bodies(HookRan)))
        yield b


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "work"
    made.mkdir()
    return made


async def said(b: Bench, order: Order, text: str) -> None:
    order.note(f"« {text}")
    await b.say(text)
    await b.idle()


async def test_plain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(folder, monkeypatch) as order:
        async with bench(f"[[step]]\ncall = [{call('read_file', 'a')}]\n" + DONE * 2, folder) as b:
            await said(b, order, "look")
            await said(b, order, "and again")
    check("plain", order.turns)


async def test_with_everything_and_resumed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[HookEvent, list[HookAnswer]] = {"SessionStart": [HookAnswer(context="a new day")]}
    script = f"[[step]]\ncall = [{call('read_file', 'a')}]\n" + DONE * 2
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order, given) as b:
            await said(b, order, "run pytest on @hub:notes please")
            facts = list(b.facts)
        order.note("« resumed")
        parts = everything(folder / "other", order) if (folder / "other").mkdir() is None else {}
        async with bench(DONE, folder, history=facts, **parts) as b:
            await said(b, order, "go on with it")
    check("everything", order.text)


async def test_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(folder / "project", folder / "home")
    (places.project / ".git").mkdir(parents=True)
    places.home.mkdir()
    places.write(".claude/commands/x.md", "---\nallowed-tools: Bash\nmodel: scripted/other\n---\nSay !`make` twice")
    skill = "a skill that appears between two turns"
    with watched(places.project, monkeypatch) as order:
        made: dict[str, Any] = {"extension_files": places.open(), "policy": ALLOWED, "tools": [Make()]}
        async with session(DONE * 2, places.project, order, **made) as b:
            order.note("« /x")
            b.send(Invoke("x"))
            await until(lambda: b.session.view.totals.turns == 1 and not b.session.view.busy)
            places.skill("later", skill, home="~/.claude")
            await said(b, order, "go on")
    check("command", order.turns)


async def test_hooks_that_block_add_and_stop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[HookEvent, list[HookAnswer]] = {
        "UserPromptSubmit": [HookAnswer(wish="block", reason="not now"), HookAnswer(context="said by a hook")],
        "PreToolUse": [HookAnswer(wish="block", reason="not here"), HookAnswer(context="before the call")],
        "PostToolUse": [HookAnswer(context="behind the call")],
        "Stop": [HookAnswer(wish="block", reason="one thing more"), HookAnswer()],
        "PostToolUseFailure": [HookAnswer(stop=True, stop_reason="enough")],
    }
    script = (
        f"[[step]]\ncall = [{call('run_command', 'make')}]\n[[step]]\ncall = [{call('run_command', 'make')}]\n"
        f"{DONE * 2}[[step]]\ncall = [{call('run_command', 'broken')}]\n{DONE}"
    )
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order, given, policy=ALLOWED) as b:
            for text in ("one", "two", "three"):
                await said(b, order, text)
    check("hooks", order.turns)


async def test_steering(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[HookEvent, list[HookAnswer]] = {
        "UserPromptSubmit": [HookAnswer(), HookAnswer(wish="block", reason="not now"), HookAnswer(context="go")]
    }
    script = f"[[step]]\ncall = [{call('run_command', 'make')}]\n" + DONE * 2
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order, given, policy=ALLOWED) as b:
            b.gates.held.add("make")
            order.note("« begin")
            b.send(Submit("begin"))
            await until(lambda: bool(b.gates.started))
            order.note("« steering, twice, and a message that waits")
            b.send(Steer("this is blocked"))
            b.send(Steer("run pytest too, see @hub:notes"))
            b.send(Submit("afterwards"))
            b.gates.release("make")
            await until(lambda: b.session.view.totals.turns == 2 and not b.session.view.busy)
            await b.idle()
    check("steering", order.turns)


async def test_approval_and_rejection(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        f"[[step]]\ncall = [{call('write_file', 'a.py')}]\n[[step]]\ncall = [{call('run_command', 'make')}]\n{DONE}"
    )
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order) as b:
            order.note("« change it")
            b.send(Submit("change it"))
            b.allow(await b.asked(1))
            request = await b.asked(2)
            b.send(ReplyPermission(request.request, "reject", "not that"))
            await until(lambda: b.session.view.totals.turns == 1 and not b.session.view.busy)
            await b.idle()
    check("approval", order.turns)


async def test_failing_calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        f"[[step]]\ncall = [{call('run_command', 'broken')}]\n"
        f'[[step]]\ncall = [{{ tool = "nothing", arguments = {{}} }}]\n'
        f"[[step]]\ncall = [{call('read_file', 'a')}]\nstop = 'length'\n{DONE}"
    )
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order, policy=ALLOWED) as b:
            await said(b, order, "try it")
    check("failing", order.turns)


def reads(count: int, begin: int = 0) -> str:
    return "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{begin + number}')}]" for number in range(count))


async def test_compaction_in_a_turn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[HookEvent, list[HookAnswer]] = {"SessionStart": [HookAnswer(), HookAnswer(context="compacted")]}
    script = windowed(reads(6), f'[[step]]\ntext = "{SUMMARY}"', reads(2, 6), DONE, window=7_000)
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order, given) as b:
            fill(b, 9)
            await said(b, order, "Please never touch config.py. Read all the files.")
    check("compaction", order.turns)


async def test_overflow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = '[[step]]\nfault = { kind = "overflow", tokens = 12000, window = 9000 }'
    script = windowed(reads(4), refused, f'[[step]]\ntext = "{SUMMARY}"', DONE, window=200_000)
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order) as b:
            fill(b, 4)
            await said(b, order, "Read the files.")
    check("overflow", order.turns)


async def test_retries_and_fallback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {
        "scripted/test": '[[step]]\ntext = "half of an answer"\nfault = { kind = "cut", after = 4 }\n'
        + '[[step]]\nfault = { kind = "overloaded" }\n' * 9
        + DONE,
        "p/other": f'name = "other"\n{DONE}[[step]]\nfault = {{ kind = "auth" }}\n',
    }
    models = {
        name: ScriptedModel(parse_script(text), provider=name.partition("/")[0]) for name, text in scripts.items()
    }
    with watched(folder, monkeypatch) as order:
        parts: dict[str, Any] = {"make_client": lambda name: models[name], "fallback": ("p/other",)}
        async with session("", folder, order, **parts) as b:
            await said(b, order, "go")
            await said(b, order, "again")
    check("fallback", order.turns)


async def answered(b: Bench, number: int, label: str) -> None:
    await until(lambda: len(b.bodies(QuestionAsked)) > number, f"question {number}")
    asked = b.bodies(QuestionAsked)[number]
    option = next(option.label for option in asked.questions[0].options if option.label.startswith(label))
    b.send(Answer(asked.request, ((option,),), by="user"))


async def test_repeats(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"[[step]]\ncall = [{call('read_file', 'same')}]\n" * 7 + DONE
    with watched(folder, monkeypatch) as order:
        async with session(script, folder, order) as b:
            order.note("« look")
            b.send(Submit("look"))
            await answered(b, 0, "Stop")
            await until(lambda: b.session.view.totals.turns == 1 and not b.session.view.busy)
            await b.idle()
    check("repeats", order.turns)


async def test_plan_and_empty_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = '[[step]]\ntext = "My plan:\\n1. Fix it\\n2. Test it"\nchunk = "whole"\n'
    with watched(folder, monkeypatch) as order:
        async with session(plan + '[[step]]\ntext = ""\n' * 2, folder, order, policy=Policy(mode="plan")) as b:
            await said(b, order, "make a plan")
            await said(b, order, "and now?")
    check("plan", order.turns)


@pytest.mark.parametrize("background", [False, True], ids=["subagent", "subagent_background"])
async def test_subagent(folder: Path, monkeypatch: pytest.MonkeyPatch, background: bool, request: Any) -> None:
    profiles = (AgentProfile("general", "Does anything.", "Do it."),)
    listed = [(profile.name, profile.description) for profile in profiles]
    arguments = {"description": "to look", "prompt": "look", "agent": "general", "background": background}
    words = ", ".join(f"{name} = {json.dumps(value)}" for name, value in arguments.items())
    script = f'[[step]]\ncall = [{{ tool = "task", arguments = {{ {words} }} }}]\n{DONE * 2}'
    main = ScriptedModel(parse_script(script))

    def make(name: str) -> ModelClient:
        if name != CHILD:
            return main
        child = f'name = "child"\n[[step]]\ncall = [{call("write_file", "b.py")}]\n{DONE}'
        return ScriptedModel(parse_script(child))

    given: dict[HookEvent, list[HookAnswer]] = {"SubagentStop": [HookAnswer(wish="block", reason="more"), HookAnswer()]}
    with watched(folder, monkeypatch) as order:
        parts: dict[str, Any] = {"make_client": make, "profiles": lambda: profiles, "tools": [TaskTool(lambda: listed)]}
        parts |= {"subagents": SubagentOptions(model=CHILD), "policy": Policy(mode="accept-edits")}
        async with session(script, folder, order, given, **parts) as b:
            b.session._services.toolset.context.unattended = background  # pyright: ignore[reportPrivateUsage]
            await said(b, order, "delegate it")
    check(request.node.callspec.id, order.turns)


async def test_interrupted_at_each_await(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each step that the session waits for: what follows when the user interrupts it there. Each turn has an end,
    and so has each item."""
    script = f"[[step]]\ncall = [{call('write_file', 'a.py')}, {call('run_command', 'make')}]\n{DONE}"
    lines: list[str] = []
    for number in count(1):
        place = folder / str(number)
        place.mkdir()
        with watched(place, monkeypatch, number) as order:
            async with session(script, place, order, policy=Policy(yolo=True)) as b:
                order.interrupt = lambda session=b.session: session.send(Interrupt())
                b.send(Submit("go"))
                await until(lambda: bool(order.stopped_at) or b.session.view.totals.turns == 1)
                await until(lambda: not b.session.view.busy)
                await b.idle()
                after, order.interrupt = order.lines[order.stopped_line :], None
                if order.stopped_at:
                    assert not b.session._recorder.ledger.open  # pyright: ignore[reportPrivateUsage]
            if not order.stopped_at:
                break
            lines.append(f"{order.stopped_at} -> {'; '.join(after)}")
    check("interrupts", "\n".join(lines) + "\n")
