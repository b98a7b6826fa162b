"""Which hooks match, and which files of the workspace consent covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.config.settings import HooksSettings
from swecli.core.hooks.hook import EVENTS, Hook, changed_script, matcher_problem, matches
from swecli.core.permissions.workspace_scripts import workspace_scripts


@pytest.mark.parametrize(
    ("matcher", "subject", "expected"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("bash", "Bash", False),
        ("Edit|Write", "Write", True),
        ("Edit | Write", "Write", True),
        ("Edit|Write", "NotebookEdit", False),
        ("mcp__memory", "mcp__memory__add", False),
        ("mcp__.*", "mcp__memory__add", True),
        ("mcp__.*__write.*", "mcp__fs__write_file", True),
        ("^(Edit|Write)$", "Edit", True),
        (".*", "anything", True),
        ("Ba(", "Read", True),
    ],
)
def test_matchers_are_names_or_expressions(matcher: str, subject: str, expected: bool) -> None:
    assert matches(matcher, subject) is expected


def test_a_broken_matcher_is_named_and_matches_all() -> None:
    assert "matches everything" in matcher_problem("Ba(")
    assert matcher_problem("Edit|Write") == matcher_problem("*") == ""


def test_any_name_of_a_tool_will_do() -> None:
    hook = Hook("PreToolUse", "x", "run_command")
    assert hook.matches(("Bash", "run_command"))
    assert not hook.matches(("Edit", "edit_file"))
    assert hook.matches(())


@pytest.mark.parametrize(
    "command",
    [
        "tools/check.sh",
        "./tools/check.sh --fast",
        '"$CLAUDE_PROJECT_DIR"/tools/check.sh',
        "${CLAUDE_PROJECT_DIR}/tools/check.sh",
        "sh -x $SWECLI_PROJECT_DIR/tools/check.sh",
        "cat | tools/check.sh; true",
        "env CHECK=tools/check.sh sh -c x",
        "echo 'open quote tools/check.sh",
        'sh -c "sh tools/check.sh --fast"',
        "bash -ec 'cd tools && ./check.sh'",
        "cd tools && ./check.sh",
        'cd "$CLAUDE_PROJECT_DIR/tools"; sh check.sh',
        "env -C tools sh check.sh",
        "D=tools; sh $D/check.sh",
        "D=tools; sh ${D:-x}/check.sh",
        "sh `echo tools/check.sh`",
        'eval "$(cat tools/check.sh)"',
        'sh -c ". ${CLAUDE_PROJECT_DIR:-.}/tools/check.sh"',
    ],
)
def test_files_of_the_workspace_are_found_in_a_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "check.sh").write_text("exit 0\n")
    assert [name for name, _ in workspace_scripts(command, tmp_path)] == ["tools/check.sh"]


@pytest.mark.parametrize(
    ("command", "bound"),
    [
        ("echo x >> stop.log", []),
        ("echo x >'stop.log'", []),
        ("bash run.sh > stop.log 2>&1", ["run.sh"]),
        ("echo x > run.sh; bash run.sh", ["run.sh"]),
        ("bash '>' run.sh", ["run.sh"]),
        ("bash \\> run.sh", ["run.sh"]),
        ("cat <> run.sh", ["run.sh"]),
        ("cat | tee -a stop.log; touch stop.log && bash run.sh", ["run.sh"]),
        ("echo x | tee run.sh | bash run.sh", ["run.sh"]),
        ("echo 'see run.sh'", []),
    ],
)
def test_a_file_that_is_only_written_to_is_not_bound(tmp_path: Path, command: str, bound: list[str]) -> None:
    for name in ("run.sh", "stop.log"):
        (tmp_path / name).write_text("x\n")
    assert [name for name, _ in workspace_scripts(command, tmp_path)] == bound


def test_files_elsewhere_and_words_are_not_bound(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    outside = tmp_path.parent / "outside.sh"
    outside.write_text("exit 0\n")
    assert workspace_scripts(f"{outside} src --all", tmp_path) == ()


def test_a_link_of_the_workspace_is_bound_to_what_it_leads_to(tmp_path: Path) -> None:
    target = tmp_path.parent / "target.sh"
    target.write_text("one")
    (tmp_path / "link.sh").symlink_to(target)
    scripts = workspace_scripts("./link.sh", tmp_path)
    hook = Hook("Stop", "./link.sh", scripts=scripts)
    assert changed_script(hook, tmp_path) == ""
    target.write_text("two")
    assert changed_script(hook, tmp_path) == "link.sh has changed"
    target.unlink()
    assert changed_script(hook, tmp_path) == "link.sh has changed"


def test_the_settings_have_every_event_and_no_other() -> None:
    assert tuple(name for name in HooksSettings.__struct_fields__ if name != "user_claude") == EVENTS
