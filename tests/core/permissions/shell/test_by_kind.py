"""A second, larger set of labelled commands, written from the rules and not from the tables, by what they do.

Those of ``examples_*.txt`` are a sample of the examples of tldr-pages (https://tldr.sh, CC BY 4.0) with placeholders
filled in, labelled by their descriptions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.shell_workspace import ShellWorkspace

pytestmark = pytest.mark.usefixtures("once")
CORPUS = Path(__file__).parent / "corpus" / "by_kind"
RUN = ("everyday_single", "everyday_compound", "everyday_tools", "everyday_agents", "everyday_scripts", "examples_run")
ASK = (
    *("examples_ask", "effects", "network", "secrets_and_outside", "tricks", "lookalikes", "lookalikes_agents"),
    *("lookalikes_scripts", "not_provable"),
)


def read(kind: str) -> list[str]:
    """One command a line; ⏎ stands for a line break in it."""
    return [line.replace("⏎", "\n") for line in (CORPUS / f"{kind}.txt").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", RUN)
def test_what_agents_run_to_look_around_needs_no_question(tmp_path: Path, kind: str) -> None:
    workspace = ShellWorkspace(tmp_path, secrets=False)
    asked = [
        (command, decision.reason)
        for command in read(kind)
        if (decision := workspace.decide(command)).outcome != "allow"
    ]
    assert asked == []


@pytest.mark.parametrize("kind", ASK)
def test_what_has_an_effect_or_tells_private_things_asks(tmp_path: Path, kind: str) -> None:
    workspace = ShellWorkspace(tmp_path)
    workspace.link_outside()
    plan = workspace.policy(mode="plan")
    silent = [
        command
        for command in read(kind)
        if "allow" in (workspace.decide(command).outcome, workspace.decide(command, plan).outcome)
    ]
    assert silent == []


def test_the_sets_are_large_enough_to_mean_something() -> None:
    assert sum(len(read(kind)) for kind in (*RUN, *ASK)) > 3_000
