"""Grants are rules of the decision as long as they hold, and of their workspace only."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.assembly.policy import grants_of, rule_saver, with_grants
from swecli.assembly.startup import read_startup
from swecli.core.config.trust import WEEK, GrantStore
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Call, Effects, Policy


def _outcome(store: GrantStore, cwd: Path, command: str = "make all") -> tuple[str, str | None]:
    policy = Policy(facts=OsFacts({"PATH": "/usr/bin:/bin"}), home="/home/u")
    call = Call("run_command", {"command": command}, Effects(command=command), str(cwd), (str(cwd),))
    decision = with_grants(store)(policy, call)
    return decision.outcome, decision.rule.text if decision.rule else None


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_a_grant_holds_in_a_new_session_until_it_expires_or_is_revoked(work: Path, tmp_path: Path) -> None:
    startup = read_startup(work, {"SWECLI_HOME": str(tmp_path / "home")}, {})
    store = grants_of(startup, work)
    assert _outcome(store, work) == ("ask", None)
    assert rule_saver(store)("Bash(make *)", "week") == ""
    assert _outcome(grants_of(startup, work), work) == ("allow", "Bash(make *)")
    file = next((tmp_path / "home").rglob("grants.json"))
    later = GrantStore(file, lambda: store.active()[0].since + WEEK)
    assert _outcome(later, work) == ("ask", None)
    store.revoke("Bash(make *)")
    assert _outcome(store, work) == ("ask", None)


def test_the_workspace_is_its_real_path(work: Path, tmp_path: Path) -> None:
    startup = read_startup(work, {"SWECLI_HOME": str(tmp_path / "home")}, {})
    rule_saver(grants_of(startup, work))("Bash(make *)", "project")
    link, other = tmp_path / "link", tmp_path / "other"
    link.symlink_to(work)
    other.mkdir()
    assert len(grants_of(startup, link).active()) == 1
    assert grants_of(startup, other).active() == ()
    assert not list(work.rglob("*"))


def test_a_grant_lifts_neither_a_deny_nor_what_is_dangerous(work: Path, tmp_path: Path) -> None:
    startup = read_startup(work, {"SWECLI_HOME": str(tmp_path / "home")}, {})
    store = grants_of(startup, work)
    rule_saver(store)("Bash(git *)", "project")
    assert _outcome(store, work, "git commit -m x") == ("allow", "Bash(git *)")
    assert _outcome(store, work, "git reset --hard")[0] == "ask"


def test_what_cannot_be_kept_is_told(work: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    startup = read_startup(work, {"SWECLI_HOME": str(tmp_path / "home")}, {})
    assert "Could not store" in rule_saver(grants_of(startup, work))("Bash(make *)", "project")
