from __future__ import annotations

import pytest
from msgspec.structs import replace

from swecli.core.llm.addresses import is_local, normalise
from swecli.core.llm.catalog import load_catalog
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.protocols.registry import PROTOCOLS, decoder_for, request_builder
from swecli.core.llm.providers import (
    BadModelReference,
    BadProviderSetting,
    MissingKey,
    Overrides,
    ProviderConfig,
    UnknownProvider,
    configured_providers,
    default_model,
    known_providers,
    resolve,
)
from swecli.core.llm.types import ModelInfo
from swecli.core.llm.windows import look_up_model
from swecli.core.protocol.messages import Origin


def protocol_and_url(config: ClientConfig) -> tuple[str, str]:
    return config.target.origin.protocol, config.base_url


class TestOpenAI:
    env = {"OPENAI_API_KEY": "sk-1"}

    def test_own_host_speaks_responses(self) -> None:
        config = resolve("openai/gpt-6-sol", self.env)
        assert protocol_and_url(config) == ("openai-responses", "https://api.openai.com/v1")
        assert config.headers == {"authorization": "Bearer sk-1"}
        assert config.info == ModelInfo("openai", "gpt-6-sol", 1050000, 128000, "catalogue", True)

    def test_own_host_by_variable_speaks_responses(self) -> None:
        config = resolve("openai/x", {**self.env, "OPENAI_BASE_URL": "https://api.openai.com/v1/"})
        assert protocol_and_url(config) == ("openai-responses", "https://api.openai.com/v1")

    @pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8000", "127.0.0.1:8000/v1/"])
    def test_any_other_address_speaks_chat(self, url: str) -> None:
        config = resolve("openai/x", {**self.env, "OPENAI_BASE_URL": url})
        assert protocol_and_url(config) == ("openai-chat", "http://127.0.0.1:8000/v1")
        assert protocol_and_url(resolve("openai/x", self.env, overrides=Overrides(base_url=url))) == (
            "openai-chat",
            "http://127.0.0.1:8000/v1",
        )

    def test_protocol_can_be_said(self) -> None:
        chat = resolve("openai/x", self.env, overrides=Overrides(protocol="openai-chat"))
        assert protocol_and_url(chat) == ("openai-chat", "https://api.openai.com/v1")
        local = Overrides(protocol="openai-responses", base_url="http://localhost:1")
        assert protocol_and_url(resolve("openai/x", self.env, overrides=local)) == (
            "openai-responses",
            "http://localhost:1/v1",
        )
        with pytest.raises(BadProviderSetting, match="openai-chat"):
            resolve("openai/x", self.env, overrides=Overrides(protocol="telepathy"))

    def test_local_server_needs_no_key(self) -> None:
        assert resolve("openai/x", {"OPENAI_BASE_URL": "http://127.0.0.1:1"}).headers == {}


def test_anthropic() -> None:
    config = resolve("anthropic/claude-haiku-4-5", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://h:1/v1"})
    assert protocol_and_url(config) == ("anthropic-messages", "http://h:1")
    assert config.headers == {"x-api-key": "k"}
    assert config.info.window == 200000


def test_gemini_and_ollama() -> None:
    config = resolve("gemini/gemini-3.8-flash", {"GEMINI_API_KEY": "k"})
    assert config.headers == {"x-goog-api-key": "k"}
    assert config.base_url.endswith("/v1beta")
    config = resolve("ollama/qwen3", {"OLLAMA_HOST": "0.0.0.0"})
    assert protocol_and_url(config) == ("ollama-chat", "http://127.0.0.1:11434")
    assert config.info.window_source == "assumed"
    assert config.target.window == config.info.window == 32000


def test_model_names_may_have_slashes() -> None:
    config = resolve("openrouter/anthropic/claude-sonnet-5.5", {"OPENROUTER_API_KEY": "k"})
    assert config.target.origin.model == "anthropic/claude-sonnet-5.5"
    assert config.info.window == 1000000
    assert config.target.dialect.cache_control


def test_every_known_provider_resolves() -> None:
    for name, provider in known_providers().items():
        env = dict.fromkeys(provider.api_key_env, "k")
        config = resolve(f"{name}/some-model", env, stored_key=lambda name, origin: "word")
        origin = config.target.origin
        assert origin.protocol in PROTOCOLS
        decoder_for(origin.protocol, origin)
        request_builder(origin.protocol)
        assert not config.base_url.endswith("/")
        assert provider.local or config.base_url.startswith("https://")


def test_usual_models_are_known_current_and_take_tools() -> None:
    for name, provider in known_providers().items():
        if not provider.default_model:
            continue
        found = load_catalog().lookup(name, provider.default_model)
        assert found is not None, provider.default_model
        assert not found.model.deprecated, provider.default_model
        assert found.model.tools is not False


class TestMistakes:
    @pytest.mark.parametrize("name", ["open ai/gpt", "openai/ gpt", "openai/a\nb", "openai/a\tb", "openai/\x1b[31m"])
    def test_a_name_is_printable_and_a_provider_one_word(self, name: str) -> None:
        with pytest.raises(BadModelReference, match="is not a model: write provider/name"):
            resolve(name, {"OPENAI_API_KEY": "k"})

    def test_a_server_may_have_names_with_spaces(self) -> None:
        assert resolve("openai/my model", {"OPENAI_API_KEY": "k"}).target.origin.model == "my model"

    def test_a_login_in_the_address_takes_the_place_of_a_key(self) -> None:
        environment = {"OPENAI_BASE_URL": "http://u:p@127.0.0.1:1/v1", "ANTHROPIC_BASE_URL": "http://u:p@127.0.0.1:1"}
        stored = resolve("openai/m", environment, stored_key=lambda _provider, _origin: "k")
        assert stored.key == "address"
        other = resolve("anthropic/m", environment, stored_key=lambda _provider, _origin: "k")
        assert other.key == "stored", "its key has a header of its own"

    def test_missing_key(self) -> None:
        with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
            resolve("anthropic/x", {"OPENAI_API_KEY": "sk-1"})
        with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
            resolve("openai/x", {"OPENAI_API_KEY": "  "})

    def test_unknown_provider(self) -> None:
        with pytest.raises(UnknownProvider, match="Did you mean anthropic/x"):
            resolve("antropic/x", {})

    def test_an_address_is_no_model(self) -> None:
        with pytest.raises(UnknownProvider, match=r"start swecli with --base-url http://127\.0\.0\.1:8000/v1$"):
            resolve("http://127.0.0.1:8000/v1", {})

    @pytest.mark.parametrize("reference", ["gpt-5", "", "openai", "openai/", "/x"])
    def test_no_reference(self, reference: str) -> None:
        with pytest.raises((BadModelReference, MissingKey, UnknownProvider)):
            resolve(reference, {})

    def test_a_key_with_stray_characters_is_named_but_not_shown(self) -> None:
        for key in ("sk-\u201csecret\u201d", "sk secret", "sk-secret\x07"):
            with pytest.raises(BadProviderSetting) as caught:
                resolve("openai/x", {"OPENAI_API_KEY": key})
            assert "OPENAI_API_KEY" in str(caught.value)
            assert "secret" not in str(caught.value)

    def test_bad_address(self) -> None:
        with pytest.raises(BadProviderSetting, match="OPENAI_BASE_URL"):
            resolve("openai/x", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "ftp://x"})
        with pytest.raises(BadProviderSetting, match="--base-url"):
            resolve("openai/x", {"OPENAI_API_KEY": "k"}, overrides=Overrides(base_url="http://[::1"))


def test_keys_are_not_in_representations() -> None:
    config = resolve("openai/x", {"OPENAI_API_KEY": "sk-secret"})
    assert "sk-secret" not in repr(config)


def test_the_source_of_the_key_is_known() -> None:
    local = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    stored = resolve("openai/m", local, stored_key=lambda provider, origin: "sk-x")
    assert (stored.key, resolve("openai/m", local).key) == ("stored", "none")
    given = resolve("gemini/m", {"GOOGLE_API_KEY": "sk-x"}, stored_key=lambda provider, origin: "sk-y")
    assert (given.key, given.key_variables) == ("environment", ("GOOGLE_API_KEY",))


def test_no_key_is_borrowed_from_another_provider() -> None:
    variables = [name for provider in known_providers().values() for name in provider.api_key_env]
    env = {name: f"key-{name}" for name in variables}
    for name, provider in known_providers().items():
        if provider.sign_in:
            continue
        config = resolve(f"{name}/m", env)
        assert [value for value in config.headers.values() if "key-" in value]
        assert all(provider.api_key_env[0] in value for value in config.headers.values())


def test_custom_provider() -> None:
    custom = ProviderConfig(
        "mine", "openai-chat", "https://llm.example/api", ("MINE_KEY",), {"X-Team": "a"}, window=64000, max_output=100
    )
    config = resolve("mine/m", {"MINE_KEY": "k"}, [custom])
    assert config.base_url == "https://llm.example/api"
    assert config.headers == {"authorization": "Bearer k", "x-team": "a"}
    assert (config.info.window, config.info.window_source, config.info.max_output) == (64000, "user", 100)
    with pytest.raises(MissingKey, match="MINE_KEY"):
        resolve("mine/m", {}, [custom])
    with pytest.raises(BadProviderSetting, match="X-Bad"):
        resolve("bad/m", {}, [ProviderConfig("bad", "openai-chat", "http://h", headers={"X-Bad": "a\nb"})])
    moved = replace(known_providers()["openai"], base_url="http://h:1")
    assert protocol_and_url(resolve("openai/m", {}, [moved])) == ("openai-chat", "http://h:1/v1")
    replaced = ProviderConfig("openai", "openai-chat", "http://h:1/v1")
    assert protocol_and_url(resolve("openai/m", {"OPENAI_API_KEY": "sk"}, [replaced])) == (
        "openai-chat",
        "http://h:1/v1",
    )
    assert resolve("openai/m", {"OPENAI_API_KEY": "sk"}, [replaced]).headers == {}


def test_configured_providers() -> None:
    assert configured_providers({}) == ()
    assert default_model({}) == ""
    found = configured_providers({"GROQ_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": " "})
    assert [provider.name for provider in found] == ["anthropic", "groq"]
    assert default_model({"GROQ_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}).startswith("anthropic/claude-")
    local = configured_providers({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1"})
    assert [(provider.name, provider.default_model) for provider in local] == [("openai", "")]


def test_a_server_of_ones_own_comes_before_the_default_of_a_provider_with_a_key() -> None:
    key = {"ANTHROPIC_API_KEY": "k"}
    for address in ("http://127.0.0.1:1", "https://llm.example.com/v1", "htp://x"):
        assert default_model({**key, "OPENAI_BASE_URL": address}) == ""
        assert default_model({**key, "OPENAI_API_KEY": "k", "ANTHROPIC_BASE_URL": address}) == ""
    for harmless in (
        {"OPENAI_BASE_URL": "https://api.openai.com/v1"},
        {"GEMINI_BASE_URL": "http://127.0.0.1:1"},
        {"OLLAMA_HOST": "0.0.0.0"},
    ):
        assert default_model({**key, **harmless}).startswith("anthropic/claude-")


@pytest.mark.parametrize(
    ("url", "protocol", "expected"),
    [
        ("https://api.z.ai/api/paas/v4/", "openai-chat", "https://api.z.ai/api/paas/v4"),
        ("https://h/v1/chat/completions", "openai-chat", "https://h/v1"),
        ("https://h", "openai-responses", "https://h/v1"),
        ("https://h/api/v1/v1/", "openai-chat", "https://h/api/v1"),
        ("https://h/anthropic", "anthropic-messages", "https://h/anthropic"),
        ("https://h/anthropic/v1/messages", "anthropic-messages", "https://h/anthropic"),
        ("https://h", "gemini-generate", "https://h/v1beta"),
        ("myhost:1234", "ollama-chat", "http://myhost:1234"),
        ("https://ollama.example", "ollama-chat", "https://ollama.example"),
        ("http://h:11434/v1", "ollama-chat", "http://h:11434"),
        ("llm.example.com/v1", "openai-chat", "https://llm.example.com/v1"),
        ("localhost:8000", "openai-chat", "http://localhost:8000/v1"),
    ],
)
def test_base_urls(url: str, protocol: str, expected: str) -> None:
    assert normalise(url, protocol) == expected
    assert normalise(expected, protocol) == expected


def test_local_addresses() -> None:
    assert all(is_local(f"http://{host}/v1") for host in ("localhost:1", "127.0.0.1", "10.0.0.2", "[::1]:8", "box"))
    assert not any(is_local(f"https://{host}/v1") for host in ("api.openai.com", "8.8.8.8"))


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("claude-sonnet-5-5", 1000000),
        ("claude-opus-4-5-20251101", 200000),
        ("claude-3-5-haiku-latest", 200000),
        ("gpt-5.4-mini", 400000),
        ("gpt-5", 400000),
        ("openai/gpt-oss-120b", 131072),
        ("accounts/fireworks/models/kimi-k2p7-code", 262144),
        ("zai-org/GLM-5.3", 1000000),
        ("never-heard-of", 32000),
    ],
)
def test_windows(name: str, window: int) -> None:
    info = look_up_model("p", name)
    assert info.window == window
    assert info.window_source == ("assumed" if name == "never-heard-of" else "catalogue")


def test_unknown_protocols_are_refused() -> None:
    with pytest.raises(ValueError, match="openai-chat"):
        decoder_for("nonsense", Origin("nonsense", "", ""))
    with pytest.raises(ValueError, match="openai-chat"):
        request_builder("nonsense")


@pytest.mark.parametrize(
    ("reference", "example"), [("/status", "openai/status"), ("gpt", "openai/gpt"), ("/", "openai/NAME")]
)
def test_a_reference_without_a_provider_gets_an_example(reference: str, example: str) -> None:
    with pytest.raises(BadModelReference) as caught:
        resolve(reference, {})
    assert f"Model {reference!r} is unknown" in str(caught.value)
    assert str(caught.value).endswith(example)


def test_a_model_is_the_same_however_it_is_reached() -> None:
    one, other = ModelInfo("p", "m", 4096), ModelInfo("p", "m", 8192)
    same = ModelInfo("p", "m", 4096, address="http://127.0.0.1:1/v1", efforts=("low",))
    assert (one == same, one != same, one == other, one != other) == (True, False, False, True)
