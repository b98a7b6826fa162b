"""Which window counts, and what is kept of overflow errors."""

from __future__ import annotations

import json
import os
import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from swecli.core.llm.catalog import CatalogMatch, common_name, load_catalog
from swecli.core.llm.model_listings import EndpointModel
from swecli.core.llm.types import ASSUMED_WINDOW
from swecli.core.llm.windows import (
    KnownWindow,
    LearnedWindow,
    LearnedWindows,
    choose_window,
    host_key,
    listed_window,
    load_windows,
    look_up_model,
    model_info,
)
from tests.core.llm.support import classify
from tests.support.locked import locked_while_writing

SELECTION = Path(__file__).resolve().parents[3] / "scripts" / "catalog_selection.toml"
DAY = date(2026, 11, 21)
ASKED = EndpointModel("m", 5000, 9000, 700, images=True, where="/props")
ONLY_MAXIMUM = EndpointModel("m", None, 9000, where="/api/show")
LEARNED = LearnedWindow(7000, "2026-11-20")


def listed(name: str = "anthropic/claude-haiku-4-5") -> KnownWindow:
    provider, _, model = name.partition("/")
    known = listed_window(provider, model, load_catalog().lookup(provider, model))
    assert known is not None
    return known


# --- precedence ----------------------------------------------------------------------------------------------------


def test_each_source_counts_before_the_next() -> None:
    catalogue = listed()
    first = choose_window(3000, ASKED, LEARNED, catalogue)
    assert (first.tokens, first.source) == (3000, "user")
    second = choose_window(None, ASKED, LEARNED, catalogue)
    assert (second.tokens, second.source, second.detail) == (5000, "endpoint", "/props")
    third = choose_window(None, None, LEARNED, catalogue)
    assert (third.tokens, third.source, third.detail) == (7000, "learned", "an error of 2026-11-20")
    fourth = choose_window(None, None, None, catalogue)
    assert (fourth.tokens, fourth.source) == (200_000, "catalogue")
    assert "genai-prices of 2026-" in fourth.detail
    last = choose_window()
    assert (last.tokens, last.source) == (ASSUMED_WINDOW, "assumed")


def test_what_the_model_can_do_at_most_caps_what_the_server_did_not_say() -> None:
    assert choose_window(None, ONLY_MAXIMUM, LearnedWindow(50_000, "2026-11-20")).tokens == 9000
    assert choose_window(None, ONLY_MAXIMUM, None, listed()).tokens == 9000
    assert choose_window(None, ONLY_MAXIMUM).tokens == 9000
    assert choose_window(None, EndpointModel("m", None, 262_144)).tokens == ASSUMED_WINDOW
    assert choose_window(50_000, ONLY_MAXIMUM).tokens == 50_000


def test_a_catalogue_entry_without_a_window_has_the_one_of_its_name() -> None:
    assert listed("groq/llama-3.3-70b-versatile").tokens == 131_072
    entry = structs.replace(load_catalog().models[0], window=None)
    assert listed_window("p", "nobody-knows-this", CatalogMatch(entry, "exact")) is None


PEOPLE_HAVE = """
openai gpt-4 8192 | gpt-4-0613 8192 | gpt-4-0314 8192 | gpt-4-32k 32768 | gpt-4-turbo 128000
openai gpt-4-turbo-2024-04-09 128000 | gpt-4-turbo-preview 128000 | gpt-4-1106-preview 128000 | gpt-4o 128000
openai gpt-4o-2024-08-06 128000 | gpt-4.5-preview 128000 | gpt-3.5-turbo-0125 16385 | chatgpt-4o-latest 128000
openai o1 200000 | o1-2024-12-17 200000 | o1-mini 128000 | o1-preview 128000 | o1-pro 200000 | o3 200000
openai gpt-5-2025-08-07 400000 | gpt-4.1-2025-04-14 1047576
azure gpt-4 8192 | gpt-4-turbo 128000 | o1 200000
anthropic claude-3-opus 200000 | claude-3-sonnet 200000 | claude-3-haiku 200000 | claude-3-opus-20240229 200000
anthropic claude-3-haiku-20240307 200000 | claude-3-opus-latest 200000 | claude-3-5-sonnet-20240620 200000
anthropic claude-3.5-sonnet 200000 | claude-3-5-haiku-20241022 200000 | claude-3-7-sonnet-20250219 200000
anthropic claude-sonnet-4 200000 | claude-sonnet-4-20250514 200000 | claude-opus-4 200000 | claude-opus-4-0 200000
anthropic claude-opus-4-20250514 200000 | claude-opus-4-1-20250805 200000 | claude-haiku-4-5-20251001 200000
gemini gemini-1.5-pro 2000000 | gemini-1.5-pro-002 2000000 | gemini-1.5-flash 1000000 | gemini-1.5-flash-8b 1000000
gemini gemini-2.0-flash-001 1048576 | gemini-2.5-pro 1048576 | gemini-2.5-pro-preview-05-06 1048576
gemini gemini-3-pro-preview 1048576 | gemini-3-flash-preview 1048576
deepseek deepseek-chat 131072 | deepseek-reasoner 131072 | deepseek-coder 131072
groq llama-3.3-70b-versatile 131072 | llama-3.1-8b-instant 131072
together meta-llama/Llama-3.3-70B-Instruct-Turbo 131072 | meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo 131072
fireworks accounts/fireworks/models/llama-v3p1-70b-instruct 131072 | accounts/fireworks/models/glm-4p5 131072
openrouter meta-llama/llama-3.1-70b-instruct 131072 | anthropic/claude-3-opus 200000 | qwen/qwen3-coder 262144
openrouter anthropic/claude-sonnet-4 200000 | moonshotai/kimi-k2 131072 | google/gemini-flash-1.5 1000000
alibaba qwen2.5-coder-32b-instruct 32768 | qwen3-coder-480b-a35b-instruct 262144
huggingface Qwen/Qwen2.5-Coder-32B-Instruct 32768
mistral mistral-large-2411 131072 | mistral-large-2407 131072 | codestral-2501 256000 | open-mistral-nemo 131072
zai glm-4.5 128000 | glm-4-plus 128000
moonshot kimi-k2-0711-preview 131072 | kimi-latest 131072 | moonshot-v1-8k 8192 | moonshot-v1-128k 131072
bedrock us.anthropic.claude-3-sonnet-20240229-v1:0 200000
vertex claude-3-5-sonnet-v2@20241022 200000
office gpt-4 8192 | claude-3-opus-20240229 200000
"""


def people_have() -> list[tuple[str, str, int]]:
    lines = [line.partition(" ") for line in PEOPLE_HAVE.split("\n") if line]
    models = [(provider, *model.split()) for provider, _, rest in lines for model in rest.split(" | ")]
    return [(provider, name, int(size)) for provider, name, size in models]


@pytest.mark.parametrize(("provider", "model", "window"), people_have())
def test_the_models_that_people_have_are_known(provider: str, model: str, window: int) -> None:
    info = look_up_model(provider, model)
    assert (info.window, info.window_source) == (window, "catalogue")


@pytest.mark.parametrize("model", ["my-gpt-4", "gpt", "o", "llama", "our-model", "gpt4all", ""])
def test_a_name_that_only_resembles_one_is_unknown(model: str) -> None:
    assert look_up_model("office", model).window_source == "assumed"


def test_the_table_of_windows_is_small_and_has_sizes_only() -> None:
    text = files("swecli.core.llm").joinpath("model_windows.json").read_text("utf-8")
    table = load_windows()
    assert len(text) < 100_000
    everywhere = [table.names, table.families, *table.hosts.values()]
    assert all(4_000 <= size <= 20_000_000 for names in everywhere for size in names.values())
    assert sum(map(len, everywhere)) > 1_500


def test_families_of_the_table_are_those_of_the_selection() -> None:
    stated = tomllib.loads(SELECTION.read_text("utf-8"))["families"]
    assert load_windows().families == {common_name(name): size for name, size in stated.items()}


def test_all_that_is_known_of_a_model() -> None:
    plain = look_up_model("anthropic", "claude-haiku-4-5")
    assert (plain.window, plain.max_output, plain.window_source, plain.images) == (200_000, 64_000, "catalogue", True)
    asked = model_info("anthropic", "claude-haiku-4-5", asked=ASKED, learned=LEARNED)
    assert (asked.window, asked.max_output, asked.window_source, asked.images) == (5000, 700, "endpoint", True)
    mine = model_info("anthropic", "claude-haiku-4-5", asked=ASKED, setting=1234)
    assert (mine.window, mine.window_source, mine.ref) == (1234, "user", "anthropic/claude-haiku-4-5")
    nobody = look_up_model("my-proxy", "our-model")
    assert (nobody.window, nobody.max_output, nobody.window_source, nobody.images) == (32_000, None, "assumed", None)
    silent = model_info("anthropic", "claude-haiku-4-5", asked=EndpointModel("claude-haiku-4-5"))
    assert (silent.window, silent.images) == (200_000, True)


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "llamacpp", "vllm", "sglang"])
def test_no_catalogue_knows_the_window_of_a_local_server(provider: str) -> None:
    assert look_up_model(provider, "openai/gpt-oss-20b").window_source == "assumed"
    assert model_info("my-own", "openai/gpt-oss-20b", local=True).window_source == "assumed"
    assert look_up_model("my-own", "openai/gpt-oss-20b").window_source == "catalogue"


def window(tokens: int, day: date = DAY) -> LearnedWindow:
    return LearnedWindow(tokens, day.isoformat())


# --- learned windows -----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "learned-windows.json"


def test_what_was_learned_is_found_again(path: Path) -> None:
    assert LearnedWindows(path).find("h:1", "m") is None
    assert LearnedWindows(path).learn("h:1", "m", window(8192)) == ""
    assert LearnedWindows(path).learn("h:1", "other", window(4096)) == ""
    assert LearnedWindows(path).learn("h:2", "m", window(2048)) == ""
    assert LearnedWindows(path).learn("h:1", "m", window(16384, date(2026, 11, 22))) == ""
    store = LearnedWindows(path)
    assert store.find("h:1", "m") == LearnedWindow(16384, "2026-11-22")
    assert store.find("h:1", "other") == LearnedWindow(4096, "2026-11-21")
    assert store.find("h:2", "m") == LearnedWindow(2048, "2026-11-21")
    assert store.find("h:2", "other") is None
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_number_of_a_real_error_is_learned(path: Path) -> None:
    body = b'{"error":{"message":"prompt is too long: 3333404 tokens > 200000 maximum"}}'
    error = classify(400, {}, body)
    assert error.kind == "context_overflow"
    assert error.window is not None
    LearnedWindows(path).learn(host_key("https://api.example.com/v1"), "m", window(error.window))
    assert LearnedWindows(path).find("api.example.com", "m") == LearnedWindow(200_000, "2026-11-21")


@pytest.mark.parametrize("tokens", [0, -1, 255, 10**12])
def test_a_number_that_is_no_window_is_not_kept(path: Path, tokens: int) -> None:
    assert LearnedWindows(path).learn("h", "m", window(tokens)) == ""
    assert not path.exists()


BROKEN = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"version": 99, "windows": {}}',
    b'{"windows": {"h": {}}}',
    b"[" * 5000,
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_file_is_put_aside_and_not_lost(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    store = LearnedWindows(path)
    assert store.find("h", "m") is None
    assert path.read_bytes() == content
    told = store.learn("h", "m", window(8192))
    (aside,) = path.parent.glob(f"{path.name}.corrupt-*")
    assert aside.read_bytes() == content
    assert str(aside) in told
    assert store.find("h", "m") == LearnedWindow(8192, "2026-11-21")


def test_a_second_broken_file_does_not_replace_the_first(path: Path) -> None:
    path.parent.mkdir()
    for content in (b"one", b"two"):
        path.write_bytes(content)
        LearnedWindows(path).learn("h", "m", window(8192))
    kept = sorted(path.parent.glob(f"{path.name}.corrupt-*"))
    assert [each.read_bytes() for each in kept] == [b"one", b"two"]


@pytest.mark.parametrize(
    "windows",
    [
        None,
        [],
        {"h": None},
        {"h": {"m": 5}},
        {"h": {"m": {"tokens": "8192"}}},
        {"h": {"m": {"tokens": True}}},
        {"h": {"m": {"tokens": 3}}},
    ],
)
def test_entries_that_make_no_sense_are_not_used(path: Path, windows: Any) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "windows": windows}))
    store = LearnedWindows(path)
    assert store.find("h", "m") is None
    assert store.learn("h", "n", window(8192)) == ""
    assert store.find("h", "n") is not None


def test_the_file_stays_small_and_keeps_the_newest(path: Path) -> None:
    old = {f"h{number}": {"m": {"tokens": 8192, "day": "2020-01-01"}} for number in range(600)}
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "windows": old}))
    LearnedWindows(path).learn("new", "m", window(4096))
    kept = json.loads(path.read_text())["windows"]
    assert len(kept) == 500
    assert LearnedWindows(path).find("new", "m") == LearnedWindow(4096, "2026-11-21")


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    told = LearnedWindows(blocked / "learned.json").learn("h", "m", window(8192))
    assert "Could not store" in told
    assert LearnedWindows(blocked / "learned.json").find("h", "m") is None
    assert LearnedWindows(tmp_path).find("h", "m") is None


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LearnedWindows(path)
    store.learn("h", "m", window(8192))
    before = path.read_bytes()

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert "No space left" in store.learn("h", "m", window(4096))
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_another_session_waits_between_the_reading_and_the_writing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LearnedWindows(path)
    locked = locked_while_writing(monkeypatch, "swecli.core.llm.learned_file")
    assert store.learn("h", "m", window(4096)) == ""
    assert locked == [True]


@given(st.text(max_size=20), st.text(max_size=20), st.integers(min_value=256, max_value=100_000_000))
@settings(deadline=None, max_examples=40)
def test_any_name_can_be_learned(tmp_path_factory: pytest.TempPathFactory, host: str, model: str, tokens: int) -> None:
    store = LearnedWindows(tmp_path_factory.mktemp("learned") / "windows.json")
    assert store.learn(host, model, window(tokens)) == ""
    assert store.find(host, model) == LearnedWindow(tokens, "2026-11-21")


def test_the_key_of_a_host_holds_the_port_and_no_password() -> None:
    assert host_key("http://user:secret@Example.com:8000/v1") == "example.com:8000"
    assert host_key("https://api.example.com/v1") == "api.example.com"
