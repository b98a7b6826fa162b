"""Which keys are told where there is no room for all."""

from __future__ import annotations

from swecli.tui.screens.list_screen import fitted
from tests.tui.support import running

NOTE = "enter opens · Ctrl+X stops it · ↑↓ move"


def test_how_to_leave_stays_and_then_what_comes_first() -> None:
    assert fitted(NOTE, "esc closes", 100) == f"{NOTE} · esc closes"
    assert fitted(NOTE, "esc closes", 45) == "enter opens · Ctrl+X stops it · esc closes"
    assert fitted(NOTE, "esc closes", 30) == "enter opens · esc closes"
    assert fitted(NOTE, "esc closes", 3) == "esc closes"
    assert fitted("", "esc closes", 80) == "esc closes"


async def test_it_is_told_what_esc_does_now() -> None:
    async with running() as it:
        it.app.interface.open("help")
        await it.shows("Help ·", "esc closes")
        await it.press("m")
        await it.shows("esc clears")
        await it.press("escape")
        await it.shows("esc closes")


def test_the_first_key_is_cut_rather_than_left_out() -> None:
    note, leave = "enter asks what to restore · ↑↓ move", "esc closes"
    assert fitted(note, leave, 60) == f"{note} · {leave}"
    assert fitted(note, leave, 38) == "enter asks what to resto… · esc closes"
    assert fitted(note, leave, 20) == leave
