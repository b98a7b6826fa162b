"""What front matter says, in all the forms in which people write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.extensions.front_matter import Problem, read_front_matter, split_list
from tests.core.extensions.support import fields


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("d: plain words", "plain words"),
        ("d: Use this when: the user asks. Example: <a>", "Use this when: the user asks. Example: <a>"),
        ('d: "a \\"b\\" c"', 'a "b" c'),
        ("d: 'it''s'", "it's"),
        ("d: words # a comment", "words"),
        ("d: issue #12", "issue #12"),
        ("d: one\n  two\n  three", "one two three"),
        ("d:\n  one\n  two", "one two"),
        ("d: >\n  one\n  two\n\n  three", "one two\nthree"),
        ("d: |\n  one\n    two", "one\n  two"),
        ('d: "one\n  two"', "one two"),
        ("d: [a, 'b, c', \"d\"]", ["a", "b, c", "d"]),
        ("d: [a,\n  b\n]", ["a", "b"]),
        ("d:\n  - a\n  - b: c\n    d: e", ["a", {"b": "c", "d": "e"}]),
        ("d:\n- a\n- 'b'", ["a", "b"]),
        ("d: {a: b, c: [d, e]}", {"a": "b", "c": ["d", "e"]}),
        ("d:\n  a:\n    b: c", {"a": {"b": "c"}}),
        ("d: [file] [words]", "[file] [words]"),
        ("d: *", "*"),
        ('d: "a" and "b"', '"a" and "b"'),
        ("d:", ""),
        ("d: yes", "yes"),
        ("d:\n  [\n    \"a\",\n    'b'\n  ]", ["a", "b"]),
        ("d:\n  {a: b}", {"a": "b"}),
        ('d:\n  "one\n  two"', "one two"),
        ('d:\n  "a": b', {"a": "b"}),
        ("d:\n  - a:\n      - b: c\n  - d", [{"a": [{"b": "c"}]}, "d"]),
        ("d:\n  - a:\n  - b", ["a:", "b"]),
        ('d: "\\u2019 \\ud83d\\ude00 \\x41 \\U0001F600 \\q"', "\u2019 \U0001f600 A \U0001f600 \\q"),
        ('d: "\\ud83d \\U00110000"', "\ufffd \\U00110000"),
    ],
)
def test_a_value_is_read_as_people_mean_it(text: str, value: object) -> None:
    assert fields(text).fields["d"] == value
    assert fields(text).problems == ()


def test_many_lines_that_cant_be_read_are_one_problem() -> None:
    example = '\n<example>\nuser: "x"\nassistant: "y"\n</example>\n'
    found = fields(f"description: For reviews. Examples:\n{example * 3}\ntools: [Read]")
    assert (found.fields["description"], found.fields["tools"]) == ("For reviews. Examples:", ["Read"])
    assert [(problem.line, problem.text.partition(" and ")[0]) for problem in found.problems] == [
        (4, "6 lines from here on are not `key: value`"),
        (10, "`user`, `assistant` appear twice; the first one applies"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: b\nnot a field", 3, "not `key: value`"),
        ("a: b\na: c", 3, "appears twice"),
        ("a:\n\tc: d", 3, "a tab"),
        ('a: "open', 2, 'no closing "'),
        ("a: [b, c", 2, "no closing ]"),
    ],
)
def test_what_cant_be_read_is_told_with_its_line(text: str, line: int, words: str) -> None:
    found = fields(text)
    assert [problem.line for problem in found.problems if words in problem.text] == [line]
    assert "a" in found.fields


def test_the_first_of_two_equal_keys_counts() -> None:
    assert fields("a: one\na: two").fields == {"a": "one"}


def test_the_body_is_what_follows() -> None:
    found = read_front_matter("---\na: b\n---\n\n# Title\n---\nmore\n")
    assert found.body == "\n# Title\n---\nmore\n"
    assert found.lines == {"a": 2}


def test_a_file_without_front_matter_is_all_body() -> None:
    assert read_front_matter("# Title\n").body == "# Title\n"
    assert read_front_matter("").fields == {}


def test_front_matter_without_an_end_is_told_and_the_text_counts() -> None:
    found = read_front_matter("---\nname: x\nwords\n")
    assert found.problems[0].line == 1
    assert "has no end" in found.problems[0].text
    assert "words" in found.body


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Bash(git add:*), Bash(git commit -m a, b), Read", ["Bash(git add:*)", "Bash(git commit -m a, b)", "Read"]),
        ("Read Grep Bash(git status:*)", ["Read", "Grep", "Bash(git status:*)"]),
        ("Read", ["Read"]),
        ("", []),
    ],
)
def test_commas_in_brackets_separate_nothing(text: str, parts: list[str]) -> None:
    assert split_list(text) == parts


def test_a_list_may_be_text_or_a_list() -> None:
    assert fields("tools: Read, Bash(a, b)").words("tools") == ("Read", "Bash(a, b)")
    assert fields("tools: [Read, Edit]").words("tools") == ("Read", "Edit")
    assert fields("tools:\n  - Read\n").words("tools") == ("Read",)
    assert fields("a: b").words("tools") is None


@pytest.mark.parametrize(
    ("said", "means"), [("true", True), ("Yes", True), ("false", False), ("no", False), ("", True)]
)
def test_flags(said: str, means: bool) -> None:
    assert fields(f"f: {said}").flag("f", True) is means


_LINES = st.lists(st.text(alphabet="ab:- #\"'[]{}|>,\t\\*&!\x00é", max_size=20), max_size=12)


@given(_LINES)
def test_nothing_that_is_written_there_breaks_the_reader(lines: list[str]) -> None:
    found = read_front_matter("\n".join(["---", *lines, "---", "body"]))
    assert all(isinstance(problem, Problem) and 0 < problem.line <= len(lines) + 2 for problem in found.problems)
