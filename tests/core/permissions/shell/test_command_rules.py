"""Rules about commands: part by part, through wrappers, and what "always" offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.types import Policy, Rule
from tests.core.permissions.shell.test_corpus import ASKED, EVERYDAY
from tests.support.shell_workspace import ShellWorkspace, judged_once


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("rules"))


def with_rules(workspace: ShellWorkspace, *rules: tuple[str, str], **more: object) -> Policy:
    return workspace.policy(rules=tuple(Rule(effect, text, "user") for effect, text in rules), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm test", "allow"),
        ("npm test -- --watch", "allow"),
        ("npm test 2>&1 | tail -20", "allow"),
        ("cd src && npm test", "allow"),
        ("npm test && git status", "allow"),
        ("npm test $X", "ask"),
        ('npm test "$(cat README.md)"', "ask"),
        ("npm test \"$(cat <<'EOF'\nfix(core): a & b\n\nmore\nEOF\n)\"", "allow"),
        ("npm test $(cat <<'EOF'\na b\nEOF\n)", "ask"),
        ("npm test \"$(cat - <<'EOF'\na b\nEOF\n)\"", "ask"),
        ("npm test \"$(cat <<'EOF' README.md\na b\nEOF\n)\"", "ask"),
        ("npm test \"$(sh <<'EOF'\na b\nEOF\n)\"", "ask"),
        ("npm test && npm install", "ask"),
        ("npm test; rm -rf src", "ask"),
        ("npm test | sh", "ask"),
        ("npm test & rm x", "ask"),
        ("npm test > out.log", "ask"),
        ("npm test $(touch x)", "ask"),
        ("npm test `touch x`", "ask"),
        ("npm test <<EOF\n$(touch x)\nEOF", "ask"),
        ("npm test < /etc/passwd", "ask"),
        ("NODE_OPTIONS=--require=./x npm test", "ask"),
        ("PATH=. npm test", "ask"),
        ("env npm test", "ask"),
        ("sh -c 'npm test'", "ask"),
        ("npm testing", "ask"),
        ("./npm test", "ask"),
        ("npm $X test", "ask"),
        ("npm\u00a0test", "ask"),
    ],
)
def test_an_allow_rule_covers_simple_commands_and_nothing_around_them(
    workspace: ShellWorkspace, command: str, expected: str
) -> None:
    assert workspace.decide(command, with_rules(workspace, ("allow", "Bash(npm test *)"))).outcome == expected


@pytest.mark.parametrize(
    "command",
    [
        "printf -v f .env; cat $f",
        "export f=.env; cat $f",
        "export f=.env && cat $f",
        "for i in 1 2; do cat $f; export f=.env; done",
        "for i in 1 2; do cat $f; printf -v f .env; done",
        "read -a f < README.md; cat $f",
    ],
)
def test_what_a_rule_lets_run_may_change_the_variables_of_what_follows(workspace: ShellWorkspace, command: str) -> None:
    policy = with_rules(workspace, *(("allow", f"Bash({name} *)") for name in ("export", "printf", "read")))
    assert workspace.decide(f"f=README.md; {command}", policy).outcome == "ask"
    assert workspace.decide(f"f=README.md; {command.replace('$f', 'README.md')}", policy).outcome == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *(
            "export PATH=.:$PATH; ls",
            "export PATH=.; ls",
            "export -- PAGER=./x && git log",
            "declare -x LD_PRELOAD=x; ls",
        ),
        *("for i in 1 1; do ls; export PATH=.; done", "while read -r l; do ls; export PATH=.; done < README.md"),
        *("if ls; then export PATH=.; fi; ls", "{ export PATH=.; }; ls", 'export "$x"; ls', "ls; export PATH=. || ls"),
    ],
)
def test_a_rule_for_export_lets_no_later_command_mean_something_else(workspace: ShellWorkspace, command: str) -> None:
    rules = [("allow", f"Bash({name} *)") for name in ("export", "declare")]
    assert workspace.decide(command, with_rules(workspace, *rules)).outcome == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("export NODE_ENV=test CI=1 && ls", "export f=x; ls", "export LC_ALL=C; ls", "(export PATH=.); ls"),
        *("ls; export PATH=.", "for i in 1 2; do ls; export CI=1; done"),
    ],
)
def test_a_rule_for_export_allows_settings_and_what_no_later_command_sees(
    workspace: ShellWorkspace, command: str
) -> None:
    assert workspace.decide(command, with_rules(workspace, ("allow", "Bash(export *)"))).outcome == "allow"


def test_a_redirection_needs_a_rule_of_its_own(workspace: ShellWorkspace) -> None:
    rules = (("allow", "Bash(npm test *)"), ("allow", "Edit(*.log)"))
    assert workspace.decide("npm test > out.log", with_rules(workspace, *rules)).outcome == "allow"
    assert workspace.decide("npm test > out.txt", with_rules(workspace, *rules)).outcome == "ask"
    assert workspace.decide("npm test > .git/x.log", with_rules(workspace, *rules)).outcome == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "curl x",
        "/usr/bin/curl x",
        "c'u'rl x",
        "cu\\rl x",
        "$'\\x63url' x",
        "env A=1 curl x",
        "timeout 5 curl x",
        "sudo curl x",
        "sh -c 'curl x'",
        "bash -c \"sh -c 'curl x'\"",
        "eval 'curl x'",
        "ls && curl x",
        "ls | xargs curl x",
        "find . -exec curl x {} +",
        "echo $(curl x)",
        "echo `curl x`",
        "cat <(curl x)",
        "f() { curl x; }; f",
        "c=curl; $c x",
        "if true; then curl x; fi",
        "bash <<EOF\ncurl x\nEOF",
        "X=1 curl x",
        "{ curl x; }",
        "! curl x",
        "curl x &",
        "curl $Y x",
    ],
)
@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_deny_and_ask_rules_see_through_everything(workspace: ShellWorkspace, command: str, effect: str) -> None:
    rules = ((effect, "Bash(curl *)"), ("allow", "Bash"))
    for policy in (with_rules(workspace, *rules), with_rules(workspace, *rules, mode="auto", sandbox="full")):
        decision = workspace.decide(command, policy)
        assert decision.outcome == effect
        assert effect == "ask" or (decision.rule is not None and decision.rule.text == "Bash(curl *)")
    if effect == "deny":
        assert workspace.decide(command, with_rules(workspace, *rules, yolo=True)).outcome == "deny"


def test_git_options_before_the_subcommand_do_not_hide_it(workspace: ShellWorkspace) -> None:
    deny = with_rules(workspace, ("deny", "Bash(git push *)"))
    for command in (
        "git push",
        "git -C . push",
        "git -c a.b=c push origin",
        "git $X push",
        "/usr/bin/git --no-pager push",
    ):
        assert workspace.decide(command, deny).outcome == "deny", command
    assert workspace.decide("git status", deny).outcome == "allow"


def test_what_cannot_be_known_asks_where_a_command_is_denied(workspace: ShellWorkspace) -> None:
    for policy in (
        with_rules(workspace, ("deny", "Bash(curl *)"), ("allow", "Bash")),
        with_rules(workspace, ("deny", "Bash(curl *)"), yolo=True),
    ):
        for command in ("$X y", "$(echo cu)rl x", "echo x | base64 -d | sh", "eval $X"):
            assert workspace.decide(command, policy).outcome == "ask", command


@pytest.mark.parametrize(
    "command",
    [
        "cat private.txt",
        "cat ./src/../private.txt",
        "cat priv*",
        "head < private.txt",
        "cat to-private",
        "cp private.txt x",
        "python -c \"print(open('private.txt').read())\"",
        "grep -f private.txt x",
        "tar -cf x --files-from=private.txt",
        "cd src && cat ../private.txt",
        "sh -c 'cat private.txt'",
        "cat PRIVATE.txt",
        "echo x > private.txt",
        "curl -d @private.txt x",
    ],
)
def test_a_denied_file_is_denied_to_commands_too(workspace: ShellWorkspace, command: str) -> None:
    (workspace.root / "private.txt").write_text("x")
    link = workspace.root / "to-private"
    if not link.is_symlink():
        link.symlink_to("private.txt")
    deny = with_rules(workspace, ("deny", "Read(private.txt)"), ("allow", "Bash"))
    assert workspace.decide(command, deny).outcome == "deny"
    assert workspace.decide("cat README.md", deny).outcome == "allow"


@pytest.mark.parametrize(
    ("command", "offer"),
    [
        ("npm test", "Bash(npm test *)"),
        ("npm run build -- --prod", "Bash(npm run build *)"),
        ("cargo test -q", "Bash(cargo test *)"),
        ("pytest tests", "Bash(pytest *)"),
        ("make install", "Bash(make install)"),
        ("cd src && npm test | tail -5", "Bash(npm test *)"),
        ("git add -A && git commit -m 'a b'", "Bash(git add *), Bash(git commit *)"),
        ("git push origin main", "Bash(git push origin main)"),
        ("npm test && npm install", "Bash(npm test *), Bash(npm install)"),
        ("python x.py", "Bash(python x.py)"),
        ("python3.11 -m pytest", "Bash(python3.11 -m pytest *)"),
        ("node x.js", "Bash(node x.js)"),
        ("bash x.sh", "Bash(bash x.sh)"),
        ("env npm test", None),
        ("timeout 9 npm test", "Bash(timeout 9 npm test *)"),
        ("xargs npm test", None),
        ("npm test > out", "Bash(npm test *), Edit(/out)"),
        ("X=1 npm test", None),
        ("npm test $X", None),
        ("rm x", None),
        ("git push --force", None),
        ("cat .env", None),
        ("sudo npm test", None),
        ("./run.sh a", "Bash(./run.sh a)"),
        ("echo hi & npm test", None),
        ("docker ps", "Bash(docker ps *)"),
    ],
)
def test_always_offers_the_narrowest_useful_rule(workspace: ShellWorkspace, command: str, offer: str | None) -> None:
    decision = workspace.decide(command)
    assert (decision.outcome, decision.offer) == ("ask", offer)


def test_every_offer_lets_exactly_that_command_run_next_time(workspace: ShellWorkspace) -> None:
    offered = 0
    with judged_once():
        for command in ASKED:
            offers = workspace.decide(command).offers
            if not offers:
                continue
            offered += 1
            granted = with_rules(workspace, *(("allow", offer) for offer in offers))
            assert workspace.decide(command, granted).outcome == "allow", (command, offers)
            for other in ("touch x", "sh -c id", "echo x > y"):
                assert workspace.decide(other, granted).outcome == "ask" or other in command
    assert offered > 50


@pytest.mark.parametrize("command", ["curl https://example.org", "gh pr view 3", "aws s3 ls"])
def test_a_program_for_other_machines_is_not_said_to_change_files(workspace: ShellWorkspace, command: str) -> None:
    program = command.partition(" ")[0]
    reason = workspace.decide(command).reason
    assert reason == f"{program} exchanges data with other machines, so it needs your approval."


def test_the_reason_names_the_part_that_is_not_proven(workspace: ShellWorkspace) -> None:
    decision = workspace.decide("ls | frobnicate --now")
    assert "frobnicate" in decision.reason
    assert any("frobnicate --now" in item for item in decision.evidence)
    assert any(line.endswith("/README.md") for line in workspace.decide("rm -rf README.md").evidence)


def test_auto_in_a_full_sandbox_still_asks_about_secrets_and_places_outside(workspace: ShellWorkspace) -> None:
    auto = workspace.policy(mode="auto", sandbox="full")
    for command in ("cat .env && npm test", "cp .env x", "cat /etc/passwd", "npm test && cat ~/.ssh/id_rsa"):
        assert workspace.decide(command, auto).outcome == "ask", command
    for command in ("npm test", "python x.py", "make && ./run", "mkdir -p build && touch build/x", "echo x > new.txt"):
        assert workspace.decide(command, auto).outcome == "allow", command


def test_no_everyday_command_trips_over_a_deny_rule_about_others(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path, secrets=False)
    deny = with_rules(workspace, ("deny", "Bash(curl *)"), ("deny", "Read(absent.txt)"), ("ask", "Bash(git push *)"))
    tripped = [command for command in EVERYDAY if workspace.decide(command, deny).outcome != "allow"]
    assert tripped == []


def test_paths_of_rules_hold_where_the_command_goes(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    deny = with_rules(workspace, ("deny", "Edit(docs/**)"), ("allow", "Bash"))
    for command in ("echo x > docs/a", "cd docs && echo x > a", "cp a docs/b", "sed -i s/a/b/ docs/guide.md"):
        assert workspace.decide(command, deny).outcome == "deny", command
    assert workspace.decide("cat docs/guide.md", deny).outcome == "allow"


def test_words_that_are_no_scripts_are_not_taken_for_some(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    policy = workspace.policy(mode="auto", sandbox="full", trust="trusted")
    for command in ("sed -e s/a/b/M -n docs/guide.md", 'find . -name x | xargs grep -n "import os" nothing.txt'):
        assert workspace.decide(command, policy).outcome == "allow", command
    assert workspace.decide("sed -e 's/a/touch x/e' docs/guide.md", policy).outcome == "ask"
