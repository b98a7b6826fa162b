"""However a command with an effect is wrapped, it never runs without a question."""

from __future__ import annotations

import pytest

from swecli.core.permissions.types import Rule
from tests.core.permissions.shell.test_by_kind import read
from tests.core.permissions.shell.wraps import wraps
from tests.support.shell_workspace import ShellWorkspace

pytestmark = pytest.mark.usefixtures("once")
PER_WRAP = 10
FORBIDDEN = ("touch x", "rm x", "git push", "curl -s https://example.org")
_SILENT_AMONG_EFFECTS = frozenset("|&;\n#")


def cases() -> list[str]:
    """Each way of wrapping with ten commands, chosen the same way every time."""
    effects = [command for command in (*read("effects"), *read("network")) if not set(command) & _SILENT_AMONG_EFFECTS]
    return [
        wrap(effects[(index * 37 + step * 61) % len(effects)])
        for index, wrap in enumerate(wraps())
        for step in range(PER_WRAP)
    ]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("wraps"))


def test_no_wrap_makes_an_effect_silent(work: ShellWorkspace) -> None:
    commands = cases()
    assert len(commands) > 1_500
    assert [command for command in commands if work.decide(command).outcome == "allow"] == []


def test_a_deny_rule_is_not_got_round_by_any_wrap(work: ShellWorkspace) -> None:
    rules = tuple(Rule("deny", f"Bash({' '.join(command.split()[:2])} *)", "user") for command in FORBIDDEN)
    everything = Rule("allow", "Bash", "user")
    policy = work.policy(rules=(*rules, everything), mode="auto", sandbox="full", trust="trusted")
    silent = [
        wrapped
        for wrap in wraps()
        for command in FORBIDDEN
        if work.decide(wrapped := wrap(command), policy).outcome == "allow"
    ]
    assert silent == []


@pytest.mark.parametrize(
    "command",
    [
        *("[ -f Makefile ] && make", "[ $N -eq 1 ] && make", "[[ $N -gt 1 ]] && make", "[[ 1 -eq 1 ]] || make"),
        *("if [[ -n $X && $Y == z ]]; then make; fi", "[[ $x =~ ^(a|b)$ ]] && make", "[[ ( a ) ]]; make"),
        *('while [[ "$i" -lt 3 ]]; do i=$((i + 1)); make; done', "[[ $(ls | wc -l) -gt 3 ]] && make", "[[ a < b ]]"),
    ],
)
def test_a_condition_is_no_program_with_a_computed_name(work: ShellWorkspace, command: str) -> None:
    decision = work.decide(command, work.policy(mode="auto", sandbox="full", holds=True))
    assert (decision.outcome, decision.danger) == ("allow", "")


@pytest.mark.parametrize(
    "command",
    [
        *(
            "[[ -n $(DANGER) ]]",
            '[[ -n "$(DANGER)" ]]',
            "[[ -n `DANGER` ]]",
            "[[ a ]] && DANGER",
            "[[ a || b ]] && DANGER",
        ),
        *("[[ ( a ) ]]; DANGER", "\\[[ a || DANGER; : ]]", ">/dev/null [[ a || DANGER ]]", "echo [[ a || DANGER ]]"),
        *(
            "function [[ (DANGER)\n\\[[ ]]",
            "function \\\n[[ { DANGER\n}\n\\[[ ]]",
            "case x in [[) DANGER;; esac",
            "x='a[$(DANGER)]'; echo $((x))",
        ),
        *(
            "case [[ in [[) DANGER\n;; esac; : ]]",
            "! [[ a ]] || DANGER",
            "for [[ in a; do DANGER; done",
        ),
        *(
            "time -p [[ a ]] || DANGER",
            "[[ a ]]||DANGER",
            "[[ a ]]&&(DANGER)",
            "[[ $([[ a ]] || DANGER) ]]",
            "[ a ] || DANGER",
        ),
        *('[[ a == "]]" ]] && DANGER', "[[ ]] || DANGER", "eval '[[ a ]] || DANGER'"),
    ],
)
def test_a_condition_hides_no_danger(work: ShellWorkspace, command: str) -> None:
    policy = work.policy(mode="auto", sandbox="full", holds=True)
    assert work.decide(command.replace("DANGER", "rm -rf src"), policy).outcome == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("uv run pytest tests/", "npx eslint src/ tests/", "timeout 60 pytest tests/*.py", "nice make -C src/"),
        *("timeout 30 curl -s http://localhost:3000/", "npx eslint src/**/*.ts", "poetry run ruff check src/*.py"),
        *("env CI=1 pytest src/?.py", "exec pytest tests/", "ls | xargs -I{} cp {} /tmp/s-none/"),
        "parallel gzip ::: src/",
        *("set -euo pipefail; npm test", "source .venv/bin/activate && pytest", ". venv/bin/activate; python a.py"),
    ],
)
def test_folders_and_wildcards_of_a_program_are_no_programs(work: ShellWorkspace, command: str) -> None:
    decision = work.decide(command, work.policy(mode="auto", sandbox="full", holds=True))
    assert (decision.outcome, decision.danger) == ("allow", "")
    assert work.decide(command).danger == ""


@pytest.mark.parametrize("command", ["[[ a\nDANGER", "[[ a == b]] || DANGER; [[ a ]]", "[[ a && DANGER"])
def test_a_condition_that_does_not_end_is_refused(work: ShellWorkspace, command: str) -> None:
    for policy in (work.policy(), *work.loosest()):
        assert work.decide(command.replace("DANGER", "rm -rf src"), policy).outcome == "deny"


@pytest.mark.parametrize("wrapper", ["env A=1", "timeout 5s", "timeout -s KILL 5", "nice", "flock x", "sudo -u x"])
def test_a_program_named_by_a_wildcard_asks(work: ShellWorkspace, wrapper: str) -> None:
    policy = work.policy(mode="auto", sandbox="full", holds=True)
    assert work.decide(f"{wrapper} /bin/r? -r src", policy).outcome == "ask"
