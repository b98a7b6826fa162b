"""The working tree against a revision, by a real git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from swecli.core.checkpoints import git_changes as module
from swecli.core.checkpoints.git_changes import GitChanges, GitRefused, against, still_staged

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}


def git(work: Path, *arguments: str) -> None:
    names = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false")
    subprocess.run([str(GIT), *names, "-C", str(work), *arguments], check=True, capture_output=True, env=ENVIRONMENT)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "work"
    root.mkdir()
    git(root, "init")
    (root / "a.py").write_text("one\n")
    (root / "gone.py").write_text("gone\n")
    (root / "build").mkdir()
    (root / "build" / "tracked.sh").write_text("x\n")
    (root / ".gitignore").write_text("*.log\nout/\n")
    git(root, "add", "-A", "-f")
    git(root, "commit", "-m", "first")
    return root


def differs(
    work: Path, revision: str = "HEAD", below: str = ""
) -> tuple[dict[str, tuple[str | None, str | None]], GitChanges]:
    found = against(revision, str(work), (str(work),), ENVIRONMENT, below)
    return {os.path.relpath(one.path, work): (one.old, one.new) for one in found.files}, found


def test_changed_removed_staged_and_untracked_files_of_the_whole_tree(work: Path) -> None:
    assert differs(work)[0] == {}
    (work / "a.py").write_text("two\n")
    (work / "gone.py").unlink()
    (work / "staged é.txt").write_text("s\n")
    git(work, "add", "staged é.txt")
    (work / "sub").mkdir()
    (work / "sub" / "new.txt").write_text("n\n")
    (work / "noise.log").write_text("ignored\n")
    expected = {
        "a.py": ("one\n", "two\n"),
        "gone.py": ("gone\n", None),
        "staged é.txt": (None, "s\n"),
        "sub/new.txt": (None, "n\n"),
    }
    assert differs(work)[0] == expected
    assert differs(work / "sub")[0] == {
        os.path.join("..", k) if not k.startswith("sub/") else "new.txt": v for k, v in expected.items()
    }
    assert list(differs(work, below=str(work / "sub"))[0]) == ["sub/new.txt"]


def test_generated_folders_are_counted_but_what_git_tracks_there_is_shown(work: Path) -> None:
    (work / "build" / "tracked.sh").write_text("y\n")
    (work / "build" / "made.o").write_text("o\n")
    (work / "node_modules" / "p").mkdir(parents=True)
    for number in range(3):
        (work / "node_modules" / "p" / f"{number}.js").write_text("j\n")
    names, found = differs(work)
    assert list(names) == ["build/tracked.sh"]
    assert found.generated.line(work) == "and 4 files in generated folders (build/, node_modules/)"
    assert "build/made.o" in differs(work, below=str(work / "build"))[0]


def test_what_is_no_text_is_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "a.py").write_bytes(b"\0\1")
    (work / "gone.py").chmod(0o755)
    (work / "link").symlink_to("a.py")
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    (work / "large").write_text("x" * 200)
    notes = {os.path.basename(one.path): one.note for one in differs(work)[1].files}
    assert notes == {
        "a.py": "binary, 2 bytes",
        "gone.py": "mode 644 -> 755",
        "link": "a link to a.py",
        "large": "200 bytes, too large to show",
    }


def test_another_revision_and_a_repository_without_commits(work: Path, tmp_path: Path) -> None:
    git(work, "tag", "v1")
    (work / "a.py").write_text("two\n")
    git(work, "commit", "-am", "second")
    assert differs(work, "v1")[0] == {"a.py": ("one\n", "two\n")}
    assert differs(work)[0] == {}
    new = tmp_path / "new"
    new.mkdir()
    git(new, "init")
    (new / "f").write_text("f\n")
    assert differs(Path(os.path.realpath(new)))[0] == {"f": (None, "f\n")}


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", "HEAD..v1", "", "a b", "HEAD:a.py"])
def test_a_revision_that_is_none_is_told(work: Path, revision: str) -> None:
    with pytest.raises(GitRefused, match="unknown git revision") as caught:
        differs(work, revision)
    assert caught.value.kind == "no revision"
    assert not (work / "x").exists()


def test_without_git_one_clause_says_so(tmp_path: Path, work: Path) -> None:
    with pytest.raises(GitRefused, match="not in a git repository"):
        differs(tmp_path)
    with pytest.raises(GitRefused, match="git is not installed"):
        against("HEAD", str(work), (str(work),), {"PATH": str(tmp_path)})


def test_no_program_that_the_repository_chose_runs(work: Path) -> None:
    ran = work.parent / "ran"
    (work / "a.py").write_text("two\n")
    git(work, "config", "filter.x.clean", f"touch {ran}")
    (work / ".gitattributes").write_text("*.py filter=x\n")
    with pytest.raises(GitRefused, match="might run a program") as caught:
        differs(work)
    assert caught.value.kind == "unsafe"
    assert not ran.exists()


def test_an_untracked_repository_is_named(work: Path) -> None:
    inner = work / "vendor" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init")
    (inner / "x.py").write_text("x\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-m", "one")
    shown, found = differs(work)
    assert (shown, found.nested) == ({}, (str(inner),))
    assert differs(work, below=str(work / "vendor"))[1].nested == (str(inner),)
    assert differs(work, below=str(inner / "x.py"))[1].nested == (str(inner),)
    assert differs(work, below=str(work / "build"))[1].nested == ()


def test_a_sparse_checkout_is_compared(work: Path) -> None:
    (work / "far").mkdir()
    (work / "far" / "b.py").write_text("b\n")
    git(work, "add", "-A")
    git(work, "commit", "-m", "second")
    git(work, "sparse-checkout", "set", "--sparse-index", "build")
    assert not (work / "far").exists()
    assert differs(work)[0] == {}
    (work / "a.py").write_text("two\n")
    assert differs(work)[0] == {"a.py": ("one\n", "two\n")}


def test_of_a_submodule_only_the_commit_is_compared(work: Path) -> None:
    sub = work / "sub"
    sub.mkdir()
    git(sub, "init", "-q")
    (sub / "x.py").write_text("one\n")
    git(sub, "add", "x.py")
    git(sub, "commit", "-qm", "one")
    first = (sub / ".git" / "refs" / "heads" / "main").read_text()
    git(work, "add", "sub")  # as a gitlink
    assert differs(work)[0] == {"sub": (None, f"Subproject commit {first}")}
    git(work, "commit", "-qm", "sub")
    (sub / "x.py").write_text("two\n")
    assert differs(work)[0] == {}
    git(sub, "commit", "-qam", "two")
    second = (sub / ".git" / "refs" / "heads" / "main").read_text()
    assert differs(work)[0] == {"sub": (f"Subproject commit {first}", f"Subproject commit {second}")}
    shutil.rmtree(sub)
    assert differs(work)[0] == {"sub": (f"Subproject commit {first}", None)}
    sub.mkdir()
    assert differs(work)[0] == {}  # one that was never fetched


def test_what_is_staged_otherwise_than_committed_and_present(work: Path) -> None:
    (work / "new [1].txt").write_text("n\n")
    (work / "a.py").write_text("two\n")
    git(work, "add", "new [1].txt", "a.py")
    (work / "as staged.txt").write_text("s\n")
    git(work, "add", "as staged.txt")
    git(work, "rm", "-q", "--cached", "gone.py")
    (work / "new [1].txt").unlink()
    (work / "a.py").write_text("one\n")
    names = ("new [1].txt", "a.py", "as staged.txt", "gone.py", "nowhere")
    paths = [*(str(work / name) for name in names), str(work.parent / "outside")]
    found = still_staged(paths, str(work), (str(work),), ENVIRONMENT)
    assert sorted(found) == sorted(str(work / name) for name in ("new [1].txt", "a.py", "gone.py"))
    assert still_staged(paths[-1:], str(work), (str(work),), ENVIRONMENT) == []
    with pytest.raises(GitRefused):
        still_staged(paths, str(work.parent), (str(work.parent),), ENVIRONMENT)
