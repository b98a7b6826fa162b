"""The catalogue's data: shape, size, no duplicates, and the numbers of models that everybody knows."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

RATES = {"input", "output", "cache_read", "cache_write", "cache_write_1h"}
FIELDS = {
    "provider": str,
    "id": str,
    "aliases": list,
    "window": int | None,
    "max_output": int | None,
    "prices": list | None,
    "cache_minimum": int | None,
    "images": bool | None,
    "tools": bool | None,
    "reasoning": bool | None,
    "reasoning_style": str | None,
    "efforts": list | None,
    "echo": str | None,
    "deprecated": bool,
    "retires": str | None,
    "sources": dict,
}
SOURCE_OF = {
    "window": "window",
    "max_output": "max_output",
    "prices": "prices",
    "cache_minimum": "cache_minimum",
    "images": "capabilities",
    "tools": "capabilities",
    "reasoning": "capabilities",
    "reasoning_style": "reasoning",
    "efforts": "reasoning",
    "echo": "echo",
}
SELECTION = Path(__file__).resolve().parents[3] / "scripts" / "catalog_selection.toml"


def text() -> str:
    return files("swecli.core.llm").joinpath("catalog.json").read_text("utf-8")


def data() -> dict[str, Any]:
    return json.loads(text())


def models() -> list[dict[str, Any]]:
    return data()["models"]


def entry(ref: str) -> dict[str, Any]:
    provider, _, name = ref.partition("/")
    return next(item for item in models() if (item["provider"], item["id"]) == (provider, name))


def test_it_is_small_and_one_line_holds_one_model() -> None:
    lines = text().splitlines()
    assert len(text().encode()) < 200_000
    assert len(lines) == len(models()) + 2
    assert all(json.loads(line.rstrip(","))["id"] for line in lines[1:-1])
    assert 280 <= len(models()) <= 400


def test_every_model_has_every_field_and_nothing_else() -> None:
    for item in models():
        assert item.keys() == FIELDS.keys(), item["id"]
        for name, kind in FIELDS.items():
            assert isinstance(item[name], kind), (item["id"], name)
            assert kind == bool | None or kind is bool or not isinstance(item[name], bool), (item["id"], name)


def test_no_name_stands_for_two_models_of_a_provider() -> None:
    seen: set[tuple[str, str]] = set()
    for item in models():
        for name in (item["id"], *item["aliases"]):
            key = (item["provider"], name.lower())
            assert key not in seen, key
            seen.add(key)


def test_what_is_known_has_a_source_with_a_date_and_what_is_unknown_has_none() -> None:
    sources = data()["sources"]
    for source in sources.values():
        assert date.fromisoformat(source["date"]).year >= 2026
        assert source["name"]
    for item in models():
        known = {SOURCE_OF[name] for name in SOURCE_OF if item[name] is not None}
        assert item["sources"].keys() == known, item["id"]
        assert {letter for letters in item["sources"].values() for letter in letters} <= sources.keys(), item["id"]


def test_sizes_are_plausible() -> None:
    for item in models():
        assert item["window"] is None or 8_000 <= item["window"] <= 3_000_000, item["id"]
        assert item["max_output"] is None or 1_000 <= item["max_output"] < (item["window"] or 10**9), item["id"]
        assert item["cache_minimum"] in (None, 512, 1024, 2048, 4096), item["id"]


def test_prices_are_decimals_and_say_when_they_hold() -> None:
    for item in models():
        for number, price in enumerate(item["prices"] or ()):
            rates = {name: Decimal(price[name]) for name in RATES & price.keys()}
            assert price.keys() <= RATES | {"tiers", "since", "hours", "days"}, item["id"]
            assert {"input", "output"} <= rates.keys(), item["id"]
            assert all(0 <= rate < 1000 for rate in rates.values()), item["id"]
            assert rates.get("cache_read", Decimal(0)) <= rates["input"], item["id"]
            assert rates["input"] <= rates["output"] or item["deprecated"] or rates["output"] == 0, item["id"]
            steps = [tier["above"] for tier in price.get("tiers", ())]
            assert steps == sorted(set(steps)), item["id"]
            assert all(tier.keys() - {"above"} <= rates.keys() for tier in price.get("tiers", ())), item["id"]
            assert ("since" in price or "hours" in price) == (number > 0), item["id"]
            assert all(re.fullmatch(r"\d\d:\d\d-\d\d:\d\d", span) for span in price.get("hours", ())), item["id"]
            assert "since" not in price or date.fromisoformat(price["since"]), item["id"]


def test_words_are_of_a_closed_set() -> None:
    for item in models():
        assert item["reasoning_style"] in (None, "adaptive", "budget", "effort", "level")
        assert item["echo"] in (
            None,
            "thinking_blocks",
            "thought_signature",
            "reasoning_items",
            "reasoning_content",
            "reasoning_details",
            "optional",
        )
        assert set(item["efforts"] or ()) <= {"none", "minimal", "low", "medium", "high", "xhigh", "max"}


@pytest.mark.parametrize(
    ("ref", "window", "max_output", "rates", "cache_minimum"),
    [
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000, "3 15 0.3 3.75 6", 1024),
        ("anthropic/claude-opus-5-5", 1_000_000, 128_000, "4 20 0.2 5 8", 512),
        ("anthropic/claude-haiku-4-5", 200_000, 64_000, "1 5 0.1 1.25 2", 4096),
        ("openai/gpt-5", 400_000, 128_000, "1.25 10 0.125", 1024),
        ("openai/gpt-6-sol", 1_050_000, 128_000, "2 10 0.2 2.5", 1024),
        ("openai/gpt-4.1", 1_047_576, 32_768, "2 8 0.5", 1024),
        ("gemini/gemini-2.5-pro", 1_048_576, 65_536, "1.25 10 0.125", 2048),
        ("gemini/gemini-3.8-flash", 1_048_576, 65_536, "0.75 3.75 0.075", 4096),
        ("xai/grok-4.7", 500_000, None, "2 6 0.5", None),
        ("deepseek/deepseek-v4-pro", 1_000_000, 393_216, "0.66 1.98 0.022", None),
        ("moonshot/kimi-k2.7-code", 262_144, None, "0.95 4 0.19", None),
        ("zai/glm-5.3", 1_000_000, 128_000, "1.4 4.4 0.26", None),
        ("groq/openai/gpt-oss-120b", 131_072, 65_536, "0.15 0.6 0.075", None),
        ("openrouter/anthropic/claude-sonnet-4.5", 1_000_000, None, "3 15 0.3 3.75", None),
    ],
)
def test_well_known_models(
    ref: str, window: int, max_output: int | None, rates: str, cache_minimum: int | None
) -> None:
    item = entry(ref)
    assert (item["window"], item["max_output"], item["cache_minimum"]) == (window, max_output, cache_minimum)
    price = item["prices"][0]
    order = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    assert " ".join(price[name] for name in order if name in price) == rates


def test_prices_that_change_with_size_day_and_hour() -> None:
    assert entry("openai/gpt-6-sol")["prices"][0]["tiers"] == [
        {"above": 272_000, "input": "4", "output": "15", "cache_read": "0.4", "cache_write": "5"}
    ]
    assert entry("gemini/gemini-4-argon")["prices"][1] == {
        "since": "2026-12-01",
        "input": "4",
        "output": "20",
        "cache_read": "0.2",
    }
    peak = entry("deepseek/deepseek-v4-pro")["prices"][1]
    assert (peak["hours"], peak["days"], peak["input"]) == (["01:00-04:00", "06:00-10:00"], [1, 2, 3, 4, 5], "1.32")


def test_rules_that_only_documentation_states() -> None:
    assert entry("deepseek/deepseek-v4-pro")["echo"] == "reasoning_content"
    assert entry("openrouter/moonshotai/kimi-k2.7-code")["echo"] == "reasoning_details"
    assert entry("together/moonshotai/Kimi-K3")["echo"] == "reasoning_content"
    assert entry("gemini/gemini-2.5-pro")["echo"] is None
    assert entry("gemini/gemini-2.5-pro")["reasoning_style"] == "budget"
    assert entry("openai/gpt-4.1")["echo"] is None
    assert entry("anthropic/claude-sonnet-4-5")["reasoning_style"] == "budget"
    assert entry("anthropic/claude-sonnet-5-5")["reasoning_style"] == "adaptive"


def test_the_selection_and_the_file_name_the_same_providers_in_the_same_order() -> None:
    selection = tomllib.loads(SELECTION.read_text("utf-8"))["provider"]
    assert list(dict.fromkeys(item["provider"] for item in models())) == list(selection)
