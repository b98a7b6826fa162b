"""/model, /login and /logout without a screen."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from swecli.commands.base import CommandResult
from swecli.commands.models import known, size, summary
from swecli.commands.registry import CommandCall, parse
from swecli.core.config.key_store import KeyStore
from swecli.core.llm.catalog import Rates
from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.blocks import TableBlock, TextBlock
from swecli.core.protocol.commands import SetModel
from swecli.headless.outcome import run_slash as headless
from tests.commands.support import CommandSession

BIG = ModelOffer(
    "a/big",
    "environment",
    "A_KEY",
    1_050_000,
    128_000,
    Rates(Decimal("1.250"), Decimal(10)),
    images=True,
    reasoning=True,
)
LOCKED = ModelOffer("b/locked", "missing", "B_KEY", 200_000)
LOCAL = ModelOffer("ollama/qwen", "not needed", window=4096, tools=False, running="127.0.0.1:11434")


async def result(session: CommandSession, line: str) -> CommandResult:
    invocation = parse(line)
    assert isinstance(invocation, CommandCall)
    return await invocation.command.run(session, invocation.arguments)


def offering() -> CommandSession:
    session = CommandSession()
    session.offers.listed = (LOCAL, BIG, LOCKED)
    return session


async def test_models_are_listed_with_what_is_known_of_them() -> None:
    made = await result(offering(), "/model list")
    (table,) = made.blocks
    assert isinstance(table, TableBlock)
    assert table.rows == (
        ("ollama/qwen", "4.1K · free · tools as text"),
        ("a/big", "1.05M · 1.25 / 10 · images, reasoning · A_KEY"),
        ("b/locked", "200K · ? · needs B_KEY"),
    )


async def test_a_word_narrows_the_list() -> None:
    (table,) = (await result(offering(), "/model list BIG")).blocks
    assert isinstance(table, TableBlock)
    assert [row[0] for row in table.rows] == ["a/big"]
    (said,) = (await result(offering(), "/model list nothing")).blocks
    assert isinstance(said, TextBlock)
    assert "nothing" in said.text


async def test_a_long_list_says_how_much_is_missing() -> None:
    session = CommandSession()
    session.offers.listed = tuple(ModelOffer(f"a/{number}", "missing", "A_KEY") for number in range(200))
    table, rest = (await result(session, "/model list")).blocks
    assert isinstance(table, TableBlock)
    assert isinstance(rest, TextBlock)
    assert len(table.rows) + int(rest.text.split()[0]) == 200


async def test_without_a_screen_the_usable_ones_are_shown() -> None:
    invocation = parse("/model")
    assert isinstance(invocation, CommandCall)
    text = (await headless(offering(), invocation)).text
    assert text.startswith("The model is fake/model")
    assert "a/big" in text
    assert "b/locked" not in text


def test_one_line_for_a_list_to_pick_from() -> None:
    assert summary(BIG) == "1.05M window · images, reasoning · $1.25 in, $10 out"
    assert summary(LOCKED) == "200K window · price ? · needs B_KEY"
    guessed = ModelOffer("c/new", "not needed", window=32_000, assumed=True)
    assert summary(guessed) == "32K window (assumed) · price ?"
    assert known(guessed) == "32K (assumed) · ?"
    assert [size(number) for number in (None, 999, 32_768, 262_144, 10_000_000)] == [
        "?",
        "999",
        "32.8K",
        "262K",
        "10M",
    ]


async def test_an_offered_name_with_a_space_can_be_typed() -> None:
    session = offering()
    session.offers.listed = (ModelOffer("mine/my model", "not needed"),)
    await result(session, "/model mine/my model")
    assert session.commands == [SetModel("mine/my model")]
    refused = await result(session, "/model mine/my other")
    assert "one word" in str(refused.blocks)
    assert len(session.commands) == 1


async def test_a_key_is_never_taken_from_the_prompt_line() -> None:
    made = await result(CommandSession(), "/login openai sk-secret")
    assert made.screen is None
    assert isinstance(made.blocks[0], TextBlock)
    assert "sk-secret" not in made.blocks[0].text
    asked = await result(CommandSession(), "/login openai")
    assert (asked.screen, asked.argument) == ("login", "openai")


async def test_stored_keys_are_listed_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path))
    session = CommandSession()
    assert "No keys are stored" in await session.slash("/logout")
    store = KeyStore(tmp_path, keyring=lambda: None)
    store.put("openai", "https://api.openai.com", "sk-secret")
    listed = await session.slash("/logout")
    assert "openai  https://api.openai.com  (file)" in listed
    assert "sk-secret" not in listed
    assert "No key for groq" in await session.slash("/logout groq")
    assert "Deleted" in await session.slash("/logout openai")
    assert store.entries() == ()
    (tmp_path / "keys.json").write_text("{")
    assert "damaged" in await session.slash("/logout openai")
