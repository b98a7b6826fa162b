"""An installation that is replaced or removed under a running swecli."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import swecli
from swecli import own_files
from swecli.commands.base import CommandResult, SlashCommand, run_command
from swecli.core.engine.session import Session
from swecli.core.protocol.blocks import TextBlock
from swecli.tui.app import FILES_REPLACED
from swecli.tui.launch import defect_report
from tests.support.fake_session import FakeSession
from tests.tui.support import running

PROGRAM = """
import sys
from pathlib import Path
from swecli.command_line import dispatch
from swecli.own_files import replaced
assert not replaced()
dispatch._one_line_for_defects(False)
package = Path(dispatch.__file__).parents[1]
if sys.argv[1] == "removed":
    package.rename(package.with_name("gone"))
else:
    file = package / "__init__.py"
    text = file.read_bytes()
    file.rename(package / "old.py")
    file.write_bytes(text)
assert replaced()
import swecli.not_there
"""


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_run_whose_files_are_gone_ends_with_one_plain_line(tmp_path: Path, how: str) -> None:
    source = Path(swecli.__file__).parent
    shutil.copytree(source, tmp_path / "swecli", ignore=shutil.ignore_patterns("__pycache__", "demo"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PROGRAM, how]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.stderr == f"swecli: {own_files.REPLACED}, so it ended. Stored work is kept; run the command again.\n"


async def test_a_command_and_the_interface_name_the_cause(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def late(_session: Session, _words: str) -> CommandResult:
        raise ModuleNotFoundError("No module named 'swecli.late'")

    monkeypatch.setattr(own_files, "_BEGAN", (1, 1, 1))
    session = FakeSession()
    (block,) = (await run_command(SlashCommand("late", "", late), session, "")).blocks
    assert isinstance(block, TextBlock)
    assert block.text == f"/late failed inside swecli: {own_files.REPLACED}. The conversation is kept; restart swecli."
    assert len(session.defects) == 1
    text = defect_report(ModuleNotFoundError("swecli.late"), tmp_path / "state", "swecli -c")
    assert text == f"{own_files.REPLACED}, so it ended. The conversation is stored; `swecli -c` continues it."
    assert "ModuleNotFoundError" in (tmp_path / "state" / "errors.log").read_text()


async def test_the_interface_goes_on_without_what_it_can_not_load_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'swecli.late'")

    async def late_worker() -> None:
        late()

    async with running() as it:
        monkeypatch.setattr(own_files, "_BEGAN", (1, 1, 1))
        raisers = (
            lambda: it.app.call_later(late),
            lambda: it.editor.call_later(late),
            lambda: it.app.call_after_refresh(late),
            lambda: it.app.set_timer(0.01, late),
            lambda: it.app.run_worker(late_worker()),
        )
        for place, fail in enumerate(raisers):
            fail()
            await it.until(lambda: it.app.main.activity._flash == FILES_REPLACED)
            it.app.main.activity.end_flash()
            await it.press("x")
            await it.until(lambda count=place + 1: it.text == "x" * count)
        assert it.app.defect is None
