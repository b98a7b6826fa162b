"""swecli's notes in a compaction's text: all of them word for word, but of any number of reports only the newest."""

from __future__ import annotations

import random

import pytest

from swecli.core.context_management.compaction.options import Allowances, CompactionOptions, EntrySizes
from swecli.core.context_management.compaction.package import SessionFacts, build_package
from swecli.core.context_management.compaction.transaction import Compacted, Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.context_management.prompts import note
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import ItemCompleted, ItemStarted
from swecli.core.protocol.messages import TextPart
from tests.properties.random_histories import RandomSummariser
from tests.support.said import Said

FINDING = "It found that the parser reads each line twice. "
CHANGED = "AGENTS.md changed on disk while this conversation runs.\nUse tabs."


def tell(said: Said, text: str) -> str:
    item = f"n{said.next_id()}"
    said.tell(ItemStarted(item, "note"), ItemCompleted(item, "ok", (TextPart(note(text)),)))
    return item


def reported(said: Said, number: int, length: int = 100) -> str:
    return tell(said, f"[a{number} (explore) is done: 3 steps]\nReport {number}: {FINDING * length}")


def test_only_the_newest_reports_are_word_for_word() -> None:
    said = Said()
    said.user("Look into it.")
    tell(said, CHANGED)
    names = [reported(said, number) for number in range(200)]
    sizes = EntrySizes(TokenMonitor(CharCounter()), ModelInfo("p", "m", 100_000))
    allowances = Allowances.of(80_000)
    package = build_package(said.ledger, [*said.ledger.entries], "", SessionFacts(), sizes, allowances).text
    assert sizes.text(package) < allowances.reports + 1_000
    assert CHANGED in package
    assert f"Report 199: {FINDING * 100}".strip() in package
    cut = f"[a190 (explore) is done: 3 steps] … (cut) [{names[190]}]"
    assert cut in package
    assert package.index(cut) < package.index("Report 199")
    assert "earlier reports left out" in package


@pytest.mark.parametrize("window", [8_000, 32_000, 200_000])
async def test_a_conversation_full_of_reports_is_compacted(window: int) -> None:
    said = Said()
    context = ContextManager((), monitor=TokenMonitor(CharCounter()))
    info = ModelInfo("p", "m", window, window // 8)
    said.user("Look into it.")
    number = 0
    while context.measure(project(said.ledger), info).level not in ("compact", "block"):
        for _ in range(window // 8_000):
            reported(said, number := number + 1, 4)
    said.user("Go on.")
    prepared = context.prepare(project(said.ledger), info=info)
    job = Job(
        "auto", "k1", prepared.request, RandomSummariser(info, random.Random(0)), SessionFacts(), without_model=True
    )
    done = await Compaction(context, said.ledger, job, CompactionOptions()).run()
    assert isinstance(done, Compacted)
    assert done.result.after_tokens < 0.35 * prepared.budget.effective
