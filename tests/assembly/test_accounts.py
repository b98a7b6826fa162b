"""Which key a provider gets, what the doctor says, and which models are offered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from swecli.assembly.accounts import AccountError, Accounts
from swecli.assembly.doctor import examine
from swecli.assembly.first_model import main_model
from swecli.assembly.models import ModelSupply
from swecli.core.config.key_store import KeyStore
from swecli.core.config.settings import Settings
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.llm.catalog import load_catalog
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.offers import offers
from swecli.core.llm.servers import LocalServer
from swecli.core.validation import validated
from swecli.launch import LaunchOptions
from tests.support.json_server import Reply, serve_json

CANARY = "sk-canary-0123456789"
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def keys(folder: Path) -> KeyStore:
    return KeyStore(folder, keyring=lambda: None)


def supply(folder: Path, environment: Mapping[str, str], **settings: Any) -> ModelSupply:
    return ModelSupply(
        LaunchOptions(Path("/proj"), base_url=settings.pop("base_url", None)),
        validated(Settings, settings),
        environment,
        folder,
        keys(folder),
    )


def headers(models: ModelSupply, reference: str) -> Mapping[str, str]:
    client = models.make(reference)
    assert isinstance(client, HttpModelClient)
    return client.config.headers


def test_a_client_is_renewed_if_another_key_was_stored(tmp_path: Path) -> None:
    Accounts(Settings(), {}, keys(tmp_path)).store("openai", CANARY)
    models = supply(tmp_path, {})
    client = models.make("openai/m")
    assert models.renewed(client) is None
    Accounts(Settings(), {}, keys(tmp_path)).store("openai", "sk-another")
    fresh = models.renewed(client)
    assert isinstance(fresh, HttpModelClient)
    assert fresh.config.headers == {"authorization": "Bearer sk-another"}
    keys(tmp_path).remove("openai")
    assert models.renewed(fresh) is None


def test_only_a_providers_own_server_is_expected_to_have_its_default_model(tmp_path: Path) -> None:
    assert Accounts(Settings(), {}, keys(tmp_path)).default_of("openai").startswith("openai/gpt")
    elsewhere = Accounts(Settings(), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, keys(tmp_path))
    assert elsewhere.default_of("openai") == ""
    with pytest.raises(AccountError):
        elsewhere.default_of("nosuch")


def test_a_stored_key_is_used_at_its_own_address_only(tmp_path: Path) -> None:
    Accounts(Settings(), {}, keys(tmp_path)).store("openai", f"{CANARY}\n")
    assert headers(supply(tmp_path, {}), "openai/m") == {"authorization": f"Bearer {CANARY}"}
    with pytest.raises(ModelUnavailable, match="There is no key for openai"):
        supply(tmp_path, {"OPENAI_BASE_URL": "https://gateway.example/v1"}).make("openai/m")
    local = supply(tmp_path, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert headers(local, "openai/m") == {}
    flagged = supply(tmp_path, {}, model={"name": "openai/m"}, base_url="https://evil.example/v1")
    with pytest.raises(ModelUnavailable):
        flagged.make("openai/m")


def test_a_session_that_goes_on_elsewhere_gets_no_key_of_another_address(tmp_path: Path) -> None:
    Accounts(Settings(), {}, keys(tmp_path)).store("openai", CANARY)
    local = supply(tmp_path, {})
    assert local.first.chosen("openai/m", "http://127.0.0.1:1/v1") == "openai/m"
    assert headers(local, "openai/m") == {}
    far = supply(tmp_path, {})
    assert far.first.chosen("openai/m", "https://gateway.example/v1") is None
    with pytest.raises(ModelUnavailable, match="There is no key for openai"):
        far.make("openai/m")


def test_a_key_of_the_environment_comes_first(tmp_path: Path) -> None:
    told = Accounts(Settings(), {"OPENAI_API_KEY": "sk-env"}, keys(tmp_path)).store("openai", CANARY)
    assert "OPENAI_API_KEY in the environment takes precedence" in told
    assert CANARY not in told
    assert headers(supply(tmp_path, {"OPENAI_API_KEY": "sk-env"}), "openai/m") == {"authorization": "Bearer sk-env"}


def test_a_provider_of_the_user_can_have_a_stored_key(tmp_path: Path) -> None:
    office = {"office": {"base_url": "https://models.example.com/v1", "api_key_env": "OFFICE_KEY"}}
    Accounts(validated(Settings, {"providers": office}), {}, keys(tmp_path)).store("office", CANARY)
    assert headers(supply(tmp_path, {}, providers=office), "office/m") == {"authorization": f"Bearer {CANARY}"}


@pytest.mark.parametrize(
    ("provider", "key"), [("nobody", "sk-1"), ("openai", ""), ("openai", "two words"), ("openai", "“k”")]
)
def test_what_is_no_key_is_not_stored(tmp_path: Path, provider: str, key: str) -> None:
    with pytest.raises(AccountError) as caught:
        Accounts(Settings(), {}, keys(tmp_path)).store(provider, key)
    assert not key or key not in str(caught.value).replace("without blanks and without quotes", "")
    assert keys(tmp_path).entries() == ()


def test_a_stored_key_makes_its_provider_the_default(tmp_path: Path) -> None:
    accounts = Accounts(Settings(), {}, keys(tmp_path))
    assert main_model(Settings(), {}, accounts) is None
    accounts.store("groq", CANARY)
    assert main_model(Settings(), {}, accounts) == "groq/openai/gpt-oss-120b"
    assert (main_model(Settings(), {"OPENAI_API_KEY": "k"}, accounts) or "").startswith("openai/")
    assert main_model(Settings(), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, accounts) is None


def test_a_damaged_store_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{")
    models = supply(tmp_path, {"OPENAI_API_KEY": "k"})
    assert "damaged" in models.first.notices[0]
    assert headers(models, "openai/m") == {"authorization": "Bearer k"}
    with pytest.raises(ModelUnavailable, match="damaged"):
        models.make("anthropic/m")


# --- what is offered ------------------------------------------------------------------------------------------------


def test_usable_models_come_first_and_say_which_key_is_missing(tmp_path: Path) -> None:
    accounts = Accounts(Settings(), {"GROQ_API_KEY": "k"}, keys(tmp_path))
    running = LocalServer("ollama", "http://127.0.0.1:11434", (EndpointModel("qwen3:8b", maximum=40_960, tools=True),))
    found = offers(load_catalog(), accounts.all(), [running], NOW)
    assert found[0].ref == "ollama/qwen3:8b"
    assert (found[0].window, found[0].usable, found[0].running) == (40_960, True, "127.0.0.1:11434")
    groq = [offer for offer in found if offer.ref.startswith("groq/")]
    assert groq
    assert all(offer.variable == "GROQ_API_KEY" and offer.usable for offer in groq)
    usable = [offer.usable for offer in found]
    assert usable == sorted(usable, reverse=True)
    sonnet = next(offer for offer in found if offer.ref == "anthropic/claude-sonnet-5-5")
    assert (sonnet.key, sonnet.variable) == ("missing", "ANTHROPIC_API_KEY")
    assert sonnet.window == 1_000_000
    assert sonnet.rates is not None
    assert len({offer.ref for offer in found}) == len(found)


def test_nothing_is_said_of_models_at_an_address_that_is_not_the_providers(tmp_path: Path) -> None:
    accounts = Accounts(Settings(), {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, keys(tmp_path))
    assert not [offer for offer in offers(load_catalog(), accounts.all(), [], NOW) if offer.ref.startswith("openai/")]


# --- the doctor -----------------------------------------------------------------------------------------------------


async def report(models: ModelSupply, main: str | None, *, online: bool = False) -> tuple[str, bool]:
    made = await examine(models, main, online=online)
    return "\n".join(str(block) for block in made.blocks), made.healthy


async def test_the_doctor_names_providers_windows_and_keys_but_no_key(tmp_path: Path) -> None:
    accounts = Accounts(Settings(), {}, keys(tmp_path))
    accounts.store("anthropic", CANARY)
    office = {"office": {"base_url": "https://me:s3cret@models.example.com/v1", "headers": {"X-Key": CANARY}}}
    models = supply(tmp_path, {"OPENAI_API_KEY": CANARY}, providers=office)
    text, healthy = await report(models, "openai/gpt-6-sol")
    assert healthy
    for piece in (
        "from OPENAI_API_KEY",
        "stored",
        "1,050,000 tokens (the catalogue), server not contacted",
        "$2 in, $10 out per million tokens",
        "openai/gpt-6-sol is the model. /doctor online, or swecli doctor --online, contacts its server as well.",
    ):
        assert piece in text
    assert "https://models.example.com/v1" in text
    assert CANARY not in text
    assert "s3cret" not in text


async def test_the_doctor_says_what_is_missing(tmp_path: Path) -> None:
    text, healthy = await report(supply(tmp_path, {}, model={"name": "openai/m"}), "openai/m")
    assert not healthy
    assert "missing: OPENAI_API_KEY" in text
    text, healthy = await report(supply(tmp_path, {}), None)
    assert not healthy
    assert "No model is configured. Set OPENAI_API_KEY" in text
    own = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    text, healthy = await report(supply(tmp_path, own), None)
    assert not healthy
    assert "openai has no default model at your own address" in text
    assert "Select one with swecli -m openai/NAME" in text
    text, healthy = await report(supply(tmp_path, {}), "nobody/m")
    assert not healthy
    assert "its provider is unknown" in text


async def test_online_each_provider_is_asked(tmp_path: Path) -> None:
    listing = {"object": "list", "data": [{"id": "qwen", "object": "model", "max_model_len": 4096}]}
    async with serve_json({"/v1/models": listing}) as server:
        models = supply(tmp_path, {"VLLM_BASE_URL": server.url})
        text, healthy = await report(models, "vllm/qwen", online=True)
        assert healthy
        assert "4,096 tokens (reported by the server)" in text
        assert "not asked" not in text
        assert "reached, 1 model'" in text
        text, healthy = await report(models, None, online=True)  # its only model needs no choice in a session
        assert not healthy
        assert f"{server.url}/v1: reached, 1 model" in text
        text, _ = await report(models, "vllm/other", online=True)
        assert "other is not listed" in text
        server.routes["/v1/models"] = Reply(b"{}", 503)
        text, healthy = await report(models, "vllm/qwen", online=True)
        assert not healthy
        assert "status 503" in text
        assert f"{server.url}/v1: no models listed, see below" in text
        text, _ = await report(models, None, online=True)
        assert f"{server.url}/v1: no models listed, see below" in text
