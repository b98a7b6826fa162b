"""Rows of a list in columns, where there is little room and where names are long."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from swecli.tui.screens.list_screen import Entry
from tests.tui.screens.fakes import Settings, ports
from tests.tui.support import Running, running


def names(it: Running) -> list[str]:
    return [line[3:].split("  ")[0].strip() for line in it.screen().split("\n")]


async def test_names_that_differ_at_their_end_are_told_apart() -> None:
    settings = Settings()
    base = settings.settings[0]

    settings.settings = [replace(base, name=f"providers.{'long' * 20}.{end}") for end in ("base_url", "headers")]
    async with running(**ports(settings), size=(60, 20)) as it:
        it.app.interface.open("settings", "providers")
        await it.shows("Settings · 2", ".base_url", ".headers", "providers")


async def test_a_job_has_its_command_in_a_narrow_window_too() -> None:
    async with running(size=(40, 20)) as it:
        it.app.interface.open("help")
        await it.shows("Help ·")
        view: Any = it.app.main.list_view
        assert view is not None
        view._lines.show([Entry("j1", ("j1", "exit 0", "45 s", "63 bytes", "make release"))])
        await it.shows("j1 exit 0 45 s 63 bytes make")


async def test_why_nothing_is_listed_stays_while_something_is_typed() -> None:
    settings = Settings()

    def read() -> tuple[()]:
        raise ValueError("config.toml:1: no valid TOML")

    settings.read = read  # type: ignore[method-assign]
    async with running(**ports(settings), size=(80, 24)) as it:
        it.app.interface.open("settings")
        await it.shows("no valid TOML")
        await it.press(*"words", "enter")
        await it.shows("/ words", "no valid TOML")
        del settings.read
        await it.press("escape", "escape")
        await it.hides("Settings")


async def test_what_is_not_there_is_said() -> None:
    async with running(**ports(Settings())) as it:
        it.app.interface.open("settings", "no such words")
        await it.shows("0 of 5", "No match.")


async def test_a_long_name_leaves_room_for_the_value() -> None:
    settings = Settings()
    async with running(**ports(settings), size=(40, 12)) as it:
        it.app.interface.open("settings", "agent.hard")
        await it.shows("1 of 5")
        await it.press("enter")
        await it.shows("agent.hard_block = 0.98")
        await it.press("escape", "escape", *f"models.window.{'x' * 60}", "enter")
        await it.shows("a value; empty")


async def test_a_narrow_first_page_keeps_labels_and_values_and_leaves_out_names() -> None:
    settings = Settings()
    base = settings.settings[0]
    settings.settings = [
        replace(base, name="model.name", shown=f"openai/{'long' * 9}"),
        replace(base, name="ui.density", shown="usual"),
        replace(base, name="approval.mode", shown="default"),
    ]
    async with running(**ports(settings), size=(40, 15)) as it:
        it.app.interface.open("settings")
        await it.shows("Detail in the tr… usual", "Permission mode   default", "Model             openai/long")
        await it.hides("approval.")
    settings.settings = settings.settings[1:]
    async with running(**ports(settings), size=(40, 15)) as it:
        it.app.interface.open("settings")
        await it.shows("Detail in the transcript usual")
        await it.hides("approval.")
    async with running(**ports(settings), size=(80, 24)) as it:
        it.app.interface.open("settings")
        await it.shows("Permission mode", "approval.mode")
