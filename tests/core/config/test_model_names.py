"""Aliases and roles lead to ``provider/model``; a word that means nothing is an error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.config.load import ConfigError, Loaded, load, origins
from swecli.core.config.paths import Paths
from swecli.core.config.settings import Settings, expand
from swecli.core.validation import InvalidError, validated

TEXT = """
[model]
name = "big"
summary = "fast"
fallback = ["fast", "x/y"]

[models.aliases]
big = "anthropic/claude"
fast = "groq/openai/oss"

[models.window]
"ollama/qwen3" = 65536

[models.effort]
"anthropic/claude" = "high"
"""


def read(tmp_path: Path, text: str, **flags: object) -> Loaded:
    (tmp_path / "config.toml").write_text(text)
    return load(Paths(*[tmp_path] * 4), tmp_path, environment={}, flags={f"model.{k}": v for k, v in flags.items()})


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("big", "anthropic/claude"),
        ("main", "anthropic/claude"),
        ("summary", "groq/openai/oss"),
        ("small", "anthropic/claude"),
        ("a/b", "a/b"),
        ("unheard", "unheard"),
    ],
)
def test_names_are_expanded(tmp_path: Path, reference: str, expected: str) -> None:
    assert expand(reference, read(tmp_path, TEXT).settings) == expected


def test_each_entry_has_a_row_of_its_own(tmp_path: Path) -> None:
    rows = {key: (value, place) for key, value, place in origins(read(tmp_path, TEXT))}
    assert rows["models.aliases.fast"] == ("groq/openai/oss", f"{tmp_path / 'config.toml'}:9")
    assert rows["models.window.ollama/qwen3"][0] == "65536"
    assert rows["model.fallback"][0] == "fast, x/y"


def test_a_flag_may_be_an_alias(tmp_path: Path) -> None:
    settings = read(tmp_path, TEXT, name="fast").settings
    assert expand(settings.model.name or "", settings) == "groq/openai/oss"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[model]\n\nfallback = ["a/b", "slow"]\n', 3),
        ('[model]\nsummary = "main"\n', 2),
        ('[model]\nsummary = "small"\nsmall = "main"\n', 2),
        ('[model]\nname = "main"\n', 2),
        ('[models.aliases]\nx = "y"\n', 2),
        ('[models.window]\n"a/b" = 3\n', 2),
        ('[models.effort]\nb = "high"\n', 2),
    ],
)
def test_a_name_that_means_nothing_is_an_error_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'config.toml'}:{line}: model")


@pytest.mark.parametrize("key", ["model.name", "model.summary", "model.small", "subagents.model"])
def test_a_name_without_a_provider_is_looked_up_later_but_not_written(tmp_path: Path, key: str) -> None:
    section, name = key.split(".")
    place = Paths(*[tmp_path] * 4)
    loaded = read(tmp_path, f'[{section}]\n{name} = "sonnet"\n')
    assert [value for found, value, _ in origins(loaded) if found == key] == ["sonnet"]
    with pytest.raises(ConfigError, match=r"not 'opus'; `swecli models opus` lists matching models"):
        load(place, tmp_path, environment={}, tried={tuple(key.split(".")): "opus"})
    # Another setting can be written all the same.
    assert load(place, tmp_path, environment={}, tried={("agent", "max_steps"): 9}).settings.agent.max_steps == 9


def test_a_role_may_lead_to_such_a_name(tmp_path: Path) -> None:
    text = '[model]\nname = "opus"\nsummary = "small"\nsmall = "main"\n'
    assert expand("summary", read(tmp_path, text).settings) == "opus"


def test_an_unknown_table_of_models_is_a_notice(tmp_path: Path) -> None:
    (notice,) = read(tmp_path, '[models.aliasses]\nx = "a/b"\n').notices
    assert "Did you mean aliases?" in notice


def test_a_provider_says_how_it_differs_and_no_value_of_it_is_shown_that_may_be_a_key(tmp_path: Path) -> None:
    loaded = read(
        tmp_path,
        '[providers.x]\nprotocol = "gemini-generate"\nbase_url = "http://me:s3cret@h/v1"\nmax_output = 8000\n'
        'dialect = { think_tags = "split", body = { token = "s3cret" } }\nheaders = { A = "s3cret" }\n',
    )
    provider = loaded.settings.providers["x"]
    assert provider.dialect.given == {"think_tags": "split", "body": {"token": "s3cret"}}
    assert provider.max_output == 8000
    rows = {key: value for key, value, _ in origins(loaded)}
    assert rows["providers.x.dialect"] == "think_tags: split, body: token: …"
    assert rows["providers.x.base_url"] == "http://…@h/v1"
    assert "s3cret" not in str(rows)


def test_a_flag_that_no_dialect_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r":3: .*think"):
        read(tmp_path, '[providers.x]\nbase_url = "http://h"\ndialect = { think = "split" }\n')


@pytest.mark.parametrize(
    ("name", "fits"), [("openai/my model", True), ("my model", False), ("openai/m ", False), ("openai/ m", False)]
)
def test_a_models_name_may_have_spaces_inside(name: str, fits: bool) -> None:
    try:
        validated(Settings, {"model": {"name": name}})
    except InvalidError:
        assert not fits
    else:
        assert fits
