"""What is ignored, and walking without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from swecli.core.workspace.walk import IgnoreRules, walk


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def paths(root: Path, start: str = ".", max_depth: int | None = None) -> list[str]:
    place = (root / start).resolve()
    return [entry.path + "/" * entry.is_dir for entry in walk(place, (root,), max_depth=max_depth)]


FILES = {
    ".gitignore": "*.log\n!keep.log\nbuild/\n/only_root\n",
    ".git/config": "",
    ".git/info/exclude": "secret.txt\n",
    "a.log": "",
    "keep.log": "",
    "secret.txt": "",
    "build/out.txt": "",
    "only_root": "",
    "src/.gitignore": "!a.log\ngenerated*\n",
    "src/a.log": "",
    "src/only_root": "",
    "src/generated.py": "",
    "src/main.py": "",
    ".github/ci.yml": "",
}


def test_nested_rules_count_and_deeper_ones_win(tmp_path: Path) -> None:
    assert paths(tree(tmp_path, FILES)) == [
        ".gitignore",
        "keep.log",
        ".github/",
        ".github/ci.yml",
        "src/",
        "src/.gitignore",
        "src/a.log",
        "src/main.py",
        "src/only_root",
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_agrees_with_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    tree(tmp_path, {name: text for name, text in FILES.items() if name != ".git/config"})
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.split()
    assert sorted(path for path in paths(tmp_path) if not path.endswith("/")) == sorted(listed)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_in_a_large_tree_only_paths_that_a_rule_may_match_are_compared_with_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    tree(tmp_path, {".gitignore": "*.log\n!keep*.log\n/top/*/LICENSE\n!/top/p3/LICENSE\nout\n!**/fixtures/**/out\n"})
    names = ("a.py", "b.py", "x.log", "keep.log", "fixtures/out/y.py", "LICENSE", "out/z.py", "é.txt")
    tree(tmp_path, {f"top/p{number}/{name}": "" for number in range(200) for name in names})
    listed = subprocess.run(
        ["git", "-c", "core.quotePath=false", "ls-files", "--others", "--exclude-standard"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    asked: list[str] = []
    check = GitIgnoreSpec.check_file
    monkeypatch.setattr(GitIgnoreSpec, "check_file", lambda spec, path: asked.append(path) or check(spec, path))
    assert sorted(path for path in paths(tmp_path) if not path.endswith("/")) == sorted(listed)
    assert not [path for path in asked[1_000:] if path.endswith(("/a.py", "/b.py"))]


def test_other_ignore_files_and_their_order(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "*.a\n*.b\n", ".ignore": "!x.a\n*.c\n", ".swecliignore": "!x.b\nx.c\n*.d\n"})
    tree(tmp_path, {f"x.{end}": "" for end in "abcde"})
    assert [path for path in paths(tmp_path) if path.startswith("x")] == ["x.a", "x.b", "x.e"]


def test_an_ignored_directory_can_be_walked_by_name(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "vendor/\n", "vendor/lib/a.py": "", "vendor/.gitignore": "*.o\n", "vendor/b.o": ""})
    assert paths(tmp_path) == [".gitignore"]
    assert paths(tmp_path, "vendor") == [".gitignore", "lib/", "lib/a.py"]
    assert paths(tmp_path, "vendor/lib") == ["a.py"]


def test_rules_above_a_subdirectory_count(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "src/*.tmp\n", "src/a.tmp": "", "src/a.py": ""})
    (tmp_path / ".git").mkdir()
    assert paths(tmp_path, "src") == ["a.py"]


def test_depth_links_and_unreadable_things(tmp_path: Path) -> None:
    tree(tmp_path, {"a/b/c/d.txt": "", "e.txt": ""})
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / ".ignore")
    assert paths(tmp_path, max_depth=2) == [".ignore", "e.txt", "loop", "a/", "a/b/"]


def test_broken_and_hostile_patterns_do_no_harm(tmp_path: Path) -> None:
    name = "a" * 200
    tree(tmp_path, {".gitignore": f"!\n[\n{'*a' * 20}b\n{'**/a/' * 20}b\n*.log\n", name: "", "x.log": ""})
    start = time.process_time()
    assert paths(tmp_path) == [".gitignore", name]
    assert time.process_time() - start < 2


def test_ignored_looks_at_the_directories_above(tmp_path: Path) -> None:
    rules = IgnoreRules(tree(tmp_path, {".gitignore": "out/\n"}))
    assert rules.ignored("out/deep/a.py", False)
    assert rules.ignored("x/.git/config", False)
    assert not rules.ignored("src/a.py", False)


def test_own_logs_are_no_part_of_a_project(tmp_path: Path) -> None:
    names = (".swecli/logs/a.log", ".swecli/config.toml", "logs/b.txt", "sub/.swecli/logs/c.log")
    tree(tmp_path, dict.fromkeys(names, ""))
    assert paths(tmp_path) == [".swecli/", ".swecli/config.toml", "logs/", "logs/b.txt", "sub/", "sub/.swecli/"]


@pytest.mark.parametrize("start", ["main", "linked", "module", "pointed"])
def test_the_own_ignore_file_of_a_repository_counts_in_all_its_work_trees(tmp_path: Path, start: str) -> None:
    tree(
        tmp_path,
        {
            "main/.git/info/exclude": "private/\n",
            "main/.git/worktrees/linked/commondir": "../..\n",
            "linked/.git": f"gitdir: {tmp_path}/main/.git/worktrees/linked\n",
            "main/.git/modules/m/info/exclude": "private/\n",
            "module/.git": "gitdir: ../main/.git/modules/m\n",
            f"{start}/private/file": "",
            f"{start}/file": "",
        },
    )
    if start == "pointed":
        (tmp_path / "pointed/.git").symlink_to(tmp_path / "main/.git")
    assert paths(tmp_path / start) == ["file"]
