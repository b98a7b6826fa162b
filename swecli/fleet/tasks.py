"""The list of tasks: JSON lines with swecli's fields or those of SWE-bench, or made from files, repositories, tests."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, cast, get_args

import msgspec
from msgspec import Struct

from swecli.core.edit_distance import nearest
from swecli.core.git import GitFailedError, git_facts, read_git
from swecli.lazy_pattern import lazy_pattern
from swecli.safe_text import safe_line

TaskMode = Literal["accept-edits", "auto", "plan", "default"]
TIMEOUT = 1_800.0
"""Seconds that setup, agent and check may each take, unless the task says otherwise."""
MOST_BYTES = 1_000_000_000
"""Bytes of the largest list that is read."""
_SECONDS = 20.0
_URL = lazy_pattern(r"(https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_GITHUB = lazy_pattern(r"[\w.-]+/[\w.-]+")
_ID = lazy_pattern(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,200}")
_HALF = lazy_pattern(r"[\ud800-\udfff]")
_FAILED = (
    lazy_pattern(r"^(?:FAILED|ERROR) (\S+::\S.*?)(?: - .*)?$", re.MULTILINE),  # pytest's short summary
    lazy_pattern(r"^\s*--- FAIL: (\S+)", re.MULTILINE),  # go test
    lazy_pattern(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", re.MULTILINE),  # unittest
    lazy_pattern(r"^test (\S+) \.\.\. FAILED$", re.MULTILINE),  # cargo test
)
"""Failing tests as the usual runners print them; the group is the test's name."""


class TaskListError(Exception):
    """A list can't be used. ``problems`` are sentences, one for each thing wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Task(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One task. ``repo`` is the absolute path of a git repository, or an address that git can clone; ``ref`` names the
    commit to begin at. ``setup`` and ``check`` are shell commands; the task is solved if ``check`` succeeds."""

    id: str
    repo: str
    prompt: str
    ref: str = "HEAD"
    setup: str = ""
    check: str = ""
    timeout: float = TIMEOUT
    """Seconds, for each of setup, agent and check."""
    max_price: str | None = None
    """US dollars as text."""
    max_tokens: int | None = None
    max_turns: int | None = None
    """Model steps."""
    model: str | None = None
    mode: TaskMode = "auto"
    env: Mapping[str, str] = {}
    """Variables for setup, agent and check."""
    test_patch: str = ""
    """A patch with tests that is applied before the check, after the agent's own patch was taken."""
    foreign: bool = False
    """Whether the prompt was written by others: it attaches nothing and is no command."""

    @property
    def is_remote(self) -> bool:
        return _URL.fullmatch(self.repo) is not None


FIELDS: Mapping[str, type] = {
    "id": str,
    "repo": str,
    "prompt": str,
    "ref": str,
    "setup": str,
    "check": str,
    "timeout": float,
    "max_price": Decimal,
    "max_tokens": int,
    "max_turns": int,
    "model": str,
    "mode": str,
    "env": dict,
    "test_patch": str,
}
"""Fields of a line, and the kind of their values."""
BENCHMARK_FIELDS: Mapping[str, str] = {
    "instance_id": "id",
    "base_commit": "ref",
    "problem_statement": "prompt",
    "repo": "repo",
    "test_patch": "test_patch",
}
"""Fields of SWE-bench's data sets, and what they mean here; their other fields are ignored."""


def defaults_of(values: Mapping[str, object]) -> dict[str, Any]:
    """The given values that are set, for tasks that do not have their own."""
    return {name: value for name, value in values.items() if value is not None}


def read_tasks(path: Path, defaults: Mapping[str, Any], base: Path) -> list[Task]:
    """The tasks of a file of JSON lines. Paths of repositories are relative to ``base``.

    Raises:
        TaskListError: the file can't be read, or something is wrong with its lines; all of it is named.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TaskListError([f"{path} is larger than {MOST_BYTES // 1_000_000_000} GB"])
        text = path.read_text(encoding="utf-8-sig", errors="strict")
    except OSError as error:
        raise TaskListError([f"{path} cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise TaskListError([f"{path} is not UTF-8 (byte {error.start:,})"]) from error
    problems: list[str] = []
    tasks: list[Task] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            task, wrong = task_of(line, defaults, base)
            problems += [f"{path.name}:{number}: {problem}" for problem in wrong]
            tasks += [task] if task is not None else []
    return checked(tasks, problems, path.name)


def checked(tasks: list[Task], problems: Sequence[str], name: str) -> list[Task]:
    """The tasks, if they can be run.

    Raises:
        TaskListError: there are problems already, an id occurs twice, or there is no task.
    """
    problems = [*problems, *duplicates(tasks)]
    if not tasks and not problems:
        problems.append(f"{name} has no task")
    if problems:
        raise TaskListError(problems)
    return tasks


def duplicates(tasks: Iterable[Task]) -> list[str]:
    """A sentence for each id that several tasks have."""
    counts = Counter(task.id for task in tasks)
    return [f"{count:,} tasks have the id {safe_line(name)!r}" for name, count in counts.items() if count > 1]


def task_of(line: str, defaults: Mapping[str, Any], base: Path) -> tuple[Task | None, list[str]]:
    """The task of one line, or what is wrong with it."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        return None, [f"not JSON ({str(error)[:100]})"]
    if not isinstance(entry, dict):
        return None, ["not a JSON object"]
    if _HALF.search(json.dumps(entry, ensure_ascii=False)):
        return None, ["a text has half a surrogate pair, which no file can hold"]
    fields = cast("dict[str, Any]", entry)
    foreign = "instance_id" in fields
    problems = [] if foreign else _unknown(fields)
    given: dict[str, Any] = {**defaults}
    for name, value in fields.items():
        own = BENCHMARK_FIELDS.get(name) if foreign else None
        own = own or (name if name in FIELDS else None)
        if own is not None and value is not None:
            given[own] = value
    given = {name: _fitting(name, value, problems) for name, value in given.items()}
    for name in ("id", "repo", "prompt"):
        if not str(given.get(name) or "").strip() and not any(f"{name} must" in problem for problem in problems):
            problems.append(f"{name} is missing")
    if given.get("mode", "auto") not in get_args(TaskMode) and given["mode"] is not None:
        problems.append(f"mode must be one of {', '.join(get_args(TaskMode))}, not {safe_line(given['mode'])[:40]!r}")
    if problems:
        return None, problems
    given["repo"] = repository(str(given["repo"]), base, benchmark=foreign)
    task = msgspec.convert({**given, "foreign": foreign}, Task)
    problems = wrong_values(task)
    return (None, problems) if problems else (task, [])


def _unknown(fields: Mapping[str, Any]) -> list[str]:
    problems: list[str] = []
    for name in fields:
        if name not in FIELDS:
            near = nearest(name, list(FIELDS))
            hint = f"; did you mean {near}?" if near else f" ({', '.join(FIELDS)} are known)"
            problems.append(f"unknown field {safe_line(name)[:80]!r}{hint}")
    return problems


def _fitting(name: str, value: Any, problems: list[str]) -> Any:
    """The value in its field's type; what does not fit is a problem."""
    kind = FIELDS[name]
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if kind is Decimal and (number or isinstance(value, str)):
        try:
            price = Decimal(str(value))
        except InvalidOperation:
            price = Decimal("NaN")
        if price.is_finite() and price > 0:
            return format(price, "f")
    elif kind is float and number and math.isfinite(value) and value > 0:
        return float(value)
    elif kind is int and isinstance(value, int) and number and value > 0:
        return value
    elif kind is dict and isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        if all(isinstance(each, str) and "\0" not in each for each in entries.values()):
            return entries
    elif kind is str and isinstance(value, str):
        return value
    words = {str: "text", dict: "an object of texts"}.get(kind, "a number above 0")
    problems.append(f"{name} must be {words}, not {json.dumps(value, default=str)[:60]}")
    return None


def wrong_values(task: Task) -> list[str]:
    """What is wrong with a task's values, without a look at its repository."""
    problems: list[str] = []
    if not _ID.fullmatch(task.id) or task.id.strip() != task.id or task.id in (".", ".."):
        problems.append("id must be 1 to 200 printable characters on one line")
    if not task.ref or task.ref.startswith("-") or any(char.isspace() or char == "\0" for char in task.ref):
        problems.append(f"ref {task.ref!r} cannot name a commit")
    if task.repo.startswith("-") or "\0" in task.repo or (not task.is_remote and "::" in task.repo):
        problems.append(f"repo {task.repo!r} is neither a path nor an address that swecli clones")
    problems += [f"env has the invalid name {name!r}" for name in task.env if not name or "=" in name or "\0" in name]
    problems += [
        f"{name} contains a null character" for name in ("prompt", "setup", "check") if "\0" in getattr(task, name)
    ]
    return problems


def repository(text: str, base: Path, *, benchmark: bool = False) -> str:
    """The absolute path of a repository, or its address. ``OWNER/NAME`` is one of GitHub in a benchmark's list, or if
    there is no such folder."""
    if _URL.fullmatch(text) or text.startswith("-") or "\0" in text:
        return text
    path = Path(os.path.expanduser(text))
    path = Path(os.path.abspath(path if path.is_absolute() else base / path))
    named = _GITHUB.fullmatch(text) and ".." not in text and not text.startswith(".")
    if named and not path.is_dir() and (benchmark or not path.exists()):
        return f"https://github.com/{text}"
    return str(path)


# --- a look at the repositories ---------------------------------------------------------------------------------


def missing(tasks: Sequence[Task], environment: Mapping[str, str], *, remote: bool) -> Iterator[str]:
    """A sentence for each repository that is missing and each ref that does not exist. ``remote``: addresses are asked,
    too."""
    refs: dict[str, dict[str, list[str]]] = {}
    for task in tasks:
        refs.setdefault(task.repo, {}).setdefault(task.ref, []).append(task.id)
    for repo, named in refs.items():
        first = next(iter(named.values()))[0]
        if _URL.fullmatch(repo):
            if remote and (problem := _unreachable(repo, environment)):
                yield f"{first}: {problem}"
            continue
        if git_facts(Path(repo)) is None and not (Path(repo) / "HEAD").is_file():
            what = "is not a git repository" if Path(repo).is_dir() else "does not exist"
            yield f"{first}: the repository {repo} {what}"
            continue
        for ref, ids in named.items():
            try:
                commit_of(repo, ref, environment)
            except GitFailedError as error:
                also = f" (and {len(ids) - 1:,} more tasks)" if len(ids) > 1 else ""
                yield f"{ids[0]}{also}: {repo} has no commit {ref!r} ({error.first_line})"


def _unreachable(repo: str, environment: Mapping[str, str]) -> str:
    try:
        read_git("git", "/", ("ls-remote", "--exit-code", "--", repo, "HEAD"), environment, _SECONDS, fetches=True)
    except GitFailedError as error:
        return f"cannot read {repo} ({error.first_line})"
    return ""


def commit_of(repo: str | Path, ref: str, environment: Mapping[str, str]) -> str:
    """The hash of the commit that a ref names; raises ``GitFailedError`` if it names none."""
    output = read_git(
        "git", repo, ("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}"), environment, _SECONDS
    )
    return output.decode().strip()


# --- lists that are made ----------------------------------------------------------------------------------------


def each_file(patterns: Sequence[str], folder: Path, template: str, defaults: Mapping[str, Any]) -> list[Task]:
    """A task for each tracked file that matches a pattern of git; ``{file}`` in prompt and check is its path.

    Raises:
        TaskListError: the folder is in no repository, or no file matches.
    """
    git = git_facts(folder)
    if git is None:
        raise TaskListError([f"--each needs a git repository; {folder} is in none"])
    specs = [pattern if pattern.startswith(":") else f":(glob){pattern}" for pattern in patterns]
    try:
        output = read_git("git", folder, ("ls-files", "-z", "--", *specs), dict(os.environ), _SECONDS)
    except GitFailedError as error:
        raise TaskListError([f"--each: {error.first_line}"]) from error
    names = sorted(filter(None, output.decode("utf-8", "surrogateescape").split("\0")))
    if not names:
        raise TaskListError([f"No tracked file matches {', '.join(patterns)}"])
    entries = [(name, {"file": shlex.quote(name)}, {"file": name}) for name in names]
    return _made(entries, str(git.root), template, defaults)


def each_repository(path: Path, template: str, defaults: Mapping[str, Any], base: Path) -> list[Task]:
    """A task for each line of a file that names a repository; ``{repo}`` in prompt and check is its name.

    Raises:
        TaskListError: the file can't be read or names none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskListError([f"{path} cannot be read: {error}"]) from error
    named = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    tasks: list[Task] = []
    problems: list[str] = []
    taken: dict[str, int] = {}
    for line in named:
        repo = repository(line, base)
        name = repo.rstrip("/").rpartition("/")[2].removesuffix(".git") or "repository"
        taken[name] = taken.get(name, 0) + 1
        name = name if taken[name] == 1 else f"{name}-{taken[name]}"
        try:
            tasks += _made([(name, {"repo": shlex.quote(name)}, {"repo": name})], repo, template, defaults)
        except TaskListError as error:
            problems += error.problems
    return checked(tasks, problems, path.name)


def failing_tests(output: str) -> list[str]:
    """The names of failing tests in the output of a test runner, in their order."""
    return list(dict.fromkeys(match[1] for pattern in _FAILED for match in pattern.finditer(output)))


def each_test(command: str, output: str, folder: Path, template: str, defaults: Mapping[str, Any]) -> list[Task]:
    """A task for each failing test in ``output`` of ``command``; ``{test}`` in prompt and check is its name. Without a
    check it is the command with the test's name behind it, if the tests are those of pytest, else the whole command.

    Raises:
        TaskListError: no failing test is named.
    """
    git = git_facts(folder)
    if git is None:
        raise TaskListError([f"--tests needs a git repository; {folder} is in none"])
    tests = failing_tests(output)
    if not tests:
        raise TaskListError(["The output of --tests names no failing test (pytest, unittest, go and cargo are known)"])
    if "check" not in defaults:
        alone = all("::" in test and " " not in test for test in tests) and "pytest" in command
        defaults = {**defaults, "check": f"{command} {{test}}" if alone else command}
    entries = [(test, {"test": shlex.quote(test)}, {"test": test}) for test in tests]
    return _made(entries, str(git.root), template, defaults)


def _made(
    entries: Sequence[tuple[str, Mapping[str, str], Mapping[str, str]]],
    repo: str,
    template: str,
    defaults: Mapping[str, Any],
) -> list[Task]:
    """Tasks by ids, with the words for their commands and for their prompts."""
    tasks: list[Task] = []
    problems: list[str] = []
    for name, quoted, plain in entries:
        given: dict[str, Any] = {**defaults, "id": name[:200], "repo": repo, "prompt": filled(template, plain)}
        given |= {field: filled(str(given[field]), quoted) for field in ("setup", "check") if field in given}
        task, wrong = task_of(json.dumps(given, default=str), {}, Path(repo))
        problems += [f"{safe_line(name)}: {problem}" for problem in wrong]
        tasks += [task] if task is not None else []
    return checked(tasks, problems, "the list")


def filled(template: str, words: Mapping[str, str]) -> str:
    """The template with each ``{word}``; other braces stay as they are."""
    for word, value in words.items():
        template = template.replace(f"{{{word}}}", value)
    return template


def task_line(task: Task) -> str:
    """The task as a line that ``read_tasks`` reads, with ``foreign`` only if it is."""
    return msgspec.json.encode(task).decode()


def task_from(line: str) -> Task:
    """The task of a line that ``task_line`` wrote."""
    return msgspec.json.decode(line, type=Task)
