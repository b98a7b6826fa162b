"""What models can do, by name, address and settings."""

from __future__ import annotations

import pytest

from swecli.core.config.settings import CapabilitySettings
from swecli.core.llm.capabilities import REFUSED, USER, Capabilities, capability_sources, find_capabilities
from swecli.core.llm.catalog import load_catalog
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.providers import Overrides, ProviderConfig, resolve

KEYS = {"ANTHROPIC_API_KEY": "sk-a", "OPENAI_API_KEY": "sk-o"}


def claude(model: str, host: str = "api.anthropic.com") -> Capabilities:
    return find_capabilities("anthropic-messages", host, model)


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5-1",
        "claude-mythos-5-2",
        "claude-opus-5-5",
        "claude-sonnet-5.5",
        "claude-haiku-5-5-20261001",
        "claude-opus-6",
        "claude-opus-latest",
        "claude-quartz-1",
        "claude-7",
    ],
)
def test_new_models_and_unknown_ones_of_the_family_sign_their_thoughts(model: str) -> None:
    can = claude(model)
    assert can.binding
    assert can.display
    assert can.system_messages
    assert can.clear_at
    assert can.tool_changes
    assert can.effort_changes
    assert can.cache_ttl == ("5m", "1h")


@pytest.mark.parametrize(
    "model", ["claude-opus-5", "claude-sonnet-5", "claude-fable-5", "claude-opus-4-8", "claude-mythos-preview"]
)
def test_models_before_the_rule_do_not(model: str) -> None:
    assert not claude(model).binding
    assert claude(model).display


@pytest.mark.parametrize("model", ["claude-3-opus-20240229", "claude-3-5-haiku-latest", "claude-opus-4-20250514"])
def test_old_models_have_none_of_the_forms(model: str) -> None:
    can = claude(model)
    assert not any((can.display, can.system_messages, can.tool_changes, can.effort_changes, can.server_compaction))


def test_single_members_of_a_family_differ_as_documented() -> None:
    assert not claude("claude-sonnet-5").system_messages
    assert claude("claude-fable-5").system_messages
    assert not claude("claude-fable-5").effort_changes
    assert claude("claude-opus-5").effort_changes


def test_a_gateway_gets_only_what_is_a_fact_about_the_model() -> None:
    can = claude("claude-opus-5-5", host="llm.example.com")
    assert can == Capabilities(binding=True, display=True, adaptive_thinking=True)
    assert claude("glm-5.2") == Capabilities()


def test_an_address_that_the_user_gave_the_vendor_counts_as_the_vendors() -> None:
    env = {**KEYS, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    assert resolve("anthropic/claude-opus-5-5", env).info.capabilities.system_messages
    gateway = ProviderConfig("gateway", "anthropic-messages", "http://127.0.0.1:9", local=True)
    assert not resolve("gateway/claude-opus-5-5", env, (gateway,)).info.capabilities.system_messages


@pytest.mark.parametrize(
    ("model", "has"),
    [("gpt-5.6", True), ("gpt-6-sol", True), ("gpt-7", True), ("gpt-5.5-pro", False), ("gpt-5-2025-08-07", False)],
)
def test_cache_options_of_openai_begin_with_one_version(model: str, has: bool) -> None:
    can = find_capabilities("openai-responses", "api.openai.com", model)
    assert can.prompt_cache_options is has
    assert bool(can.cache_ttl) is has


def test_open_weights_have_nothing_of_their_vendors_server() -> None:
    assert find_capabilities("openai-responses", "api.openai.com", "gpt-oss-120b") == Capabilities()


def test_every_capability_of_a_known_model_has_a_source() -> None:
    protocols = {"anthropic": "anthropic-messages", "openai": "openai-responses", "gemini": "gemini-generate"}
    for model in load_catalog().models:
        if (protocol := protocols.get(model.provider)) is not None:
            for entry in capability_sources(protocol, "", model.id, model.provider).values():
                assert entry.source


def test_settings_override_the_table_and_name_themselves() -> None:
    own = {"binding": False, "web_search": True}
    sources = capability_sources("anthropic-messages", "api.anthropic.com", "claude-opus-5-5", own=own)
    assert sources["binding"].value is False
    assert sources["binding"].source == USER
    info = resolve("anthropic/claude-opus-5-5", KEYS, overrides=Overrides(capabilities=own)).info
    assert not info.capabilities.binding
    assert info.capabilities.display


def test_settings_have_every_capability() -> None:
    own = [name for name in CapabilitySettings.__struct_fields__ if name != "efforts"]  # a part of ModelInfo
    assert tuple(own) == Capabilities.__struct_fields__


def test_a_field_that_the_server_refused_is_gone() -> None:
    sources = capability_sources(
        "anthropic-messages", "127.0.0.1", "claude-opus-5-5", "anthropic", refused=("display", "ttl")
    )
    assert sources["display"].value is False
    assert sources["cache_ttl"].value == ()
    assert sources["display"].source == REFUSED


async def test_a_client_keeps_them_when_it_learns_more_about_the_model() -> None:
    client = HttpModelClient(resolve("anthropic/claude-opus-5-5", KEYS))
    try:
        client.compatibility.know(client.info)
        assert client.config.target.capabilities.binding
        assert client.config.target.capabilities == client.info.capabilities
    finally:
        await client.close()
