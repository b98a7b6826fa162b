"""Texts that are known before a command runs are those that bash makes of the same words."""

from __future__ import annotations

import subprocess

import pytest

from swecli.core.permissions.shell.values import changed, cut_name, range_of, sum_of

CHANGES = [
    *(("src/main.py", change) for change in ("%.py", "%%.*", "##*/", "#*/", "%/*", "%%/*", "#src", "%x", "#x", "##*.")),
    *(("a.b.c", change) for change in ("%.*", "%%.*", "#*.", "##*.", "%?", "#?", "%%?*", "##?*", "%*", "#*")),
    *(("", change) for change in (":-x", ":-", "%x", "#")),
    *(("aa/b", change) for change in ("#", ":-x", "%%a*", "##a", "#a", "%b", "%/b", "##*a")),
]
SUMS = [
    "1+2",
    "2 * (3 + 4)",
    "7 / 2",
    "-7 / 2",
    "-7 % 3",
    "7 % -3",
    "10 - 3 - 2",
    "x + 5",
    "$x * x",
    "(x)",
    "- -2",
    "0",
]
NAMES = [
    *(["basename", name] for name in ("a/b.py", "b", "a/b/", "/", "./x")),
    *(["dirname", name] for name in ("a/b.py", "b", "a/b/", "/", "/x", "a//b", "a/b/c")),
    *(["basename", name, ".py"] for name in ("a/b.py", ".py", "b.pyc")),
]
RANGES = [["seq", "5"], ["seq", "2", "4"], ["seq", "1", "2", "9"], ["seq", "5", "-2", "1"], ["seq", "0", "0"]]


def bash(script: str, *arguments: str) -> str:
    done = subprocess.run(["bash", "-c", script, "bash", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.removesuffix("\n")


@pytest.mark.parametrize(("value", "change"), CHANGES)
def test_a_variable_is_cut_as_bash_cuts_it(value: str, change: str) -> None:
    form = "${#x}" if change == "#" else f"${{x{change}}}"
    assert changed(value, change) == bash(f'x=$1; echo "{form}"', value)


@pytest.mark.parametrize("expression", SUMS)
def test_a_sum_is_that_of_bash(expression: str) -> None:
    assert sum_of(expression, {"x": "12"}) == bash(f"x=12; echo $(({expression}))")


@pytest.mark.parametrize("expression", ["1 / 0", "y + 1", "x++", "010", "1 << 2", "x = 2", "(1", "1 2", "", "1" * 10])
def test_any_other_sum_is_not_known(expression: str) -> None:
    assert sum_of(expression, {"x": "12"}) is None


@pytest.mark.parametrize("words", [*NAMES, *RANGES])
def test_a_program_prints_what_is_known_of_it(words: list[str]) -> None:
    known = range_of(words) if words[0] == "seq" else [cut_name(words)]
    assert known == bash('"$@"', *words).split("\n")


@pytest.mark.parametrize("words", [["seq", "1", "1000"], ["seq", "-s,", "3"], ["seq", "01"], ["seq", None], ["seq"]])
def test_any_other_range_is_not_known(words: list[str | None]) -> None:
    assert range_of(words) is None
