"""The documentation names what exists, and what is generated is current."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from scripts.generate_docs import generated
from swecli.commands.registry import COMMANDS
from swecli.core.config.change import meaning
from swecli.core.config.settings import NAMED, SECTIONS, canonical
from swecli.exit_codes import ExitCode
from swecli.headless.outcome import Outcome
from swecli.headless.printers import result_object

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


def anchors(page: Path) -> set[str]:
    """The names under which GitHub links the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_to_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for file, name in re.findall(r"\]\(((?!http)[^)#\s]*)#([^)\s]+)\)", text):
        assert name in anchors(page.parent / file if file else page), f"{file}#{name}"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_settings_that_are_named_exist(page: Path) -> None:
    sections = "|".join(set(SECTIONS) - set(NAMED))
    for name in re.findall(rf"`((?:{sections})\.[a-z_]+)(?=[`. =])", page.read_text(encoding="utf-8")):
        if name.rpartition(".")[2] not in ("db", "json", "jsonl", "md"):  # files
            assert meaning(canonical(tuple(name.split(".")))) is not None, name


def test_every_key_of_the_result_is_documented() -> None:
    text = (ROOT / "docs" / "headless.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (`[^|]*`) \|", text.partition("## The result object")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(msgspec.to_builtins(result_object(Outcome())))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_make_targets_that_are_named_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^    )make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets


def test_generated_files_are_current() -> None:
    fresh = generated()
    assert {name: (ROOT / name).read_text(encoding="utf-8") for name in fresh} == fresh, "run make docs"


def test_the_readme_lists_the_slash_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"Slash commands: ([^.]+)\.", text)
    assert listed
    named = set(re.findall(r"/([a-z-]+)", listed.group(1)))
    assert len(named) > 5
    assert named == {command.name for command in COMMANDS if not command.under}


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


def test_every_page_is_in_the_menu_of_the_site_and_of_the_readme() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    menu = set(re.findall(r'= "([\w-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8")))
    listed = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Documentation")[2]
    assert menu - {"index.md"} == pages
    assert {Path(link).name for link in re.findall(r"\(docs/([\w-]+\.md)\)", listed)} == pages


def test_every_test_that_the_promises_name_exists() -> None:
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) == text.count("::") > 50
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
