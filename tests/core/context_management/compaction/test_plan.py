"""The plan of a compaction says what the compaction then does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from decimal import Decimal

from hypothesis import example, given, settings
from hypothesis import strategies as st

from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.compaction.package import SessionFacts
from swecli.core.context_management.compaction.plan import CompactionPlan, plan_compaction
from swecli.core.context_management.compaction.selection import covered
from swecli.core.context_management.compaction.transaction import Compacted, Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.gateway import RequestGateway
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.llm.types import Finished, ModelInfo, ModelRequest, StreamEvent
from swecli.core.protocol.events import CompactionCompleted
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart, Usage
from tests.support.said import Said
from tests.support.thorough import examples

WORDS = "what is written here means nothing and takes room\n"
MOST_OFF = 0.05


class Writer:
    """Writes a summary of so many characters."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self.characters = 8
        self.asked = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked += 1
        text = "## Done\n" + "s" * max(1, self.characters - 8)
        response = Response(Origin("p", "p", "m"), Stop("end"), None)
        yield Finished(Message("assistant", (TextPart(text),), response=response))

    async def close(self) -> None:
        """Nothing to release."""


def history(chance: random.Random) -> Said:
    said = Said()
    said.user("Build it. Never touch port 7001.")
    for number in range(chance.randint(3, 50)):
        text = f"{number}\n" + WORDS * chance.choice([1, 8, 40, 120])
        match chance.choice(("read", "read", "run", "write", "answer", "user")):
            case "read":
                said.call("read_file", {"path": f"src/f{chance.randint(1, 9)}.py"}, text)
            case "run":
                said.call("run_command", {"command": f"make t{number}"}, text, chance.choice([0, 0, 1]))
            case "write":
                said.call("write_file", {"path": f"src/f{number}.py", "content": text}, "written")
            case "answer":
                said.answer(f"Answer {number}. " + WORDS * chance.choice([0, 1, 10]))
            case _:
                said.user(f"Request {number}. " + WORDS * chance.choice([0, 1, 5, 40]))
    return said


def price(model: str, usage: Usage) -> str | None:
    """One dollar a million, a tenth from the cache, a quarter more into it, five for what is written."""
    read, written = usage.cache_read or 0, usage.cache_write or 0
    plain = (usage.input_total or 0) - read - written
    sum_of = plain + Decimal(read) / 10 + Decimal(written) * 5 / 4 + (usage.output_total or 0) * 5
    return f"{sum_of / 1_000_000:f}"


@given(
    st.integers(0, 2**32), st.sampled_from((8_192, 32_000, 200_000)), st.sampled_from(("chain", "truncation", "chain"))
)
@example(1349, 8_192, "chain")  # a summary of the expected length would find no place
@example(1349, 32_000, "chain")
@settings(deadline=None, max_examples=examples(20, 60))
def test_the_size_afterwards_is_the_one_that_was_told(seed: int, window: int, strategy: str) -> None:
    said = history(random.Random(seed))
    info = ModelInfo("p", "m", window, window // 8)
    context = ContextManager((), monitor=TokenMonitor(CharCounter()))
    options = CompactionOptions(strategy=strategy)  # type: ignore[arg-type]
    writer = Writer(info)
    for number in range(2):  # the second one is over a view that holds the summary of the first
        request = context.prepare(project(said.ledger), info=info).request
        job = Job("manual", f"k{number}x", request, writer, SessionFacts("default", ()))
        before = said.ledger.view
        plan = plan_compaction(Compaction(context, said.ledger, job, options), price)
        assert said.ledger.view == before
        check_lists(said, plan)
        if not plan.worthwhile:  # then nothing is done
            assert plan.tokens_after == plan.tokens_before
            return
        writer.characters = round(plan.summary_allowance * 4 / context.monitor.ratio(info))
        writer.asked = 0
        gateway = RequestGateway(context, sleep=_no_time)
        outcome = asyncio.run(Compaction(context, said.ledger, job, options, gateway).run())
        assert isinstance(outcome, Compacted)
        assert bool(writer.asked) == bool(plan.summary_allowance)  # none is paid for that is not told
        measured = outcome.result.after_tokens
        assert abs(plan.tokens_after - measured) <= MOST_OFF * measured
        assert plan.kept == tuple(entry.id for entry in outcome.view if entry.kind == "live")
        _check_money(plan)
        _take(said, f"k{number}x", outcome)
        for _ in range(6):
            said.call("read_file", {"path": "src/again.py"}, WORDS * 60)


def check_lists(said: Said, plan: CompactionPlan) -> None:
    """Everything in the view is in exactly one of the three lists."""
    lists = (*plan.kept, *plan.replaced, *plan.offloaded)
    assert len(set(lists)) == len(lists)
    live = {entry.id for entry in said.ledger.view if entry.kind == "live"}
    assert live <= set(lists)
    assert set(lists) <= {*covered(said.ledger.view), *(entry.id for entry in said.ledger.view)}


def _check_money(plan: CompactionPlan) -> None:
    assert 0 < plan.rewritten_tokens <= plan.tokens_after
    assert plan.cost is not None
    assert plan.saved_per_request is not None
    asked = Decimal(plan.tokens_before) / 10 + 5 * plan.summary_allowance if plan.summary_allowance else Decimal(0)
    anew = Decimal(plan.rewritten_tokens) * (Decimal("1.25") - Decimal("0.1"))
    assert abs(Decimal(plan.cost) * 1_000_000 - asked - anew) < 1
    saved = Decimal(plan.tokens_before - plan.tokens_after) / 10
    assert abs(Decimal(plan.saved_per_request) * 1_000_000 - saved) < 1


def test_where_no_price_is_known_none_is_told() -> None:
    said = history(random.Random(3))
    info = ModelInfo("p", "m", 32_000, 4_000)
    context = ContextManager((), monitor=TokenMonitor(CharCounter()))
    job = Job("manual", "k", ModelRequest((), (), ()), Writer(info), SessionFacts("default", ()))
    plan = plan_compaction(Compaction(context, said.ledger, job))
    assert plan.worthwhile
    assert plan.cost is None
    assert plan.saved_per_request is None


def _take(said: Said, item: str, outcome: Compacted) -> None:
    result = outcome.result
    said.tell(
        CompactionCompleted(
            item, outcome.view, result.before_tokens, result.after_tokens, 0, 0, result.strategies_run, result.summary
        )
    )


async def _no_time(_seconds: float) -> None:
    return
