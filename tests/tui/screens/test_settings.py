"""The settings screen: found, changed, refused, unset, and what follows."""

from __future__ import annotations

from swecli.core.protocol.commands import SetMode
from tests.tui.screens.fakes import Settings, ports
from tests.tui.support import Running, running


async def opened(it: Running) -> None:
    it.app.screens.settings()
    await it.shows("Settings · 5")


async def test_typing_narrows_by_name_value_and_meaning() -> None:
    async with running(screens=ports(Settings())) as it:
        await opened(it)
        await it.press(*"no cap")
        await it.shows("1 of 5", "agent.max_steps")
        await it.hides("hard_block")
        await it.press("escape")
        await it.shows("Settings · 5", "hard_block")
        await it.press("escape")
        await it.hides("Settings")
        assert it.app.transcript.display
        assert it.editor.has_focus


async def test_a_value_is_checked_while_it_is_typed_and_written() -> None:
    settings = Settings()
    async with running(screens=ports(settings)) as it:
        await opened(it)
        await it.press("enter")
        await it.shows("agent.hard_block = 0.98", "/home/me/config.toml")
        await it.press("ctrl+u", *"bad")
        await it.shows("agent.hard_block must be better than that")
        await it.press("enter")
        await it.pilot.pause()
        assert settings.written == []
        await it.press("ctrl+u", *"0.97")
        await it.hides("must be better")
        await it.press("tab")
        await it.shows("Enter writes to /w/.swecli/config.local.toml")
        await it.press("enter")
        await it.shows("written to /w", "Settings · 5")
        assert settings.written == [("agent.hard_block", "0.97", "local")]


async def test_few_values_are_offered_and_count_at_once() -> None:
    settings = Settings()
    async with running(screens=ports(settings)) as it:
        await opened(it)
        await it.press(*"approval.mode", "enter")
        await it.shows("in force", "default")
        await it.press("up", "enter")
        await it.until(lambda: settings.written)
        assert settings.written == [("approval.mode", '"default"', "user")]
        await it.until(lambda: it.session.sent(SetMode))
        await it.press("escape", "escape")
        await it.hides("Settings")


async def test_esc_leaves_a_value_as_it_is() -> None:
    settings = Settings()
    async with running(screens=ports(settings)) as it:
        await opened(it)
        await it.press(*"hard", "enter", *"9", "escape")
        await it.shows("1 of 5", "agent.hard_block")
        assert settings.written == []


async def test_a_key_takes_a_value_out_of_the_file() -> None:
    settings = Settings()
    async with running(screens=ports(settings)) as it:
        await opened(it)
        await it.press("ctrl+x")
        await it.shows("is in none of your files")
        await it.press(*"plan", "ctrl+x")
        await it.until(lambda: settings.written)
        assert settings.written == [("approval.mode", "", "user")]


async def test_what_may_be_secret_is_not_changed_here() -> None:
    settings = Settings()
    async with running(screens=ports(settings)) as it:
        await opened(it)
        await it.press(*"headers", "enter")
        await it.shows("It may hold keys.")
        assert it.app.place.current is not None
        assert "headers = " not in it.screen()


async def test_a_setting_that_is_not_there_yet_can_be_named() -> None:
    settings = Settings()
    async with running(screens=ports(settings)) as it:
        await opened(it)
        await it.press(*"models.window.x", "enter")
        await it.shows("models.window.x = ")
        await it.press(*"5000", "enter")
        await it.until(lambda: settings.written)
        assert settings.written == [("models.window.x", "5000", "user")]


async def test_what_waits_for_a_session_is_said_when_leaving() -> None:
    async with running(screens=ports(Settings())) as it:
        await opened(it)
        await it.press("enter", "ctrl+u", *"0.9", "enter")
        await it.shows("written to")
        await it.press("escape")
        await it.shows("agent.hard_block: from the next session on")
