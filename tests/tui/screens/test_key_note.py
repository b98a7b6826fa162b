"""Which keys are told where there is no room for all."""

from __future__ import annotations

from swecli.tui.screens.key_note import fitted

NOTE = "enter opens · Ctrl+X stops it · ↑↓ move · esc closes"


def test_how_to_leave_stays_and_then_what_comes_first() -> None:
    assert fitted(NOTE, 100) == NOTE
    assert fitted(NOTE, 45) == "enter opens · Ctrl+X stops it · esc closes"
    assert fitted(NOTE, 30) == "enter opens · esc closes"
    assert fitted(NOTE, 3) == "esc closes"
    assert fitted("esc closes", 80) == "esc closes"
