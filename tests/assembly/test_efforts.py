"""Which words for the reasoning effort a start accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

ADDRESS = "http://127.0.0.1:9/v1"


async def start(tmp_path: Path, model: str, effort: str, settings: str = "") -> str | None:
    file = tmp_path / "own.toml"
    file.write_text(settings)
    options = LaunchOptions(cwd=tmp_path, model=model, base_url=ADDRESS, effort=effort, settings=file, store=False)
    session = await open_session(options)
    try:
        return session.view.effort
    finally:
        await session.close()


@pytest.mark.parametrize(
    ("model", "accepted"),
    [
        ("openai/gpt-5", "openai/gpt-5 accepts minimal, low, medium, high"),
        ("openai/unheard-of", "accepts none, minimal, low, medium, high, xhigh, max; others need efforts in"),
    ],
)
async def test_an_unknown_word_is_refused_with_the_accepted_ones(tmp_path: Path, model: str, accepted: str) -> None:
    with pytest.raises(StartError, match="Effort 'huge' is unknown") as refused:
        await start(tmp_path, model, "huge")
    assert accepted in str(refused.value)
    assert refused.value.exit_code == ExitCode.CONFIG


async def test_a_word_of_the_models_own_is_accepted(tmp_path: Path) -> None:
    own = '[models.capabilities."openai/unheard-of"]\nefforts = ["low", "turbo"]\n'
    assert await start(tmp_path, "openai/unheard-of", "turbo", own) == "turbo"
    with pytest.raises(StartError, match="openai/unheard-of accepts low, turbo"):
        await start(tmp_path, "openai/unheard-of", "huge", own)


async def test_a_usual_word_is_accepted_although_the_catalogue_does_not_have_it(tmp_path: Path) -> None:
    assert await start(tmp_path, "openai/gpt-5", "xhigh") == "xhigh"


async def test_what_is_no_word_is_refused_as_a_setting(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"model\.effort must be one word in lower case"):
        await start(tmp_path, "openai/gpt-5", "very high")
