"""Skills: what a file says, and how all of them are told in the prompt."""

from __future__ import annotations

import pytest

from swecli.core.extensions.skills import Skill, listing, near, read_skill
from tests.core.extensions.support import Places, found


def skill(name: str, description: str = "d", front: str = "") -> Skill:
    return read_skill(found(f"---\nname: {name}\ndescription: {description}\n{front}---\nbody", name, "skills"))


def test_the_open_format_is_read_without_a_word() -> None:
    made = skill(
        "pdf", "Fill forms", 'license: MIT\ncompatibility: needs uv\nmetadata:\n  author: me\n  version: "1"\n'
    )
    assert (made.name, made.description, made.body, made.compatibility) == ("pdf", "Fill forms", "body", "needs uv")
    assert made.problems == ()


def test_fields_of_another_agent_count() -> None:
    front = "disable-model-invocation: true\nargument-hint: <file>\nallowed-tools: Bash(ls *)\nmodel: inherit\n"
    made = skill("x", front=front)
    assert (made.for_model, made.for_user, made.hint, made.allow, made.model) == (
        False,
        True,
        "<file>",
        ("Bash(ls *)",),
        "",
    )
    assert skill("x", front="user-invocable: false\n").for_user is False


@pytest.mark.parametrize("name", ["My Skill", "../x", "a" * 65, "-1st", "12"])
def test_a_bad_name_gives_way_to_that_of_the_folder(name: str) -> None:
    made = read_skill(found(f"---\nname: {name}\ndescription: d\n---\n", "folder", "skills"))
    assert made.name == "folder"
    assert [problem.line for problem in made.problems] == [2]


def test_a_name_may_begin_with_a_digit() -> None:
    made = read_skill(found("---\nname: 3d-web\ndescription: d\n---\n", "3d-web", "skills"))
    assert (made.name, made.problems) == ("3d-web", ())


def test_without_a_description_the_first_line_stands_for_one() -> None:
    made = read_skill(found("# How to\nbody", "x", "skills"))
    assert made.description == "How to"
    assert "no description" in made.problems[0].text


def test_no_skills_take_no_token() -> None:
    assert listing([], 200_000) == ""
    assert listing([skill("x", front="disable-model-invocation: true\n")], 200_000) == ""


def test_equal_skills_give_equal_bytes_in_any_order() -> None:
    skills = [skill("b", "two"), skill("a", "one")]
    shown = listing(skills, 200_000)
    assert shown == listing(skills[::-1], 200_000)
    assert shown.endswith("- a: one\n- b: two")


def test_the_longest_descriptions_are_cut_first() -> None:
    skills = [skill("short", "brief"), skill("long", "w" * 1_000), skill("longer", "v" * 1_000)]
    shown = listing(skills, 32_000)
    assert "- short: brief" in shown
    assert len(shown) <= 32_000 * 0.02 * 4
    assert shown.count("…") == 0 or "w" * 300 in shown
    tight = listing(skills, 1_000)
    assert "- short: brief" in tight
    assert tight.count("…") == 2
    assert len(tight) <= 300 * 4


@pytest.mark.parametrize("window", [8_000, 32_000, 200_000])
def test_five_hundred_skills_stay_in_their_budget(window: int) -> None:
    skills = [skill(f"skill-{number:03}", f"what number {number} is for " * 8) for number in range(500)]
    shown = listing(skills, window)
    assert len(shown) <= max(300, window * 0.02) * 4 + 100
    assert "- skill-000" in shown
    if window < 200_000:
        assert "more: call `skill` with a word" in shown


def test_skills_are_found_by_words() -> None:
    skills = [
        skill("pdf-forms", "Fill PDF forms"),
        skill("charts", "Draw charts"),
        skill("pdf-merge", "Merge PDF files"),
    ]
    assert [one.name for one in near(skills, "merge pdf")] == ["pdf-merge", "pdf-forms"]
    assert near(skills, "weather") == []


def test_files_beside_are_named(places: Places) -> None:
    path = places.skill("pdf")
    places.write(".claude/skills/pdf/scripts/fill.py", "x")
    places.write(".claude/skills/pdf/ref.md", "x")
    from swecli.core.extensions.skills import beside

    assert beside(path.parent) == ["ref.md", "scripts/fill.py"]
