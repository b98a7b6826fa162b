"""Every screen as text at three sizes, light, dark and without colours; with the styles of its parts at one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from swecli.commands.base import Screen
from swecli.core.engine.rewind import RewindPoint
from swecli.core.protocol.events import FilesRestored, JobChanged, LeftFile, RestoredFile
from swecli.features.playbook.companion import SessionPlaybook
from tests.tui.golden import check
from tests.tui.screens.fakes import NOW, Permissions, Sessions, Settings, ports
from tests.tui.screens.test_jobs import JOBS, OUTPUT, SERVER
from tests.tui.screens.test_playbook import CORE, TRIAL, Stub
from tests.tui.support import Running, running
from tests.tui.test_looks import MIDDLE, SIZES, check_all, styles


async def helping(it: Running) -> None:
    it.app.interface.open("help")
    await it.shows("Help ·")


async def searching(it: Running) -> None:
    it.app.interface.open("help", "transcript")
    await it.shows("Help ·", " of ")


async def settings(it: Running) -> None:
    it.app.interface.open("settings")
    await it.shows("the most used of 5", "Permission mode")


async def all_settings(it: Running) -> None:
    await settings(it)
    await it.press("end", "enter")
    await it.shows("Settings · 5", "hard_block")


async def editing(it: Running) -> None:
    await all_settings(it)
    await it.press("enter", "ctrl+u", *"bad")
    await it.shows("must be better than that")


async def choosing(it: Running) -> None:
    await settings(it)
    await it.press(*"approval.mode", "enter")
    await it.shows("current")


async def permissions(it: Running) -> None:
    it.app.interface.open("permissions")
    await it.shows("Permissions · 4", "Granted")


async def adding(it: Running) -> None:
    await permissions(it)
    await it.press(*"Bash(npm run *)")
    await it.shows("would have decided", "+ Bash")


async def sessions(it: Running) -> None:
    it.app.interface.open("sessions")
    await it.shows("Sessions · 3", "what was answered")


async def playbook(it: Running) -> None:
    it.session.companions[SessionPlaybook] = Stub(CORE, TRIAL)
    it.app.interface.open("playbook")
    await it.shows("Playbook · 2", "session s-1")


async def bullet(it: Running) -> None:
    await playbook(it)
    await it.press("enter")
    await it.shows("counts 5 times as helpful")


async def bullet_editing(it: Running) -> None:
    await bullet(it)
    await it.press(*"edit", "enter")
    await it.shows("Edit tes-00001", "enter saves")


async def rewinding(it: Running) -> None:
    it.session.rewinds.listed = POINTS
    it.session.rewinds.files = FilesRestored(
        "undo",
        files=(RestoredFile("/proj/src/login.py", "restored"), RestoredFile("/proj/new.py", "removed")),
        conflicts=(LeftFile("/proj/notes.md", "changed since"),),
    )
    it.app.interface.open("rewind")
    await it.shows("Rewind to before a message · 3", "Before message 3")


async def palette(it: Running) -> None:
    it.app.interface.palette.open()
    await it.shows("Command palette")


async def jobs(it: Running) -> None:
    it.session.view.jobs = JOBS
    it.session.job_outputs = {"j1": OUTPUT}
    it.session.emit(JobChanged("j1", SERVER.command, "running"))
    await it.shows("2 jobs")
    it.app.interface.open("jobs")
    await it.shows("Jobs · 4", "GET /favicon.ico")


async def job_output(it: Running) -> None:
    await jobs(it)
    await it.press("enter")
    await it.shows("esc back to the list", "ready on port 3000")


async def no_jobs(it: Running) -> None:
    it.app.interface.open("jobs")
    await it.shows("Jobs · 0", "No jobs yet")


POINTS = (
    RewindPoint(1, "u1", "Where is the login checked?", NOW - 4_000, 12_400, 3, 40, 12),
    RewindPoint(
        2, "u4", "Fix the session cookie,\nand add a test for 日本語 \x1b[31m names", NOW - 600, 5_200, 2, 31, 12
    ),
    RewindPoint(3, "u9", "Now the documentation", NOW - 60, 900, 0),
)
SCENES: dict[str, Callable[[Running], Awaitable[None]]] = {
    "screen-help": helping,
    "screen-help-search": searching,
    "screen-settings": settings,
    "screen-settings-all": all_settings,
    "screen-settings-edit": editing,
    "screen-settings-choices": choosing,
    "screen-permissions": permissions,
    "screen-permissions-add": adding,
    "screen-sessions": sessions,
    "screen-rewind": rewinding,
    "screen-playbook": playbook,
    "screen-playbook-bullet": bullet,
    "screen-playbook-edit": bullet_editing,
    "screen-palette": palette,
    "screen-jobs": jobs,
    "screen-jobs-output": job_output,
    "screen-jobs-none": no_jobs,
}


def fakes() -> dict[str, Any]:
    return ports(Settings(), Permissions(), Sessions(cast("Any", lambda name: lambda: None)))


@pytest.mark.parametrize("scene", SCENES)
async def test_screen(scene: str) -> None:
    async with running(**fakes()) as it:
        await it.until(lambda: "nord" in it.app.appearance.library.names)
        await SCENES[scene](it)
        await check_all(it, scene, (MIDDLE, *SIZES) if scene == "screen-settings" else SIZES)


@pytest.mark.parametrize("scene", SCENES)
async def test_screen_without_colours(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(**fakes()) as it:
        await it.until(lambda: it.app.theme == "terminal")
        await SCENES[scene](it)
        await it.settled()
        check(f"{scene}-80x24", it.screen())
        check(f"{scene}-no-colour-styles", styles(it))


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (20, 5), (40, 12)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", ["help", "settings", "permissions", "sessions", "jobs"])
async def test_small_windows_and_changes_of_size(scene: Screen, size: tuple[int, int]) -> None:
    async with running(size=size, **fakes()) as it:
        it.app.interface.open(scene)
        await it.until(lambda: it.app.main.list_view is not None and it.app.main.list_view.is_mounted)
        await it.press("down", "a", "pagedown", "end", "backspace")
        await it.pilot.resize_terminal(100, 30)
        await it.shows(f"{scene.capitalize()} ·")
        await it.pilot.resize_terminal(*size)
        await it.press("escape", "escape")
        await it.until(lambda: it.app.main.list_view is None)
