"""Questions that 40 everyday tasks ask, by mode: the real session, tools and permissions with a scripted model.

The user answers with "don't ask again" where it is offered, else with yes. Programs that tasks start (pytest, cargo,
docker, ...) do nothing here: what counts is what is asked about. `python -m benchmarks.everyday` names each task.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from swecli.core.protocol.commands import ReplyPermission, Submit
from swecli.core.protocol.events import Mode, PermissionRequested, TurnEnded
from swecli.launch import LaunchOptions

TASKS = Path(__file__).parents[1] / "tests" / "data" / "everyday-tasks.txt"
MODES: tuple[tuple[str, Mode], ...] = (
    ("default", "default"),
    ("accept-edits", "accept-edits"),
    ("auto", "auto"),
    ("auto without bubblewrap", "auto"),
)
_PROGRAMS = """pytest uv mypy ruff black coverage poetry npm npx pnpm node cargo go gofmt make docker mkdocs git python
  python3"""
_FOLDERS = ("templates/mail", "web/src", "src/components", "docs")


@dataclass(frozen=True, slots=True)
class Task:
    """``first`` and ``then`` are the calls of two requests, as (kind, text)."""

    name: str
    first: tuple[tuple[str, str], ...]
    then: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the two requests asked about, as the titles of the calls."""

    first: tuple[str, ...]
    then: tuple[str, ...]


def read_tasks(path: Path = TASKS) -> list[Task]:
    found: list[Task] = []
    for block in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, body = block.partition("\n")
        parts = [tuple(_call(line) for line in part.splitlines() if line.strip()) for part in body.split("\n--\n")]
        found.append(Task(name.strip(), parts[0], parts[1]))
    return found


def _call(line: str) -> tuple[str, str]:
    kind, _, text = line.strip().partition(" ")
    return kind, text


def laid_out(task: Task, base: Path, *, bubblewrap: bool) -> Path:
    """The project that the task works in, with programs that do nothing. Without bubblewrap there is one that fails."""
    root, tools = base / "home" / "project", base / "bin"
    calls = (*task.first, *task.then)
    made = {text for kind, text in calls if kind == "write"}
    named = {text for kind, text in calls if kind in ("read", "edit")}
    named |= {word for kind, text in calls if kind == "run" for word in re.findall(r"[\w./-]+\.\w+", text)}
    for name in (".git/objects", ".git/refs/heads", *_FOLDERS):
        (root / name).mkdir(parents=True, exist_ok=True)
    outputs = {"report.txt", "src/core/util.py", "src/core/extra.py", "templates/about.html"}
    for name in sorted(
        {*named, "README.md", "package.json", "templates/mail/body.html", "src/calc.py"} - made - outputs
    ):
        path = root / name
        if not name.startswith("/") and not any(part in name for part in (".venv", "letter", "big_parts")):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n" if name == "package.json" else "value 0\n", encoding="utf-8")
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (root / ".git" / "config").write_text("[core]\n\tbare = false\n", encoding="utf-8")
    failing = () if bubblewrap else (tools / "bwrap",)
    for program in [
        *failing,
        *(tools / name for name in _PROGRAMS.split()),
        *(root / name for name in (".venv/bin/python", "node_modules/.bin/prettier", "gradlew")),
    ]:
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\nexit {int(program in failing)}\n", encoding="utf-8")
        program.chmod(0o755)
    return root


def script_of(task: Task) -> str:
    """The model's side as a script: one call a step."""
    edits: dict[str, int] = {}
    steps = ['window = 200000\nchunk = "whole"\n']
    for calls in (task.first, task.then):
        for kind, text in calls:
            tool, arguments = _arguments(kind, text, edits)
            fields = ", ".join(f"{name} = {json.dumps(value)}" for name, value in arguments.items())
            steps.append(f"[[step]]\ncall = [{{ tool = '{tool}', arguments = {{ {fields} }} }}]\n")
        steps.append("[[step]]\ntext = 'Done.'\n")
    return "\n".join(steps)


def _arguments(kind: str, text: str, edits: dict[str, int]) -> tuple[str, dict[str, object]]:
    match kind:
        case "run":
            return "run_command", {"command": text}
        case "read":
            return "read_file", {"path": text}
        case "list":
            return "list_files", {"path": text}
        case "search":
            pattern, _, path = text.partition(" ")
            return "search", {"pattern": pattern, "path": path or "."}
        case "write":
            edits[text] = 0
            return "write_file", {"path": text, "content": "value 0\n"}
        case "edit":
            number = edits.get(text, 0)
            edits[text] = number + 1
            return "edit_file", {"path": text, "old_string": f"value {number}", "new_string": f"value {number + 1}"}
        case _:
            raise ValueError(f"unknown call {kind!r}")


async def asked(task: Task, mode: Mode, *, bubblewrap: bool = True) -> Asked:
    """Do the task in a session of its own, in the environment of this process."""
    from swecli.app import open_session

    with tempfile.TemporaryDirectory(dir=Path.home()) as name:
        base = Path(name)
        root = laid_out(task, base, bubblewrap=bubblewrap)
        script = base / "script.toml"
        script.write_text(script_of(task), encoding="utf-8")
        with _environment(base):
            options = LaunchOptions(cwd=root, script=script, headless=True, mode=mode, store=False, trust="session")
            session = await open_session(options)
        try:
            found: list[tuple[str, ...]] = []
            events = session.subscribe()
            for prompt in ("Please do it.", "And now the next one."):
                titles: list[str] = []
                session.send(Submit(prompt))
                async for event in events:
                    match event.body:
                        case PermissionRequested() as request:
                            titles.append(f"{request.tool} {request.title}")
                            choice = "always" if request.rule is not None else "once"
                            session.send(ReplyPermission(request.request, choice))
                        case TurnEnded():
                            break
                        case _:
                            pass
                found.append(tuple(titles))
            return Asked(found[0], found[1])
        finally:
            await session.close()


@contextmanager
def _environment(base: Path) -> Iterator[None]:
    """Programs and home of the task for what is started here."""
    own = {"HOME": str(base / "home"), "PATH": f"{base / 'bin'}:/usr/bin:/bin", "SWECLI_HOME": str(base / "swecli")}
    with patch.dict(os.environ, own):
        yield


async def measure(tasks: Sequence[Task], mode: Mode, *, bubblewrap: bool = True) -> list[Asked]:
    return [await asked(task, mode, bubblewrap=bubblewrap) for task in tasks]


def figures(found: Sequence[Asked]) -> tuple[float, int, float, int]:
    """Median and sum of the questions of the first request, and of the second."""
    first, then = [len(one.first) for one in found], [len(one.then) for one in found]
    return statistics.median(first), sum(first), statistics.median(then), sum(then)


def run() -> list[tuple[str, float, str]]:
    tasks = read_tasks()
    rows: list[tuple[str, float, str]] = []
    for name, mode in MODES:
        found = asyncio.run(measure(tasks, mode, bubblewrap="without" not in name))
        first, first_sum, then, then_sum = figures(found)
        rows.append((f"{name}: questions of the first request, median", first, f"    (all tasks: {first_sum})"))
        rows.append((f"{name}: after the first answers, median", then, f"    (all tasks: {then_sum})"))
    return rows


def main() -> int:
    tasks = read_tasks()
    for label, mode in MODES:
        if sys.argv[1:] and label not in sys.argv[1:]:
            continue
        found = asyncio.run(measure(tasks, mode, bubblewrap="without" not in label))
        print(label, figures(found))
        for task, one in zip(tasks, found, strict=True):
            print(f"  {task.name}: {len(one.first)}, then {len(one.then)} {list(one.then)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
