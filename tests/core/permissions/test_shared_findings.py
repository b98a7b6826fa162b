"""What decisions share, and how paths are followed, gives what doing it anew would give."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.shell.started import started
from swecli.core.permissions.types import Rule
from tests.core.permissions.shell.test_corpus import ASKED, DANGEROUS, EVERYDAY
from tests.support.shell_workspace import ShellWorkspace, judged_once

COMMANDS = (*EVERYDAY[::40], *ASKED[::40], *(command for _, command in DANGEROUS[::15]))


def test_decisions_that_share_findings_are_those_made_alone(tmp_path: Path) -> None:
    work = ShellWorkspace(tmp_path)
    rules = (
        Rule("deny", "Bash(git *)", "user"),
        Rule("ask", "Read(.env)", "user"),
        Rule("allow", "Bash(npm *)", "user"),
    )
    policies = [work.policy(), work.policy(mode="plan"), work.policy(rules=rules), *work.loosest()]
    with judged_once():
        shared = [work.decide(command, policy) for command in COMMANDS for policy in policies]
    assert len({decision.outcome for decision in shared}) == 3
    assert shared == [work.decide(command, policy) for command in COMMANDS for policy in policies]


def test_a_decision_sees_what_has_changed_since_the_last_one(tmp_path: Path) -> None:
    work = ShellWorkspace(tmp_path, secrets=False)
    assert work.decide("cat docs/guide.md").outcome == "allow"
    (work.root / "docs").rename(work.root / "old")
    (work.root / "docs").symlink_to(work.outside)
    (work.outside / "guide.md").write_text("x")
    assert work.decide("cat docs/guide.md").outcome == "ask"


def test_the_variables_of_a_kept_text_are_its_own() -> None:
    found = [started("$x a", (("x", value),))[0].name for value in ("rm", "ls", "rm")]
    assert found == ["rm", "ls", "rm"]
    assert started("$x a")[0].name == ""


PLAIN = ("a/b/file", "a/b", "", ".", "a/../a", "a//b", "a/b/", "missing", "missing/x", "missing/../a", "a/b/file/x")
LINKED = ("link", "link/file", "link/../c", "to-file", "to-file/x", "broken", "broken/x", "round", "round/x")
HOSTILE = ("a/up/a/up", "n" * 300, "n" * 300 + "/x", "/".join(["d"] * 3_000), "closed/x", "\udcff")


@pytest.mark.parametrize("name", [*PLAIN, *LINKED, *HOSTILE])
def test_a_path_leads_where_the_standard_library_says(tmp_path: Path, name: str) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("x")
    (tmp_path / "closed").mkdir(mode=0)
    links = {"link": "a/b", "to-file": "a/b/file", "broken": "no/such", "round": "round", "a/up": ".."}
    for link, target in links.items():
        (tmp_path / link).symlink_to(target)
    for path in (f"{tmp_path}/{name}", f"/{tmp_path}/{name}", f"//{tmp_path}/{name}", os.path.relpath(tmp_path / name)):
        assert OsFacts({}).resolve(path) == os.path.realpath(path)
    assert OsFacts({}).resolve("/") == "/"
