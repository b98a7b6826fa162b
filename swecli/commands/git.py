"""/review and /commit: changes from git for the model to review or to describe."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.commands.base import CommandResult, SlashCommand
from swecli.core.context_management.prompts import harmless, read_prompt
from swecli.core.git import git_command, git_environment, git_facts
from swecli.core.permissions.git_facts import git_problem
from swecli.core.permissions.types import Rule
from swecli.core.workspace.process import scrubbed_environment

if TYPE_CHECKING:
    from swecli.core.engine.session import Session, ToolRun

SECONDS = 20.0
MOST_BYTES = 4_000_000
"""Most bytes of output to read."""
SHARE = 0.4
"""Share of the context window for a diff."""
CHARS = 3
"""Assumed characters of a diff per token."""
MOST_CHARS = 200_000
TRUNKS = ("main", "master", "trunk", "develop")
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")
_SUBJECT = 100
"""Characters of a subject to show."""
_NAMED_FILES = 10
"""Files to name."""


class GitError(Exception):
    """Git is unavailable, or it failed; the message gives the reason."""


class Git:
    """Runs read-only git commands in one folder, without programs that the repository could make it run.

    Raises:
        GitError: there is no git or no repository, or its settings name programs.
    """

    def __init__(self, cwd: Path, roots: Sequence[Path]) -> None:
        self._cwd = cwd
        environment = scrubbed_environment(dict(os.environ))
        self._environment = git_environment(environment)
        program = shutil.which("git", path=environment.get("PATH"))
        if program is None:
            raise GitError("git is not installed.")
        if git_facts(cwd) is None:
            raise GitError(f"{cwd} is not in a git repository.")
        self._program = program
        problem = git_problem(str(cwd), environment, [str(root) for root in roots])
        if problem is not None:
            raise GitError(f"swecli does not run git here on its own: {problem}. Paste a diff, or use !git diff.")

    async def __call__(self, *arguments: str) -> str:
        """Output of git.

        Raises:
            GitError: it failed or took too long.
        """
        process = await asyncio.create_subprocess_exec(
            *git_command(self._program, self._cwd, arguments),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        except TimeoutError:
            raise GitError(f"git {arguments[0]} took longer than {SECONDS:g} s.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            why = err.decode("utf-8", "replace").strip().removeprefix("fatal: ").split("\n")[0]
            raise GitError(f"git {arguments[0]} failed: {why}")
        return out[:MOST_BYTES].decode("utf-8", "replace")

    async def knows(self, *arguments: str) -> bool:
        """Whether git succeeds with an answer."""
        try:
            await self(*arguments)
        except GitError:
            return False
        return True


# --- /review ---


class Change(Struct, frozen=True):
    """A change to review. ``what`` names it in a sentence, ``command`` are git's arguments to show it."""

    what: str
    command: tuple[str, ...]
    focus: str = ""
    untracked: tuple[str, ...] = ()


async def change_of(git: Git, arguments: str) -> Change:
    """Parse the arguments: nothing, ``staged``, a range, a branch, a commit, or a path; the rest is the focus.

    Raises:
        GitError: there is no change of this kind.
    """
    word, _, rest = arguments.strip().partition(" ")
    rest = rest.strip()
    if word in ("staged", "--staged", "--cached"):
        return Change("the staged changes", ("diff", "--cached"), rest)
    if word and not word.startswith("-"):
        named = await _named(git, word)
        if named is not None:
            return Change(*named, rest)
        if _looks_named(word, alone=not rest):
            raise GitError(f"No branch, commit, range or file is named {word}. {await _available_changes(git)}")
    return await _default(git, arguments.strip())


def _looks_named(word: str, *, alone: bool) -> bool:
    """Whether a word looks like a name. Unless it stands alone, a slash or a dot may be part of a sentence."""
    return ".." in word.strip(".") or (
        alone and re.fullmatch(r"[\w-]*[./~^@][\w./~^@{}-]*\w|[0-9a-f]{7,40}", word) is not None
    )


async def _available_changes(git: Git) -> str:
    """The branches and changed files, as a hint."""
    branches = (await git("for-each-ref", "--format=%(refname:short)", "--sort=-committerdate", "refs/heads")).split()
    tree = read_status(await git("status", "--porcelain"))
    changed = [*dict.fromkeys((*tree.staged, *tree.changed))]
    found = [f"Branches: {_listed(branches)}." if branches else "", f"Changed: {_listed(changed)}." if changed else ""]
    return " ".join(filter(None, (*found, "Other words tell the model what to look at.")))


async def _named(git: Git, word: str) -> tuple[str, tuple[str, ...]] | None:
    """The change that a word names; None if it names nothing in the repository."""
    if ".." in word and await git.knows("rev-parse", "--verify", "--quiet", *_ends(word)[:1]):
        return f"the range {word}", ("diff", word)
    for kind in ("refs/heads/", "refs/remotes/"):
        if await git.knows("show-ref", "--verify", "--quiet", f"{kind}{word}"):
            return await _branch(git, word)
    if await git.knows("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}"):
        return f"the commit {word}", ("show", "--format=commit %h%n%n%B", word)
    if await git.knows("ls-files", "--error-unmatch", "--", word):
        return f"the uncommitted changes of {word}", ("diff", "HEAD", "--", word)
    return None


def _ends(word: str) -> list[str]:
    return [part or "HEAD" for part in re.split(r"\.{2,3}", word)]


async def _branch(git: Git, name: str) -> tuple[str, tuple[str, ...]]:
    """A trunk is compared with the current branch; another branch is itself the change, compared with the current
    one."""
    current = (await git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    if name == current:
        trunk = await _trunk(git, current)
        if trunk is None:
            raise GitError(f"No other branch to compare {name} with; name a range.")
        return f"the branch {name} against {trunk}", ("diff", f"{trunk}...{name}")
    if name.rpartition("/")[2] in TRUNKS:
        return f"the branch {current} against {name}", ("diff", f"{name}...HEAD")
    return f"the branch {name} against {current}", ("diff", f"HEAD...{name}")


async def _trunk(git: Git, current: str) -> str | None:
    for name in (*TRUNKS, *(f"origin/{trunk}" for trunk in TRUNKS)):
        if name != current and await git.knows("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return name
    return None


async def _default(git: Git, focus: str) -> Change:
    """The uncommitted changes, or else the branch's commits beyond the trunk, or else the newest commit."""
    if not await git.knows("rev-parse", "--verify", "--quiet", "HEAD"):
        return Change("the staged changes", ("diff", "--cached"), focus)
    status = (await git("status", "--porcelain")).splitlines()
    if status:
        new = tuple(line[3:] for line in status if line.startswith("??"))
        return Change("the uncommitted changes", ("diff", "HEAD"), focus, new)
    current = (await git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    trunk = await _trunk(git, current) if current not in TRUNKS else None
    if trunk is not None and (await git("rev-list", "--count", f"{trunk}..HEAD")).strip() != "0":
        return Change(f"the branch {current} against {trunk}", ("diff", f"{trunk}...HEAD"), focus)
    return Change("the newest commit", ("show", "--format=commit %h%n%n%B", "HEAD"), focus)


async def _run_review(session: Session, arguments: str) -> CommandResult:
    try:
        git = await asyncio.to_thread(Git, session.view.cwd, session.view.roots)
        change = await change_of(git, arguments)
        verb, *more = change.command
        diff = await git(verb, *_DIFF, *more)
    except GitError as error:
        return CommandResult.text(f"{error} Nothing was sent.", "error")
    if not diff.strip() and not change.untracked:
        return CommandResult.text(f"Nothing to review: {change.what} are empty.", "warning")
    shown = _cut(diff, session, f"git {' '.join(change.command)}")
    new = ", ".join(change.untracked[:50])
    parts = (
        read_prompt("review").replace("{what}", change.what),
        f"The user asks you to focus on: {change.focus}" if change.focus else "",
        f"New files outside the diff; read them too: {new}" if new else "",
        f"```diff\n{harmless(shown).rstrip()}\n```" if shown.strip() else "",
    )
    trouble = session.begin(f"/review {arguments}".rstrip(), "\n\n".join(part for part in parts if part))
    if trouble:
        return CommandResult.text(trouble, "error")
    focus = f", focus: {change.focus}" if change.focus else ""
    session.notice(f"Reviewing {change.what}{focus}.")
    return CommandResult()  # the message of the turn names the command


def _cut(diff: str, session: Session, command: str) -> str:
    """The beginning of a diff, as much as fits."""
    budget = session.view.budget
    room = min(MOST_CHARS, int((budget.effective if budget is not None else 32_000) * SHARE) * CHARS)
    if len(diff) <= room:
        return diff
    kept = diff[:room].rpartition("\n")[0]
    return f"{kept}\n(cut: {len(kept):,} of {len(diff):,} characters; `{command}` shows all, with `-- PATH` a file)"


REVIEW = SlashCommand(
    "review",
    "Let the model review a change",
    _run_review,
    (),
    "[branch | commit | range | path | staged] [focus]",
    while_busy=False,
)


# --- /commit ---


class GitStatus(Struct, frozen=True):
    """``staged`` and ``changed`` are tracked files; ``untracked`` are new ones."""

    staged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    unmerged: tuple[str, ...] = ()


def read_status(text: str) -> GitStatus:
    """Parse the output of ``git status --porcelain``."""
    staged: list[str] = []
    changed: list[str] = []
    untracked: list[str] = []
    unmerged: list[str] = []
    for line in text.splitlines():
        index, tree, name = line[:1], line[1:2], line[3:]
        if index == "?":
            untracked.append(name)
        elif "U" in (index, tree) or line[:2] in ("AA", "DD"):
            unmerged.append(name)
        else:
            if index not in (" ", "!", ""):
                staged.append(name)
            if tree not in (" ", "!", ""):
                changed.append(name)
    return GitStatus(tuple(staged), tuple(changed), tuple(untracked), tuple(unmerged))


async def _run_commit(session: Session, arguments: str) -> CommandResult:
    try:
        git = await asyncio.to_thread(Git, session.view.cwd, session.view.roots)
        tree = read_status(await git("status", "--porcelain"))
        refused = _nothing_to_commit(tree)
        if refused:
            return CommandResult.text(refused, "warning")
        diff = await git("diff", *_DIFF, "--cached" if tree.staged else "HEAD")
        known = await git.knows("rev-parse", "--verify", "--quiet", "HEAD")
        subjects = await git("log", "-8", "--format=%s") if known else ""
    except GitError as error:
        return CommandResult.text(f"{error} Nothing was committed.", "error")
    model = session.view.model
    if model is None:
        return CommandResult.text("No model is connected to write the message. Nothing was committed.", "error")
    facts = [
        f"The user says: {arguments}" if arguments else "",
        f"Newest subjects of this repository:\n{subjects}" if subjects else "",
        f"The diff:\n{_cut(diff, session, 'git diff')}",
    ]
    place = git_facts(session.view.cwd)
    contents = _commit_question(tree, detached=place is not None and place.branch is None)
    asks = (Rule("ask", "Bash(git commit *)", "session", "/commit", contents),)
    while True:
        answer = await session.ask_model(read_prompt("commit_system"), "\n\n".join(part for part in facts if part))
        message = message_of(answer or "")
        if not message:
            return CommandResult.text("The model gave no message. Nothing was committed.", "error")
        proposed = message
        if session.view.attribution:
            message += f"\n\nAssisted-by: swecli ({model.ref})"
        command = f"git commit {'' if tree.staged else '-a '}-m {shlex.quote(message)}"
        run = await session.run_tool("run_command", {"command": command}, rules=asks)
        if not run.said:
            return _committed(run, message, tree)
        facts.append(f"You proposed this message:\n{proposed}\n\nThe user rejected it and says: {run.said}")


def _commit_question(tree: GitStatus, *, detached: bool) -> str:
    """/commit's question, with the files that the commit includes and leaves out."""
    inside = tree.staged or tree.changed
    parts = [f"Commits {_listed(inside)}."]
    if detached:
        parts.append("HEAD is detached: no branch will have this commit.")
    if tree.staged and tree.changed:
        parts.append(f"Not included (not staged): {_listed(tree.changed)}.")
    if tree.untracked:
        parts.append(f"Not included (not tracked by git): {_listed(tree.untracked)}.")
    return " ".join(parts)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else ""
    return f"{', '.join(names[:_NAMED_FILES])}{more}"


def _committed(run: ToolRun, message: str, tree: GitStatus) -> CommandResult:
    subject = message.partition("\n")[0][:_SUBJECT]
    if run.said is not None:
        return CommandResult.text(f"Not committed. The proposed message was:\n{message}")
    if run.is_error:
        text = f"Nothing was committed. The proposed message was:\n{message}\n\n{run.why}"
        return CommandResult.text(text, "warning")
    left = f" Not included, because not staged: {', '.join(_left_out(tree))}." if _left_out(tree) else ""
    return CommandResult.text(f"Committed: {subject}.{left}")


def _nothing_to_commit(tree: GitStatus) -> str:
    if tree.unmerged:
        return f"Resolve the conflicts first: {', '.join(tree.unmerged[:10])}. Nothing was committed."
    if tree.staged or tree.changed:
        return ""
    if tree.untracked:
        names = ", ".join(tree.untracked[:10])
        return f"Only new files that git does not track yet: {names}. Stage them first: !git add FILE"
    return "Nothing to commit: the work tree is clean."


def _left_out(tree: GitStatus) -> list[str]:
    """Files that a commit of this tree leaves out."""
    return [*(tree.changed if tree.staged else ()), *tree.untracked][:10]


def message_of(answer: str) -> str:
    """The message in an answer, without a model's fences and quotes around it."""
    text = answer.strip()
    fenced = re.fullmatch(r"```\w*\n(.*?)\n?```", text, re.DOTALL)
    text = (fenced[1] if fenced else text).strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" and "\n" not in text:
        text = text[1:-1].strip()
    lines = [line.rstrip() for line in text.replace("\0", "").split("\n")]
    return "\n".join(lines).strip()


COMMIT = SlashCommand(
    "commit", "Propose a commit message and commit once approved", _run_commit, (), "[hint]", while_busy=False
)
