"""Whether work that stumbles comes to its end: 150 scripted tasks, each with one fault, through the real session.

This measures swecli, not a model: the model's part is written down, and it does the next sensible thing when a call
fails. What is checked is what the program is responsible for. The fault ends nothing, the model is told what it needs
to go on (each step names what must be in the newest results), the files at the end are byte for byte those of a run
without the fault, and the user is asked about what changes something and about nothing else. A server on loopback
answers in each provider's protocol in turn, as strict with requests as the real ones.

``python -m benchmarks.recovery [FAULT ...]`` names every task that failed.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import msgspec

from swecli.core.llm.scripted import Arguments, Condition, Fault, Script, ScriptedCall, Step, Texts
from swecli.core.protocol.commands import ReplyPermission, Submit
from swecli.core.protocol.events import (
    CompactionCompleted,
    ItemCompleted,
    Mode,
    PermissionRequested,
    QuestionAsked,
    TurnEnded,
)
from swecli.core.protocol.messages import ToolResultPart
from swecli.launch import LaunchOptions
from tests.support.loopback import LoopbackServer

MODELS = {
    "openai": "openai/scripted",
    "anthropic": "anthropic/scripted",
    "responses": "resp/scripted",
    "gemini": "gemini/scripted",
    "ollama": "ollama/scripted",
}
"""A model for each protocol."""
MODES: tuple[Mode, ...] = ("default", "auto")
SETTINGS = '[providers.resp]\nprotocol = "openai-responses"\nbase_url = "{url}/v1"\n'
SUMMARY = "Goal: do what was asked. Done so far: the large files were read. Next: change the file."
CHECK = "python3 check.py"
LARGE = "".join(f"{number:05d} a line of a large file that says little\n" for number in range(1_500))
TRUE_WINDOW = 20_000
"""Tokens of the server in tasks that overflow; swecli believes in more until it is told."""


# --- tasks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Act:
    """One call of the model. ``asks``: it changes something, so default mode asks about it."""

    tool: str
    arguments: Mapping[str, object]
    asks: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """``target`` is read, then changed by ``acts``. ``old`` is the line of it that changes, ``again`` one that it
    has twice. ``after`` is what the files are at the end; a file that is not named is as before."""

    name: str
    files: Mapping[str, bytes]
    target: str
    old: str
    acts: tuple[Act, ...]
    after: Mapping[str, bytes | None]
    again: str = "# same"

    @property
    def missing(self) -> str:
        """A path that is not there, one letter away from the target."""
        folder, _, name = self.target.rpartition("/")
        return f"{folder}/{name[0]}{name}" if folder else f"{name[0]}{name}"


def _edit(path: str, old: str, new: str) -> Act:
    return Act("edit_file", {"path": path, "old_string": old, "new_string": new})


def _write(path: str, content: str) -> Act:
    return Act("write_file", {"path": path, "content": content})


def _run(command: str, *, asks: bool = True, timeout: int | None = None) -> Act:
    limit = {} if timeout is None else {"timeout": timeout}
    return Act("run_command", {"command": command, **limit}, asks)


def _python(line: str) -> str:
    return f"# same\ndef value(n: int) -> int:\n    {line}\n\n\n# same\nLAST = 1\n"


def tasks() -> list[Task]:
    """Ten small pieces of work that change files in different ways."""
    pricing = _python("return n > 10")
    settings = '{\n  "# same": 1,\n  "retries": 3,\n  "more": {"# same": 1}\n}\n'
    guide = "# Guide\n# same\nInstall it.\n# same\nRun it.\n"
    table = "# same\r\nname,price\r\napple,10\r\n# same\r\n"
    script = "#!/bin/sh\n# same\nPORT=8080\n# same\nexec serve --port $PORT\n"
    main = "# same\npackage main\n\nconst limit = 5\n# same\n"
    return [
        Task(
            "compare",
            {"shop/pricing.py": pricing.encode()},
            "shop/pricing.py",
            "return n > 10",
            (_edit("shop/pricing.py", "n > 10", "n >= 10"),),
            {"shop/pricing.py": pricing.replace("n > 10", "n >= 10").encode()},
        ),
        Task(
            "setting",
            {"config/settings.json": settings.encode()},
            "config/settings.json",
            '"retries": 3,',
            (_edit("config/settings.json", '"retries": 3', '"retries": 5'),),
            {"config/settings.json": settings.replace(": 3", ": 5").encode()},
        ),
        Task(
            "several places",
            {"docs/guide.md": guide.encode()},
            "docs/guide.md",
            "Install it.",
            (
                Act(
                    "edit_file",
                    {
                        "path": "docs/guide.md",
                        "edits": [
                            {"old_string": "Install it.", "new_string": "Install it with pip."},
                            {"old_string": "Run it.", "new_string": "Run it twice."},
                        ],
                    },
                ),
            ),
            {
                "docs/guide.md": guide.replace("it.\n# ", "it with pip.\n# ")
                .replace("Run it.", "Run it twice.")
                .encode()
            },
        ),
        Task(
            "line endings",
            {"data/prices.csv": table.encode()},
            "data/prices.csv",
            "apple,10",
            (_edit("data/prices.csv", "apple,10", "apple,12"),),
            {"data/prices.csv": table.replace("10", "12").encode()},
        ),
        Task(
            "latin-1",
            {"src/größe.py": "# same\n# coding: latin-1\nNAME = 'gr\xfcn'\n# same\n".encode("latin-1")},
            "src/größe.py",
            "# coding: latin-1",
            (_edit("src/größe.py", "# coding: latin-1", "# -*- coding: latin-1 -*-"),),
            {"src/größe.py": "# same\n# -*- coding: latin-1 -*-\nNAME = 'gr\xfcn'\n# same\n".encode("latin-1")},
        ),
        Task(
            "new file beside",
            {"lib/names.py": _python("return n").encode()},
            "lib/names.py",
            "return n",
            (
                _edit("lib/names.py", "    return n\n", "    return double(n)\n"),
                _write("lib/double.py", "def double(n: int) -> int:\n    return 2 * n\n"),
            ),
            {
                "lib/names.py": _python("return double(n)").encode(),
                "lib/double.py": b"def double(n: int) -> int:\n    return 2 * n\n",
            },
        ),
        Task(
            "whole file",
            {"serve.sh": script.encode()},
            "serve.sh",
            "PORT=8080",
            (_write("serve.sh", script.replace("8080", "9090")),),
            {"serve.sh": script.replace("8080", "9090").encode()},
        ),
        Task(
            "move",
            {"notes/todo.txt": b"# same\nbuy milk\n# same\n"},
            "notes/todo.txt",
            "buy milk",
            (_edit("notes/todo.txt", "milk", "bread"), _run("mv notes/todo.txt notes/done.txt")),
            {"notes/todo.txt": None, "notes/done.txt": b"# same\nbuy bread\n# same\n"},
        ),
        Task(
            "two files",
            {"cmd/main.go": main.encode(), "cmd/other.go": b"package main\n\nvar used = limit\n"},
            "cmd/main.go",
            "const limit = 5",
            (
                _edit("cmd/main.go", "limit", "maximum"),
                Act("read_file", {"path": "cmd/other.go"}, asks=False),
                _edit("cmd/other.go", "limit", "maximum"),
            ),
            {
                "cmd/main.go": main.replace("limit", "maximum").encode(),
                "cmd/other.go": b"package main\n\nvar used = maximum\n",
            },
        ),
        Task(
            "command",
            {"version.txt": b"# same\n1.2.3\n# same\n"},
            "version.txt",
            "1.2.3",
            (_run("tr . - < version.txt > release.txt"),),
            {"release.txt": b"# same\n1-2-3\n# same\n"},
        ),
    ]


# --- faults -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stumble:
    """A task with its fault: the model's steps, how many calls default mode has to ask about, what the user does to
    ``target`` right after it was first read ("changes" it or "removes" it), and what the files are at the end."""

    steps: tuple[Step, ...]
    asks: int
    files: Mapping[str, bytes] = field(default_factory=lambda: {})
    after: Mapping[str, bytes | None] = field(default_factory=lambda: {})
    user: Literal["", "changes", "removes"] = ""
    compacts: bool = False


def _step(*acts: Act, when: Condition | None = None, expect: Condition | None = None, text: str = "") -> Step:
    calls = tuple(_call(act.tool, msgspec.json.encode(act.arguments).decode()) for act in acts)
    return Step(text=text, calls=calls, when=when, expect=expect)


def _call(tool: str, arguments: str) -> ScriptedCall:
    return ScriptedCall(tool, Arguments(arguments))


def _results(*texts: str) -> Condition:
    return Condition(last_result=Texts(texts))


def _reading(task: Task) -> Act:
    return Act("read_file", {"path": task.target}, asks=False)


def _rest(task: Task) -> tuple[Step, ...]:
    """The task's own calls, one a step, and the end."""
    return (*(_step(act) for act in task.acts), Step(text="Done."))


def _asking(acts: Iterable[Act]) -> int:
    return sum(act.asks for act in acts)


def _before(task: Task, *steps: Step, asks: int = 0, files: Mapping[str, bytes] | None = None) -> Stumble:
    """The target is read, then something goes wrong, then the task is done."""
    return Stumble((_step(_reading(task)), *steps, *_rest(task)), _asking(task.acts) + asks, files or {})


def wrong_path(task: Task) -> Stumble:
    """The model reads a path that is not there and has to be told of the one that is."""
    wrong = Act("read_file", {"path": task.missing}, asks=False)
    steps = (_step(wrong), _step(_reading(task), expect=_results(task.target)), *_rest(task))
    return Stumble(steps, _asking(task.acts))


def ambiguous_edit(task: Task) -> Stumble:
    """An edit whose text occurs twice is refused with the number, before anybody is asked."""
    wrong = _edit(task.target, task.again, "# other")
    return _before(task, _step(wrong), _step(_reading(task), expect=_results("matches 2 places")))


def inexact_edit(task: Task) -> Stumble:
    """An edit of text that is not quite in the file is answered with the text that is."""
    wrong = _edit(task.target, f"{task.old[:-1]}~", "x")
    return _before(task, _step(wrong), _step(_reading(task), expect=_results(task.old)))


def changed_file(task: Task) -> Stumble:
    """The user adds a line to the file after it was read; the line stays."""
    first, *more = task.acts
    line = b"user's line\r\n" if b"\r\n" in task.files[task.target] else b"user's line\n"
    after = {task.target: task.files[task.target], **task.after}
    for path, content in after.items():
        if content is not None and (path == task.target or after[task.target] is None or first.tool == "run_command"):
            after[path] = content + line
    again = first
    if first.tool == "write_file":
        again = _write(task.target, str(first.arguments["content"]) + "user's line\n")
    steps = [_step(_reading(task))]
    if first.tool != "run_command":
        steps.append(_step(first))
        steps.append(_step(_reading(task), when=_results("changed")))
        steps.append(_step(again, when=_results("user's line", task.old)))
    else:
        steps.append(_step(first))
    steps += [*(_step(act) for act in more), Step(text="Done.")]
    return Stumble(tuple(steps), _asking(task.acts), after=after, user="changes")


def vanished_file(task: Task) -> Stumble:
    """The user removes the file after it was read; the model puts it back as it was."""
    text = task.files[task.target].decode("latin-1" if "latin" in task.name else "utf-8")
    back = _write(task.target, text)
    steps = (
        _step(_reading(task)),
        _step(_edit(task.target, task.old, "x")),
        _step(back, expect=_results(task.target.rpartition("/")[2])),
        *_rest(task),
    )
    after = dict(task.after)
    if "latin" in task.name:  # a file that is written anew is UTF-8
        after = {path: content.decode("latin-1").encode() for path, content in after.items() if content is not None}
    return Stumble(steps, _asking(task.acts) + 1, after=after, user="removes")


def big_output(task: Task) -> Stumble:
    """A command prints a megabyte; what is kept of it can be read on."""
    return _before(task, _step(_run("seq 1 150000", asks=False)), _step(_reading(task), expect=_results("150000")))


def failing_check(task: Task) -> Stumble:
    """The task's check fails before the change and passes after it."""
    wanted = [(path, None if content is None else content.hex()) for path, content in sorted(task.after.items())]
    check = (
        "import pathlib, sys\n"
        f"WANTED = {wanted!r}\n"
        "found = {p: pathlib.Path(p).read_bytes().hex() if pathlib.Path(p).exists() else None for p, c in WANTED}\n"
        "bad = [p for p, c in WANTED if found[p] != c]\n"
        "print('FAILED: ' + ', '.join(bad) if bad else '1 passed')\nsys.exit(bool(bad))\n"
    )
    steps = (
        _step(_run(CHECK)),
        _step(_reading(task), expect=_results("FAILED", "1")),
        *(_step(act) for act in task.acts),
        _step(_run(CHECK)),
        Step(text="Done.", expect=_results("1 passed")),
    )
    return Stumble(steps, _asking(task.acts) + 2, {"check.py": check.encode()})


def overflow(task: Task) -> Stumble:
    """The server's window is smaller than believed; the request is made to fit and the work goes on."""
    large = {f"logs/{number}.log": LARGE.encode() for number in range(3)}
    read = [_step(Act("read_file", {"path": path}, asks=False)) for path in large]
    full = Fault("overflow", tokens=TRUE_WINDOW + 2_000, window=TRUE_WINDOW)
    summary = Step(text=SUMMARY, when=Condition(last_user=Texts(("summar",))))
    steps = (*read, Step(fault=full), summary, _step(_reading(task)), *_rest(task))
    return Stumble(steps, _asking(task.acts), large, compacts=True)


def _refused(kind: Literal["rate_limit", "overloaded", "server", "network"]) -> Step:
    return Step(fault=Fault(kind, retry_after=None if kind == "network" else 0.01))


def busy(task: Task) -> Stumble:
    """429, then 529, then 500, in the middle of the work."""
    return _before(task, *map(_refused, ("rate_limit", "overloaded", "server")))


def dropped(task: Task) -> Stumble:
    """The connection is reset, then a proxy answers with a page."""
    return _before(task, _refused("network"), Step(fault=Fault("garbage")))


def cut_text(task: Task) -> Stumble:
    """The stream ends in the middle of a sentence, again at the next try."""
    cut = Step(text="I will now change the file as you said.", fault=Fault("cut", after=14))
    return _before(task, cut, cut)


def cut_call(task: Task) -> Stumble:
    """The stream ends in the middle of a call's arguments; the call does not run."""
    first = task.acts[0]
    call = _step(first).calls
    return _before(task, Step(calls=call, fault=Fault("cut", after=12, in_arguments=True)))


def bad_json(task: Task) -> Stumble:
    """The arguments are no JSON, and no part of them runs."""
    wrong = Step(calls=(_call(task.acts[0].tool, '{"path": "' + task.target + '", "old_string": '),))
    return _before(task, wrong, _step(_reading(task), expect=_results("JSON")))


def wrong_call(task: Task) -> Stumble:
    """A tool that there is not, then one with arguments that it does not have."""
    unknown = Step(calls=(_call("str_replace_editor", '{"path": "a"}'),))
    wrong = Step(calls=(_call("edit_file", '{"file": 3}'),), expect=_results("str_replace_editor"))
    return _before(task, unknown, wrong, _step(_reading(task), expect=_results("path")))


def hanging_command(task: Task) -> Stumble:
    """A command does not end; its time limit ends it."""
    return _before(task, _step(_run("sleep 100", asks=False, timeout=1)), _step(_reading(task), expect=_results("1 s")))


FAULTS = {
    fault.__name__.replace("_", " "): fault
    for fault in (
        wrong_path,
        ambiguous_edit,
        inexact_edit,
        changed_file,
        vanished_file,
        big_output,
        failing_check,
        overflow,
        busy,
        dropped,
        cut_text,
        cut_call,
        bad_json,
        wrong_call,
        hanging_command,
    )
}


# --- runs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """One task with one fault, against a server that speaks one protocol."""

    task: Task
    fault: str
    protocol: str

    @property
    def name(self) -> str:
        return f"{self.fault}, {self.task.name}, {self.protocol}"


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a case; ``problems`` is empty where it reached its end. ``spurious`` and ``missing`` are
    questions above and below those that the case needs."""

    problems: tuple[str, ...]
    questions: int
    spurious: int
    missing: int


def cases() -> list[Case]:
    """All of them; each fault meets every protocol, but broken JSON only those that send arguments as text."""
    found: list[Case] = []
    for row, fault in enumerate(FAULTS):
        protocols = ("openai", "anthropic", "responses") if fault == "bad json" else tuple(MODELS)
        found += [Case(task, fault, protocols[(row + place) % len(protocols)]) for place, task in enumerate(tasks())]
    return found


async def recovered(case: Case, mode: Mode) -> Recovered:
    """Do the task in a session of its own, in the environment of this process."""
    from swecli.app import open_session

    stumble = FAULTS[case.fault](case.task)
    before = {**case.task.files, **stumble.files}
    script = Script(steps=stumble.steps, name="scripted", chunk="words")
    with tempfile.TemporaryDirectory(dir=Path.home()) as name:
        base = Path(name)
        root = base / "home" / "project"
        for path, content in before.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        server = LoopbackServer(script, case.protocol)  # pyright: ignore[reportArgumentType]
        with server, _environment(base, server):
            options = LaunchOptions(root, model=MODELS[case.protocol], headless=True, mode=mode, trust="session")
            session = await open_session(options)
            try:
                problems, questions, compactions = await _turn(session, case, stumble, root)
            finally:
                await session.close()
            problems += server.failures
            server.failures.clear()
            if not server.over:
                problems.append("the model's last step was not reached")
        wanted = {**before, **case.task.after, **stumble.after}
        problems += _differences({path: content for path, content in wanted.items() if content is not None}, root)
    if stumble.compacts and not compactions:
        problems.append("nothing was compacted")
    needed = stumble.asks if mode == "default" else 0
    return Recovered(tuple(problems), questions, max(0, questions - needed), max(0, needed - questions))


async def _turn(session: Any, case: Case, stumble: Stumble, root: Path) -> tuple[list[str], int, int]:
    """Problems, questions and compactions of the one turn."""
    problems: list[str] = []
    questions = compactions = 0
    pending = stumble.user
    events = session.subscribe()
    session.send(Submit("Please do it."))
    async for event in events:
        match event.body:
            case PermissionRequested() as request:
                questions += 1
                session.send(ReplyPermission(request.request, "once"))
            case QuestionAsked():
                problems.append("a question was asked")
                break
            case ItemCompleted(parts=(ToolResultPart(), *_)) if pending:
                _interfere(root / case.task.target, pending)
                pending = ""
            case CompactionCompleted():
                compactions += 1
            case TurnEnded() as end:
                if end.outcome != "done":
                    problems.append(f"the turn ended as {end.outcome}: {end.reason}")
                break
            case _:
                pass
    return problems, questions, compactions


def _interfere(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how == "changes":
        path.write_bytes(content + (b"user's line\r\n" if b"\r\n" in content else b"user's line\n"))


def _differences(wanted: Mapping[str, bytes], root: Path) -> list[str]:
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    own = {path for path in found if path.startswith(".swecli/")}
    return [
        f"{path} is {found.get(path, 'missing')!r}, not {wanted.get(path, 'there')!r}"[:300]
        for path in sorted((wanted.keys() | found.keys()) - own)
        if found.get(path) != wanted.get(path)
    ]


@contextmanager
def _environment(base: Path, server: LoopbackServer) -> Iterator[None]:
    settings = base / "settings.toml"
    settings.write_text(SETTINGS.format(url=server.url), encoding="utf-8")
    own = {
        **server.environment(),
        "HOME": str(base / "home"),
        "SWECLI_HOME": str(base / "swecli"),
        "SWECLI_CONFIG": str(settings),
        "NO_PROXY": "127.0.0.1",
    }
    with patch.dict(os.environ, own):
        yield


async def measure(chosen: Sequence[Case], mode: Mode) -> list[Recovered]:
    return [await recovered(case, mode) for case in chosen]


def run() -> list[tuple[str, float, str]]:
    """What was measured, the value, its unit."""
    chosen = cases()
    rows: list[tuple[str, float, str]] = []
    for mode in MODES:
        found = asyncio.run(measure(chosen, mode))
        done = sum(not one.problems for one in found)
        rows += [
            (
                f"{mode}: tasks that reached their end",
                done / len(found) * 100,
                f"%   ({done} of {len(found)}; goal 98)",
            ),
            ("  questions of a task, median", statistics.median(one.questions for one in found), ""),
            ("  questions that were not needed", sum(one.spurious for one in found), ""),
            ("  changes that were not asked about", sum(one.missing for one in found), ""),
        ]
    return rows


def main() -> int:
    chosen = [case for case in cases() if not sys.argv[1:] or case.fault in sys.argv[1:]]
    failed = 0
    for mode in MODES:
        lost: Counter[str] = Counter()
        for case in chosen:
            one = asyncio.run(recovered(case, mode))
            extra = [f"{one.spurious} needless questions"] * bool(one.spurious)
            extra += [f"{one.missing} changes not asked about"] * bool(one.missing)
            if one.problems or extra:
                lost[case.fault] += bool(one.problems)
                print(f"{mode}: {case.name}: {'; '.join([*one.problems, *extra])}", flush=True)
        failed += lost.total()
        print(
            f"{mode}: {len(chosen) - lost.total()} of {len(chosen)} tasks reached their end",
            dict(lost) or "",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
