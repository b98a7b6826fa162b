"""Trying a model out before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.assembly.model_trial import try_model
from swecli.launch import LaunchOptions
from tests.core.llm.raw_server import Answer, head, say, serve
from tests.core.llm.test_text_tools_client import chat, refusal


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaunchOptions:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SWECLI_MODEL", "SWECLI_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    return LaunchOptions(cwd=tmp_path, store=False)


async def tried(options: LaunchOptions, monkeypatch: pytest.MonkeyPatch, answer: Answer) -> tuple[bool, str]:
    async with serve(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-trial")
        return await try_model(options, "openai/m")


async def test_a_model_that_answers(options: LaunchOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    works, told = await tried(options, monkeypatch, chat("ready"))
    assert works
    assert told.startswith("Connected to openai/m (")


async def test_a_model_that_does_not_stop_is_not_heard_to_its_end(
    options: LaunchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = b'data: {"choices":[{"delta":{"content":"and so on and so on "}}]}\n\n'
    works, told = await tried(options, monkeypatch, say(head(), piece * 3))  # without an end
    assert works
    assert told.startswith("Connected to openai/m (")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal("out of memory"), "did not answer: out of memory. "),
        (say(head(401, "application/json"), b'{"error":{"message":"no sk-canary-trial"}}'), "Check the key in"),
        (say(head(content_type="text/html"), b"<html><title>Login</title></html>"), "a web page instead of an answer"),
        (say(head(), b'data: {"choices":[{"delta":{"content":"re"}}]}\n\n'), "ended before it was complete"),
    ],
)
async def test_a_model_that_does_not(
    options: LaunchOptions, monkeypatch: pytest.MonkeyPatch, answer: Answer, words: str
) -> None:
    works, told = await tried(options, monkeypatch, answer)
    assert not works
    assert words in told
    assert "sk-canary-trial" not in told


async def test_a_model_that_can_not_be_asked(options: LaunchOptions) -> None:
    assert await try_model(options, "anthropic/claude") == (
        False,
        "There is no key for anthropic: set ANTHROPIC_API_KEY in the environment or store one with /login anthropic, "
        "or choose another model with -m provider/name",
    )
    works, told = await try_model(options, "antropic/claude")
    assert not works
    assert "Did you mean anthropic/claude?" in told
