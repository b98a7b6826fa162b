"""The decision ends, whatever it is given."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.shell_workspace import ShellWorkspace
from tests.support.thorough import examples

TOKENS = [
    "for",
    "if",
    "while",
    "case",
    "do",
    "done",
    "then",
    "fi",
    "in",
    "esac",
    "{",
    "}",
    "(",
    ")",
    "[[",
    "]]",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "<",
    ">",
    "<<",
    "<<-",
    "<<<",
    ">&",
    "<(",
    ">(",
    "$(",
    "`",
    "$((",
    "))",
    "'",
    '"',
    "\\",
    "$",
    "#",
    "!",
    "=",
    "*",
    "?",
    "[",
    "]",
    "a",
    "ls",
    "x=1",
    "${a}",
    "${a:-b}",
    "EOF",
    "<<EOF",
    "{a,b}",
    "~",
    "time",
    "function",
    "f()",
    "cat",
    "-",
    "--",
    "-n",
    "src/*.py",
    "$'\\x",
    "$'\\u'",
    "$'\\c'",
    "\\c",
    "$'",
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("ends"))


@pytest.mark.parametrize(
    "command",
    [
        "for f in a <<EOF\nx\nEOF b; do ls; done",
        "for f in a > x; do ls; done",
        "for f in ) ; do ls; done",
        "for f in &",
        "cat " + "*" * 100 + "x/" + "*a" * 50 + "!$(",
        "sed " + "s/" * 3_000 + "e",
        "git " + "a.pager" * 3_000,
        "{," * 1_900,
        "yq '.a" + ("|" + " " * 50) * 20 + "!' README.md",
    ],
)
def test_what_is_odd_is_refused_or_asked(work: ShellWorkspace, command: str) -> None:
    assert work.decide(command).outcome != "allow"


def test_many_wildcards_take_no_longer_than_few(work: ShellWorkspace) -> None:
    (work.root / ("a" * 200)).write_text("")
    assert work.decide("ls " + "*" * 60 + "b").outcome == "allow"
    assert work.decide("ls " + "*a" * 60 + "b*?" * 20).outcome == "allow"


@settings(max_examples=examples(160, 800), deadline=None)
@given(st.lists(st.sampled_from(TOKENS), min_size=1, max_size=14), st.sampled_from(("", " ", "\n")))
def test_any_soup_of_tokens_gets_a_verdict(work: ShellWorkspace, tokens: list[str], gap: str) -> None:
    assert work.decide(gap.join(tokens)).outcome in ("allow", "ask", "deny")
