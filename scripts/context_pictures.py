"""Writes docs/images/inspector.svg, inspector-compacted.svg, compaction-plan.svg and wire.svg: the context
of a scripted session of some turns, as the screens show it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from scripts import shown_project
from scripts.screenshots import Camera, save
from swecli.command_line.interactive import open_with_banner
from swecli.launch import LaunchOptions
from swecli.tui.app import SwecliApp
from swecli.tui.program import program_of

SIZE = (112, 36)
FILES = ("basket/pricing.py", "basket/discounts.py", "basket/orders.py", "basket/stock.py", "tests/test_pricing.py")
REQUESTS = (
    "Ten pens get no discount. Never change the public names of basket/pricing.py.",
    "Where else is a discount decided?",
    "Run the tests again, and only report what fails.",
    "Write the missing test for exactly ten pens.",
    "Does the stock have to know of this?",
    "Which orders of last week were affected?",
)
ANSWER = (
    "`price()` compares with `>` where the README wants `>=`. The same comparison is in `discounts.py:41`; "
    "`orders.py` takes the result as it is."
)


def project(folder: Path) -> None:
    """Files that are worth reading: each has some hundred lines."""
    for number, name in enumerate(FILES):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f"def rule_{n}(pens: int) -> int:\n    return pens * {100 - n} // 100\n\n" for n in range(60 + 25 * number)
        ]
        path.write_text("".join(lines), encoding="utf-8")
    (folder / "AGENTS.md").write_text("Run `make test`. Prices are whole cents. Keep public names.\n" * 12)


def script() -> str:
    """Each request is worked on with some calls; the provider's cache serves most, and misses once."""
    steps = ['name = "scripted-demo"', "window = 48000", "max_output = 4000", "delay = 0.0"]
    for turn in range(len(REQUESTS)):
        for name in (FILES[turn % 5], FILES[(turn + 2) % 5]):
            steps.append(f'[[step]]\ncall = [{{ tool = "read_file", arguments = {{ path = "{name}" }} }}]')
        steps.append('[[step]]\ncall = [{ tool = "search", arguments = { pattern = "rule_1" } }]')
        steps.append(f"[[step]]\ntext = '{ANSWER}'")
    steps.append(f"[[step]]\ntext = '''{SUMMARY}'''")
    return "\n\n".join(steps)


SUMMARY = """## Goal
Ten pens get their discount; the public names of basket/pricing.py stay.

## Done
Read basket/pricing.py, basket/discounts.py and basket/orders.py: the comparison must be >=.

## Next
Write the test for exactly ten pens in tests/test_pricing.py and run it."""


async def session(folder: Path, camera: Camera) -> None:
    for number, request in enumerate(REQUESTS):
        camera.app.main.prompt.editor.put(request)
        await camera.pilot.press("enter")
        await camera.until(lambda n=number: _turns(camera.app) > n and not camera.app.session.state.busy)


def _turns(app: SwecliApp) -> int:
    return app.session.view.totals.turns if app.session.view is not None else 0


def _compacted(app: SwecliApp) -> bool:
    return app.session.port is not None and bool(app.session.port.inspection.timeline.compactions)


async def main(folder: Path, script_file: Path) -> None:
    options = LaunchOptions(cwd=folder, script=script_file, mode="auto", trust="session")
    app = SwecliApp(replace(program_of(options, open_with_banner), greets=True))
    async with app.run_test(size=SIZE) as pilot:
        camera = Camera(app, pilot)
        await camera.until(lambda: app.loaded and app.session.port is not None)
        await session(folder, camera)
        app.interface.open("context")
        await camera.seen("tool results", "closes")
        await pilot.press("s", "p", "d", "o")
        await camera.seen("3 changes")
        save(app, "inspector.svg")
        app.interface.open("context")
        app.interface.open("wire", "Which orders of this week are affected?")
        await camera.seen("the next request")
        save(app, "wire.svg")
        await pilot.press("escape")
        app.interface.open("compact")
        await camera.seen("Compaction plan")
        await pilot.press("g")
        await camera.seen("## Goal")
        save(app, "compaction-plan.svg")
        await pilot.press("a")
        await camera.until(lambda: _compacted(app) and not app.session.state.busy)
        app.interface.open("context")
        await camera.seen("compacted 1")
        save(app, "inspector-compacted.svg")


if __name__ == "__main__":
    os.environ.pop("NO_COLOR", None)
    os.environ.update(shown_project.environment())
    shown_project.alone()
    with shown_project.prepared() as shown, tempfile.TemporaryDirectory() as beside:
        project(shown)
        answers = Path(beside) / "script.toml"
        answers.write_text(script(), encoding="utf-8")
        asyncio.run(main(shown, answers))
