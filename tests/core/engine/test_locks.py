"""Which calls may run at the same time."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.engine.tool_calls import EffectLocks, conflict, overlap
from swecli.core.permissions.types import Effects
from tests.support.thorough import examples
from tests.support.waiting import PATIENCE

READ_A, READ_DIR = Effects(reads=("/w/a",)), Effects(reads=("/w",))
WRITE_A, WRITE_B = Effects(writes=("/w/a",)), Effects(writes=("/w/b",))
SHELL, ASK, TODO = Effects(command="make"), Effects(interactive=True), Effects(internal=True)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (READ_A, READ_DIR, False),
        (READ_A, WRITE_A, True),
        (READ_DIR, WRITE_A, True),
        (WRITE_A, WRITE_B, False),
        (WRITE_A, WRITE_A, True),
        (SHELL, READ_A, True),
        (SHELL, SHELL, True),
        (SHELL, ASK, False),
        (WRITE_A, TODO, False),
    ],
)
def test_conflicts(one: Effects, other: Effects, expected: bool) -> None:
    assert conflict(one, other) is expected
    assert conflict(other, one) is expected


def test_a_path_overlaps_itself_and_what_is_below_it() -> None:
    assert overlap("/w", "/w/a/b")
    assert overlap("/w/a", "/w/a")
    assert not overlap("/w/a", "/w/ab")


effects = st.sampled_from([READ_A, READ_DIR, WRITE_A, WRITE_B, SHELL, ASK, TODO])


@settings(max_examples=examples(40, 200), deadline=None)
@given(st.lists(effects, min_size=1, max_size=8), st.randoms())
def test_conflicting_holders_never_overlap_and_keep_their_order(held: list[Effects], random: object) -> None:
    async def scenario() -> None:
        locks = EffectLocks()
        inside: list[int] = []
        entered: list[int] = []

        async def holder(number: int) -> None:
            async with locks.hold(held[number]):
                assert not any(conflict(held[number], held[other]) for other in inside)
                inside.append(number)
                entered.append(number)
                await asyncio.sleep(0)
                inside.remove(number)

        await asyncio.gather(*(holder(number) for number in range(len(held))))
        assert sorted(entered) == list(range(len(held)))
        for earlier in range(len(held)):
            for later in range(earlier + 1, len(held)):
                if conflict(held[earlier], held[later]):
                    assert entered.index(earlier) < entered.index(later)

    asyncio.run(scenario())


async def test_a_cancelled_waiter_lets_the_others_through() -> None:
    locks = EffectLocks()
    release = asyncio.Event()

    async def hold(done: list[str], name: str) -> None:
        async with locks.hold(SHELL):
            if name == "first":
                await release.wait()
            done.append(name)

    done: list[str] = []
    first, second, third = (asyncio.create_task(hold(done, name)) for name in ("first", "second", "third"))
    await asyncio.sleep(0)
    second.cancel()
    release.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert done == ["first", "third"]


async def test_what_only_reads_holds_up_no_other_agent() -> None:
    locks = EffectLocks()
    async with locks.hold(SHELL, "agent-1", reads_only=True):
        async with (
            asyncio.timeout(PATIENCE),
            locks.hold(WRITE_A, "agent-2"),
            locks.hold(SHELL, "agent-3", reads_only=True),
        ):
            pass
        own = asyncio.ensure_future(_held(locks, WRITE_A, "agent-1"))
        await asyncio.sleep(0)
        assert not own.done()  # within one agent the order counts
    await own
    async with locks.hold(WRITE_A, "agent-1"):
        async with asyncio.timeout(PATIENCE), locks.hold(WRITE_B, "agent-2"):
            pass
        command = asyncio.ensure_future(_held(locks, SHELL, "agent-2"))
        await asyncio.sleep(0)
        assert not command.done()
    await command


async def _held(locks: EffectLocks, effects: Effects, agent: str) -> None:
    async with locks.hold(effects, agent):
        pass
