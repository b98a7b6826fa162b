"""A headless run that could not store its end says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from swecli.command_line.headless import run_headless
from swecli.core.protocol.events import Event, TurnStarted
from swecli.core.sessions.store import SessionStore
from swecli.launch import LaunchOptions

LOST = "swecli: The end of this conversation could not be stored and is lost"


@pytest.mark.parametrize("full", [True, False])
def test_what_could_not_be_stored_is_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], full: bool
) -> None:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    append = SessionStore.append
    began = False

    def limited(self: SessionStore, events: Sequence[Event]) -> None:
        nonlocal began
        began |= any(isinstance(event.body, TurnStarted) for event in events)
        if full and began:
            raise sqlite3.OperationalError("database or disk is full")
        append(self, events)

    monkeypatch.setattr(SessionStore, "append", limited)
    script = tmp_path / "script.toml"
    script.write_text('[[step]]\ntext = "Done."\n')
    (tmp_path / "work").mkdir()
    run_headless(LaunchOptions(cwd=tmp_path / "work", prompt="go", headless=True, script=script))
    said = capsys.readouterr()
    assert "Done." in said.out
    assert (LOST in said.err) is full
    assert ("Cannot store the session right now" in said.err) is full
