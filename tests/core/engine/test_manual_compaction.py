"""With automatic compaction off, no model is asked on any path, and the user chooses what happens."""

import time
from pathlib import Path

import pytest

from swecli.core.context_management.budget import MANUAL_ADVICE, Limits
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.engine.compaction_triggers import FREE, LEAVE, SUMMARISE
from swecli.core.llm.types import ModelRequest
from swecli.core.protocol.commands import Answer, Compact, Submit
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    Notice,
    QuestionAsked,
    StepStarted,
    TurnEnded,
)
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.tools.session_tools import CompactContextTool
from tests.core.engine.support import Bench, bench, call, until

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(120))
OFF = CompactionOptions(auto=False)
SUMMARY = "## Goal\\nRead the files.\\n## Done\\nRead many.\\n## Next\\nRead the rest."


def reads(count: int) -> str:
    return "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(count))


def script(*steps: str, window: int = 24_000) -> str:
    return f"window = {window}\nmax_output = 2000\n" + "\n".join(steps)


def fill(b: Bench, files: int) -> None:
    for number in range(files):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"


def is_summary(request: ModelRequest) -> bool:
    return "Write the summary" in request.messages[-1].text


async def asked(b: Bench, choice: str) -> QuestionAsked:
    await until(lambda: bool(b.bodies(QuestionAsked)), "question")
    question = b.bodies(QuestionAsked)[0]
    b.send(Answer(question.request, ((choice,),)))
    return question


async def ended(b: Bench, number: int = 1) -> TurnEnded:
    await until(lambda: len(b.bodies(TurnEnded)) >= number and not b.session.view.busy, "end of turn")
    return b.bodies(TurnEnded)[-1]


async def test_a_full_context_is_the_users_choice_and_free_room_asks_no_model(tmp_path: Path) -> None:
    async with bench(script(reads(20), '[[step]]\ntext = "All read."'), tmp_path, compaction=OFF) as b:
        fill(b, 20)
        b.send(Submit("Read everything."))
        question = await asked(b, FREE)
        assert [option.label for option in question.questions[0].options] == [FREE, SUMMARISE, LEAVE]
        assert "Automatic compaction is off" in question.questions[0].text
        assert any("/compact frees space" in body.text for body in b.bodies(Notice))
        while not b.bodies(TurnEnded):
            seen = len(b.bodies(QuestionAsked))
            await until(lambda n=seen: bool(b.bodies(TurnEnded)) or len(b.bodies(QuestionAsked)) > n)
            for later in b.bodies(QuestionAsked)[seen:]:
                b.send(Answer(later.request, ((FREE,),)))
        assert (await ended(b)).outcome == "done"
        assert b.bodies(CompactionCompleted)
        assert not any(is_summary(request) for request in b.model.requests)
        assert all(body.trigger == "manual" for body in b.bodies(CompactionStarted))


@pytest.mark.parametrize("choice", [LEAVE, "something else"])
async def test_leaving_it_ends_the_turn_and_changes_nothing(tmp_path: Path, choice: str) -> None:
    async with bench(script(reads(20)), tmp_path, compaction=OFF) as b:
        fill(b, 20)
        b.send(Submit("Read everything."))
        await asked(b, choice)
        assert (await ended(b)).outcome == "blocked"
        assert not b.bodies(CompactionStarted)


async def test_a_provider_that_overflows_gets_no_summary_request(tmp_path: Path) -> None:
    overflow = '[[step]]\nfault = { kind = "overflow", tokens = 40000, window = 200000 }'
    steps = script(reads(8), overflow, '[[step]]\ntext = "Now it fits."', window=200_000)
    async with bench(steps, tmp_path, compaction=OFF) as b:
        fill(b, 8)
        b.send(Submit("Read the files."))
        question = await asked(b, FREE)
        assert "too long" in question.questions[0].text
        assert (await ended(b)).outcome == "done"
        assert not any(is_summary(request) for request in b.model.requests)


async def test_the_user_may_choose_the_summary(tmp_path: Path) -> None:
    overflow = '[[step]]\nfault = { kind = "overflow", tokens = 40000, window = 200000 }'
    steps = script(reads(8), overflow, f'[[step]]\ntext = "{SUMMARY}"', '[[step]]\ntext = "Good."', window=200_000)
    async with bench(steps, tmp_path, compaction=OFF) as b:
        fill(b, 8)
        b.send(Submit("Read the files."))
        await asked(b, SUMMARISE)
        assert (await ended(b)).outcome == "done"
        assert sum(is_summary(request) for request in b.model.requests) == 1


async def test_at_ninety_percent_a_message_is_still_accepted_and_nothing_is_touched(tmp_path: Path) -> None:
    context = ContextManager((), advice=MANUAL_ADVICE)
    steps = script('[[step]]\ntext = "Yes."', window=10_000)
    async with bench(steps, tmp_path, compaction=OFF, context=context) as b:
        words = "word " * 6_000
        for _ in range(400):  # as many words as make 90 %
            said = Message("user", (TextPart(words),), "said")
            budget = context.measure((*b.session.view.messages, said), b.model.info)
            if budget.upper <= 7_200:
                break
            words = words[: len(words) * 99 // 100]
        end = await b.say(words)
        assert end.outcome == "done"
        judged = b.bodies(StepStarted)[0].budget
        assert 0.88 <= judged.upper / judged.effective < 0.95
        assert not b.bodies(CompactionStarted)
        assert any("full" in body.text for body in b.bodies(Notice))


async def test_the_model_is_told_that_the_user_decides(tmp_path: Path) -> None:
    steps = script('[[step]]\ncall = [{ tool = "compact_context", arguments = {} }]', '[[step]]\ntext = "Well."')
    async with bench(steps, tmp_path, compaction=OFF, tools=(CompactContextTool(),)) as b:
        assert (await b.say("Make room.")).outcome == "done"
        assert "turned automatic compaction off" in "".join(b.tool_texts().values())
        assert not b.bodies(CompactionStarted)


async def test_compact_without_a_model_by_command(tmp_path: Path) -> None:
    async with bench(script(reads(12), '[[step]]\ntext = "Read."', window=200_000), tmp_path) as b:
        fill(b, 12)
        await b.say("Read the files, and never change config.py.")
        b.send(Compact(without_model=True))
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        done = b.bodies(CompactionCompleted)[0]
        assert done.tokens_after <= 0.7 * done.tokens_before
        assert len(b.model.requests) == 13
        assert "never change config.py" in "\n".join(message.text for message in b.session.view.messages)


async def test_a_budget_above_the_real_window_is_told_once_and_does_not_count(tmp_path: Path) -> None:
    context = ContextManager((), limits=Limits(context_budget=900_000))
    steps = script('[[step]]\ntext = "a"', '[[step]]\ntext = "b"')
    async with bench(steps, tmp_path, context=context) as b:
        await b.say("hi")
        await b.say("ho")
        told = [body.text for body in b.bodies(Notice) if "context_budget" in body.text]
        assert len(told) == 1
        assert "24,000 tokens" in told[0]
        assert b.session.view.budget is not None
        assert b.session.view.budget.window == 24_000


async def test_where_there_is_nothing_to_free_that_is_no_failure(tmp_path: Path) -> None:
    async with bench(script('[[step]]\ntext = "Hello."'), tmp_path) as b:
        await b.say("hi")
        b.send(Compact(without_model=True))
        await until(lambda: any("Nothing to free" in body.text for body in b.bodies(Notice)))
        assert not b.bodies(CompactionStarted)
        assert not b.bodies(CompactionFailed)
        assert len(b.model.requests) == 1


async def test_what_replaces_the_conversation_says_when(tmp_path: Path) -> None:
    async with bench(script(reads(12), f'[[step]]\ntext = "{SUMMARY}"'), tmp_path, clock=lambda: 1_790_000_000.0) as b:
        fill(b, 12)
        await b.say("Read the files.")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)))
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(1_790_000_000))
        assert f"at='{when}'>" in str(b.session.view.messages[0].text)
