"""What the scripted model says in the demonstration when the user says no."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from swecli import demo
from swecli.app import open_session
from swecli.core.protocol.commands import ReplyPermission, Submit
from swecli.core.protocol.events import ItemCompleted, PermissionRequested, TurnEnded
from swecli.core.protocol.messages import TextPart
from swecli.launch import LaunchOptions
from tests.support.waiting import PATIENCE


async def last_words(folder: Path, *, refused: str) -> str:
    """Play the demonstration, refuse calls of one tool, and return the last text."""
    session = await open_session(LaunchOptions(cwd=folder, script=demo.SCRIPT, store=False, headless=True))
    events = session.subscribe(replay=True)
    session.send(Submit(demo.PROMPT))
    text = ""
    while not isinstance((body := (await asyncio.wait_for(anext(events), PATIENCE)).body), TurnEnded):
        if isinstance(body, PermissionRequested):
            session.send(ReplyPermission(body.request, "reject" if body.tool == refused else "once"))
        elif isinstance(body, ItemCompleted):
            text = "".join(part.text for part in body.parts if isinstance(part, TextPart)) or text
    await session.close()
    return text


@pytest.mark.parametrize(
    ("refused", "words", "fixed"),
    [
        ("edit_file", "I left the file as it is", False),
        ("run_command", "I can't say that this is fixed", True),
        ("", "Fixed, and all five tests pass", True),
    ],
)
async def test_the_model_claims_only_what_happened(
    refused: str, words: str, fixed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    folder = demo.prepare()
    assert words in await last_words(folder, refused=refused)
    assert (">= pieces" in (folder / "basket" / "pricing.py").read_text()) == fixed
