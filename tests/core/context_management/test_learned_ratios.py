"""What is learned of a model's tokenizer outlives the session, and a broken file does no harm."""

from __future__ import annotations

import json
import random
from datetime import date
from pathlib import Path

import pytest

from swecli.core.context_management.budget import Limits
from swecli.core.context_management.calibration import Calibration, Learned, LearnedRatios, Sent
from swecli.core.context_management.counter import MessageSize
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import RESULTS, USER
from swecli.core.protocol.messages import Message, Usage
from tests.core.context_management.test_monitor import Tokenizer, answer, request, result, user
from tests.support.locked import locked_while_writing

INFO = ModelInfo("local", "qwen3", 200_000, 16_000)


def store(path: Path, day: date = date(2026, 1, 2)) -> LearnedRatios:
    return LearnedRatios(path / "data" / "token-ratios.json", lambda: day)


def run_session(monitor: TokenMonitor, truth: Tokenizer, steps: int = 10, seed: int = 1) -> list[tuple[int, int, int]]:
    """Predicted, upper edge and true size of each prompt."""
    source = random.Random(seed)
    history: tuple[Message, ...] = (user("u0"),)
    sizes: list[tuple[int, int, int]] = []
    for step in range(steps):
        sent = request(*history)
        budget = monitor.measure(sent, Limits(), INFO)
        sizes.append((budget.used, budget.upper, truth.tokens(sent)))
        reply = answer(f"a{step}", source.randrange(20, 200))
        usage = Usage(input_total=truth.tokens(sent), output_total=truth.output(reply))
        monitor.observe(sent, usage, INFO)
        history = (*history, reply, result(f"r{step}", source.randrange(50, 2_000)))
    return sizes


async def test_the_next_session_starts_with_what_this_one_learned(tmp_path: Path) -> None:
    truth = Tokenizer(1.35, overhead=50)
    first = TokenMonitor(ratios=store(tmp_path))
    naive = run_session(first, truth)[0]
    assert abs(naive[0] - naive[2]) > 0.1 * naive[2]
    await first.keep_ratios()
    second = TokenMonitor(ratios=store(tmp_path))
    predicted, _, true = run_session(second, truth)[0]
    assert predicted == pytest.approx(true, rel=0.05)
    assert second.ratio(INFO) == pytest.approx(1.35, rel=0.02)


def test_after_ten_turns_with_a_foreign_tokenizer_the_meter_is_right_and_the_band_holds() -> None:
    inside, later = 0, 0
    for seed in range(20):
        for predicted, upper, true in run_session(TokenMonitor(), Tokenizer(1.35, overhead=200), 30, seed)[10:]:
            later += 1
            assert predicted == pytest.approx(true, rel=0.03)
            inside += true <= upper and true >= predicted - (upper - predicted)
    assert inside >= 0.95 * later


def test_the_band_widens_with_the_errors_seen_lately() -> None:
    monitor = TokenMonitor()
    truth = Tokenizer(1.0)
    history: tuple[Message, ...] = (user("u0"),)
    for step in range(4):
        sent = request(*history)
        # From the third request on, results cost three times what they are taken for.
        surprise = 8_000 if step >= 2 else 0
        usage = Usage(input_total=truth.tokens(sent) + surprise, output_total=60)
        monitor.observe(sent, usage, INFO)
        history = (*history, answer(f"a{step}"), result(f"r{step}", 4_000))
    budget = monitor.measure(request(*history), Limits(), INFO)
    assert budget.upper - budget.used > 3_000


@pytest.mark.parametrize("seed", range(8))
def test_the_band_is_never_narrower_than_the_error_seen_last(seed: int) -> None:
    """Every result costs between half and one and a half times what it is taken for."""
    chance, monitor, truth = random.Random(seed), TokenMonitor(), Tokenizer(1.0)
    history: tuple[Message, ...] = (user("u0"),)
    surprises, error, errors, new = 0, 0.0, 0, 0
    for step in range(25):
        size = chance.randrange(400, 4_000)
        sent = request(*history)
        budget = monitor.measure(sent, Limits(), INFO)
        true = truth.tokens(sent) + surprises
        if new and step > 1:
            assert budget.upper - budget.used >= 0.98 * min(1.0, error) * new, step
            error = abs(true - budget.used) / new
            errors += error > 0.1
        reply = answer(f"a{step}")
        monitor.observe(sent, Usage(input_total=true, output_total=truth.output(reply)), INFO)
        history = (*history, reply, result(f"r{step}", size))
        known = true + truth.output(reply)
        new = monitor.measure(request(*history), Limits(), INFO).used - known
        surprises += round(chance.uniform(-0.5, 0.5) * size)
    assert errors > 10


async def test_it_is_kept_when_it_rests_on_twice_as_much(tmp_path: Path) -> None:
    class Counting(LearnedRatios):
        kept: list[float] = []

        def keep(self, model: str, learned: Learned) -> None:
            self.kept.append(learned.tokens)

    monitor = TokenMonitor(ratios=Counting(tmp_path / "x"))
    run_session(monitor, Tokenizer(1.2), 2)
    for _ in range(5):
        await monitor.keep_ratios()
    run_session(monitor, Tokenizer(1.2), 20, seed=4)
    await monitor.keep_ratios()
    assert 1 <= len(Counting.kept) <= 2
    assert all(later >= 2 * earlier for earlier, later in zip(Counting.kept, Counting.kept[1:], strict=False))


def test_another_provider_of_the_same_model_helps_and_the_family_is_the_last_resort(tmp_path: Path) -> None:
    ratios = store(tmp_path)
    assert ratios.known("anthropic/claude-x") == Learned(1.3)
    ratios.keep("anthropic/claude-x", Learned(1.41, 5_000, 1.5))
    assert ratios.known("anthropic/claude-x") == Learned(1.41, 5_000, 1.5)
    assert ratios.known("router/anthropic/claude-x") == Learned(1.41, 5_000, 1.5)
    assert ratios.known("anthropic/claude-y") == Learned(1.3)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"version": 2}', '{"version": 1, "unit": "chars"}', "\0" * 100, "[" * 100_000],
    ids=["empty", "cut", "list", "null", "later", "other unit", "zeros", "nested"],
)
def test_a_broken_file_is_put_aside_and_told_of(tmp_path: Path, content: str) -> None:
    path = tmp_path / "data" / "token-ratios.json"
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    ratios = store(tmp_path)
    told: list[str] = []
    ratios.tell = told.append
    assert ratios.known("openai/gpt-5") == Learned(1.0)
    ratios.keep("openai/gpt-5", Learned(1.1, 100))
    assert ratios.known("openai/gpt-5") == Learned(1.1, 100)
    (aside,) = path.parent.glob("token-ratios.json.corrupt-*")
    assert aside.read_text(encoding="utf-8") == content
    assert len(told) == 1
    assert str(aside) in told[0]


@pytest.mark.parametrize(
    "entry", [{"ratio": "1"}, {"ratio": True}, {"ratio": 9.0}, {"ratio": 0.0}, {}, [], {"ratio": 1.2, "tokens": "x"}]
)
def test_entries_that_can_not_be_true_are_passed_over(tmp_path: Path, entry: object) -> None:
    path = tmp_path / "data" / "token-ratios.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "unit": "o200k_base", "models": {"a/b": entry}}), encoding="utf-8")
    known = store(tmp_path).known("a/b")
    assert known == Learned(1.2 if isinstance(entry, dict) and entry.get("ratio") == 1.2 else 1.15)


def test_a_place_that_can_not_be_written_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    ratios = store(tmp_path)
    told: list[str] = []
    ratios.tell = told.append
    for _ in range(3):
        ratios.keep("a/b", Learned(1.1, 100))
    assert len(told) == 1
    assert "Could not save" in told[0]


def test_two_sessions_at_a_time_keep_both_and_only_so_many_are_kept(tmp_path: Path) -> None:
    one, other = store(tmp_path), store(tmp_path)
    one.keep("a/one", Learned(1.1, 100))
    other.keep("a/other", Learned(1.2, 100))
    assert one.known("a/other").ratio == 1.2
    file = tmp_path / "data" / "token-ratios.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    kept = data["models"]["a/one"]
    data["models"] |= {f"m/{number}": {**kept, "day": f"2026-02-{1 + number % 28:02}"} for number in range(290)}
    file.write_text(json.dumps(data), encoding="utf-8")
    for number in range(290, 310):
        store(tmp_path, date(2026, 2, 1 + number % 28)).keep(f"m/{number}", Learned(1.1, 100))
    data = json.loads(file.read_text(encoding="utf-8"))
    assert len(data["models"]) == 300
    assert not list((tmp_path / "data").glob(".token*"))


def test_another_session_waits_between_the_reading_and_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios = store(tmp_path)
    locked = locked_while_writing(monkeypatch, "swecli.core.llm.learned_file")
    ratios.keep("local/qwen3", Learned(1.2, 9_000))
    assert locked == [True]


@pytest.mark.parametrize("factor", [0.2, 9.0])
def test_what_a_result_takes_beyond_all_ratios_is_its_own(factor: float) -> None:
    """Of blanks some tokenizers make many times the estimate, of a long word far less: prompt, tools and the other
    messages keep their sizes, before and after such results leave and come back."""
    calibration = Calibration(Learned(1.0))
    first = MessageSize("user", (), ((USER, 1_000),))
    odd = [MessageSize("tool", (), ((RESULTS, 500),)) for _ in range(4)]
    calibration.observe(Sent("fixed", 5_000, (first,)), Usage(input_total=6_000), 100_000)
    for number in range(1, 5):
        sent = Sent("fixed", 5_000, (first, *odd[:number]))
        calibration.observe(sent, Usage(input_total=round(6_000 + number * factor * 500)), 100_000)
    assert calibration.predict(Sent("fixed", 5_000, (first,))).total == pytest.approx(6_000, rel=0.01)
    half = calibration.predict(Sent("fixed", 5_000, (first, *odd[2:])))
    assert half.total == pytest.approx(6_000 + factor * 1_000, rel=0.01)
    assert half.fixed == pytest.approx(5_000, rel=0.01)
