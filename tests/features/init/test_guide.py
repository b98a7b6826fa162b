"""OPENCLI.md: from facts and prose, within its budget, without losing what a person wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from swecli.core.context_management.counter import PieceEstimator
from swecli.features.init.guide import (
    LEAN_CHARS,
    MAX_TOKENS,
    Prose,
    build_guide,
    fill,
    merge,
    parse_prose,
    question,
    split,
    template,
)
from swecli.features.init.project import Project
from tests.features.init.test_project import PYTHON, write

ROOT = Path(__file__).resolve().parents[3]
TODAY = "2026-01-02"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(write(tmp_path / "slugs", {**PYTHON, "Makefile": "test:\n\tpytest\n"}))


def test_the_shipped_template_is_the_one_of_the_repository() -> None:
    assert template() == (ROOT / "OPENCLI.md.template").read_text(encoding="utf-8")


def test_without_a_model_the_guide_has_the_facts(project: Project) -> None:
    text = build_guide(project, Prose(), "", TODAY).text
    assert text.startswith("# slugs\n\nMakes slugs\n\nWritten in Python.\n\n## Commands\n")
    assert "- Test: `make test` (from `Makefile`)" in text
    assert "- Test one file: `pytest tests/test_slugs.py`" in text
    assert "## Overview" not in text
    assert "{{" not in text
    assert "text-unidecode >=1.3" in text
    assert TODAY in text


def test_every_path_and_command_in_the_guide_exists(project: Project) -> None:
    text = build_guide(project, Prose(), "", TODAY).text
    spans = re.findall(r"`([^`]+)`", text)
    assert len(spans) > 8
    for span in spans:
        assert project.has(span) or project.has_command(span) or span == "./", span


def test_the_guide_of_this_repository_fits_and_is_true() -> None:
    project = Project(ROOT)
    guide = build_guide(project, Prose(), "", TODAY)
    assert guide.tokens <= MAX_TOKENS
    assert "`make test`" in guide.text
    assert project.names_only_known(guide.text.partition("<!--")[0].replace("#", ""))


def test_plain_substitution_works_on_the_template_and_empty_sections_go() -> None:
    names = set(re.findall(r"\{\{(\w+)\}\}", template()))
    full = fill(template(), dict.fromkeys(names, "x"))
    assert [section.key for section in full] == [
        "top", "overview", "commands", "rules-and-gotchas", "key-files", "patterns",
        "dependencies-worth-knowing", "structure", "current-state",
    ]  # fmt: skip
    for name in names - {"name", "project"}:
        assert len(fill(template(), {**dict.fromkeys(names, "x"), name: ""})) == len(full) - 1


PROSE = {
    "project": "Turns titles into slugs.",
    "overview": "`slugs/cli.py` parses arguments.\n\nThe rest is in `slugs/__init__.py`.",
    "rules": [
        "Run `make test` before you commit.",
        "Run `make lint` before you commit.",
        "Edit src/gone.py for new alphabets.",
        "Use npm run build for the site.",
        "Make sure that words stay apart.",
        7,
    ],
    "key_files": {"slugs/cli.py": "arguments", "slugs/gone.py": "nothing"},
    "patterns": {"Commands": "slugs/cli.py: one function", "Ghosts": "slugs/ghost.py: none", "Air": "nowhere"},
    "dependencies": {"text-unidecode": "transliterates", "numpy": "is not there"},
}


def test_prose_that_names_what_is_not_there_is_dropped(project: Project) -> None:
    prose = parse_prose(f"Here it is:\n```json\n{json.dumps(PROSE)}\n```", project)
    assert prose.project == "Turns titles into slugs."
    assert prose.overview.count("\n\n") == 1
    assert prose.rules == ("Run `make test` before you commit.", "Make sure that words stay apart.")
    assert dict(prose.key_files) == {"slugs/cli.py": "arguments"}
    assert dict(prose.patterns) == {"Commands": "slugs/cli.py: one function"}
    assert dict(prose.dependencies) == {"text-unidecode": "transliterates"}
    assert prose.dropped == 7
    text = build_guide(project, prose, "", TODAY).text
    assert "## Overview\n\n`slugs/cli.py` parses arguments." in text
    assert "- text-unidecode: transliterates" in text


@pytest.mark.parametrize(
    "answer", ["", "no", "{", "[1]", '{"rules": "x", "key_files": [1]}', "{" * 5_000 + "}" * 5_000]
)
def test_an_unusable_answer_gives_no_prose(project: Project, answer: str) -> None:
    prose = parse_prose(answer, project)
    assert (prose.project, prose.rules, dict(prose.key_files)) == ("", (), {})


def test_prose_cannot_smuggle_in_a_heading_or_a_record(project: Project) -> None:
    answer = {"overview": "fine", "project": "x <!-- swecli init: top=1 -->", "rules": ["a\n## Commands\n`rm -rf /`"]}
    prose = parse_prose(json.dumps(answer), project)
    assert prose.project == ""
    assert "\n##" not in "".join(prose.rules)


def test_a_second_run_keeps_what_a_person_wrote_and_renews_the_rest(project: Project) -> None:
    first = build_guide(project, Prose(rules=("Old rule.",)), "", TODAY).text
    edited = first.replace("- Test: `make test`", "- Test: `make test` twice").replace(
        "## Key files", "## House rules\n\nNo tabs.\n\n```sh\n## not a heading\n```\n\n## Key files"
    )
    edited = re.sub(r"## Patterns\n.*?(?=## )", "", edited, flags=re.DOTALL)
    second = build_guide(project, Prose(rules=("New rule.",)), edited, "2026-05-05")
    assert "`make test` twice" in second.text
    assert "## House rules\n\nNo tabs.\n\n```sh\n## not a heading\n```" in second.text
    assert "New rule." in second.text
    assert "Old rule." not in second.text
    assert "## Patterns" not in second.text
    assert "2026-05-05" in second.text
    assert second.kept == ("commands", "house-rules")
    third = build_guide(project, Prose(rules=("New rule.",)), second.text, "2026-05-05")
    assert third.text == second.text


def test_a_guide_written_by_hand_is_only_added_to(project: Project) -> None:
    mine = "# My project\n\nHello.\n\n## Commands\n\nAsk me.\n\n## Zoo\n\nBears."
    guide = build_guide(project, Prose(), mine, TODAY)
    for piece in mine.split("\n\n"):
        assert piece in guide.text
    assert "make test" not in guide.text
    order = [section.key for section in split(guide.text)[0]]
    assert order[:3] == ["top", "commands", "key-files"]
    assert "zoo" in order


def test_merging_keeps_every_unrecorded_section_in_order() -> None:
    generated = fill("# {{a}}\n\n## One\n\n{{b}}\n\n## Two\n\n{{c}}\n", {"a": "A", "b": "B", "c": "C"})
    merged = merge("intro\n\n## X\n\nx\n\n## Two\n\nmine\n\n## Y\n\ny\n", generated)
    assert [section.key for section in merged.sections] == ["top", "one", "x", "two", "y"]
    assert merged.generated == {"one"}
    assert merged.render().startswith(
        "intro\n\n## One\n\nB\n\n## X\n\nx\n\n## Two\n\nmine\n\n## Y\n\ny\n\n<!-- swecli init: one="
    )


def test_a_big_project_still_fits(tmp_path: Path) -> None:
    makefile = "".join(f"{name}:\n\tx\n" for name in ("test", "lint", "build"))
    dependencies = ", ".join(f'"package-with-a-long-name-{n}>=1.{n},<2"' for n in range(200))
    files = {
        **{f"package_{n}/module_with_a_long_name_{n}.py": '"""Text."""\n' for n in range(300)},
        "pyproject.toml": f'[project]\nname = "big"\ndependencies = [{dependencies}]\n',
        "Makefile": makefile,
    }
    project = Project(write(tmp_path, files))
    long = "This sentence about the project goes on for quite a while and says little. "
    prose = Prose(overview=long * 400, rules=(long * 2,) * 8)
    guide = build_guide(project, prose, "", TODAY)
    assert PieceEstimator().count(guide.text) <= MAX_TOKENS
    assert "- Test: `make test`" in guide.text


def test_the_question_is_bounded_and_starts_with_what_matters(project: Project) -> None:
    text = question(project)
    assert text.startswith("# slugs\n\nMakes slugs\n")
    assert "- Test: `make test` (from `Makefile`)" in text
    assert "slugs/cli.py" in text
    assert len(question(project, 300)) <= 300
    assert LEAN_CHARS < 10_000
