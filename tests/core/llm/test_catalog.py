"""Finding models in the catalogue by the names that people, providers and routers use."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert

from swecli.core.llm.catalog import (
    Catalog,
    CatalogModel,
    load_catalog,
    provider_name,
    read_prices,
    shown_ref,
    spelling,
    tails,
    undated,
    without_variant,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def model(provider: str, name: str, window: int | None = 1000, aliases: tuple[str, ...] = ()) -> CatalogModel:
    found = read_prices([{"input": "1", "output": "2"}])
    assert found is not None
    entry: dict[str, object] = {"provider": provider, "id": name, "aliases": aliases, "window": window}
    unknown = dict.fromkeys(("max_output", "images", "tools", "reasoning", "efforts"))
    return convert({**entry, **unknown, "prices": found.periods, "deprecated": False, "sources": {}}, CatalogModel)


@pytest.mark.parametrize(
    ("asked", "found", "how"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", "exact"),
        ("anthropic/Claude-Sonnet-4.5", "anthropic/claude-sonnet-4-5", "exact"),
        ("anthropic/claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5", "dated"),
        ("anthropic/claude-sonnet-4-5@20250929", "anthropic/claude-sonnet-4-5", "dated"),
        ("anthropic/claude-sonnet-4-5-latest", "anthropic/claude-sonnet-4-5", "dated"),
        ("openai/gpt-5-2025-08-07", "openai/gpt-5", "dated"),
        ("openai/openai/gpt-5", "openai/gpt-5", "exact"),
        ("google/models/gemini-2.5-pro", "gemini/gemini-2.5-pro", "exact"),
        ("gemini/gemini-flash-latest", "gemini/gemini-3.8-flash", "exact"),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter/anthropic/claude-sonnet-4.5", "exact"),
        ("openrouter/anthropic/claude-sonnet-4.5:thinking", "openrouter/anthropic/claude-sonnet-4.5", "variant"),
        ("openrouter/openai/gpt-6-sol-20260922:free", "openrouter/openai/gpt-6-sol", "variant"),
        ("fireworks/kimi-k2p7-code", "fireworks/accounts/fireworks/models/kimi-k2p7-code", "exact"),
        ("together_ai/moonshotai/kimi-k3", "together/moonshotai/Kimi-K3", "exact"),
        ("vercel/anthropic/claude-opus-5.5", "anthropic/claude-opus-5-5", "elsewhere"),
        ("huggingface/moonshotai/Kimi-K3:together", "moonshot/kimi-k3", "elsewhere"),
        ("my-proxy/gpt-4.1", "openai/gpt-4.1", "elsewhere"),
        ("openai/anthropic/claude-opus-5", "anthropic/claude-opus-5", "elsewhere"),
    ],
)
def test_a_model_is_found_by_the_names_in_use(asked: str, found: str, how: str) -> None:
    provider, _, name = asked.partition("/")
    hit = load_catalog().lookup(provider, name)
    assert hit is not None
    assert (f"{hit.model.provider}/{hit.model.id}", hit.how) == (found, how)


@pytest.mark.parametrize(
    "asked", ["azure/our-deployment", "ollama/qwen3-coder:30b", "scripted/demo", "openai/", "nobody/", "x/-latest"]
)
def test_what_nobody_knows_is_not_found(asked: str) -> None:
    provider, _, name = asked.partition("/")
    assert load_catalog().lookup(provider, name) is None


def test_a_price_is_only_that_of_the_provider_that_was_asked_for() -> None:
    catalog = load_catalog()
    for provider, name, priced in (
        ("anthropic", "claude-sonnet-4-5-20250929", True),
        ("vercel", "anthropic/claude-sonnet-4.5", False),
        ("openrouter", "anthropic/claude-sonnet-4.5:free", False),
    ):
        found = catalog.lookup(provider, name)
        assert found is not None
        assert (found.prices is not None) is priced, name
        assert found.model.prices is not None


def test_every_model_is_found_by_its_own_reference_and_aliases() -> None:
    catalog = load_catalog()
    for item in catalog.models:
        for name in (item.id, *item.aliases):
            found = catalog.lookup(item.provider, name)
            assert found is not None
            assert (found.model, found.how) == (item, "exact"), name


def test_of_several_hosts_the_maker_counts_first_then_the_window_that_most_have() -> None:
    hosts = [model("groq", "open-1", 300), model("together", "open-1", 200), model("baseten", "open-1", None)]
    found = Catalog(hosts).lookup("mine", "open-1")
    assert found is not None
    assert found.model.provider == "together"
    most = Catalog([*hosts, model("fireworks", "open-1", 300)]).lookup("mine", "open-1")
    assert most is not None
    assert most.model.window == 300
    with_maker = Catalog([*hosts, model("deepseek", "open-1", 900)]).lookup("mine", "open-1")
    assert with_maker is not None
    assert with_maker.model.provider == "deepseek"


def test_an_id_counts_before_an_alias_and_an_alias_before_the_end_of_a_path() -> None:
    models = [model("p", "a/x"), model("p", "b", aliases=("x",)), model("p", "c", aliases=("b",))]
    catalog = Catalog(models)
    assert [found.model.id for name in ("x", "b", "a/x") if (found := catalog.lookup("p", name))] == ["b", "b", "a/x"]


def test_a_list_for_choosing_has_current_models_first() -> None:
    models = load_catalog().of_provider("google")
    assert [item.deprecated for item in models] == sorted(item.deprecated for item in models)
    newest = next(item for item in models if item.id == "gemini-3.8-flash")
    assert (newest.window, newest.images, newest.tools, newest.reasoning) == (1_048_576, True, True, True)
    assert newest.prices is not None
    assert str(newest.prices.at(NOW).input) == "0.75"
    assert load_catalog().of_provider("ollama") == ()


def test_the_source_and_its_date_are_known() -> None:
    found = load_catalog().lookup("anthropic", "claude-sonnet-4-5")
    assert found is not None
    assert {source.name for source in found.model.window_sources} == {"genai-prices", "litellm"}
    assert all(source.date >= "2026-11" for source in found.model.window_sources)


def test_names_in_parts() -> None:
    assert provider_name("X-AI ") == "xai"
    assert provider_name("anthropic") == "anthropic"
    assert list(tails("a/b/c")) == ["a/b/c", "b/c", "c"]
    assert list(tails("a/")) == ["a/"]
    assert undated("kimi-k2-0905") == "kimi-k2"
    assert undated("gpt-4-32k") == "gpt-4-32k"
    assert without_variant("ollama", "qwen3:8b") == "qwen3:8b"


@given(st.text(max_size=40), st.text(max_size=40))
@settings(deadline=None, max_examples=60)
def test_any_text_can_be_asked_for(provider: str, name: str) -> None:
    catalog = load_catalog()
    assert spelling(spelling(name)) == spelling(name)
    found = catalog.lookup(provider, name)
    assert found is None or found.model in catalog.models


def test_a_name_is_spelled_once_whatever_the_number_of_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    spelled: list[str] = []

    def counting(name: str) -> str:
        spelled.append(name)
        return spelling(name)

    catalog = load_catalog()
    monkeypatch.setattr("swecli.core.llm.catalog.spelling", counting)
    assert catalog.lookup("openai", "vendor/nobody-knows-it-2024-01-02") is None
    assert len(spelled) <= 8 < len({model.provider for model in catalog.models})


def test_a_model_named_by_its_file_is_shown_by_the_name_of_the_file() -> None:
    assert shown_ref("llamacpp//srv/models/SmolLM2.Q4_1.gguf") == "llamacpp/…/SmolLM2.Q4_1.gguf"
    assert shown_ref("llamacpp/C:\\models\\SmolLM2.gguf") == "llamacpp/…/SmolLM2.gguf"
    assert shown_ref("llamacpp/../models/SmolLM2.gguf") == "llamacpp/…/SmolLM2.gguf"
    assert shown_ref("llamacpp/SmolLM2.gguf") == "llamacpp/SmolLM2.gguf"
    assert shown_ref("openrouter/anthropic/claude-opus-5.5") == "openrouter/anthropic/claude-opus-5.5"
