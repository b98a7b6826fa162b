"""From settings to clients: aliases, the user's own providers, what holds for single models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.assembly import first_model, offered_models
from swecli.assembly.doctor import examine
from swecli.assembly.models import ModelSupply
from swecli.assembly.offered_models import why_unlisted
from swecli.commands.models import price as price_of
from swecli.core.config.key_store import KeyStore
from swecli.core.config.settings import Settings, side_models
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.llm.client import HttpModelClient
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.offers import Account, KeyState
from swecli.core.llm.providers import known_providers
from swecli.core.llm.servers import (
    PATIENT_SECONDS,
    Endpoint,
    LocalServer,
    ModelList,
)
from swecli.core.llm.transport import SECONDS
from swecli.core.protocol.messages import Usage
from swecli.core.validation import validated
from swecli.launch import LaunchOptions, StartError

OPTIONS = LaunchOptions(Path("/proj"))


@pytest.fixture(autouse=True)
def no_local_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs on this machine offers nothing to the tests."""

    async def nothing(seconds: float) -> tuple[()]:
        return ()

    monkeypatch.setattr(offered_models, "find_local_servers", nothing)


KEYS = {"OPENAI_API_KEY": "k", "OFFICE_KEY": "o"}


def settings(**sections: Any) -> Settings:
    return validated(Settings, sections)


NO_KEYS = KeyStore(Path("/nowhere"))


def supply(chosen: Settings, options: LaunchOptions = OPTIONS, environment: Mapping[str, str] = KEYS) -> ModelSupply:
    return ModelSupply(options, chosen, environment, Path("/nowhere"), NO_KEYS)


def client(reference: str, chosen: Settings, options: LaunchOptions = OPTIONS) -> HttpModelClient:
    made = supply(chosen, options).make(reference)
    assert isinstance(made, HttpModelClient)
    return made


OFFICE = {
    "protocol": "openai-chat",
    "base_url": "https://models.example.com/v1",
    "api_key_env": "OFFICE_KEY",
    "window": 50_000,
    "max_output": 4_000,
    "dialect": {"max_tokens_field": "max_completion_tokens", "body": {"top_k": 20}},
}


def test_a_provider_of_the_user_has_its_window_and_its_dialect() -> None:
    config = client("office/m", settings(providers={"office": OFFICE})).config
    assert (config.info.window, config.info.max_output, config.info.window_source) == (50_000, 4_000, "user")
    assert config.target.dialect.max_tokens_field == "max_completion_tokens"
    assert config.target.dialect.body == {"top_k": 20}


def test_the_window_of_one_model_comes_before_that_of_its_provider() -> None:
    chosen = settings(providers={"office": OFFICE}, models={"window": {"office/m": 9_000}})
    assert client("office/m", chosen).info.window == 9_000
    assert client("office/n", chosen).info.window == 50_000


def test_an_alias_is_the_model_that_it_names() -> None:
    chosen = settings(model={"name": "quick"}, models={"aliases": {"quick": "openai/gpt-x"}})
    assert supply(chosen, environment={}).first.chosen() == "openai/gpt-x"
    assert client("quick", chosen).info.ref == client("main", chosen).info.ref == "openai/gpt-x"
    with pytest.raises(ModelUnavailable, match="provider/name"):
        client("slow", chosen)


def test_a_base_url_of_the_command_line_holds_for_the_first_model_only() -> None:
    chosen = settings(model={"name": "openai/a"})
    options = LaunchOptions(Path("/proj"), base_url="http://127.0.0.1:1/v1")
    assert client("main", chosen, options).config.base_url == "http://127.0.0.1:1/v1"
    assert client("openai/b", chosen, options).config.base_url == "https://api.openai.com/v1"


def test_a_model_that_goes_on_is_asked_where_it_was_asked_before() -> None:
    here = "http://127.0.0.1:1/v1"
    going = supply(settings(), environment={})
    assert going.first.chosen("openai/x", here) == "openai/x"
    assert asked_at(going, "openai/x") == here
    assert asked_at(supply(settings()), "openai/x") == "https://api.openai.com/v1"
    moved = supply(settings(), environment={"OPENAI_BASE_URL": "http://127.0.0.1:3/v1"})
    assert moved.first.chosen("openai/x", here) == "openai/x"
    assert asked_at(moved, "openai/x") == "http://127.0.0.1:3/v1"
    assert f"this session used {here} before" in " ".join(moved.first.notices)
    away = supply(settings(), environment={"OPENAI_BASE_URL": "https://gateway.example/v1", "OPENAI_API_KEY": "k"})
    assert away.first.chosen("openai/x", here) == "openai/x"
    assert asked_at(away, "openai/x") == here
    flagged = supply(settings(), LaunchOptions(Path("/proj"), base_url="http://127.0.0.1:2/v1"))
    assert flagged.first.chosen("openai/x", here) == "openai/x"
    assert asked_at(flagged, "openai/x") == "http://127.0.0.1:2/v1"


def asked_at(models: ModelSupply, reference: str) -> str:
    made = models.make(reference)
    assert isinstance(made, HttpModelClient)
    return made.config.base_url


def test_another_model_than_before_is_asked_elsewhere_only_with_a_word() -> None:
    going = supply(settings(model={"name": "openai/y"}), LaunchOptions(Path("/proj"), model="openai/y"))
    assert going.first.chosen("openai/x", "http://127.0.0.1:1/v1") == "openai/y"
    assert "went to http://127.0.0.1:1/v1 before; openai/y now uses the provider's own" in " ".join(going.first.notices)


def test_a_model_that_is_gone_is_told_and_replaced_unless_it_was_a_server_of_ones_own() -> None:
    usual = settings(model={"name": "openai/usual"})
    going = supply(usual)
    assert going.first.chosen("anthropic/gone") == "openai/usual"
    assert "anthropic/gone can't be used. There is no key" in " ".join(going.first.notices)
    own = supply(usual)
    assert own.first.chosen("gone/x", "http://127.0.0.1:1/v1") is None
    assert "go to another model only if you choose one" in " ".join(own.first.notices)
    with pytest.raises(StartError, match="session's model gone/x"):
        supply(usual, LaunchOptions(Path("/proj"), headless=True)).first.chosen("gone/x", "http://127.0.0.1:1/v1")


def test_a_local_server_may_think_for_long_before_its_first_word() -> None:
    local = settings(providers={"mine": {"base_url": "http://127.0.0.1:9/v1"}})
    assert client("mine/m", local).config.timeouts.first == 3600
    assert client("mine/m", local).config.timeouts.idle == 120
    assert (client("openai/m", settings()).config.timeouts.first or 0) <= 600
    patient = settings(model={"first_token_timeout": 7.0, "stall_timeout": 8.0})
    assert (client("openai/m", patient).config.timeouts.first, client("openai/m", patient).config.timeouts.idle) == (
        7,
        8,
    )


def test_effort_is_that_of_the_model_else_for_the_main_model_the_general_one() -> None:
    chosen = settings(model={"name": "a/b", "effort": "low"}, models={"effort": {"c/d": "high"}})
    assert [supply(chosen).configs.effort_of(model) for model in ("a/b", "c/d", "e/f")] == ["low", "high", None]


def test_models_for_work_beside_the_conversation() -> None:
    assert side_models(settings()) == {}
    chosen = settings(model={"summary": "x", "small": "summary"}, models={"aliases": {"x": "a/b"}})
    assert side_models(chosen) == {"summary": "a/b", "small": "a/b"}


def test_the_settings_may_name_a_model_without_its_provider() -> None:
    anthropic, headless = {"ANTHROPIC_API_KEY": "k"}, LaunchOptions(Path("/proj"), headless=True)
    models = supply(settings(model={"name": "opus", "small": "haiku"}), headless, anthropic)
    chosen = models.first.chosen()
    assert chosen is not None
    assert chosen.startswith("anthropic/claude-opus-")
    assert models.first.remarks == (f"opus is {chosen}.",)
    small = models.make(side_models(settings(model={"small": "haiku"}))["small"])
    assert small.info.ref.startswith("anthropic/claude-haiku-")
    usage = Usage(input_total=1_000, output_total=1_000)
    assert models.prices("haiku", usage) == models.prices(small.info.ref, usage) is not None
    with pytest.raises(StartError, match="Model 'nonsense' is unknown"):
        supply(settings(model={"name": "nonsense"}), headless, anthropic).first.chosen()


def test_without_any_model_a_run_without_a_screen_says_what_to_do() -> None:
    assert supply(settings(), environment={}).first.chosen() is None
    with pytest.raises(StartError, match="OPENAI_API_KEY"):
        supply(settings(), LaunchOptions(Path("/proj"), headless=True), {}).first.chosen()


@pytest.mark.parametrize("key", [{}, {"OPENAI_API_KEY": "k"}])
def test_at_an_address_of_ones_own_a_model_has_to_be_named(key: Mapping[str, str]) -> None:
    environment = {**key, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    headless = LaunchOptions(Path("/proj"), headless=True)
    with pytest.raises(StartError) as raised:
        supply(settings(), headless, environment).first.chosen()
    text = str(raised.value)
    assert "No model selected" in text
    assert "swecli -m openai/NAME" in text
    assert "Set OPENAI_API_KEY" not in text


async def test_a_provider_without_a_name_is_no_model() -> None:
    chosen = settings(model={"name": "llamacpp"}, providers={"office": OFFICE})
    assert not [offer.ref for offer in await supply(chosen).offered.query() if offer.ref.endswith("/")]


async def test_models_that_the_settings_name_are_offered_with_what_is_said_of_them() -> None:
    chosen = settings(
        model={"name": "fast", "fallback": ("openai/gpt-6-sol",)},
        models={
            "aliases": {"fast": "office/quick"},
            "price": {"office/big": {"input": 1.5, "output": 2}},
            "window": {"office/big": 70_000},
        },
        providers={"office": OFFICE},
    )
    found = {offer.ref: offer for offer in await supply(chosen).offered.query() if not offer.running}
    assert list(found)[:3] == ["office/quick", "openai/gpt-6-sol", "office/big"]
    assert (found["office/quick"].window, found["office/quick"].rates) == (50_000, None)
    rates = found["office/big"].rates
    assert rates is not None
    assert (found["office/big"].window, str(rates.input)) == (70_000, "1.5")


@pytest.mark.parametrize(
    ("listing", "key", "said"),
    [
        (ModelList((), "", 200), "environment", "lists no models. Type openai/NAME if you know one."),
        (
            ModelList((), "the answer to /models is not JSON", 200),
            "stored",
            "lists no models (the answer to /models is not",
        ),
        (
            ModelList((), "status 401 for /models", 401),
            "environment",
            "rejects OPENAI_API_KEY (status 401 for /models). Restart swecli with another key in it, or without it and",
        ),
        (ModelList((), "status 401 for /models", 401), "stored", "rejects the stored key (status 401"),
        (
            ModelList((), "status 301 for /models, which redirects to http://i/v1/models", 301),
            "stored",
            "redirects to http://i/v1/models). Use that address; swecli does not follow redirects.",
        ),
        (
            ModelList((), "status 403 for /models", 403),
            "not needed",
            "requires a key (status 403 for /models). Set OPENAI_",
        ),
        (
            ModelList((), "no connection to h: refused."),
            "environment",
            ": no connection to h: refused. Start the server",
        ),
    ],
)
def test_a_server_without_a_list_is_named_with_what_helps(listing: ModelList, key: KeyState, said: str) -> None:
    variable = "" if key == "stored" else "OPENAI_API_KEY"
    account = Account(known_providers()["openai"], "http://h/v1", "openai-chat", key, variable)
    sentence = why_unlisted(account, listing)
    assert said in sentence
    assert sentence.startswith("openai at http://")
    assert "/v1." not in sentence.partition(". ")[2], "who has that ending needs no advice about it"


@pytest.mark.parametrize("status", [0, 200, 301, 401])
def test_a_login_in_the_address_is_not_shown_and_named_as_what_was_rejected(status: int) -> None:
    account = Account(known_providers()["openai"], "http://u:secret@h/v1", "openai-chat", "stored")
    sentence = why_unlisted(account, ModelList((), f"status {status}", status))
    assert sentence.startswith("openai at http://h/v1")
    assert "secret" not in sentence
    assert ("rejects the name and password in its base URL" in sentence) == (status == 401)
    assert "the stored key" not in sentence


@pytest.mark.parametrize("model", [None, "openai/m"])
async def test_a_slow_server_is_waited_for_longer_while_there_is_no_model(
    model: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def listed(endpoint: object, seconds: float = SECONDS) -> ModelList:
        waits.append(seconds)
        return ModelList((), "", 200)

    monkeypatch.setattr(offered_models, "list_models", listed)
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    supply = ModelSupply(
        LaunchOptions(tmp_path, model=model),
        validated(Settings, {"model": {"name": model}}),
        environment,
        tmp_path,
        KeyStore(tmp_path, keyring=lambda: None),
    )
    await supply.offered.query()
    assert waits == [offered_models.PATIENT_SECONDS if model is None else SECONDS]


@pytest.mark.parametrize(("owner", "price"), [("llamacpp", "free"), ("", "?")])
async def test_a_known_program_at_an_own_address_of_this_machine_is_free(
    owner: str, price: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at its usual port; a gateway may pass requests on to whoever bills them."""

    async def listed(endpoint: object, seconds: float = SECONDS) -> ModelList:
        return ModelList((EndpointModel("m.gguf", server=owner),), "", 200)

    monkeypatch.setattr(offered_models, "list_models", listed)
    environment = {"LLAMACPP_BASE_URL": "http://127.0.0.1:1/v1"}
    keys = KeyStore(tmp_path, keyring=lambda: None)
    supply = ModelSupply(LaunchOptions(tmp_path), Settings(), environment, tmp_path, keys)
    [offer] = [offer for offer in await supply.offered.query(nearby=False) if offer.usable]
    assert price_of(offer) == price


async def test_only_models_that_chat_are_offered_but_all_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("chatty-1", "whisper-1", "tts-1", "text-embedding-3-small")

    async def listed(endpoint: object, seconds: float = SECONDS) -> ModelList:
        return ModelList(tuple(map(EndpointModel, names)), "", 200)

    monkeypatch.setattr(offered_models, "list_models", listed)
    supply = ModelSupply(
        LaunchOptions(tmp_path),
        validated(Settings, {"model": {"name": "openai/tts-1"}}),
        {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
        tmp_path,
        KeyStore(tmp_path, keyring=lambda: None),
    )
    assert {offer.ref for offer in await supply.offered.query() if offer.listed} == {"openai/chatty-1", "openai/tts-1"}
    assert supply.make("whisper-1").info.ref == "openai/whisper-1"


async def test_an_address_that_is_none_is_named_like_a_server_that_does_not_answer(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path, keyring=lambda: None)
    supply = ModelSupply(LaunchOptions(tmp_path), Settings(), {"OPENAI_BASE_URL": "htp://h"}, tmp_path, keys)
    await supply.offered.query()
    assert [problem.partition(";")[0] for problem in supply.offered.unlisted] == [
        "OPENAI_BASE_URL: 'htp://h' is not an http or https address"
    ]
    report = await examine(supply, None, online=False)
    assert "OPENAI_BASE_URL: 'htp://h' is not" in str(report.blocks)


def test_a_server_nearby_gets_no_key_and_no_model_of_another_provider(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path, keyring=lambda: None)
    environment = {"ANTHROPIC_API_KEY": "k"}
    chosen = {
        url: ModelSupply(LaunchOptions(tmp_path, base_url=url), Settings(), environment, tmp_path, keys).first.chosen()
        for url in ("http://127.0.0.1:1/v1", "localhost:1", "https://gateway.example.com/anthropic")
    }
    assert list(chosen.values())[:2] == [None, None]
    assert (chosen["https://gateway.example.com/anthropic"] or "").startswith("anthropic/")


NEARBY = LocalServer("llamacpp", "http://127.0.0.1:8080/v1", (EndpointModel("qwen", chats=True),))


@pytest.fixture
def nearby(monkeypatch: pytest.MonkeyPatch) -> None:
    async def servers(seconds: float) -> tuple[LocalServer, ...]:
        return (NEARBY,)

    async def listening() -> tuple[str, ...]:
        return ("127.0.0.1:8080",)

    monkeypatch.setattr(offered_models, "find_local_servers", servers)
    monkeypatch.setattr(first_model, "listening", listening)


async def test_a_server_nearby_that_still_loads_its_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = LocalServer("llamacpp", "http://127.0.0.1:8080/v1", (), loading=True)

    async def servers(seconds: float = 1) -> tuple[LocalServer, ...]:
        return (found,)

    async def listening() -> tuple[str, ...]:
        return ("127.0.0.1:8080",)

    monkeypatch.setattr(offered_models, "find_local_servers", servers)
    monkeypatch.setattr(offered_models, "listening", listening)
    chosen = supply(settings(), environment={})
    assert not [offer for offer in await chosen.offered.query() if offer.running]
    assert "The server at 127.0.0.1:8080 still loads its model; /model lists it when it has." in chosen.offered.unlisted
    nearby = chosen.catalog().nearby
    loads = await nearby()
    assert await nearby() == loads
    found = NEARBY
    assert await nearby() != loads
    await chosen.offered.query()
    assert await nearby() == loads


@pytest.mark.usefixtures("nearby")
def test_a_server_that_nobody_named_is_named_before_it_is_asked() -> None:
    texts: list[str] = []
    headless = supply(settings(), replace(OPTIONS, headless=True), environment={})
    assert headless.first.chosen(say=texts.append) == "llamacpp/qwen"
    assert texts == ["No model is configured; asking 127.0.0.1:8080 for models."]
    assert "llamacpp/qwen at http://127.0.0.1:8080/v1" in headless.first.remarks[0]


@pytest.mark.usefixtures("nearby")
def test_where_somebody_can_be_asked_it_is_not_used_without_a_word() -> None:
    plain = supply(settings(), replace(OPTIONS, plain=True), environment={})
    assert plain.first.chosen(say=lambda _text: None) is None
    assert "llamacpp/qwen answers at http://127.0.0.1:8080/v1: /model llamacpp/qwen uses it" in plain.first.notices[0]


@pytest.mark.usefixtures("nearby")
def test_beside_a_server_of_ones_own_no_other_is_asked() -> None:
    environment = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": ""}
    texts: list[str] = []
    with pytest.raises(StartError, match="No model selected"):
        supply(settings(), replace(OPTIONS, headless=True), environment).first.chosen(say=texts.append)
    assert texts == []


async def test_a_name_is_looked_up_patiently_and_a_silent_server_is_no_unknown_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []

    async def no_answer(endpoint: Endpoint, seconds: float = SECONDS) -> ModelList:
        waits.append(seconds)
        return ModelList(problem="the server did not answer in time")

    monkeypatch.setattr(offered_models, "list_models", no_answer)
    environment = {"VLLM_BASE_URL": "http://127.0.0.1:1/v1"}
    named = supply(settings(), replace(OPTIONS, headless=True, model="qwen"), environment)
    with pytest.raises(StartError) as failed:
        await asyncio.to_thread(named.first.chosen)
    assert waits == [PATIENT_SECONDS]
    assert "did not answer in time" in str(failed.value)
    assert "is unknown" not in str(failed.value)


def test_an_unknown_provider_is_named_as_such() -> None:
    options = replace(OPTIONS, headless=True, model="opnai/gpt-5")
    with pytest.raises(StartError, match=r"Provider 'opnai' is unknown\. Did you mean openai/gpt-5"):
        supply(settings(model={"name": "opnai/gpt-5"}), options).first.chosen()
