from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.calibration import family_ratio
from swecli.core.context_management.monitor import GUARD_TOKENS, UNSEEN_TOKENS, TokenMonitor
from swecli.core.llm.types import ModelInfo, ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.budget import ATTACHED, CALLS, REASONING, RESULTS, SUMMARIES, SYSTEM, TOOLS, USER
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    Opaque,
    OpaquePart,
    Origin,
    ReasoningPart,
    Response,
    Stop,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

GPT = ModelInfo("openai", "gpt-x", 200_000, 16_000)
CLAUDE = ModelInfo("anthropic", "claude-x", 200_000, 16_000)
SMALL = ModelInfo("local", "tiny", 8_192, 1_024)
LIMITS = Limits()
RULES = "Always run the tests. " * 20
TOOL = ToolSchema("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def words(count: int) -> str:
    return " the" * count


def user(name: str, count: int = 100) -> Message:
    return Message("user", (TextPart(words(count)),), name)


def answer(name: str, count: int = 50, reasoning: int = 0) -> Message:
    thought = (ReasoningPart(words(reasoning)),) if reasoning else ()
    return Message("assistant", (*thought, TextPart(words(5)), ToolCallPart("c", "read_file", words(count))), name)


def result(name: str, count: int = 200) -> Message:
    return Message("tool", (ToolResultPart("c", "read_file", words(count)),), name)


def request(*messages: Message, tools: tuple[ToolSchema, ...] = (TOOL,)) -> ModelRequest:
    system = (SystemBlock("You are a coding agent. " * 30), SystemBlock(RULES, breakpoint=True))
    return ModelRequest(system, tools, messages)


class Tokenizer:
    """The truth of a fake model: each content costs ``factor`` times the estimate, and there is a fixed overhead."""

    def __init__(self, factor: float, overhead: int = 0) -> None:
        self.factor = factor
        self.overhead = overhead
        self._estimates = TokenMonitor()
        self._counted: dict[Message, int] = {}

    def tokens(self, sent: ModelRequest) -> int:
        fixed = replace(sent, messages=())
        estimate = self._estimates.measure(fixed, LIMITS, GPT).used
        estimate += sum(self._count(message) for message in sent.messages)
        return round(self.factor * estimate) + self.overhead

    def output(self, message: Message) -> int:
        return round(self.factor * self._count(message))

    def _count(self, message: Message) -> int:
        if message not in self._counted:
            self._counted[message] = self._estimates.count_once(message)
        return self._counted[message]


def test_before_the_first_report_everything_is_estimated_by_component() -> None:
    sent = request(user("u1"), answer("a1", reasoning=30), result("r1"))
    budget = TokenMonitor().measure(sent, LIMITS, GPT, {RULES: "project instructions"})
    names = [component.name for component in budget.components]
    assert {SYSTEM, "project instructions", TOOLS, USER, REASONING, CALLS, RESULTS} <= set(names)
    assert len(set(names)) == len(names)
    assert sum(component.tokens for component in budget.components) == budget.used
    tokens = {part.name: part.tokens for part in budget.components}
    assert tokens["project instructions"] == pytest.approx(100, abs=10)
    assert tokens[RESULTS] == pytest.approx(200 + 8 + 4, abs=5)
    assert budget.source == "estimated"
    assert budget.upper == budget.used + UNSEEN_TOKENS
    more = TokenMonitor().measure(request(*(result(f"r{n}") for n in range(40))), LIMITS, GPT)
    assert more.upper == pytest.approx(1.1 * more.used, abs=2)
    assert (budget.window, budget.reserve, budget.effective) == (200_000, 16_000, 184_000)


def test_attached_files_and_summaries_are_components_of_their_own() -> None:
    """What stands before them, such as the environment, counts with them; what the user says never does."""
    image = ImagePart("image/png", "AAAA")
    said = {
        USER: Message("user", (TextPart("Look at [Attached by me], " + words(50)), image), "u1"),
        ATTACHED: Message("user", (TextPart(f"[Attached by the user: @a.png]{words(70)}"), image), "t2"),
        SUMMARIES: Message("user", (TextPart(words(20)), TextPart(f"<compacted entries=3>{words(90)}")), "k3"),
    }
    monitor = TokenMonitor()
    for name, message in said.items():
        assert [part for part, _ in monitor.shares((message,), GPT)[0].items()] == [name]
    budget = monitor.measure(request(*said.values()), LIMITS, GPT)
    assert set(said) <= {component.name for component in budget.components}
    assert sum(component.tokens for component in budget.components) == budget.used


def test_a_model_family_has_its_own_measure_from_the_start() -> None:
    sent = request(user("u1", 5_000))
    monitor = TokenMonitor()
    assert monitor.measure(sent, LIMITS, CLAUDE).used == pytest.approx(
        1.3 * monitor.measure(sent, LIMITS, GPT).used, rel=0.01
    )
    assert family_ratio("deepseek/deepseek-chat") == 1.13
    assert family_ratio("openrouter/anthropic/claude-y") == 1.3
    assert family_ratio("openrouter/openai/gpt-5") == 1.0
    assert family_ratio("local/qwen") == 1.15
    assert family_ratio("") == 1.15


def test_the_reported_size_is_taken_over_exactly() -> None:
    monitor = TokenMonitor()
    sent = request(user("u1"))
    monitor.observe(sent, Usage(input_total=1_234, output_total=80), GPT)
    budget = monitor.measure(sent, LIMITS, GPT)
    assert budget.used == 1_234
    assert budget.source == "measured"
    assert budget.upper == 1_234 + GUARD_TOKENS
    assert sum(component.tokens for component in budget.components) == 1_234


def test_the_next_request_is_the_report_plus_the_answer_plus_what_is_new() -> None:
    monitor = TokenMonitor()
    first = request(user("u1"))
    monitor.observe(first, Usage(input_total=1_000, output_total=321), GPT)
    second = request(user("u1"), answer("a1"))
    assert monitor.measure(second, LIMITS, GPT).used == 1_321
    third = request(user("u1"), answer("a1"), result("r1", 500))
    assert monitor.measure(third, LIMITS, GPT).used == pytest.approx(1_321 + 500, abs=20)


def test_reasoning_that_is_not_sent_back_is_learned() -> None:
    monitor = TokenMonitor()
    history: tuple[Message, ...] = (user("u0"),)
    size = 1_000
    for step in range(3):
        sent = request(*history)
        monitor.observe(sent, Usage(input_total=size, output_total=2_050, reasoning=2_000), GPT)
        history = (*history, answer(f"a{step}", reasoning=2_000), result(f"r{step}"))
        size += 50 + monitor.count_once(history[-1])
    assert monitor.measure(request(*history), LIMITS, GPT).used == pytest.approx(size, rel=0.02)
    assert monitor.ratio(GPT) == pytest.approx(1.0, abs=0.05)


def test_an_edit_of_history_is_measured_from_what_each_message_cost() -> None:
    truth = Tokenizer(1.6, overhead=300)
    monitor = TokenMonitor()
    history: tuple[Message, ...] = (user("u0"),)
    for step in range(12):
        sent = request(*history)
        reply = answer(f"a{step}")
        monitor.observe(sent, Usage(input_total=truth.tokens(sent), output_total=truth.output(reply)), GPT)
        history = (*history, reply, result(f"r{step}", 400))
    edited = request(history[0], *history[9:])
    budget = monitor.measure(edited, LIMITS, GPT)
    assert budget.used == pytest.approx(truth.tokens(edited), rel=0.03)
    stub = Message("tool", (ToolResultPart("c", "read_file", "[cleared]"),), history[2].id)
    stubbed = request(history[0], history[1], stub, *history[3:])
    assert monitor.measure(stubbed, LIMITS, GPT).used == pytest.approx(truth.tokens(stubbed), rel=0.03)
    monitor.observe(stubbed, Usage(input_total=truth.tokens(stubbed)), GPT)
    whole = request(*history)
    assert monitor.measure(whole, LIMITS, GPT).used == pytest.approx(truth.tokens(whole), rel=0.03)


def test_another_model_starts_anew_and_the_first_is_remembered() -> None:
    monitor = TokenMonitor()
    sent = request(user("u1"))
    monitor.observe(sent, Usage(input_total=2_000), GPT)
    assert monitor.measure(sent, LIMITS, CLAUDE).source == "estimated"
    assert monitor.measure(sent, LIMITS, GPT).used == 2_000


def test_a_changed_tool_set_keeps_what_is_known_of_the_messages() -> None:
    truth = Tokenizer(1.5)
    monitor = TokenMonitor()
    sent = request(user("u1", 4_000))
    monitor.observe(sent, Usage(input_total=truth.tokens(sent)), GPT)
    changed = request(user("u1", 4_000), tools=(TOOL, replace(TOOL, name="write_file")))
    assert monitor.measure(changed, LIMITS, GPT).used == pytest.approx(truth.tokens(changed), rel=0.06)
    monitor.observe(changed, Usage(input_total=truth.tokens(changed)), GPT)
    assert monitor.measure(changed, LIMITS, GPT).used == truth.tokens(changed)


@pytest.mark.parametrize("usage", [Usage(), Usage(input_total=0), Usage(input_total=12), Usage(output_total=5)])
def test_reports_that_say_nothing_or_can_not_be_true_are_passed_over(usage: Usage) -> None:
    monitor = TokenMonitor()
    sent = request(user("u1", 1_000))
    before = monitor.measure(sent, LIMITS, GPT)
    monitor.observe(sent, usage, GPT)
    assert monitor.measure(sent, LIMITS, GPT) == before


def test_absurd_reports_neither_raise_nor_turn_the_measure_negative() -> None:
    monitor = TokenMonitor()
    source = random.Random(3)
    history: tuple[Message, ...] = (user("u0"),)
    for step in range(60):
        sent = request(*history)
        usage = Usage(
            input_total=source.choice([None, 0, 1, 10**9, source.randrange(5_000)]),
            output_total=source.choice([None, 0, 10**7, 5]),
            reasoning=source.choice([None, 0, 10**8]),
        )
        monitor.observe(sent, usage, GPT)
        history = (*history, answer(f"a{step}", reasoning=3), result(f"r{step}"))
        budget = monitor.measure(request(*history), LIMITS, GPT)
        assert 0 <= budget.used <= budget.upper
        assert sum(component.tokens for component in budget.components) == budget.used
        assert 0.5 <= monitor.ratio(GPT) <= 2


def test_a_small_window_is_not_eaten_by_the_guard_band() -> None:
    monitor = TokenMonitor()
    sent = request(user("u1"))
    monitor.observe(sent, Usage(input_total=1_000), SMALL)
    budget = monitor.measure(sent, LIMITS, SMALL)
    assert budget.upper - budget.used == pytest.approx(0.02 * 8_192, abs=1)


def test_a_large_addition_widens_the_band() -> None:
    monitor = TokenMonitor()
    monitor.observe(request(user("u1")), Usage(input_total=1_000, output_total=10), GPT)
    budget = monitor.measure(request(user("u1"), answer("a1"), result("r1", 50_000)), LIMITS, GPT)
    assert budget.upper - budget.used == pytest.approx(5_000, rel=0.02)


def test_images_and_opaque_parts_have_a_size() -> None:
    origin = Origin("p", "h", "m")
    message = Message(
        "user",
        (ImagePart("image/png", "x" * 100_000), OpaquePart(Opaque(origin, {"blob": "y" * 500}))),
        "u1",
    )
    count = TokenMonitor().count_once(message)
    assert 1_600 < count < 2_000


def test_messages_without_parts_or_id_are_measured() -> None:
    monitor = TokenMonitor()
    bare = request(Message("user", ()), Message("user", (TextPart("a"),)), Message("assistant", ()))
    assert monitor.measure(bare, LIMITS, GPT).used > 0
    assert monitor.measure(ModelRequest((), (), ()), LIMITS, GPT).used == 0


def test_each_content_is_counted_once() -> None:
    class Counting:
        calls = 0

        def count(self, text: str) -> int:
            self.calls += 1
            return len(text)

    counter = Counting()
    monitor = TokenMonitor(counter)
    messages = tuple(user(f"u{number}") for number in range(50))
    monitor.measure(request(*messages), LIMITS, GPT)
    before = counter.calls
    copies = tuple(user(f"u{number}") for number in range(50))
    monitor.measure(request(*copies, user("new")), LIMITS, GPT)
    assert counter.calls - before == 1  # the new message


STEP = st.tuples(st.integers(0, 900), st.integers(0, 900), st.integers(0, 900))


@settings(deadline=None, max_examples=60)
@given(st.floats(0.7, 1.9), st.integers(0, 2_000), st.lists(STEP, min_size=1, max_size=12))
def test_the_upper_edge_is_never_below_the_truth_once_anchored(
    factor: float, overhead: int, steps: list[tuple[int, int, int]]
) -> None:
    truth = Tokenizer(factor, overhead)
    monitor = TokenMonitor()
    history: tuple[Message, ...] = (user("u0"),)
    sent = request(*history)
    for number, (call, output, question) in enumerate(steps):
        reply = answer(f"a{number}", call)
        usage = Usage(input_total=truth.tokens(sent), output_total=truth.output(reply))
        monitor.observe(sent, usage, GPT)
        history = (*history, reply, result(f"r{number}", output))
        if question > 600:
            history = (*history, user(f"q{number}", question - 600))
        sent = request(*history)
        budget = monitor.measure(sent, LIMITS, GPT)
        assert budget.source == "measured"
        assert budget.upper >= truth.tokens(sent)
        assert sum(component.tokens for component in budget.components) == budget.used


def test_a_runaway_answer_of_an_earlier_run_does_not_enlarge_the_fixed_part() -> None:
    runaway = Message(
        "assistant",
        (TextPart("ab" * 200),),
        "a1",
        Response(Origin("openai-chat", "local", "tiny"), Stop("length"), Usage(700, output_total=1_400)),
    )
    first, second = request(user("u1")), request(user("u1"), runaway)
    before = TokenMonitor()
    before.observe(first, Usage(700, output_total=1_400), SMALL)
    known = before.measure(second, LIMITS, SMALL)
    assert known.used == 2_100

    after = TokenMonitor()
    after.adopt_answers(second.messages, SMALL)
    after.observe(second, Usage(known.used), SMALL)
    again = after.measure(second, LIMITS, SMALL)
    assert again.used == known.used
    for part in known.components:
        now = next(other.tokens for other in again.components if other.name == part.name)
        assert now == pytest.approx(part.tokens, abs=2)
