"""Writes docs/images/*.svg: the real program at work on the sample project of the demonstration."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot

from scripts import shown_project
from swecli import demo
from swecli.command_line.interactive import open_with_banner
from swecli.launch import LaunchOptions
from swecli.tui.app import SwecliApp
from swecli.tui.program import program_of

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (112, 36)
WIDE = (168, 36)
"""Enough for old and new text side by side."""
DAILY = (100, 30)
UNDO_SIZE = (100, 34)
DEADLINE = 60.0


SCRIPT = Path(__file__).with_name("small-model.toml")
UNDO_SCRIPT = Path(__file__).with_name("deleting-model.toml")
LIGHT = "swecli-light"


class Camera:
    """A running program and what is waited for before a picture."""

    def __init__(self, app: SwecliApp, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    async def seen(self, *texts: str) -> None:
        """Wait for texts on the screen, and until nothing moves any more."""
        await self.until(lambda: all(text in screen(self.app) for text in texts))
        await self.pilot.pause(0.5)

    async def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + DEADLINE
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"never seen; the screen is:\n{screen(self.app)}")
            await self.pilot.pause(0.05)

    async def in_size(self, size: tuple[int, int]) -> None:
        await self.pilot.resize_terminal(*size)
        await self.pilot.pause(0.5)

    async def answer(self, key: str) -> None:
        """Press a key once the panel counts keys."""
        dock = self.app.main.dock
        await self.until(lambda: dock.panel is not None and dock.panel.grace is not None)
        await self.until(lambda: dock.panel is None or dock.panel.grace is None or not dock.panel.grace.ignores())
        await self.pilot.press(key)

    async def in_both(self, name: str, *texts: str) -> None:
        """Pictures of the screen in the dark and the light default theme."""
        await self.seen(*texts)
        save(self.app, f"{name}.svg")
        self.app.appearance.preview(LIGHT)
        await self.until(lambda: self.app.theme == LIGHT)
        await self.pilot.pause(0.5)
        save(self.app, f"{name}-light.svg")
        self.app.appearance.apply()
        await self.pilot.pause(0.5)


async def main(folder: Path) -> None:
    options = LaunchOptions(
        cwd=folder, prompt=demo.PROMPT, script=demo.SCRIPT, store=False, mode="default", trust="session"
    )
    app = SwecliApp(program_of(options, open_with_banner))
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with app.run_test(size=SIZE) as pilot:
        camera = Camera(app, pilot)
        await camera.seen(">= pieces", "1 yes")
        save(app, "approval.svg")
        await camera.in_size(WIDE)
        save(app, "diff.svg")
        await camera.in_size(SIZE)
        await camera.answer("y")
        await camera.seen("test_basket.py", "1 yes")
        await camera.answer("y")
        await camera.seen("Fixed", "README describes")
        await camera.until(lambda: not app.session.state.busy)
        app.main.transcript.action_scroll_home()
        await camera.seen("A customer who orders")
        save(app, "conversation.svg")
        await pilot.press(*"/context text", "enter")
        await camera.seen("kept for the answer")
        app.appearance.preview("gruvbox-light")
        await camera.seen("kept for the answer")
        save(app, "light.svg")
        app.appearance.apply()
        app.interface.open("settings")
        await camera.in_both("settings", "Settings \N{MIDDLE DOT}", "settings \N{HORIZONTAL ELLIPSIS}")


async def daily(folder: Path) -> None:
    """What is met most: the first screen, a plan, a dangerous command, a message that does not fit."""
    (folder / "build").mkdir()
    for number in range(36):
        (folder / "build" / f"part{number}.o").write_text("object")
    options = LaunchOptions(cwd=folder, script=SCRIPT, store=False, mode="plan", trust="session")
    app = SwecliApp(replace(program_of(options, open_with_banner), greets=True))
    async with app.run_test(size=DAILY) as pilot:
        camera = Camera(app, pilot)
        await camera.in_both("first", "Ask for a change", "Describe a task")
        await pilot.press(*"Ten pens get no discount.", "enter")
        await camera.in_both("plan", "Go ahead with this plan?", "4 keep planning")
        await pilot.press("4")
        app.interface.modes.set("default")
        await pilot.press(*"Clean up.", "enter")
        await camera.in_both("danger", "Run this command?", "deletes 36 files")
        await pilot.press("escape")
        await camera.until(lambda: not app.session.state.busy)
        app.main.prompt.editor.post_message(events.Paste("2026-01-01 12:00:00 request took 12 ms\n" * 20_000))
        await camera.seen("Pasted text")
        await pilot.press("enter")
        await camera.in_both("too-large", "too large to send", "1 Keep it as a file")


async def undone(folder: Path) -> None:
    """A command that deleted files without git, and what takes it back."""
    (folder / "drafts").mkdir()
    for name in ("spring", "summer", "autumn"):
        (folder / "drafts" / f"{name}.md").write_text(f"# Prices for {name}\n")
    options = LaunchOptions(cwd=folder, script=UNDO_SCRIPT, store=False, mode="default", trust="session")
    app = SwecliApp(program_of(options, open_with_banner))
    async with app.run_test(size=UNDO_SIZE) as pilot:
        camera = Camera(app, pilot)
        await pilot.press(*"Remove what the program does not need.", "enter")
        await camera.seen("Run this command?", "1 yes")
        await camera.answer("y")
        await camera.seen("Only the program is left")
        await camera.until(lambda: not app.session.state.busy)
        await pilot.press(*"/undo", "enter")
        await camera.seen("Undid")
        save(app, "undo.svg")


def screen(app: SwecliApp) -> str:
    """What is on the screen, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def save(app: SwecliApp, name: str) -> None:
    """Write the screen as an image. The fonts are the reader's own: nothing is fetched."""
    svg = app.export_screenshot(title="swecli")
    svg = re.sub(r"\s*@font-face \{.*?\}\n", "\n", svg, flags=re.DOTALL)
    # Not every viewer takes blanks at the ends of a text as such.
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)
    # The names of classes are random; fixed ones keep an unchanged image unchanged.
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    (IMAGES / name).write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    print(f"docs/images/{name}")


if __name__ == "__main__":
    os.environ.pop("NO_COLOR", None)
    os.environ.update(shown_project.environment())
    shown_project.alone()
    with shown_project.prepared() as folder:
        asyncio.run(main(folder))
    with shown_project.prepared() as folder:
        asyncio.run(daily(folder))
    with shown_project.prepared() as folder:
        asyncio.run(undone(folder))
