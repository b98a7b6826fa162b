"""Writes docs/images/*.svg: the real program at work on the sample project of the demonstration."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from swecli import demo
from swecli.command_line.front_ends import branch, mentions, open_for_screen
from swecli.commands.registry import COMMANDS
from swecli.launch import LaunchOptions
from swecli.tui.app import SwecliApp
from swecli.tui.options import Options

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (112, 36)
DEADLINE = 60.0


async def main() -> None:
    folder = demo.prepare()
    shown = Path(tempfile.gettempdir()) / "stationery"
    shutil.rmtree(shown, ignore_errors=True)
    shutil.move(folder, shown)
    options = LaunchOptions(cwd=shown, prompt=demo.PROMPT, script=demo.SCRIPT, store=False, mode="default")
    app = SwecliApp(
        Options(
            open_session=lambda: open_for_screen(options),
            first_prompt=options.prompt,
            commands=lambda: COMMANDS,
            files=lambda: mentions(shown),
            branch=lambda: branch(shown),
        )
    )
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with app.run_test(size=SIZE) as pilot:

        async def until(condition: Callable[[], object]) -> None:
            end = time.monotonic() + DEADLINE
            while not condition():
                if time.monotonic() > end:
                    raise SystemExit(f"never seen; the screen is:\n{screen(app)}")
                await pilot.pause(0.05)

        await until(lambda: ">= pieces" in screen(app) and "once" in screen(app))
        await pilot.pause(0.5)
        save(app, "approval.svg")
        await pilot.press("y")
        await until(lambda: "test_basket.py" in screen(app) and "once" in screen(app))
        await pilot.pause(0.5)
        await pilot.press("y")
        await until(lambda: "Fixed" in screen(app) and "README describes" in screen(app))
        await until(lambda: not app.stage.is_busy())
        await pilot.pause(0.5)
        await pilot.press(*"/context", "enter")
        await until(lambda: "kept for the answer" in screen(app))
        await pilot.pause(0.5)
        save(app, "context.svg")
    shutil.rmtree(shown, ignore_errors=True)


def screen(app: SwecliApp) -> str:
    """What is on the screen, line by line."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def save(app: SwecliApp, name: str) -> None:
    """Write the screen as an image. The fonts are the reader's own: nothing is fetched."""
    svg = app.export_screenshot(title="swecli")
    svg = re.sub(r"\s*@font-face \{.*?\}\n", "\n", svg, flags=re.DOTALL)
    # The names of classes are random; fixed ones keep an unchanged image unchanged.
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    (IMAGES / name).write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    print(f"docs/images/{name}")


if __name__ == "__main__":
    # The demonstration then runs plain `python3`, not the path of this interpreter.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ.pop("NO_COLOR", None)
    os.environ.setdefault("COLORTERM", "truecolor")
    with tempfile.TemporaryDirectory() as home:
        os.environ["SWECLI_HOME"] = home
        asyncio.run(main())
