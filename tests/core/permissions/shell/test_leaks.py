"""A third set of labelled commands, written by looking for ways around the tables: each tries to show a secret of the
work tree, the history or the machine, or to have an effect, or looks like one of these and does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.facts import OsFacts
from swecli.core.workspace.walk import left_out_by_ripgrep
from tests.core.permissions.shell.test_history import git, with_history
from tests.support.shell_workspace import ShellWorkspace

CORPUS = Path(__file__).parent / "corpus" / "leaks.txt"
LINES = [line.replace("⏎", "\n").split("\t") for line in CORPUS.read_text(encoding="utf-8").splitlines()]
FILES = {
    ".env": "KEY=9\n",
    "conf/.env": "KEY=8\n",
    "conf/credentials.yml": "a: b\n",
    "id_rsa": "key\n",
    "server.pem": "key\n",
    "list.txt": ".env\n",
    "revs.txt": "old\n",
}
REMOTE = '[remote "o"]\n\turl = https://user:password@example.org/x.git\n'


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    work = with_history(tmp_path_factory.mktemp("leaks"))
    for name, text in FILES.items():
        (work.root / name).parent.mkdir(exist_ok=True)
        (work.root / name).write_text(text)
    with (work.root / ".git" / "config").open("a") as config:
        config.write(REMOTE)
    return work


def wrong(work: ShellWorkspace, label: str) -> list[tuple[str, str]]:
    """The commands with this label that are decided otherwise, with the reason."""
    policy = work.policy(facts=OsFacts(work.environment, left_out_by_ripgrep))
    blob, tree = (git(work.root, "rev-parse", name)[:10] for name in ("old:conf/.env", "old^{tree}"))
    decided = (
        (command, work.decide(command.replace("BLOB", blob).replace("TREE", tree), policy))
        for kind, command in LINES
        if kind == label
    )
    return [(command, each.reason) for command, each in decided if (each.outcome == "allow") != (label == "runs")]


def test_no_way_around_runs_unasked(work: ShellWorkspace) -> None:
    assert wrong(work, "asks") == []


def test_what_does_no_harm_runs(work: ShellWorkspace) -> None:
    assert wrong(work, "runs") == []


def test_the_set_is_large_enough_to_mean_something() -> None:
    assert len(LINES) > 700
