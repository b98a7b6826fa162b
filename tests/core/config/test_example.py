"""The annotated example is the defaults and names every key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pydantic
import pytest

from swecli.core.config.settings import ProviderSettings, Settings

FOLDER = Path(__file__).parents[3] / ".swecli.example"
TEXT = (FOLDER / "config.toml").read_text()


def keys(text: str) -> set[str]:
    return {
        f"{section}.{key}"
        for section, content in tomllib.loads(text).items()
        for key in (content["local"] if section == "providers" else content)
    }


def uncommented() -> str:
    return re.sub(r"^# (?=\[|[a-z_]+ = )", "", TEXT, flags=re.MULTILINE)


def test_it_is_the_defaults() -> None:
    data = tomllib.loads(TEXT)
    for rules in ("allow", "ask", "deny"):
        data["approval"][rules] = tuple(data["approval"][rules])
    assert Settings.model_validate(data) == Settings()


def test_it_names_every_key_and_no_other() -> None:
    expected: set[str] = set()
    for section, field in Settings.model_fields.items():
        model = ProviderSettings if section == "providers" else field.annotation
        assert isinstance(model, type)
        assert issubclass(model, pydantic.BaseModel)
        expected |= {f"{section}.{key}" for key in model.model_fields}
    assert keys(uncommented()) == expected


def test_the_examples_of_unset_keys_are_valid() -> None:
    data = tomllib.loads(uncommented())
    for rules in ("allow", "ask", "deny"):
        data["approval"][rules] = tuple(data["approval"][rules])
    shown = Settings.model_validate(data)
    assert shown.providers["local"].window == 32768


@pytest.mark.parametrize("line", ["logs/", "config.local.toml"])
def test_logs_and_personal_settings_stay_out_of_the_repository(line: str) -> None:
    assert line in (FOLDER / ".gitignore").read_text().splitlines()
