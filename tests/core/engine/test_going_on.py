"""What becomes of an answer that broke off, and of a model that is overloaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from swecli.core.context_management.ledger import GO_ON_NOTE
from swecli.core.engine.model_call import (
    BUSY_SECONDS,
    LONGEST_OUTAGE_PAUSE,
    LONGEST_PAUSE,
    OUTAGE_SECONDS,
    busy_delay,
    duration,
    outage_delay,
    passes_with_time,
    retry_delay,
    why_not_again,
)
from swecli.core.engine.settings import TurnLimits
from swecli.core.llm.scripted import ScriptedModel, parse_script
from swecli.core.llm.types import ErrorKind, ModelRequest, ProviderError, StreamEvent, TextDelta
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Interrupt, SetEffort, SetModel, Submit
from swecli.core.protocol.events import (
    CompactionCompleted,
    ItemCompleted,
    ItemDelta,
    ModelChanged,
    ModelResponded,
    Notice,
    RetryScheduled,
    StepEnded,
    StepStarted,
)
from swecli.core.protocol.messages import Usage
from swecli.core.sessions.database import open_in_memory
from swecli.core.sessions.store import SessionStore
from tests.core.engine.support import Bench, bench, call, until
from tests.core.engine.test_model_choice import Family, family_bench, notices

WRITE = f"""
reasoning = "Think first."
text = "I will write."
call = [{call("write_file", "a.txt")}, {call("write_file", "b.txt")}]
"""
LENGTH = len("Think first.") + len("I will write.") + 2 * len('{"target": "a.txt"}')
DONE = '[[step]]\ntext = "All is done."'


def prefix_is_kept(requests: list[ModelRequest]) -> bool:
    """Whether each request begins with all messages of the one before."""
    return all(later.messages[: len(one.messages)] == one.messages for one, later in pairwise(requests))


def said(b: Bench) -> str:
    return "".join(message.text for message in b.session.view.messages if message.role == "assistant")


@pytest.mark.parametrize("after", range(LENGTH + 1))
async def test_a_cut_at_any_place_is_gone_on_with_and_no_tool_runs_twice(tmp_path: Path, after: int) -> None:
    script = f'[[step]]\n{WRITE}\nfault = {{ kind = "cut", after = {after} }}\n[[step]]\n{WRITE}\n{DONE}'
    async with bench(script, tmp_path, policy=Policy(yolo=True)) as b:
        assert (await b.say("go")).outcome == "done"
        assert sorted(b.gates.ended) == ["a.txt", "b.txt"]
        assert said(b).endswith("I will write.All is done.")
        asked = b.model.requests[1].messages
        assert all(len(message.tool_results) == len(asked[at - 1].tool_calls) for at, message in enumerate(asked) if at)
        told = asked[-1].text == GO_ON_NOTE
        assert told == any(message.role == "assistant" for message in asked)
        assert prefix_is_kept(b.model.requests)


async def test_the_part_that_came_is_kept_and_the_model_is_told_to_go_on(tmp_path: Path) -> None:
    script = (
        '[[step]]\ntext = "The first half and"\nfault = { kind = "network", after = 14 }\n'
        '[[step]]\ntext = " the second half."\nexpect = { last_user = "cut off" }'
    )
    async with bench(script, tmp_path) as b:
        assert (await b.say("tell")).outcome == "done"
        assert [(message.role, message.text) for message in b.model.requests[1].messages][1:] == [
            ("assistant", "The first half"),
            ("user", GO_ON_NOTE),
        ]
        assert [body.complete for body in b.bodies(ModelResponded)] == [False, True]
        assert [body.status for body in b.bodies(ItemCompleted)][1:] == ["error", "ok"]
        retry = b.bodies(RetryScheduled)[0]
        assert (retry.attempt, retry.kind) == (1, "network")
        assert len(b.bodies(StepStarted)) == len(b.bodies(StepEnded)) == 2


async def test_only_what_broke_off_says_why(tmp_path: Path) -> None:
    step = '[[step]]\nreasoning = "think well"\ntext = "Half"\nfault = { kind = "network", after = 13 }\n'
    async with bench(step + DONE, tmp_path) as b:
        assert (await b.say("tell")).outcome == "done"
        ended = [(body.status, bool(body.detail)) for body in b.bodies(ItemCompleted)]
        assert ended == [("ok", False), ("ok", False), ("error", True), ("ok", False)]


@pytest.mark.parametrize("into_second", [0, 5])
async def test_a_call_that_broke_off_says_why_it_was_not_executed(tmp_path: Path, into_second: int) -> None:
    after = LENGTH - len('{"target": "b.txt"}') + into_second
    script = f'[[step]]\n{WRITE}\nfault = {{ kind = "stall", after = {after}, seconds = 0 }}\n{DONE}'
    async with bench(script, tmp_path) as b:
        assert (await b.say("go")).outcome == "done"
        calls = [body.detail for body in b.bodies(ItemCompleted) if body.status in ("error", "interrupted")]
        assert "nothing arrived for too long" in calls[-1]
        assert not any("too long" in detail for detail in calls[:-1])


async def test_an_answer_that_broke_off_is_paid_for_by_an_estimate(tmp_path: Path) -> None:
    def price(model: str, usage: Usage) -> str | None:
        return f"0.{usage.output_total:03}"

    cut = '[[step]]\ntext = "The first half and"\nfault = { kind = "cut", after = 16 }\n'
    async with bench(f'{cut}[[step]]\ntext = "x"', tmp_path, price=price) as b:
        await b.say("tell")
        first, second = b.bodies(StepEnded)
        assert (first.estimated, second.estimated) == (True, False)
        assert first.cost == "0.004"
        assert first.usage.input_total > 0


async def test_a_step_cap_counts_going_on(tmp_path: Path) -> None:
    cut = '[[step]]\ntext = "half an answer"\nfault = { kind = "cut", after = 4 }\n'
    async with bench(cut * 2, tmp_path, limits=TurnLimits(max_steps=1)) as b:
        end = await b.say("tell")
        assert (end.outcome, end.error_kind) == ("limit", "max_turns")
        assert end.reason == "stopped at the limit of 1 model step"
        assert said(b) == "half"


@pytest.mark.parametrize("kind", ["auth", "quota", "bad_request", "garbage"])
async def test_what_does_not_get_better_by_asking_again_ends_the_turn(tmp_path: Path, kind: str) -> None:
    async with bench(f'[[step]]\ntext = "half an answer"\nfault = {{ kind = "{kind}", after = 4 }}', tmp_path) as b:
        assert (await b.say("tell")).outcome == "error"
        assert said(b) == "half"
        assert b.bodies(RetryScheduled) == []


async def test_an_overflow_in_the_middle_of_an_answer_is_compacted_away_once(tmp_path: Path) -> None:
    long = f'[[step]]\nchunk = 200\ntext = "{"word " * 3000}"\n' * 3
    cut = '[[step]]\ntext = "half an answer"\nfault = { kind = "overflow", after = 4 }\n'
    summary = f'[[step]]\ntext = "{"It is all done. " * 30}"\nwhen = {{ tools = true }}\n'
    async with bench(f"{long}{cut}{summary}{DONE}", tmp_path) as b:
        for _ in range(3):
            await b.say("go on")
        assert (await b.say("and now")).outcome == "done"
        assert said(b).endswith("halfAll is done.")
        assert len(b.bodies(CompactionCompleted)) == 1


# --- stand-ins -----------------------------------------------------------------------------------------------

OVERLOADED = '[[step]]\nfault = { kind = "overloaded" }\n'


async def test_an_overloaded_model_has_a_stand_in_for_the_turn(tmp_path: Path) -> None:
    answers = f'[[step]]\ncall = [{call("read_file", "a")}]\n[[step]]\ntext = "from the stand-in"'
    family = Family(main=OVERLOADED * 2 + DONE, other=answers)
    limits = TurnLimits(max_retries=1)
    async with family_bench(family, tmp_path, fallback=("p/other",), limits=limits, price=lambda *_: "0.5") as b:
        assert (await b.say("hi")).outcome == "done"
        assert said(b) == "from the stand-in"
        assert "p/main is overloaded; p/other answers" in notices(b)[0]
        assert [body.model for body in b.bodies(ModelChanged)] == ["p/other"]
        assert str(b.session.view.totals.cost) == "1.0"
        assert (await b.say("again")).outcome == "done"
        assert said(b).endswith("All is done.")
        assert [body.model for body in b.bodies(ModelChanged)] == ["p/other", "p/main"]
        assert b.session.view.model.ref == "p/main"


async def test_the_effort_that_the_user_chose_is_back_with_the_model(tmp_path: Path) -> None:
    family = Family(main=f"{OVERLOADED}{DONE}\n", other=DONE)
    limits = TurnLimits(max_retries=0)
    chosen = {"p/main": "high", "p/other": "medium"}.get
    async with family_bench(family, tmp_path, fallback=("p/other",), limits=limits, effort=chosen) as b:
        b.send(SetEffort("low"))
        await b.say("hi")
        await b.say("again")
        efforts = [request.effort for name in ("main", "other") for request in family.models[name].requests]
        assert efforts == ["low", "low", "medium"]


async def test_a_session_that_ends_with_a_stand_in_goes_on_with_the_users_model(tmp_path: Path) -> None:
    family = Family(main=OVERLOADED + DONE, other=DONE)
    limits = TurnLimits(max_retries=0)
    store = SessionStore(open_in_memory())
    session = store.create(str(tmp_path), "", "1").id
    async with family_bench(family, tmp_path, fallback=("p/other",), limits=limits, session_id=session) as b:
        b.send(SetEffort("low"))
        await b.say("hi")
        store.append(list(b.facts))
        assert b.session.view.replaced == "p/main"
    history = store.load(session)
    model = store.get(session).model
    async with bench("", tmp_path, make_client=family, name=model, history=history, session_id=session) as b:
        await b.say("again")
        assert (model, b.session.view.replaced) == ("p/main", "")
        assert [request.effort for request in family.models["main"].requests] == ["low", "low"]


async def test_the_chain_is_followed_to_its_end(tmp_path: Path) -> None:
    family = Family(
        main=OVERLOADED, b=OVERLOADED, c='[[step]]\nfault = { kind = "rate_limit", retry_after = 90 }\n' + DONE
    )
    limits = TurnLimits(max_retries=0)
    chain = ("p/main", "p/missing", "p/b", "p/c")
    async with family_bench(family, tmp_path, fallback=chain, limits=limits) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("error", "rate_limit")
        assert "The server asks you to wait 90 s" in end.reason
        assert [body.model for body in b.bodies(ModelChanged)] == ["p/b", "p/c"]
        assert any("Fallback p/missing is not available" in text for text in notices(b))


async def test_a_choice_of_the_user_ends_the_standing_in(tmp_path: Path) -> None:
    family = Family(main=OVERLOADED, b=DONE, c=DONE)
    async with family_bench(family, tmp_path, fallback=("p/b",), limits=TurnLimits(max_retries=0)) as b:
        await b.say("hi")
        b.send(SetModel("p/c"))
        await b.say("hi")
        assert b.session.view.model.ref == "p/c"
        assert len(family.models["c"].requests) == 1


async def test_an_overload_in_the_middle_of_an_answer_keeps_what_came(tmp_path: Path) -> None:
    half = '[[step]]\ntext = "half an answer"\nfault = { kind = "overloaded", after = 4 }\n'
    family = Family(main=half, b='[[step]]\ntext = " and the rest"\nexpect = { last_user = "cut off" }')
    async with family_bench(family, tmp_path, fallback=("p/b",), limits=TurnLimits(max_retries=0)) as b:
        assert (await b.say("hi")).outcome == "done"
        assert said(b) == "half and the rest"


@pytest.mark.parametrize("kind", ["server", "auth", "quota", "not_found"])
async def test_other_failures_have_no_stand_in(tmp_path: Path, kind: str) -> None:
    family = Family(main=f'[[step]]\nfault = {{ kind = "{kind}" }}', b=DONE)
    async with family_bench(family, tmp_path, fallback=("p/b",), limits=TurnLimits(max_retries=0)) as b:
        assert (await b.say("hi")).error_kind == kind
        assert b.bodies(Notice) == []


# --- delays --------------------------------------------------------------------------------------------------


def test_delays_double_up_to_a_bound_and_are_spread() -> None:
    error = ProviderError("overloaded", "x")
    assert [retry_delay(error, attempt, 9, 1.0) for attempt in range(1, 8)] == [0.5, 1, 2, 4, 8, 8, 8]
    assert retry_delay(error, 5, 9, 0.25) == 2
    assert retry_delay(error, 10, 9, 1.0) is None


@pytest.mark.parametrize(("asked", "delay"), [(0.0, 0.0), (7.5, 7.5), (60.0, 60.0), (60.1, None)])
def test_the_server_says_when_but_not_beyond_a_minute(asked: float, delay: float | None) -> None:
    assert retry_delay(ProviderError("rate_limit", "x", retry_after=asked), 1, 5, 0.5) == delay


@pytest.mark.parametrize(
    ("kind", "wish", "again"),
    [
        ("server", False, False),
        ("server", None, True),
        ("bad_request", True, True),
        ("bad_request", None, False),
        ("auth", True, False),
        ("context_overflow", True, False),
        ("quota", True, False),
    ],
)
def test_the_server_may_say_whether(kind: ErrorKind, wish: bool | None, again: bool) -> None:
    assert ProviderError(kind, "x", should_retry=wish).retryable is again


def test_durations_are_readable() -> None:
    assert [duration(seconds) for seconds in (0.2, 61, 120, 121, 7199, 7200, 86_400, 2e5, 1e9)] == [
        "1 s", "61 s", "2 min", "3 min", "120 min", "2 h", "24 h", "3 days", "32 years"
    ]  # fmt: skip


class Clock:
    """Time that passes only by pauses, and by ``attempt`` seconds with each of them."""

    def __init__(self, attempt: float = 0.0) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self._attempt = attempt

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds + self._attempt

    def monotonic(self) -> float:
        return self.now


LIMITED = '[[step]]\nfault = { kind = "rate_limit" }\n'


async def test_a_rate_limit_is_outlived_by_time_not_by_a_number_of_attempts(tmp_path: Path) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with bench(LIMITED * 30, tmp_path, sleep=sleep, jitter=lambda: 0.0) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("error", "rate_limit")
        assert 90 <= sum(waits) < 90 + LONGEST_PAUSE
        assert {body.limit for body in b.bodies(RetryScheduled)} == {0}
    waits.clear()
    async with bench(LIMITED * 8 + DONE, tmp_path / "second", sleep=sleep, jitter=lambda: 0.0) as b:
        assert (await b.say("hi")).outcome == "done"
        assert len(waits) == 8


async def test_a_rate_limit_with_a_stand_in_is_not_waited_for_that_long(tmp_path: Path) -> None:
    family = Family(main=LIMITED * 2 + DONE, other='[[step]]\ntext = "from the stand-in"')
    async with family_bench(family, tmp_path, fallback=("p/other",), limits=TurnLimits(max_retries=1)) as b:
        assert (await b.say("hi")).outcome == "done"
        assert said(b) == "from the stand-in"
        assert len(b.bodies(RetryScheduled)) == 1


async def test_an_overload_is_outlived_by_time(tmp_path: Path) -> None:
    clock = Clock()
    changes = {"sleep": clock.sleep, "monotonic": clock.monotonic, "jitter": lambda: 1.0}
    async with bench(OVERLOADED * 40, tmp_path, **changes) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("error", "overloaded")
        assert end.reason.startswith(f"{b.model.info.provider} (HTTP 529): ")
        assert BUSY_SECONDS <= clock.now < BUSY_SECONDS + LONGEST_PAUSE
        assert {body.limit for body in b.bodies(RetryScheduled)} == {0}
    async with bench(OVERLOADED * 12 + DONE, tmp_path / "second", **changes) as b:
        assert (await b.say("hi")).outcome == "done"


async def test_where_all_fallbacks_are_used_up_an_overload_is_outlived_by_time(tmp_path: Path) -> None:
    clock = Clock()
    changes = {"sleep": clock.sleep, "monotonic": clock.monotonic, "jitter": lambda: 1.0}
    family = Family(main=OVERLOADED * 9, b=OVERLOADED * 12 + DONE)
    limits = TurnLimits(max_retries=2)
    async with family_bench(family, tmp_path, fallback=("p/main", "p/b"), limits=limits, **changes) as b:
        assert (await b.say("hi")).outcome == "done"
        retries = b.bodies(RetryScheduled)
        assert [body.limit for body in retries] == [2] * 2 + [0] * 12
        assert all(body.reason.startswith("p (HTTP 529): ") for body in retries)


async def test_slow_refusals_count_towards_the_time_of_an_overload(tmp_path: Path) -> None:
    clock = Clock(attempt=60.0)
    changes = {"sleep": clock.sleep, "monotonic": clock.monotonic, "jitter": lambda: 1.0}
    async with bench(OVERLOADED * 40, tmp_path, **changes) as b:
        assert (await b.say("hi")).outcome == "error"
        assert clock.waits == [1, 2, 4]


async def test_without_retries_an_overload_ends_the_turn_at_once(tmp_path: Path) -> None:
    async with bench(OVERLOADED + DONE, tmp_path, limits=TurnLimits(max_retries=0)) as b:
        assert (await b.say("hi")).error_kind == "overloaded"
        assert b.bodies(RetryScheduled) == []


@pytest.mark.parametrize(
    ("error", "new", "known"),
    [
        (ProviderError("rate_limit", "x", status=429), True, True),
        (ProviderError("overloaded", "x", status=529), True, True),
        (ProviderError("overloaded", "The model is overloaded.", status=503), True, True),
        (ProviderError("overloaded", "x", status=503, error_type="server_is_overloaded"), True, True),
        (ProviderError("overloaded", "x", status=503, retry_after=5.0), True, True),
        (ProviderError("overloaded", "Service Unavailable", status=503), False, True),
        (ProviderError("server", "Bad gateway", status=502), False, True),
        (ProviderError("server", "Internal server error", status=500), False, False),
        (ProviderError("not_found", "no such model", status=502), False, False),
    ],
)
def test_only_what_passes_with_time_is_waited_for(error: ProviderError, new: bool, known: bool) -> None:
    assert (passes_with_time(error, False), passes_with_time(error, True)) == (new, known)


GONE = '[[step]]\nfault = { kind = "network" }\n'


@pytest.mark.parametrize("attempt", [0.0, 10.0])
async def test_a_server_that_answered_is_waited_for_through_an_outage(tmp_path: Path, attempt: float) -> None:
    clock = Clock(attempt)
    changes = {"sleep": clock.sleep, "monotonic": clock.monotonic, "jitter": lambda: 1.0}
    async with bench(DONE + "\n" + GONE * 40 + DONE, tmp_path, **changes) as b:
        assert (await b.say("hi")).outcome == "done"
        end = await b.say("again")
        assert (end.outcome, end.error_kind) == ("error", "network")
        assert OUTAGE_SECONDS <= clock.now < OUTAGE_SECONDS + LONGEST_OUTAGE_PAUSE + attempt
        assert clock.waits[:6] == [1, 2, 4, 8, 15, 15]
        retries = b.bodies(RetryScheduled)
        assert {(body.limit, body.unreached) for body in retries} == {(0, "scripted.example")}
        assert "Your message is kept; “continue” (or swecli -c -p continue) tries again." in end.reason
        assert any(message.text.endswith("again") for message in b.session.view.messages if message.role == "user")


async def test_a_gap_in_the_network_does_not_end_the_turn(tmp_path: Path) -> None:
    clock = Clock()
    script = f"{DONE}\n{GONE * 8}{DONE}"
    async with bench(script, tmp_path, sleep=clock.sleep, monotonic=clock.monotonic, jitter=lambda: 0.0) as b:
        await b.say("hi")
        assert (await b.say("again")).outcome == "done"
        assert len(clock.waits) == 8


class Talking(ScriptedModel):
    """Says one word and falls silent; then follows its script."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if not self.requests:
            self.requests.append(request)
            yield TextDelta(0, "well")
            await asyncio.Event().wait()
        async for event in super().stream(request):
            yield event


async def test_a_server_whose_answer_was_interrupted_is_waited_for_as_well(tmp_path: Path) -> None:
    clock = Clock()
    model = Talking(parse_script(GONE * 8 + DONE))
    changes = {"sleep": clock.sleep, "monotonic": clock.monotonic, "jitter": lambda: 0.0}
    async with bench("", tmp_path, make_client=lambda _: model, **changes) as b:
        b.send(Submit("hi"))
        await until(lambda: bool(b.bodies(ItemDelta)), "a word")
        b.send(Interrupt())
        await b.idle()
        assert (await b.say("again")).outcome == "done"
        assert len(clock.waits) == 8


async def test_a_server_that_never_answered_is_given_up_soon(tmp_path: Path) -> None:
    clock = Clock()
    async with bench(GONE * 40, tmp_path, sleep=clock.sleep, monotonic=clock.monotonic, jitter=lambda: 1.0) as b:
        end = await b.say("hi")
        assert (end.outcome, end.error_kind) == ("error", "network")
        assert {body.unreached for body in b.bodies(RetryScheduled)} == {""}
        assert len(clock.waits) == TurnLimits().max_retries
        assert end.reason.endswith("tries again.")


def test_pauses_of_an_outage_grow_up_to_a_bound() -> None:
    error = ProviderError("network", "x", unreached="h")
    assert [outage_delay(error, attempt, 0.0, 0.0) for attempt in (1, 2, 5, 9)] == [0.5, 1, 7.5, 7.5]
    assert outage_delay(error, 3, OUTAGE_SECONDS, 0.0) is None
    assert outage_delay(ProviderError("network", "x", should_retry=False), 1, 0.0, 0.0) is None


def test_what_a_server_asks_for_after_a_rate_limit_counts_but_not_nothing_for_ever() -> None:
    error = ProviderError("rate_limit", "x", retry_after=0.1)
    assert [busy_delay(error, attempt, 0.0, 0.0) for attempt in (1, 3, 4, 6, 9)] == [0.1, 0.1, 4, 10, 10]
    assert busy_delay(ProviderError("rate_limit", "x", retry_after=60.0), 9, 89.0, 0.5) == 60.0
    assert busy_delay(ProviderError("rate_limit", "x", retry_after=60.1), 1, 0.0, 0.5) is None
    assert busy_delay(ProviderError("rate_limit", "x", should_retry=False), 1, 0.0, 0.5) is None


def test_when_a_quota_resets_is_said_if_it_takes_long() -> None:
    assert why_not_again(ProviderError("quota", "x", retry_after=3 * 3600.0)) == "The quota resets in 3 h."
    assert not why_not_again(ProviderError("quota", "x", retry_after=1.0))
    assert not why_not_again(ProviderError("quota", "x"))
