"""Searching shows lines of what it reads: whether a command runs is decided by that, not by what it spells."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Call, Effects
from swecli.core.workspace.walk import left_out_by_ripgrep
from tests.support.shell_workspace import CONFIG, ShellWorkspace

READS_SECRETS = """grep -r KEY .
grep -r KEY
grep -rn KEY . | head
grep -R KEY .
grep --recursive KEY ./
grep -d recurse KEY .
grep --directories=recurse KEY .
grep -rc KEY .
grep -rl KEY .
egrep -r KEY src .
grep -r KEY . --include='*.e*'
grep -r KEY . --exclude='*.pem'
grep -r KEY . --exclude='.env*' --exclude='*.pem' --include='.e*'
rg KEY
rg KEY .
rg --hidden KEY
rg -. KEY
rg -uu KEY src .
rg -g '*' KEY
rg -g '*.{py,pem}' KEY
rg -g '!*.pem' --hidden KEY
rg -g '!*.pem' -g '*.p*' KEY
rg -t config KEY
find . -type f -exec grep KEY {} +
find . -name '.e*' -exec grep KEY {} +
find . -type f | xargs grep KEY
find . -name '*.p*' | xargs grep KEY
grep KEY $(find . -type f)
rg --files --hidden | xargs grep KEY
diff -r . docs
cd src && grep -r KEY ..
for d in . src; do grep -r KEY $d; done
timeout 5 grep -r KEY .""".splitlines()
READS_NONE = """grep -r KEY src
grep -rn KEY src docs tests
grep -rn KEY . --include='*.py'
grep -rn KEY . --include='*.py' --include='*.md'
grep -rn KEY . --exclude='.env*' --exclude='*.pem'
grep -n KEY README.md
rg KEY src
rg KEY README.md
rg -t py KEY
rg -tpy KEY
rg -g '*.py' KEY
rg -g '*.{py,md}' KEY
rg -g '!*.pem' KEY
rg -g '!server.pem' KEY
rg --files
rg --files -g '*.py'
cat README.md | rg KEY
find . -name '*.py' -exec grep KEY {} +
find . -name '*.py' | xargs grep KEY
find src -type f | xargs grep KEY
diff -r src docs
git ls-files | xargs grep KEY""".splitlines()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    return ShellWorkspace(tmp_path_factory.mktemp("searched"))


@pytest.mark.parametrize("command", READS_SECRETS)
def test_a_search_that_reads_a_secret_asks(workspace: ShellWorkspace, command: str) -> None:
    assert workspace.decide(command).outcome == "ask"
    auto = workspace.policy(mode="auto", sandbox="full")
    assert workspace.decide(command, auto).outcome == "ask", "what the sandbox lets it read reaches the model as well"


@pytest.mark.parametrize("command", READS_NONE)
def test_a_search_that_reads_none_runs(workspace: ShellWorkspace, command: str) -> None:
    decision = workspace.decide(command)
    assert decision.outcome == "allow", decision.reason


def test_the_question_names_the_file(workspace: ShellWorkspace) -> None:
    assert "grep would read .env, which may hold secrets" in workspace.decide("grep -r KEY .").reason


def test_every_search_runs_where_there_is_nothing_secret(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path, secrets=False)
    named = (".e", ".pem", "*.p", "'*'", "-t config", "-name '")
    commands = [one for one in (*READS_SECRETS, *READS_NONE) if not any(name in one for name in named)]
    assert len(commands) > 30
    assert [one for one in commands if workspace.decide(one).outcome != "allow"] == []


def test_ripgrep_does_not_read_what_the_ignore_files_leave_out(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    (workspace.root / ".env").unlink()
    (workspace.root / ".gitignore").write_text("*.pem\n/vendor/\n")
    (workspace.root / "vendor").mkdir()
    (workspace.root / "vendor" / "a.key").write_text("k")
    policy = workspace.policy(facts=OsFacts(workspace.environment, left_out_by_ripgrep))
    assert workspace.decide("rg KEY", policy).outcome == "allow"
    for command in ("rg --no-ignore KEY", "rg -u KEY", "rg -g '*' KEY", "grep -r KEY ."):
        assert workspace.decide(command, policy).outcome == "ask", command


# --- git -----------------------------------------------------------------------------------------------------------

PATHSPECS = """git log -p -- '.e*'
git log -p '.e*'
git log -p -- '.[e]nv'
git log -p -- '?env'
git log -p -- ':(glob)**/.env*'
git log -p -- ':/.e*'
git diff HEAD -- '*.pem'
git show HEAD -- 'id_*'
git grep KEY -- '.e*'
git grep KEY HEAD -- 'cred*'
git log -L 1,5:.env""".splitlines()
SHOWS_ALL = """git grep KEY
git grep KEY HEAD
git grep KEY -- .
git diff
git diff HEAD~1
git show
git show HEAD
git log -p
git log -p -2
git log --patch -- conf
git log -p -- '*'
git diff -U5 -- conf
git stash show -p
git ls-files | xargs grep KEY""".splitlines()
SHOWS_SOME = """git grep KEY -- src
git diff -- src/main.py
git diff --stat
git diff --name-only HEAD~1
git show --stat HEAD
git log -p -- src
git log -p -- '*.py'
git log --oneline
git log --stat
git show HEAD -- src
git diff -- . ':!conf/.env'
git status""".splitlines()


@pytest.fixture(scope="module", params=[2, 4])
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ShellWorkspace:
    """A real repository that tracks a secret, with an index of either format."""
    workspace = ShellWorkspace(tmp_path_factory.mktemp("repository"))
    root = workspace.root
    (root / "conf").mkdir()
    (root / "conf" / ".env").write_text("KEY=1\n")
    (root / ".gitignore").write_text("/.env\n*.pem\n/sub\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "update-index", "--index-version", str(request.param))
    git(root, "commit", "-qm", "first")
    for step in (2, 3):
        (root / "conf" / ".env").write_text(f"KEY={step}\n")
        git(root, "commit" if step == 2 else "stash", *(("-qam", "second") if step == 2 else ()))
    (root / "conf" / ".env").write_text("KEY=4\n")  # a diff shows it
    return workspace


def git(root: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True, capture_output=True
    )


@pytest.mark.parametrize("command", PATHSPECS)
def test_a_path_for_git_that_can_mean_a_secret_asks(workspace: ShellWorkspace, command: str) -> None:
    assert workspace.decide(command).outcome == "ask"


@pytest.mark.parametrize("command", SHOWS_ALL)
def test_git_asks_where_a_tracked_secret_would_be_shown(
    repository: ShellWorkspace, workspace: ShellWorkspace, command: str
) -> None:
    decision = repository.decide(command)
    assert decision.outcome == "ask"
    assert ".env" in decision.reason or "secret" in decision.reason
    if "conf" not in command:
        assert workspace.decide(command).outcome == "allow", "nothing secret is tracked there"


@pytest.mark.parametrize("command", SHOWS_SOME)
def test_git_runs_where_only_other_files_are_shown(repository: ShellWorkspace, command: str) -> None:
    decision = repository.decide(command)
    assert decision.outcome == "allow", decision.reason


DIFFS = ("git diff", "git diff HEAD", "git diff --cached", "git diff -U5 HEAD~1..HEAD", "git diff HEAD~1 -- .")


def test_a_diff_asks_only_if_it_shows_a_secret_and_git_is_asked(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    root = workspace.root
    (root / ".gitignore").write_text("/.env\n*.pem\n/sub\n")
    (root / ".npmrc").write_text("token=1\n")
    (root / "conf").mkdir()
    (root / "conf" / ".env").write_text("KEY=1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "src" / "main.py").write_text("print()\n")
    git(root, "commit", "-qam", "second")

    def asked() -> list[str]:
        return [one for one in DIFFS if workspace.decide(one).outcome == "ask"]

    assert asked() == []
    assert workspace.decide("git diff --find-copies-harder HEAD").outcome == "ask"
    quick = workspace.decide("git diff", workspace.policy(facts=OsFacts(workspace.environment).without_programs()))
    assert (quick.outcome, quick.git_knows) == ("ask", True)
    (root / ".npmrc").write_text("token=2\n")
    assert asked() == ["git diff", "git diff HEAD", "git diff HEAD~1 -- ."]
    git(root, "add", ".npmrc")
    assert asked() == ["git diff HEAD", "git diff --cached", "git diff HEAD~1 -- ."]
    git(root, "commit", "-qm", "third")
    assert asked() == ["git diff -U5 HEAD~1..HEAD", "git diff HEAD~1 -- ."]
    git(root, "mv", ".npmrc", "plain.txt")
    assert asked() == ["git diff HEAD", "git diff --cached", "git diff -U5 HEAD~1..HEAD", "git diff HEAD~1 -- ."]


def test_a_work_tree_has_an_index_of_its_own(repository: ShellWorkspace) -> None:
    place = repository.base / "tree"
    git(repository.root, "worktree", "add", "-q", str(place))
    assert str(place / "conf" / ".env") in (OsFacts(repository.environment).tracked_files(str(place)) or ())
    git(repository.root, "worktree", "remove", str(place))


# --- credentials in settings -----------------------------------------------------------------------------------------

SHOWS_SETTINGS = """git config --list
git config -l
git config --local --list
git config --get-regexp '^remote'
git config --get remote.origin.url
git remote -v
git remote get-url origin
git remote get-url --all origin
cat .git/config
head -5 .git/config
grep url .git/config
grep -r url .git
grep -r url . --exclude='.env' --exclude='*.pem'""".splitlines()
HARMLESS_URLS = ("https://example.org/x.git", "git@example.org:x.git", "ssh://git@example.org/x.git", "../x.git")
TELLING = (
    '[remote "o"]\n\turl = https://me:s3cret@example.org/x.git\n',
    '[remote "o"]\n\turl = https://ghp_abcdef@example.org/x.git\n',
    "[http]\n\textraheader = AUTHORIZATION: basic abc\n",
    "[github]\n\ttoken = abc\n",
)


@pytest.mark.parametrize("text", TELLING)
def test_settings_of_git_that_hold_a_password_ask(tmp_path: Path, text: str) -> None:
    workspace = ShellWorkspace(tmp_path)
    (workspace.root / ".git" / "config").write_text("[core]\n\tbare = false\n" + text)
    assert [one for one in SHOWS_SETTINGS if workspace.decide(one).outcome == "allow"] == []
    path = str(workspace.root / ".git" / "config")
    call = Call("read_file", {"path": path}, Effects(reads=(path,)), str(workspace.root), (str(workspace.root),))
    assert decide(workspace.policy(mode="auto"), call).outcome == "ask"
    assert workspace.decide("git config --get user.name").outcome in ("allow", "ask")


@pytest.mark.parametrize("url", HARMLESS_URLS)
def test_settings_without_one_do_not(tmp_path: Path, url: str) -> None:
    workspace = ShellWorkspace(tmp_path)
    (workspace.root / ".git" / "config").write_text(CONFIG.replace("https://example.org/x.git", url))
    assert [one for one in SHOWS_SETTINGS if workspace.decide(one).outcome != "allow"] == []
    path = str(workspace.root / ".git" / "config")
    call = Call("read_file", {"path": path}, Effects(reads=(path,)), str(workspace.root), (str(workspace.root),))
    assert decide(workspace.policy(), call).outcome == "allow"


def test_settings_of_the_user_count_where_they_are_listed(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    (workspace.home / ".gitconfig").write_text("[github]\n\ttoken = abc\n")
    assert workspace.decide("git config --list").outcome == "ask"
    assert workspace.decide("git config --get user.name").outcome == "allow"
    assert workspace.decide("cat .git/config").outcome == "allow"
