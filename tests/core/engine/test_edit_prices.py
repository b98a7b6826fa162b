"""Every kind of edit, against servers with the rules of signed thoughts: the announced number of thoughts is the real
one, and no request is refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from swecli.block_text import block_lines
from swecli.commands.base import run_command
from swecli.commands.compaction import COMPACT
from swecli.commands.models import switch_offer
from swecli.commands.registry import find
from swecli.core.context_management.compaction.options import CompactionOptions
from swecli.core.context_management.edit_effects import price_words
from swecli.core.context_management.edits import Effect
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.session import Session
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import Overrides, resolve
from swecli.core.protocol.commands import (
    ChangeContext,
    Command,
    Compact,
    RedoCompaction,
    Rewind,
    SetModel,
    UndoCompaction,
    UndoRewind,
)
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import CompactionCompleted, ItemStarted, Notice, Rewound, StepStarted
from swecli.core.protocol.messages import Usage
from swecli.event_lines import completed_line, rewind_lines
from tests.core.engine.support import Bench, bench, until
from tests.core.engine.test_preserved_thinking import SUMMARY, session, steps, strict
from tests.support.strict_anthropic import THOUGHTS, AnthropicRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import StrictServer

Step = Callable[[Bench], Awaitable[None]]
Server = StrictServer[Any]


def enforced() -> AnthropicRules:
    return AnthropicRules()


def dropping() -> AnthropicRules:
    """A proxy rewrote the first request, so the second is refused; from then on each lets the server drop thoughts."""

    def rewritten(body: dict[str, Any]) -> dict[str, Any]:
        if all(message["role"] != "assistant" for message in body["messages"]):
            body["messages"][0]["content"] = "something else"
        return body

    return AnthropicRules(rewrite=rewritten)


RULES = pytest.mark.parametrize("rules", [enforced, dropping, ResponsesRules])


def sent(server: Server, words: str) -> Any:
    """The newest request of the turn with these words that was not refused."""
    return next(request for request in reversed(server.asked) if words in str(request.body)).body


def thoughts(body: Any) -> set[str]:
    """What identifies each thought in a request."""
    if "input" in body:
        return {item["id"] for item in body["input"] if item.get("type") == "reasoning"}
    return {
        str(block.get("signature") or block.get("data"))
        for message in body["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] in THOUGHTS
    }


async def done(b: Bench, command: Command) -> None:
    b.send(command)
    await b.session.worked()
    await b.idle()


async def grown(b: Bench, turns: int = 3) -> None:
    """Turns with results that a compaction or a clearing can remove."""
    for number in range(turns):
        b.gates.outputs |= {f"{name}{number}": f"line of {name}\n" * 2_000 for name in "ab"}
        assert (await b.say(f"turn {number}")).outcome == "done"


def users(b: Bench) -> list[str]:
    return [body.item for body in b.bodies(ItemStarted) if body.kind == "user"]


def reads(b: Bench) -> list[str]:
    return [body.item for body in b.bodies(ItemStarted) if body.name == "read_file"]


async def nothing(b: Bench) -> None:
    pass


async def compacted(b: Bench) -> None:
    await done(b, Compact())
    assert b.bodies(CompactionCompleted)
    assert (await b.say("behind it")).outcome == "done"


async def compaction_undone(b: Bench) -> None:
    await compacted(b)
    await done(b, UndoCompaction())
    assert (await b.say("with all again")).outcome == "done"


async def rewound(b: Bench) -> None:
    await done(b, Rewind(users(b)[1], "conversation"))
    assert (await b.say("instead")).outcome == "done"


async def dropped(b: Bench) -> None:
    await done(b, ChangeContext((ContextChange("drop", reads(b)[2]),)))
    assert (await b.say("without it")).outcome == "done"


def change(action: Any, at: int) -> Callable[[Bench], tuple[Command, Effect | None]]:
    def made(b: Bench) -> tuple[Command, Effect | None]:
        changes = (ContextChange(action, reads(b)[at]),)
        return ChangeContext(changes), b.session.prices.changes(changes)

    return made


EDITS: dict[str, tuple[Step, Callable[[Bench], tuple[Command, Effect | None]]]] = {
    "drop": (nothing, change("drop", 2)),
    "offload": (nothing, change("offload", 1)),
    "restore": (dropped, change("restore", 2)),
    "pin": (nothing, change("pin", 3)),
    "rewind": (nothing, lambda b: (Rewind(users(b)[1], "conversation"), b.session.prices.rewind(users(b)[1]))),
    "rewind before a compaction": (
        compacted,
        lambda b: (Rewind(users(b)[1], "conversation"), b.session.prices.rewind(users(b)[1])),
    ),
    "undo of a rewind": (rewound, lambda b: (UndoRewind(), b.session.prices.rewind_undo())),
    "undo of a compaction": (compacted, lambda b: (UndoCompaction(), b.session.prices.undo())),
    "redo of a compaction": (compaction_undone, lambda b: (RedoCompaction(), b.session.prices.redo())),
    "clearing": (nothing, lambda b: (Compact(without_model=True), b.session.prices.clearing())),
}


@RULES
@pytest.mark.parametrize("kind", EDITS)
async def test_the_announced_thoughts_are_the_lost_ones(kind: str, rules: Callable[[], Any], tmp_path: Path) -> None:
    before, edit = EDITS[kind]
    with strict(steps(8, SUMMARY), rules()) as server:
        async with session(server, tmp_path) as b:
            await grown(b)
            await before(b)
            refused = len(server.refused)
            assert (await b.say("one more")).outcome == "done"
            had = alive(b.session)
            command, effect = edit(b)
            assert effect is not None
            assert alive(b.session) == had, "a price changes nothing"
            await done(b, command)
            assert (await b.say("and now?")).outcome == "done"
            first = next(request.body for request in server.asked if "and now?" in str(request.body))
            now = thoughts(first)
            assert (len(had - now), len(now - had)) == (effect.thoughts, effect.regained), price_words(effect)
            assert len(server.refused) == refused
            assert bool(getattr(server.rules, "dropping", False)) == (rules is dropping)
            dropped = Counter(lost.request for lost in server.rules.lost if lost.reason != "left out")
            assert max(dropped.values(), default=0) <= (rules is dropping), "but the first thought"


@RULES
async def test_a_compaction_without_a_question_says_what_it_cost(rules: Callable[[], Any], tmp_path: Path) -> None:
    with strict(steps(8, SUMMARY), rules()) as server:
        async with session(server, tmp_path) as b:
            await grown(b)
            assert (await b.say("one more")).outcome == "done"
            had, plan = alive(b.session), b.session.plan_compaction()
            assert plan is not None
            await run_command(COMPACT, b.session, "now")
            await b.session.worked()
            await b.idle()
            (body,) = b.bodies(CompactionCompleted)
            assert (await b.say("and now?")).outcome == "done"
            first = next(request.body for request in server.asked if "and now?" in str(request.body))
            assert body.thoughts == plan.thoughts == len(had - thoughts(first))
            assert body.rewritten > 0
            assert f"{body.thoughts} thoughts of the model are lost. Summary: “Read the files”. /compact undo" in (
                completed_line(body)
            )


@RULES
async def test_a_typed_rewind_says_what_it_cost_and_the_way_back(rules: Callable[[], Any], tmp_path: Path) -> None:
    with strict(steps(8, SUMMARY), rules()) as server:
        async with session(server, tmp_path) as b:
            await grown(b)
            effect, had = b.session.prices.rewind(users(b)[1]), alive(b.session)
            assert effect is not None
            rewind = find("rewind")
            assert rewind is not None
            await run_command(rewind, b.session, "2 conversation")
            await b.idle()
            (body,) = b.bodies(Rewound)
            assert rewind_lines(body) == [
                f"Rewound to before that message. {price_words(effect)}.",
                "Your message was: turn 1",
                "/rewind undo reverses it.",
            ]
            assert effect.thoughts == len(had - alive(b.session)) > 0
            again = await run_command(rewind, b.session, "2 conversation")  # that message has left
            assert "No message 2" in "".join(line for block in again.blocks for line in block_lines(block))


def alive(session: Session) -> set[str]:
    """The thoughts that the next request would bring back, as the server knows them."""
    client = session._connection.client
    wire = session.inspection.wire()
    assert isinstance(client, HttpModelClient)
    assert wire is not None
    return thoughts(json.loads(wire.body))


class Houses:
    """Both of the strict servers, by the names of their models."""

    def __init__(self, *servers: Server) -> None:
        self.servers = servers

    def __call__(self, name: str) -> HttpModelClient:
        if name.endswith("nowhere"):
            raise ModelUnavailable(f"{name} is not available.")
        claude = "claude" in name
        server = next(one for one in self.servers if isinstance(one.rules, AnthropicRules) == claude)
        overrides = Overrides() if claude else Overrides(protocol="openai-responses")
        return HttpModelClient(resolve(name, server.environment(), overrides=overrides))


CLAUDE, GPT = "anthropic/claude-opus-5-5", "openai/gpt-6-sol"


def price(model: str, usage: Usage) -> str:
    fresh = (usage.input_total or 0) - (usage.cache_read or 0)
    return str((Decimal(fresh) + Decimal(usage.cache_read or 0) / 10) / 100_000)


@pytest.mark.parametrize(("first", "other"), [(CLAUDE, GPT), (GPT, CLAUDE)])
async def test_a_switch_there_and_back_says_what_it_costs(first: str, other: str, tmp_path: Path) -> None:
    with strict(steps(4)) as claude, strict(steps(4), ResponsesRules()) as gpt:
        async with bench("", tmp_path, name=first, make_client=Houses(claude, gpt), price=price) as b:
            await b.say("one")
            await b.say("two")
            there = b.session.prices.switch(other)
            assert there is not None
            assert (there.thoughts, there.regained) == (6, 0)
            assert there.rewritten == there.after
            await done(b, SetModel(other))
            notice = b.bodies(Notice)[-1]
            assert f"about {there.rewritten:,} tokens will be sent uncached" in notice.text
            assert f"6 thoughts of {first}; they come back" in notice.hint
            await b.say("three")
            asked = next(r.body for s in (claude, gpt) for r in s.asked if "three" in str(r.body))
            assert thoughts(asked) == set()
            back = b.session.prices.switch(first)
            assert back is not None
            assert (back.thoughts, back.regained) == (3, 6)
            assert back.rewritten < back.after, "the first one's cache is still there"
            await done(b, SetModel(first))
            await b.say("four")
            server = claude if first == CLAUDE else gpt
            returned = next(request.body for request in server.asked if "four" in str(request.body))
            assert len(thoughts(returned)) == 6
        for server in (claude, gpt):
            assert server.refused == []
            assert all(lost.reason == "left out" for lost in server.rules.lost)


async def test_a_switch_that_waits_for_a_compaction_costs_no_thought(tmp_path: Path) -> None:
    with strict(steps(5, SUMMARY)) as claude, strict(steps(2), ResponsesRules()) as gpt:
        async with bench("", tmp_path, name=CLAUDE, make_client=Houses(claude, gpt), price=price) as b:
            await grown(b)
            offer = switch_offer(b.session, GPT)
            assert offer is not None
            assert offer.later == SetModel(GPT, later=True)
            await done(b, offer.later)
            assert b.session.view.planned_model == GPT
            await b.say("two")
            assert thoughts(claude.asked[-1].body), "the thoughts are still there"
            await done(b, Compact())
            view = b.session.view
            assert (view.model and view.model.ref, view.planned_model) == (GPT, "")
            notice = next(body for body in b.bodies(Notice) if body.text.startswith("Switching models"))
            assert "thought" not in notice.hint
            announced = int(re.sub(r"\D", "", notice.text.partition(" tokens")[0]))
            assert (await b.say("three")).outcome == "done"
            first, budget = gpt.rules.cache.charges[0], b.bodies(StepStarted)[-3].budget
            added = budget.used - announced
            assert (first.read, 0 <= added < 200) == (0, True), "the price was of what the new model got"
        assert claude.refused == gpt.refused == []


async def test_a_choice_made_now_ends_the_wait_for_another(tmp_path: Path) -> None:
    with strict(steps(2)) as claude, strict(steps(2), ResponsesRules()) as gpt:
        async with bench("", tmp_path, name=CLAUDE, make_client=Houses(claude, gpt), price=price) as b:
            await b.say("one")
            await done(b, SetModel(GPT, later=True))
            facts: Sequence[Any] = list(b.facts)
            await done(b, SetModel(CLAUDE, later=True))
            assert b.session.view.planned_model == ""
            await done(b, SetModel(GPT, later=True))
            await done(b, SetModel(GPT))
            assert b.session.view.planned_model == ""
        async with bench("", tmp_path, name=CLAUDE, make_client=Houses(claude, gpt), history=facts) as b:
            assert b.session.view.planned_model == GPT
            before = len(b.bodies(Notice))
            b.send(SetModel("openai/nowhere", later=True))
            await until(lambda: len(b.bodies(Notice)) > before)
            assert b.session.view.planned_model == GPT


async def test_another_model_for_a_resumed_session_says_what_it_costs(tmp_path: Path) -> None:
    with strict(steps(4)) as claude, strict(steps(4), ResponsesRules()) as gpt:
        houses = Houses(claude, gpt)
        async with bench("", tmp_path, name=CLAUDE, make_client=houses) as b:
            await b.say("one")
            facts: Sequence[Any] = list(b.facts)
        async with bench("", tmp_path, name=GPT, make_client=houses, history=facts) as b:
            await until(lambda: any(f"3 thoughts of {CLAUDE}" in body.hint for body in b.bodies(Notice)))
            await b.say("two")
        assert gpt.refused == claude.refused == []


@pytest.mark.parametrize("rules", [enforced, dropping])
async def test_kept_turns_keep_their_thoughts_behind_a_summary_by_the_provider(
    rules: Callable[[], Any], tmp_path: Path
) -> None:
    options = CompactionOptions(provider_summary=True)
    with strict(steps(9, SUMMARY), rules()) as server:
        async with session(server, tmp_path, compaction=options) as b:
            await grown(b)
            for turn in ("once", "twice"):
                had = alive(b.session)
                await done(b, Compact())
                made = b.bodies(CompactionCompleted)[-1]
                assert made.strategies == ("provider",), b.bodies(Notice)
                assert made.summary.startswith("## Goal")
                assert made.tokens_after < made.tokens_before
                assert (await b.say(f"and now {turn}?")).outcome == "done"
                first = next(r.body for r in server.asked if f"and now {turn}?" in str(r.body))
                assert [block["type"] for block in first["messages"][0]["content"]] == ["compaction"]
                kept = thoughts(first) & had
                assert kept, "the kept turns have their thoughts"
                assert "context_management" not in first
                await grown(b, 2)
            undo = b.session.prices.undo()
            had = alive(b.session)
            await done(b, UndoCompaction())
            assert (await b.say("with all again")).outcome == "done"
            undone = next(r.body for r in server.asked if "with all again" in str(r.body))
            assert undo is not None
            assert len(had - thoughts(undone)) == undo.thoughts
            assert len(thoughts(undone) - had) == undo.regained
        assert len(server.refused) == (rules is dropping)
        dropped = Counter(lost.request for lost in server.rules.lost if lost.reason != "left out")
        assert max(dropped.values(), default=0) <= (rules is dropping)


async def test_the_plan_and_the_status_show_a_summary_by_the_provider_for_what_it_is(tmp_path: Path) -> None:
    with strict(steps(5, SUMMARY)) as server:
        async with session(server, tmp_path, compaction=CompactionOptions(provider_summary=True)) as b:
            await grown(b)
            plan = b.session.plan_compaction()
            assert plan is not None
            assert plan.by_provider
            had = alive(b.session)
            shown = await run_command(COMPACT, b.session, "")
            assert shown.screen is None, "there is nothing to edit"
            assert shown.offer is not None
            assert "you can undo it, not edit it" in "\n".join(
                line for block in shown.blocks for line in block_lines(block)
            )
            await done(b, Compact())
            assert len(had) - b.session.view.conversation.thoughts == plan.thoughts
            text = "\n".join(line for block in await blocks_of(b, "context text") for line in block_lines(block))
            assert "The provider wrote the summary at the beginning: you can read and undo it, not edit it." in text
            first = next(item for item in b.session.inspection.picture().items if item.kind == "summary")  # type: ignore[union-attr]
            assert b.session.inspection.title(first).endswith(", written by the provider")
            assert "the provider writes the summaries" in "\n".join(b.session.view.conversation.by_provider)


async def blocks_of(b: Bench, line: str) -> Sequence[Any]:
    name, _, words = line.partition(" ")
    command = find(name)
    assert command is not None
    result = await run_command(command, b.session, words)
    return (*result.blocks, *result.instead)


async def test_where_the_provider_writes_no_summary_swecli_does_and_says_so(tmp_path: Path) -> None:
    with strict(steps(5, SUMMARY)) as server:
        options = CompactionOptions(provider_summary=True)
        async with session(server, tmp_path, compaction=options, side_models={"summary": CLAUDE}) as b:
            await grown(b)
            await done(b, Compact())
            assert b.bodies(CompactionCompleted)[-1].strategies == ("summary",)
            why = "has no effect: anthropic/claude-opus-5-5 writes the summaries (model.summary)"
            assert [body.text for body in b.bodies(Notice) if why in body.text] == [f"context.provider_summary {why}."]
            assert why in "".join(b.session.view.conversation.by_provider)


async def test_a_sealed_summary_goes_back_as_it_came_and_says_that_nobody_else_reads_it(tmp_path: Path) -> None:
    with strict(steps(6, SUMMARY), ResponsesRules()) as server, strict(steps(3)) as claude:
        options = CompactionOptions(provider_summary=True)
        async with bench("", tmp_path, name=GPT, make_client=Houses(server, claude), compaction=options) as b:
            await grown(b)
            plan, had = b.session.plan_compaction(), alive(b.session)
            assert plan is not None
            assert plan.by_provider
            await done(b, Compact())
            assert b.bodies(CompactionCompleted)[-1].strategies == ("provider",), b.bodies(Notice)
            assert (await b.say("proceed now")).outcome == "done"
            body = next(r.body for r in server.asked if "proceed now" in str(r.body))
            assert body["input"][0] in server.rules.compacted
            assert len(had - thoughts(body)) == plan.thoughts
            assert "you can undo it, but neither read nor edit it" in "".join(b.session.view.conversation.by_provider)
            await done(b, SetModel(CLAUDE))
            assert (await b.say("and you?")).outcome == "done"
            assert "A summary that only gpt-6-sol can read" in str(claude.asked[-1].body)
        assert server.refused == claude.refused == []
        assert all(lost.reason == "left out" for lost in server.rules.lost)


async def test_a_pinned_item_in_the_older_part_stays_and_swecli_writes_the_summary(tmp_path: Path) -> None:
    with strict(steps(5, SUMMARY)) as server:
        async with session(server, tmp_path, compaction=CompactionOptions(provider_summary=True)) as b:
            await grown(b)
            await done(b, ChangeContext((ContextChange("pin", reads(b)[0]),)))
            await done(b, Compact())
            assert "provider" not in b.bodies(CompactionCompleted)[-1].strategies
            assert not any("compaction" in request.body for request in server.asked)
            assert (await b.say("and now?")).outcome == "done"
        assert server.refused == []


async def test_a_session_with_a_summary_by_the_provider_is_resumed_and_read_by_another_model(tmp_path: Path) -> None:
    with strict(steps(6, SUMMARY)) as claude, strict(steps(4), ResponsesRules()) as gpt:
        houses = Houses(claude, gpt)
        options = CompactionOptions(provider_summary=True)
        async with bench("", tmp_path, name=CLAUDE, make_client=houses, compaction=options) as b:
            await grown(b)
            await done(b, Compact())
            facts: Sequence[Any] = list(b.facts)
        async with bench("", tmp_path, name=CLAUDE, make_client=houses, history=facts) as b:
            had = alive(b.session)
            assert had
            assert (await b.say("proceed now")).outcome == "done"
            assert had <= thoughts(next(r.body for r in claude.asked if "proceed now" in str(r.body)))
            await done(b, SetModel(GPT))
            assert (await b.say("and you?")).outcome == "done"
            other = str(next(r.body for r in gpt.asked if "and you?" in str(r.body)))
            assert "compacted by='the provider'" in other
            assert "Read the files." in other
        assert claude.refused == gpt.refused == []
