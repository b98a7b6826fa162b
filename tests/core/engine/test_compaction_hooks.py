"""What a program has to say before a compaction and after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from swecli.core.context_management.compaction.options import (
    CompactContext,
    CompactDecision,
    CompactionOptions,
    CompactResult,
    StrategyName,
)
from swecli.core.protocol.commands import Compact
from swecli.core.protocol.events import (
    CompactionCompleted,
    CompactionFailed,
    ItemCompleted,
    Notice,
    StepStarted,
)
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_compaction import BIG, fill_and_compact, script

WORDS = "The hook's own words about everything that was read."
TALK = "window = 24000\nmax_output = 2000\n" + '[[step]]\ntext = "Yes."\n' * 200
Hook = Callable[[CompactContext], Awaitable[CompactDecision]]


def deciding(*decisions: CompactDecision, seen: list[CompactContext] | None = None) -> Hook:
    """A hook that answers in this order, the last one for good."""
    left = list(decisions)

    async def hook(context: CompactContext) -> CompactDecision:
        if seen is not None:
            seen.append(context)
        return left.pop(0) if len(left) > 1 else left[0]

    return hook


def notices(b: Bench) -> str:
    return "\n".join(body.text for body in b.bodies(Notice))


def conversation(b: Bench) -> str:
    return "\n".join(message.text for message in b.session.view.messages)


def reads(count: int) -> str:
    return "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(count))


async def test_a_cancel_holds_until_nothing_fits_and_is_then_refused_with_the_reason(tmp_path: Path) -> None:
    seen: list[CompactContext] = []
    hook = deciding(CompactDecision(cancel=True, reason="not while I measure"), seen=seen)
    options = CompactionOptions(on_pre_compact=hook, strategy="truncation")
    async with bench(TALK, tmp_path, compaction=options) as b:
        for number in range(80):
            assert (await b.say(f"{number}: {'word ' * 300}")).outcome == "done"
        assert all(body.budget.level != "block" for body in b.bodies(StepStarted))
        assert b.bodies(CompactionCompleted)
        assert "a hook tried to cancel it: not while I measure, but no request fits without it" in notices(b)
        declined = [body.reason for body in b.bodies(CompactionFailed)]
        assert set(declined) == {"cancelled by a hook: not while I measure"}
        kept = [body for body in b.bodies(StepStarted) if body.budget.level == "compact"]
        assert len(kept) == len(declined)
        assert {context.trigger for context in seen} == {"auto"}
        assert all(context.current_tokens > context.target_tokens > 0 for context in seen)


async def test_within_a_turn_it_is_asked_once_as_long_as_requests_fit(tmp_path: Path) -> None:
    seen: list[CompactContext] = []
    options = CompactionOptions(on_pre_compact=deciding(CompactDecision(cancel=True), seen=seen))
    async with bench(script(reads(70), '[[step]]\ntext = "All read."'), tmp_path, compaction=options) as b:
        for number in range(70):
            b.gates.outputs[f"f{number}"] = "some words " * 20
        await b.say("Read. " + "word " * 13_000)
        levels = [body.budget.level for body in b.bodies(StepStarted)]
        assert levels.count("compact") >= 2, levels
        assert [body.reason for body in b.bodies(CompactionFailed)].count("cancelled by a hook") == 1
        assert seen


async def test_cancelled_ones_do_not_stop_later_ones(tmp_path: Path) -> None:
    """Saying no is not the same as finding nothing to gain."""
    hook = deciding(*[CompactDecision(cancel=True)] * 3, CompactDecision())
    async with bench(BIG, tmp_path, compaction=CompactionOptions(on_pre_compact=hook)) as b:
        await fill_and_compact(b)
        for number in (2, 3):
            b.send(Compact())
            await until(lambda n=number: len(b.bodies(CompactionFailed)) >= n and not b.session.view.busy)
        assert [body.status for body in b.bodies(ItemCompleted) if body.item.startswith("k")] == ["rejected"] * 3
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)


async def test_instructions_and_focus_reach_the_summariser(tmp_path: Path) -> None:
    hook = deciding(CompactDecision(custom_instructions="Name every port."))
    async with bench(BIG, tmp_path, compaction=CompactionOptions(on_pre_compact=hook)) as b:
        await fill_and_compact(b, "the bug")
        asked = b.model.requests[-1].messages[-1].text
        assert "the bug" in asked
        assert "Name every port." in asked
        assert b.bodies(CompactionCompleted)[0].strategies == ("summary",)


@pytest.mark.parametrize("strategy", ["chain", "truncation", "importance", "summarization"])
async def test_its_own_summary_takes_the_place_of_any_other(tmp_path: Path, strategy: StrategyName) -> None:
    options = CompactionOptions(strategy=strategy, on_pre_compact=deciding(CompactDecision(custom_summary=WORDS)))
    async with bench(BIG, tmp_path, compaction=options) as b:
        await fill_and_compact(b)
        done = b.bodies(CompactionCompleted)[0]
        assert WORDS in conversation(b)
        assert "do not change any of them" in conversation(b)
        assert done.summary == WORDS
        assert done.strategies[0] == "hook"
        assert len(b.model.requests) == 13


async def test_its_own_summary_is_taken_in_an_automatic_compaction_too(tmp_path: Path) -> None:
    options = CompactionOptions(on_pre_compact=deciding(CompactDecision(custom_summary=WORDS)))
    async with bench(TALK, tmp_path, compaction=options) as b:
        for number in range(80):
            assert (await b.say(f"{number}: {'word ' * 300}")).outcome == "done"
        assert b.bodies(CompactionCompleted)
        assert WORDS in conversation(b)
        assert len(b.model.requests) == 80


async def test_a_summary_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    hook = deciding(CompactDecision(custom_summary="word " * 300_000))
    async with bench(BIG, tmp_path, compaction=CompactionOptions(on_pre_compact=hook)) as b:
        await fill_and_compact(b)
        done = b.bodies(CompactionCompleted)[0]
        assert done.strategies == ("summary",)
        assert "Find the bug." in conversation(b)
        assert "a hook's summary was too long" in notices(b)


async def test_a_hook_that_fails_has_no_say(tmp_path: Path) -> None:
    async def broken(context: CompactContext) -> CompactDecision:
        raise LookupError("no such thing")

    async def broken_after(result: CompactResult) -> None:
        raise ValueError("neither")

    options = CompactionOptions(on_pre_compact=broken, on_post_compact=broken_after)
    async with bench(BIG + '\n[[step]]\ntext = "here"', tmp_path, compaction=options) as b:
        await fill_and_compact(b)
        assert len(b.bodies(CompactionCompleted)) == 1
        assert "its pre-compaction hook failed (LookupError: no such thing)" in notices(b)
        await until(lambda: "its post-compaction hook failed (ValueError: neither)" in notices(b))
        assert (await b.say("And now?")).outcome == "done"


async def test_afterwards_it_is_told_what_was_done_and_only_then(tmp_path: Path) -> None:
    told: list[tuple[CompactResult, int]] = []
    benches: list[Bench] = []

    async def after(result: CompactResult) -> None:
        told.append((result, len(benches[0].session.view.messages)))

    before = deciding(CompactDecision(cancel=True), CompactDecision())
    options = CompactionOptions(on_pre_compact=before, on_post_compact=after)
    async with bench(BIG, tmp_path, compaction=options) as b:
        benches.append(b)
        await fill_and_compact(b)
        assert told == []
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        done = b.bodies(CompactionCompleted)[0]
        ((result, messages),) = told
        assert (result.before_tokens, result.after_tokens) == (done.tokens_before, done.tokens_after)
        assert result.before_tokens > result.after_tokens
        assert messages == done.messages_after == result.after_msg_count
