"""Whatever fills a window, a compaction leaves little of it, loses nothing, and what it took away is found again."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable

import pytest

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.compaction.package import SessionFacts
from swecli.core.context_management.compaction.selection import unread
from swecli.core.context_management.compaction.transaction import Compacted, Compaction, Job
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.projection import project
from swecli.core.context_management.recall import Recall
from swecli.core.llm.types import Finished, ModelInfo, ModelRequest, StreamEvent
from swecli.core.protocol.blocks import Todo
from swecli.core.protocol.events import CompactionCompleted
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart
from tests.core.context_management.test_projection import check_valid
from tests.support.said import Said
from tests.support.thorough import THOROUGH

SUMMARY = (
    "## Goal\nGo on.\n## Done\n" + "Looked at the code and changed what was asked for. " * 12 + "\n## Next\nThe rest."
)
LINE = "value = function(argument, other=3)  # what it is for\n"


class Summariser:
    """A model that only writes summaries, and forgets everything in them."""

    def __init__(self, window: int) -> None:
        self.info = ModelInfo("p", "m", window, min(16_000, window // 5))

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        response = Response(Origin("p", "p", "m"), Stop("end"), None)
        yield Finished(Message("assistant", (TextPart(SUMMARY),), response=response))

    async def close(self) -> None:
        """Nothing to release."""


Round = Callable[[Said, int, int], None]
"""Adds the n-th piece of a history for a window of so many tokens."""


def small_results(said: Said, number: int, window: int) -> None:
    said.call("read_file", {"path": f"src/f{number}.py"}, f"{number}\n{LINE * 12}")


def huge_results(said: Said, number: int, window: int) -> None:
    said.call("run_command", {"command": f"make part{number}"}, f"{number}\n" + LINE * (window // 100))


def written_files(said: Said, number: int, window: int) -> None:
    said.call("write_file", {"path": f"src/f{number}.py", "content": f"{number}\n{LINE * 40}"}, "written")


def long_user_texts(said: Said, number: int, window: int) -> None:
    said.user(f"Part {number} of the description. " + "It has to do what the one before it did. " * 60)
    said.answer("I see.")


def much_reasoning(said: Said, number: int, window: int) -> None:
    said.answer(f"Then part {number}.", reasoning=f"{number}: perhaps it is the parser, perhaps not. " * 60)
    said.user("Go on.")


def mixed(said: Said, number: int, window: int) -> None:
    (small_results, written_files, huge_results, much_reasoning, long_user_texts)[number % 5](said, number, window)


ROUNDS: tuple[Round, ...] = (small_results, huge_results, written_files, long_user_texts, much_reasoning, mixed)


def fill(said: Said, one: Round, context: ContextManager, info: ModelInfo) -> None:
    """Until the request reaches the trigger."""
    number = 0
    step = 1
    while context.measure(project(said.ledger), info).level not in ("compact", "block"):
        for _ in range(step):
            one(said, number, info.window or 0)
            number += 1
        step = max(1, number // 20)


async def compacted(said: Said, context: ContextManager, model: Summariser, number: int, todos: tuple[Todo, ...] = ()):
    """One automatic compaction, applied."""
    prepared = context.prepare(project(said.ledger), info=model.info)
    job = Job("auto", f"k{number}", prepared.request, model, SessionFacts(todos=todos))
    outcome = await Compaction(context, said.ledger, job).run()
    assert isinstance(outcome, Compacted), outcome
    said.tell(CompactionCompleted(f"k{number}", outcome.view, 0, 0, 0, 0, outcome.result.strategies_run))
    return outcome


@pytest.mark.parametrize(
    ("one", "window"),
    [
        pytest.param(one, window, id=f"{one.__name__}-{window}")
        for one in ROUNDS
        for window in (8_000, 32_000, 200_000, 1_000_000)
        if THOROUGH or window < 200_000 or (one is mixed and window == 200_000)  # up to 20 s for a million tokens
    ],
)
async def test_what_is_left_is_small(one: Round, window: int) -> None:
    model, context, said = Summariser(window), ContextManager(()), Said()
    said.user("Build it, and never touch port 7001.")
    fill(said, one, context, model.info)
    fresh, sizes = unread(said.ledger, said.ledger.view).ids, EntrySizes(context.monitor, model.info)
    new = sizes.view((entry for entry in said.ledger.view if entry.id in fresh), said.ledger)
    outcome = await compacted(said, context, model, 1)
    assert {entry.id for entry in said.ledger.view if entry.kind == "live"} >= fresh & said.ledger.entries.keys()
    before, after = outcome.result.before_tokens - new, outcome.result.after_tokens - new
    messages = project(said.ledger)
    check_valid(messages)
    effective = context.measure(messages, model.info).effective
    assert after <= (0.50 if window < 16_000 else 0.30) * effective
    assert after <= (0.55 if window < 16_000 else 0.35) * before
    assert "never touch port 7001" in "\n".join(message.text for message in messages)
    covered = {entry.id for entry in said.ledger.view} | {one for entry in said.ledger.view for one in entry.sources}
    assert set(said.ledger.entries) <= covered


PLANTED = [
    ("the retry limit of the {0} gateway is {1} seconds", "how many seconds does the {0} gateway retry"),
    ("{0} connects through port {1}", "which port is used by {0}"),
    ("deploy {0} only from branch release-{1}", "branch for deploying {0}"),
    ("the owner of module {0} is team-{1}", "team that owns {0}"),
    ("error E{1} in {0} means a stale lock", "meaning of the {0} error code"),
]
NAMES = [
    f"{first}{second}"
    for first in ("amber", "basil", "cobalt", "dahlia", "ember", "fennel", "garnet", "hazel", "indigo", "jasper")
    for second in ("mill", "forge", "dock", "vault", "loom")
]


@pytest.mark.parametrize("paraphrased", [False, True])
async def test_fifty_planted_facts_are_found_after_three_compactions(paraphrased: bool) -> None:
    model, context, said = Summariser(32_000), ContextManager(()), Said()
    chance = random.Random(7)
    planted: list[tuple[str, str, str]] = []
    for number, name in enumerate(NAMES):
        fact, question = PLANTED[number % 5]
        said_so = fact.format(name, 1_000 + 7 * number)
        where = chance.choice(["user", "answer", "result"])
        if where == "user":
            item = said.user(f"By the way, {said_so}.")
        elif where == "answer":
            item = said.answer(f"I found out that {said_so}.")
        else:
            item = said.call("read_file", {"path": f"n{number}.md"}, f"{LINE * 5}{said_so}\n{LINE * 5}") + ".result"
        planted.append((item, said_so, question.format(name) if paraphrased else said_so))
        small_results(said, number, 0)
        if number in (17, 34, 49):
            fill(said, mixed, context, model.info)
            while context.measure(project(said.ledger), model.info).share > 0.35:
                await compacted(said, context, model, number)
    recall = Recall(said.ledger)
    shown = "\n".join(message.text for message in project(said.ledger))
    found = 0
    for item, fact, query in planted:
        hits = recall.search(query, 3)
        found += fact in shown or any(hit.item == item and fact in (recall.text(hit.item) or "") for hit in hits)
    assert found >= 0.95 * len(planted)
