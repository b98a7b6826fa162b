"""/review and /commit in real repositories."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from swecli.block_text import block_lines
from swecli.commands.base import CommandResult
from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import CheckpointOptions, FileHistory
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.commands import Background, ReplyPermission, RunShell
from swecli.core.protocol.events import Notice, PermissionRequested, TurnEnded
from swecli.core.secret_names import secret_names
from swecli.core.sessions.database import open_database
from swecli.core.tools.registry import builtin_tools
from swecli.core.tools.run_command import RunCommand
from swecli.features.git.command import COMMIT, REVIEW, Git, GitError, GitStatus, change_of, message_of, read_status
from tests.core.engine.support import Bench, bench, until

ANSWERS = '[[step]]\ntext = "Add a line\\n\\nIt was missing."\n' * 3


def git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *author, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b.c")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "Begin")
    return folder


def shown(result: CommandResult) -> str:
    return "\n".join(line for block in result.blocks for line in block_lines(block))


async def meant(folder: Path, arguments: str) -> tuple[str, str]:
    change = await change_of(Git(folder, (folder,), secret_names()), arguments)
    return " ".join(change.command), change.focus


async def test_what_the_words_mean(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD").strip()
    assert await meant(repository, "") == ("show -m --first-parent --format=commit %h%n%n%B HEAD", "")
    git(repository, "checkout", "-qb", "feature")
    (repository / "a.txt").write_text("two\n")
    assert await meant(repository, "") == ("diff HEAD", "")
    assert await meant(repository, "look at errors") == ("diff HEAD", "look at errors")
    assert await meant(repository, "staged now") == ("diff --cached", "now")
    assert await meant(repository, "a.txt for typos") == ("diff HEAD -- a.txt", "for typos")
    git(repository, "commit", "-qam", "Two")
    assert await meant(repository, "") == ("diff main...HEAD", "")
    assert await meant(repository, "main") == ("diff main...HEAD", "")
    assert await meant(repository, "feature") == ("diff main...feature", "")
    assert await meant(repository, first[:8]) == (f"show -m --first-parent --format=commit %h%n%n%B {first[:8]}", "")
    assert await meant(repository, "main..feature security") == ("diff main..feature", "security")
    assert await meant(repository, "--output=x") == ("diff main...HEAD", "--output=x")
    git(repository, "checkout", "-q", "main")
    assert await meant(repository, "feature") == ("diff HEAD...feature", "")


def test_nothing_is_run_that_a_repository_names(repository: Path, tmp_path: Path) -> None:
    git(repository, "config", "filter.evil.clean", "touch hit")
    with pytest.raises(GitError, match="does not run git here"):
        Git(repository, (repository,), secret_names())
    with pytest.raises(GitError, match="not in a git repository"):
        Git(tmp_path, (tmp_path,), secret_names())


async def test_a_review_is_one_turn_with_the_diff(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    (repository / "new.txt").write_text("x\n")
    async with bench(ANSWERS, repository) as made:
        assert shown(await REVIEW.run(made.session, "for errors")) == ""
        await until(lambda: bool(made.bodies(TurnEnded)))
        notices = [notice.text for notice in made.bodies(Notice)]
        assert notices == ["Reviewing the uncommitted changes, focus: for errors."]
        text = made.model.requests[0].messages[0].text
        assert "+two" in text
        assert "focus on: for errors" in text
        assert "outside the diff; read them too: new.txt" in text


@pytest.mark.parametrize("word", ["nosuchbranch/mcp", "gone.py", "abcdef1234", "gone..main", "HEAD~9"])
async def test_a_word_that_names_nothing_is_an_error_that_says_what_there_is(repository: Path, word: str) -> None:
    (repository / "a.txt").write_text("two\n")
    async with bench(ANSWERS, repository) as made:
        said = shown(await REVIEW.run(made.session, word))
        assert f"No branch, commit, range or file is named {word}. Branches: main. Changed: a.txt." in said
        assert "Nothing was sent." in said
        assert made.model.requests == []
    for focus in ("errors", "security/tests and docs", "races, e.g. in the cache"):
        assert await meant(repository, focus) == ("diff HEAD", focus)


async def change(folder: Path, arguments: str) -> tuple[str, str, tuple[str, ...]]:
    found = await change_of(Git(folder, (folder,), secret_names()), arguments)
    return found.what, found.focus, found.untracked


async def test_paths_may_be_new_quoted_or_outside(repository: Path, tmp_path: Path) -> None:
    (repository / "src").mkdir()
    (repository / "src" / "new.py").write_text("x\n")
    (repository / "my file.txt").write_text("x\n")
    (repository / "naïve.txt").write_text("x\n")
    (repository / ".gitignore").write_text("*.log\n")
    (repository / "a.log").write_text("x\n")
    uncommitted = "the uncommitted changes of"
    assert await change(repository, "src/new.py typos") == (f"{uncommitted} src/new.py", "typos", ("src/new.py",))
    assert await change(repository, "src") == (f"{uncommitted} src", "", ("src/",))
    assert await change(repository, "a.log") == (f"{uncommitted} a.log", "", ("a.log",))
    for typed in ("my file.txt", '"my file.txt"', "my\\ file.txt", "@'my file.txt'", str(repository / "my file.txt")):
        assert await change(repository, typed) == (f"{uncommitted} my file.txt", "", ("my file.txt",)), typed
    assert await change(repository, "'my file.txt' for typos") == (
        f"{uncommitted} my file.txt",
        "for typos",
        ("my file.txt",),
    )
    assert await change(repository, "../work/a.txt") == (f"{uncommitted} a.txt", "", ())
    with pytest.raises(GitError, match="is outside the repository"):
        await change(repository, str(tmp_path))
    assert (await change(repository, "..."))[:2] == ("the uncommitted changes", "...")
    with pytest.raises(GitError, match=r"named main\.\.nope.*Changed: .gitignore, my file.txt, naïve.txt, src/"):
        await change(repository, "main..nope")
    (repository / 'say "hi".txt').write_text("x\n")
    assert await change(repository, r'@"say \"hi\".txt" for typos') == (
        f'{uncommitted} say "hi".txt',
        "for typos",
        ('say "hi".txt',),
    )


@pytest.mark.parametrize("name", ["app/[i]d.py", ":x", "*.py", ":(top)"])
async def test_a_name_that_looks_like_a_pattern_is_a_name(repository: Path, name: str) -> None:
    for path in (repository / name, repository / "app/id.py"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("one\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Names")
    for path in (repository / name, repository / "app/id.py"):
        path.write_text("two\n")
    made = Git(repository, (repository,), secret_names())
    found = await change_of(made, name)
    assert (found.what, found.untracked) == (f"the uncommitted changes of {name}", ())
    diff, _ = await made.diff(*found.command)
    assert [line for line in diff.splitlines() if line.startswith("+++")] == [f"+++ b/{name}"]


async def test_in_a_folder_of_the_repository_names_are_relative_to_it(repository: Path) -> None:
    folder = repository / "src"
    folder.mkdir()
    (folder / "new.py").write_text("x\n")
    (repository / "a.txt").write_text("two\n")
    (repository / "other.txt").write_text("x\n")
    async with bench(ANSWERS, folder) as made:
        assert shown(await REVIEW.run(made.session, "")) == ""
        await until(lambda: bool(made.bodies(TurnEnded)))
        text = made.model.requests[0].messages[0].text
        assert "read them too: ../other.txt, ./" in text
        assert f"The diff's paths are relative to {repository}" in text
    assert (await change(folder, "new.py"))[2] == ("new.py",)


async def test_a_merge_is_reviewed_with_what_it_brought(repository: Path) -> None:
    git(repository, "checkout", "-qb", "feature")
    (repository / "b.txt").write_text("brought\n")
    git(repository, "add", "b.txt")
    git(repository, "commit", "-qm", "B")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge", "feature")
    made = Git(repository, (repository,), secret_names())
    diff, _ = await made.diff(*(await change_of(made, "")).command)
    assert "+brought" in diff


async def test_before_the_first_commit_everything_is_reviewed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("one\n")
    git(tmp_path, "add", "a.txt")
    made = Git(tmp_path, (tmp_path,), secret_names())
    found = await change_of(made, "")
    assert found.untracked == ("b.txt",)
    assert "+one" in (await made.diff(*found.command))[0]


async def test_a_branch_without_a_commit_is_compared_with_no_other(repository: Path) -> None:
    git(repository, "branch", "-M", "main")
    git(repository, "checkout", "-q", "--orphan", "fresh")
    with pytest.raises(GitError, match="has no commit yet to compare with main"):
        await change_of(Git(repository, (repository,), secret_names()), "main")


async def test_a_damaged_repository_is_named_as_such(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("garbage\n")
    with pytest.raises(GitError, match="is not a complete repository"):
        await change(repository, "")


async def test_what_git_says_of_a_failure_is_a_sentence(repository: Path) -> None:
    """As in a clone without its largest files: what follows is on the same line."""
    blob = git(repository, "rev-parse", "HEAD:a.txt").strip()
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    made = Git(repository, (repository,), secret_names())
    found = await change_of(made, "")
    with pytest.raises(GitError, match=rf"^git show failed: unable to read {blob}\.$"):
        await made.diff(*found.command)


async def test_submodules_are_compared_without_running_git_in_them(repository: Path, tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q")
    (top / "c.txt").write_text("one\n")
    git(top, "add", "c.txt")
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "lib")
    git(top, "commit", "-qm", "Begin")
    hit = tmp_path / "hit"
    for settings in ("core.fsmonitor", "filter.evil.clean", "diff.evil.textconv"):
        git(top / "lib", "config", settings, f"touch {hit}; cat")
    (top / ".git" / "modules" / "lib" / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    (top / "lib" / "a.txt").write_text("two\n")
    made = Git(top, (top,), secret_names())
    assert (await change_of(made, "")).what == "the newest commit"
    (top / "c.txt").write_text("two\n")
    found = await change_of(made, "")
    diff, _ = await made.diff(*found.command)
    assert "+two" in diff
    assert "lib" not in diff
    assert not hit.exists()


async def test_files_that_may_hold_secrets_are_left_out_unless_named(repository: Path) -> None:
    (repository / ".env").write_text("KEY=old\n")
    git(repository, "add", ".env")
    git(repository, "commit", "-qm", "Env")
    (repository / ".env").write_text("KEY=hunter2\n")
    (repository / "a.txt").write_text("two\n")
    (repository / "id_rsa").write_text("x\n")
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        await REVIEW.run(made.session, "")
        await until(lambda: bool(made.bodies(TurnEnded)))
        text = made.model.requests[0].messages[0].text
        assert "+two" in text
        assert "hunter2" not in text
        assert "read them too" not in text
        notices = [notice.text for notice in made.bodies(Notice)]
        assert notices[0].endswith("Left out, because they may hold secrets: .env, id_rsa.")
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        assert "Commits .env, a.txt. May hold secrets: .env." in request.reason
        made.allow(request, "reject")
        await running
        text = made.model.requests[1].messages[0].text
        assert "hunter2" not in text
        assert "Also in the commit, not shown: .env" in text
    own = Git(repository, (repository,), secret_names())
    assert "hunter2" in (await own.diff(*(await change_of(own, ".env")).command))[0]


async def test_nothing_to_review_is_said(repository: Path) -> None:
    async with bench(ANSWERS, repository) as made:
        assert "Nothing to review: the staged changes" in shown(await REVIEW.run(made.session, "staged"))
        assert made.model.requests == []


async def committed(made: Bench, choice: str, arguments: str = "") -> CommandResult:
    """Run /commit and answer its question."""
    running = asyncio.ensure_future(COMMIT.run(made.session, arguments))
    request = await made.asked()
    made.allow(request, choice)
    return await running


async def test_a_commit_is_proposed_asked_about_and_made(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    (repository / "new.txt").write_text("x\n")
    policy = Policy(mode="auto", rules=(Rule("allow", "Bash(git *)", "user"),))
    async with bench(ANSWERS, repository, tools=[RunCommand()], policy=policy) as made:
        result = await committed(made, "once", "mention the line")
        assert "Committed: Add a line. Not included, because not staged: new.txt" in shown(result)
        assert git(repository, "log", "-1", "--format=%B").strip() == "Add a line\n\nIt was missing."
        sent = made.model.requests[0].messages[0].text
        assert "+two" in sent
        assert "Begin" in sent
        assert "mention the line" in sent


FREE = Policy(mode="auto", rules=(Rule("allow", "Write(*)", "user"),))
EDITS = """
[[step]]
call = [{ id = "1", tool = "write_file", arguments = { path = "pkg/made.py", content = "made = 1\\n" } },
        { id = "2", tool = "write_file", arguments = { path = ".env", content = "KEY=1\\n" } }]
[[step]]
text = "Done."
[[step]]
text = "Add a module"
"""


@pytest.mark.parametrize("changed", [True, False])
async def test_new_files_of_this_session_are_committed_and_others_offered(
    repository: Path, tmp_path: Path, changed: bool
) -> None:
    def open_history() -> FileHistory:
        rows = open_database(tmp_path / "state" / "checkpoints.db", migrations=SCHEMA)
        return FileHistory(rows, "s", (str(repository),), CheckpointOptions())

    if changed:
        (repository / "a.txt").write_text("two\n")
    (repository / "other file.txt").write_text("x\n")
    kept = Checkpoints(open_history, str(repository), [str(repository)], "")
    async with bench(EDITS, repository, tools=builtin_tools(), policy=FREE, checkpoints=kept) as made:
        await made.say("go")
        (repository / "pkg" / "notes.txt").write_text("x\n")
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        assert "New in git, created in this session: pkg/made.py." in request.reason
        assert "Not included (not tracked by git): .env, other file.txt, pkg/." in request.reason
        assert "git add -- pkg/made.py && git commit -a -m" in request.title
        made.allow(request, "once")
        result = await running
        assert "Committed: Add a module. Not included, because not staged: .env, other file.txt, pkg/." in shown(result)
        assert "+made = 1" in made.model.requests[-1].messages[0].text
        files = git(repository, "show", "--name-only", "--format=", "HEAD").split()
        assert files == (["a.txt", "pkg/made.py"] if changed else ["pkg/made.py"])
        assert result.offer is not None
        assert result.offer.command == RunShell("git add -- .env 'other file.txt' pkg/")
        assert not result.offer.unattended


async def test_what_is_staged_is_what_is_committed(repository: Path) -> None:
    (repository / "b.txt").write_text("b\n")
    git(repository, "add", "b.txt")
    (repository / "a.txt").write_text("two\n")
    async with bench(ANSWERS, repository, tools=[RunCommand()], attribution=True) as made:
        result = await committed(made, "once")
        assert "Not included, because not staged: a.txt" in shown(result)
        assert git(repository, "show", "--name-only", "--format=", "HEAD").split() == ["b.txt"]
        assert git(repository, "log", "-1", "--format=%B").strip().endswith("Assisted-by: swecli (scripted/script)")


async def test_without_a_yes_nothing_is_committed_and_the_message_is_kept(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        result = await committed(made, "reject")
        assert shown(result).startswith("Not committed. The proposed message was:\nAdd a line")
        assert git(repository, "log", "--format=%s").split() == ["Begin"]
        assert len(made.model.requests) == 1


async def test_a_note_with_the_no_makes_the_proposal_anew(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    (repository / "n.txt").write_text("n\n")
    answers = '[[step]]\ntext = "Add a long line"\n[[step]]\ntext = "Add it"\n'
    async with bench(answers, repository, tools=[RunCommand()]) as made:
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        assert request.reason == "Commits a.txt. Not included (not tracked by git): n.txt."
        made.send(ReplyPermission(request.request, "reject", "shorter subject please"))
        await until(lambda: len(made.bodies(PermissionRequested)) == 2)
        made.send(ReplyPermission(made.bodies(PermissionRequested)[1].request, "once"))
        assert "Committed: Add it." in shown(await running)
        said = made.model.requests[1].messages[0].text
        assert "Add a long line\n\nThe user rejected it and says: shorter subject please" in said


@pytest.mark.parametrize(
    ("staged", "edited", "second"),
    [
        ((), "b.txt", "Commits a.txt, b.txt."),  # a file that the question did not name
        ((), "a.txt", "Commits a.txt."),  # a file that it named, with another content
        ((), ".env", "Commits .env, a.txt. May hold secrets: .env."),  # one whose content the diff leaves out
        (("a.txt",), "a.txt", "Commits a.txt."),  # the index has changed
    ],
)
async def test_what_changes_during_the_question_is_asked_about_again(
    repository: Path, staged: tuple[str, ...], edited: str, second: str
) -> None:
    for name in ("b.txt", ".env"):
        (repository / name).write_text("one\n")
        git(repository, "add", "--force", name)
    git(repository, "commit", "-qm", "More")
    (repository / "a.txt").write_text("two\n")
    if staged:
        git(repository, "add", *staged)
    answers = '[[step]]\ntext = "First"\n[[step]]\ntext = "Second."\n'
    async with bench(answers, repository, tools=[RunCommand()]) as made:
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        assert request.reason == "Commits a.txt."
        (repository / edited).write_text("three\n")
        if staged:
            git(repository, "add", *staged)
        made.allow(request, "once")
        await until(lambda: len(made.bodies(PermissionRequested)) == 2 or running.done())
        assert git(repository, "log", "-1", "--format=%s").strip() == "More"
        again = made.bodies(PermissionRequested)[1]
        assert again.reason == second
        assert again.item != request.item
        made.allow(again, "once")
        assert shown(await running) == "Committed: Second."
        assert ("+three" in made.model.requests[1].messages[0].text) is (edited != ".env")
        assert "The files changed after they were shown; asking again." in [one.text for one in made.bodies(Notice)]


async def test_unrelated_changes_during_the_question_do_not_matter(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    git(repository, "add", "a.txt")
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        (repository / "a.txt").write_text("three\n")  # not staged
        (repository / "new.txt").write_text("new\n")
        made.allow(request, "once")
        assert "Committed: Add a line." in shown(await running)
        assert len(made.bodies(PermissionRequested)) == 1


async def test_a_failure_after_the_commit_is_not_called_a_failed_commit(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    hook = repository / ".git" / "hooks" / "post-commit"
    hook.write_text("#!/bin/sh\nfor i in $(seq 40); do sleep 60 & done\n")
    hook.chmod(0o755)
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        result = await committed(made, "once")
        assert shown(result).startswith("Committed: Add a line.\n")
        assert git(repository, "log", "--format=%s").splitlines() == ["Add a line", "Begin"]


async def test_a_commit_in_the_background_is_not_called_done(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch started; sleep 60\n")
    hook.chmod(0o755)
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        made.allow(request, "once")
        await until((repository / "started").exists)
        made.send(Background(request.item))
        assert shown(await running).startswith("The commit is still running in the background; /jobs shows it.")


async def test_a_commit_of_a_refusing_hook_is_none(repository: Path) -> None:
    (repository / "a.txt").write_text("two\n")
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho lint failed; exit 1\n")
    hook.chmod(0o755)
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        result = await committed(made, "once")
        assert shown(result).startswith("Nothing was committed. The proposed message was:\nAdd a line")
        assert "lint failed" in shown(result)


async def test_a_merge_without_a_change_can_be_concluded(repository: Path) -> None:
    git(repository, "checkout", "-qb", "feature")
    git(repository, "commit", "-q", "--allow-empty", "-m", "Empty")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "--no-commit", "feature")
    async with bench(ANSWERS, repository, tools=[RunCommand()]) as made:
        running = asyncio.ensure_future(COMMIT.run(made.session, ""))
        request = await made.asked()
        assert "A merge is in progress, which this commit continues." in request.reason
        made.allow(request, "once")
        assert "Committed: Add a line." in shown(await running)
        assert "This commit continues a merge." in made.model.requests[0].messages[0].text
        assert len(git(repository, "log", "-1", "--format=%P").split()) == 2


@pytest.mark.parametrize(("untracked", "words"), [(False, "work tree is clean"), (True, "does not track yet: n.txt")])
async def test_nothing_to_commit_is_said(repository: Path, untracked: bool, words: str) -> None:
    if untracked:
        (repository / "n.txt").write_text("n\n")
    async with bench(ANSWERS, repository) as made:
        result = await COMMIT.run(made.session, "")
        assert words in shown(result)
        assert (result.offer is not None) == untracked
        assert made.model.requests == []


def test_a_status_is_read() -> None:
    text = "M  a\0 M b\0MM c\0?? d\ne f\0UU e\0R  g\0f\0"
    assert read_status(text) == GitStatus(("a", "c", "f -> g"), ("b", "c"), ("d\ne f",), ("e",))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Fix it", "Fix it"),
        ("```\nFix it\n\nWhy.\n```", "Fix it\n\nWhy."),
        ('"Fix it"', "Fix it"),
        ("  Fix `x`\n", "Fix `x`"),
        ("", ""),
    ],
)
def test_a_message_is_taken_out_of_what_is_around_it(answer: str, message: str) -> None:
    assert message_of(answer) == message
