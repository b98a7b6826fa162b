"""Screens in light and dark: the same text, and goldens of which style each part of it has."""

from __future__ import annotations

import pytest

from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.events import Body, Budget
from swecli.core.protocol.usage import Usage
from swecli.tui.preferences import Preferences
from tests.tui.golden import check
from tests.tui.support import Running, Session, running
from tests.tui.test_screens import DONE, SCENES, WORK, Scene

THEMES = {"dark": "swecli-dark", "light": "swecli-light"}


async def themes(it: Running) -> None:
    it.app.desk.open("pick_theme")
    await it.shows("follows the terminal", "gruvbox-dark")


async def find(it: Running) -> None:
    await it.say("go")
    await it.shows("done in 12.0s")
    await it.press("ctrl+f")
    await it.press(*"pens")
    await it.shows("enter older")


async def keys(it: Running) -> None:
    it.app.desk.open("keys", "scroll")
    await it.shows("page_up", "[keys]")


async def walk(it: Running) -> None:
    await it.say("go")
    await it.shows("done in 12.0s")
    await it.press("tab", "up", "up")
    await it.until(lambda: it.app.transcript.cursor is not None)


OWN: dict[str, tuple[tuple[Body, ...], Scene]] = {
    "themes": (WORK, themes),
    "find": (DONE, find),
    "keys": ((), keys),
    "walk": (DONE, walk),
}
SHARED = {name: scene for name, scene in SCENES.items() if name != "welcome"}


def styles(it: Running) -> str:
    """Each run of text with its colours and attributes."""
    out: list[str] = []
    for number, strip in enumerate(it.app.screen._compositor.render_strips()):
        runs: list[tuple[str, str]] = []
        for text, style, _ in strip:
            name = str(style.without_color + type(style)(color=style.color, bgcolor=style.bgcolor)) if style else ""
            if runs and runs[-1][1] == name:
                runs[-1] = (runs[-1][0] + text, name)
            else:
                runs.append((text, name))
        out += [f"{number:>2} {text.strip()!r} {name}" for text, name in runs if text.strip()]
    return "\n".join(out)


def prepared(bodies: tuple[Body, ...]) -> Session:
    session = Session(bodies)
    session.view.model = ModelInfo("anthropic", "sonnet-5", 128_000)
    session.view.budget = Budget((), 54_000, 55_000, 120_000, 128_000, 8_000, "ok", "measured")
    session.view.last_usage = Usage(input_total=1000, cache_read=930)
    return session


@pytest.mark.parametrize("look", THEMES)
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", [*SHARED, *OWN])
async def test_screen(scene: str, size: tuple[int, int], look: str) -> None:
    bodies, act = {**SHARED, **OWN}[scene]
    wanted = Preferences(theme=THEMES[look])
    session = prepared(bodies)
    async with running(session=session, size=size, branch=lambda: "main*", preferences=lambda: wanted) as it:
        await it.until(lambda: "main*" in it.screen() and "nord" in it.app.appearance.library.names)
        await act(it)
        await it.pilot.pause()
        assert it.app.theme == THEMES[look] or scene == "themes"
        if scene != "themes":  # there the list says what is chosen
            check(f"{scene}-{size[0]}x{size[1]}", it.screen())
        else:
            check(f"{scene}-{look}-{size[0]}x{size[1]}", it.screen())
        if size == (80, 24):
            check(f"{scene}-{look}-styles", styles(it))
