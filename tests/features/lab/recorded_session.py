"""A session of some turns with compactions, played by the real engine and stored."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

from swecli.app import open_session
from swecli.core.context_management.counter import MakesExact
from swecli.core.llm.types import Finished, ModelClient, ModelInfo, ModelRequest, StreamEvent
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.core.protocol.messages import Message, Origin, Response, Stop, TextPart, Usage
from swecli.launch import LaunchOptions

WORDS = ("alpha", "beta", "gamma", "delta", "value", "return", "class", "import", "print", "else", "while")
FILES = 12
SUMMARY = """## Goal
Look at every part of the project and never change a file.
## Done
Several files were read; nothing was changed. The parts that were looked at are all in order.
## Next
Go on with the part that the user names."""


class _WithSummaries:
    """The scripted model, which writes a good summary where one is asked for."""

    def __init__(self, inner: ModelClient) -> None:
        self._inner = inner

    @property
    def info(self) -> ModelInfo:
        return self._inner.info

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if not request.messages[-1].id.startswith("compaction"):
            async for event in self._inner.stream(request):
                yield event
            return
        response = Response(Origin("scripted", "scripted", "s"), Stop("end"), Usage(20_000, 15_000, 0, 60))
        yield Finished(Message("assistant", (TextPart(SUMMARY),), response=response))

    async def close(self) -> None:
        await self._inner.close()


def script(turns: int, window: int, chance: random.Random) -> str:
    steps = [f'window = {window}\nmax_output = 2000\nchunk = "whole"\n']
    for turn in range(turns):
        for _ in range(chance.randint(1, 3)):
            path = f"f{chance.randrange(FILES)}.py"
            steps.append(f"[[step]]\ncall = [{{ tool = 'read_file', arguments = {{ path = '{path}' }} }}]\n")
        steps.append(f"[[step]]\ntext = 'Turn {turn} is done: {' '.join(chance.choices(WORDS, k=40))}.'\n")
    return "\n".join(steps)


async def record(base: Path, *, turns: int, window: int = 32_000) -> str:
    """Play it with SWECLI_HOME as it is, in ``base / "work"``. Returns the id of the stored session."""
    chance = random.Random(7)
    work, file = base / "work", base / "script.toml"
    work.mkdir()
    for number in range(FILES):
        lines = (" ".join(chance.choices(WORDS, k=8)) for _ in range(chance.randint(40, 400)))
        (work / f"f{number}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    file.write_text(script(turns, window, chance), encoding="utf-8")
    options = LaunchOptions(cwd=work, script=file, headless=True, mode="auto")
    session = await open_session(options, instead=_WithSummaries)
    try:
        # From the first request on, as a replay counts: else the load of the machine decides when a compaction is due.
        counter = session.inspection._context.monitor.counter
        assert isinstance(counter, MakesExact)
        assert await counter.make_exact()
        events = session.subscribe()
        for turn in range(turns):
            session.send(Submit(f"Look at part {turn}. You must never change f{turn % FILES}.py."))
            async for event in events:
                if isinstance(event.body, TurnEnded):
                    assert event.body.outcome == "done", event.body
                    break
        return session.view.session_id
    finally:
        await session.close()
