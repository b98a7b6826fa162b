"""How a model counts is known in the next session of the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.app import open_session
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.launch import LaunchOptions

STEPS = "\n".join(f'[[step]]\ncall = [{{ tool = "read_file", arguments = {{ path = "f{n}.txt" }} }}]' for n in range(4))


async def run(cwd: Path, script: Path, *, store: bool) -> float:
    """One turn; the ratio that the session began with."""
    session = await open_session(LaunchOptions(cwd=cwd, script=script, headless=True, store=store))
    model = session.view.model
    assert model is not None
    ratio = session._services.toolset.context.monitor.ratio(model)  # pyright: ignore[reportPrivateUsage]
    events = session.subscribe()
    session.send(Submit("Read the files."))
    async for event in events:
        if isinstance(event.body, TurnEnded):
            assert event.body.outcome == "done"
            break
    await session.close()
    return ratio


async def test_what_is_learned_is_kept_in_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, cwd = tmp_path / "home", tmp_path / "work"
    cwd.mkdir()
    monkeypatch.setenv("SWECLI_HOME", str(home))
    for number in range(4):
        (cwd / f"f{number}.txt").write_text(f"{number}: some words of a text\n" * 400, encoding="utf-8")
    script = tmp_path / "read.toml"
    script.write_text(f'{STEPS}\n[[step]]\ntext = "Read."', encoding="utf-8")
    path = home / "data" / "token-ratios.json"
    await run(cwd, script, store=False)
    assert not path.exists()
    first = await run(cwd, script, store=True)
    kept = json.loads(path.read_text(encoding="utf-8"))["models"]["scripted/script"]
    assert kept["tokens"] > 1_000
    second = await run(cwd, script, store=True)
    assert first == 1.15
    assert second == pytest.approx(kept["ratio"])
    assert second != first
