"""Screens in light and dark: the same text, and goldens of which style each part of it has."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.budget import Budget
from swecli.core.protocol.events import Body, Rewound, TurnEnded, TurnStarted
from swecli.core.protocol.messages import Usage
from swecli.tui.preferences import Preferences
from tests.tui.golden import check
from tests.tui.scenes import DONE, RUN, SCENES, WORK, Scene, change, user
from tests.tui.support import Running, Session, running

SIZES = ((120, 40), (200, 60))
"""Besides that in which a scene begins, 80x24."""
MIDDLE = (100, 30)
"""A size of its own for what people see most."""
MET_DAILY = frozenset(("welcome", "conversation", "change", "danger", "blocked"))
DANGER = replace(
    RUN,
    title="rm -rf build dist",
    blocks=(TerminalBlock("rm -rf build dist", "", cwd="/proj"),),
    reason="It deletes files.",
    danger="deletes 36 untracked files (/undo restores them)",
    rule=None,
    rule_note="Deleting asks each time.",
)
THEMES = {"dark": "swecli-dark", "light": "swecli-light"}


async def find(it: Running) -> None:
    await it.say("go")
    await it.shows("done in 12 s")
    await it.press("ctrl+f")
    await it.press(*"pens")
    await it.shows("enter older", "4 of 4")


async def blocked(it: Running) -> None:
    await it.say("go")
    await it.shows("Not sent", "/clear starts")


async def keys(it: Running) -> None:
    it.app.interface.open("keys", "scroll")
    await it.shows("page_up", "[keys]")


async def walk(it: Running) -> None:
    await it.say("go")
    await it.shows("done in 12 s")
    await it.press("tab", "up", "up")
    await it.until(lambda: it.app.main.transcript.cursor is not None)


OWN: dict[str, tuple[tuple[Body, ...], Scene]] = {
    "blocked": (
        (
            TurnStarted("u1"),
            *user("Summarise this log: [Pasted text #1: 4,210 lines, 310K]"),
            Rewound("u1", "the message was not sent", "Summarise this log: [Pasted text #1: 4,210 lines, 310K]"),
            TurnEnded("blocked", "The context would be 182% full. Try: /clear starts with an empty context."),
        ),
        blocked,
    ),
    "danger": ((*WORK, DANGER), change),
    "find": (DONE, find),
    "keys": ((), keys),
    "walk": (DONE, walk),
}


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


async def check_all(it: Running, name: str, sizes: Sequence[tuple[int, int]] = SIZES) -> None:
    """The screen in dark and light, then in other sizes: one application, which changes on the way."""
    for look, theme in THEMES.items():
        it.app.appearance.preview(theme)
        await it.until(lambda theme=theme: it.app.theme == theme)
        await it.settled()
        check(f"{name}-{look}-styles", styles(it))
        check(f"{name}-80x24", it.screen())
    for size in sizes:
        await it.pilot.resize_terminal(*size)
        it.app._fit()
        await it.settled()
        assert len(it.screen().split("\n")) == size[1]
        check(f"{name}-{size[0]}x{size[1]}", it.screen())


@pytest.mark.parametrize("scene", [*SCENES, *OWN])
async def test_screen(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL")) or name == "OLLAMA_HOST"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    bodies, act = {**SCENES, **OWN}[scene]
    session = prepared(bodies) if scene != "welcome" else Session(bodies, model=False)
    async with running(session=session, branch=lambda: "main*") as it:
        await it.until(lambda: "main*" in it.screen() and "nord" in it.app.appearance.library.names)
        await act(it)
        sizes = (*SIZES, (40, 12)) if scene in SCENES else SIZES
        await check_all(it, scene, (MIDDLE, *sizes) if scene in MET_DAILY else sizes)
        assert "sk-secret" not in it.screen()


@pytest.mark.parametrize("look", THEMES)
async def test_themes(look: str) -> None:
    wanted = Preferences(theme=THEMES[look])
    async with running(session=prepared(WORK), branch=lambda: "main*", preferences=lambda: wanted) as it:
        await it.until(lambda: "main*" in it.screen() and "nord" in it.app.appearance.library.names)
        it.app.interface.open("pick_theme")
        await it.shows("follows the terminal", "gruvbox-dark")
        await it.settled()
        check(f"themes-{look}-styles", styles(it))
        for size in ((80, 24), *SIZES):
            await it.pilot.resize_terminal(*size)
            it.app._fit()
            await it.settled()
            check(f"themes-{look}-{size[0]}x{size[1]}", it.screen())


async def test_the_chosen_suggestion_stands_out_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as it:
        await it.until(lambda: it.app.theme == "terminal")
        await SCENES["suggestions"][1](it)
        await it.until(lambda: "bold reverse default on default" in styles(it))


async def test_keys_of_a_screen_are_as_bright_as_those_of_a_panel_without_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running() as it:
        await it.until(lambda: it.app.theme == "terminal")
        await it.press("?")
        await it.shows("esc closes")
        shown = styles(it)
        assert "'esc' bold" in shown
        assert "'esc' bold dim" not in shown
        assert "'closes' dim" in shown
