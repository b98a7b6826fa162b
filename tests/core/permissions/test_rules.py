"""The rule grammar."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.permissions.rules import (
    RuleError,
    check_rules,
    is_valid,
    matches_call,
    parse_rule,
    path_rule,
    starts_others,
    unknown_tool,
)
from swecli.core.permissions.types import Call, Effects, Rule
from tests.support.thorough import examples

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
        "Bash(git log | head)",
        "Bash(cd x && rm y)",
        "Bash(git log > x)",
        "Bash(rm $(ls))",
        "Bash(rm `ls`)",
        "Bash(rm $HOME)",
        'Bash(rm "$HOME")',
        "Bash(A=1 git log)",
        'Bash("git log" *)',
        "Bash(^git .*)",
        "Bash(git .*)",
        "Bash(regex:git)",
        "Bash(gi? log)",
        "Edit(!x)",
        "Edit(../x)",
        "Edit(# x)",
        "WebFetch(example.org)",
        "WebFetch(domain:)",
        "WebFetch(domain:a b)",
        "mcp__",
        "mcp__db__*(x)",
        "mcp__db__query(x)",
        "TodoWrite(x)",
        "Bash(ls\n)",
        "Bash(ls) x",
        "Bsh(ls)",
    ],
)
def test_what_is_no_rule_is_reported(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)
    (problem,) = check_rules([Rule("deny", text, "user", "config.toml:3")])
    assert problem.message.endswith(".")
    assert problem.rule.origin == "config.toml:3"


def test_a_rule_for_an_unknown_tool_is_recognised() -> None:
    rules = ("Bsh", "Bash(ls)", "Read", "mcp__x", "Edit(*.py)")
    tools = {"run_command", "read_file", "edit_file"}
    assert [text for text in rules if unknown_tool(parse_rule(text), tools)] == ["Bsh"]


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
        ("Bash(git log*)", "git log", True),
        ("Bash(git log*)", "git log --oneline -3", True),
        ("Bash(git log*)", "git show", False),
        ("Bash(git*)", "git status -s", True),
        ("Bash(git:*)", "git status -s", True),
        ("Bash(git:*)", "github x", False),
        ("Bash(**)", "anything at all", True),
        ("Bash(git * main)", "git push origin main", True),
        ("Bash(git * main)", "git push origin mine", False),
        ("Bash(ls *.py)", "ls a.py", True),
        ("Bash(ls *.py)", "ls a.py b.py", False),
        ("Bash(find . -name '*.py')", "find . -name *.py", True),
        ("Bash(find . -name '*.py')", "find . -name a.py", False),
        ("Bash(cat src/*)", "cat src/a", True),
        ("Bash(cat src/*)", "cat src/a /etc/passwd", False),
        ("Bash([ *)", "[ -f x ]", True),
        ("bash(ls *)", "ls a", True),
        ("Shell(ls *)", "ls a", True),
        ("Bash(x a[b]c?* *)", "x abcd", False),
    ],
)
def test_command_words(text: str, argv: str, expected: bool) -> None:
    pattern = parse_rule(text)
    assert pattern.matches_words(argv.split()) is expected
    assert not expected or pattern.matches_words(argv.split(), wide=True)


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("Bash(rm)", "rm -rf x"),
        ("Bash(rm -rf /*)", "rm -rf /etc /home"),
        ("Bash(cat src/*)", "cat src/a /etc/passwd"),
        ("Bash(* --force)", "git push origin --force"),
        ("Bash(*push*)", "git push x"),
        ("Bash(curl http*internal*)", "curl http://a -H internal: b"),
        ("Bash(ls *.py)", "ls a b.py"),
    ],
)
def test_deny_rules_take_their_words_in_the_widest_sense(text: str, argv: str) -> None:
    assert parse_rule(text).matches_words(argv.split(), wide=True)


def test_a_rule_that_allows_names_its_program() -> None:
    assert is_valid(Rule("deny", "Bash(* --force)", "user"))
    assert not is_valid(Rule("allow", "Bash(* --force)", "user"))
    assert is_valid(Rule("allow", "Bash(*)", "user"))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Read(*.{pem,key})", "/w/a/b.key"),
        ("Read({a,b}/{c,d}.txt)", "/w/b/c.txt"),
        ("Read(.)", "/w/a/b"),
        ("Read(~)", "/home/u/x"),
        ("Read($HOME/x)", "/home/u/x"),
        ("Read(${HOME}/x)", "/home/u/x"),
        ("Read(/etc/hosts)", "/etc/hosts"),
        ("Read(/a)", "/w/a"),
        ("read(a)", "/w/a"),
    ],
)
def test_paths_mean_what_they_mean_elsewhere(text: str, path: str) -> None:
    assert matches_call(Rule("deny", text, "user"), touching("read_file", reads=(path,)), "/home/u")


def test_a_file_with_braces_is_itself_in_its_rule() -> None:
    rule = Rule("allow", path_rule("Read", "/w/{a,b}", ROOTS), "session")
    assert matches_call(rule, touching("read_file", reads=("/w/{a,b}",)), "")
    assert not matches_call(rule, touching("read_file", reads=("/w/a",)), "")
    allow = Rule("allow", "Read(/etc/hosts)", "user")
    assert not matches_call(allow, touching("read_file", reads=("/etc/hosts",)), "")


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
        ("mcp__db__*", touching("mcp__db__query"), True),
        ("WebFetch(domain:*)", touching("web_fetch", network="a.org"), True),  # type: ignore[arg-type]
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


@settings(max_examples=examples(60, 300), deadline=None)
@given(names, names)
def test_the_rule_for_a_file_matches_that_file_and_not_its_neighbour(name: str, other: str) -> None:
    if name in (".", "..") or other in (".", "..") or name != name.strip() or name == other:
        return
    rule = Rule("allow", path_rule("Edit", f"/w/{name}", ROOTS), "session")
    assert matches_call(rule, touching("edit_file", writes=(f"/w/{name}",)), "")
    assert not matches_call(rule, touching("edit_file", writes=(f"/w/{other}",)), "")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Bash(find *)", "find -exec can start any program"),
        ("Bash(find . -exec *)", "find -exec can start any program"),
        ("Bash(env*)", "env can start any program"),
        ("Bash(python3 -c *)", "python3 -c can start any program or code"),
        ("Bash(find src -name *)", ""),
        ("Bash(python3 -m pytest *)", ""),
        ("Bash(git log *)", ""),
        ("Bash(ls *)", ""),
        ("Bash", ""),
        ("Read(find)", ""),
    ],
)
def test_a_rule_for_a_program_that_starts_others_is_told(rule: str, said: str) -> None:
    assert starts_others(parse_rule(rule)).startswith(said)
    assert bool(starts_others(parse_rule(rule))) == bool(said)


def test_all_braces_of_a_rule_are_expanded() -> None:
    pattern = parse_rule("Read({a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}/x)").path
    assert pattern is not None
    assert pattern.matches("/proj/abababa/x", ("/proj",), "", wide=False)


def test_a_rule_whose_braces_stand_for_too_many_patterns_is_invalid() -> None:
    with pytest.raises(RuleError, match="its braces stand for more than 1000 patterns"):
        parse_rule(f"Read({'{a,b,c,d,e}' * 6})")
    assert parse_rule(f"Read({'{a,b}' * 6})").path is not None
