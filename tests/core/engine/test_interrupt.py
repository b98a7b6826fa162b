"""Interrupting anywhere keeps what was written, leaves a valid history, and the session goes on."""

import asyncio
from pathlib import Path

import pytest

from swecli.core.context_management.ledger import MISSING_RESULT, Ledger
from swecli.core.context_management.projection import repair
from swecli.core.engine.snapshots import recover
from swecli.core.engine.state import SessionState
from swecli.core.permissions.types import Policy
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.commands import CancelItem, Interrupt, ReplyPermission, Submit
from swecli.core.protocol.events import (
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    TurnEnded,
    is_fact,
)
from swecli.core.protocol.messages import ToolResultPart
from swecli.core.tools.registry import builtin_tools
from tests.core.context_management.test_projection import check_valid
from tests.core.engine.support import Bench, bench, call, until
from tests.support.waiting import PATIENCE

SCRIPT = f"""
[[step]]
reasoning = "First I look at both files, then I decide."
text = "Looking at two files."
call = [{call("read_file", "a.txt")}, {call("read_file", "b.txt")}]
[[step]]
text = "Now the change."
call = [{call("write_file", "c.txt")}, {call("run_command", "make test")}]
[[step]]
text = "All done, the tests pass."
"""


async def count_events(cwd: Path) -> int:
    async with bench(SCRIPT, cwd, policy=Policy(yolo=True)) as b:
        await b.say("go")
        return len(b.events)


def open_items(events: list[Event]) -> set[str]:
    started = {e.body.item for e in events if isinstance(e.body, ItemStarted)}
    return started - {e.body.item for e in events if isinstance(e.body, ItemCompleted)}


def check_ended(b: Bench) -> None:
    """Every item, request and turn has its end; the next request is valid."""
    assert open_items(b.events) == set()
    asked = {body.request for body in b.bodies(PermissionRequested)}
    assert asked == {body.request for body in b.bodies(PermissionResolved)}
    check_valid(tuple(b.session.view.messages))
    for item in b.bodies(ItemCompleted):
        assert item.status in ("ok", "error", "rejected", "interrupted")


async def test_interrupted_after_each_event_the_history_is_valid_and_the_session_goes_on(tmp_path: Path) -> None:
    total = await count_events(tmp_path)
    assert total >= 30
    for stop_after in range(3, total):
        await interrupted_after(stop_after, tmp_path, yolo=True)


@pytest.mark.parametrize("stop_after", [12, 16, 20, 24, 28])
async def test_interrupted_while_asking(tmp_path: Path, stop_after: int) -> None:
    await interrupted_after(stop_after, tmp_path, yolo=False)


async def interrupted_after(stop_after: int, cwd: Path, *, yolo: bool) -> None:
    async with bench(SCRIPT + '[[step]]\ntext = "going on"\n' * 3, cwd, policy=Policy(yolo=yolo)) as b:
        b.send(Submit("go"))

        # a watcher of its own, so that the interrupt comes as soon as the event is seen
        async def watch() -> None:
            seen = 0
            async for event in b.session.subscribe(replay=True):
                seen += 1
                if isinstance(event.body, PermissionRequested) and seen < stop_after:
                    b.send(ReplyPermission(event.body.request, "once"))
                if seen >= stop_after or isinstance(event.body, TurnEnded):
                    b.send(Interrupt())
                    return

        await asyncio.wait_for(watch(), PATIENCE)
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy, f"end after event {stop_after}")
        check_ended(b)
        b.allow_all = True
        text_before = "".join(m.text for m in b.session.view.messages if m.role == "assistant")
        said = await b.say("continue")
        assert said.outcome in ("done", "interrupted")
        check_ended(b)
        assert text_before in "".join(m.text for m in b.session.view.messages if m.role == "assistant")
        facts = [event for event in b.events if is_fact(event.body)]
    # a new session from the stored facts alone has the same messages
    async with bench('[[step]]\ntext = "resumed"', cwd, history=facts) as resumed:
        assert list(resumed.session.view.messages) == list(repair(b.session.view.messages))
        assert (await resumed.say("and now?")).outcome == "done"
        check_valid(tuple(resumed.session.view.messages))


async def test_killed_after_each_fact_the_session_can_be_continued(tmp_path: Path) -> None:
    async with bench(SCRIPT, tmp_path, policy=Policy(yolo=True)) as b:
        await b.say("go")
        facts = list(b.facts)
    for length in range(1, len(facts) + 1):
        history = facts[:length]
        async with bench('[[step]]\ntext = "resumed"', tmp_path, history=history) as resumed:
            said = [e.body for e in history if isinstance(e.body, ItemCompleted)]
            texts = "".join(m.text for m in resumed.session.view.messages)
            for body in said:
                for part in body.parts:
                    if part.type == "text":
                        assert part.text in texts
            assert (await resumed.say("continue")).outcome == "done"
            check_ended_from(resumed, history)


def check_ended_from(b: Bench, history: list[Event]) -> None:
    assert open_items([*history, *b.events]) == set()
    check_valid(tuple(b.session.view.messages))


async def test_a_call_that_ran_at_the_kill_is_of_unknown_effect(tmp_path: Path) -> None:
    script = f"[[step]]\ncall = [{call('run_command', 'deploy')}, {call('run_command', 'second')}]"
    async with bench(script, tmp_path, policy=Policy(yolo=True)) as b:
        b.gates.held.add("deploy")
        b.send(Submit("go"))
        await until(lambda: b.gates.started == ["deploy"])
        facts = list(b.facts)
    async with bench('[[step]]\ntext = "ok"', tmp_path, history=facts) as resumed:
        texts = resumed.tool_texts()
        assert "effect is unknown" in texts["call_1"]
        assert "not executed" in texts["call_2"]
        assert (await resumed.say("go on")).outcome == "done"


async def test_interrupting_a_question_settles_it(tmp_path: Path) -> None:
    script = f"[[step]]\ncall = [{call('write_file', 'a')}]"
    async with bench(script, tmp_path) as b:
        b.send(Submit("go"))
        await b.asked()
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(PermissionResolved)[0].choice == "cancelled"
        assert b.session.view.permission is None
        assert b.gates.started == []


@pytest.mark.parametrize(("command", "begin"), [("echo one; echo two", "one\n"), ("seq 10000; echo two", "… (only")])
async def test_what_an_interrupted_command_wrote_is_kept(tmp_path: Path, command: str, begin: str) -> None:
    run = f'{{ tool = "run_command", arguments = {{ command = "{command}; sleep 60" }} }}'
    script = f'[[step]]\ncall = [{run}]\n[[step]]\ntext = "going on"'
    async with bench(script, tmp_path, tools=builtin_tools(), policy=Policy(yolo=True)) as b:
        b.send(Submit("go"))
        await until(lambda: any(body.text.endswith("two\n") for body in b.bodies(ItemDelta)), "output")
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy, "end")
        ended = next(body for body in b.bodies(ItemCompleted) if body.status == "interrupted")
        (result,), (block,) = ended.parts, ended.blocks
        assert isinstance(result, ToolResultPart)
        assert isinstance(block, TerminalBlock)
        told, _, written = result.text.partition(" Its output until then:\n")
        assert told.startswith("Interrupted by the user while this ran")
        assert written.startswith(begin)
        assert written.endswith("two\n")
        assert written.endswith(block.output)
        assert block.exit_status is None
        assert block.truncated == begin.startswith("…")
        assert len(written) < 4_100
        check_ended(b)
        await b.say("and now?")


async def test_interrupting_a_retry_wait_ends_at_once_and_says_what_failed(tmp_path: Path) -> None:
    never = asyncio.Event()
    script = '[[step]]\nfault = { kind = "rate_limit", retry_after = 30.0, message = "Slow down." }'
    async with bench(script, tmp_path, sleep=lambda _s: never.wait()) as b:
        b.send(Submit("go"))
        await until(lambda: any(type(e.body).__name__ == "RetryScheduled" for e in b.events))
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)))
        ended = b.bodies(TurnEnded)[0]
        assert (ended.outcome, ended.reason) == ("interrupted", "the last attempt failed: Slow down.")


async def test_a_later_turn_that_asks_nothing_names_no_failed_attempt(tmp_path: Path) -> None:
    never = asyncio.Event()
    script = '[[step]]\nfault = { kind = "rate_limit", retry_after = 30.0, message = "Slow down." }'
    async with bench(script, tmp_path, sleep=lambda _s: never.wait()) as b:
        b.send(Submit("go"))
        await until(lambda: any(type(e.body).__name__ == "RetryScheduled" for e in b.events))
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy)
        b.send(Submit("again"))
        b.send(Interrupt())
        await until(lambda: len(b.bodies(TurnEnded)) == 2)
        assert len(b.model.requests) == 1
        assert b.bodies(TurnEnded)[1].reason == ""


async def test_an_attempt_that_failed_is_not_named_once_another_one_answers(tmp_path: Path) -> None:
    script = """
        [[step]]
        fault = { kind = "server", message = "Broken." }
        [[step]]
        text = "A long answer that stops here"
        fault = { kind = "stall", after = 10 }
    """
    async with bench(script, tmp_path) as b:
        b.send(Submit("go"))
        await until(lambda: any(type(e.body).__name__ == "ItemDelta" for e in b.events))
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(TurnEnded)[0].reason == ""


def test_a_session_that_ended_well_needs_no_recovery() -> None:
    assert recover(Ledger(), SessionState()) == []


def test_a_call_without_result_is_named_as_not_executed() -> None:
    assert "not executed" in MISSING_RESULT


async def test_a_call_that_is_cancelled_before_its_first_step_holds_up_no_question(tmp_path: Path) -> None:
    script = f'[[step]]\ncall = [{call("write_file", "a")}, {call("write_file", "b")}]\n[[step]]\ntext = "ok"\n'
    async with bench(script, tmp_path) as b:
        loop = asyncio.get_running_loop()

        def cancel_first(event: Event) -> None:
            assert isinstance(event.body, ItemCheckpointed)
            if event.body.title == "a" and not event.body.running:
                loop.call_soon(b.send, CancelItem(event.body.item))  # before the calls' tasks begin

        b.session._recorder.watch((ItemCheckpointed,), cancel_first)
        b.send(Submit("go"))
        await until(lambda: any(request.title == "b" for request in b.bodies(PermissionRequested)), "the question")
        b.allow(next(request for request in b.bodies(PermissionRequested) if request.title == "b"))
        await until(lambda: bool(b.bodies(TurnEnded)), "end")
        assert b.gates.ended == ["b"]
        check_ended(b)
