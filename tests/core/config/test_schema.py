"""The JSON Schema of the settings accepts what swecli accepts, and explains each key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from swecli.core.config.schema import ADDRESS, settings_schema
from tests.core.config.test_example import TEXT, uncommented


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return settings_schema()


def test_the_example_is_valid_and_names_the_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for text in (TEXT, uncommented()):
        assert [error.message for error in validator.iter_errors(tomllib.loads(text))] == []
    assert TEXT.splitlines()[0] == f"#:schema {ADDRESS}"
    assert "swecli.github.io/swecli" in (Path(__file__).parents[3] / "zensical.toml").read_text()


@pytest.mark.parametrize(
    "text", ["[agent]\nmax_step = 1", "[agent]\nmax_steps = 'x'", "[nothing]", "[approval]\nmode = 'always'"]
)
def test_what_swecli_refuses_is_invalid(schema: dict[str, Any], text: str) -> None:
    assert not Draft202012Validator(schema).is_valid(tomllib.loads(text))


def test_every_setting_is_explained(schema: dict[str, Any]) -> None:
    tables = {"Settings", "PriceSettings", "DialectSettings", "CapabilitySettings"}  # explained as a whole
    bare = [
        f"{name}.{key}"
        for name, section in schema["$defs"].items()
        if name not in tables
        for key, content in section.get("properties", {}).items()
        if not content.get("description")
    ]
    assert bare == []
