"""Labelled commands: everyday ones run, everything else asks, the worst is asked or refused whatever is allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.shell_workspace import ShellWorkspace
from tests.support.thorough import examples

pytestmark = pytest.mark.usefixtures("once")
CORPUS = Path(__file__).parent / "corpus"
EVERYDAY = (CORPUS / "everyday.txt").read_text().splitlines()
ASKED = (CORPUS / "asked.txt").read_text().splitlines()
DANGEROUS = [tuple(line.split("\t", 1)) for line in (CORPUS / "dangerous.txt").read_text().splitlines()]

WRAPS = [
    *("env {}", "env A=1 B=2 {}", "timeout 5 {}", "timeout -k 1 5s {}", "nice -n 5 {}", "nohup {}", "sudo -u x {}"),
    *("stdbuf -oL {}", "setsid {}", "ionice -c3 {}", "time {}", "command {}", "exec {}", "! {}", "busybox {}"),
    *("ls && {}", "ls; {}", "true || {}", "ls | {}", "{} | cat", "{} &", "{} >/dev/null 2>&1", "ls\n{}", "\\\n{}"),
    *("# harmless\n{}", "({})", "{{ {}; }}", "if true; then {}; fi", "for i in 1; do {}; done", "until {}; do :; done"),
    *("f() {{ {}; }}; f", "echo $({})", 'echo "$({})"', "cat <({})", "x=$({})", "case a in a) {};; esac"),
    *("while read -r x; do {}; done", "LC_ALL=C {}", "X=1 {}", "flock x {}", "coproc {}", "ls & {}", "ls || ls && {}"),
]
QUOTING_WRAPS = [
    *("sh -c '{}'", "bash -lc '{}'", "/bin/sh -ec '{}'", "eval '{}'", "su -c '{}'", "env -S '{}'", "trap '{}' EXIT"),
    *(
        "ssh host '{}'",
        "xargs sh -c '{}'",
        "watch '{}'",
        "bash <<'EOF'\n{}\nEOF\n",
        "sh <<< '{}'",
        "find . -exec sh -c '{}' \\;",
    ),
    "git -c alias.x='!{}' x",
]

STEP = examples(5, 1)
"""Every third command is tried in one wrap, and each command in every third wrap; ``make soak`` tries all in all."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("harmless"), secrets=False)


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    workspace = ShellWorkspace(tmp_path_factory.mktemp("linked"))
    workspace.link_outside()
    return workspace


def test_the_corpora_are_large_enough_to_mean_something() -> None:
    assert (len(EVERYDAY) > 450, len(ASKED) > 700, len(DANGEROUS) > 180) == (True, True, True)


def test_everyday_commands_run_without_a_question_in_every_mode(harmless: ShellWorkspace) -> None:
    policies = [harmless.policy(mode=mode) for mode in ("default", "accept-edits", "plan", "auto")]
    asked = [
        (command, decision.reason)
        for command in EVERYDAY
        for policy in policies
        if (decision := harmless.decide(command, policy)).outcome != "allow"
    ]
    assert asked == []


def test_everything_that_is_not_proven_asks(linked: ShellWorkspace) -> None:
    silent = [command for command in ASKED if linked.decide(command).outcome == "allow"]
    assert silent == []


def test_plan_mode_refuses_what_is_not_proven_and_never_runs_it(linked: ShellWorkspace) -> None:
    plan = linked.policy(mode="plan")
    outcomes = {command: linked.decide(command, plan).outcome for command in ASKED}
    assert "allow" not in outcomes.values()
    for command in (
        "touch x",
        "echo hi > x",
        "echo hi | tee x",
        "sed -i s/a/b/ README.md",
        "git commit -m x",
        "python x.py",
    ):
        assert linked.decide(command, plan).outcome == "deny"
    assert outcomes["cat /etc/os-release"] == "ask"


@pytest.mark.parametrize(("label", "command"), DANGEROUS, ids=[command for _, command in DANGEROUS])
def test_the_dangerous_is_asked_or_refused_whatever_is_allowed(plain: ShellWorkspace, label: str, command: str) -> None:
    expected = "deny" if label == "refuse" else "ask"
    for policy in plain.loosest():
        decision = plain.decide(command, policy)
        assert (decision.outcome, decision.offer) == (expected, None), decision.reason
    yolo = plain.decide(command, plain.policy(yolo=True))
    assert yolo.outcome == ("deny" if label == "refuse" else "allow")


@pytest.mark.parametrize(("number", "wrap"), list(enumerate([*WRAPS, *QUOTING_WRAPS])), ids=[*WRAPS, *QUOTING_WRAPS])
def test_no_wrapping_makes_the_dangerous_silent(plain: ShellWorkspace, number: int, wrap: str) -> None:
    loose_and_usual = (plain.policy(), plain.loosest()[-1])
    silent: list[str] = []
    for _, command in DANGEROUS[number % STEP :: STEP]:
        if wrap in QUOTING_WRAPS and "'" in command:
            continue
        wrapped = wrap.format(command)
        silent += [wrapped for policy in loose_and_usual if plain.decide(wrapped, policy).outcome == "allow"]
    assert silent == []


@settings(max_examples=examples(60, 300), deadline=None)
@given(
    st.sampled_from(DANGEROUS),
    st.lists(st.sampled_from(WRAPS), min_size=1, max_size=4),
    st.sampled_from(["", *QUOTING_WRAPS]),
)
def test_no_nesting_of_wraps_makes_the_dangerous_silent(
    plain: ShellWorkspace, dangerous: tuple[str, str], wraps: list[str], outer: str
) -> None:
    command = dangerous[1]
    for wrap in wraps:
        # Likewise "env ! rm" runs a program "!".
        # "env case a in a) rm -rf /;; esac" runs a program "case"; in "$(…)" the rest is a text after its parenthesis.
        assume(not command.startswith(("case ", "! ")) or re.search(r"(^|[(;{]|then|do|else) ?\{\}", wrap))
        command = wrap.format(command)
    # An assignment before a comment stands alone, so "$X" is known to be 1 and no longer dangerous.
    assume("X=1 #" not in command)
    if outer and "'" not in command and "EOF" not in command:
        command = outer.format(command)
    for policy in (plain.policy(), *plain.loosest()):
        assert plain.decide(command, policy).outcome != "allow"


@settings(max_examples=examples(60, 300), deadline=None)
@given(
    st.sampled_from([*EVERYDAY, *ASKED]),
    st.sampled_from(["|", "&&", "||", ";", "\n"]),
    st.sampled_from([*EVERYDAY, *ASKED]),
)
def test_adding_a_command_never_lowers_the_verdict(linked: ShellWorkspace, left: str, joint: str, right: str) -> None:
    rank = {"allow": 0, "ask": 1, "deny": 2}
    both = rank[linked.decide(f"{left} {joint} {right}").outcome]
    # A comment or an open quote may swallow what follows, which then is not run.
    if "#" not in left and both == 0:
        assert rank[linked.decide(left).outcome] == 0
        # Behind a pipe a search reads the pipe and not the folder with its links.
        alone = f"true | {right}" if joint == "|" else right
        # Behind a pipe cd has no effect on what follows, and what is set there leaves what the left has set.
        again = re.match(r"\w+=", right) if joint == "|" else None
        kept = again is not None and again[0] in left
        assert rank[linked.decide(alone).outcome] == 0 or "cd " in left + right or kept


@settings(max_examples=examples(60, 300), deadline=None)
@given(st.sampled_from(EVERYDAY), st.data())
def test_nothing_that_is_put_into_an_everyday_command_crashes_the_decision(
    plain: ShellWorkspace, command: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(command)))
    noise = data.draw(st.text(st.sampled_from("$`'\"\\(){}[]<>|&;\n\t #~*?!=é\u202e\u00a0-"), max_size=4))
    assert plain.decide(command[:at] + noise + command[at:]).outcome in ("allow", "ask", "deny")
