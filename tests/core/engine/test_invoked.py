"""Calls of Markdown commands and skills in a session, and news of their files between turns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.engine.settings import SubagentOptions
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Invoke, ReplyPermission, Submit
from swecli.core.protocol.events import (
    ItemStarted,
    Notice,
    PermissionRequested,
    RuleApplied,
    SessionStarted,
    ToolsChanged,
    TurnEnded,
)
from swecli.core.tools.base import ToolContext, ToolOutcome
from swecli.core.tools.run_command import RunCommand
from swecli.core.tools.session_tools import SkillTool
from swecli.features.subagents.profiles import AgentProfile
from swecli.features.subagents.tool import TaskTool
from tests.core.engine.support import Bench, Gates, Poke, Target, bench, call, until
from tests.core.engine.test_model_choice import Family
from tests.core.extensions.support import Places

ANSWERS = '[[step]]\ntext = "one"\n' * 4


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path / "project", tmp_path / "home")
    (made.project / ".git").mkdir(parents=True)
    made.home.mkdir()
    return made


async def ended(made: Bench, turns: int = 1) -> TurnEnded:
    await until(lambda: len(made.bodies(TurnEnded)) >= turns and not made.session.view.busy, "end of turn")
    return made.bodies(TurnEnded)[turns - 1]


def asked(made: Bench, request: int = -1) -> list[str]:
    """The texts of the user's messages in a request."""
    return [message.text for message in made.model.requests[request].messages if message.role == "user"]


async def test_the_text_with_the_output_of_its_commands_is_sent(places: Places) -> None:
    front = "description: d\nallowed-tools: Bash(touch *), Bash(ls *)"
    places.write(".claude/commands/git/say.md", f"---\n{front}\n---\nSay !`touch made` $1, !`ls`, !`ls nowhere`.")
    files, policy = places.open(), Policy(facts=OsFacts(dict(os.environ)))
    async with bench(ANSWERS, places.project, tools=[RunCommand()], extension_files=files, policy=policy) as made:
        made.send(Invoke("git:say", "her"))
        assert (await ended(made)).outcome == "done"
        assert "Say  her, made, ls: " in asked(made)[0]
        assert asked(made)[0].endswith("\n(exit status 2).")
        assert made.bodies(PermissionRequested) == []
        started = [body for body in made.bodies(ItemStarted) if body.kind == "user"]
        assert [(body.name, body.title) for body in started] == [("command", "/git:say her")]
        assert [body.rule for body in made.bodies(RuleApplied)] == ["Bash(touch *)"]
        assert made.session.view.totals.by_tool == {"run_command": 3}
        assert made.bodies(SessionStarted)[0].commands[0].name == "git:say"


async def test_its_rules_end_with_its_turn(places: Places) -> None:
    places.write(".claude/commands/x.md", "---\nallowed-tools: Bash(touch *)\n---\n!`touch a` hello")
    script = (
        '[[step]]\ntext = "one"\n[[step]]\n[[step.call]]\ntool = "run_command"\narguments = { command = "touch b" }\n'
    )
    files, policy = places.open(), Policy(facts=OsFacts(dict(os.environ)))
    async with bench(
        script + ANSWERS, places.project, tools=[RunCommand()], extension_files=files, policy=policy
    ) as made:
        made.send(Invoke("x"))
        await ended(made)
        assert made.bodies(PermissionRequested) == []
        made.send(Submit("again"))
        request = await made.asked()
        assert "touch b" in request.title
        made.send(ReplyPermission(request.request, "reject"))
        await ended(made, 2)


async def test_a_command_that_is_rejected_sends_nothing(places: Places) -> None:
    places.write(".claude/commands/x.md", "!`touch a` hello")
    files = places.open()
    async with bench(ANSWERS, places.project, tools=[RunCommand()], extension_files=files) as made:
        made.send(Invoke("x"))
        made.allow(await made.asked(), "reject")
        end = await ended(made)
        assert end.outcome == "interrupted"
        assert end.reason == "/x was not sent, because you rejected `touch a`"
        assert made.model.requests == []
        assert made.session.view.messages == ()


async def test_plan_mode_holds_for_its_commands(places: Places) -> None:
    places.write(".claude/commands/x.md", "---\nallowed-tools: Bash\n---\n!`touch a` hello")
    files = places.open()
    policy = Policy(mode="plan")
    async with bench(ANSWERS, places.project, tools=[RunCommand()], extension_files=files, policy=policy) as made:
        made.send(Invoke("x"))
        end = await ended(made)
        assert end.outcome == "error"
        assert "Plan mode" in end.reason
        assert not (places.project / "a").exists()


async def test_files_that_it_mentions_are_attached_but_not_those_of_outputs(places: Places) -> None:
    places.write("b.md", "x")
    places.write(".claude/commands/x.md", "See @b.md !`echo @c.md`")
    files = places.open()
    async with bench(ANSWERS, places.project, tools=[RunCommand()], extension_files=files) as made:
        made.allow_all = True
        made.send(Invoke("x"))
        await ended(made)
        assert [body.name for body in made.bodies(ItemStarted) if body.kind == "attachment"] == ["read_file"]


async def test_it_waits_for_the_running_turn(places: Places) -> None:
    places.write(".claude/commands/x.md", "from the file: $1")
    script = f'[[step]]\n[[step.call]]\ntool = "read_file"\narguments = {{ target = "slow" }}\n{ANSWERS}'
    async with bench(script, places.project, extension_files=places.open()) as made:
        made.gates.held.add("slow")
        made.send(Submit("begin"))
        await until(lambda: made.gates.started == ["slow"])
        made.send(Invoke("x", "now"))
        assert [queued.text for queued in made.session.view.queue] == ["/x now"]
        made.gates.release("slow")
        await ended(made, 2)
        assert asked(made)[-1] == "from the file: now"


async def test_one_that_is_gone_when_its_turn_comes_waits_and_delays_no_other(places: Places) -> None:
    script = f'[[step]]\n[[step.call]]\ntool = "read_file"\narguments = {{ target = "slow" }}\n{ANSWERS}'
    async with bench(script, places.project, extension_files=places.open()) as made:
        made.gates.held.add("slow")
        made.send(Submit("begin"))
        await until(lambda: made.gates.started == ["slow"])
        made.send(Invoke("gone", "with all my words"))
        made.send(Submit("and then this"))
        made.send(Submit("and that"))
        made.gates.release("slow")
        await ended(made, 3)
        assert asked(made)[-2:] == ["and then this", "and that"]
        assert [waiting.text for waiting in made.session.view.queue] == ["/gone with all my words"]
        assert [notice.text for notice in made.bodies(Notice)] == ["Unknown command or skill /gone. Nothing was sent."]


@pytest.mark.parametrize(
    ("name", "words"), [("nothing", "Unknown command or skill /nothing"), ("loop", "calls itself endlessly")]
)
async def test_what_leads_nowhere_is_told(places: Places, name: str, words: str) -> None:
    places.write(".claude/commands/loop.md", "/loop")
    async with bench(ANSWERS, places.project, extension_files=places.open()) as made:
        made.send(Invoke(name))
        await until(lambda: any(words in notice.text for notice in made.bodies(Notice)))
        assert made.model.requests == []
        assert not made.session.view.busy


async def test_a_file_that_was_not_approved_is_not_used(places: Places) -> None:
    places.write(".claude/commands/x.md", "evil")
    async with bench(ANSWERS, places.project, extension_files=places.open(at_once=False)) as made:
        made.send(Invoke("x"))
        await until(lambda: any("/commands approve x" in notice.text for notice in made.bodies(Notice)))
        assert made.model.requests == []


async def test_another_model_answers_for_the_turn(places: Places) -> None:
    places.write(".claude/commands/x.md", "---\nmodel: p/other\n---\nhello")
    places.write(".claude/commands/y.md", "---\nmodel: sonnet\n---\nhello")
    family = Family(usual=ANSWERS, other=ANSWERS)
    async with bench("", places.project, name="p/usual", make_client=family, extension_files=places.open()) as made:
        made.send(Invoke("x"))
        await ended(made)
        made.send(Invoke("y"))
        await ended(made, 2)
        assert [len(family.models[name].requests) for name in ("other", "usual")] == [1, 1]
        assert any("requests the model sonnet" in notice.text for notice in made.bodies(Notice))


async def test_the_model_gets_a_skill_and_may_read_its_files_unasked(places: Places) -> None:
    places.skill("pdf", body="Read ref.md", home=".claude")
    path = places.write("~/.claude/skills/own/SKILL.md", "---\nname: own\ndescription: d\n---\nSee ref.md")
    files = places.open()
    call = '[[step]]\n[[step.call]]\ntool = "skill"\narguments = {{ name = "{0}" }}\n'
    read = f'[[step]]\n[[step.call]]\ntool = "read_file"\narguments = {{ target = "{path.parent}/ref.md" }}\n'
    script = call.format("own") + read + call.format("nope") + ANSWERS
    tools = [SkillTool(lambda: files.now.skills)]
    async with bench(script, places.project, tools=tools, extension_files=files) as made:
        end = await made.say("go")
        assert end.outcome == "done"
        texts = list(made.tool_texts().values())
        assert f"relative to its folder, {path.parent}" in texts[0]
        assert "Unknown skill 'nope'" in texts[2]
        assert made.bodies(PermissionRequested) == []


def test_reading_a_skill_s_folder_is_no_way_out_and_writing_there_asks(places: Places) -> None:
    from swecli.core.permissions.types import Call, Effects

    folder = "/home/me/.claude/skills/own"
    policy = Policy(readable=(folder,), untrusted=("evil.example",))

    def decided(effects: Effects) -> str:
        return decide(policy, Call("t", {}, effects, "/proj", ("/proj",))).outcome

    assert decided(Effects(reads=(f"{folder}/ref.md",))) == "allow"
    assert decided(Effects(reads=(f"{folder}/.env",))) == "ask"
    assert decided(Effects(reads=(f"{folder}x/ref.md",))) == "ask"
    assert decided(Effects(writes=(f"{folder}/ref.md",))) == "ask"


async def test_a_new_skill_is_appended_and_brings_its_tool(places: Places) -> None:
    async with bench(ANSWERS, places.project, extension_files=places.open()) as made:
        await made.say("one")
        places.write("~/.claude/skills/own/SKILL.md", "---\nname: own\ndescription: new here\n---\nx")
        await made.say("two")
        await made.say("three")
        first, second, third = made.model.requests
        assert first.system == second.system == third.system
        assert second.messages[: len(first.messages)] == first.messages
        assert "- own: new here" in asked(made, 1)[-1]
        assert asked(made, 2).count(asked(made, 1)[-1]) == 1
        assert [tool.name for change in made.bodies(ToolsChanged) for tool in change.added] == ["skill"]
        assert [body.title for body in made.bodies(ItemStarted) if body.kind == "note"] == ["new: skill own"]


class Learn(Poke):
    """Makes a skill, as another window may at any moment."""

    def __init__(self, places: Places) -> None:
        super().__init__(Gates())
        self._places = places

    async def run(self, params: Target, ctx: ToolContext) -> ToolOutcome:
        self._places.write("~/.claude/skills/own/SKILL.md", "---\nname: own\ndescription: new here\n---\nx")
        return ToolOutcome("made")


async def test_a_subagent_does_not_keep_the_news_from_the_session(places: Places) -> None:
    files = places.open()
    arguments = 'arguments = { description = "look", prompt = "look", agent = "general" }'
    calls = f'[[step]]\ncall = [{call("write_file", "a")}]\n[[step]]\ncall = [{{ tool = "task", {arguments} }}]\n'
    child = ScriptedModel(parse_script('[[step]]\ntext = "found it"'))
    main = ScriptedModel(parse_script(calls + ANSWERS))
    async with bench(
        calls,
        places.project,
        tools=[TaskTool(lambda: (("general", "Does anything."),)), Learn(places)],
        extension_files=files,
        policy=Policy(yolo=True),
        make_client=lambda name: child if name == "scripted/child" else main,
        subagents=SubagentOptions(model="scripted/child"),
        profiles=lambda: (AgentProfile("general", "Does anything.", "Do it."),),
    ) as made:
        await made.say("Look.")
        assert len(child.requests) == 1
        await made.say("And now?")
        notes = [text for text in asked_of(main) if "new here" in text]
        assert len(notes) == 1
        assert [body.title for body in made.bodies(ItemStarted) if body.kind == "note"] == ["new: skill own"]


def asked_of(model: ScriptedModel) -> list[str]:
    return [message.text for message in model.requests[-1].messages if message.role == "user"]
