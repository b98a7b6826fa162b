"""Which window counts, and what is kept of overflow errors."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.catalog import CatalogModel, load_catalog
from swecli.core.llm.endpoint_replies import EndpointModel
from swecli.core.llm.errors import classify
from swecli.core.llm.learned_windows import LearnedWindow, LearnedWindows, host_key
from swecli.core.llm.model_table import look_up_model
from swecli.core.llm.types import ASSUMED_WINDOW
from swecli.core.llm.windows import choose_window, model_info

DAY = date(2026, 11, 21)
ASKED = EndpointModel("m", 5000, 9000, 700, images=True, where="/props")
ONLY_MAXIMUM = EndpointModel("m", None, 9000, where="/api/show")
LEARNED = LearnedWindow(7000, "2026-11-20")


def listed(name: str = "anthropic/claude-haiku-4-5") -> CatalogModel:
    provider, _, model = name.partition("/")
    found = load_catalog().lookup(provider, model)
    assert found is not None
    return found.model


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


def test_a_catalogue_entry_without_a_window_is_no_source() -> None:
    entry = next(model for model in load_catalog().models if model.window is None)
    assert choose_window(listed=entry).source == "assumed"


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


# --- learned windows -----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "learned-windows.json"


def test_what_was_learned_is_found_again(path: Path) -> None:
    assert LearnedWindows(path).find("h:1", "m") is None
    assert LearnedWindows(path).learn("h:1", "m", 8192, DAY) == ""
    assert LearnedWindows(path).learn("h:1", "other", 4096, DAY) == ""
    assert LearnedWindows(path).learn("h:2", "m", 2048, DAY) == ""
    assert LearnedWindows(path).learn("h:1", "m", 16384, date(2026, 11, 22)) == ""
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
    LearnedWindows(path).learn(host_key("https://api.example.com/v1"), "m", error.window, DAY)
    assert LearnedWindows(path).find("api.example.com", "m") == LearnedWindow(200_000, "2026-11-21")


@pytest.mark.parametrize("tokens", [0, -1, 255, 10**12])
def test_a_number_that_is_no_window_is_not_kept(path: Path, tokens: int) -> None:
    assert LearnedWindows(path).learn("h", "m", tokens, DAY) == ""
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
    told = store.learn("h", "m", 8192, DAY)
    aside = path.with_name(path.name + ".broken-1")
    assert aside.read_bytes() == content
    assert str(aside) in told
    assert store.find("h", "m") == LearnedWindow(8192, "2026-11-21")


def test_a_second_broken_file_does_not_replace_the_first(path: Path) -> None:
    path.parent.mkdir()
    for content in (b"one", b"two"):
        path.write_bytes(content)
        LearnedWindows(path).learn("h", "m", 8192, DAY)
    assert path.with_name(path.name + ".broken-1").read_bytes() == b"one"
    assert path.with_name(path.name + ".broken-2").read_bytes() == b"two"


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
    assert store.learn("h", "n", 8192, DAY) == ""
    assert store.find("h", "n") is not None


def test_the_file_stays_small_and_keeps_the_newest(path: Path) -> None:
    old = {f"h{number}": {"m": {"tokens": 8192, "day": "2020-01-01"}} for number in range(600)}
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "windows": old}))
    LearnedWindows(path).learn("new", "m", 4096, DAY)
    kept = json.loads(path.read_text())["windows"]
    assert len(kept) == 500
    assert LearnedWindows(path).find("new", "m") == LearnedWindow(4096, "2026-11-21")


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    told = LearnedWindows(blocked / "learned.json").learn("h", "m", 8192, DAY)
    assert "could not be kept" in told
    assert LearnedWindows(blocked / "learned.json").find("h", "m") is None
    assert LearnedWindows(tmp_path).find("h", "m") is None


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LearnedWindows(path)
    store.learn("h", "m", 8192, DAY)
    before = path.read_bytes()

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert "No space left" in store.learn("h", "m", 4096, DAY)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@given(st.text(max_size=20), st.text(max_size=20), st.integers(min_value=256, max_value=100_000_000))
@settings(deadline=None, max_examples=40)
def test_any_name_can_be_learned(tmp_path_factory: pytest.TempPathFactory, host: str, model: str, tokens: int) -> None:
    store = LearnedWindows(tmp_path_factory.mktemp("learned") / "windows.json")
    assert store.learn(host, model, tokens, DAY) == ""
    assert store.find(host, model) == LearnedWindow(tokens, "2026-11-21")


def test_the_key_of_a_host_holds_the_port_and_no_password() -> None:
    assert host_key("http://user:secret@Example.com:8000/v1") == "example.com:8000"
    assert host_key("https://api.example.com/v1") == "api.example.com"
