"""What the interface writes into the user's settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.command_line.config import keep_model
from swecli.launch import LaunchOptions


def test_the_model_that_was_picked_is_the_default_of_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('# mine\n[ui]\ntheme = "nord"\n')
    monkeypatch.setenv("SWECLI_CONFIG", str(file))
    options = LaunchOptions(tmp_path)
    for flagged in (replace(options, base_url="http://localhost:1/v1"), replace(options, settings=file)):
        with pytest.raises(ValueError, match="applies to one run"):
            keep_model(flagged, "ollama/qwen3")
    assert "model" not in file.read_text()
    told = keep_model(options, "ollama/qwen3")
    assert str(file) in told
    assert "/config model.name" in told
    assert file.read_text().startswith('# mine\n[ui]\ntheme = "nord"\n')
    assert "still ollama/qwen3" in keep_model(options, "ollama/other")
    assert '[model]\nname = "ollama/qwen3"' in file.read_text()
