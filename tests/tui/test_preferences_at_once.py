"""Each setting of the interface counts in the running program as soon as it is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.tui.main_screen import MainScreen
from swecli.tui.preferences import Preferences
from tests.support.waiting import PATIENCE
from tests.tui.support import Running, Session, running

CASES: dict[str, tuple[Any, Callable[[Running], object]]] = {
    "theme": ("nord", lambda it: it.app.theme),
    "keys": ({"find": ("f5",)}, lambda it: it.app.keymap.shown("find")),
    "reduced_motion": (True, lambda it: it.app.main.activity._still),
    "glyphs": ("ascii", lambda it: it.app.preferences.plain_glyphs.enabled),
    "density": ("full", lambda it: it.app.main.transcript.density),
    "diff": ("unified", lambda it: it.app.main.transcript.page.palette.split_from),
    "editing": ("vim", lambda it: it.app.main.prompt.editing),
    "key_variables": (frozenset({"GATEWAY"}), lambda it: it.app.interface.input.key_variables),
    "large_message": (0.5, lambda it: it.app.preferences.now.large_message),
    "notify": ("off", lambda it: it.app.terminal._announcer._notify),
    "mouse": (False, lambda it: it.app.mouse),
    "title": (False, lambda it: it.app.terminal._announcer._title),
    "progress": ("on", lambda it: it.app.terminal._announcer._progress),
    "status_line": ("echo mine", lambda it: it.app.terminal._command),
    "forecast": (False, lambda it: it.app.main.activity.foresee is not None),
    "status_line_timeout": (1.0, lambda it: it.app.preferences.now.status_line_timeout),
}


def test_every_preference_has_its_case() -> None:
    assert set(Preferences.__struct_fields__) - {"theme_folders"} == set(CASES)


@pytest.fixture
def preferences() -> list[Preferences]:
    return [Preferences()]


async def test_each_one_counts_at_once(preferences: list[Preferences], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    async with running(preferences=lambda: preferences[-1]) as it:
        for name, (value, seen) in CASES.items():
            before = seen(it)
            preferences.append(replace(Preferences(), **{name: value}))
            it.app.main.post_message(MainScreen.PreferencesChanged())
            await it.until(lambda: seen(it) != before)  # noqa: B023
            preferences.append(Preferences())
            it.app.main.post_message(MainScreen.PreferencesChanged())
            await it.until(lambda: seen(it) == before)  # noqa: B023


async def test_a_slow_reading_is_compared_with_what_is_in_effect_at_its_end(preferences: list[Preferences]) -> None:
    """A session may open while the settings change."""
    reads, goes_on = threading.Event(), threading.Event()

    def slow(present: Preferences) -> Preferences:
        reads.set()
        assert goes_on.wait(PATIENCE)
        return present

    ways: list[Callable[[Preferences], Preferences]] = []
    async with running(preferences=lambda: ways.pop()(preferences[-1]) if ways else preferences[-1]) as it:
        ways.append(slow)
        opening = asyncio.create_task(it.app.preferences.follow())
        await it.until(reads.is_set)
        preferences.insert(0, replace(Preferences(), mouse=False))
        ways.append(lambda _: preferences[0])
        await it.app.preferences.follow()
        assert not it.app.mouse
        goes_on.set()
        await opening
        assert it.app.mouse == it.app.preferences.now.mouse


async def test_a_command_counts_as_a_change_of_its_setting() -> None:
    """Otherwise a later change back in the settings would look like none."""
    written = {"editing": "usual", "theme": "auto"}

    def remember(key: str, value: str) -> str:
        written[key.removeprefix("ui.")] = value
        return "config.toml"

    async with running(remember=remember, preferences=lambda: replace(Preferences(), **written)) as it:
        it.app.interface.open("editing")
        it.app.interface.themes.pick("nord")
        await it.until(lambda: it.app.preferences.now == replace(Preferences(), editing="vim", theme="nord"))
        assert it.app.main.prompt.editing == "INSERT"
        assert it.app.theme == "nord"
        written |= {"editing": "usual", "theme": "auto"}
        it.app.main.post_message(MainScreen.PreferencesChanged())
        await it.until(lambda: not it.app.main.prompt.editing and it.app.theme != "nord")


async def test_a_choice_for_this_run_survives_the_next_conversation() -> None:
    def remember(key: str, value: str) -> str:
        raise ValueError("read-only")

    new = Session()

    async def new_session() -> Session:
        return new

    async with running(remember=remember, preferences=Preferences, new_session=new_session) as it:
        it.app.interface.open("editing")
        it.app.interface.themes.pick("nord")
        await it.shows("for this session only: read-only")
        await it.say("/clear")
        await it.until(lambda: it.app.session.port is new)
        assert it.app.main.prompt.editing == "INSERT"
        assert it.app.theme == "nord"
