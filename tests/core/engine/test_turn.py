"""The turn loop: streaming, tools, consent, retries, caps."""

import asyncio
import os
from pathlib import Path

import pytest

from swecli import own_files
from swecli.core.engine.settings import TurnLimits
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.commands import Answer, CancelItem, EditQueue, Interrupt, RunShell, SetMode, Steer, Submit
from swecli.core.protocol.events import (
    ANSWER_CUT,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ModelResponded,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QueueChanged,
    RetryScheduled,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import TextPart, ToolResultPart
from tests.core.engine.support import bench, call, kinds, new_notes, until

TWO_STEPS = f"""
[[step]]
reasoning = "I should look."
text = "Looking."
call = [{call("read_file", "a.txt")}]
[[step]]
text = "All is well."
"""


async def test_a_turn_streams_runs_tools_and_ends(tmp_path: Path) -> None:
    async with bench(TWO_STEPS, tmp_path) as b:
        end = await b.say("check a.txt")
        assert (end.outcome, end.reason) == ("done", "")
        shown = [(body.kind, body.name) for body in b.bodies(ItemStarted)]
        assert shown == [("user", ""), ("reasoning", ""), ("text", ""), ("tool", "read_file"), ("text", "")]
        assert b.tool_texts() == {"call_1": "read_file a.txt done"}
        assert [message.role for message in b.session.view.messages] == ["user", "assistant", "tool", "assistant"]
        assert "".join(d.text for d in b.bodies(ItemDelta) if d.channel == "text").endswith("All is well.")
        assert b.session.view.budget is not None
        assert b.session.view.totals.steps == 2
        names = kinds(b.events)
        assert names.index("TurnStarted") < names.index("StepStarted") < names.index("ModelResponded")
        assert [e.seq for e in b.events] == sorted(e.seq for e in b.events)


async def test_the_second_request_continues_the_first_byte_for_byte(tmp_path: Path) -> None:
    async with bench(TWO_STEPS, tmp_path) as b:
        await b.say("check a.txt")
        first, second = b.model.requests
        assert second.messages[: len(first.messages)] == first.messages
        assert (second.system, second.tools) == (first.system, first.tools)


async def test_a_write_asks_and_runs_once_approved(tmp_path: Path) -> None:
    script = f'[[step]]\ncall = [{call("write_file", "a.txt")}]\n[[step]]\ntext = "done"'
    async with bench(script, tmp_path) as b:
        b.send(Submit("write"))
        request = await b.asked()
        assert request.tool == "write_file"
        assert request.title == "a.txt"
        assert b.gates.started == []
        b.allow(request)
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["a.txt"]
        assert b.bodies(PermissionResolved)[0].choice == "once"


async def test_a_rejection_with_a_word_reaches_the_model(tmp_path: Path) -> None:
    script = f'[[step]]\ncall = [{call("write_file", "a.txt")}]\n[[step]]\ntext = "ok"'
    async with bench(script, tmp_path) as b:
        b.send(Submit("write"))
        b.allow(await b.asked(), "reject", "use b.txt")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.started == []
        assert "use b.txt" in b.tool_texts()["call_1"]
        tool = next(
            body for body in b.bodies(ItemCompleted) if isinstance(body.parts[:1] and body.parts[0], ToolResultPart)
        )
        assert tool.status == "rejected"


async def test_always_holds_for_the_session(tmp_path: Path) -> None:
    steps = "\n".join(f"[[step]]\ncall = [{call('write_file', 'a.txt')}]" for _ in range(2))
    async with bench(steps + '\n[[step]]\ntext = "ok"', tmp_path) as b:
        b.send(Submit("write twice"))
        request = await b.asked()
        assert request.rule
        b.allow(request, "always")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["a.txt", "a.txt"]
        assert len(b.bodies(PermissionRequested)) == 1


async def test_what_changed_after_it_was_shown_is_asked_again(tmp_path: Path) -> None:
    script = f'[[step]]\ncall = [{call("write_file", "a.txt")}]\n[[step]]\ntext = "ok"'
    async with bench(script, tmp_path) as b:
        b.send(Submit("write"))
        request = await b.asked()
        b.gates.files["a.txt"] = "changed by somebody"
        b.allow(request)
        again = await b.asked(2)
        assert b.gates.started == []
        assert again.binding != request.binding
        assert "changed by somebody" in str(again.blocks)
        b.allow(again)
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["a.txt"]


async def test_a_question_holds_up_nothing_that_is_allowed(tmp_path: Path) -> None:
    calls = f"{call('run_command', 'make')}, {call('read_file', 'b.txt')}, {call('write_file', 'c.txt')}"
    async with bench(f'[[step]]\ncall = [{calls}]\n[[step]]\ntext = "ok"', tmp_path) as b:
        b.send(Submit("go"))
        first, second = await b.asked(1), await b.asked(2)
        await until(lambda: b.gates.ended == ["b.txt"])
        b.allow(second)
        await until(lambda: "c.txt" in b.gates.ended)
        b.allow(first)
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["b.txt", "c.txt", "make"]


async def test_a_command_runs_after_the_writes_and_commands_before_it_whatever_is_answered_first(
    tmp_path: Path,
) -> None:
    calls = f"{call('write_file', 'a.txt')}, {call('run_command', 'make')}, {call('run_command', 'make test')}"
    async with bench(f'[[step]]\ncall = [{calls}]\n[[step]]\ntext = "ok"', tmp_path) as b:
        b.send(Submit("go"))
        asked = {request.title: request for request in [await b.asked(number) for number in (1, 2, 3)]}
        b.allow(asked["make test"])
        b.allow(asked["make"])
        await until(lambda: len(b.bodies(PermissionResolved)) == 2)
        assert b.gates.started == []
        b.allow(asked["a.txt"])
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["a.txt", "make", "make test"]


async def test_a_command_that_needs_no_question_waits_for_an_earlier_write(tmp_path: Path) -> None:
    calls = f"{call('write_file', 'a.txt')}, {call('run_command', 'ls')}"
    policy = Policy(rules=(Rule("allow", "Bash(ls)", "user"),))
    async with bench(f'[[step]]\ncall = [{calls}]\n[[step]]\ntext = "ok"', tmp_path, policy=policy) as b:
        b.send(Submit("go"))
        b.allow(await b.asked(), "reject")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["ls"]
        assert len(b.bodies(PermissionRequested)) == 1
        answered = next(n for n, event in enumerate(b.events) if isinstance(event.body, PermissionResolved))
        ran = next(n for n, event in enumerate(b.events) if getattr(event.body, "running", False))
        assert answered < ran


async def test_reads_run_together_and_writes_of_one_file_one_by_one(tmp_path: Path) -> None:
    calls = ", ".join(
        [call("read_file", "x"), call("read_file", "y"), call("write_file", "a"), call("write_file", "a")]
    )
    async with bench(
        f'[[step]]\ncall = [{calls}]\n[[step]]\ntext = "ok"', tmp_path, policy=Policy(mode="accept-edits")
    ) as b:
        b.gates.held |= {"x", "y", "a"}
        b.send(Submit("go"))
        await until(lambda: sorted(b.gates.started) == ["a", "x", "y"])
        b.gates.release("a")
        await until(lambda: b.gates.ended == ["a", "a"])
        b.gates.release("x")
        b.gates.release("y")
        await until(lambda: bool(b.bodies(TurnEnded)))


async def test_a_shell_command_is_a_barrier(tmp_path: Path) -> None:
    calls = ", ".join([call("read_file", "x"), call("run_command", "make"), call("read_file", "y")])
    async with bench(f'[[step]]\ncall = [{calls}]\n[[step]]\ntext = "ok"', tmp_path, policy=Policy(yolo=True)) as b:
        b.gates.held |= {"x", "make"}
        b.send(Submit("go"))
        await until(lambda: b.gates.started == ["x"])
        b.gates.release("x")
        await until(lambda: b.gates.started == ["x", "make"])
        b.gates.release("make")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.started == ["x", "make", "y"]


async def test_plan_mode_refuses_at_execution(tmp_path: Path) -> None:
    script = f'[[step]]\ncall = [{call("write_file", "a.txt")}]\n[[step]]\ntext = "ok"'
    async with bench(script, tmp_path, policy=Policy(mode="plan")) as b:
        await b.say("write")
        assert b.gates.started == []
        assert b.bodies(PermissionRequested) == []
        assert "Not allowed" in b.tool_texts()["call_1"]


async def test_a_mode_chosen_in_the_middle_counts_for_the_next_call(tmp_path: Path) -> None:
    read, write = (f"[[step]]\ncall = [{call(tool, tool[0])}]\n" for tool in ("read_file", "write_file"))
    steps = f'{read}{write}[[step]]\ntext = "ok"'
    async with bench(steps, tmp_path) as b:
        b.gates.held.add("r")
        b.send(Submit("go"))
        await until(lambda: b.gates.started == ["r"])
        b.send(SetMode("accept-edits"))
        b.gates.release("r")
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["r", "w"]
        assert b.bodies(PermissionRequested) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('arguments = "{bad"', "column"),
        ("arguments = { wrong = 1 }", "target"),
    ],
)
async def test_bad_arguments_are_an_error_result_never_empty_arguments(
    tmp_path: Path, arguments: str, said: str
) -> None:
    script = f'[[step]]\n[[step.call]]\ntool = "read_file"\n{arguments}\n[[step]]\ntext = "ok"'
    async with bench(script, tmp_path) as b:
        end = await b.say("go")
        assert end.outcome == "done"
        assert said in b.tool_texts()["call_1"]
        assert b.gates.started == []


async def test_an_unknown_tool_is_named_with_the_nearest(tmp_path: Path) -> None:
    async with bench(f'[[step]]\ncall = [{call("read_fiel", "a")}]\n[[step]]\ntext = "ok"', tmp_path) as b:
        await b.say("go")
        assert "read_file" in b.tool_texts()["call_1"]


async def test_a_tool_that_fails_is_an_error_result_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with bench(f'[[step]]\ncall = [{call("read_file", "broken")}]\n[[step]]\ntext = "ok"', tmp_path) as b:
        assert (await b.say("go")).outcome == "done"
        assert b.tool_texts()["call_1"] == "it is broken"


async def test_a_defect_of_swecli_ends_the_turn_visibly_and_the_session_goes_on(tmp_path: Path) -> None:
    reported: list[BaseException] = []
    script = f'[[step]]\ncall = [{call("read_file", "defect")}]\n[[step]]\ntext = "better"'
    async with bench(script, tmp_path, report_defect=reported.append) as b:
        assert (await b.say("go")).outcome == "error"
        await until(lambda: bool(reported))
        assert isinstance(reported[0], KeyError)
        await until(lambda: any("failed internally" in body.text for body in b.bodies(Notice)))
        assert (await b.say("again")).outcome == "done"


async def test_a_turn_whose_files_are_gone_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "_BEGAN", (1, 1, 1))
    async with bench(f"[[step]]\ncall = [{call('read_file', 'defect')}]", tmp_path) as b:
        assert (await b.say("go")).outcome == "error"
        await until(lambda: any(own_files.REPLACED in body.text for body in b.bodies(Notice)))


async def test_a_refused_request_is_tried_again_visibly(tmp_path: Path) -> None:
    script = '[[step]]\nfault = { kind = "overloaded" }\n[[step]]\ntext = "hello"'
    async with bench(script, tmp_path) as b:
        assert (await b.say("hi")).outcome == "done"
        retry = b.bodies(RetryScheduled)[0]
        assert (retry.attempt, retry.kind) == (1, "overloaded")


async def test_a_wrong_key_is_not_tried_again(tmp_path: Path) -> None:
    async with bench('[[step]]\nfault = { kind = "auth" }', tmp_path) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("error", "auth")
        assert b.bodies(RetryScheduled) == []
        assert b.session.view.messages[0].text.endswith("hi")


async def test_a_stream_that_keeps_being_cut_keeps_its_text_and_runs_nothing(tmp_path: Path) -> None:
    cut = f"""
[[step]]
text = "I will write now."
call = [{call("write_file", "a.txt")}]
fault = {{ kind = "cut", after = 25 }}
"""
    async with bench(cut * 4 + '[[step]]\ntext = "ok"', tmp_path, policy=Policy(yolo=True)) as b:
        end = await b.say("go")
        assert (end.outcome, end.error_kind) == ("error", "truncated")
        assert [(retry.attempt, retry.limit) for retry in b.bodies(RetryScheduled)] == [(1, 3), (2, 3), (3, 3)]
        assert b.gates.started == []
        responded = b.bodies(ModelResponded)[-1]
        assert not responded.complete
        assert "I will write now." in b.session.view.messages[1].text
        assert (await b.say("continue")).outcome == "done"
        assert b.session.view.messages[-2].parts[0] != TextPart("continue")
        assert b.session.view.messages[-2].text.endswith("continue")


@pytest.mark.parametrize("stop", ["refusal", "content_filter"])
async def test_a_model_that_says_why_it_says_nothing_is_not_asked_again(tmp_path: Path, stop: str) -> None:
    async with bench(f'[[step]]\ntext = ""\nstop = "{stop}"\n', tmp_path) as b:
        end = await b.say("hi")
        assert end.outcome == "done"
        assert end.reason
        assert len(b.bodies(StepStarted)) == 1


async def test_an_empty_answer_is_asked_for_once_more(tmp_path: Path) -> None:
    empty = '[[step]]\nfault = { kind = "empty" }\n'
    async with bench(empty + '[[step]]\ntext = "here"', tmp_path) as b:
        assert (await b.say("hi")).outcome == "done"
        assert len(b.bodies(StepStarted)) == 2
    async with bench(empty * 3, tmp_path) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("error", "empty")


async def test_an_empty_answer_is_named_to_the_model_and_counts_only_in_a_row(tmp_path: Path) -> None:
    empty = '[[step]]\nfault = { kind = "empty" }\n'
    look = f"[[step]]\ncall = [{call('read_file', 'a')}]\n"
    async with bench(f'{empty}{look}{empty}[[step]]\ntext = "here"', tmp_path) as b:
        assert (await b.say("hi")).outcome == "done"
        told = ["Your last answer had neither" in new_notes(request) for request in b.model.requests]
        assert told == [False, True, False, True]


@pytest.mark.parametrize("stop", ["length", "context_full"])
async def test_an_answer_that_was_cut_is_no_result(tmp_path: Path, stop: str) -> None:
    async with bench(f'[[step]]\ntext = "Half of"\nstop = "{stop}"\n', tmp_path) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("limit", ANSWER_CUT)
        assert end.reason


async def test_calls_cut_at_the_output_limit_are_not_run(tmp_path: Path) -> None:
    script = f'[[step]]\nstop = "length"\ncall = [{call("write_file", "a")}]\n[[step]]\ntext = "ok"'
    async with bench(script, tmp_path, policy=Policy(yolo=True)) as b:
        assert (await b.say("go")).outcome == "done"
        assert b.gates.started == []
        assert "output limit" in b.tool_texts()["call_1"]


async def test_the_step_cap_ends_the_turn(tmp_path: Path) -> None:
    steps = "\n".join(f"[[step]]\ncall = [{call('read_file', str(n))}]" for n in range(5))
    async with bench(steps, tmp_path, limits=TurnLimits(max_steps=2)) as b:
        end = await b.say("go")
        assert (end.outcome, end.error_kind) == ("limit", "max_turns")
        assert b.gates.ended == ["0", "1"]


async def test_steering_goes_in_at_the_next_tool_boundary(tmp_path: Path) -> None:
    async with bench(TWO_STEPS, tmp_path) as b:
        b.gates.held.add("a.txt")
        b.send(Submit("go"))
        await until(lambda: b.gates.started == ["a.txt"])
        b.send(Steer("rather look at b.txt"))
        b.gates.release("a.txt")
        await until(lambda: bool(b.bodies(TurnEnded)))
        roles = [(m.role, m.text) for m in b.model.requests[1].messages]
        assert roles[-1] == ("user", "rather look at b.txt")
        assert roles[-2][0] == "tool"
        assert b.session.view.queue == ()


async def test_a_queued_message_opens_the_next_turn_and_can_be_edited(tmp_path: Path) -> None:
    async with bench(TWO_STEPS + '[[step]]\ntext = "second"', tmp_path) as b:
        b.gates.held.add("a.txt")
        b.send(Submit("first"))
        await until(lambda: b.gates.started == ["a.txt"])
        b.send(Submit("second message"))
        b.send(Submit("third message"))
        await until(lambda: len(b.bodies(QueueChanged)) == 2)
        waiting = b.session.view.queue
        b.send(EditQueue(waiting[0].id, "second, edited"))
        b.send(EditQueue(waiting[1].id, None))
        b.gates.release("a.txt")
        await until(lambda: len(b.bodies(TurnEnded)) == 2)
        assert [m.text for m in b.session.view.messages if m.role == "user"][-1] == "second, edited"
        assert len(b.bodies(TurnStarted)) == 2


async def test_one_call_can_be_stopped_while_the_turn_goes_on(tmp_path: Path) -> None:
    async with bench(TWO_STEPS, tmp_path) as b:
        b.gates.held.add("a.txt")
        b.send(Submit("go"))
        await until(lambda: b.gates.started == ["a.txt"])
        item = next(body.item for body in b.bodies(ItemStarted) if body.kind == "tool")
        b.send(CancelItem(item))
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(TurnEnded)[0].outcome == "done"
        assert "Interrupted" in b.tool_texts()["call_1"]


async def test_an_interrupt_holds_the_queue(tmp_path: Path) -> None:
    async with bench(TWO_STEPS, tmp_path) as b:
        b.gates.held.add("a.txt")
        b.send(Submit("first"))
        await until(lambda: b.gates.started == ["a.txt"])
        b.send(Submit("later"))
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy)
        await asyncio.sleep(0)
        assert b.bodies(TurnEnded)[0].outcome == "interrupted"
        assert [q.text for q in b.session.view.queue] == ["later"]
        assert len(b.bodies(TurnStarted)) == 1


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
async def test_a_message_sent_during_the_users_own_command_follows_it_whatever_the_last_turn_was(
    tmp_path: Path,
) -> None:
    steps = '[[step]]\nfault = { kind = "auth" }\n[[step]]\ntext = "two"\n[[step]]\ntext = "three"'
    async with bench(steps, tmp_path) as b:
        for turns in (0, 1, 2):  # before any turn, after one that failed, after one that was done
            go = tmp_path / f"go{turns}"
            b.send(RunShell(f"until [ -e {go} ]; do sleep 0.01; done"))
            await until(lambda: b.session.view.busy)
            b.send(Submit(f"message {turns}"))
            assert len(b.bodies(TurnStarted)) == turns
            go.touch()
            await until(lambda turns=turns: len(b.bodies(TurnEnded)) == turns + 1 and not b.session.view.busy)
        assert [body.outcome for body in b.bodies(TurnEnded)] == ["error", "done", "done"]


async def test_a_message_that_a_failed_turn_left_waiting_does_not_follow_other_work(tmp_path: Path) -> None:
    async with bench(TWO_STEPS, tmp_path) as b:
        b.gates.held.add("a.txt")
        b.send(Submit("first"))
        await until(lambda: b.gates.started == ["a.txt"])
        b.send(Submit("later"))
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy)
        b.send(RunShell("true"))
        await b.idle()
        await asyncio.sleep(0)
        assert [q.text for q in b.session.view.queue] == ["later"]
        assert len(b.bodies(TurnStarted)) == 1
        go = tmp_path / "go"
        b.send(RunShell(f"until [ -e {go} ]; do sleep 0.01; done"))
        await until(lambda: b.session.view.busy)
        b.send(Submit("new"))
        go.touch()
        await until(lambda: len(b.bodies(TurnEnded)) == 3 and not b.session.view.busy)
        said = [message.text.splitlines()[0] for message in b.session.view.messages if message.role == "user"]
        assert said[-2:] == ["new", "later"]


async def test_an_answer_to_a_request_that_is_over_changes_nothing(tmp_path: Path) -> None:
    async with bench('[[step]]\ntext = "ok"', tmp_path) as b:
        b.send(Answer("q99", (("x",),)))
        b.allow(PermissionRequested("p99", "t", "x", "x", (), "", ""))
        assert (await b.say("hi")).outcome == "done"
