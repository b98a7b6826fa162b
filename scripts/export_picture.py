"""Writes docs/images/export.webp and export-phone.webp: the HTML export of the demonstration in a headless Chromium.

python -m scripts.export_picture /usr/bin/chromium
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts import shown_project
from tests.support.browser import Browser

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SESSION = """
from msgspec.structs import replace
from pathlib import Path
from scripts import shown_project
from swecli import demo
from swecli.command_line.headless import run_headless
from swecli.assembly.succession import demo_options
shown_project.alone()
demo.prepare = lambda: shown_project.FOLDER
options = demo_options()
run_headless(replace(options, store=True, headless=True, output_format="transcript", approve_all=True))
"""
"""The demonstration, stored as a session of its own."""


def exported(environment: dict[str, str]) -> Path:
    """The page of a session that is made for it."""
    root = Path(__file__).resolve().parent.parent
    inherited = {**os.environ, **environment, "PYTHONPATH": str(root)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], env=inherited, cwd=shown_project.FOLDER, check=True, stdout=subprocess.PIPE
        )
        return done.stdout.decode()

    run("-c", SESSION)
    session = run("-m", "swecli.cli", "sessions").splitlines()[1].split()[0]
    page = shown_project.HOME / "session.html"
    run("-m", "swecli.cli", "sessions", "export", session, "-o", str(page))
    return page


def main(program: str) -> None:
    with shown_project.prepared(), Browser(program) as browser:
        page = exported(shown_project.environment())
        for name, size, dark in (("export", (1000, 900), False), ("export-phone", (390, 844), True)):
            browser.size(*size, dark=dark, mobile=size[0] < 500)
            browser.open(page)
            browser.value("document.querySelector('.diff').closest('details').open = true")
            if dark:
                browser.value("document.querySelector('.diff').scrollIntoView({block: 'center'})")
            (IMAGES / f"{name}.webp").write_bytes(browser.picture())


if __name__ == "__main__":
    main(*sys.argv[1:])
