"""The rule grammar."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.permissions.rules import RuleError, check_rules, matches_call, parse_rule, path_rule
from swecli.core.permissions.types import Call, Effects, Rule

ROOTS = ("/w", "/extra")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(x)",
        "Bash(",
        "Bash()",
        "Bash( )",
        "Bash(rm 'x)",
        "Bash(g*t log)",
        "Bash(git * log)",
        "Edit(!x)",
        "Edit(../x)",
        "Edit(# x)",
        "WebFetch(example.org)",
        "WebFetch(domain:)",
        "WebFetch(domain:a b)",
        "mcp__",
        "mcp__db__query(x)",
        "TodoWrite(x)",
        "Bash(ls\n)",
        "Bash(ls) x",
    ],
)
def test_what_is_no_rule_is_reported(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)
    (problem,) = check_rules([Rule("deny", text, "user", "config.toml:3")])
    assert problem.message.endswith(".")
    assert problem.rule.origin == "config.toml:3"


def test_unknown_tools_are_reported_when_the_tools_are_known() -> None:
    rules = [Rule("deny", text, "user") for text in ("Bsh(ls)", "Bsh", "Bash(ls)", "Read", "mcp__x", "Edit(*.py)")]
    tools = {"run_command", "read_file", "edit_file"}
    assert [problem.rule.text for problem in check_rules(rules, tools)] == ["Bsh(ls)", "Bsh"]


@pytest.mark.parametrize(
    ("text", "argv", "expected"),
    [
        ("Bash(npm test)", "npm test", True),
        ("Bash(npm test)", "npm test -- x", False),
        ("Bash(npm test *)", "npm test", True),
        ("Bash(npm test *)", "npm test -- x", True),
        ("Bash(npm test:*)", "npm test -- x", True),
        ("Bash(npm test *)", "npm testx", False),
        ("Bash(npm test *)", "npm run test", False),
        ("Bash(*)", "anything at all", True),
        ("run_command(git log *)", "git log -3", True),
        ("Bash(echo 'a b')", "echo a b", False),
    ],
)
def test_command_words(text: str, argv: str, expected: bool) -> None:
    assert parse_rule(text).matches_words(argv.split()) is expected


def touching(tool: str, **effects: tuple[str, ...]) -> Call:
    return Call(tool, {}, Effects(**effects), "/w", ROOTS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "call", "expected"),
    [
        ("Edit(src/**)", touching("write_file", writes=("/w/src/a/b.py",)), True),
        ("Edit(src/**)", touching("write_file", writes=("/w/x/src/b.py",)), False),
        ("Edit(*.md)", touching("edit_file", writes=("/extra/docs/b.md",)), True),
        ("Edit(/b.md)", touching("edit_file", writes=("/w/docs/b.md",)), False),
        ("Edit(~/x/**)", touching("edit_file", writes=("/home/u/x/y",)), True),
        ("Edit(//tmp/*.txt)", touching("edit_file", writes=("/tmp/a.txt",)), True),
        ("Edit(//tmp/*.txt)", touching("edit_file", writes=("/w/tmp/a.txt",)), False),
        ("Edit(src/**)", touching("write_file", writes=("/w/src/a", "/w/b")), False),
        ("Edit(src/**)", touching("copy", writes=("/w/src/a",), reads=("/w/secret",)), False),
        ("Edit(src/**)", touching("read_file", reads=("/w/src/a",)), False),
        ("Read(src/**)", touching("search", reads=("/w/src/a",)), True),
        ("Grep(src/**)", touching("read_file", reads=("/w/src/a",)), False),
        ("read_file(src/**)", touching("read_file", reads=("/w/src/a",)), True),
        ("Read(**)", touching("edit_file", reads=("/w/a",), writes=("/w/a",)), False),
        ("Read", touching("list_files", reads=("/w",)), True),
        ("mcp__db", touching("mcp__db__query"), True),
        ("mcp__db", touching("mcp__dbx__query"), False),
    ],
)
def test_allow_rules_must_cover_everything_that_is_touched(text: str, call: Call, expected: bool) -> None:
    assert matches_call(Rule("allow", text, "user"), call, "/home/u") is expected


def test_a_deny_rule_fires_on_any_of_the_paths_and_on_changed_files_that_must_not_be_read() -> None:
    deny = Rule("deny", "Read(.env)", "user")
    assert matches_call(deny, touching("copy", reads=("/w/a", "/w/sub/.env")), "")
    assert matches_call(deny, touching("edit_file", writes=("/w/.env",)), "")
    assert not matches_call(deny, touching("read_file", reads=("/w/.environment",)), "")


names = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="/\\"), min_size=1)


@settings(max_examples=150, deadline=None)
@given(names, names)
def test_the_rule_for_a_file_matches_that_file_and_not_its_neighbour(name: str, other: str) -> None:
    if name in (".", "..") or other in (".", "..") or name != name.strip() or name == other:
        return
    rule = Rule("allow", path_rule("Edit", f"/w/{name}", ROOTS), "session")
    assert matches_call(rule, touching("edit_file", writes=(f"/w/{name}",)), "")
    assert not matches_call(rule, touching("edit_file", writes=(f"/w/{other}",)), "")
