"""/review and /commit: changes from git for the model to review or to describe."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from swecli.commands.base import CommandResult, Offer, SlashCommand
from swecli.core.context_management.prompts import harmless, read_prompt
from swecli.core.git import git_command, git_environment, git_facts, head_commit
from swecli.core.permissions.git_facts import git_problem
from swecli.core.permissions.paths import is_secret
from swecli.core.permissions.types import Rule
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import RunShell
from swecli.core.secret_names import SecretNames
from swecli.core.workspace.process import scrubbed_environment
from swecli.core.workspace.text_file import typed_path
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.engine.command_tools import ToolRun
    from swecli.core.engine.session import Session

SECONDS = 20.0
MOST_BYTES = 4_000_000
"""Most bytes of output that are used."""
SHARE = 0.4
"""Share of the context window for a diff."""
CHARS = 3
"""Assumed characters of a diff per token."""
MOST_CHARS = 200_000
TRUNKS = ("main", "master", "trunk", "develop")
_SUBMODULES = "--ignore-submodules=dirty"
"""Compares submodules by their commit, without git running in them."""
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", _SUBMODULES)
_SHOW = ("show", "-m", "--first-parent", "--format=commit %h%n%n%B")
"""A commit as a diff; a merge as what it brought into its branch."""
_SUBJECT = 100
"""Characters of a subject to show."""
_NAMED_FILES = 10
"""Files to name."""
_NEW_FILES = 50
"""New files to name for the model."""
_ONLY_NAMES = {"diff": (), "show": ("--format=",)}
"""Options besides ``--name-only`` that leave only names."""


class GitError(Exception):
    """Git is unavailable, or it failed; the message gives the reason."""


class Git:
    """Runs read-only git commands in one folder, without programs that the repository could make it run.

    Raises:
        GitError: there is no git or no repository, or its settings name programs.
    """

    def __init__(self, cwd: Path, roots: Sequence[Path], names: SecretNames) -> None:
        self._cwd, self.secret_names = cwd, names
        environment = scrubbed_environment(dict(os.environ))
        self._environment = git_environment(environment)
        program = shutil.which("git", path=environment.get("PATH"))
        if program is None:
            raise GitError("git is not installed.")
        facts = git_facts(cwd)
        if facts is None:
            raise GitError(f"{cwd} is not in a git repository.")
        self.top, self.folder = facts.root, facts.folder
        self._program = program
        problem = git_problem(str(cwd), environment, [str(root) for root in roots], submodules=False)
        if problem is not None:
            raise GitError(f"swecli does not run git here on its own: {problem}. Paste a diff, or use !git diff.")

    async def __call__(self, *arguments: str) -> str:
        """Output of git, as text.

        Raises:
            GitError: it failed or took too long.
        """
        return (await self._output(*arguments))[:MOST_BYTES].decode("utf-8", "replace")

    async def _output(self, *arguments: str) -> bytes:
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
            raise GitError(f"git {arguments[0]} failed: {why.rstrip('.')}.")
        return out

    async def digest(self, *arguments: str) -> str:
        """A hash of everything that ``git diff`` with these arguments shows, secrets and binary files included.

        Raises:
            GitError: it failed or took too long.
        """
        output = await self._output("diff", *_DIFF, "--full-index", "-U0", *arguments)
        return hashlib.sha256(output).hexdigest()

    async def names(self, *arguments: str) -> tuple[str, ...]:
        """Output of git with ``-z``, split.

        Raises:
            GitError: it failed or took too long.
        """
        return tuple(filter(None, (await self(*arguments)).split("\0")))

    async def status(self) -> GitStatus:
        """The status of the work tree; names are relative to the session's folder.

        Raises:
            GitError: it failed or took too long.
        """
        return read_status(await self("status", "--porcelain", "-z", _SUBMODULES), self._near)

    def _near(self, name: str) -> str:
        """A name relative to the session's folder instead of the work tree's."""
        if self.top == self._cwd:
            return name
        return f"{os.path.relpath(self.top / name, self._cwd)}{'/' if name.endswith('/') else ''}"

    def located(self, typed: str) -> str | None:
        """The existing path that the user typed, relative to the session's folder; None if there is none.

        Raises:
            GitError: it is outside the repository.
        """
        name = typed_path(typed)
        if not name or "\0" in name:
            return None
        path = Path(os.path.normpath(self._cwd / os.path.expanduser(name)))
        if not os.path.lexists(path):
            return None
        resolved = os.path.join(os.path.realpath(path.parent), path.name)  # the last part may be a changed link
        if not Path(resolved).is_relative_to(os.path.realpath(self.top)):
            raise GitError(f"{name} is outside the repository {self.top}.")
        return os.path.relpath(resolved, os.path.realpath(self._cwd))

    def below_top(self, name: str) -> str:
        """A name relative to the work tree instead of the session's folder."""
        return os.path.relpath(os.path.normpath(self._cwd / name), self.top)

    def pathspec(self, name: str) -> str:
        """The name for git. One that exists is no pattern: ``[id].py`` would match i.py, too."""
        return f":(literal){name}" if os.path.lexists(self._cwd / name) else name

    def is_folder(self, name: str) -> bool:
        return os.path.isdir(self._cwd / name)

    @property
    def paths_note(self) -> str:
        """For the model, what the diff's paths are relative to; empty if that is the session's folder."""
        if self.top == self._cwd:
            return ""
        return f"The diff's paths are relative to {self.top}, the names of new files to your folder."

    async def base(self) -> str:
        """The newest commit, or the empty tree before the first one.

        Raises:
            GitError: git can't use the repository.
        """
        await self("rev-parse", "--git-dir")
        if await self.knows("rev-parse", "--verify", "--quiet", "HEAD"):
            return "HEAD"
        return (await self("hash-object", "-t", "tree", os.devnull)).strip()

    async def diff(self, verb: str, *arguments: str) -> tuple[str, tuple[str, ...]]:
        """A diff without files that may hold secrets, unless they are named in the arguments; and these files, relative
        to the work tree.

        Raises:
            GitError: it failed or took too long.
        """
        at = arguments.index("--") if "--" in arguments else len(arguments)
        options, named = (verb, *_DIFF, *arguments[:at]), {self.below_top(path) for path in arguments[at + 1 :]}
        paths = tuple(map(self.pathspec, arguments[at + 1 :]))
        names = await self.names(*options, "--no-renames", "--name-only", "-z", *_ONLY_NAMES[verb], "--", *paths)
        secret = tuple(
            name for name in dict.fromkeys(names) if is_secret(f"/{name}", self.secret_names) and name not in named
        )
        without = tuple(f":(top,exclude,literal){name}" for name in secret)
        everything = (":(top)",) if secret and not paths else ()
        return await self(*options, "--", *paths, *everything, *without), secret

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
        GitError: there is no change of this kind, or git can't use the repository.
    """
    base = await git.base()
    words = arguments.strip()
    word, rest = _first_word(words)
    if word in ("staged", "--staged", "--cached"):
        return Change("the staged changes", ("diff", "--cached"), rest)
    if word and not word.startswith("-"):
        named = await _revision(git, word)
        if named is not None:
            return Change(*named, rest)
        for name, focus in ((word, rest), (words, "")):  # unquoted names with blanks too
            change = await _below(git, name, base, focus)
            if change is not None:
                return change
        if _looks_named(word, alone=not rest):
            raise GitError(f"No branch, commit, range or file is named {word}. {await _available_changes(git)}")
    return await _default(git, base, words)


_FIRST = lazy_pattern(r"""(@?"(?:[^"\\]|\\.)+"|@?'[^']+'|(?:\\.|\S)+)(?:\s+(.*))?""", re.DOTALL)


def _first_word(words: str) -> tuple[str, str]:
    """The first word, which may be quoted or have escaped blanks, and the rest."""
    match = _FIRST.fullmatch(words)
    return (match[1], (match[2] or "").strip()) if match is not None else ("", "")


def _looks_named(word: str, *, alone: bool) -> bool:
    """Whether a word looks like a name. Unless it stands alone, a slash or a dot may be part of a sentence."""
    return ".." in word.strip(".") or (
        alone and re.fullmatch(r"[\w-]*[./~^@][\w./~^@{}-]*\w|[0-9a-f]{7,40}", word) is not None
    )


async def _available_changes(git: Git) -> str:
    """The branches and changed files, as a hint."""
    branches = (await git("for-each-ref", "--format=%(refname:short)", "--sort=-committerdate", "refs/heads")).split()
    tree = await git.status()
    changed = [*dict.fromkeys((*tree.staged, *tree.changed, *tree.untracked))]
    hints = [f"Branches: {_listed(branches)}." if branches else "", f"Changed: {_listed(changed)}." if changed else ""]
    return " ".join(filter(None, (*hints, "Other words tell the model what to look at.")))


async def _revision(git: Git, word: str) -> tuple[str, tuple[str, ...]] | None:
    """The change of the range, branch or commit that a word names; None if it names none."""
    ends = _ends(word)
    if ends and all([await git.knows("rev-parse", "--verify", "--quiet", f"{end}^{{commit}}") for end in ends]):
        return f"the range {word}", ("diff", word)
    for kind in ("refs/heads/", "refs/remotes/"):
        if await git.knows("show-ref", "--verify", "--quiet", f"{kind}{word}"):
            return await _branch(git, word)
    if await git.knows("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}"):
        return f"the commit {word}", (*_SHOW, word)
    return None


def _ends(word: str) -> list[str]:
    """Both ends of a range; empty if it is none."""
    start, dots, end = word.partition("...") if "..." in word else word.partition("..")
    return [start or "HEAD", end or "HEAD"] if dots and (start or end) else []


async def _below(git: Git, typed: str, base: str, focus: str) -> Change | None:
    """The uncommitted changes of a path, with new files; None if nothing has this name.

    Raises:
        GitError: it is outside the repository.
    """
    path = git.located(typed)
    name = path or typed_path(typed)
    spec = git.pathspec(name)
    if path is None and not await git.knows("ls-files", "--error-unmatch", "--", spec):  # deleted, or a pattern
        return None
    new = await git.names("ls-files", "--others", "--exclude-standard", "--directory", "-z", "--", spec)
    if path and not new and not git.is_folder(name) and not await git.names("ls-files", "-z", "--", spec):
        new = (name,)  # an ignored file, named by the user
    return Change(f"the uncommitted changes of {name}", ("diff", base, "--", name), focus, new)


async def _branch(git: Git, name: str) -> tuple[str, tuple[str, ...]]:
    """A trunk is compared with the current branch; another branch is itself the change, compared with the current
    one."""
    if not await git.knows("rev-parse", "--verify", "--quiet", "HEAD"):
        raise GitError(f"The current branch has no commit yet to compare with {name}.")
    current = (await git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    label = "HEAD" if current == "HEAD" else f"the branch {current}"
    if name == current:
        trunk = await _trunk(git, current)
        if trunk is None:
            raise GitError(f"No other branch to compare {name} with; name a range.")
        return f"the branch {name} against {trunk}", ("diff", f"{trunk}...{name}")
    if name.rpartition("/")[2] in TRUNKS:
        return f"{label} against {name}", ("diff", f"{name}...HEAD")
    return f"the branch {name} against {current}", ("diff", f"HEAD...{name}")


async def _trunk(git: Git, current: str) -> str | None:
    for name in (*TRUNKS, *(f"origin/{trunk}" for trunk in TRUNKS)):
        if name != current and await git.knows("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return name
    return None


async def _default(git: Git, base: str, focus: str) -> Change:
    """The uncommitted changes, or else the branch's commits beyond the trunk, or else the newest commit."""
    tree = await git.status()
    if tree != GitStatus() or base != "HEAD":
        return Change("the uncommitted changes", ("diff", base), focus, tree.untracked)
    current = (await git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    trunk = await _trunk(git, current) if current not in TRUNKS else None
    if trunk is not None and (await git("rev-list", "--count", f"{trunk}..HEAD")).strip() != "0":
        label = "HEAD" if current == "HEAD" else f"the branch {current}"
        return Change(f"{label} against {trunk}", ("diff", f"{trunk}...HEAD"), focus)
    return Change("the newest commit", (*_SHOW, "HEAD"), focus)


async def _run_review(session: Session, arguments: str) -> CommandResult:
    try:
        git = await asyncio.to_thread(Git, session.view.cwd, session.view.roots, session.view.secret_names)
        change = await change_of(git, arguments)
        diff, secret = await git.diff(*change.command)
    except GitError as error:
        return CommandResult.text(f"{error} Nothing was sent.", "error")
    named, names = change.command, git.secret_names
    untracked = tuple(name for name in change.untracked if name in named or not is_secret(f"/{name}", names))
    secret += tuple(name for name in change.untracked if name not in untracked)
    left_out = f"Left out, because they may hold secrets: {_listed(secret)}." if secret else ""
    if not diff.strip() and not untracked:
        nothing = f"Nothing to review: {change.what} (no differences)."
        return CommandResult.text(f"{left_out} {nothing}" if left_out else nothing, "warning")
    shown = _cut(diff, session, f"git {' '.join(map(_quoted, change.command))}")
    new = _listed(untracked, _NEW_FILES)
    parts = (
        read_prompt("review").replace("{what}", change.what),
        f"The user asks you to focus on: {change.focus}" if change.focus else "",
        f"New files outside the diff; read them too: {new}" if new else "",
        f"Not shown, because they may hold secrets: {_listed(secret)}. Do not read them." if secret else "",
        git.paths_note if shown.strip() else "",
        f"```diff\n{harmless(shown).rstrip()}\n```" if shown.strip() else "",
    )
    trouble = session.begin(f"/review {arguments}".rstrip(), "\n\n".join(part for part in parts if part))
    if trouble:
        return CommandResult.text(trouble, "error")
    focus = f", focus: {change.focus}" if change.focus else ""
    session.notice(" ".join(filter(None, (f"Reviewing {change.what}{focus}.", left_out))))
    return CommandResult()  # the message of the turn names the command


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@^~./:=-]+", word) else shlex.quote(word)


def _cut(diff: str, session: Session, command: str) -> str:
    """The beginning of a diff, as much as fits."""
    budget = session.view.budget
    room = min(MOST_CHARS, int((budget.effective if budget is not None else 32_000) * SHARE) * CHARS)
    if len(diff) <= room:
        return diff
    head = diff[:room].rpartition("\n")[0]
    return f"{head}\n(cut: {len(head):,} of {len(diff):,} characters; `{command}` shows all, with `-- PATH` a file)"


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


def read_status(text: str, near: Callable[[str], str] = str) -> GitStatus:
    """Parse the output of ``git status --porcelain -z``; ``near`` adapts each name."""
    staged: list[str] = []
    changed: list[str] = []
    untracked: list[str] = []
    unmerged: list[str] = []
    entries = iter(text.split("\0"))
    for line in entries:
        index, tree, name = line[:1], line[1:2], near(line[3:])
        if index in ("R", "C") or tree in ("R", "C"):
            name = f"{near(next(entries, ''))} -> {name}"
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


_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}
"""By file in git's folder: the operation that waits for a commit."""


def _under_way(folder: Path) -> str:
    return next((name for file, name in _UNDER_WAY.items() if os.path.lexists(folder / file)), "")


class Commit(Struct, frozen=True):
    """What a commit would include. ``secret`` are its files that may hold secrets, which the diff leaves out; ``new``
    are files that the session's edits have created, whose text ends the diff; ``under_way`` is the operation that it
    continues."""

    tree: GitStatus
    new: tuple[str, ...]
    others: tuple[str, ...]
    """Further files that git does not track."""
    diff: str
    secret: tuple[str, ...]
    subjects: str
    under_way: str
    before: str
    """Hash of HEAD."""
    state: tuple[str, ...]
    """Identifies everything that goes into the commit."""


async def _commit(git: Git, cwd: Path, created: Sequence[str]) -> Commit | CommandResult:
    """The next commit, or why there is none. ``created`` are absolute paths.

    Raises:
        GitError: git is unavailable or failed.
    """
    base = await git.base()
    tree, under_way = await git.status(), _under_way(git.folder)
    new, others = await _new_files(git, cwd, tree, created)
    refused = _nothing_to_commit(tree, new)
    if refused and (tree.unmerged or under_way != "merge"):
        offer = None if tree.unmerged else _staging(others)
        return CommandResult((TextBlock(refused, "warning"),), offer=offer)
    state = await _state(git, cwd, tree, new)
    diff, secret = await git.diff("diff", *_content(tree, base))
    diff += "".join(await asyncio.to_thread(lambda: [_as_diff(cwd, name) for name in new]))
    subjects = await git("log", "-8", "--format=%s") if base == "HEAD" else ""
    return Commit(tree, new, others, diff, secret, subjects, under_way, _head(cwd), state)


async def _new_files(
    git: Git, cwd: Path, tree: GitStatus, created: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the files that git does not track, the ``created`` ones that the commit includes, and all others. What is
    staged is the user's own choice, and files that may hold secrets are."""
    listing = ("ls-files", "--others", "--exclude-standard", "-z", "--")
    below = await asyncio.to_thread(lambda: [git.pathspec(name) for name in _inside(cwd, created)])
    if tree.staged or not tree.untracked or not below:
        return (), tree.untracked
    names = await git.names(*listing, *below)
    new = tuple(name for name in names if not is_secret(f"/{name}", git.secret_names))
    others: list[str] = []
    for name in tree.untracked:
        within = await git.names(*listing, git.pathspec(name)) if name.endswith("/") else (name,)
        if not set(within).issubset(new):
            others.append(name)
    return new, tuple(others)


def _inside(cwd: Path, paths: Sequence[str]) -> list[str]:
    """Those of the absolute paths that are below the folder, relative to it."""
    root = os.path.realpath(cwd)
    near = (os.path.relpath(os.path.realpath(path), root) for path in paths)
    return [name for name in near if not name.startswith(f"..{os.sep}")]


def _as_diff(cwd: Path, name: str) -> str:
    """A new file as a diff shows it."""
    head = f"new file {name}\n"
    try:
        data = (cwd / name).read_bytes()[:MOST_BYTES]
    except OSError as error:
        return f"{head}({error.strerror or error})\n"
    if b"\0" in data:
        return f"{head}(binary)\n"
    return head + "".join(f"+{line}\n" for line in data.decode("utf-8", "replace").splitlines())


def _staging(names: Sequence[str]) -> Offer | None:
    """Offers to stage files that git does not track yet."""
    if not names:
        return None
    count = "1 new file is" if len(names) == 1 else f"{len(names)} new files are"
    command = RunShell(f"git add -- {shlex.join(names)}")
    yes = ("Stage for the next commit", _listed(names))
    return Offer(f"{count} not in a commit", command, yes, ("Leave", ""), named=False, unattended=False)


def _content(tree: GitStatus, base: str) -> tuple[str, ...]:
    """Arguments of ``git diff`` for what the commit includes."""
    return ("--cached",) if tree.staged else (base,)


def _head(cwd: Path) -> str:
    facts = git_facts(cwd)
    return head_commit(facts) if facts is not None else ""


async def _state(git: Git, cwd: Path, tree: GitStatus, new: Sequence[str]) -> tuple[str, ...]:
    facts = git_facts(cwd)
    branch = facts.branch if facts is not None else None
    content = await git.digest(*_content(tree, await git.base()))
    hashes = await git.names("hash-object", "--no-filters", "--", *new) if new else ()
    return content, *new, *hashes, str(bool(tree.staged)), _under_way(git.folder), branch or "", _head(cwd)


_CHANGED = "The files changed after they were shown; asking again."


async def _run_commit(session: Session, arguments: str) -> CommandResult:
    notes: list[str] = []
    while True:
        try:
            git = await asyncio.to_thread(Git, session.view.cwd, session.view.roots, session.view.secret_names)
            commit = await _commit(git, session.view.cwd, await session.files.created())
        except GitError as error:
            return CommandResult.text(f"{error} Nothing was committed.", "error")
        if isinstance(commit, CommandResult):
            return commit
        result = await _propose(session, git, commit, arguments, notes)
        if result is not None:
            return result
        session.notice(_CHANGED, "warning")


async def _propose(
    session: Session, git: Git, commit: Commit, arguments: str, notes: list[str]
) -> CommandResult | None:
    """Let the model write the message, ask, and commit; None if the files changed meanwhile. ``notes``, to which this
    adds, tell the model about rejected messages."""
    tree, model, cwd = commit.tree, session.view.model, session.view.cwd
    if model is None:
        return CommandResult.text("No model is connected to write the message. Nothing was committed.", "error")

    lapsed = ""

    async def outdated() -> str:
        nonlocal lapsed
        try:
            same = await _state(git, cwd, await git.status(), commit.new) == commit.state
            lapsed = "" if same else "The files to commit changed after they were shown."
        except GitError as error:
            lapsed = str(error)
        return lapsed

    facts = [
        f"The user says: {arguments}" if arguments else "",
        f"This commit continues a {commit.under_way}." if commit.under_way else "",
        f"Newest subjects of this repository:\n{commit.subjects}" if commit.subjects else "",
        f"Also in the commit, not shown: {_listed(commit.secret)}" if commit.secret else "",
        f"The diff:\n{_cut(commit.diff, session, 'git diff')}",
    ]
    state = git_facts(cwd)
    contents = _commit_question(commit, detached=state is not None and state.branch is None)
    asks = (Rule("ask", "Bash(git commit *)", "session", "/commit", contents),)
    while True:
        prompt = "\n\n".join(part for part in (*facts, *notes) if part)
        answer = await session.questions.ask(read_prompt("commit_system"), prompt)
        message = message_of(answer or "")
        if not message:
            return CommandResult.text("The model gave no message. Nothing was committed.", "error")
        if await outdated():
            return None
        proposed = message
        if session.view.attribution:
            message += f"\n\nAssisted-by: swecli ({model.ref})"
        adds = f"git add -- {shlex.join(commit.new)} && " if commit.new else ""
        command = f"{adds}git commit {'' if tree.staged else '-a '}-m {shlex.quote(message)}"
        run = await session.command_tools.run("run_command", {"command": command}, rules=asks, outdated=outdated)
        if not run.said:
            return None if lapsed else _committed(run, message, commit, moved=_head(cwd) != commit.before)
        notes.append(f"You proposed this message:\n{proposed}\n\nThe user rejected it and says: {run.said}")


def _commit_question(commit: Commit, *, detached: bool) -> str:
    """/commit's question, with the files that the commit includes and leaves out."""
    tree = commit.tree
    inside = tree.staged or tree.changed
    parts = [f"Commits {_listed(inside)}." if inside else "" if commit.new else "The commit changes no file."]
    if commit.new:
        parts.append(f"New in git, created in this session: {_listed(commit.new)}.")
    if commit.secret:
        parts.append(f"May hold secrets: {_listed(commit.secret)}.")
    if commit.under_way:
        parts.append(f"A {commit.under_way} is in progress, which this commit continues.")
    elif detached:
        parts.append("HEAD is detached: no branch will have this commit.")
    if tree.staged and tree.changed:
        parts.append(f"Not included (not staged): {_listed(tree.changed)}.")
    if commit.others:
        parts.append(f"Not included (not tracked by git): {_listed(commit.others)}.")
    return " ".join(filter(None, parts))


def _listed(names: Sequence[str], most: int = _NAMED_FILES) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _committed(run: ToolRun, message: str, commit: Commit, *, moved: bool) -> CommandResult:
    """``moved``: whether there is a new commit. A command's exit status does not say so: it may run in the background,
    or a hook may fail after the commit."""
    subject = message.partition("\n")[0][:_SUBJECT]
    if run.said is not None:
        return CommandResult.text(f"Not committed. The proposed message was:\n{message}")
    if not moved and not run.is_error:
        text = "The commit is still running in the background; /jobs shows it."
        return CommandResult.text(f"{text} The proposed message was:\n{message}", "warning")
    if not moved:
        text = f"Nothing was committed. The proposed message was:\n{message}\n\n{run.why}"
        return CommandResult.text(text, "warning")
    tree = commit.tree
    omitted = (*(tree.changed if tree.staged else ()), *commit.others)
    left = f" Not included, because not staged: {_listed(omitted)}." if omitted else ""
    done = f"Committed: {subject.rstrip('.')}.{left}"
    if run.is_error:
        return CommandResult.text(f"{done}\n\n{run.why}", "warning")
    return CommandResult((TextBlock(done),), offer=_staging(commit.others))


def _nothing_to_commit(tree: GitStatus, new: Sequence[str]) -> str:
    if tree.unmerged:
        return f"Resolve the conflicts first: {_listed(tree.unmerged)}. Nothing was committed."
    if tree.staged or tree.changed or new:
        return ""
    if tree.untracked:
        names = _listed(tree.untracked)
        return f"Only new files that git does not track yet: {names}. Stage them first: !git add FILE"
    return "Nothing to commit: the work tree is clean."


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
    "commit",
    "Propose a commit message and commit once approved",
    _run_commit,
    arguments="[hint]",
    while_busy=False,
    asks_model=True,
)
