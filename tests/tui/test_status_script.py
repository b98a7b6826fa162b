"""A status line of the user's own: what it gets, and that it never holds anything up."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import pytest

from swecli.core.protocol.budget import Budget
from swecli.tui.main_screen import MainScreen
from swecli.tui.preferences import Preferences
from swecli.tui.status_bar import GIVE_UP, Facts, StatusScript, document, unsaid
from tests.tui.support import Session, running, until


class Seen:
    def __init__(self) -> None:
        self.lines: list[str | None] = []
        self.told: list[str] = []

    def script(self, command: str, timeout: float = 10.0) -> StatusScript:
        environ = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-secret", "GATEWAY": "sk-other"}
        return StatusScript(
            command, timeout, {"GATEWAY"}, self.lines.append, self.told.append, environ=environ, pause=0.0
        )


async def test_it_gets_the_state_and_no_keys(tmp_path: Path) -> None:
    seen = Seen()
    script = seen.script('cat > state.json; echo "first $OPENAI_API_KEY$GATEWAY|$COLUMNS"; echo second')
    facts = Facts("plan", "a/b", None, 0.5, Decimal("0.25"), "main*")
    script.update(document(facts, None, 99), tmp_path)
    await until(lambda: seen.lines)
    assert seen.lines == ["first |99"]
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["mode"], state["model"], state["cost_usd"], state["branch"]) == ("plan", "a/b", 0.25, "main*")
    assert (state["context"], state["cache_share"], state["columns"]) == (None, 0.5, 99)
    await script.close()


def test_the_context_in_figures() -> None:
    budget = Budget((), 500, 500, 1_000, 2_000, 1_000, "ok", "measured")
    state = document(Facts("default", None, budget), None, 80)
    assert state["context"] == {"used": 500, "effective": 1_000, "share": 0.5, "level": "ok", "estimated": False}


async def test_the_same_state_runs_it_once_and_a_burst_only_for_the_newest(tmp_path: Path) -> None:
    seen = Seen()
    script = seen.script("cat >/dev/null; echo run >> runs")
    for _ in range(3):
        script.update({"n": 1}, tmp_path)
    for number in range(2, 50):
        script.update({"n": number}, tmp_path)
    await until(lambda: len(seen.lines) == 1)
    await asyncio.sleep(0)
    script.update({"n": 49}, tmp_path)
    assert (tmp_path / "runs").read_text().count("run") == 1
    script.update({"n": 50}, tmp_path)
    await until(lambda: len(seen.lines) == 2)
    await script.close()


async def test_one_that_hangs_is_killed_with_its_children_and_told_once(tmp_path: Path) -> None:
    child, seconds = tmp_path / "child", 0.3
    while not child.is_file() or not child.read_text():  # a busy machine may not get that far in so many seconds
        seen = Seen()
        script = seen.script("(sleep 6000; echo late > late) & echo $! > child; sleep 6000; true", timeout=seconds)
        for number in range(GIVE_UP + 3):
            script.update({"n": number}, tmp_path)
            await until(lambda script=script: script._task is not None and script._task.done())
        assert seen.lines == [None] * GIVE_UP
        assert len(seen.told) == 1
        assert f"took longer than {seconds:g} s" in seen.told[0]
        await script.close()
        seconds *= 10
    await until(lambda: not _runs(child.read_text().strip()))


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


@pytest.mark.parametrize(
    ("command", "words"), [("echo no >&2; exit 3", "status 3: no"), ("no-such-program-here", "status 127")]
)
async def test_failures_are_told(tmp_path: Path, command: str, words: str) -> None:
    seen = Seen()
    script = seen.script(command)
    script.update({}, tmp_path)
    await until(lambda: seen.told)
    assert words in seen.told[0]
    await script.close()


async def test_flooding_and_missing_folders(tmp_path: Path) -> None:
    seen = Seen()
    script = seen.script("yes")
    script.update({}, tmp_path)
    await until(lambda: seen.lines)
    assert seen.lines == ["y"]
    script.update({"n": 1}, tmp_path / "gone")
    await until(lambda: seen.told)
    assert "could not start" in seen.told[0]
    await script.close()


async def test_its_output_is_shown_sanitised_in_place_of_the_bar(tmp_path: Path) -> None:
    command = r"printf '\033[32mgreen\033[0m [bold]\033]0;owned\007 \033[2Jrest\n'"
    wanted = lambda: Preferences(status_line=command)  # noqa: E731
    session = Session()
    session.view.cwd = tmp_path
    async with running(session=session, preferences=wanted) as it:
        await it.until(lambda: any("green [bold]" in row for row in it.screen().splitlines()[-1:]))
        line = it.screen().splitlines()[-1]
        assert "\x1b" not in line
        assert "\x07" not in line
        assert "default" not in line


async def test_one_set_in_the_running_program_is_shown_at_once(tmp_path: Path) -> None:
    wanted = [Preferences()]
    session = Session()
    session.view.cwd = tmp_path
    async with running(session=session, preferences=lambda: wanted[-1]) as it:
        wanted.append(Preferences(status_line="echo mine"))
        it.app.main.post_message(MainScreen.PreferencesChanged())
        await it.until(lambda: "mine" in it.screen().splitlines()[-1])


async def test_a_mode_that_it_does_not_name_stays_visible(tmp_path: Path) -> None:
    assert unsaid(Facts("default", "m"), "mine") == []
    assert "".join(one.text for one in unsaid(Facts("auto", "m", editing="INSERT"), "mine")) == "INSERT · auto · "
    assert unsaid(Facts("auto", "m", editing="INSERT"), "INSERT auto") == []
    assert "yolo" in unsaid(Facts("default", "m", yolo=True), "mine")[0].text
    session = Session()
    session.view.cwd, session.view.mode = tmp_path, "accept-edits"
    async with running(session=session, preferences=lambda: Preferences(status_line="echo mine", editing="vim")) as it:
        await it.until(lambda: it.screen().splitlines()[-1].strip() == "INSERT · accept-edits · mine")


async def test_a_broken_one_is_told_and_the_bar_stays(tmp_path: Path) -> None:
    session = Session()
    session.view.cwd = tmp_path
    async with running(session=session, preferences=lambda: Preferences(status_line="exit 4")) as it:
        await it.shows("ui.status_line ended with status 4")
        assert "default" in it.screen().splitlines()[-1]
        await it.type("hello")
        await it.shows("› hello")
