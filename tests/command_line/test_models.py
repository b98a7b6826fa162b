"""`swecli models`: what can be used, from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.assembly import offered_models
from swecli.cli import main
from swecli.exit_codes import ExitCode


@pytest.fixture(autouse=True)
def no_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(seconds: float) -> Sequence[object]:
        return ()

    monkeypatch.setattr(offered_models, "find_local_servers", none)
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_models_of_the_keys_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    assert main(["models"]) == ExitCode.OK
    rows = capsys.readouterr().out.splitlines()[1:]
    assert rows
    assert all(row.startswith("anthropic/") for row in rows)


def test_a_server_without_a_list_is_named_with_what_works_in_a_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    main(["models"])
    said = capsys.readouterr().err
    assert "Start the server and use -m openai/NAME." in said
    assert "/model" not in said


def test_words_find_models_that_need_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "claude", "sonnet"]) == ExitCode.OK
    rows = capsys.readouterr().out.splitlines()[1:]
    assert any(row.endswith("needs ANTHROPIC_API_KEY") for row in rows)
    assert all("claude" in row and "sonnet" in row for row in rows)


def test_where_there_is_nothing_one_line_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == ExitCode.CONFIG
    assert "No model is configured" in capsys.readouterr().err
    assert main(["models", "zzz", "9"]) == ExitCode.CONFIG
    assert "No known model matches 'zzz 9'" in capsys.readouterr().err


def test_an_end_of_input_in_place_of_a_key_stores_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", ended)
    monkeypatch.setattr("swecli.command_line.models.is_terminal", lambda stream: True)
    assert main(["login", "openai"]) == ExitCode.BAD_INPUT
    assert "nothing was stored" in capsys.readouterr().err


def test_a_whole_name_shows_what_the_model_can_do_and_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "home" / "config.toml"
    settings.parent.mkdir()
    settings.write_text('[models.capabilities]\n"anthropic/claude-opus-5-5" = { web_search = false }\n')
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    assert main(["models", "anthropic/claude-opus-5-5"]) == ExitCode.OK
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: line for line in lines if line}
    assert rows["binding"][1] == "yes"
    assert "preserved-thinking/prefix-checks" in rows["binding"]
    assert rows["cache_ttl"][1:3] == ["5m,", "1h"]
    assert rows["web_search"][1] == "no"
    assert rows["web_search"][-2:] == ["your", "settings"]


def test_a_whole_name_shows_what_the_model_can_do_where_the_server_does_not_list_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    assert main(["models", "anthropic/claude-opus-5-5"]) == ExitCode.OK
    assert "preserved-thinking/prefix-checks" in capsys.readouterr().out
    assert main(["models", "nowhere/claude-opus-5-5"]) == ExitCode.CONFIG
