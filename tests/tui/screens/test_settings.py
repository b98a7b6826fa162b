"""The settings screen: found, changed, refused, unset, and what follows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from swecli.assembly.settings import Setting
from swecli.core.config.change import meaning
from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.commands import SetMode, Submit
from swecli.launch import StartError
from swecli.tui.screens.settings import ALL, COMMON, MOST, choices, first_page, sample
from tests.tui.scenes import DONE
from tests.tui.screens.fakes import Sessions, Settings, ports
from tests.tui.support import Running, Session, running


async def opened(it: Running) -> None:
    it.app.interface.open("settings")
    await it.shows("Settings · the most used of 5")


class Slow(Settings):
    """Reads once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_read = threading.Event()

    def read(self) -> Sequence[Setting]:
        self.may_read.wait()
        return super().read()


async def test_before_the_settings_are_read_none_is_counted() -> None:
    slow = Slow()
    async with running(**ports(slow)) as it:
        try:
            it.app.interface.open("settings")
            await it.shows("Reading the settings.")
            await it.hides("of 0")
        finally:
            slow.may_read.set()
        await it.shows("Settings · the most used of 5")


async def listed(it: Running) -> None:
    """All of them are listed."""
    await opened(it)
    await it.press("end", "enter")
    await it.shows("Settings · 5")


@pytest.mark.parametrize(
    ("typed", "left"),
    [("no", ["false"]), ("On", ["true"]), ("off", ["false"]), ("tr", ["true"]), ("", ["true", "false"])],
)
def test_a_switch_is_found_by_the_usual_words(typed: str, left: list[str]) -> None:
    mouse = Setting("ui.mouse", "true", "true", "default", "", "true or false", "true", ("true", "false"))
    assert [entry.name for entry in choices(mouse, typed)] == left


async def test_typing_narrows_by_name_value_and_meaning() -> None:
    async with running(**ports(Settings())) as it:
        await opened(it)
        await it.press(*"no cap")
        await it.shows("1 of 5", "agent.max_steps")
        await it.hides("hard_block")
        await it.press("escape")
        await it.shows("the most used of 5", "Permission mode", "Theme", "All 5 settings")
        await it.press("escape")
        await it.hides("Settings")
        assert it.app.main.transcript.display
        assert it.editor.has_focus


async def test_a_value_is_checked_while_it_is_typed_and_written() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await listed(it)
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
        await it.shows("Enter writes it to /w/.swecli/config.local.toml")
        await it.press("enter")
        await it.shows("written to /w", "Settings · 5")
        assert settings.written == [("agent.hard_block", "0.97", "local")]


@pytest.mark.parametrize("size", [(40, 15), (40, 10), (40, 8)])
async def test_a_small_window_says_what_is_wrong_with_a_value_too(size: tuple[int, int]) -> None:
    settings = Settings()
    async with running(**ports(settings), size=size) as it:
        await listed(it)
        await it.press("enter")
        await it.shows("agent.hard_block = 0.98")
        await it.press("ctrl+u", *"bad", "enter")
        await it.shows("must be better")
        await it.press("escape")
        await it.shows("Settings · 5", "d_block")
        assert settings.written == []


async def test_few_values_are_offered_and_count_at_once() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await opened(it)
        await it.press(*"approval.mode", "enter")
        await it.shows("current", "default")
        await it.press("up", "enter")
        await it.until(lambda: settings.written)
        assert settings.written == [("approval.mode", '"default"', "user")]
        await it.until(lambda: it.session.sent(SetMode))
        await it.press("escape", "escape")
        await it.hides("Settings")


async def test_words_that_no_choice_contains_are_answered() -> None:
    async with running(**ports(Settings())) as it:
        await opened(it)
        await it.press(*"approval.mode", "enter", *"zz")
        await it.shows("No match.", "One of")


async def test_esc_leaves_a_value_as_it_is() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await opened(it)
        await it.press(*"hard", "enter", *"9", "escape")
        await it.shows("1 of 5", "agent.hard_block")
        assert settings.written == []


async def test_a_key_takes_a_value_out_of_the_file() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await listed(it)
        await it.press("ctrl+x")
        await it.shows("is not in your files")
        await it.press(*"plan", "ctrl+x")
        await it.until(lambda: settings.written)
        assert settings.written == [("approval.mode", "", "user")]


async def test_what_may_be_secret_is_not_changed_here() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await opened(it)
        await it.press(*"headers", "enter")
        await it.shows("It may hold keys.")
        assert it.app.main.list_view is not None
        assert "headers = " not in it.screen()


async def test_a_setting_that_is_not_there_yet_can_be_named() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await opened(it)
        await it.press(*"models.window.x", "enter")
        await it.shows("models.window.x = ")
        await it.press(*"5000", "enter")
        await it.until(lambda: settings.written)
        assert settings.written == [("models.window.x", "5000", "user")]


async def test_what_waits_for_a_session_is_said_when_leaving() -> None:
    async with running(**ports(Settings())) as it:
        await listed(it)
        await it.press("enter", "ctrl+u", *"0.9", "enter")
        await it.shows("written to")
        await it.press("escape", "escape")
        await it.shows("agent.hard_block: applies from the next session")


async def changed_after_a_turn(it: Running) -> None:
    await it.say("go")
    await it.shows("done in 12 s")
    await listed(it)
    await it.press("enter", "ctrl+u", *"0.9", "enter")
    await it.shows("written to", "Settings · 5")
    await it.press("escape", "escape")
    await it.shows("Apply agent.hard_block", "reopens this session")


def reopening(opened: list[str], then: Session | Exception) -> Sessions:
    def open_one(name: str) -> Any:
        async def run() -> Session:
            opened.append(name)
            if isinstance(then, Exception):
                raise then
            return then

        return run

    return Sessions(open_one)


async def test_the_session_is_opened_again_with_what_waits_for_that() -> None:
    names: list[str] = []
    again = Session((), history=DONE)
    screens = ports(Settings(), sessions=reopening(names, again))
    async with running(DONE, **screens) as it:
        await changed_after_a_turn(it)
        await it.press("enter")
        await it.until(lambda: it.app.session.port is again)
        assert names == [it.session.view.session_id]
        await it.until(lambda: it.session.closed)
        await it.shows("Reopened with the new settings", "Fixed: ten pens")
        await it.until(lambda: it.editor.has_focus)
        await it.say("next")
        await it.until(lambda: again.sent(Submit))


async def test_the_session_goes_on_as_it_is_where_the_user_wants_that() -> None:
    names: list[str] = []
    for keys in (("down", "enter"), ("escape",)):
        screens = ports(Settings(), sessions=reopening(names, Session()))
        async with running(DONE, **screens) as it:
            await changed_after_a_turn(it)
            await it.press(*keys)
            await it.hides("Apply agent.hard_block")
            assert not it.session.closed
            assert names == []
            await it.until(lambda it=it: it.editor.has_focus)
            it.app.interface.open("help")
            await it.shows("Help ·")
            await it.press("escape")
            await it.hides("Help ·")
            assert it.app.main.dock.panel is None, "what was left for later is not asked about again"


async def test_a_session_that_does_not_open_again_says_why_and_leaves_one() -> None:
    names: list[str] = []
    back = Session()

    async def new() -> Session:
        return back

    screens = ports(Settings(), sessions=reopening(names, StartError("it is open elsewhere")))
    async with running(DONE, **screens, new_session=new) as it:
        await changed_after_a_turn(it)
        await it.press("enter")
        await it.until(lambda: names)
        await it.until(lambda: it.app.failure is not None or it.app.session.port is back)
        assert "it is open elsewhere" in (str(it.app.failure) if it.app.failure else it.screen())


async def test_a_theme_is_chosen_from_a_list_that_shows_each_one() -> None:
    settings = Settings()
    async with running(**ports(settings)) as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        before = it.app.theme
        await opened(it)
        await it.press("down", "enter")
        await it.shows("Settings · ui.theme", "nord", "current", "gruvbox-dark")
        await it.until(lambda: it.app.theme == "nord")
        await it.press(*"gruvbox-l")
        await it.until(lambda: it.app.theme == "gruvbox-light")
        await it.press("escape")
        await it.until(lambda: it.app.theme == before)
        await it.press("enter", *"dracula")
        await it.until(lambda: it.app.theme == "dracula")
        await it.press("enter")
        await it.until(lambda: settings.written == [("ui.theme", "dracula", "user")])
        await it.shows("the most used of 5")


async def test_a_model_is_chosen_from_those_of_the_servers() -> None:
    settings, session = Settings(), Session()
    settings.settings.append(Setting("model.name", "(unset)", "", "default", "Main model.", "a text", "(unset)"))
    session.offers.listed = (ModelOffer("local/served", "environment"),)
    async with running(session=session, **ports(settings)) as it:
        it.app.interface.open("settings", "model.name")
        await it.shows("Main model.")
        await it.press("enter")
        await it.shows("Settings · model.name", "local/served")
        await it.press(*"served", "enter")
        await it.until(lambda: settings.written == [("model.name", "local/served", "user")])


def test_the_first_page_has_names_for_people_and_leads_to_all() -> None:
    made = [Setting(name, "x", "x", "default", "", "a text", "") for name in (*COMMON, "agent.max_steps")]
    page = first_page(made)
    assert [entry.cells[0] for entry in page] == [*list(COMMON.values())[:MOST], f"All {len(made)} settings …"]
    assert page[-1].name == ALL
    assert [entry.name for entry in first_page(made[-1:])] == [ALL]


def test_every_common_setting_is_one() -> None:
    missing = [name for name in COMMON if meaning(tuple(name.split("."))) is None]
    assert set(missing) <= {"ui.editing"}, "vim keys may not be there yet"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("context.warn", "0.5", "▕████████████            ▏ 50%"),
        ("ui.density", '"short"', "exit 1"),
        ("ui.mouse", "true", ""),
    ],
)
def test_a_value_shows_what_it_does(name: str, value: str, shown: str) -> None:
    assert shown in " ".join(getattr(block, "text", "") for block in sample(name, value))
    assert sample("context.warn", "much") == ()
