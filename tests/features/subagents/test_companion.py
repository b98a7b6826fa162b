"""Subagents: tasks that sessions of their own carry out inside of a session."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from swecli.commands.context import agents_text, tokens_by_agent
from swecli.core.engine.companion import Companions
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.settings import SubagentOptions
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelClient
from swecli.core.permissions.types import tightest
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Interrupt, ReplyPermission, SetMode, StopJob, Submit
from swecli.core.protocol.events import (
    AgentEnded,
    AgentStarted,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModeChanged,
    Notice,
    PermissionRequested,
    PermissionResolved,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.tools.base import ToolContext, ToolOutcome
from swecli.features.subagents.companion import Subagents
from swecli.features.subagents.profiles import AgentProfile, tools_of
from swecli.features.subagents.tool import TaskTool
from tests.core.engine.support import Bench, Gates, Poke, Target, bench, call, until

PROFILES = (
    AgentProfile("general", "Does anything.", "Do it."),
    AgentProfile("reader", "Reads.", "Read.", tools=("read_file",), mode="plan"),
    AgentProfile("lost", "Has nothing.", "", tools=("nothing_here",)),
    AgentProfile("half", "Has a bit.", "", tools=("read_file", "nothing_here")),
    AgentProfile("elsewhere", "Asks another model.", "", model="gone/model"),
    AgentProfile("careful", "Asks before edits.", "", mode="default"),
)
CLOSING = '[[step]]\ntext = "all reported"\n'
USAGE = "usage = { input = 1000, output = 100 }"


def task(prompt: str = "look", agent: str = "general", **more: Any) -> str:
    arguments = {"description": f"to {prompt}", "prompt": prompt, "agent": agent, **more}
    return f'{{ tool = "task", arguments = {_toml(arguments)} }}'


def _toml(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items()) + " }"


def parent(*calls: str, then: str = CLOSING) -> str:
    return f"[[step]]\ncall = [{', '.join(calls)}]\n{then}"


def child_answers(text: str = "found it", *calls: str) -> str:
    first = f"[[step]]\ncall = [{', '.join(calls)}]\n" if calls else ""
    return f'{first}[[step]]\ntext = "{text}"\n'


def changes(child: str | Sequence[str], **options: Any) -> dict[str, Any]:
    """Services whose subagents are answered by these scripts, one for each in the order in which they begin."""
    scripts = [child] if isinstance(child, str) else list(child)
    main: list[ModelClient] = []

    def add(make: Callable[[str], ModelClient]) -> Callable[[str], ModelClient]:
        def made(name: str) -> ModelClient:
            if name == "scripted/child":
                return ScriptedModel(parse_script(scripts.pop(0) if len(scripts) > 1 else scripts[0]))
            if name.startswith("gone/"):
                raise ModelUnavailable("unknown provider gone")
            if not main:
                main.append(make(name))
            return main[0]

        return made

    return {"equip": add, "subagents": SubagentOptions(**{"model": "scripted/child", **options})}


def repository(folder: Path) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "a")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def tools() -> list[Any]:
    return [TaskTool(lambda: [(profile.name, profile.description) for profile in PROFILES])]


def with_agents(script: str, tmp_path: Path, child: str | Sequence[str], options: Mapping[str, Any] = {}, **more: Any):
    made = changes(child, **options)
    equip = made.pop("equip")
    scripted = ScriptedModel(parse_script(script))
    return bench(
        script,
        tmp_path,
        tools=more.pop("tools", None) or tools(),
        make_client=equip(lambda name: scripted),
        profiles=lambda: PROFILES,
        **made,
        **more,
    )


def ended(made: Bench) -> list[AgentEnded]:
    return made.bodies(AgentEnded)


@pytest.mark.parametrize(("count", "described"), [(3, 3), (150, 150), (400, 0)])
def test_the_list_of_agents_has_a_limit(count: int, described: int) -> None:
    profiles = [(f"agent-with-a-long-name-{number:03}", "Knows a lot. " * 40) for number in range(count)]
    few = TaskTool(lambda: profiles[:0]).description()
    listed = TaskTool(lambda: profiles).description().removeprefix(f"{few} Agents:")
    assert len(listed) <= 12_001
    assert all(name in listed for name, _ in profiles)
    assert listed.count("Knows a lot.") >= described
    assert ("Knows a lot. " * 15)[:199] in listed or count > 3


async def test_a_task_is_done_in_a_context_of_its_own_and_its_report_comes_back(tmp_path: Path) -> None:
    child = child_answers("the answer is 42", call("read_file", "a.txt"))
    async with with_agents(parent(task()), tmp_path, child) as made:
        end = await made.say("go")
        (text,) = made.tool_texts().values()
        shown = [event for event in made.events if event.agent == "agent-1"]

        assert end.outcome == "done"
        assert "the answer is 42" in text
        assert "agent-1" in text
        assert "2 steps" in text
        assert made.gates.started == ["a.txt"]
        assert made.bodies(AgentStarted)[0].title == "to look"
        assert ended(made)[0].outcome == "done"
        assert ended(made)[0].steps == 2
        assert [message.role for message in made.session.view.messages] == ["user", "assistant", "tool", "assistant"]
        assert any(isinstance(event.body, ItemStarted) for event in shown)
        assert not any(isinstance(event.body, ItemDelta) for event in shown)
        assert {event.turn for event in shown} == {1}


async def test_items_and_requests_of_all_agents_have_names_of_their_own(tmp_path: Path) -> None:
    child = child_answers("done", call("write_file", "a.txt"))
    async with with_agents(parent(task(), task(), call("read_file", "b")), tmp_path, child) as made:
        made.allow_all = True
        await made.say("go")
        items = [event.body.item for event in made.events if isinstance(event.body, ItemStarted)]
        requests = [body.request for body in made.bodies(PermissionRequested)]

        assert len(set(items)) == len(items)
        assert len(set(requests)) == len(requests) == 2


async def test_three_in_parallel_end_with_the_right_totals(tmp_path: Path) -> None:
    step = f'[[step]]\ncall = [{call("read_file", "x")}]\n{USAGE}\n[[step]]\ntext = "ok"\n{USAGE}\n'
    script = f'[[step]]\ncall = [{task("a")}, {task("b")}, {task("c")}]\n{USAGE}\n[[step]]\ntext = "end"\n{USAGE}\n'
    price = {"price": lambda model, usage: "0.01"}
    async with with_agents(script, tmp_path, step, **price) as made:
        made.gates.held.add("x")
        made.send(Submit("go"))
        await until(lambda: made.gates.started == ["x", "x", "x"], "three at the same time")
        made.gates.release("x")
        await until(lambda: bool(made.session.view.totals.turns) and not made.session.view.busy, "the end")
        totals, spending = made.session.view.totals, made.session.view.spending

        assert (totals.input_tokens, totals.output_tokens) == (8_000, 800)
        assert totals.cost == Decimal("0.08")
        assert spending.by_turn[1].responses == 8
        assert {agent.tokens for agent in made.session.view.agents} == {2_200}
        assert {agent.cost for agent in made.session.view.agents} == {"0.02"}
        assert [one.outcome for one in ended(made)] == ["done"] * 3


async def test_their_numbers_follow_the_order_of_the_calls(tmp_path: Path) -> None:
    class Held(TaskTool):
        """The first call begins when the last one has begun."""

        async def run(self, params: Any, ctx: ToolContext) -> ToolOutcome:
            if params.prompt == "a":
                await began.wait()
            if params.prompt == "c":
                began.set()
            return await super().run(params, ctx)

    began = asyncio.Event()
    held = Held(lambda: [(profile.name, profile.description) for profile in PROFILES])
    script = parent(task("a"), task("b"), task("c"), then=f"[[step]]\ncall = [{task('d')}]\n{CLOSING}")
    async with with_agents(script, tmp_path, child_answers("ok"), tools=[held]) as made:
        await made.say("go")
        numbers = {body.title: body.agent for body in made.bodies(AgentStarted)}
        assert [*numbers][:1] != ["to a"]
        assert numbers == {"to a": "agent-1", "to b": "agent-2", "to c": "agent-3", "to d": "agent-4"}


async def test_no_more_work_at_the_same_time_than_allowed(tmp_path: Path) -> None:
    child = child_answers("ok", call("read_file", "x"))
    script = parent(task("a"), task("b"), task("c"))
    async with with_agents(script, tmp_path, child, {"at_once": 2}) as made:
        made.gates.held.add("x")
        made.send(Submit("go"))
        await until(lambda: len(made.gates.started) == 2, "two")
        begun = [event.agent for event in made.events if isinstance(event.body, StepStarted) and event.agent != "main"]
        made.gates.release("x")
        await until(lambda: len(ended(made)) == 3, "all")

        assert sorted(begun) == ["agent-1", "agent-2"]


async def test_one_that_loops_is_stopped_at_its_cap_and_the_context_grows_by_its_report_only(tmp_path: Path) -> None:
    steps = "".join(
        f'[[step]]\ntext = "{"still looking " * 400}"\ncall = [{call("read_file", f"file-{n}")}]\n' for n in range(20)
    )
    async with with_agents(parent(task()), tmp_path, steps, {"max_steps": 5}) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()

        assert ended(made)[0].outcome == "limit"
        assert ended(made)[0].steps == 5
        assert "stopped at the limit of 5 model steps" in text
        assert "still looking" in text
        assert made.session._services.toolset.context.monitor.count_tokens(text) <= 1_500


async def test_its_tokens_are_capped(tmp_path: Path) -> None:
    steps = "".join(f"[[step]]\ncall = [{call('read_file', f'file-{n}')}]\n{USAGE}\n" for n in range(20))
    async with with_agents(parent(task()), tmp_path, steps, {"max_tokens": 10_000}) as made:
        await made.say("go")

        assert ended(made)[0].outcome == "limit"
        assert ended(made)[0].tokens <= 10_000


async def test_the_cap_of_the_session_holds_for_its_subagents(tmp_path: Path) -> None:
    from swecli.core.engine.settings import TurnLimits

    steps = "".join(f"[[step]]\ncall = [{call('read_file', f'file-{n}')}]\n{USAGE}\n" for n in range(40))
    limits = {"limits": TurnLimits(max_tokens=40_000)}
    async with with_agents(parent(task(), task("b")), tmp_path, steps, **limits) as made:
        end = await made.say("go")

        assert [one.outcome for one in ended(made)] == ["limit", "limit"]
        assert end.outcome == "limit"
        assert (
            made.session.view.totals.input_tokens + made.session.view.totals.output_tokens <= 44_000
        )  # two requests may be under way


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("nobody", "Unknown agent 'nobody'. Agents: general, reader"),
        ("lost", "no available tools"),
    ],
)
async def test_what_can_not_begin_is_an_error_that_says_why(tmp_path: Path, agent: str, words: str) -> None:
    async with with_agents(parent(task(agent=agent)), tmp_path, child_answers()) as made:
        end = await made.say("go")
        (text,) = made.tool_texts().values()

        assert words in text
        assert end.outcome == "done"
        assert not made.bodies(AgentStarted)


async def test_the_usual_model_works_where_the_one_of_the_profile_is_not_available(tmp_path: Path) -> None:
    script = parent(task(agent="elsewhere"), task(agent="elsewhere"))
    async with with_agents(script, tmp_path, (child_answers(), child_answers())) as made:
        await made.say("go")
        told = [body.text for body in made.bodies(Notice) if "elsewhere" in body.text]

        assert [end.outcome for end in ended(made)] == ["done", "done"]
        assert {begin.model for begin in made.bodies(AgentStarted)} == {"scripted/child"}
        assert len(told) == 1
        assert "uses scripted/child" in told[0]
        assert "unknown provider gone" in told[0]


async def test_no_agent_begins_without_any_available_model(tmp_path: Path) -> None:
    options = {"model": "gone/other"}
    async with with_agents(parent(task(agent="elsewhere")), tmp_path, child_answers(), options) as made:
        end = await made.say("go")
        (text,) = made.tool_texts().values()

        assert "unknown provider gone" in text
        assert end.outcome == "done"
        assert not made.bodies(AgentStarted)


async def test_tools_that_do_not_exist_are_told_and_left_out(tmp_path: Path) -> None:
    async with with_agents(parent(task(agent="half")), tmp_path, child_answers()) as made:
        await made.say("go")

        assert any("nothing_here" in event.body.text for event in made.events if hasattr(event.body, "hint"))
        assert ended(made)[0].outcome == "done"


async def test_a_subagent_starts_no_subagents_and_asks_no_questions(tmp_path: Path) -> None:
    child = child_answers("alone then", task("deeper"))
    async with with_agents(parent(task()), tmp_path, child) as made:
        await made.say("go")
        results = [
            event.body.parts[0]
            for event in made.events
            if event.agent == "agent-1" and isinstance(event.body, ItemCompleted) and event.body.status == "error"
        ]

        assert len(made.bodies(AgentStarted)) == 1
        assert isinstance(results[0], ToolResultPart)
        assert "Unknown tool 'task'" in results[0].text


async def test_a_request_for_consent_names_the_agent_and_is_answered_in_the_session(tmp_path: Path) -> None:
    child = child_answers("written", call("write_file", "a.txt"))
    async with with_agents(parent(task()), tmp_path, child) as made:
        made.send(Submit("go"))
        asked = await made.asked()
        waiting = made.session.view.permission
        made.allow(asked)
        await until(lambda: bool(ended(made)), "the end")

        assert asked.facts[0] == "asked by agent-1 (general)"
        assert waiting == asked
        assert made.gates.ended == ["a.txt"]
        assert made.session.view.permission is None


async def test_what_is_always_allowed_holds_for_all_agents_at_once(tmp_path: Path) -> None:
    child = child_answers("written", call("write_file", "a.txt"))
    async with with_agents(parent(task("a"), task("b")), tmp_path, child) as made:
        made.send(Submit("go"))
        first, _ = await made.asked(1), await made.asked(2)
        made.send(ReplyPermission(first.request, "always"))
        await until(lambda: len(ended(made)) == 2, "both")

        assert made.gates.ended == ["a.txt", "a.txt"]
        assert len(made.bodies(PermissionRequested)) == 2


async def test_a_change_of_the_mode_holds_for_them_at_once(tmp_path: Path) -> None:
    child = child_answers("not written", call("write_file", "a.txt"))
    async with with_agents(parent(task()), tmp_path, child) as made:
        made.send(Submit("go"))
        await made.asked()
        made.send(SetMode("plan"))
        await until(lambda: bool(ended(made)), "the end")
        changed = [event.agent for event in made.events if isinstance(event.body, ModeChanged)]

        assert made.gates.started == []
        assert sorted(changed) == ["agent-1", "main"]


async def test_a_profile_works_in_the_tighter_mode_with_its_tools_only(tmp_path: Path) -> None:
    child = child_answers("no", call("write_file", "a.txt"))
    async with with_agents(parent(task(agent="reader")), tmp_path, child) as made:
        await made.say("go")

        assert made.gates.started == []
        assert not made.bodies(PermissionRequested)


@pytest.mark.parametrize(("agent", "offered"), [("general", True), ("careful", False)])
async def test_a_looser_mode_is_offered_only_where_it_would_settle_the_question(
    tmp_path: Path, agent: str, offered: bool
) -> None:
    child = child_answers("ok", call("write_file", "a.txt"))
    async with with_agents(parent(task(agent=agent)), tmp_path, child) as made:
        made.send(Submit("go"))
        request = await made.asked()
        assert request.acceptable == offered
        made.send(SetMode("accept-edits") if offered else ReplyPermission(request.request, "once"))
        await until(lambda: not made.session.view.busy)
        assert made.gates.ended == ["a.txt"]


async def test_a_question_of_one_in_the_background_outlives_the_turn(tmp_path: Path) -> None:
    child = child_answers("ok", call("write_file", "a.txt"))
    async with with_agents(parent(task(background=True), call("read_file", "y")), tmp_path, child) as made:
        made.gates.held.add("y")
        made.send(Submit("go"))
        request = await made.asked()
        made.gates.release("y")
        await until(lambda: any(event.agent == "main" and isinstance(event.body, TurnEnded) for event in made.events))
        await until(lambda: not made.session.view.busy)
        assert made.session.view.permission == request
        made.send(ReplyPermission(request.request, "once"))
        await until(lambda: bool(ended(made)), "the end of the subagent")
        assert "a.txt" in made.gates.ended
        assert [body.choice for body in made.bodies(PermissionResolved)] == ["once"]


async def test_an_interrupt_ends_all_of_them(tmp_path: Path) -> None:
    child = child_answers("ok", call("read_file", "x"))
    async with with_agents(
        parent(task("a"), task("b", background=True), call("read_file", "y")), tmp_path, child
    ) as made:
        made.gates.held |= {"x", "y"}
        made.send(Submit("go"))
        await until(lambda: sorted(made.gates.started) == ["x", "x", "y"], "all at work")
        made.send(Interrupt())
        await until(lambda: len(ended(made)) == 2 and not made.session.view.busy, "the end")
        texts = " ".join(made.tool_texts().values())

        assert {one.outcome for one in ended(made)} == {"interrupted"}
        assert sorted(target for event, target in made.gates.log if event == "cancel") == ["x", "x", "y"]
        assert 'read_result with ref_id "agent-1"' in texts
        assert all(body.blocks == () for body in made.bodies(ItemCompleted) if body.status == "interrupted")
        agents = made.session.companion(Subagents)
        assert agents is not None
        assert not agents._runs


async def test_an_interrupt_while_one_waits_for_consent(tmp_path: Path) -> None:
    child = child_answers("ok", call("write_file", "x"))
    async with with_agents(parent(task()), tmp_path, child) as made:
        made.send(Submit("go"))
        await made.asked()
        made.send(Interrupt())
        await until(lambda: not made.session.view.busy, "the end")

        assert made.session.view.permission is None
        assert ended(made)[0].outcome == "interrupted"
        assert made.gates.started == []


async def test_one_in_the_background_reports_with_a_message(tmp_path: Path) -> None:
    child = child_answers("late news", call("read_file", "x"))
    async with with_agents(parent(task(background=True)), tmp_path, child) as made:
        made.gates.held.add("x")
        end = await made.say("go")
        (job,) = made.session.view.jobs
        made.gates.release("x")
        await until(lambda: bool(ended(made)), "the report")
        await until(lambda: "late news" in str(made.session.view.messages), "the note")

        assert end.outcome == "done"
        assert (job.id, job.status) == ("agent-1", "running")
        assert made.session.view.jobs[0].status == "exited"
        assert "late news" in await made.session.job_output("agent-1")


async def test_the_context_tells_what_each_subagent_used_and_what_its_report_takes(tmp_path: Path) -> None:
    step = f'[[step]]\ntext = "the answer is 42"\n{USAGE}\n'
    calls = parent(task("count"), task("wait", background=True))
    price = {"price": lambda model, usage: "0.01"}
    async with with_agents(calls, tmp_path, step, **price) as made:
        await made.say("go")
        await until(lambda: len(ended(made)) == 2, "both reports")
        await until(lambda: str(made.session.view.messages).count("the answer is 42") == 2, "the note")
        picture = made.session.inspection.picture()
        assert picture is not None
        of_agents = [(item.agent, item.kind) for item in picture.items if item.agent]
        told = tokens_by_agent(picture.items)
        text = agents_text(made.session)

        assert [agent.budget is not None for agent in made.session.view.agents] == [True, True]
        assert sorted(of_agents) == [
            ("agent-1", "call"),
            ("agent-1", "result"),
            ("agent-2", "call"),
            ("agent-2", "note"),
            ("agent-2", "result"),
        ]
        assert told["agent-1"] > 20
        assert text.splitlines()[0] == f"2 subagents · 2.2K tokens of their own · $0.02 · {sum(told.values())} here"
        assert [line.split()[:3] for line in text.splitlines()[1:]] == [
            ["agent-1", "(general)", "done"],
            ["agent-2", "(general)", "done"],
        ]
        assert "agent-1 (general): to count" in [made.session.inspection.title(item) for item in picture.items]


async def test_a_subagent_of_an_unknown_price_and_without_usage_is_told_so(tmp_path: Path) -> None:
    async with with_agents(parent(task()), tmp_path, '[[step]]\ntext = "ok"\nusage = { silent = true }\n') as made:
        await made.say("go")
        (line,) = agents_text(made.session).splitlines()[1:]

        assert "price unknown" in line
        assert "tokens not reported" in line


async def test_a_defect_of_one_in_the_background_is_told_to_the_model_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> str:
        raise KeyError("a defect")

    monkeypatch.setattr(Companions, "agent_begins", broken)
    reported: list[BaseException] = []
    child = child_answers("never")
    async with with_agents(parent(task(background=True)), tmp_path, child, report_defect=reported.append) as made:
        await made.say("go")
        await until(lambda: bool(reported), "the report")
        await made.say("and now?")
        assert "agent-1 (to look) failed: swecli failed internally: KeyError" in str(made.session.view.messages)
        assert [type(error) for error in reported] == [KeyError]
        assert [end.outcome for end in ended(made)] == ["error"]


async def test_one_in_the_background_can_be_stopped(tmp_path: Path) -> None:
    child = child_answers("late news", call("read_file", "x"))
    async with with_agents(parent(task(background=True)), tmp_path, child) as made:
        made.gates.held.add("x")
        await made.say("go")
        await until(lambda: made.gates.started == ["x"], "at work")
        made.send(StopJob("agent-1"))
        await until(lambda: bool(ended(made)), "the end")

        assert ended(made)[0].outcome == "interrupted"
        assert made.session.view.jobs[0].status == "killed"


async def test_where_nobody_can_answer_the_model_waits_for_the_background(tmp_path: Path) -> None:
    from swecli.core.context_management.context_manager import ContextManager
    from swecli.core.context_management.prompt import PromptTexts

    script = parent(task(background=True), then='[[step]]\ntext = "waiting"\n[[step]]\ntext = "the last word"\n')
    context = {"context": ContextManager((), PromptTexts(headless=True))}
    async with with_agents(script, tmp_path, child_answers("late news"), **context) as made:
        await made.say("go")
        last = made.session.answer

        assert last == "the last word"
        assert "late news" in str(made.session.view.messages)


async def test_the_transcript_can_be_read_by_the_model(tmp_path: Path) -> None:
    from swecli.core.tools.read_result import ReadResult

    child = child_answers("short", call("read_file", "deep.txt"))
    read = '[[step]]\ncall = [{ tool = "read_result", arguments = { ref_id = "agent-1" } }]\n'
    made_tools = [*tools(), ReadResult()]
    options = changes(child)
    equip = options.pop("equip")
    scripted = ScriptedModel(parse_script(parent(task(), then=read + CLOSING)))
    async with bench(
        "", tmp_path, tools=made_tools, make_client=equip(lambda name: scripted), profiles=lambda: PROFILES, **options
    ) as made:
        await made.say("go")
        texts = "\n".join(made.tool_texts().values())

        assert "[task]\nlook" in texts
        assert texts.count("[call of read_file]") == 1
        assert "read_file deep.txt done" in texts


async def test_after_a_kill_the_call_has_a_result_and_the_transcript_is_there(tmp_path: Path) -> None:
    child = child_answers("ok", call("read_file", "deep.txt"), call("read_file", "x"))
    script = parent(task("a"), task("b", background=True))
    async with with_agents(script, tmp_path, child) as made:
        made.gates.held.add("x")
        made.send(Submit("go"))
        await until(lambda: sorted(made.gates.started) == ["deep.txt", "deep.txt", "x", "x"], "at work")
        await until(lambda: made.gates.ended == ["deep.txt", "deep.txt"], "half done")
        await until(lambda: sum("deep.txt done" in str(event.body) for event in made.facts) == 2, "stored")
        killed = list(made.facts)
    async with with_agents(CLOSING, tmp_path, child, history=killed) as again:
        texts = again.tool_texts()
        outcomes = [agent.outcome for agent in again.session.view.agents]
        transcript = await again.session.job_output("agent-1")

        assert outcomes == ["interrupted", "interrupted"]
        assert any('ref_id "agent-1"' in text and "Interrupted" in text for text in texts.values())
        assert "deep.txt done" in transcript
        assert "agent-2 (general) ended early (interrupted: swecli was stopped)" in str(again.session.view.messages)
        assert (await again.say("on")).outcome == "done"


async def test_edits_of_several_agents_to_one_file_wait_for_each_other(tmp_path: Path) -> None:
    child = child_answers("ok", call("write_file", "same.txt"))
    async with with_agents(parent(task("a"), task("b")), tmp_path, child) as made:
        made.allow_all = True
        made.gates.held.add("same.txt")
        made.send(Submit("go"))
        await until(lambda: len(made.bodies(PermissionRequested)) == 2, "both asked")
        await until(lambda: len(made.gates.started) == 1, "one begins")
        for _ in range(20):
            await asyncio.sleep(0)
        begun = list(made.gates.started)
        made.gates.release("same.txt")
        await until(lambda: len(ended(made)) == 2, "the end")

        assert begun == ["same.txt"]
        assert made.gates.log == [("start", "same.txt"), ("end", "same.txt")] * 2


async def test_an_answer_that_is_empty_is_reported_as_such(tmp_path: Path) -> None:
    async with with_agents(
        parent(task()), tmp_path, '[[step]]\nfault = { kind = "empty" }\n[[step]]\nfault = { kind = "empty" }\n'
    ) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()

        assert ended(made)[0].outcome == "error"
        assert "empty answers" in text
        assert "It gave no answer." in text


async def test_a_model_that_refuses_is_reported(tmp_path: Path) -> None:
    async with with_agents(parent(task()), tmp_path, '[[step]]\nfault = { kind = "auth" }\n') as made:
        end = await made.say("go")

        assert ended(made)[0].outcome == "error"
        assert end.outcome == "done"


def test_modes_are_never_loosened() -> None:
    assert tightest(None, "auto") == "auto"
    assert tightest("auto", "default") == "default"
    assert tightest("plan", "auto") == "plan"


def test_a_profile_never_has_the_tool_that_starts_subagents() -> None:
    kept, unknown = tools_of(AgentProfile("a", "", "", tools=("task", "search", "x")), ("search", "task"))

    assert kept == ("search",)
    assert unknown == ("x",)


@pytest.mark.parametrize("changes_something", [True, False])
async def test_one_in_a_worktree_leaves_it_only_with_changes(tmp_path: Path, changes_something: bool) -> None:
    class Pen(Poke):
        name = "pen"

        def description(self) -> str:
            return "Writes."

        async def run(self, params: Target, ctx: ToolContext) -> ToolOutcome:
            if changes_something:
                (ctx.cwd / params.target).write_text("new")
            return ToolOutcome(str(ctx.cwd))

    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a")
    repository(project)
    child = child_answers("done", call("pen", "b"))
    script = parent(task(worktree=True))
    options = changes(child)
    equip = options.pop("equip")
    scripted = ScriptedModel(parse_script(script))
    async with bench(
        script,
        project,
        tools=[*tools(), Pen(Gates())],
        make_client=equip(lambda name: scripted),
        profiles=lambda: PROFILES,
        worktrees=tmp_path / "trees",
        **options,
    ) as made:
        made.allow_all = True
        await made.say("go")
        (text,) = made.tool_texts().values()
        (end,) = ended(made)
        shown = [block for done in made.bodies(ItemCompleted) for block in done.blocks]
        facts = [fact for asked in made.bodies(PermissionRequested) for fact in asked.facts]

    assert end.outcome == "done"
    assert bool(end.folder) == changes_something
    told = [block.text for block in shown if isinstance(block, TextBlock) and "git worktree" in block.text]
    assert [end.folder in text for text in told] == ([True] if changes_something else [])
    assert "asked by agent-1 (general), in a git worktree of its own" in facts
    assert ("git worktree" in text) == changes_something
    assert [path.name for path in (tmp_path / "trees").rglob("b")] == (["b"] if changes_something else [])
    assert sorted(path.name for path in project.iterdir()) == [".git", "a"]


async def test_an_interrupted_one_says_where_its_changes_are(tmp_path: Path) -> None:
    reached = asyncio.Event()

    class Pen(Poke):
        name = "pen"

        def description(self) -> str:
            return "Writes, and goes on."

        async def run(self, params: Target, ctx: ToolContext) -> ToolOutcome:
            (ctx.cwd / params.target).write_text("new")
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError("it is interrupted")

    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a")
    repository(project)
    script = parent(task(worktree=True))
    options = changes(child_answers("done", call("pen", "b")))
    equip = options.pop("equip")
    scripted = ScriptedModel(parse_script(script))
    async with bench(
        script,
        project,
        tools=[*tools(), Pen(Gates())],
        make_client=equip(lambda name: scripted),
        profiles=lambda: PROFILES,
        worktrees=tmp_path / "trees",
        **options,
    ) as made:
        made.allow_all = True
        made.send(Submit("go"))
        await until(reached.is_set, "at work")
        made.send(Interrupt())
        await until(lambda: not made.session.view.busy, "the end")
        (text,) = made.tool_texts().values()
        (end,) = ended(made)
        (interrupted,) = [
            done for done in made.bodies(ItemCompleted) if done.status == "interrupted" and "agent-1" in str(done.parts)
        ]

    said = f"Its changes are in the git worktree {end.folder}, and only there."
    assert (Path(end.folder) / "b").exists()
    assert said in text
    assert interrupted.blocks == (TextBlock(said, "dim"),)


async def test_a_worktree_without_a_repository_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with with_agents(
        parent(task(worktree=True)), tmp_path, child_answers(), worktrees=tmp_path / "trees"
    ) as made:
        await made.say("go")
        (text,) = made.tool_texts().values()

        assert "not in a git repository" in text
        assert ended(made)[0].outcome == "error"


async def test_it_ends_what_is_its_own_and_leaves_open_what_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a")
    repository(project)
    closed: list[Sandbox] = []
    monkeypatch.setattr(Sandbox, "close", lambda sandbox: closed.append(sandbox))
    shared, own = Sandbox.none(), Sandbox.none()
    ends: list[str] = []
    script = parent(task(), then=f"[[step]]\ncall = [{task(worktree=True)}]\n{CLOSING}")
    parts = {
        "sandbox": shared,
        "sandbox_for": lambda folder: own,
        "worktrees": tmp_path / "trees",
        "end_processes": lambda: ends.append("ended"),
    }
    async with with_agents(script, project, child_answers(), **parts) as made:
        made.allow_all = True
        await made.say("go")
        assert len(ended(made)) == 2
        assert (closed, ends) == ([own], [])
    assert (closed, ends) == ([own, shared], ["ended"])
