"""Rights that the file of a command or skill grants for its turn: they stay in the workspace and are narrow."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from swecli.core.permissions.decide import decide
from swecli.core.permissions.types import Call, Decision, Effects, Rule, Sandbox
from swecli.core.protocol.events import Mode
from tests.support.shell_workspace import ShellWorkspace


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("rights"), secrets=True)


def judged(
    work: ShellWorkspace, right: str, command: str, *, mode: Mode = "default", sandbox: Sandbox = "off"
) -> Decision:
    rule = Rule("allow", right, "command", "for this turn")
    return work.decide(command, work.policy(mode=mode, rules=(rule,), sandbox=sandbox))


OUTSIDE = (
    *("cat {home}/.ssh/id_rsa", "cp src/main.py {outside}/x", "touch {outside}/x", "mkdir {home}/new"),
    *("echo x > {outside}/x", "git -C {outside} init", "cd {outside} && touch x", "tar -xf a.tar -C {outside}"),
    *("ln -s {outside} link", "cat ~/.bashrc", "cat $HOME/.bashrc", "cat ../../outside/x", "ls / > all"),
    *('python3 -c \'open("/etc/x", "w")\'', "bash -c 'rm -r ~'", "curl https://example.org", "wget example.org/x"),
    *("nc example.org 80", "ssh example.org", "scp src/main.py example.org:", "git push", "git clone a.git b"),
    *("npm install", "pip install x", "make install", "npm test", "docker run x", "sudo ls", "crontab -e"),
    *("kill 1", "rm -rf src", "git reset --hard", "dd if=/dev/zero of=x", "env", "cat .env"),
)
"""Uses that leave the workspace, or may: with a broad right they need an approval each."""


@pytest.mark.parametrize("right", ["Bash", "Bash(*)", "run_command"])
@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto"])
@pytest.mark.parametrize("command", OUTSIDE)
def test_a_broad_right_allows_nothing_that_may_leave(
    work: ShellWorkspace, right: str, mode: Mode, command: str
) -> None:
    text = command.format(home=work.home, outside=work.outside)
    assert judged(work, right, text, mode=mode).outcome in ("ask", "deny")


@pytest.mark.parametrize(
    ("right", "command"),
    [
        ("Bash(cat *)", "cat ../../outside/x"),
        ("Bash(cat *)", "cat .env"),
        ("Bash(cp *)", "cp src/main.py {outside}/x"),
        ("Bash(python3 *)", "python3 src/main.py"),
        ("Bash(git *)", "git push"),
        ("Bash(gh *)", "gh issue view 1"),
        ("Bash(npm *)", "npm test"),
        ("Bash(rm -rf src)", "rm -rf src"),
        ("Bash(rm *)", "rm -rf src"),
        ("Bash(sudo *)", "sudo ls"),
        ("Bash(docker run *)", "docker run x"),
        ("Bash(git push --force *)", "git push --force"),
        ("Bash(curl *)", "curl https://example.org"),
        ("Bash(env *)", "env FOO=1 touch {outside}/x"),
        ("Bash(npm run *)", "npm run deploy"),
    ],
)
def test_a_right_that_is_wider_than_what_swecli_offers_asks(work: ShellWorkspace, right: str, command: str) -> None:
    text = command.format(home=work.home, outside=work.outside)
    assert judged(work, right, text).outcome == "ask"


@pytest.mark.parametrize(
    ("right", "command"),
    [
        ("Bash(gh issue view:*)", "gh issue view 12"),
        ("Bash(npm test *)", "npm test -- --watch"),
        ("Bash(npm run lint *)", "npm run lint"),
        ("Bash(git commit *)", "git commit -m x"),
        ("Bash(python3 src/main.py *)", "python3 src/main.py"),
        ("Bash(make check)", "make check"),
        ("Bash(touch *)", "touch src/new.py"),
        ("Bash(*)", "touch src/new.py"),
        ("Bash", "mkdir docs/new"),
        ("Bash(*)", "cat src/main.py"),
    ],
)
def test_a_right_that_spells_its_use_out_counts(work: ShellWorkspace, right: str, command: str) -> None:
    decision = judged(work, right, command)
    assert decision.outcome == "allow", decision.reason


def test_a_sandbox_that_contains_the_command_suffices(work: ShellWorkspace) -> None:
    decision = judged(work, "Bash(*)", "python3 src/main.py", sandbox="full")
    assert (decision.outcome, decision.contained) == ("allow", True)
    assert judged(work, "Bash(*)", "cat /etc/hosts", sandbox="full").outcome == "ask"
    assert judged(work, "Bash(ls *)", "python3 src/main.py", sandbox="full").outcome == "ask"


def test_a_rule_of_the_user_is_not_limited_by_one_of_a_file(work: ShellWorkspace) -> None:
    rules = (Rule("allow", "Bash", "command"), Rule("allow", "Bash(python3 *)", "user"))
    assert work.decide("python3 src/main.py", work.policy(rules=rules)).outcome == "allow"
    rules = (Rule("allow", "Edit", "command"), Rule("allow", "Edit(//**)", "session"))
    assert tool(work, "edit_file", rules, writes=(f"{work.outside}/x",)).outcome == "allow"


def tool(work: ShellWorkspace, name: str, rules: tuple[Rule, ...], **effects: object) -> Decision:
    call = Call(name, {}, Effects(**effects), str(work.root), (str(work.root),))  # type: ignore[arg-type]
    return decide(replace(work.policy(), rules=rules), call)


@pytest.mark.parametrize(
    ("right", "name", "effects", "expected"),
    [
        ("Read", "read_file", {"reads": ("{outside}/x",)}, "ask"),
        ("Read", "read_file", {"reads": ("{root}/.env",)}, "ask"),
        ("Read(//**)", "read_file", {"reads": ("{outside}/x",)}, "ask"),
        ("Read(~/**)", "read_file", {"reads": ("{home}/x",)}, "ask"),
        ("Edit", "edit_file", {"writes": ("{root}/src/main.py",)}, "allow"),
        ("Edit(src/**)", "edit_file", {"writes": ("{root}/src/main.py",)}, "allow"),
        ("Edit", "edit_file", {"writes": ("{outside}/x",)}, "ask"),
        ("Write(~/**)", "write_file", {"writes": ("{home}/x",)}, "ask"),
        ("Write", "write_file", {"writes": ("{root}/src/main.py",), "unread": ("{root}/src/main.py",)}, "ask"),
        ("WebFetch", "web_fetch", {"network": "example.org"}, "ask"),
        ("WebFetch(domain:example.org)", "web_fetch", {"network": "example.org"}, "allow"),
        ("WebFetch(domain:example.org)", "web_fetch", {"network": "example.com"}, "ask"),
        ("WebSearch", "web_search", {"network": "search.example.org"}, "ask"),
        ("mcp__db", "mcp__db__drop", {"external": "the MCP server db"}, "ask"),
        ("mcp__db__*", "mcp__db__drop", {"external": "the MCP server db"}, "ask"),
        ("mcp__db__show", "mcp__db__show", {"external": "the MCP server db"}, "allow"),
    ],
)
def test_rights_on_tools(
    work: ShellWorkspace, right: str, name: str, effects: dict[str, object], expected: str
) -> None:
    named = {"root": work.root, "home": work.home, "outside": work.outside}
    filled = {
        key: tuple(path.format(**named) for path in value) if isinstance(value, tuple) else value
        for key, value in effects.items()
    }
    assert tool(work, name, (Rule("allow", right, "command"),), **filled).outcome == expected
