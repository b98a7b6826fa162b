"""Long sessions in front of a simulated prompt cache: the prefix stays, and each miss is told with its cause."""

from __future__ import annotations

from pathlib import Path

from swecli.commands.requests import CACHE, cache_text
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.commands import Compact, SetMode, UndoCompaction
from swecli.core.protocol.events import CacheBreak, CompactionCompleted, CompactionUndone
from swecli.features.lab.prefix_cache import PrefixCache, provider_tokens
from swecli.figures import percent
from tests.core.engine.support import Bench, bench, call, until
from tests.support.prefix_cache import CachedModel

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(60))
SUMMARY = "## Goal\\nRead the files.\\n## Done\\nRead many of them.\\n## Next\\nRead the rest."


class Clock:
    """Time that passes when it is told to, and a little with each look."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def cached_model(script: str, clock: Clock) -> CachedModel:
    inner = ScriptedModel(parse_script(script))
    return CachedModel(inner, PrefixCache(provider_tokens(1.2), clock))


def steps(count: int, first: int = 0) -> str:
    return "\n".join(f"[[step]]\ncall = [{call('read_file', f'f{number}')}]" for number in range(first, first + count))


def fill(b: Bench, files: int) -> None:
    for number in range(files):
        b.gates.outputs[f"f{number}"] = f"file {number}\n{LINES}"


def shares(model: CachedModel, start: int = 1) -> float:
    charges = model.charges[start:]
    return sum(charge.read for charge in charges) / sum(charge.total for charge in charges)


async def test_a_long_session_is_read_from_the_cache(tmp_path: Path) -> None:
    clock = Clock()
    turns = "\n".join(f'{steps(12, 12 * turn)}\n[[step]]\ntext = "Read."' for turn in range(5))
    model = cached_model(f"window = 400000\nmax_output = 8000\n{turns}", clock)
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model, clock=clock) as b:
        fill(b, 60)
        for turn in range(5):
            assert (await b.say(f"Read the next files, round {turn}.")).outcome == "done"
            clock.now += 60
            b.send(SetMode("plan" if turn % 2 == 0 else "default"))
        assert len(model.charges) == 65
        assert shares(model, 13) >= 0.97
        assert b.bodies(CacheBreak) == []
        text = cache_text(b.session.view)
        assert "No misses." in text
        newest = model.charges[-1]
        assert f"{percent(newest.share)} of the last request" in text
        fifth = cache_text(b.session.view, "Turn 5")
        assert "Newest requests with “Turn 5” (" in fifth
        assert all("turn 5, " in line for line in fifth.splitlines() if line.startswith("  turn "))
        assert "No request matches “elsewhere”." in cache_text(b.session.view, "elsewhere")


async def test_each_miss_is_told_with_its_cause(tmp_path: Path) -> None:
    clock = Clock()
    script = f"""
window = 400000
max_output = 8000
{steps(12)}
[[step]]
text = "Read."
[[step]]
text = "After the pause."
[[step]]
text = "After the loss."
[[step]]
text = "{SUMMARY}"
[[step]]
text = "After the compaction."
[[step]]
text = "After the undo."
"""
    model = cached_model(script, clock)
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model, clock=clock) as b:
        fill(b, 12)
        await b.say("Read the files.")
        assert b.bodies(CacheBreak) == []
        clock.now += 900
        await b.say("Go on.")
        model.cache.forget()
        await b.say("Go on.")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        await b.say("Go on.")
        b.send(UndoCompaction())
        await until(lambda: bool(b.bodies(CompactionUndone)))
        clock.now += 900
        await b.say("Go on.")
        causes = [body.cause for body in b.bodies(CacheBreak)]
        assert [cause.split(":")[0] for cause in causes] == [
            "the cache expired",
            "cause unknown",
            "the conversation was compacted",
            "a compaction was undone",
        ]
        assert [miss.cause for miss in b.session.view.cache.misses] == causes
        text = cache_text(b.session.view)
        assert "4 misses" in text
        opened = await CACHE.run(b.session, "expired")
        assert (opened.screen, opened.argument, opened.blocks) == ("cache", "expired", ())
        assert opened.instead == (TextBlock(cache_text(b.session.view, "expired")),)  # where there is no screen
        assert causes[1] not in cache_text(b.session.view, "expired")
        for cause in causes:
            assert f"    missed: {cause} (" in text
        assert [len(request.misses) for request in b.session.view.cache.requests[-5:]] == [0, 1, 1, 1, 1]


async def test_the_summary_reads_the_live_prefix_from_the_cache(tmp_path: Path) -> None:
    clock = Clock()
    script = f'window = 400000\nmax_output = 8000\n{steps(40)}\n[[step]]\ntext = "Read."\n[[step]]\ntext = "{SUMMARY}"'
    model = cached_model(script, clock)
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model, clock=clock) as b:
        fill(b, 40)
        await b.say("Read the files.")
        b.send(Compact())
        await until(lambda: bool(b.bodies(CompactionCompleted)) and not b.session.view.busy)
        charge = model.charges[-1]
        assert charge.share >= 0.97
        assert charge.cost(output=50) <= 0.16 * charge.total
        assert b.session.view.cache.misses == ()


async def test_what_is_known_of_the_cache_survives_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    model = cached_model(f'{steps(3)}\n[[step]]\ntext = "Read."', clock)
    async with bench('[[step]]\ntext = "x"', tmp_path, make_client=lambda _name: model, clock=clock) as b:
        fill(b, 3)
        await b.say("Read the files.")
        before, facts = cache_text(b.session.view), list(b.facts)
    async with bench('[[step]]\ntext = "x"', tmp_path, history=facts) as again:
        assert cache_text(again.session.view) == before


async def test_without_a_request_or_a_report_there_is_nothing_to_show(tmp_path: Path) -> None:
    async with bench('[[step]]\ntext = "x"\nusage = { silent = true }', tmp_path) as b:
        assert cache_text(b.session.view) == "No answer yet."
        await b.say("hi")
        assert cache_text(b.session.view) == "The provider reports no token counts."
