"""Themes by name, files of the user, and how many colours a terminal has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.themes.files import known, read_folder, read_folders
from swecli.themes.names import AUTO
from swecli.themes.scheme import DARK, colour_system, depth
from swecli.tui.themes.library import Library, background_is_dark

MINE = 'background = "#101010"\nforeground = "#eeeeee"\nblue = "#88aaff"\n'


@pytest.fixture
def library() -> Library:
    library = Library()
    library.add(known())
    return library


@pytest.mark.parametrize(
    ("wanted", "dark", "found"),
    [
        (AUTO, True, "swecli-dark"),
        (AUTO, False, "swecli-light"),
        ("gruvbox", True, "gruvbox-dark"),
        ("gruvbox", False, "gruvbox-light"),
        ("gruvbox-light", True, "gruvbox-light"),
        ("nord", False, "nord"),
        ("terminal", True, "terminal"),
        ("unheard-of", True, None),
    ],
)
def test_names(library: Library, wanted: str, dark: bool, found: str | None) -> None:
    assert library.resolve(wanted, dark) == found


@pytest.mark.parametrize("colours", ["none", "16"])
def test_few_colours_are_those_of_the_terminal(colours: str) -> None:
    library = Library(colours)  # type: ignore[arg-type]
    assert library.resolve(AUTO, True) == "terminal"
    assert library.resolve("unheard-of", True) is None


def test_an_unknown_name_gets_a_hint(library: Library) -> None:
    assert "Did you mean gruvbox-dark?" in library.unknown("gruvbx-dark")


def test_at_least_four_well_known_ones_come_along() -> None:
    names = {scheme.name for scheme in known()}
    assert {"gruvbox-dark", "nord", "dracula", "solarized-light", "catppuccin-dark", "tokyo-night-dark"} <= names


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-256color", "COLORTERM": "24bit"}, "truecolor"),
        ({"TERM": "screen-256color"}, "256"),
        ({"TERM": "tmux-256color", "COLORTERM": ""}, "256"),
        ({"TERM": "xterm-kitty"}, "truecolor"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "unheard-of"}, "16"),
        ({}, "16"),
        ({"TERM": "vt100"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),
        ({"TERM": "xterm", "FORCE_COLOR": "3"}, "truecolor"),
        ({"TERM": "xterm", "FORCE_COLOR": "2"}, "256"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "0"}, "none"),
        ({"TERM": "xterm-256color", "FORCE_COLOR": "3", "NO_COLOR": "1"}, "none"),
    ],
)
def test_depth(environ: dict[str, str], found: str) -> None:
    assert depth(environ) == found
    assert colour_system(depth(environ)) in ("standard", "256", "truecolor")


def test_background_by_colorfgbg() -> None:
    assert background_is_dark({}) is None
    assert background_is_dark({"COLORFGBG": "15;0"})
    assert background_is_dark({"COLORFGBG": "0;default;15"}) is False


def test_a_file_of_two_colours_is_a_theme(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    schemes, notices = read_folder(tmp_path)
    assert notices == []
    (mine,) = schemes
    assert (mine.name, mine.dark, mine.accent) == ("mine", True, "#88aaff")
    assert mine.red == DARK.red


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('background = "#101010"\nforeground = "#eeeeee"\nred = "crimson"\n', ":3: red: 'crimson' is not a colour"),
        ('background = "#101010"\n\nforegrund = "#eeeeee"\n', ":3: foregrund is not a theme colour"),
        ('background = "#101010"\n', "foreground is missing"),
        ("background = 3\n", ":1: background must be a string"),
        ('background = "#101010\n', ":1: invalid TOML"),
        ("", "background is missing"),
        ("[colours]\nbackground = '#fff'\n", ":1: colours is not a theme colour"),
    ],
)
def test_a_broken_file_is_left_out_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    (tmp_path / "good.toml").write_text(MINE)
    schemes, notices = read_folder(tmp_path)
    assert [scheme.name for scheme in schemes] == ["good"]
    (notice,) = notices
    assert said in notice
    assert "ignored" in notice


def test_what_is_no_ordinary_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "two words.toml").write_text(MINE)
    (tmp_path / "bytes.toml").write_bytes(b"background = '\xff'")
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "readme.txt").write_text("no theme")
    schemes, notices = read_folder(tmp_path)
    assert schemes == []
    assert len(notices) == 4
    assert read_folder(tmp_path / "missing") == ([], [])


def test_the_users_own_comes_before_the_projects(tmp_path: Path) -> None:
    for folder, colour in (("user", "#111111"), ("project", "#222222")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.toml").write_text(f'background = "{colour}"\nforeground = "#eeeeee"\n')
    schemes, _ = read_folders((tmp_path / "user", tmp_path / "project"))
    assert [scheme.background for scheme in schemes] == ["#111111"]
