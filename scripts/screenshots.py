"""Writes docs/images/*.svg: the real program at work on the sample project of the demonstration."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from scripts import shown_project
from swecli import demo
from swecli.command_line.interactive import Program
from swecli.launch import LaunchOptions
from swecli.tui.app import SwecliApp

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (112, 36)
WIDE = (168, 36)
"""Enough for old and new text side by side."""
DEADLINE = 60.0


async def main(folder: Path) -> None:
    options = LaunchOptions(
        cwd=folder, prompt=demo.PROMPT, script=demo.SCRIPT, store=False, mode="default", trust="session"
    )
    app = SwecliApp(Program(options))
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with app.run_test(size=SIZE) as pilot:

        async def seen(*texts: str) -> None:
            """Wait for texts on the screen, and until nothing moves any more."""
            await until(lambda: all(text in screen(app) for text in texts))
            await pilot.pause(0.5)

        async def until(condition: Callable[[], object]) -> None:
            end = time.monotonic() + DEADLINE
            while not condition():
                if time.monotonic() > end:
                    raise SystemExit(f"never seen; the screen is:\n{screen(app)}")
                await pilot.pause(0.05)

        async def in_size(size: tuple[int, int]) -> None:
            await pilot.resize_terminal(*size)
            await pilot.pause(0.5)

        await seen(">= pieces", "1 yes")
        save(app, "approval.svg")
        await in_size(WIDE)
        save(app, "diff.svg")
        await in_size(SIZE)
        await pilot.press("y")
        await seen("test_basket.py", "1 yes")
        await pilot.press("y")
        await seen("Fixed", "README describes")
        await until(lambda: not app.session.state.busy)
        app.main.transcript.action_scroll_home()
        await seen("A customer who orders")
        save(app, "conversation.svg")
        await pilot.press(*"/context", "enter")
        await seen("kept for the answer")
        save(app, "context.svg")
        app.appearance.preview("gruvbox-light")
        await seen("kept for the answer")
        save(app, "light.svg")
        app.appearance.apply()
        app.actions.show_settings()
        await seen("Settings \N{MIDDLE DOT}")
        save(app, "settings.svg")


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
