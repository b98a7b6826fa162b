"""The documentation names what exists, and what is generated is current."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from swecli.commands.registry import COMMANDS
from swecli.exit_codes import ExitCode

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link
    for path in re.findall(r"`((?:swecli|tests|docs|scripts|benchmarks)/[\w./-]+)`", text):
        if "NAME" not in path:
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_make_targets_that_are_named_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^    )make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets


def test_the_schema_is_current() -> None:
    fresh = runpy.run_path(str(ROOT / "scripts" / "generate_docs.py"))["schema_text"]()
    assert (ROOT / "docs" / "protocol.schema.json").read_text(encoding="utf-8") == fresh, "run make docs"


def test_the_slash_commands_that_the_readme_lists_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"Slash commands: ([^.]+)\.", text)
    assert listed
    named = set(re.findall(r"/([a-z-]+)", listed.group(1)))
    assert len(named) > 5
    assert named <= {command.name for command in COMMANDS}


def test_every_exit_status_is_documented() -> None:
    text = (ROOT / "docs" / "headless.md").read_text(encoding="utf-8")
    numbers = {int(number) for row in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE) for number in row.split(",")}
    assert numbers == {int(code) for code in ExitCode}


def test_the_screenshots_are_of_this_program_and_fetch_nothing() -> None:
    images = list((ROOT / "docs" / "images").glob("*.svg"))
    assert images
    for image in images:
        text = image.read_text(encoding="utf-8")
        assert "scripted-demo" in text
        assert not re.search(r"url\(\s*['\"]?https?:|<image|xlink:href", text)


def test_every_test_that_the_promises_name_exists() -> None:
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) == text.count("::") > 50
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
