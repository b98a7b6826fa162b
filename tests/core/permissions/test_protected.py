"""One list of names that steer other programs, for what asks and for what a contained command may not write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.protected import PROTECTED_NAMES, held_in_sandbox, protected_name, protected_reason
from swecli.core.permissions.types import Call, Effects, Policy, Rule
from swecli.core.protocol.events import Mode

_ASKED = """.claude/settings.json .husky/pre-commit .cargo/config.toml .npmrc .git/modules/x/config .git/worktrees/x
  sub/.vscode/tasks.json .cursor/mcp.json .gemini/settings.json .codex/config.toml .zed/tasks.json .vimrc .exrc
  .nvim.lua
  .gdbinit .tmux.conf .bazelrc .mvn/jvm.config lefthook.yml
  .github/workflows/ci.yml .gitattributes .venv/bin/python node_modules/.bin/tsc deep/er/.venv/bin/pip x.code-workspace
  sub/.yarn/releases/yarn.cjs .GIT/config"""
_FREE = """src/main.py README.md .github/CODEOWNERS .venv/lib/x.py node_modules/left/index.js bin/tool .gitignore
  docs/cargo/config.toml .yarn/cache/x.zip vimrc .swecli/memory/a.md .swecli/OPENCLI.md"""
_INSTALLED = """node_modules/.bin/tsc .venv/bin/pip venv/bin/activate
  .github/workflows/ci.yml .gitattributes"""
ASKED, FREE, INSTALLED = _ASKED.split(), _FREE.split(), _INSTALLED.split()


@pytest.mark.parametrize("path", ASKED)
def test_what_steers_other_programs_asks_at_every_depth(path: str) -> None:
    assert protected_reason(f"/w/{path}", ("/w",)) is not None
    assert protected_reason(f"/w/a/b/{path}", ("/w",)) is not None


@pytest.mark.parametrize("path", FREE)
def test_ordinary_files_do_not(path: str) -> None:
    assert protected_reason(f"/w/{path}", ("/w",)) is None
    assert held_in_sandbox(path) == (".swecli" in path)


def test_the_sandbox_holds_the_same_names_except_what_installing_writes_or_another_machine_runs() -> None:
    free = {path for path in ASKED if not held_in_sandbox(path)}
    assert free == {
        *("node_modules/.bin/tsc", ".venv/bin/python", "deep/er/.venv/bin/pip"),
        *(".github/workflows/ci.yml", ".gitattributes"),
    }
    assert not any(held_in_sandbox(path) for path in INSTALLED)
    assert held_in_sandbox(".swecli/config.toml")


def test_every_entry_finds_itself_below_any_folder() -> None:
    for name in PROTECTED_NAMES:
        path = name.text.replace("*", "some")
        assert protected_name(f"a/b/{path}{'x' if name.folder else ''}") is not None, name
        assert name.text == name.text.casefold(), "compared with folded text"


@pytest.mark.parametrize("mode", ["default", "accept-edits", "auto"])
def test_an_edit_of_a_file_with_a_name_outside_asks_in_every_mode(tmp_path: Path, mode: Mode) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (tmp_path / "store").write_text("x")
    os.link(tmp_path / "store", root / "linked")
    (root / "a").write_text("x")
    os.link(root / "a", root / "b")
    allow = (Rule("allow", "Edit(**)", "user"),)
    policy = Policy(mode=mode, facts=OsFacts({}), rules=allow, sandbox="full")

    def edit(name: str) -> tuple[str, str]:
        effects = Effects(reads=(str(root / name),), writes=(str(root / name),))
        decision = decide(policy, Call("edit_file", {"path": name}, effects, str(root), (str(root),)))
        return decision.outcome, decision.reason

    assert edit("linked")[0] == "ask"
    assert "one more name (hard links) outside the workspace" in edit("linked")[1]
    assert edit("b")[0] == "allow", "both names are in the workspace"
    assert edit("new")[0] == "allow"
