"""The whole program in the terminal that it is started in, with a scripted model that is given work.

    python -m benchmarks.screen_run stream RESULT.json      one answer of 2,000 words
    python -m benchmarks.screen_run repeated RESULT.json    the same with one passage again and again
    python -m benchmarks.screen_run turns RESULT.json       200 turns with one tool call each

RESULT.json gets what was measured inside: processor seconds, seconds of each turn, memory in bytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import psutil

from swecli.core.engine.session import Session
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import Event, StepStarted, TurnEnded
from swecli.launch import LaunchOptions

TURNS = 200
WORDS = 2_000
DELAY = 0.02
"""Seconds between two words."""
PROMPT = "Explain it at length."
OVER = "benchmark-is-over"
LINES = 60


def repeated_text() -> str:
    """2,000 words that repeat a paragraph, a list and some code."""
    paragraph = (
        "The parser reads one line after the other and keeps a stack of open blocks, so that `close_all` can end "
        "them in order. That is why the **last** line matters: it decides which block is still open.\n\n"
        "- first the blocks are opened\n- then their text is kept\n\n"
        "```python\ndef close_all(stack):\n    while stack:\n        stack.pop().close()\n```\n\n"
    )
    words = (paragraph * (WORDS // len(paragraph.split(" ")) + 1)).split(" ")
    return " ".join(words[:WORDS])


def text() -> str:
    """2,000 words as models write them: paragraphs, lists and code, each with words of its own."""
    random = Random(1)

    def words(count: int) -> str:
        return " ".join("".join(random.choices("etaoinsrhl", k=random.randint(1, 9))) for _ in range(count))

    passages: list[str] = []
    while len(" ".join(passages).split(" ")) < WORDS:
        name = "_".join(words(2).split())
        passages.append(
            f"## {words(3)}\n\n{words(40)}, so that `{name}` can {words(8)}. {words(5)} **{words(2)}** {words(20)}.\n\n"
            f"- {words(5)}\n- {words(9)}\n- {words(4)}\n\n"
            f"```python\ndef {name}(value):\n    while value:\n        value.pop().{name}()  # {words(3)}\n```\n\n"
        )
    return " ".join(" ".join(passages).split(" ")[:WORDS])


def stream_script(answer: str) -> str:
    """A script with one long answer."""
    return f"window = 200000\ndelay = {DELAY}\n[[step]]\ntext = {json.dumps(answer)}\n"


def turns_script(count: int) -> str:
    """A script of turns that read a file and answer; the first one only answers."""
    steps = ['window = 2000000\nchunk = "whole"\n[[step]]\ntext = "Hello."\n']
    for number in range(count):
        arguments = f"{{ path = 'module.py', offset = {number % 20 + 1}, limit = 20 }}"
        steps.append(f"[[step]]\ntext = 'I look.'\ncall = [{{ tool = 'read_file', arguments = {arguments} }}]\n")
        steps.append(f"[[step]]\ntext = 'Turn {number} is done: the function is where it was.'\n")
    return "\n".join(steps)


def workspace(folder: Path) -> Path:
    """A folder with a file to read."""
    folder.mkdir()
    (folder / "module.py").write_text("value = function(argument, other=3)  # comment\n" * LINES, encoding="utf-8")
    return folder


async def one_turn(session: Session, events: AsyncIterator[Event], prompt: str) -> tuple[float, int]:
    """Seconds from the message to the end of the turn, and the tokens of its first request."""
    start = time.perf_counter()
    session.send(Submit(prompt))
    tokens = 0
    async for event in events:
        if isinstance(event.body, StepStarted):
            tokens = tokens or event.body.budget.used
        elif isinstance(event.body, TurnEnded):
            if event.body.outcome != "done":
                raise RuntimeError(f"the turn ended as {event.body.outcome}: {event.body.reason}")
            break
    return time.perf_counter() - start, tokens


async def many_turns(session: Session, count: int) -> dict[str, object]:
    """First request, seconds of each turn, memory in bytes."""
    events = session.subscribe()
    _, tokens = await one_turn(session, events, "hi")
    seconds = [(await one_turn(session, events, f"Look at part {number}."))[0] for number in range(count)]
    return {"tokens": tokens, "seconds": seconds, "rss": psutil.Process().memory_info().rss}


async def one_stream(session: Session) -> dict[str, object]:
    """Processor seconds of one long answer."""
    start = time.process_time()
    await one_turn(session, session.subscribe(), PROMPT)
    return {"cpu": time.process_time() - start}


def main() -> int:
    from swecli.app import open_session
    from swecli.assembly.succession import Succession
    from swecli.tui.launch import run
    from swecli.tui.program import Program

    scenario, result = sys.argv[1], Path(sys.argv[2])
    scripts = {
        "stream": stream_script(text()),
        "repeated": stream_script(repeated_text()),
        "turns": turns_script(TURNS),
    }
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "bench.toml"
        script.write_text(scripts[scenario], encoding="utf-8")
        options = LaunchOptions(cwd=workspace(Path(name) / "work"), script=script, mode="default")
        tasks: list[asyncio.Task[None]] = []

        async def work(session: Session) -> None:
            await asyncio.sleep(0.5)  # the interface settles
            found = await (many_turns(session, TURNS) if scenario == "turns" else one_stream(session))
            await asyncio.to_thread(result.write_text, json.dumps(found))
            session.notice(OVER)  # type: ignore[attr-defined]

        async def measured(wanted: LaunchOptions) -> Session:
            session = await open_session(wanted)
            tasks.append(asyncio.create_task(work(session)))
            return session

        return run(Program(open=Succession(options, measured)))


if __name__ == "__main__":
    sys.exit(main())
