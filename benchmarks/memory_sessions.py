"""A second session in a project on which a first one worked for 30 turns: with its memory, and without.

The model is a program that acts on what it has before it: it edits as soon as it knows what is open, and looks around
as long as it does not. Everything else is real: sessions, tools, notes, the prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from unittest.mock import patch

from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ModelInfo, ModelRequest, StreamEvent
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import FileChanged, ModelResponded, TurnEnded
from swecli.core.protocol.messages import ToolCallPart
from swecli.features.memory.companion import SessionMemory
from swecli.launch import LaunchOptions

MODULES = 30
LEFT = (29, 30)
"""Modules that the first session does not come to."""
TEST = f"{Path(sys.executable).name} -m unittest -q check_cents"
_OPEN = re.compile(r"- \[ \] Convert (m\d\d)\.py")
_FAILED = re.compile(r"'(m\d\d)' has floats")
_CHECK = """import pathlib, unittest
class Cents(unittest.TestCase):
    def test_no_floats(self):
        for path in sorted(pathlib.Path("shop").glob("m*.py")):
            self.assertNotIn(".", path.read_text().split("=")[1], f"{path.stem!r} has floats")
    def id(self):
        return "cents"
"""


class SeeingModel:
    """A model client whose answer is made of the request."""

    def __init__(self) -> None:
        self._scripted = ScriptedModel(parse_script('[[step]]\ntext = "-"\n'))
        self.requests: list[ModelRequest] = []

    @property
    def info(self) -> ModelInfo:
        return self._scripted.info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        answer = ScriptedModel(parse_script(_answer(request)))
        async for event in answer.stream(request):
            yield event

    async def close(self) -> None:
        await self._scripted.close()


def _call(tool: str, **arguments: object) -> str:
    return f"[[step]]\ncall = [{{ tool = {json.dumps(tool)}, arguments = '''{json.dumps(arguments)}''' }}]\n"


def _say(text: str) -> str:
    return f"[[step]]\ntext = {json.dumps(text)}\n"


def _answer(request: ModelRequest) -> str:
    """The next step of somebody who reads everything that is there."""
    newest = max(index for index, message in enumerate(request.messages) if message.role == "user")
    first = newest  # what swecli attaches to a message comes right behind it
    while first and request.messages[first - 1].role == "user":
        first -= 1
    said = "\n".join(message.text for message in request.messages[first : newest + 1])
    done = [part for message in request.messages[newest:] for part in message.parts if isinstance(part, ToolCallPart)]
    if (asked := re.search(r"Convert (m\d\d)\.py", said)) is not None:
        return _of_first_session(asked[1], done)
    seen = "\n".join(
        [block.text for block in request.system]
        + [message.text for message in request.messages]
        + [result.text for message in request.messages for result in message.tool_results]
    )
    if "Run the tests" in said:
        return _say("They fail.") if done else _call("run_command", command=TEST)
    if any(call.name == "write_file" for call in done):
        return _say("Done.")
    found = _OPEN.search(seen) or _FAILED.search(seen)
    if found is not None:
        name = f"shop/{found[1]}.py"
        read = any(name in call.arguments for call in done)
        return _converted(name, 1) if read else _call("read_file", path=name)
    looks = (
        _call("list_files", path="."),
        _call("read_file", path="README.md"),
        _call("search", pattern="cents"),
        _call("read_file", path="check_cents.py"),
        _call("run_command", command=TEST),
    )
    return looks[len(done)] if len(done) < len(looks) else _say("I do not know.")


def _converted(name: str, price: int) -> str:
    return _call("write_file", path=name, content=f"PRICE = {price}\n")


def _of_first_session(module: str, done: list[ToolCallPart]) -> str:
    number = int(module[1:])
    todos = [
        {"text": f"Convert m{one:02}.py", "status": "completed" if one < number else "pending"}
        for one in range(1, MODULES + 1)
        if one >= number - 1
    ]
    todos = [{**one, "status": "completed"} if one["text"] == f"Convert {module}.py" else one for one in todos]
    steps = (
        _call("read_file", path=f"shop/{module}.py"),
        _converted(f"shop/{module}.py", 95),
        _call("update_todos", todos=todos),
    )
    return steps[len(done)] if len(done) < len(steps) else _say("Converted.")


def make_project(folder: Path) -> None:
    """Modules with prices as floats, and a test that wants cents."""
    (folder / "shop").mkdir(parents=True)
    for number in range(1, MODULES + 1):
        (folder / "shop" / f"m{number:02}.py").write_text(f"PRICE = 0.95 + {number}\n")
    (folder / "check_cents.py").write_text(_CHECK)
    (folder / "README.md").write_text("# Shop\n\nPrices of a shop.\n")


async def work(folder: Path, *messages: str) -> tuple[SeeingModel, str, int | None]:
    """A session with these messages. Its model, the memory in its prompt, and the requests until the first right edit
    (None: there was none)."""
    from swecli.app import open_session

    model, answers, first = SeeingModel(), 0, None
    options = LaunchOptions(cwd=folder, script=folder / "unused", headless=True, trust="session", yolo=True)
    with patch("swecli.assembly.models._scripted", lambda options: model):
        session = await open_session(options)
        try:
            events = session.subscribe()
            for message in messages:
                session.send(Submit(message))
                async for event in events:
                    answers += isinstance(event.body, ModelResponded)
                    if isinstance(event.body, FileChanged) and Path(event.body.path).stem in _left() and first is None:
                        first = answers
                    if isinstance(event.body, TurnEnded):
                        break
            memory = session.companion(SessionMemory)
            return model, memory.remembered if memory is not None else "", first
        finally:
            await session.close()


def _left() -> frozenset[str]:
    return frozenset(f"m{number:02}" for number in LEFT)


def measure(folder: Path) -> dict[str, float]:
    """The figures, by name."""
    from swecli.library.counting import TokenCounter

    project = folder / "shop"
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"  # not all have "python"
    with patch.dict(os.environ, SWECLI_HOME=str(folder / "home"), IS_SANDBOX="1", PATH=python):
        make_project(project)
        turns = [f"Convert m{number:02}.py to cents. Never use floats for money." for number in range(1, LEFT[0])]
        asyncio.run(work(project, *turns, "Run the tests", "What is left?"))
        copy = folder / "without" / "shop"
        shutil.copytree(project, copy, ignore=shutil.ignore_patterns(".swecli"))
        (project / "shop" / "m29.py").write_text("PRICE = 0.95 + 29\n")
        (copy / "shop" / "m29.py").write_text("PRICE = 0.95 + 29\n")
        question = "Where were we? Go on with what is open."
        _, memory, with_memory = asyncio.run(work(project, question))
        _, nothing, without = asyncio.run(work(copy, question))
    counter = TokenCounter()
    counter.load()
    assert not nothing
    return {
        "turns": len(turns) + 2,
        "tokens": counter.count(memory),
        "goal": "cents" in memory.partition("### Current Goal")[2].partition("###")[0],
        "open": _OPEN.search(memory) is not None,
        "test": TEST in memory,
        "with": with_memory or 0,
        "without": without or 0,
    }


def run() -> Iterator[tuple[str, float, str]]:
    """The figures of this part."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="swecli-bench-") as name:
        figures = measure(Path(name))
    yield "turns of the first session", figures["turns"], "turns"
    yield "memory in the second session's prompt", figures["tokens"], "tokens (o200k)"
    yield "goal, open step and test command are in it", figures["goal"] + figures["open"] + figures["test"], "of 3"
    yield "requests until the first right edit, with memory", figures["with"], "requests"
    yield "requests until the first right edit, without", figures["without"], "requests"
