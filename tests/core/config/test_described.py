"""What people are told of every setting."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.config.change import Described, describe, dotted, meaning, set_value
from swecli.core.config.load import key_parts, load, toml_text, typed_value
from swecli.core.config.paths import Paths


def described(folder: Path, text: str = "") -> dict[str, Described]:
    (folder / "config.toml").write_text(text)
    loaded = load(Paths(folder, folder, folder, folder), folder, environment={})
    return {each.name: each for each in describe(loaded)}


def test_every_setting_says_what_it_means_and_takes(tmp_path: Path) -> None:
    found = described(tmp_path, '[providers.p]\nbase_url = "http://h/v1"\n')
    assert len(found) > 80
    assert [name for name, each in found.items() if not (each.about and each.takes)] == []


def test_values_origins_and_choices(tmp_path: Path) -> None:
    found = described(tmp_path, '[approval]\nmode = "plan"\n[models.aliases]\nfast = "a/b"\n')
    mode = found["approval.mode"]
    assert (mode.shown, mode.text, mode.default, mode.origin.line) == ("plan", '"plan"', '"default"', 2)
    assert '"auto"' in mode.choices
    assert found["context.warn"].takes == "a number above 0 to 1"
    assert found["models.aliases.fast"].text == '"a/b"'
    assert found["agent.context_budget"].shown == "(unset)"
    assert found["sandbox.required"].choices == ("true", "false")


def test_a_list_of_tables_is_shown_as_it_is_written(tmp_path: Path) -> None:
    hook = 'command = "true"\nif = "Bash(git *)"\nasync = true\n'
    found = described(tmp_path, f"[[hooks.PreToolUse]]\n{hook}")["hooks.PreToolUse"]
    assert found.shown == '{command = "true", if = "Bash(git *)", async = true}'


def test_what_may_be_secret_is_not_shown(tmp_path: Path) -> None:
    found = described(tmp_path, '[providers.p]\nbase_url = "http://me:pass@h/v1"\nheaders = { X-Key = "sesame" }\n')
    assert "sesame" not in repr(found)
    assert "pass@" not in repr(found)
    assert found["providers.p.headers"].secret


@pytest.mark.parametrize(
    ("key", "known"),
    [
        (("providers", "new", "window"), True),
        (("models", "window", "a/b"), True),
        (("agent", "hard_block"), True),
        (("agent", "nothing"), False),
        (("providers", "new"), False),
        ((), False),
    ],
)
def test_meaning_of_a_key_that_is_not_set(key: tuple[str, ...], known: bool) -> None:
    assert (meaning(key) is not None) == known


@pytest.mark.parametrize(
    ("text", "words", "many", "value"),
    [
        ("nord", True, False, "nord"),
        ('"nord"', True, False, "nord"),
        ("5", True, False, "5"),
        ("5", False, False, 5),
        ("Bash(git *)", True, True, ["Bash(git *)"]),
        ('["a", "b"]', True, True, ["a", "b"]),
        ("true", False, False, True),
    ],
)
def test_what_a_person_types(text: str, words: bool, many: bool, value: object) -> None:
    assert typed_value(text, words=words, many=many) == value


@pytest.mark.parametrize(("text", "value"), [("no", False), ("On", True), (" off ", False), ("true", True), ("5", 5)])
def test_a_switch_takes_the_usual_words(text: str, value: object) -> None:
    assert typed_value(text, words=False, many=False, switch=True) == value


@pytest.mark.parametrize("text", ["", "  ", "[1, ", "5\nother = 3", "0x", "nonsense"])
def test_what_is_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|must)"):
        typed_value(text, words=False, many=False)


values = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.text(st.characters(codec="utf-8", exclude_characters="\x7f")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(values)
def test_values_survive_their_text(value: object) -> None:
    assert tomllib.loads(f"value = {toml_text(value)}")["value"] == value


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), min_size=1, max_size=3))
def test_keys_survive_their_text(parts: list[str]) -> None:
    assert key_parts(dotted(tuple(parts))) == tuple(parts)


@pytest.mark.parametrize("written", ["models.window.openai/gpt-5.5", 'models.window."openai/gpt-5.5"'])
def test_the_name_of_a_model_needs_no_quotes(written: str, tmp_path: Path) -> None:
    assert key_parts(written) == ("models", "window", "openai/gpt-5.5")
    set_value(tmp_path / "config.toml", written, 64_000)
    assert tomllib.loads((tmp_path / "config.toml").read_text("utf-8")) == {
        "models": {"window": {"openai/gpt-5.5": 64_000}}
    }
