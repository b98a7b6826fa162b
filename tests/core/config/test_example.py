"""The annotated example is the defaults and names every key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from swecli.core.config.settings import NAMED, SECTIONS, DialectSettings, Settings
from swecli.core.llm.dialects import Dialect
from swecli.core.validation import fields_by_name, validated

FOLDER = Path(__file__).parents[3] / ".swecli.example"
TEXT = (FOLDER / "config.toml").read_text()


def keys(text: str) -> set[str]:
    return {
        f"{section}.{key}"
        for section, content in tomllib.loads(text).items()
        for key in (content["local"] if section in NAMED else content)
    }


def uncommented() -> str:
    text = TEXT.replace("retention = []\n", "")
    return re.sub(r'^# (?=\[|[a-z_]+ = |"[^"]+" = )', "", text, flags=re.MULTILINE)


def read(text: str) -> dict[str, Any]:
    data = tomllib.loads(text)
    for rules in ("allow", "ask", "deny"):
        data["approval"][rules] = tuple(data["approval"][rules])
    for places in ("writable", "hide"):
        data["sandbox"][places] = tuple(data["sandbox"][places])
    for server in data.get("mcp", {}).values():
        server["args"] = tuple(server["args"])
    for server in data.get("language_servers", {}).values():
        server |= {name: tuple(server[name]) for name in ("args", "extensions", "roots")}
    data["model"]["fallback"] = tuple(data["model"]["fallback"])
    data["keys"] = {name: tuple(keys) for name, keys in data["keys"].items()}
    data["context"]["retention"] = tuple(data["context"]["retention"])
    data["hooks"] = {name: tuple(one) if isinstance(one, list) else one for name, one in data["hooks"].items()}
    return data


def test_it_is_the_defaults() -> None:
    data = read(TEXT)
    assert validated(Settings, data) == Settings()


def test_it_names_every_key_and_no_other() -> None:
    expected: set[str] = set()
    for section, kind in SECTIONS.items():
        expected |= {f"{section}.{key}" for key in fields_by_name(kind)}
    assert keys(uncommented()) == expected


def test_the_examples_of_unset_keys_are_valid() -> None:
    data = read(uncommented())
    shown = validated(Settings, data)
    assert shown.providers["local"].window == 32768
    assert shown.models.window == {"ollama/qwen3-coder": 65536}


def test_every_flag_of_a_dialect_is_named_and_is_one() -> None:
    """The settings can't import the dialects, so their words are written twice."""
    for name in fields_by_name(DialectSettings):
        assert re.search(rf"^# .*\b{name}\b", TEXT, re.MULTILINE), name
        assert name in Dialect.__struct_fields__
    known = get_type_hints(Dialect)
    for name, hint in get_type_hints(DialectSettings).items():
        words = set(get_args(get_args(hint)[0]))
        assert words <= set(get_args(known[name])) or name == "body", name


@pytest.mark.parametrize("line", ["logs/", "config.local.toml"])
def test_logs_and_personal_settings_stay_out_of_the_repository(line: str) -> None:
    assert line in (FOLDER / ".gitignore").read_text().splitlines()
