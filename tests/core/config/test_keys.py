"""The section [keys]: names of keys, what takes a key from what, and conflicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.config.key_actions import ACTIONS, BY_NAME, normal, problem, resolve
from swecli.core.config.load import ConfigError, Loaded, load
from swecli.core.config.paths import user_paths


def read(folder: Path, text: str) -> Loaded:
    (folder / "config.toml").write_text(text)
    environment = {"SWECLI_HOME": str(folder)}
    return load(user_paths(environment), folder / "work", environment=environment)


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("ctrl+x", "ctrl+x"),
        ("Ctrl+X", "ctrl+x"),
        ("alt+ctrl+x", "ctrl+alt+x"),
        ("Esc", "escape"),
        ("PgUp", "pageup"),
        ("shift+Return", "shift+enter"),
        ("F12", "f12"),
        ("ctrl+i", "tab"),
        ("ctrl+[", "escape"),
        ("y", "y"),
        ("Y", "Y"),
        ("?", "?"),
        ("ctrl+_", "ctrl+underscore"),
    ],
)
def test_names_of_keys(written: str, key: str) -> None:
    assert normal(written) == key
    assert normal(key) == key


@pytest.mark.parametrize("written", ["", " ", "ctrl", "ctrl+", "hyper+x", "f0", "f25", "ctrl+ctrl+x", "xx", "\x1b"])
def test_what_is_no_key(written: str) -> None:
    with pytest.raises(ValueError, match="no key named"):
        normal(written)


def test_the_defaults_have_no_conflict_and_every_action_has_a_key() -> None:
    defaults = {action.name: action.keys for action in ACTIONS}
    assert problem(defaults) == ""
    assert resolve({}) == defaults
    assert all(defaults.values())
    assert all(normal(key) == key for keys in defaults.values() for key in keys)


def test_a_key_that_is_given_away_leaves_its_old_action() -> None:
    keys = resolve({"find": ("ctrl+t",)})
    assert keys["find"] == ("ctrl+t",)
    assert keys["todos"] == ()
    assert keys["expand"] == BY_NAME["expand"].keys
    assert resolve({"expand": ("ctrl+a",)})["line_start"] == ()
    assert resolve({"block_copy": ("o",)})["block_editor"] == ()
    assert resolve({"approve_once": ("o",)})["block_editor"] == ("o",)


def test_keys_are_read_with_their_changes(tmp_path: Path) -> None:
    loaded = read(tmp_path, '[keys]\nexpand = ["F2", "Ctrl+O"]\nfind = "ctrl+x"\n')
    assert loaded.settings.keys.changes == {"expand": ("f2", "ctrl+o"), "find": ("ctrl+x",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('expand = ["f2"]\nfind = ["f2"]\n', "must not bind f2 to both expand and find"),
        ('expand = ["ctrl+a"]\nline_start = ["ctrl+a"]\n', "must not bind ctrl+a to both expand and line_start"),
        ('todos = ["t"]\n', "must not bind t alone to todos"),
        ('approve_once = ["enter"]\n', "must not bind enter to approve_once"),
        ('expand = ["hyper+x"]\n', "no key named 'hyper+x'"),
        ("send = []\n", "must leave a key for send and for close"),
        ("find = 3\n", "find"),
    ],
)
def test_what_can_not_be_is_an_error_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml:\d") as caught:
        read(tmp_path, "[keys]\n" + text)
    assert said in str(caught.value)


def test_an_unknown_action_is_a_notice_with_the_nearest(tmp_path: Path) -> None:
    loaded = read(tmp_path, '[keys]\nexpnd = ["f2"]\n')
    assert "Did you mean expand?" in loaded.notices[0]
    assert loaded.settings.keys.changes == {}


def test_a_projects_keys_do_not_count_without_consent(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".swecli").mkdir(parents=True)
    (work / ".swecli" / "config.toml").write_text('[keys]\napprove_once = ["n"]\nreject = ["y"]\n')
    environment = {"SWECLI_HOME": str(tmp_path / "home")}
    loaded = load(user_paths(environment), work, environment=environment, trusted=True)
    assert loaded.settings.keys.changes == {}
    assert any("approve_once is ignored here" in notice for notice in loaded.notices)
