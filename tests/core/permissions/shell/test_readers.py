"""A rule about reading a file holds for every command that can print the file, named or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Policy, Rule
from swecli.core.workspace.walk import left_out_by_ripgrep
from tests.support.shell_workspace import ShellWorkspace

CORPUS = Path(__file__).parent / "corpus" / "readers.txt"
LINES = [tuple(line.replace("⏎", "\n").split("\t")) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
"""What becomes of a command: denied, asked about unless a sandbox masks the files ("asks"), asked about in any case
("stays"), run as it only reads, or allowed by another rule."""
_ASKS = ("asks", "stays")


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    """A repository with a folder that rules keep from being read, changed in the last commit but one and since."""
    work = ShellWorkspace(tmp_path_factory.mktemp("readers"), secrets=False)
    root = work.root
    (root / "private").mkdir()
    (root / "linked").mkdir()
    (root / "linked" / "p").symlink_to("../private")
    (root / "to-private").symlink_to("private/plan.md")
    (root / "list.txt").write_text("private/plan.md\n")
    (root / ".gitignore").write_text("/sub\n")
    git(root, "init", "-q", "-b", "main")
    for step in (1, 2, 3):
        (root / "private" / "plan.md").write_text(f"x {step}\n")
        git(root, "add", ".")
        git(root, "commit", "-qm", f"step {step}")
        if step == 2:
            (root / "private" / "plan.md").write_text("x stashed\n")
            git(root, "stash", "-q")
    (root / "src" / "main.py").write_text("print(3)\n")
    git(root, "commit", "-qam", "last")
    (root / "private" / "plan.md").write_text("x 4\n")
    return work


def under(work: ShellWorkspace, *rules: tuple[str, str], **changes: object) -> Policy:
    facts = OsFacts(work.environment, left_out_by_ripgrep)
    return work.policy(rules=tuple(Rule(effect, text, "user") for effect, text in rules), facts=facts, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("label", "command"), LINES, ids=[line[1] for line in LINES])
def test_a_denied_folder_is_denied_to_every_reader(work: ShellWorkspace, label: str, command: str) -> None:
    deny, everything = ("deny", "Read(private/**)"), ("allow", "Bash")
    expected = {"denied": "deny", "asks": "ask", "stays": "ask", "runs": "allow", "allowed": "allow"}[label]
    for policy in (under(work, deny, everything), under(work, deny, yolo=True)):
        decision = work.decide(command, policy)
        assert decision.outcome == expected, decision.reason
    usual = work.decide(command, under(work, deny))
    assert usual.outcome == ("ask" if label == "allowed" else expected), usual.reason


@pytest.mark.parametrize(("label", "command"), LINES, ids=[line[1] for line in LINES])
def test_where_a_sandbox_masks_files_other_commands_run_without_seeing_them(
    work: ShellWorkspace, label: str, command: str
) -> None:
    policy = under(work, ("deny", "Read(private/**)"), ("allow", "Bash"), masks=True)
    decision = work.decide(command, policy)
    if label == "asks":
        assert decision.masked or decision.outcome == "ask", decision.reason
        return
    expected = {"denied": "deny", "stays": "ask"}.get(label, "allow")
    assert (decision.outcome, decision.masked) == (expected, False), decision.reason


def test_most_commands_that_would_ask_run_masked(work: ShellWorkspace) -> None:
    policy = under(work, ("deny", "Read(private/**)"), ("allow", "Bash"), masks=True)
    masked = [command for label, command in LINES if label == "asks" and work.decide(command, policy).masked]
    assert len(masked) > 180
    assert {"npm test", "make -j4 test", "rg x", "python3 build.py", "tar czf x.tgz ."} <= set(masked)
    assert all(work.decide(command, under(work, ("allow", "Bash"), masks=True)).masked is False for command in masked)


@pytest.mark.parametrize(("label", "command"), LINES, ids=[line[1] for line in LINES])
def test_an_ask_rule_asks_for_every_reader(work: ShellWorkspace, label: str, command: str) -> None:
    decision = work.decide(command, under(work, ("ask", "Read(private/)"), ("allow", "Bash")))
    assert decision.outcome == ("ask" if label in ("denied", *_ASKS) else "allow"), decision.reason


@pytest.mark.parametrize("command", [command for label, command in LINES if label in _ASKS])
def test_without_the_rule_nothing_is_asked(work: ShellWorkspace, command: str) -> None:
    deny = ("deny", "Read(elsewhere/**)")
    only_names = "$" in command or "xargs" in command or "<" in command or " -e " in command or "-c " in command
    if not only_names and "git" not in command:
        decision = work.decide(command, under(work, deny, ("allow", "Bash")))
        assert decision.outcome == "allow" or decision.danger, decision.reason


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            "grep -r x .",
            "grep would read private/plan.md, which your rule Read(private/**) covers; exclude it with an option.",
        ),
        ("git diff", "git diff may show private/plan.md, which your rule Read(private/**) covers."),
        (
            "tar czf x.tgz .",
            "tar would read private/plan.md, which your rule Read(private/**) covers; exclude it with an option.",
        ),
    ],
)
def test_the_question_names_file_and_rule(work: ShellWorkspace, command: str, reason: str) -> None:
    decision = work.decide(command, under(work, ("deny", "Read(private/**)"), ("allow", "Bash")))
    assert (decision.reason, decision.offers) == (reason, ())


def test_rules_for_one_tool_do_not_hold_for_commands(work: ShellWorkspace) -> None:
    assert work.decide("grep -r x .", under(work, ("deny", "Grep(private/**)"))).outcome == "allow"


def test_in_auto_mode_git_shows_no_history_that_is_not_judged(work: ShellWorkspace) -> None:
    auto = work.policy(mode="auto", sandbox="full")
    for command in (
        "git format-patch --stdout HEAD~1",
        "git archive HEAD",
        "git fast-export --all",
    ):
        decision = work.decide(command, auto)
        assert decision.outcome == "ask"
        assert decision.reason.startswith(("Git ", "git "))
    for command in ("git log -p", "git commit -m x", "git merge main"):
        assert work.decide(command, auto).outcome == "allow", command


@pytest.mark.parametrize("command", ["grep -r x .", "git log -p", "git grep x HEAD", "git grep x"])
def test_a_question_about_a_secret_never_includes_what_a_rule_covers(tmp_path: Path, command: str) -> None:
    work = ShellWorkspace(tmp_path)
    (work.root / "zz").mkdir()
    (work.root / "zz" / "plan.md").write_text("x\n")
    (work.root / ".gitignore").write_text("/sub\n")
    git(work.root, "init", "-q")
    git(work.root, "add", "-f", ".")
    git(work.root, "commit", "-qm", "first")
    assert ".env, which may hold secrets" in work.decide(command).reason
    assert "your rule Read(zz/**) covers" in work.decide(command, under(work, ("deny", "Read(zz/**)"))).reason
    other = work.decide(command, under(work, ("deny", "Read(elsewhere/**)")))
    assert ".env, which may hold secrets" in other.reason
