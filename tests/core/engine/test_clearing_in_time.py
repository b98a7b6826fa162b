"""When old results are cleared before the context is full: between turns, in large windows, if it pays."""

from pathlib import Path

import pytest

from swecli.core.protocol.events import CompactionCompleted, StepStarted
from tests.core.engine.support import Bench, bench, call

LINES = "\n".join(f"line {number} of a file with some words in it" for number in range(300))
NOW = 1_000.0


def script(window: int, *turns: int) -> str:
    """Turns that read so many files each, and two more."""
    steps: list[str] = []
    for turn, reads in enumerate((*turns, 0, 0)):
        steps += [f"[[step]]\ncall = [{call('read_file', f't{turn}f{number}')}]" for number in range(reads)]
        steps.append('[[step]]\ntext = "Read."')
    return f"window = {window}\nmax_output = 2000\n" + "\n".join(steps)


async def say(b: Bench, turn: int, reads: int) -> None:
    for number in range(reads):
        b.gates.outputs[f"t{turn}f{number}"] = f"file {turn}.{number}\n{LINES}"
    assert (await b.say(f"Turn {turn}.")).outcome == "done"


def cleared(b: Bench) -> list[CompactionCompleted]:
    return [done for done in b.bodies(CompactionCompleted) if done.strategies == ("clearing",)]


async def test_what_a_turn_reads_stays_as_long_as_it_fits(tmp_path: Path) -> None:
    async with bench(script(200_000, 45), tmp_path, clock=lambda: NOW) as b:
        await say(b, 0, 45)
        budgets = [step.budget for step in b.bodies(StepStarted)]
        assert max(budget.share for budget in budgets) > 0.8
        assert not b.bodies(CompactionCompleted)
        await say(b, 1, 0)
        assert len(cleared(b)) == 1
        assert cleared(b)[0].tokens_before - cleared(b)[0].tokens_after > 20_000


@pytest.mark.parametrize(("window", "batches"), [(32_000, 0), (61_000, 0), (64_000, 1)])
async def test_small_windows_are_left_alone_until_they_are_full(tmp_path: Path, window: int, batches: int) -> None:
    reads = round(0.7 * window / 3_400)
    async with bench(script(window, reads), tmp_path, clock=lambda: NOW) as b:
        await say(b, 0, reads)
        await say(b, 1, 0)
        assert len(b.bodies(CompactionCompleted)) == batches


async def test_a_pause_changes_nothing_in_a_small_window(tmp_path: Path) -> None:
    now = [NOW]
    async with bench(script(32_000, 6), tmp_path, clock=lambda: now[0]) as b:
        await say(b, 0, 6)
        now[0] += 10_000
        await say(b, 1, 0)
        assert not b.bodies(CompactionCompleted)


async def test_the_newest_request_decides_whether_the_cache_is_cold_and_not_the_process(tmp_path: Path) -> None:
    """What can be cleared is worth nothing as long as the provider has the prompt in its cache."""
    reads, window = 9, 128_000
    now = [NOW]
    async with bench(script(window, reads), tmp_path, clock=lambda: now[0]) as b:
        await say(b, 0, reads)
        facts = list(b.facts)
    for pause, batches in ((30.0, 0), (301.0, 1)):
        now[0] = facts[-1].ts + pause
        async with bench(script(window), tmp_path, clock=lambda: now[0], history=facts) as again:
            before = len(again.bodies(CompactionCompleted))
            await say(again, 1, 0)
            assert len(again.bodies(CompactionCompleted)) - before == batches, pause


async def test_a_long_turn_that_fills_the_window_may_lose_anything(tmp_path: Path) -> None:
    async with bench(script(32_000, 26), tmp_path, clock=lambda: NOW) as b:
        await say(b, 0, 26)
        done = b.bodies(CompactionCompleted)
        assert 1 <= len(done) <= 8
        assert all(one.tokens_before > 0.9 * (32_000 - 2_000) for one in done)
