"""A model in a loop gets a note, and then the user decides; waiting and working are no loops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.engine.repeats import ASKED, RepeatDetector, Repetition, SeenCall, normalised
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Answer, Interrupt, Steer
from swecli.core.protocol.events import Notice, QuestionAnswered, QuestionAsked, TurnEnded
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import Bench, bench, call, new_notes, until

DONE = '[[step]]\ntext = "done"'


def failing(result: str = "it is broken", arguments: str = '{"target": "x"}') -> SeenCall:
    return SeenCall("run_command", arguments, result, failed=True, waits=True, about="run_command x")


def look(target: str, result: str = "text") -> SeenCall:
    return SeenCall("read_file", json.dumps({"path": target}), result, about=f"read_file {target}")


def run(target: str, result: str) -> SeenCall:
    return SeenCall("run_command", json.dumps({"command": target}), result, waits=True, about=target)


def observed(*calls: SeenCall) -> list[Repetition | None]:
    detector = RepeatDetector()
    return [detector.observe(one) for one in calls]


# --- the decision -------------------------------------------------------------------------------------------


def test_the_third_same_failure_is_noted_and_the_fifth_asks() -> None:
    found = observed(*[failing()] * 5)
    assert found[:2] == [None, None]
    assert [one.rounds for one in found[2:] if one] == [3, 4, 5]
    assert [one.asks for one in found[2:] if one] == [False, False, True]


def test_failures_count_although_something_else_is_done_between_them() -> None:
    found = observed(failing(), look("a"), failing(), look("b"), look("c"), failing())
    assert found[-1] == Repetition("failing", 3, ("run_command x",))
    assert found[:-1] == [None] * 5


@pytest.mark.parametrize("period", [1, 2, 3])
def test_reading_in_circles(period: int) -> None:
    found = observed(*[look(f"f{number % period}") for number in range(5 * period)])
    assert found[: 3 * period - 1] == [None] * (3 * period - 1)
    noted, asked = found[3 * period - 1], found[-1]
    assert noted is not None
    assert noted.kind == "looking"
    assert noted.rounds == 3
    assert len(noted.about) == period
    assert asked is not None
    assert asked.asks


def test_a_longer_round_counts_by_its_calls() -> None:
    found = observed(*[look(f"f{number % 4}") for number in range(24)])
    assert found[:12] == [None] * 12
    assert found[12] == Repetition("looking", 4, ("read_file f0",), True)
    assert [one.asks for one in found[12:] if one] == [False] * 8 + [True] * 4


def test_the_same_call_counts_among_new_ones_and_what_changes_does_not() -> None:
    calls = [look("same") if number % 2 else look(f"new{number}") for number in range(12)]
    assert [one.rounds for one in observed(*calls) if one] == [4, 5, 6]
    detector = RepeatDetector()
    for number in range(20):
        detector.observe(look("same"))
        detector.observe(look(f"new{number}"))
        if number % 3 == 2:
            detector.compacted()  # what left the view may be read again
    assert detector.observe(look("same")) is None


def compacted(*spans: str, result: str = "text") -> list[int]:
    """Rounds after each compaction; each span names the files read before one."""
    detector = RepeatDetector()
    rounds: list[int] = []
    for number, span in enumerate(spans):
        for target in span.split():
            detector.observe(look(target, result.format(number)))
        found = detector.compacted()
        rounds.append(found.rounds if found else 0)
    return rounds


def test_reading_the_same_between_compactions_is_a_circle_of_any_length() -> None:
    assert compacted(*["a b c d e f"] * 6) == [0, 0, 3, 4, 5, 6]
    assert compacted("a b c d", "c d a", "b c d", "a b c", "d a") == [0, 0, 0, 3, 4]


def test_something_new_between_compactions_is_progress() -> None:
    assert compacted(*[f"a b c new{number}" for number in range(9)]) == [0] * 9
    assert compacted(*["a b c"] * 9, result="text {}") == [0] * 9
    assert compacted("a", "a b", "a c", "a", "a", "a") == [0, 0, 0, 0, 3, 4]
    detector = RepeatDetector()
    for _ in range(9):
        detector.observe(look("a"))
        detector.reset()
        assert detector.compacted() is None


def test_waiting_for_something_that_moves_is_no_circle() -> None:
    assert observed(*[run("status", f"{number} of 100 done") for number in range(100)]) == [None] * 100
    assert observed(*[failing(f"not ready: {number} %") for number in range(100)]) == [None] * 100
    assert observed(*[look("log", f"line {number}") for number in range(100)]) == [None] * 100
    waiting = [run("status", f"exit status 0 after 0.1 s\nwaited {number * 0.5:.1f} s") for number in range(100)]
    assert observed(*waiting) == [None] * 100


def test_a_command_that_may_be_waiting_has_more_patience() -> None:
    found = observed(*[run("status", f"exit status 0 after 0.{number} s\npending") for number in range(20)])
    assert found[:5] == [None] * 5
    assert found[5] == Repetition("running", 6, ("status",))
    assert [number for number, one in enumerate(found, 1) if one and one.asks] == [ASKED["running"]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exit status 1 after 0.1 s\nE  assert", "exit status 1 after 2.7 s\nE  assert"),
        ("1 failed in 0.12s", "1 failed in 0.34s"),
        ("<Thing object at 0x7f01aa>", "<Thing object at 0x7f99bb>"),
        ("stored as 3fa9c01d77 (80 lines)", "stored as 9be1c02d11 (80 lines)"),
    ],
)
def test_what_differs_between_two_runs_of_the_same_failure(one: str, other: str) -> None:
    assert failing(one).digest == failing(other).digest
    assert failing(one).digest != failing(one + " and more").digest


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"path": "a.py", "limit": 3}', '{ "limit":3, "path":"./a.py" }', True),
        ('{"command": "make  test "}', '{"command": "make test"}', True),
        ('{"path": "a.py", "offset": null}', '{"path": "a.py"}', True),
        ("", "{}", True),
        ('{"path": "a.py"}', '{"path": "b.py"}', False),
        ('{"old_string": "a  b"}', '{"old_string": "a b"}', False),
        ("{not json", "{not json ", True),
    ],
)
def test_arguments_without_what_makes_no_difference(one: str, other: str, same: bool) -> None:
    assert (normalised(one) == normalised(other)) is same


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=60))
def test_results_that_all_differ_never_fire(calls: list[tuple[str, bool]]) -> None:
    seen = [SeenCall("t", name, f"result {number}", failed=bad) for number, (name, bad) in enumerate(calls)]
    assert observed(*seen) == [None] * len(calls)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=20), max_size=8), st.text(max_size=40))
def test_any_arguments_and_results(arguments: list[str], result: str) -> None:
    for text in arguments:
        found = observed(*[SeenCall("t", text, result, failed=True)] * 3)
        assert found[-1] is not None


# --- in a session -------------------------------------------------------------------------------------------


def script(*steps: str) -> str:
    return "\n".join([*steps, DONE])


def steps(tool: str, targets: str) -> list[str]:
    return [f"[[step]]\ncall = [{call(tool, target)}]" for target in targets.split()]


def told(b: Bench) -> list[bool]:
    return ["You are in a loop" in new_notes(request) for request in b.model.requests]


async def question(b: Bench, number: int = 1) -> QuestionAsked:
    await until(lambda: len(b.bodies(QuestionAsked)) >= number, "question")
    return b.bodies(QuestionAsked)[number - 1]


async def test_the_model_is_told_after_the_third_failure(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken a broken broken b")), tmp_path) as b:
        assert (await b.say("go")).outcome == "done"
        assert told(b) == [False, False, False, False, True, False]
        text = new_notes(b.model.requests[4])
        assert "read_file" in text
        assert "failed the same way 3 times" in text
        assert [body.topic for body in b.bodies(Notice)] == ["loop"]
        assert b.bodies(QuestionAsked) == []


async def test_the_prefix_is_not_touched_by_the_note(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 4)), tmp_path) as b:
        await b.say("go")
        for earlier, later in zip(b.model.requests, b.model.requests[1:], strict=False):
            assert later.messages[: len(earlier.messages)] == earlier.messages
            assert (later.system, later.tools) == (earlier.system, earlier.tools)


async def test_the_user_stops_it(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 9)), tmp_path) as b:
        b.send(Steer("go"))
        asked = await question(b)
        assert [option.label for option in asked.questions[0].options] == ["Stop", "Continue"]
        b.send(Answer(asked.request, (("Stop",),)))
        await until(lambda: bool(b.bodies(TurnEnded)))
        end = b.bodies(TurnEnded)[0]
        assert end.outcome == "interrupted"
        assert "failed the same way 5 times" in end.reason
        assert len(b.model.requests) == 5
        assert (await b.say("something else")).outcome in ("done", "interrupted")


async def test_the_user_lets_it_go_on_and_is_asked_again(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 11)), tmp_path) as b:
        b.send(Steer("go"))
        for number in (1, 2):
            asked = await question(b, number)
            b.send(Answer(asked.request, (("Continue",),)))
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(TurnEnded)[0].outcome == "done"
        assert len(b.bodies(QuestionAsked)) == 2


async def test_the_users_own_words_reach_the_model(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 5)), tmp_path) as b:
        b.send(Steer("go"))
        asked = await question(b)
        b.send(Answer(asked.request, (("Look into the log instead.",),)))
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(TurnEnded)[0].outcome == "done"
        assert b.model.requests[-1].messages[-1].text == "Look into the log instead."
        assert not told(b)[-1]


async def test_a_question_that_is_closed_ends_the_turn(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 9)), tmp_path) as b:
        b.send(Steer("go"))
        b.send(Answer((await question(b)).request, ()))
        await until(lambda: bool(b.bodies(TurnEnded)))
        assert b.bodies(TurnEnded)[0].outcome == "interrupted"


async def test_without_anybody_to_ask_it_stops_with_the_reason(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 9)), tmp_path) as b:
        b.send(Steer("go"))
        b.send(Answer((await question(b)).request, (), by="headless"))
        await until(lambda: bool(b.bodies(TurnEnded)))
        end = b.bodies(TurnEnded)[0]
        assert (end.outcome, end.error_kind) == ("limit", "repetition")
        assert "failed the same way 5 times" in end.reason
        assert "no user to ask" in end.reason
        assert b.bodies(QuestionAnswered)[0].by == "headless"
        assert len(b.model.requests) == 5


async def test_three_in_one_answer_count_like_three_answers(tmp_path: Path) -> None:
    three = ", ".join([call("read_file", "broken")] * 3)
    async with bench(script(f"[[step]]\ncall = [{three}]"), tmp_path) as b:
        await b.say("go")
        assert told(b) == [False, True]


async def test_each_turn_begins_anew(tmp_path: Path) -> None:
    two = [*steps("read_file", "broken broken"), DONE]
    async with bench("\n".join(two * 4), tmp_path) as b:
        for _ in range(4):
            await b.say("again")
        assert not any(told(b))


def real_call(tool: str, **arguments: object) -> str:
    return f"[[step]]\ncall = [{{ tool = {json.dumps(tool)}, arguments = {json.dumps(json.dumps(arguments))} }}]"


async def test_work_between_two_failures_begins_a_new_count(tmp_path: Path) -> None:
    """A check that keeps failing while files are changed is work; the same failing edit is a circle."""
    check = real_call("run_command", command="exit 1")
    work: list[str] = []
    for number in range(6):
        work += [check, real_call("write_file", path=f"f{number}.txt", content="x\n")]
    policy = Policy(mode="auto", yolo=True)
    async with bench(script(*work), tmp_path, tools=builtin_tools(), policy=policy) as b:
        assert (await b.say("go")).outcome == "done"
        assert not any(told(b))
    edit = real_call("edit_file", path="f0.txt", old_string="absent", new_string="y")
    async with bench(script(*[edit] * 4), tmp_path, tools=builtin_tools(), policy=policy) as b:
        assert (await b.say("go")).outcome == "done"
        assert told(b) == [False, False, False, True, True]


async def test_another_spelling_is_the_same_call_and_told_once(tmp_path: Path) -> None:
    reads = [real_call("read_file", path=path) for path in ("no.py", "no.py", "./no.py", "no.py")]
    async with bench(script(*reads), tmp_path, tools=builtin_tools(), policy=Policy(mode="auto")) as b:
        assert (await b.say("go")).outcome == "done"
        assert [body.text for body in b.bodies(Notice)] == [
            "The model is in a loop: read_file no.py failed the same way 3 times. It was asked to change its approach."
        ]


async def test_reading_two_files_in_turn_is_noted_although_re_reads_are_short(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("".join(f"{name} line {number}\n" for number in range(50)))
    reads = [real_call("read_file", path=name) for name in "ab" * 3]
    async with bench(script(*reads), tmp_path, tools=builtin_tools(), policy=Policy(mode="auto")) as b:
        assert (await b.say("go")).outcome == "done"
        assert told(b) == [False] * 6 + [True]
        assert "read_file a, then read_file b gave the same result 3 times" in new_notes(b.model.requests[-1])


async def test_an_interrupt_while_the_user_is_asked(tmp_path: Path) -> None:
    async with bench(script(*steps("read_file", "broken " * 9)), tmp_path) as b:
        b.send(Steer("go"))
        await question(b)
        b.send(Interrupt())
        await until(lambda: bool(b.bodies(TurnEnded)) and not b.session.view.busy)
        assert b.bodies(TurnEnded)[0].outcome == "interrupted"
        assert b.session.view.question is None


@pytest.mark.parametrize("depth", [150, 250, 900, 5_000])
@pytest.mark.parametrize("opening", ['{"a":', "["])
async def test_nested_arguments_end_no_run(tmp_path: Path, depth: int, opening: str) -> None:
    closing = {"[": "]"}.get(opening, "}")
    nested = '{"target": ' + opening * depth + "1" + closing * depth + "}"
    assert normalised(nested)
    script = f'[[step]]\ncall = [{{ tool = "read_file", arguments = {json.dumps(nested)} }}]\n{DONE}'
    async with bench(script, tmp_path) as b:
        assert (await b.say("go")).outcome == "done"
