"""Git keeps what left the tree: what a command shows is decided by the revisions that it shows."""

from __future__ import annotations

import random
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from swecli.core.permissions.facts import GIT_SECONDS, OsFacts
from swecli.core.permissions.shell.history import path_in_revision
from swecli.core.permissions.shell.tables import tables
from swecli.core.permissions.types import Rule
from tests.support.shell_workspace import ShellWorkspace
from tests.support.thorough import examples

CORPUS = Path(__file__).parent / "corpus" / "history.txt"
LINES = [tuple(line.split("\t")) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
"""Whether the secret that left the tree is shown, at once or by a later command of the line, and the command."""
SHOWS, HIDES, LATER = ([command for label, command in LINES if label == kind] for kind in ("shows", "hides", "later"))


def git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def with_history(base: Path, secret: str = "conf/.env") -> ShellWorkspace:
    """A repository in which a file was committed and removed in the commit before the last one; ``old`` and ``v1`` are
    the commit that still has it, the stash as well, ``side`` is a merge."""
    work = ShellWorkspace(base, secrets=False)
    root = work.root
    (root / ".gitignore").write_text("/sub\n/.env\n/conf/\n/link\n")
    git(root, "init", "-q", "-b", "main")
    (root / secret).parent.mkdir(exist_ok=True)
    (root / secret).write_text("KEY=1\nB=2\nC=3\nD=4\n")
    git(root, "add", ".")
    git(root, "add", "-f", secret)
    git(root, "commit", "-qm", "first")
    git(root, "tag", "-am", "one", "v1")
    git(root, "branch", "old")
    (root / secret).write_text("KEY=2\nB=2\nC=3\nD=4\n")
    git(root, "stash", "-q")
    git(root, "mv", "-f", secret, "plain.txt")
    with (root / "plain.txt").open("a") as plain:
        plain.write("E=5\n")
    git(root, "commit", "-qam", "removed")
    (root / "src" / "main.py").write_text("print(2)\n")
    git(root, "commit", "-qam", "last")
    git(root, "tag", "-am", "two", "v2")
    git(root, "checkout", "-q", "-b", "side", "old")
    (root / "other.txt").write_text("x\n")
    git(root, "add", "other.txt")
    git(root, "commit", "-qm", "other")
    git(root, "merge", "-q", "--no-edit", "main")
    git(root, "checkout", "-q", "main")
    return work


def filled(work: ShellWorkspace, command: str, secret: str = "conf/.env") -> str:
    """The command with the hashes of the secret content and of a harmless one."""
    blob, other = (git(work.root, "rev-parse", name) for name in (f"old:{secret}", "HEAD:README.md"))
    return command.replace("BLOB", blob).replace("SHORT", blob[:8]).replace("OTHER", other)


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return with_history(tmp_path_factory.mktemp("removed"))


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return with_history(tmp_path_factory.mktemp("ruled"), "conf/plan.md")


@pytest.mark.parametrize("command", SHOWS)
def test_what_left_the_tree_is_not_shown_without_a_question(removed: ShellWorkspace, command: str) -> None:
    for policy in (removed.policy(), removed.policy(mode="auto", sandbox="full")):
        decision = removed.decide(filled(removed, command), policy)
        assert decision.outcome == "ask", decision.reason


@pytest.mark.parametrize("command", HIDES)
def test_what_shows_other_files_runs(removed: ShellWorkspace, command: str) -> None:
    decision = removed.decide(filled(removed, command))
    assert decision.outcome == "allow", decision.reason


def test_the_question_names_the_file_that_left(removed: ShellWorkspace) -> None:
    reason = removed.decide("git log -p").reason
    assert reason == "git log may show conf/.env, which may hold secrets, so it needs your approval."


@pytest.mark.parametrize("command", [command for command in LATER if "read-tree" not in command])
def test_what_a_line_brings_back_is_not_shown_in_auto_mode(removed: ShellWorkspace, command: str) -> None:
    decision = removed.decide(command, removed.policy(mode="auto", sandbox="full", trust="trusted"))
    assert decision.outcome == "ask", decision.reason


def test_what_no_line_can_bring_back_is_not_asked_about(removed: ShellWorkspace) -> None:
    rules = (Rule("deny", "Read(elsewhere/**)", "user"), Rule("allow", "Bash", "user"))
    for command in ("git switch -q old; cat src/*.py", "git stash; cat */*.md", "git merge v1 && grep -rn x src"):
        decision = removed.decide(command, removed.policy(rules=rules))
        assert decision.outcome == "allow", decision.reason


@pytest.mark.parametrize("command", [*SHOWS, *LATER])
def test_a_rule_about_reading_holds_for_the_history(ruled: ShellWorkspace, command: str) -> None:
    rules = (Rule("deny", "Read(conf/**)", "user"), Rule("allow", "Bash", "user"))
    for policy in (ruled.policy(rules=rules), ruled.policy(rules=rules, yolo=True)):
        assert ruled.decide(filled(ruled, command, "conf/plan.md"), policy).outcome != "allow"


@pytest.mark.parametrize("command", HIDES)
def test_a_rule_about_reading_stops_nothing_else_of_the_history(ruled: ShellWorkspace, command: str) -> None:
    policy = ruled.policy(rules=(Rule("deny", "Read(conf/**)", "user"),))
    decision = ruled.decide(filled(ruled, command, "conf/plan.md"), policy)
    assert decision.outcome == "allow", decision.reason


@pytest.mark.parametrize("command", [*SHOWS, *HIDES])
def test_where_nothing_secret_ever_was_git_only_asks_about_contents_without_a_name(
    ruled: ShellWorkspace, command: str
) -> None:
    decision = ruled.decide(filled(ruled, command, "conf/plan.md"))
    nameless = ("BLOB" in command or "SHORT" in command) and " -t " not in command and " -s " not in command
    expected = "ask" if nameless or ".env" in command else "allow"
    assert decision.outcome == expected or command.startswith(("cd ", "git -C")), decision.reason


def test_without_git_the_question_says_that_git_may_refute_it(removed: ShellWorkspace) -> None:
    quick = removed.policy(facts=OsFacts(removed.environment).without_programs())
    for command in ("git log -p", "git show HEAD", "git cat-file -p HEAD"):
        decision = removed.decide(command, quick)
        assert (decision.outcome, decision.git_knows) == ("ask", True)
    assert removed.decide("git diff", quick).outcome == "allow"
    assert removed.decide("git show HEAD:src/main.py", quick).outcome == "allow"


def test_a_history_that_takes_too_long_asks(removed: ShellWorkspace, tmp_path: Path) -> None:
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(f"#!/bin/sh\nexec /bin/sleep {GIT_SECONDS * 40:g}\n")
    (slow / "git").chmod(0o755)
    environment = {**removed.environment, "PATH": f"{slow}:/usr/bin:/bin"}
    decision = removed.decide("git log -p", removed.policy(facts=OsFacts(environment)))
    assert (decision.outcome, decision.git_knows) == ("ask", True)


def test_settings_of_the_user_do_not_change_what_git_lists(removed: ShellWorkspace) -> None:
    settings = removed.home / ".gitconfig"
    settings.write_text(
        "[log]\n\tshowSignature = true\n\tfollow = true\n[diff]\n\trelative = true\n\trenames = copies\n"
    )
    try:
        for command in ("git log -p", "git diff HEAD~2", "git show HEAD~1", "cd src && git diff HEAD~2"):
            assert removed.decide(command).outcome == "ask", command
    finally:
        settings.unlink()


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("HEAD:src/a.py", "src/a.py"),
        (":0:a", "a"),
        (":a", "a"),
        ("HEAD", None),
        (":/fix: it", None),
        ("HEAD^{/fix: it}", None),
        ("HEAD@{2026-01-01 10:00}", None),
        ("HEAD@{10:00}:a:b", "a:b"),
        (":(glob)*", None),
    ],
)
def test_a_path_in_a_revision_is_told_from_a_revision(word: str, path: str | None) -> None:
    assert path_in_revision(word) == path


MARK = "S3CRETMARK"
COMMANDS = """git log|git show|git diff|git diff-tree|git diff-index|git diff-files|git grep|git whatchanged|git reflog
git stash list|git stash show|git cat-file|git blame|git rev-list|git show-branch""".replace("\n", "|").split("|")
LIKELY_WORDS = """-p -p -u --cc -c -m --full-diff --follow --first-parent --raw --stat --patch-with-stat --cached --root
  -g --check --not --all --branches --reflog -C --find-copies-harder --diff-merges=on --diff-merges=cc -S3CRET"""
REVISION_WORDS = """HEAD HEAD~1 HEAD~2 HEAD~4 old v1 side stash stash@{0} HEAD@{1} HEAD@{3} main@{2} BLOB BLOB^{} TREE
  old:conf HEAD:conf/a.py old:conf/a.py :README.md :/removed :/second HEAD^{/third} HEAD~3..HEAD old..HEAD old...side
  ^HEAD~3 old^! HEAD^@ HEAD^- v1^{} v1^{tree} :/conf"""
LIKELY, REVISIONS = LIKELY_WORDS.split(), REVISION_WORDS.split()
PATHS = ["conf", "src", "README.md", ".", "conf/a.py", "*.py", ":/conf", ":!conf", "conf/.e", "s.txt"]


def with_merge(base: Path) -> ShellWorkspace:
    """A repository where a secret was committed, changed on two branches, merged and removed."""
    work = ShellWorkspace(base, secrets=False)
    root = work.root
    (root / ".gitignore").write_text("/sub\n/link\n")
    git(root, "init", "-q", "-b", "main")
    (root / "conf").mkdir()
    (root / "conf" / "a.py").write_text("x = 1\n")
    git(root, "add", ".")

    def commit(message: str, text: str) -> None:
        (root / "conf" / ".env").write_text(f"X={MARK}\n{text}")
        git(root, "add", "-A", "-f", "conf")
        git(root, "commit", "-qm", message)

    commit("first", f"{MARK}  \n")
    git(root, "tag", "-am", "one", "v1")
    git(root, "branch", "old")
    (root / "conf" / ".env").write_text(f"{MARK}2\n")
    git(root, "stash", "-q")
    commit("second", "B=2\n")
    git(root, "checkout", "-q", "-b", "side")
    (root / "s.txt").write_text("s\n")
    git(root, "add", "s.txt")
    commit("side", "B=2\nC=3\n")
    git(root, "checkout", "-q", "main")
    commit("third", "A=1\nB=2\n")
    git(root, "merge", "-q", "--no-edit", "-X", "ours", "side")
    git(root, "rm", "-q", "conf/.env")
    git(root, "commit", "-qm", "removed")
    for text in ("print(22)\n", "print(333)\n"):
        (root / "src" / "main.py").write_text(text)
        git(root, "commit", "-qam", "later")
    (root / "docs" / "guide.md").write_text("changed\n")
    return work


def made_up(chance: random.Random) -> str:
    """A git command with options from the tables, revisions and paths in any order."""
    name = chance.choice(COMMANDS)
    table = tables().commands[name]
    words: list[str] = []
    for _ in range(chance.randint(0, 4)):
        alone = [f"-{letter}" for letter in sorted(table.flags)] + [f"--{word}" for word in sorted(table.long)]
        valued = sorted(table.long_values | table.long_optional)
        kind = chance.random()
        if kind < 0.5:
            words.append(chance.choice(LIKELY))
        elif kind < 0.8 and alone:
            words.append(chance.choice(alone))
        elif valued:
            words.append(f"--{chance.choice(valued)}={chance.choice(['1', 'on', 's*', 'v*', 'conf'])}")
    words += [chance.choice(REVISIONS) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
    chance.shuffle(words)
    first = [MARK[:6]] if name == "git grep" else []
    limit = ["--", *(chance.choice(PATHS) for _ in range(chance.choice([1, 2])))] if chance.random() < 0.4 else []
    return shlex.join([*name.split(), *first, *words, *limit])


def test_no_command_that_runs_prints_what_left_the_tree(tmp_path: Path) -> None:
    work = with_merge(tmp_path)
    blob, tree = (git(work.root, "rev-parse", name) for name in ("old:conf/.env", "old:conf"))
    chance, ran = random.Random(20_261_128), 0
    environment = {**work.environment, "GIT_PAGER": "cat"}
    for _ in range(examples(150, 4_000)):
        command = made_up(chance).replace("BLOB", blob).replace("TREE", tree)
        if work.decide(command).outcome != "allow":
            continue
        ran += 1
        done = subprocess.run(
            ["bash", "-c", command], cwd=work.root, env=environment, capture_output=True, stdin=subprocess.DEVNULL
        )
        assert MARK.encode() not in done.stdout + done.stderr, command
    assert ran > 30


def test_names_of_the_history_are_listed_once_until_a_reference_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = ShellWorkspace(tmp_path, secrets=False)
    root = work.root
    (root / ".gitignore").write_text("/sub\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    facts, started = OsFacts(work.environment), list[str]()
    real = facts._git

    def counted(cwd: str, arguments: Sequence[str], given: bytes = b"") -> bytes | None:
        started.append(arguments[0])
        return real(cwd, arguments, given)

    monkeypatch.setattr(facts, "_git", counted)

    def outcome(command: str) -> str:
        return work.decide(command, work.policy(facts=facts)).outcome

    assert [outcome("git log -p --all") for _ in range(3)] == ["allow"] * 3
    assert started == ["log"]
    assert work.decide("git log -p --all", work.policy(facts=facts.without_programs())).outcome == "allow"
    git(root, "checkout", "-q", "-b", "aside")
    (root / ".env.local").write_text("KEY=1\n")
    git(root, "add", "-f", ".env.local")
    git(root, "commit", "-qm", "secret")
    git(root, "checkout", "-q", "main")
    assert outcome("git log -p --all") == "ask"
    assert outcome("git log -p") == "allow"
    git(root, "merge", "-q", "aside")
    assert outcome("git log -p") == "ask"
    git(root, "reset", "-q", "--hard", "HEAD~1")
    assert outcome("git log -p") == "allow"
    git(root, "pack-refs", "--all")
    assert outcome("git log -p --all") == "ask"
    started.clear()
    for _ in range(2):
        outcome("git log -p --since=1.hour")
    assert len(started) >= 2, "what depends on the time is listed anew"


def test_once_the_history_is_learned_git_is_asked_for_what_is_new_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = ShellWorkspace(tmp_path, secrets=False)
    root = work.root
    (root / ".gitignore").write_text("/sub\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    facts, asked = OsFacts(work.environment), list[Sequence[str]]()
    real = facts._git

    def counted(cwd: str, arguments: Sequence[str], given: bytes = b"", **limits: Any) -> bytes | None:
        asked.append(arguments)
        return real(cwd, arguments, given, **limits)

    monkeypatch.setattr(facts, "_git", counted)
    quick = work.policy(facts=facts.without_programs())
    looks = (
        "git log -p",
        "git log -p --all",
        "git show HEAD",
        "git diff HEAD",
        "git log -p main..HEAD",
        "git reflog -p",
    )
    assert {work.decide(command, quick).outcome for command in looks} == {"ask"}
    facts.learn_history(str(root), [])
    asked.clear()
    assert {work.decide(command, quick).outcome for command in looks} == {"allow"}
    assert asked == []
    hidden = git(root, "rev-parse", "HEAD")
    assert work.decide(f"git show {hidden}", quick).outcome == "ask", "a hash may lead to what no name leads to"
    before = git(root, "rev-parse", "main")
    (root / "credentials.json").write_text("{}\n")
    git(root, "add", "-f", "credentials.json")
    assert work.decide("git diff HEAD", quick).outcome == "ask", "it would show what is staged"
    git(root, "commit", "-qm", "secret")
    git(root, "rm", "-q", "credentials.json")
    git(root, "commit", "-qm", "removed")
    assert work.decide("git log -p", quick).outcome == "ask"
    facts.learn_history(str(root), [])
    assert [words[-1] for words in asked] == ["--all", before]
    reason = work.decide("git log -p", work.policy(facts=facts)).reason
    assert reason.startswith("git log may show credentials.json, which may hold secrets")
    git(root, "tag", "content", f"{before}:README.md")
    facts.learn_history(str(root), [])
    assert work.decide("git show content", quick).outcome == "ask"


def test_what_only_a_merge_or_a_stash_has_belongs_to_the_history(tmp_path: Path) -> None:
    work = with_merge(tmp_path)
    root = work.root
    (root / "fresh.pem").write_text("key\n")
    git(root, "stash", "-q", "-u")
    git(root, "checkout", "-q", "-b", "aside", "HEAD~1")
    git(root, "merge", "-q", "--no-commit", "--no-ff", "side")
    (root / "merged.key").write_text("key\n")
    git(root, "add", "-f", "merged.key")
    git(root, "commit", "-qm", "merge")
    facts = OsFacts(work.environment)
    assert {"fresh.pem", "merged.key", "conf/.env"} <= (facts.history(str(root)) or set())
