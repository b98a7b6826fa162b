"""What the proof asks of the disk: where names lead, which program runs, what a repository would run."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from swecli.core.permissions import listings
from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import MAX_NAMES, FileFacts, OsFacts, Reach
from swecli.core.permissions.types import Call, Effects, Rule
from tests.support.shell_workspace import ShellWorkspace
from tests.support.waiting import wait_until


@pytest.fixture
def workspace(tmp_path: Path) -> ShellWorkspace:
    return ShellWorkspace(tmp_path)


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def outcome(workspace: ShellWorkspace, command: str) -> str:
    return workspace.decide(command).outcome


def test_a_program_of_the_workspace_is_never_trusted(workspace: ShellWorkspace) -> None:
    program(workspace.root / "bin" / "ls")
    program(workspace.root / "ls")
    path = workspace.environment["PATH"]
    for front in (f"{workspace.root}/bin", ".", "", "bin"):
        workspace.environment["PATH"] = f"{front}:{path}"
        assert outcome(workspace, "ls") == "ask"
    link = workspace.outside / "ls"
    link.symlink_to(workspace.root / "bin" / "ls")
    workspace.environment["PATH"] = f"{workspace.outside}:{path}"
    assert outcome(workspace, "ls") == "ask"
    workspace.environment["PATH"] = f"{path}:{workspace.root}/bin"
    assert outcome(workspace, "ls") == "allow"


def test_a_shell_of_the_workspace_proves_nothing(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    (workspace.root / "bin").mkdir()
    shell = workspace.root / "bin" / "bash"
    shell.write_text("#!/bin/sh\ntouch effect\n")
    shell.chmod(0o755)
    assert workspace.decide("ls").outcome == "allow"
    for front in (f"{workspace.root}/bin", "bin", "./bin"):
        workspace.environment["PATH"] = f"{front}:/usr/bin:/bin"
        assert [workspace.decide(command).outcome for command in ("ls", "echo hi", "pwd")] == ["ask"] * 3


@pytest.mark.parametrize(
    ("name", "value", "command"),
    [
        ("BASH_FUNC_ls%%", "() { touch x; }", "ls"),
        ("BASH_FUNC_echo%%", "() { touch x; }", "echo a"),
        ("BASH_ENV", "x", "pwd"),
        ("CDPATH", "/etc", "cd src && ls"),
        ("GIT_EXTERNAL_DIFF", "x", "git diff"),
        ("GIT_DIR", "x", "git log"),
        ("GIT_PAGER", "x", "git log"),
    ],
)
def test_an_environment_that_changes_what_commands_mean_asks(
    workspace: ShellWorkspace, name: str, value: str, command: str
) -> None:
    assert outcome(workspace, command) == "allow"
    workspace.environment[name] = value
    assert outcome(workspace, command) == "ask"


@pytest.mark.parametrize(
    ("command", "helper"),
    [
        ("tar tzf a.tgz", "gzip"),
        ("zcat a.gz", "gzip"),
        ("timeout 5 zcat a.gz", "gzip"),
        ("egrep x README.md", "grep"),
        ("yq . README.md", "jq"),
        ("npm ls", "node"),
        ("npx --version", "node"),
        ("git diff", "git-lfs"),
    ],
)
def test_a_program_of_the_workspace_that_another_starts_by_name_asks(
    workspace: ShellWorkspace, command: str, helper: str
) -> None:
    workspace.environment["PATH"] = f"{workspace.root}/bin:{workspace.environment['PATH']}"
    program(workspace.root / "bin" / "other")
    assert outcome(workspace, command) == "allow"
    program(workspace.root / "bin" / helper)
    assert outcome(workspace, command) == "ask"


def test_a_version_manager_that_the_workspace_steers_asks(workspace: ShellWorkspace) -> None:
    program(workspace.base / "shims" / "python")
    workspace.environment["PATH"] = f"{workspace.base}/shims:/usr/bin:/bin"
    assert outcome(workspace, "python --version") == "allow"
    (workspace.root / ".python-version").write_text("../../evil")
    assert outcome(workspace, "python --version") == "ask"


@pytest.mark.parametrize("name", ["mise.local.toml", ".config/mise.toml", ".prototools", ".php-version"])
@pytest.mark.parametrize("where", ["work", ".", ".."])
def test_a_version_manager_reads_files_above_the_workspace(workspace: ShellWorkspace, name: str, where: str) -> None:
    program(workspace.base / "shims" / "php")
    (workspace.root / "package.json").unlink()
    workspace.environment["PATH"] = f"{workspace.base}/shims:/usr/bin:/bin"
    file = workspace.home / where / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text("x")
    assert outcome(workspace, "php --version") == ("ask" if where == "work" else "allow")
    inner = str(workspace.root / "docs")
    call = Call("run_command", {"command": "php --version"}, Effects(command="php --version"), inner, (inner,))
    assert decide(workspace.policy(), call).outcome == ("ask" if where == "work" else "allow")


def test_pyenv_is_steered_by_python_version_alone(workspace: ShellWorkspace) -> None:
    program(workspace.base / ".pyenv" / "shims" / "git")
    workspace.environment["PATH"] = f"{workspace.base}/.pyenv/shims:/usr/bin:/bin"
    (workspace.root / "package.json").write_text("{}")
    assert outcome(workspace, "git log") == "allow"
    (workspace.root / ".python-version").write_text("../../evil")
    assert outcome(workspace, "git log") == "ask"


def test_npm_asks_where_the_workspace_configures_it(workspace: ShellWorkspace) -> None:
    assert outcome(workspace, "npm ls") == "allow"
    (workspace.root / ".npmrc").write_text("x=y")
    assert outcome(workspace, "npm ls") == "ask"
    inner = str(workspace.root / "docs")
    call = Call("run_command", {"command": "npm ls"}, Effects(command="npm ls"), inner, (inner,))
    assert decide(workspace.policy(), call).outcome == "ask"
    (workspace.root / ".npmrc").rename(workspace.home / ".npmrc")
    assert decide(workspace.policy(), call).outcome == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = ./x\n",
        "[core] fsmonitor = ./x\n",
        "[CORE]\n\tFsMonitor = ./x\n",
        "[core]\n\tpager = ./x\n",
        "[core]\n\thooksPath = hooks-with-one\n",
        "[core]\n\thooksPath = ./hooks-with-one/../hooks-with-one/\n",
        '[core]\n\thooksPath = "quoted"\n',
        "[core]\n\thooksPath = %(prefix)/x\n",
        "[core]\n\thooksPath\n",
        "[core]\n\tworktree = /\n",
        "[diff]\n\texternal = ./x\n",
        '[diff "y"]\n\ttextconv = ./x\n',
        "[diff.y]\n\tcommand = ./x\n",
        '[filter "y"]\n\tclean = ./x\n',
        "[include]\n\tpath = x\n",
        '[includeIf "gitdir:/"]\n\tpath = x\n',
        "[gpg]\n\tprogram = ./x\n",
        "[log]\n\tshowSignature = true\n",
        "[pager]\n\tlog = ./x\n",
        "[alias]\n\tst = !./x\n",
        "[extensions]\n\tpartialClone = origin\n",
        '[remote "o"]\n\tpromisor = true\n',
        '[remote "o"]\n\tuploadpack = ./x\n',
        "[submodule]\n\trecurse = true\n",
        "[user]\n\tname = a\\\n[core]\n\tfsmonitor = x\n",
        "nonsense\n",
        "fsmonitor = x\n",
    ],
)
def test_a_repository_that_would_run_something_asks(workspace: ShellWorkspace, text: str) -> None:
    config = workspace.root / ".git" / "config"
    (workspace.root / "hooks-with-one").mkdir()
    (workspace.root / "hooks-with-one" / "post-index-change").write_text("")
    for command in ("git status", "git diff", "git log -p"):
        config.write_text("[core]\n\tbare = false\n")
        assert outcome(workspace, command) == "allow"
        config.write_text(text)
        assert outcome(workspace, command) == "ask"


LFS = (
    '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n'
    "\tprocess = git-lfs filter-process\n\trequired = true\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = true\n",
        "[core]\n\tfsmonitor = false\n",
        "[core]\n\tpager = less -F\n",
        '[core]\n\tpager = "less -FRX"\n',
        "[core]\n\tpager = cat\n",
        "[pager]\n\tdiff = false\n\tlog = less\n",
        "[gpg]\n\tformat = ssh\n[commit]\n\tgpgsign = true\n[user]\n\tsigningkey = a\n",
        '[gpg "ssh"]\n\tallowedSignersFile = ~/.config/signers\n',
        '[lfs]\n\turl = https://example.org/lfs\n[lfs "https://example.org"]\n\taccess = basic\n',
        "[diff]\n\ttool = meld\n[merge]\n\ttool = meld\n[mergetool]\n\tkeepBackup = false\n",
        "[log]\n\tdate = iso\n[grep]\n\tlineNumber = true\n",
        '[gitflow "branch"]\n\tmaster = main\n',
    ],
)
def test_settings_that_start_nothing_do_not_ask(workspace: ShellWorkspace, text: str) -> None:
    (workspace.root / ".git" / "config").write_text("[core]\n\tbare = false\n" + text)
    for command in ("git status", "git diff", "git log -p", "git show HEAD"):
        decision = workspace.decide(command)
        assert decision.outcome == "allow", decision.reason


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tpager = less -oout\n",
        "[core]\n\tpager = less; ./x\n",
        "[core]\n\tpager = less -F | ./x\n",
        "[core]\n\tfsmonitor = true2\n",
        "[gpg]\n\tformat = ssh\n\tprogram = ./x\n",
        '[gpg "ssh"]\n\tdefaultKeyCommand = ./x\n',
        "[pager]\n\tdiff = ./less\n",
        LFS,
    ],
)
def test_settings_that_only_look_like_them_ask(workspace: ShellWorkspace, text: str) -> None:
    (workspace.root / ".git" / "config").write_text(text)
    assert outcome(workspace, "git status") == "ask"


def test_settings_that_the_user_has_as_well_do_not_ask(workspace: ShellWorkspace) -> None:
    (workspace.root / ".git" / "config").write_text("[core]\n\tpager = delta\n" + LFS)
    assert outcome(workspace, "git diff") == "ask"
    (workspace.home / ".gitconfig").write_text("[core]\n\tpager = delta\n" + LFS)
    assert outcome(workspace, "git diff") == "allow"
    (workspace.root / ".git" / "config").write_text(LFS.replace("git-lfs clean", "./git-lfs clean"))
    assert outcome(workspace, "git diff") == "ask"
    (workspace.home / ".gitconfig").write_text("[include]\n\tpath = x\n")
    (workspace.root / ".git" / "config").write_text("[include]\n\tpath = x\n")
    assert outcome(workspace, "git diff") == "ask", "there it is another file"


def test_a_rule_for_a_repository_that_may_run_something_covers_reading_it(workspace: ShellWorkspace) -> None:
    (workspace.root / ".git" / "config").write_text("[diff]\n\texternal = ./x\n")
    for command in ("git status", "git log -3 | head", "git diff HEAD"):
        offers = workspace.decide(command).offers
        assert {f"Bash(git {name} *)" for name in ("status", "diff", "log", "show")} <= set(offers)
        granted = workspace.policy(rules=tuple(Rule("allow", text, "session") for text in offers))
        for other in ("git status --short", "git diff --stat", "git log --oneline", "git show HEAD"):
            assert workspace.decide(other, granted).outcome == "allow", other
        for other in ("git push", "git commit -m x", "git diff --output=README.md", "git checkout ."):
            assert workspace.decide(other, granted).outcome == "ask", other


@pytest.mark.parametrize("path", [".husky/_", "./.githooks", "~/hooks-of-mine", "/no/such/folder"])
def test_hooks_elsewhere_that_no_reading_command_starts_do_not_ask(workspace: ShellWorkspace, path: str) -> None:
    (workspace.root / ".husky" / "_").mkdir(parents=True)
    (workspace.root / ".husky" / "_" / "pre-commit").write_text("")
    (workspace.root / ".git" / "config").write_text(f"[core]\n\thooksPath = {path}\n")
    for command in ("git status", "git diff", "git log -p"):
        assert outcome(workspace, command) == "allow"


def test_repositories_that_are_not_where_one_expects_them_ask(workspace: ShellWorkspace) -> None:
    git = workspace.root / ".git"
    inner = workspace.root / "inner"
    inner.mkdir()
    assert workspace.decide("git status", cwd=str(inner)).outcome == "allow"
    for name in ("HEAD", "objects", "refs"):
        (inner / name).mkdir()
    assert workspace.decide("git status", cwd=str(inner)).outcome == "ask"
    (git / "commondir").write_text("../inner")
    assert outcome(workspace, "git status") == "ask"
    (git / "commondir").unlink()
    (git / "hooks" / "post-index-change").write_text("x")
    assert outcome(workspace, "git status") == "ask"
    (git / "hooks" / "post-index-change").unlink()
    (git / "index").write_bytes(b"DIRC" + b"\x00\x00\xe0\x00")
    assert outcome(workspace, "git status") == "ask"
    (git / "index").unlink()
    assert outcome(workspace, "git status") == "allow"
    git.rename(workspace.outside / "git")
    git.symlink_to(workspace.outside / "git")
    assert outcome(workspace, "git status") == "ask"


def test_a_work_tree_is_judged_by_the_repository_it_belongs_to(workspace: ShellWorkspace) -> None:
    main = workspace.outside / "main"
    place = main / "worktrees" / "w"
    (workspace.root / ".git").rename(main)
    place.mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/x")
    (place / "commondir").write_text("../..")
    (workspace.root / ".git").write_text(f"gitdir: {place}\n")
    # Any folder can claim to belong to any repository; only that one can say so.
    assert outcome(workspace, "git log -p") == "ask"
    (place / "gitdir").write_text(f"{workspace.outside}/.git\n")
    assert outcome(workspace, "git log -p") == "ask"
    (place / "gitdir").write_text(f"{workspace.root}/.git\n")
    assert outcome(workspace, "git status") == "allow"
    (main / "config").write_text("[core]\n\tfsmonitor = x\n")
    assert outcome(workspace, "git status") == "ask"


def test_a_submodule_is_judged_by_its_directory_in_the_outer_repository(workspace: ShellWorkspace) -> None:
    place = workspace.outside / ".git" / "modules" / "w"
    place.parent.mkdir(parents=True)
    (workspace.root / ".git").rename(place)
    (workspace.root / ".git").write_text(f"gitdir: {place}\n")
    config = (place / "config").read_text()
    relative = os.path.relpath(workspace.root, place)
    for worktree, expected in (
        ("", "ask"),
        (relative, "allow"),
        (str(workspace.root), "allow"),
        (f"{relative}/..", "ask"),
        (f'"{relative}"', "ask"),
    ):
        (place / "config").write_text(f"{config}\n[core]\n\tworktree = {worktree}\n")
        assert outcome(workspace, "git status") == expected, worktree
    (place / "config").write_text(f"{config}\n[core]\n\tworktree = {relative}\n\tfsmonitor = x\n")
    assert outcome(workspace, "git status") == "ask"
    (place / "config").write_text(f"{config}\n[user]\n\tworktree = {relative}\n")
    assert outcome(workspace, "git status") == "ask"


def test_a_repository_whose_work_tree_is_elsewhere_asks(workspace: ShellWorkspace) -> None:
    config = workspace.root / ".git" / "config"
    config.write_text(f"{config.read_text()}\n[core]\n\tworktree = {workspace.outside}\n")
    assert outcome(workspace, "git status") == "ask"


@pytest.mark.parametrize("name", ["BISECT_LOG", "rebase-merge/done", "rebase-merge/git-rebase-todo", "rebase-merge"])
def test_a_repository_that_shows_another_file_as_its_own_asks(workspace: ShellWorkspace, name: str) -> None:
    path = workspace.root / ".git" / name
    path.parent.mkdir(exist_ok=True)
    assert outcome(workspace, "git status") == "allow"
    path.symlink_to(workspace.outside)
    assert outcome(workspace, "git status") == "ask"
    assert outcome(workspace, "git bisect log") == "ask"


_PIPES = (
    ".gitignore",
    ".gitattributes",
    ".mailmap",
    ".git/info/exclude",
    ".git/shallow",
    ".git/objects/info/alternates",
)


@pytest.mark.parametrize("name", [".git/HEAD", ".git/index", ".git/packed-refs", *_PIPES])
def test_a_repository_with_pipes_for_files_asks(workspace: ShellWorkspace, name: str) -> None:
    path = workspace.root / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    assert outcome(workspace, "git status") == "ask"


@pytest.mark.parametrize("name", ["objects", "objects/ab", "objects/pack", "objects/pack/pack-1.pack", "refs"])
def test_a_repository_with_parts_of_another_asks(workspace: ShellWorkspace, name: str) -> None:
    path = workspace.root / ".git" / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    (workspace.root / "refs").mkdir()
    path.symlink_to(workspace.root / "refs")
    assert outcome(workspace, "git log --all") == "allow"
    path.unlink()
    path.symlink_to(workspace.outside)
    assert outcome(workspace, "git log --all") == "ask"


def test_a_repository_that_borrows_objects_asks(workspace: ShellWorkspace) -> None:
    alternates = workspace.root / ".git/objects/info/alternates"
    alternates.parent.mkdir()
    alternates.write_text("# none\n../../sub/.git/objects\n")
    assert outcome(workspace, "git log --all") == "allow"
    alternates.write_text(f"../../sub/.git/objects\n{workspace.outside}\n")
    assert outcome(workspace, "git log --all") == "ask"


def test_special_files_and_links_out_of_the_workspace_ask(workspace: ShellWorkspace) -> None:
    os.mkfifo(workspace.root / "pipe")
    (workspace.root / "zero").symlink_to("/dev/zero")
    (workspace.root / "out").symlink_to(workspace.outside)
    (workspace.root / "keys").symlink_to(".env")
    for command in ("cat pipe", "cat zero", "ls out", "cat out/x", "cat keys", "grep -R x .", "cat < zero", "head *"):
        assert outcome(workspace, command) == "ask", command
    assert outcome(workspace, "grep -r x src") == "allow"


def test_links_inside_of_the_workspace_do_not(workspace: ShellWorkspace) -> None:
    for command in ("cat link/main.py", "ls link", "grep -R x link/", "find -L . -name x"):
        assert outcome(workspace, command) == "allow", command
    # The shell and the kernel disagree about what is above a link.
    assert outcome(workspace, "cd link && cat ../README.md") == "ask"


def test_names_that_xargs_would_take_apart_ask(workspace: ShellWorkspace) -> None:
    command = "find . -name '*.py' | xargs grep -n x"
    assert outcome(workspace, command) == "allow"
    (workspace.root / "a b.py").write_text("")
    assert outcome(workspace, command) == "ask"


def test_trees_that_are_too_large_to_tell_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "MAX_SEARCHED", MAX_NAMES)
    facts = OsFacts({})
    (tmp_path / "0").touch()
    for number in range(1, MAX_NAMES + 1):
        os.link(tmp_path / "0", tmp_path / str(number))  # which takes less time than so many files
    assert facts.leads_outside(str(tmp_path), (str(tmp_path),))
    assert facts.odd_names(str(tmp_path))
    assert facts.names(str(tmp_path)) is None


def test_wildcards_that_meet_an_option_ask(workspace: ShellWorkspace) -> None:
    (workspace.root / "docs" / "-o").write_text("")
    assert outcome(workspace, "sort docs/*") == "allow"
    assert workspace.decide("sort *", cwd=str(workspace.root / "docs")).outcome == "ask"


def test_without_facts_nothing_is_proven(workspace: ShellWorkspace) -> None:
    blind = workspace.policy(facts=FileFacts())
    for command in ("echo hello", "cat README.md", "ls", "git status", "cd src && pwd"):
        assert workspace.decide(command, blind).outcome == "ask"


@pytest.mark.parametrize("command", ["ls", "grep -rn x . | head", "cat README.md && git status", "find . -name '*.py'"])
def test_the_workspace_root_may_be_called_anything(tmp_path: Path, command: str) -> None:
    base = tmp_path / "secrets" / ".ssh" / "it's a [project]"
    base.mkdir(parents=True)
    assert outcome(ShellWorkspace(base, secrets=False), command) == "allow"


def test_git_in_a_folder_of_the_same_repository_is_read_only(tmp_path: Path) -> None:
    work = ShellWorkspace(Path(os.path.realpath(tmp_path)))
    (work.root / "here").symlink_to(".")
    (work.root / "away").symlink_to(work.outside)
    root = str(work.root)

    def outcome(folder: str) -> str:
        return work.decide(f"git -C {folder} status --short").outcome

    same = (".", root, f"{root}/", "./src/..", "src", "link/..", "src/a/..", ". -C .", "src -C a", f"{root} --no-pager")
    assert [outcome(one) for one in same] == ["allow"] * len(same)
    others = ("sub", "..", "~", "$X", "''", "here", "link", "away/..", f"{root}/../work/sub", "*")
    assert [outcome(one) for one in others] == ["ask"] * len(others)
    assert work.decide("cd src && git -C . status").outcome == "allow"
    assert work.decide("git -C . commit -m x").outcome == "ask"


@pytest.mark.parametrize(
    "command", ["cat link/main.py", "ls -l link", "ln -s link/x y", "find -L . -name x", "rm link"]
)
def test_a_link_that_may_not_be_read_leads_to_no_place_that_is_known(
    workspace: ShellWorkspace, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    read = os.readlink
    shut = str(workspace.root / "link")

    def refuse(path: str, *, dir_fd: int | None = None) -> str:
        if path == shut:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return read(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "readlink", refuse)
    (workspace.root / "hidden").symlink_to("link/a")
    assert workspace.decide(command).outcome in ("allow", "ask")
    assert workspace.decide(f"{command}; touch x", workspace.policy(mode="plan")).outcome == "deny"
    assert OsFacts({}).resolve(str(workspace.root / "hidden" / "b.py")) == shut


EVIL = "[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = x\n"


def bare(folder: Path, config: str) -> None:
    """Lay a folder out as a git directory."""
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(config)


def test_a_folder_whose_objects_a_file_names_is_a_bare_repository(workspace: ShellWorkspace) -> None:
    (workspace.root / ".git").rename(workspace.outside / "git")
    assert outcome(workspace, "git status") == "allow"
    bare(workspace.root / "docs" / "c", "[extensions]\n\tworktreeConfig = true\n" + EVIL)
    (workspace.root / "HEAD").write_text("ref: refs/heads/main\n")
    (workspace.root / "commondir").write_text("docs/c")
    (workspace.root / "config.worktree").write_text("[core]\n\tworktree = .\n\tbare = false\n")
    assert outcome(workspace, "git status") == "ask"


@pytest.mark.parametrize("fault", ["objects", "refs", "text", "link", "absent", "closed"])
def test_a_git_directory_that_git_passes_over_vouches_for_nothing(workspace: ShellWorkspace, fault: str) -> None:
    place = workspace.root / ".git"
    bare(workspace.root, EVIL)
    assert outcome(workspace, "git status") == "allow"
    match fault:
        case "text":
            (place / "HEAD").write_text("main\n")
        case "link":
            (place / "HEAD").rename(place / "head")
            (place / "HEAD").symlink_to("head")
        case "absent":
            (place / "HEAD").unlink()
        case "closed":
            if os.geteuid() == 0:
                pytest.skip("everything is open to root")
            (place / "objects").chmod(0)
        case _:
            (place / fault).rename(place / "away")
    assert outcome(workspace, "git status") == "ask"


@pytest.mark.parametrize("name", [b"link/../c", b"good ", b"go\xffod", b"good\n/../c"])
def test_the_name_of_a_git_directory_means_what_it_means_to_git(workspace: ShellWorkspace, name: bytes) -> None:
    root = workspace.root
    (root / "link").unlink()
    (root / "link").symlink_to("src/a")
    (root / ".git").rename(root / "c")
    if sys.platform == "darwin" and b"\xff" in name:
        pytest.skip("the file system takes no such name")
    for copy in ("good", "go\ufffdod"):
        shutil.copytree(root / "c", root / copy)
    for evil in (b"src/c", b"good ", *([name] if b"\xff" in name else [])):
        bare(root / os.fsdecode(evil), EVIL)
    (root / ".git").write_text("gitdir: good\r\n")
    assert outcome(workspace, "git status") == "allow"
    (root / ".git").write_bytes(b"gitdir: " + name)
    assert outcome(workspace, "git status") == "ask"
    (root / ".git").unlink()
    shutil.copytree(root / "c", root / ".git")
    (root / ".git" / "commondir").write_text("../good\n")
    assert outcome(workspace, "git status") == "allow"
    (root / ".git" / "commondir").write_bytes(b"../" + name)
    assert outcome(workspace, "git status") == "ask"


def test_git_in_a_folder_with_a_repository_of_its_own_asks(workspace: ShellWorkspace) -> None:
    for command in ("git -C src/a status", "cd src/a && git status"):
        assert outcome(workspace, command) == "allow"
    # Its settings are harmless, but it was not this one that the user trusted.
    shutil.copytree(workspace.root / ".git", workspace.root / "src" / ".git")
    for command in ("git -C src/a status", "cd src/a && git status"):
        assert outcome(workspace, command) == "ask"
    shutil.rmtree(workspace.root / "src" / ".git")
    bare(workspace.root / "src", EVIL)
    for command in ("git -C src/a status", "cd src/a && git status"):
        assert outcome(workspace, command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cp README.md src/HEAD && git -C src status",
        "(cp README.md src/HEAD); git -C src status",
        "for x in 1 2; do git -C src status; touch src/HEAD; done",
        "while read -r x; do git -C src status; touch src/HEAD; done < README.md",
    ],
)
def test_git_does_not_run_where_the_same_command_may_lay_out_a_repository(
    workspace: ShellWorkspace, command: str
) -> None:
    policy = workspace.policy(mode="accept-edits")
    assert workspace.decide(command, policy).outcome == "ask"
    # Git finds the repository in its own folder first.
    assert workspace.decide("touch x && git status", policy).outcome == "allow"
    (workspace.root / ".git").rename(workspace.outside / "git")
    assert workspace.decide("git status", policy).outcome == "allow"
    assert workspace.decide("touch x && git status", policy).outcome == "ask"


@pytest.mark.parametrize(
    ("text", "provided", "otherwise"),
    [
        ("[core]\n\thooksPath = .githooks\n", ".githooks/post-index-change", ".githooks/pre-commit"),
        ("[core] hooksPath = .githooks\n", ".githooks/post-index-change", "githooks/post-index-change"),
        ("[core]\n\tfsmonitor = .git/hooks/monitor\n", ".git/hooks/monitor", "monitor"),
        ('[diff "x"]\n\ttextconv = "tools/show --all"\n', "tools/show", "show"),
        ('[core]\n\tfsmonitor = true\n[filter "lfs"]\n\tclean = git-lfs clean -- %f\n', "", "git-lfs"),
    ],
)
def test_a_program_that_the_users_settings_find_in_the_work_tree_asks(
    workspace: ShellWorkspace, text: str, provided: str, otherwise: str
) -> None:
    (workspace.home / ".gitconfig").write_text(text)
    assert outcome(workspace, "git diff") == "allow"
    program(workspace.root / otherwise)
    assert outcome(workspace, "git diff") == "allow"
    if provided:
        program(workspace.root / provided)
        assert outcome(workspace, "git diff") == "ask"


@pytest.mark.parametrize("where", ["below", "behind a link", "in git's directory", "nowhere"])
@pytest.mark.parametrize("cause", ["sparse index", "settings", "included settings", "none"])
def test_a_repository_that_only_objects_may_name_as_a_submodule_asks(
    workspace: ShellWorkspace, cause: str, where: str
) -> None:
    (workspace.root / "sub" / ".git").rmdir()
    place = workspace.root / ".git"
    match where:
        case "below":
            (workspace.root / "docs" / "deep" / ".git").mkdir(parents=True)
        case "behind a link":
            (place / "objects" / "x" / "y" / ".git").mkdir(parents=True)
            (workspace.root / "docs" / "deep").symlink_to("../.git/objects/x/y")
        case "in git's directory":
            (place / "modules").mkdir()
        case _:
            pass
    settings = workspace.home / ".gitconfig"
    match cause:
        case "sparse index":
            (place / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\0sdir\0\0\0\0" + bytes(20))
        case "settings":
            settings.write_text("[diff]\n\tSubmodule = log\n")
        case "included settings":
            settings.write_text('[includeIf "gitdir:~/"]\n\tpath = "~/more"\n[include]\n\tpath = other\n')
            (workspace.home / "other").write_text("[submodule]\n\trecurse\n")
        case _:
            settings.write_text("[include]\n\tpath = missing\n")
    for command in ("git status", "git grep -n x HEAD", "git show"):
        expected = "allow" if cause == "none" or where == "nowhere" else "ask"
        assert outcome(workspace, command) == expected, command


def test_what_changes_below_a_folder_counts_at_once_though_listings_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "_SETTLED", -(10**18))  # folders count as settled at once
    facts, top = OsFacts({}), tmp_path / "work"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "plan.md").write_text("x")

    def secrets() -> list[str]:
        return [Path(path).name for path in facts.secrets_below(str(top), Reach()) or ()]

    def change(act: Callable[[], object], folder: Path) -> None:
        before = folder.stat().st_mtime_ns
        act()
        wait_until(lambda: (os.utime(folder), folder.stat().st_mtime_ns != before)[1])

    assert secrets() == []
    change((top / "a" / "b" / ".env").touch, top / "a" / "b")
    assert secrets() == [".env"]
    change(lambda: (top / "a" / "b").rename(top / "c"), top)
    assert secrets() == [".env"]
    change((top / "c" / ".env").unlink, top / "c")
    change(lambda: (top / "c" / "out").symlink_to("/etc"), top / "c")
    assert secrets() == []
    assert facts.leads_outside(str(top), (str(top),))
    assert not facts.leads_outside(str(top), (str(top),), ("*.py",))
    assert len(facts._listings._folders) > 2


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("find . -type f -exec grep -l x {} +", "allow"),
        ("find . -name '*.py' -exec grep -l x {} +", "allow"),
        ("find . -exec grep -l x {} +", "ask"),
        ("find . -exec grep -l x {} + -type f", "ask"),
        ("find . -print -name '*.py' | xargs grep x", "ask"),
        ("find . -name '*.py' -print0 | xargs -0 grep x", "allow"),
        ("find . -name '*' -exec grep -l x {} +", "ask"),
        ("find -L . -type f -exec grep -l x {} +", "ask"),
        ("find . -type f -o -exec grep -l x {} +", "ask"),
        ("find . ! -type f -exec grep -l x {} +", "ask"),
        ("git ls-files | xargs grep x", "allow"),
        ("git ls-files -o | xargs grep x", "ask"),
    ],
)
def test_only_links_that_are_listed_count(tmp_path: Path, command: str, expected: str) -> None:
    workspace = ShellWorkspace(tmp_path, secrets=False)
    workspace.link_outside()
    assert outcome(workspace, command) == expected


def test_find_shows_what_stands_before_its_tests(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path)
    assert outcome(workspace, "find . -name '*.py' -exec grep x {} +") == "allow"
    assert outcome(workspace, "find . -exec grep x {} + -name '*.py'") == "ask"
    assert outcome(workspace, "find . -print0 -name '*.py' | xargs -0 cat") == "ask"


def test_searches_pass_packages_and_keys_of_tests(tmp_path: Path) -> None:
    workspace = ShellWorkspace(tmp_path, secrets=False)
    for name in ("node_modules/x/.npmrc", "lib/site-packages/y/credentials.json", "tests/tls/server.pem"):
        (workspace.root / name).parent.mkdir(parents=True)
        (workspace.root / name).write_text("x")
    assert outcome(workspace, "grep -rn x .") == "allow"
    assert outcome(workspace, "cat tests/tls/server.pem") == "ask"
    (workspace.root / "tests" / ".env").write_text("x")
    assert outcome(workspace, "grep -rn x .") == "ask"
