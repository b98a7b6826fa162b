"""Lists of tasks: fields, defaults, everything that is wrong with them, lists made from other things."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from swecli.fleet.tasks import (
    TaskListError,
    each_file,
    each_repository,
    each_test,
    failing_tests,
    missing,
    read_tasks,
    task_from,
    task_line,
)


def listed(folder: Path, *entries: object) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in entries), "utf-8")
    return path


def repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "src").mkdir()
    (folder / "src" / "it's a file.py").write_text("x = 1\n")
    (folder / "b.py").write_text("y = 1\n")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "one")):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)
    return folder


def test_a_task_has_its_own_values_the_given_defaults_and_survives_its_line(tmp_path: Path) -> None:
    path = listed(
        tmp_path, {"id": "a", "repo": "r", "prompt": "p", "timeout": 5, "max_price": 0.1, "env": {"A": "b"}}, ""
    )
    (task,) = read_tasks(path, {"check": "make", "timeout": 9.0, "model": "x/y"}, tmp_path)
    assert (task.repo, task.timeout, task.check, task.model) == (str(tmp_path / "r"), 5.0, "make", "x/y")
    assert (task.max_price, task.mode, task.ref, task.env) == ("0.1", "auto", "HEAD", {"A": "b"})
    assert task_from(task_line(task)) == task


def test_lines_of_swe_bench_are_understood_as_they_are(tmp_path: Path) -> None:
    entry = {
        "instance_id": "django__django-1",
        "repo": "django/django",
        "base_commit": "abc123",
        "problem_statement": "/admin is broken",
        "test_patch": "diff",
        "hints_text": "",
        "FAIL_TO_PASS": "[]",
        "version": "3.0",
    }
    (task,) = read_tasks(listed(tmp_path, entry), {}, tmp_path)
    assert (task.id, task.repo, task.ref) == ("django__django-1", "https://github.com/django/django", "abc123")
    assert (task.prompt, task.test_patch, task.foreign) == ("/admin is broken", "diff", True)
    assert task.is_remote


def test_everything_wrong_with_a_list_is_named_by_line(tmp_path: Path) -> None:
    path = listed(
        tmp_path,
        "{broken",
        "[]",
        {"id": "a", "repo": "r", "promt": "p"},
        {"id": "b\n", "repo": "--upload-pack=x", "prompt": "p", "ref": "-x", "timeout": -1},
        {"id": "b", "repo": "ext::sh -c x", "prompt": "p", "mode": "yolo", "max_tokens": True, "env": {"A": 1}},
        {"id": "c", "repo": "r", "prompt": "p"},
        {"id": "c", "repo": "r", "prompt": "q"},
        {"id": "d", "repo": "r", "prompt": "p", "max_price": "NaN"},
    )
    with pytest.raises(TaskListError) as refused:
        read_tasks(path, {}, tmp_path)
    problems = "\n".join(refused.value.problems)
    for part in (
        "tasks.jsonl:1: not JSON",
        "tasks.jsonl:2: not a JSON object",
        "tasks.jsonl:3: unknown field 'promt'; did you mean prompt?",
        "tasks.jsonl:3: prompt is missing",
        "tasks.jsonl:4: timeout must be a number above 0, not -1",
        "tasks.jsonl:5: max_tokens must be a number above 0, not true",
        "tasks.jsonl:5: env must be an object of texts",
        "2 tasks have the id 'c'",
        "tasks.jsonl:8: max_price must be a number above 0",
    ):
        assert part in problems


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ({"id": "b\n"}, "id must be"),
        ({"id": ".."}, "id must be"),
        ({"repo": "--upload-pack=x"}, "neither a path nor an address"),
        ({"repo": "ext::sh -c x"}, "neither a path nor an address"),
        ({"ref": "--all"}, "cannot name a commit"),
        ({"mode": "yolo"}, "mode must be one of"),
        ({"env": {"A=B": "c"}}, "invalid name"),
        ({"check": "a\0b"}, "null character"),
        ({"prompt": "\ud800"}, "half a surrogate pair"),
    ],
)
def test_a_value_that_cannot_work_is_refused(tmp_path: Path, entry: dict[str, object], part: str) -> None:
    path = listed(tmp_path, {"id": "a", "repo": "r", "prompt": "p", **entry})
    with pytest.raises(TaskListError, match=part):
        read_tasks(path, {}, tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe{}"])
def test_an_empty_list_or_one_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(content)
    with pytest.raises(TaskListError, match=r"no task|not UTF-8"):
        read_tasks(path, {}, tmp_path)
    with pytest.raises(TaskListError, match="cannot be read"):
        read_tasks(tmp_path / "none", {}, tmp_path)


def test_missing_repositories_and_refs_are_named_before_anything_runs(tmp_path: Path) -> None:
    repository(tmp_path / "r")
    (tmp_path / "plain").mkdir()
    entries = (
        {"id": "good", "repo": "r", "prompt": "p"},
        {"id": "ref", "repo": "r", "prompt": "p", "ref": "v9"},
        {"id": "none", "repo": "nowhere", "prompt": "p"},
        {"id": "plain", "repo": "plain", "prompt": "p"},
        {"id": "far", "repo": "https://127.0.0.1:1/x.git", "prompt": "p"},
    )
    tasks = read_tasks(listed(tmp_path, *entries), {}, tmp_path)
    problems = list(missing(tasks, dict(os.environ), remote=False))
    assert len(problems) == 3
    assert problems[0].startswith("ref: ")
    assert "has no commit 'v9'" in problems[0]
    assert "does not exist" in problems[1]
    assert "is not a git repository" in problems[2]
    assert any(each.startswith("far: cannot read") for each in missing(tasks, dict(os.environ), remote=True))


def test_a_task_for_each_file_quotes_its_name_for_the_shell_only(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r")
    tasks = each_file(["**/*.py"], repo, "Migrate {file}, not {this}", {"check": "python -m py_compile {file}"})
    assert [task.id for task in tasks] == ["b.py", "src/it's a file.py"]
    assert tasks[1].prompt == "Migrate src/it's a file.py, not {this}"
    assert tasks[1].check == """python -m py_compile 'src/it'"'"'s a file.py'"""
    assert {task.repo for task in tasks} == {str(repo)}
    with pytest.raises(TaskListError, match="No tracked file matches"):
        each_file(["*.rs"], repo, "x", {})


def test_a_task_for_each_repository_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "repos").write_text("# ours\none/api\n\nhttps://example.org/two/api.git\n")
    (tmp_path / "one" / "api").mkdir(parents=True)
    tasks = each_repository(tmp_path / "repos", "Upgrade {repo}", {}, tmp_path)
    assert [(task.id, task.prompt) for task in tasks] == [("api", "Upgrade api"), ("api-2", "Upgrade api-2")]
    assert [task.is_remote for task in tasks] == [False, True]


OUTPUTS = {
    "pytest": ("FAILED tests/test_a.py::test_x[a b] - assert 1 == 2\nERROR tests/b.py::test_y\n", 2),
    "go": ("--- FAIL: TestSum (0.00s)\n    --- FAIL: TestSum/zero (0.00s)\n", 2),
    "unittest": ("FAIL: test_it (tests.test_a.Case)\n", 1),
    "cargo": ("test tests::adds ... FAILED\ntest tests::ok ... ok\n", 1),
    "nothing": ("all is well\n", 0),
}


@pytest.mark.parametrize(("output", "count"), OUTPUTS.values(), ids=OUTPUTS)
def test_failing_tests_are_read_from_the_usual_runners(output: str, count: int) -> None:
    assert len(failing_tests(output)) == count


def test_a_task_for_each_failing_test_checks_that_test_alone(tmp_path: Path) -> None:
    repo = repository(tmp_path / "r")
    tasks = each_test("pytest -q", "FAILED t.py::test_a - x\nFAILED t.py::test_b[1]\n", repo, "Fix {test}", {})
    assert [task.check for task in tasks] == ["pytest -q t.py::test_a", "pytest -q 't.py::test_b[1]'"]
    with pytest.raises(TaskListError, match="no failing test"):
        each_test("pytest", "1 passed", repo, "x", {})
