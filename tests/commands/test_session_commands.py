"""Commands that show or change a session."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from swecli.commands.mode import mode_meaning
from swecli.commands.registry import CommandCall, parse
from swecli.core.config.change import meaning
from swecli.core.context_management.rule_files import RuleFile
from swecli.core.engine.session_view import Conversation
from swecli.core.engine.state import AgentRecord, Totals
from swecli.core.protocol.blocks import TextBlock, Todo, TodoBlock
from swecli.core.protocol.budget import Budget, Component
from swecli.core.protocol.commands import SetMode, SetModel
from swecli.core.protocol.events import AgentStarted, Price, SandboxChanged
from swecli.core.protocol.messages import Usage
from swecli.core.protocol.modes import MODES
from tests.commands.support import CommandSession

BUDGET = Budget(
    components=(Component("system prompt", 1_000), Component("tools", 1_900, 3_000), Component("conversation", 47_100)),
    used=50_000,
    upper=51_500,
    effective=100_000,
    window=120_000,
    reserve=20_000,
    level="ok",
    source="estimated",
    window_source="catalogue",
)


async def test_what_only_a_front_end_can_do_is_asked_of_it() -> None:
    session = CommandSession()
    assert await session.slash("/help") == "screen:help"
    assert await session.slash("/clear") == "screen:clear"
    assert await session.slash("/exit") == "screen:quit"
    assert await session.slash("/mode") == "screen:pick_mode"
    assert await session.slash("/model") == "screen:pick_model"
    assert session.commands == []


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ("plan", "plan"),
        ("Accept Edits", "accept-edits"),
        ("acceptEdits", "accept-edits"),
        ("edits", "accept-edits"),
        ("AUTO", "auto"),
    ],
)
async def test_mode_is_set_by_name_or_part_of_it(words: str, mode: str) -> None:
    session = CommandSession()
    assert (await session.slash(f"/mode {words}")).startswith(f"Mode {mode}: ")
    assert session.commands == [SetMode(mode)]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("words", ["yolo", "a", "plan now", "-"])
async def test_an_unclear_mode_changes_nothing(words: str) -> None:
    session = CommandSession()
    assert "default, accept-edits, plan, auto" in await session.slash(f"/mode {words}")
    assert session.commands == []


async def test_a_model_is_one_word_and_what_it_means_is_for_the_session_to_say() -> None:
    session = CommandSession()
    await session.slash("/model openrouter/vendor/some-model")
    await session.slash("/model other")
    assert session.commands == [SetModel("openrouter/vendor/some-model"), SetModel("other")]
    for words in ("/x", "two words"):
        assert "provider/name" in await session.slash(f"/model {words}")
    assert len(session.commands) == 2


async def test_context_shows_the_figures_of_the_meter() -> None:
    session = CommandSession()
    session.view.budget = BUDGET
    session.view.conversation = Conversation(3, 3, 0, 7_300.0)
    assert (await session.slash("/tokens text")).splitlines() == [
        "Context ~50%: ~50,000 of 100,000 tokens (estimated)",
        f"▕{'█' * 20}{' ' * 20}▏",
        "  system prompt   1,000   1%  ▎",
        "  tools           1,900   2%  ▎                 of max. 3,000",
        "  conversation   47,100  47%  ███████▌",
        "  free           50,000  50%  ████████",
        "Window 120,000 tokens (the catalogue), 20,000 of them kept for the answer.",
        "3 messages in the conversation. The oldest is 2 hours old.",
    ]


async def test_context_says_where_the_levels_begin_and_what_was_left_out() -> None:
    session = CommandSession()
    session.view.budget = replace(BUDGET, level="warn", warn_at=50_000, compact_at=70_000, block_at=90_000)
    session.view.conversation = Conversation(12, 45, 2, 60.0)
    lines = (await session.slash("/context text")).splitlines()[-3:]
    assert lines[0].endswith("High from 50,000 (50%), nearly full from 70,000 (70%), full from 90,000 (90%).")
    assert lines[1] == "12 active messages of 45, 2 summaries. The oldest is 1 minute old."
    assert lines[2] == "It is filling up. /compact frees space."
    assert not [line for line in lines if "80%" in line or "95%" in line]


async def test_context_before_the_first_request_and_at_the_block() -> None:
    session = CommandSession()
    assert "Not measured yet" in await session.slash("/context text")
    session.view.budget = Budget((), 99, 99, 100, 120, 20, "block", "measured")
    text = await session.slash("/context text")
    assert "Context 99%" in text
    assert "nothing is sent until" in text
    session.view.budget = Budget((), 5, 5, 0, 0, 0, "block", "unknown")
    assert "Context ?: " in await session.slash("/context text")


async def test_usage_sums_up_the_session() -> None:
    session = CommandSession()
    assert "no request yet" in (await session.slash("/usage")).splitlines()[-1]
    session.view.totals = Totals(2, 5, 7, 10_000, 900, 9_300, Decimal("0.0421"), {"read_file": 3, "run_command": 4})
    session.view.last_usage = Usage(input_total=5_000, cache_read=4_750, output_total=100)
    text = await session.slash("/cost")
    assert "run_command 4, read_file 3" in text
    assert "9,300 (93%)" in text
    assert "95%" in text
    assert "$0.04" in text


async def test_a_cached_part_that_no_provider_reported_is_unknown_everywhere() -> None:
    session = CommandSession()
    session.view.spending.add("local/m", 1, Usage(7_360, None, None, 159), None)
    session.view.totals = Totals(1, 1, 0, 7_360, 159)
    cached = [line.split() for line in (await session.slash("/usage")).splitlines() if "cached" in line]
    assert cached[0] == ["cached", "?"]
    session.view.spending.add("local/m", 1, Usage(100, 0, None, 1), None)
    assert "0 (0%)" in await session.slash("/usage")


async def test_usage_is_told_by_model_and_by_turn() -> None:
    session = CommandSession()
    spent = session.view.spending
    spent.add("a/big", 1, Usage(10_000, 9_000, None, 100), "0.5")
    spent.add("b/small", 1, Usage(500, None, None, 50), None)
    for turn in range(2, 30):
        spent.add("a/big", turn, Usage(10_000, 9_500, None, 100), "0.25", turn == 29)
    text = await session.slash("/usage")
    assert "Model requests                   30" in text, "as many as in the tables"
    models = text[text.index("By model") : text.index("By turn")].splitlines()
    assert [line.split() for line in models[2:4]] == [
        ["a/big", "29", "290,000", "95%", "2,900", "about", "$7.50"],
        ["b/small", "1", "500", "?", "50", "?"],
    ]
    turns = text[text.index("By turn") :].splitlines()
    assert turns[2].split()[0] == "10"
    assert [line.split()[0] for line in turns[-2:]] == ["28", "29"]
    assert turns[-1].endswith("about $0.25")
    session.view.totals = Totals(29, 30, input_tokens=7_000, output_tokens=90, cost=Decimal(8), estimated=True)
    text = await session.slash("/usage")
    assert "about $8.00" in text
    assert "about 7,000" in text
    assert "about 90" in text


async def test_usage_is_told_by_agent() -> None:
    session = CommandSession()
    spent = session.view.spending
    spent.add("a/big", 1, Usage(10_000, 9_000, None, 100), "0.5")
    assert "By agent" not in await session.slash("/usage")
    session.view.agents = (AgentRecord(AgentStarted("agent-1", "i", "look", "explore", "a/big"), 1, 0.0, "a/big"),)
    spent.add("a/big", 1, Usage(500, None, None, 50), "0.25", agent="agent-1")
    text = await session.slash("/usage")
    agents = text[text.index("By agent") : text.index("By turn")].splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in agents[2:4]] == [("main", "$0.50"), ("agent-1", "$0.25")]


async def test_status_names_session_model_folder_and_instructions() -> None:
    session = CommandSession()
    session.view.instructions = ("/p/AGENTS.md", "/proj/web/CLAUDE.md")
    text = await session.slash("/status")
    for piece in ("fake/model", "/proj", "/p/AGENTS.md, web/CLAUDE.md", "default: reads freely", "idle"):
        assert piece in text
    session.view.budget = BUDGET
    assert "20,000 of the window are kept free for the answer" in await session.slash("/status")
    assert "none; choose one with /model" in await CommandSession(model=False).slash("/status")


async def test_status_names_rules_by_their_condition() -> None:
    session = CommandSession()
    root = Path("/proj/web")
    session.view.rule_files = (
        RuleFile(root / "a.mdc", "a.mdc", root, "matching", ("*.py", "*.pyi")),
        RuleFile(root / "b.mdc", "b.mdc", root, "described", description="Tests"),
        *(RuleFile(root / f"{n}.mdc", f"{n}.mdc", root, "mentioned") for n in range(20)),
    )
    text = " ".join((await session.slash("/status")).split())
    assert "Rules for matching files: a.mdc (*.py, *.pyi); if the task fits: b.mdc; if you mention them: 0.mdc" in text
    assert "11.mdc …" in text


async def test_status_says_why_there_are_no_instructions() -> None:
    session = CommandSession()
    session.view.instructions = ()
    assert "none; /init writes OPENCLI.md" in await session.slash("/status")
    session.view.no_instructions = "off in safe mode"
    assert "Instructions  off in safe mode\n" in await session.slash("/status")


async def test_todos_are_a_block_of_their_own() -> None:
    session = CommandSession()
    assert "No todo list" in await session.slash("/todos")
    session.view.todos = (Todo("look", "completed"), Todo("mend"))
    from swecli.commands.registry import find

    command = find("todos")
    assert command
    assert (await command.run(cast("Any", session), "")).blocks == (TodoBlock(session.view.todos),)


async def test_an_unknown_price_is_asked_about_with_the_form_of_the_setting() -> None:
    session = CommandSession()
    session.offers.unpriced = ("fake/model",)
    found = parse("/cost")
    assert isinstance(found, CommandCall)
    result = await found.command.run(cast("Any", session), "")
    assert result.screen is None, "a list of figures asks nothing"
    said = result.blocks[-1]
    assert isinstance(said, TextBlock)
    assert '[models.price] "fake/model" = { input = 3, output = 15, cache_read = 0.3 }' in said.text
    asked = await found.command.run(cast("Any", session), "price")
    assert (asked.screen, asked.argument) == ("price", "fake/model")
    session.offers.unpriced = ()
    assert "price" not in (await session.slash("/usage")).lower()


@pytest.mark.parametrize(
    ("typed", "price"),
    [
        ("3 15 0.3", Price("3", "15", "0.3")),
        ("$3 / $15", Price("3", "15")),
        ("0.25, .5", Price("0.25", ".5")),
        ("0 0", Price("0", "0")),
        ("3", None),
        ("3 15 1 2", None),
        ("-3 15", None),
        ("three 15", None),
        ("1e9 2", None),
    ],
)
async def test_a_price_is_two_or_three_numbers(typed: str, price: Price | None) -> None:
    session = CommandSession()
    text = await session.slash(f"/usage price {typed}")
    assert session.offers.prices == ({} if price is None else {session.view.model.ref: price})
    assert ("models.price in /home/me/config.toml" if price else "for example /usage price 3 15 0.3") in text
    session.offers.prices.clear()
    await session.slash(f"/usage price other/m {typed}")
    assert session.offers.prices == ({} if price is None else {"other/m": price})


def test_the_setting_says_of_each_mode_what_the_command_says() -> None:
    described = meaning(("approval", "mode"))
    assert described is not None
    words = " ".join(described.about.split())
    for text in (mode.meaning for mode in MODES.values()):
        assert all(part in words for part in re.split(r"[:;,] ", text)), text


def test_auto_is_named_after_what_the_sandbox_here_lets_run() -> None:
    assert "unasked if sandboxed" in mode_meaning("auto", None)
    assert "unasked" in mode_meaning("auto", SandboxChanged("full", "bwrap", contains=True))
    assert "partial sandbox" in mode_meaning("auto", SandboxChanged("partial", "landlock", contains=True))
    assert "commands ask" in mode_meaning("auto", SandboxChanged("partial", "landlock"))
    assert "commands ask" in mode_meaning("auto", SandboxChanged("off", "none"))
    assert mode_meaning("plan", SandboxChanged("off", "none")) == MODES["plan"].meaning
