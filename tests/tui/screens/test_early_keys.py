"""A screen takes keys only once it is mounted and laid out; those that come earlier wait for it."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from textual import events
from textual.keys import _character_to_key

from swecli.commands.base import Screen
from swecli.tui.screens.board import Board
from swecli.tui.screens.list_screen import ListScreen
from tests.support.inspected import Inspected
from tests.tui.screens.fakes import Permissions, Settings, ports
from tests.tui.screens.test_context_screens import prepared
from tests.tui.support import running

SCREENS: tuple[Screen, ...] = (
    "help",
    "settings",
    "permissions",
    "rewind",
    "jobs",
    "context",
    "compact",
    "wire",
    "cache",
)


def held(monkeypatch: pytest.MonkeyPatch, kind: type[Any], gate: asyncio.Event) -> None:
    """Let screens be mounted late: their children have the keyboard before."""
    mounted = kind.on_mount

    async def on_mount(screen: Any) -> None:
        await gate.wait()
        done = mounted(screen)
        if inspect.isawaitable(done):
            await done

    monkeypatch.setattr(kind, "on_mount", on_mount)


async def test_keys_wait_for_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()
    held(monkeypatch, ListScreen, gate)
    async with running() as it:
        it.app.interface.open("help")
        view = it.app.main.list_view
        assert isinstance(view, ListScreen)
        await it.until(lambda: view._line.is_mounted)
        it.app.main.dock.focus_panel()
        it.post(*"toke", "down", "up", "n", "s")
        await it.pilot.pause()
        gate.set()
        await it.shows("/context", "(/tokens)")
        assert view.text == "tokens"
        assert view._line.has_focus
        assert it.text == ""


async def test_a_list_that_is_left_before_it_is_there_leaves_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()
    held(monkeypatch, ListScreen, gate)
    async with running() as it:
        it.app.interface.open("help", "words")
        it.post(*"lost", "ctrl+c", "ctrl+c")
        await it.pilot.pause()
        gate.set()
        await it.until(lambda: it.app.main.list_view is None)
        it.app.interface.open("help")
        await it.shows("Help · the most used of")
        assert it.text == ""


@pytest.mark.parametrize("name", SCREENS)
async def test_whatever_is_typed_at_the_opening_of_a_screen_ends_nothing(name: Screen) -> None:
    inspected = Inspected()
    offered = ports(Settings(), Permissions())
    async with running(session=prepared(inspected), **offered) as it:
        for keys in (("down", "enter", "x"), ("end", "pageup", "tab"), ("/", "a", "enter"), ("?", "delete", "space")):
            it.app.interface.open(name)
            it.post(*keys)
            it.app.main.dock.focus_panel()
            view = it.app.main.list_view
            assert isinstance(view, ListScreen | Board)
            await it.pilot.pause()
            for _ in range(6):
                if it.app.main.list_view is not None:
                    it.post("escape")
                    await it.pilot.pause()
        assert it.app.defect is None


@pytest.mark.parametrize("typed", ["/he", "!ls", "#note", "hello"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_what_is_typed_right_behind_escape_goes_to_the_prompt(screen: Screen, typed: str) -> None:
    inspected = Inspected()
    async with running(session=prepared(inspected), **ports(Settings(), Permissions())) as it:
        it.app.interface.open(screen)
        await it.until(lambda: (view := it.app.main.list_view) is not None and view.ready)
        view = it.app.main.list_view
        assert isinstance(view, ListScreen | Board)
        line = view._line if isinstance(view, ListScreen) else view
        await it.until(lambda: line.has_focus)
        line.post_message(events.Key("escape", "\x1b"))  # all before the screen sees the first, as from one read
        for letter in typed:
            line.post_message(events.Key(_character_to_key(letter), letter))
        line.post_message(events.Paste("and a paste"))
        await it.until(lambda: it.app.main.list_view is None)
        await it.until(lambda: it.text == f"{typed}and a paste")
