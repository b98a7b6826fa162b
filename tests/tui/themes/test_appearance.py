"""The look of the last run is that of the first frame of the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.themes.scheme import LIGHT, scheme_of
from swecli.tui.preferences import Preferences
from swecli.tui.themes.appearance import Appearance, SavedTheme, read_saved_theme, save_theme
from tests.tui.support import running


def test_a_look_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "state" / "look"
    own = scheme_of("mine", {"background": "#102030", "foreground": "#f0f0f0"})
    for look in (SavedTheme("mine", True, own), SavedTheme("auto", False, LIGHT), SavedTheme("terminal", True)):
        save_theme(path, look)
        assert read_saved_theme(path) == look
    assert [entry.name for entry in path.parent.iterdir()] == ["look"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"wanted=x",
        b"wanted=x\ndark=maybe",
        b"wanted=x\ndark=yes\nname=x\nbackground=red",
        b"=" * 9_999,
    ],
)
def test_what_can_not_be_used_is_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "look"
    path.write_bytes(content)
    assert read_saved_theme(path) is None


def test_places_that_can_not_be_written_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    save_theme(tmp_path / "file" / "look", SavedTheme("auto", True))
    save_theme(None, SavedTheme("auto", True))
    assert read_saved_theme(tmp_path / "file" / "look") is None
    assert read_saved_theme(tmp_path) is None


async def test_the_first_frame_has_the_theme_of_the_last_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    shown: list[str] = []
    preview = Appearance.preview

    def noted(self: Appearance, name: str) -> None:
        preview(self, name)
        shown.append(self._app.theme)

    monkeypatch.setattr(Appearance, "preview", noted)
    wanted = Preferences(theme="gruvbox")
    for _ in range(2):
        shown.clear()
        async with running(state=tmp_path, preferences=lambda: wanted) as it:
            await it.until(lambda: it.app.theme == "gruvbox-dark")
    assert set(shown) == {"gruvbox-dark"}


@pytest.mark.parametrize(("said", "light"), [("0;15", True), ("15;0", False), (None, True)])
async def test_a_terminal_that_states_its_background_is_believed_before_the_last_run(
    said: str | None, light: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save_theme(tmp_path / "look", SavedTheme("auto", said == "0;15", None))
    if said is not None:
        monkeypatch.setenv("COLORFGBG", said)
    async with running(state=tmp_path) as it:
        assert it.app.theme.endswith("-light") is light
