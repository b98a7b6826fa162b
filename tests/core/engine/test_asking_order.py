"""Calls of one answer ask the user in their order."""

import asyncio
from pathlib import Path

from swecli.core.permissions.types import Effects
from swecli.core.protocol.commands import Answer, CancelItem, Submit
from swecli.core.protocol.events import ItemStarted, PermissionRequested, QuestionAsked, TurnEnded
from swecli.core.protocol.request_events import Option, Question
from swecli.core.tools.base import Preview, ToolContext, ToolOutcome
from tests.core.engine.support import Gates, Peek, Poke, Target, bench, call, until


class SlowPoke(Poke):
    """Its preview takes a while."""

    name = "edit_file"

    async def preview(self, params: Target, ctx: ToolContext) -> Preview:
        await self.gates.through(f"preview {params.target}")
        return await super().preview(params, ctx)


class Chat(Peek):
    """Asks the user."""

    name = "ask_user"

    def effects(self, params: Target, ctx: ToolContext) -> Effects:
        return Effects(interactive=True)

    async def run(self, params: Target, ctx: ToolContext) -> ToolOutcome:
        assert ctx.asker is not None
        await ctx.asker.ask(ctx.item, (Question(params.target, (Option("yes"), Option("no"))),))
        return ToolOutcome("asked")


async def test_questions_are_put_in_the_order_of_the_calls(tmp_path: Path) -> None:
    gates = Gates(held={"preview slow"})

    calls = (call("edit_file", "slow"), call("run_command", "cmd"), call("ask_user", "which?"), call("write_file", "b"))
    step = f"[[step]]\ncall = [{', '.join(calls)}]\n[[step]]\ntext = 'ok'"
    async with bench(step, tmp_path, tools=[SlowPoke(gates), Chat(gates)]) as b:
        b.send(Submit("go"))
        await until(lambda: ("start", "preview slow") in gates.log)
        await asyncio.sleep(0)
        assert not b.bodies(PermissionRequested)
        assert not b.bodies(QuestionAsked)
        gates.release("preview slow")
        await until(lambda: len(b.bodies(PermissionRequested)) == 3)
        order = [
            body.title if isinstance(body, PermissionRequested) else body.questions[0].text
            for event in b.events
            if isinstance(body := event.body, PermissionRequested | QuestionAsked)
        ]
        assert order == ["slow", "cmd", "which?", "b"]
        for request in b.bodies(PermissionRequested):
            b.allow(request)
        b.send(Answer(b.bodies(QuestionAsked)[0].request, (("yes",),)))
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(TurnEnded)[-1].outcome == "done"


async def test_a_call_that_ends_before_its_question_holds_up_no_other(tmp_path: Path) -> None:
    gates = Gates(held={"preview slow"})

    step = f"[[step]]\ncall = [{call('edit_file', 'slow')}, {call('write_file', 'b')}]\n[[step]]\ntext = 'ok'"
    async with bench(step, tmp_path, tools=[SlowPoke(gates)]) as b:
        b.send(Submit("go"))
        await until(lambda: ("start", "preview slow") in gates.log)
        item = next(body.item for body in b.bodies(ItemStarted) if body.kind == "tool")
        b.send(CancelItem(item))
        b.allow(await b.asked())
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.gates.ended == ["b"]
