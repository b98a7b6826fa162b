"""Themes on the running application: the setting, the picker with its preview, terminals with few colours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.themes.scheme import DARK, LIGHT
from swecli.tui.preferences import Preferences
from swecli.tui.terminal import BackgroundReported
from tests.tui.support import Running, running

THEME_FILE = 'background = "#101010"\nforeground = "#eeeeee"\n'


def ground(it: Running) -> str:
    return it.app.screen.styles.background.hex.lower()


async def test_the_theme_of_the_settings_is_shown() -> None:
    async with running(preferences=lambda: Preferences(theme="gruvbox")) as it:
        await it.until(lambda: it.app.theme == "gruvbox-dark")
        assert ground(it) == "#282828"
        assert it.app.main.transcript.page.palette.name == "gruvbox-dark"
        it.app.post_message(BackgroundReported(dark=False))
        await it.until(lambda: it.app.theme == "gruvbox-light")


async def test_the_background_of_the_terminal_decides_without_a_setting() -> None:
    async with running() as it:
        assert ground(it) == DARK.background
        it.app.post_message(BackgroundReported(dark=False))
        await it.until(lambda: ground(it) == LIGHT.background)


async def test_an_unknown_theme_and_a_broken_file_are_told_and_the_default_is_used(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("background = 'black'\n")
    wanted = Preferences(theme="bad", theme_folders=(tmp_path,))
    async with running(preferences=lambda: wanted, size=(120, 24)) as it:
        await it.shows("Unknown theme bad", "'black' is not a")
        assert it.app.theme == "swecli-dark"


async def test_the_picker_shows_each_theme_and_keeps_the_one_that_is_picked(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(THEME_FILE)
    kept: list[tuple[str, str]] = []

    def remember(key: str, value: str) -> str:
        kept.append((key, value))
        return "the file"

    wanted = Preferences(theme_folders=(tmp_path,))
    async with running(preferences=lambda: wanted, remember=remember) as it:
        await it.until(lambda: "mine" in it.app.appearance.library.names)
        await it.say("/theme")
        await it.until(lambda: it.app.main.dock.panel)
        await it.press(*"dracula")
        await it.until(lambda: it.app.theme == "dracula")
        await it.press("escape")
        await it.until(lambda: it.app.theme == "swecli-dark")
        assert kept == []
        await it.say("/theme")
        await it.until(lambda: it.app.main.dock.panel)
        await it.press(*"mine")
        await it.until(lambda: it.app.theme == "mine")
        await it.press("enter")
        await it.until(lambda: kept)
        assert kept == [("ui.theme", "mine")]
        assert ground(it) == "#101010"
        await it.shows("saved in the file")


async def test_a_theme_by_its_name_and_a_file_that_can_not_be_written() -> None:
    def remember(key: str, value: str) -> str:
        raise ValueError("read-only")

    async with running(remember=remember, size=(120, 24)) as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        await it.say("/theme nord")
        await it.shows("for this session only: read-only")
        assert it.app.theme == "nord"
        await it.say("/theme nrd")
        await it.shows("Unknown theme nrd; nothing was changed. Did you mean nord?")
        assert it.app.theme == "nord"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "vt100")])
async def test_without_colours_none_is_written(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv(name, value)
    async with running(preferences=lambda: Preferences(theme="dracula")) as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        await it.say("/mode")
        await it.until(lambda: it.app.main.dock.panel)
        assert it.app.theme == "terminal"
        await it.shows("Mode", "accept-edits  file")
        strips = it.app.screen._compositor.render_strips()
        colours = {
            colour.name
            for strip in strips
            for segment in strip
            if segment.style
            for colour in (segment.style.color, segment.style.bgcolor)
            if colour is not None
        }
        assert colours <= {"default"}
        assert any(segment.style and segment.style.reverse for strip in strips for segment in strip)
        assert os.environ[name] == value


@pytest.mark.parametrize(("term", "words"), [("vt100", "without colours"), ("linux", "with 16 colours")])
async def test_a_theme_that_is_not_visible_says_so(monkeypatch: pytest.MonkeyPatch, term: str, words: str) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", term)
    async with running(remember=lambda key, value: "the file") as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        await it.say("/theme nord")
        await it.shows(f"Theme: nord, not visible {words} (saved in the file)")
        await it.say("/theme terminal")
        await it.shows("Theme: terminal (saved in the file)")


async def test_sixteen_colours_are_the_terminals_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "linux")
    async with running() as it:
        strips = it.app.screen._compositor.render_strips()
        colours = {
            colour
            for strip in strips
            for segment in strip
            if segment.style
            for colour in (segment.style.color, segment.style.bgcolor)
            if colour is not None
        }
        assert all(colour.is_default or colour.is_system_defined for colour in colours)
        assert any(colour.number for colour in colours)
