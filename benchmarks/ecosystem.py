"""What being open costs: 500 tools of servers, a subagent that loops, a start with servers, skills and hooks."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.played_session import GLYPHS
from benchmarks.startup import OPENED, SPLASH, SWECLI, early_keys
from benchmarks.window import Window
from swecli.core.context_management.deferral import ToolIndex, stem, terms
from swecli.core.engine.settings import SubagentOptions
from swecli.core.llm.scripted import parse_script
from swecli.core.protocol.budget import is_tools
from swecli.core.protocol.events import AgentEnded, ItemCompleted
from swecli.core.protocol.messages import ToolResultPart
from tests.core.context_management import test_tool_recall as recall
from tests.core.context_management.test_tool_index import QUERIES, TOOLS
from tests.core.engine.support import bench
from tests.core.engine.test_deferral import Source, settle
from tests.features.subagents.test_companion import parent, task, with_agents
from tests.support.everything import configure
from tests.support.loopback import LoopbackServer
from tests.support.program import Program

Line = tuple[str, float, str]
ROUNDS = 5
WINDOW = 200_000
AGAIN = "I look again. " * 40


def run() -> Iterator[Line]:
    """What was measured, the value, its unit."""
    yield from _tools()
    yield from _search()
    yield from asyncio.run(_promotion())
    yield from _subagents()
    yield from _start()
    yield from _interactive()


def _tools() -> list[Line]:
    """The first request with 500 tools, told all or withheld."""
    told = asyncio.run(_first_request(1.0))
    withheld = asyncio.run(_first_request(0.1))
    return [
        ("500 tools: tool section of the first request, all told", told, "tokens"),
        ("500 tools: the same, withheld", withheld, "tokens  (-80 % wanted)"),
        ("500 tools: share of what is withheld", 100 * (1 - withheld / told), "%  (goal 80)"),
        (f"500 tools: share of a window of {WINDOW:,}", 100 * withheld / WINDOW, "%  (goal at most 10)"),
    ]


async def _first_request(threshold: float) -> int:
    with tempfile.TemporaryDirectory() as folder:
        script = '[[step]]\ntext = "done"\n'
        async with bench(script, Path(folder), extensions=(Source(settle),), tool_deferral=threshold) as made:
            await made.say("go")
            budget = made.session.view.budget
            assert budget is not None
            return sum(part.tokens for part in budget.components if is_tools(part.name))


def _search() -> Iterator[Line]:
    stem.cache_clear()
    terms.cache_clear()
    began = time.process_time()
    index = ToolIndex(TOOLS)
    index.search("remove a person from our zoom account")
    yield "tool_search: index and first search of 500, cold", 1e3 * (time.process_time() - began), "ms  (goal 20)"
    began = time.process_time()
    hits = sum(name in [tool.name for tool in index.search(query)] for query, name in QUERIES.items())
    yield "tool_search: each further search", 1e3 * (time.process_time() - began) / len(QUERIES), "ms"
    yield "tool_search: recall@5, generated tools", 100 * hits / len(QUERIES), "%  (goal 95)"
    count = len(recall.rows("mcp-queries.tsv"))
    yield (
        f"tool_search: recall@5, {len(recall.TOOLS)} tools of known servers",
        (100 * (1 - len(recall.missed()) / count)),
        f"%  (goal 95, {count} queries)",
    )


TURNS, SEARCHES = 12, (2, 6, 10)
"""Turns of a session with about 2,000 tokens each, and the turns that search for a tool."""


async def _promotion() -> list[Line]:
    """What found tools cost where a provider reads the list of tools before the conversation: all after the list is
    read anew with each search. With tools that join at the result of the search it is nothing."""
    queries = [*QUERIES][: len(SEARCHES)]
    steps: list[str] = []
    for turn in range(TURNS):
        if turn in SEARCHES:
            arguments = json.dumps({"query": queries[SEARCHES.index(turn)]})
            steps.append(f"[[step]]\n[[step.call]]\ntool = 'tool_search'\narguments = '{arguments}'\n")
        steps.append('[[step]]\ntext = "done"\n')
    with tempfile.TemporaryDirectory() as folder:
        async with bench("".join(steps), Path(folder), extensions=(Source(settle),)) as made:
            for turn in range(TURNS):
                await made.say(f"{turn} {AGAIN * 10}")
            monitor, requests = made.session._services.toolset.context.monitor, made.model.requests
            sizes = [
                sum(monitor.count_tokens(block.text) for block in request.system)
                + sum(map(monitor.count_once, request.messages))
                for request in requests
            ]
    pairs = zip(sizes, itertools.pairwise(requests), strict=False)
    breaks = [size for size, (earlier, later) in pairs if earlier.tools != later.tools]
    assert len(breaks) == len(SEARCHES)
    new, anew = sizes[-1], sum(breaks)
    least = 0.1 * sum(sizes) + 0.9 * new  # what is cached costs a tenth
    return [
        (f"{TURNS} turns, {len(breaks)} searches: tokens without tools, all requests", sum(sizes), ""),
        ("  of it new", new, ""),
        ("  read anew where the list of tools comes first", anew, "tokens"),
        ("  cost of that, relative to tools that join at the result", (least + 0.9 * anew) / least, "x"),
    ]


def _subagents() -> list[Line]:
    return asyncio.run(_looping())


async def _looping() -> list[Line]:
    """A subagent that never ends, stopped at its cap; what of it comes into the conversation."""
    loop = "".join(
        f'[[step]]\ntext = "{AGAIN}"\ncall = [{{ tool = "read_file", arguments = {{ target = "a{number}" }} }}]\n'
        for number in range(60)
    )
    with tempfile.TemporaryDirectory() as folder:
        options = {"max_steps": 20}
        async with with_agents(parent(task()), Path(folder), loop, options) as made:
            began = time.process_time()
            await made.say("go")
            seconds = time.process_time() - began
            ended = made.bodies(AgentEnded)[0]
            parts = [part for body in made.bodies(ItemCompleted) for part in body.parts]
            report = next(part for part in parts if isinstance(part, ToolResultPart) and part.name == "task")
            tokens = made.session._services.toolset.context.monitor.count_tokens(report.text)
    assert ended.outcome == "limit"
    return [
        ("subagent that loops: requests until it is stopped", ended.steps, "(cap 20)"),
        ("subagent that loops: what its parent gets", tokens, f"tokens  (goal {SubagentOptions().result_tokens:,})"),
        ("subagent that loops: processor time", seconds * 1e3, "ms"),
    ]


def _start() -> Iterator[Line]:
    """One headless message, bare and with two servers, five skills and three hooks."""
    for name, open_to_all in (("bare", False), ("2 servers, 5 skills, 3 hooks", True)):
        cpu, wall, first = zip(*(_message(open_to_all) for _ in range(ROUNDS)), strict=True)
        yield (
            f"one headless message, {name}: processor time, servers and hooks included",
            1e3 * statistics.median(cpu),
            "ms",
        )
        yield f"one headless message, {name}: elapsed", 1e3 * statistics.median(wall), "ms"
        yield f"one headless message, {name}: its request", statistics.median(first), "bytes"
    yield from _prefix()


def _message(open_to_all: bool) -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as place, LoopbackServer(parse_script('[[step]]\ntext = "hi"\n')) as server:
        program = _program(Path(place), server.url, open_to_all)
        command = [sys.executable, "-m", "swecli.cli", "-p", "hello", "-m", "openai/m", "--trust"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=program.folder, env=program.environment, check=True, capture_output=True)
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu, wall, float(len(json.dumps(server.requests[-1].body)))


def _program(place: Path, url: str, open_to_all: bool) -> Program:
    folder, home = place / "project", place / "home"
    folder.mkdir()
    if open_to_all:
        configure(folder, home)
    return Program(folder, home, {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k"})


STARTS = 9
ANSWERED = "answer-of-the-model"
MOMENTS = (
    ("first paint", SPLASH, ""),
    ("key typed at the first paint is answered", GLYPHS[0], GLYPHS[0]),
    ("session open", OPENED, ""),
    ("first message answered, sent at the first paint", ANSWERED, "hello\r"),
)
"""What is waited for in the interface, what is seen then, and what is typed at the first paint."""


def _interactive() -> Iterator[Line]:
    """The interface from its start until its prompt is usable and a first message is answered, bare and with all."""
    taken: dict[tuple[str, bool], list[float]] = {}
    for _ in range(STARTS):  # in turn: the load changes
        for name, marker, typed in MOMENTS:
            for open_to_all in (False, True):
                taken.setdefault((name, open_to_all), []).append(_seen(marker, typed, open_to_all))
    for name, _, _ in MOMENTS:
        bare, full = (statistics.median(taken[name, open_to_all]) for open_to_all in (False, True))
        yield f"interface, {name}: bare", 1e3 * bare, "ms"
        yield f"interface, {name}: 2 servers, 5 skills, 3 hooks", 1e3 * full, "ms"
        yield "  to bare", full / bare, "x"
    for name, open_to_all in (("bare", False), ("2 servers, 5 skills, 3 hooks", True)):
        delays: list[float] = []
        for _ in range(ROUNDS):
            with _interface(open_to_all) as window:
                delays += early_keys(window)
        middle, slow = statistics.median(delays), statistics.quantiles(delays, n=20)[-1]
        yield f"interface, key while the rest is loaded, p50: {name}", 1e3 * middle, "ms"
        yield f"interface, key while the rest is loaded, p95: {name}", 1e3 * slow, "ms"


def _seen(marker: str, typed: str, open_to_all: bool) -> float:
    """Seconds from the start of the interface until the marker is seen."""
    with _interface(open_to_all) as window:
        if typed:
            window.until(SPLASH)
            window.send(typed)
        return window.until(marker) - window.started


@contextmanager
def _interface(open_to_all: bool) -> Iterator[Window]:
    script = parse_script(f'[[step]]\ntext = "{ANSWERED}"\n')
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, LoopbackServer(script) as server:
        program = _program(Path(place), server.url, open_to_all)
        window = Window([*SWECLI, "-m", "openai/m"], tmux=False, variables=program.environment, cwd=program.folder)
        try:
            yield window
        finally:
            window.close()


def _prefix() -> Iterator[Line]:
    """How much of each request begins the next, over ten turns with everything configured."""
    script = "".join(f'[[step]]\ntext = "answer {number}"\n' for number in range(10))
    lines = "\n".join(json.dumps({"type": "submit", "text": f"message {number}"}) for number in range(10)) + "\n"
    with tempfile.TemporaryDirectory() as place, LoopbackServer(parse_script(script)) as server:
        program = _program(Path(place), server.url, open_to_all=True)
        command = [
            sys.executable,
            "-m",
            "swecli.cli",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ]
        command += ["-m", "openai/m", "--trust"]
        subprocess.run(
            command,
            input=lines,
            text=True,
            cwd=program.folder,
            env=program.environment,
            check=True,
            capture_output=True,
        )
        bodies = [request.body for request in server.requests if "messages" in request.body]
    broken = sum(
        earlier["tools"] != later["tools"]
        or later["messages"][: len(earlier["messages"]) - 1] != earlier["messages"][:-1]
        for earlier, later in itertools.pairwise(bodies)
    )
    yield "10 turns with all of it: requests", len(bodies), ""
    yield "10 turns with all of it: requests whose beginning changed", broken, "(goal 0)"


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<72} {value:>10,.1f} {unit}")
    print(f"load {os.getloadavg()[0]:.1f}")
