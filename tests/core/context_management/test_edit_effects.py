"""What a change of single items is said to do is what the meter shows afterwards, and no drop makes the meter rise:
whatever the provider's tokenizer, and however wrong its reports are."""

from __future__ import annotations

import json
import random

import pytest

from swecli.core.context_management.compaction.options import EntrySizes
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.edits import Effect, edited, effect_of
from swecli.core.context_management.items import ContextItem, items_of, text_sent
from swecli.core.context_management.ledger import APART
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.projection import project
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.budget import PLAYBOOK, RETRIEVED, USER
from swecli.core.protocol.context_events import ContextChange
from swecli.core.protocol.events import ContextEdited, ItemCheckpointed, ItemCompleted, ItemStarted, ModelResponded
from swecli.core.protocol.messages import ImagePart, Origin, TextPart, ToolCallPart, ToolResultPart, Usage
from tests.support.said import Said

INFO = ModelInfo("p", "m", 400_000, 4_000)
WORDS = "some words of a file or of a command's output\n"


class Talk:
    """A conversation whose sizes the provider reports: each message costs another factor, and something is added that
    nobody sees."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.said = Said()
        self.said.ledger.environment = "<environment>\nDate: 2026-01-02\nPlatform: Linux\n</environment>"
        self.context = ContextManager((), monitor=TokenMonitor(CharCounter()))
        self._overhead = self.chance.choice((-300, 0, 0, 80, 900))
        self._low, self._high = self.chance.choice(((0.9, 1.1), (0.6, 1.9), (1.3, 1.3)))
        self._true: dict[str, float] = {}

    def turn(self) -> None:
        self.said.user(self.chance.choice(("Go on.", "Look at it again, and say why. " * 20)))
        self.report()
        for _ in range(self.chance.randint(0, 3)):
            self.calls(self.chance.choice((1, 1, 2, 3)))
            self.report()
        self.said.answer("Done. " * self.chance.randint(1, 60), self.chance.choice(("", "Let me see. " * 30)))

    def calls(self, count: int) -> None:
        """One answer with so many calls, and their results."""
        items = [f"t{self.said.next_id()}" for _ in range(count)]
        for item in items:
            size = self.chance.choice((1, 20, 200))
            call = ToolCallPart(
                f"c{item}", "read_file", json.dumps({"path": f"{item}.py", "note": WORDS * (size // 20)})
            )
            result = ToolResultPart(call.call_id, "read_file", WORDS * size)
            self.said.tell(ItemStarted(item, "tool", "read_file"), ItemCheckpointed(item, call))
            self.said.tell(ItemCompleted(item, "ok", (result,)))
        self.said.tell(ModelResponded(f"m{items[0]}", tuple(items), Origin("", "", "m")))

    def report(self) -> None:
        messages = project(self.said.ledger)
        request = self.context.prepare(messages, info=INFO).request
        monitor = self.context.monitor
        true = sum(monitor.count_tokens(block.text) for block in request.system) + self._overhead
        for message in messages:
            factor = self._true.setdefault(message.id, self.chance.uniform(self._low, self._high))
            true += factor * monitor.count_once(message)
        output = self.chance.choice((None, 40, 400))
        self.context.update_usage(request, Usage(input_total=max(1, round(true)), output_total=output), INFO)

    def used(self) -> int:
        return self.context.measure(project(self.said.ledger), INFO).used

    def items(self) -> tuple[ContextItem, ...]:
        budget = self.context.measure(project(self.said.ledger), INFO)
        found = items_of(self.said.ledger, budget, self.context.monitor, INFO)
        assert sum(item.tokens for item in found) == budget.used
        return found

    def change(self, action: str, *names: str) -> Effect:
        """Make changes; what they were said to do before."""
        ledger, monitor = self.said.ledger, self.context.monitor
        budget, items = self.context.measure(project(ledger), INFO), self.items()
        wanted = [ContextChange(action, name) for name in names]  # type: ignore[arg-type]
        done = edited(ledger, wanted, EntrySizes(monitor, INFO))
        effect = effect_of(done, ledger, items, budget, monitor, INFO, lambda *_sizes: (None, None))
        if done.changes_anything:
            self.said.tell(ContextEdited(done.made, done.entries, done.pinned, done.unpinned))
        return effect


@pytest.mark.parametrize("seed", range(24))
def test_a_change_does_what_was_said_and_no_drop_makes_the_meter_rise(seed: int) -> None:
    talk = Talk(seed)
    for number in range(6):
        talk.turn()
        if number == 3:
            talk.report()
    for _ in range(25):
        before = talk.used()
        action = talk.chance.choice(("drop", "drop", "offload", "restore"))
        names = talk.chance.sample(list(talk.said.ledger.entries), talk.chance.choice((1, 1, 3)))
        effect = talk.change(action, *names)
        after = talk.used()
        assert effect.before == before
        assert abs(effect.after - after) <= 1, (action, names)
        if action == "drop":
            assert after <= before, names
        if talk.chance.random() < 0.15:
            talk.turn()


@pytest.mark.parametrize("seed", range(12))
def test_all_that_is_dropped_one_by_one_only_falls_and_comes_back(seed: int) -> None:
    talk = Talk(seed)
    for _ in range(5):
        talk.turn()
    talk.items()
    whole = talk.used()
    sizes = [whole]
    names = [item.id for item in talk.items() if item.state == "live"]
    for name in names:
        talk.change("drop", name)
        sizes.append(talk.used())
    assert sizes == sorted(sizes, reverse=True)
    talk.change("restore", *names)
    assert talk.used() == whole


def test_the_size_of_an_item_is_what_dropping_it_frees() -> None:
    talk = Talk(1)
    for _ in range(6):
        talk.turn()
    talk.report()
    results = [item for item in talk.items() if item.kind == "result" and item.tokens > 200]
    assert results
    for item in results:
        call = next(one for one in talk.items() if one.id == item.id.removesuffix(".result"))
        effect = talk.change("drop", item.id)
        borders = 12  # of messages: they stay where something else is in the message
        assert effect.before - effect.after == pytest.approx(item.tokens + call.tokens, rel=0.02, abs=borders)
        talk.change("restore", item.id)


def test_the_environment_stays_when_the_message_that_told_it_is_dropped() -> None:
    talk = Talk(2)
    first = talk.said.user("Hi")
    talk.report()
    talk.said.answer("Hello, what is to be done?")
    talk.used()
    before = talk.used()
    effect = talk.change("drop", first)
    assert (effect.before, effect.after) == (before, talk.used())
    assert talk.used() < before
    messages = project(talk.said.ledger)
    assert [message.role for message in messages] == ["user", "assistant"]
    assert messages[0].parts == (TextPart(talk.said.ledger.environment + APART),)
    told = next(item for item in talk.items() if item.id == "[environment]")
    assert (told.state, told.component, told.tokens > 0) == ("fixed", USER, True)


def test_a_note_has_the_component_that_the_meter_counts_it_in() -> None:
    talk = Talk(3)
    talk.said.user("Where is it?")
    notes = {"n1": "<swecli-note>\nPlaybook: run make test\n</swecli-note>"}
    notes["n2"] = (
        "<swecli-note>\nPlaces in this project that fit the message by their words (an index, no judgement; look before"
        " you rely):\nsrc/a.py\n</swecli-note>"
    )
    for name, text in notes.items():
        talk.said.tell(ItemStarted(name, "note"), ItemCompleted(name, "ok", (TextPart(text),)))
    found = {item.id: item for item in talk.items()}
    assert (found["n1"].component, found["n2"].component) == (PLAYBOOK, RETRIEVED)
    assert found["n1"].tokens > 0 < found["n2"].tokens
    assert not any(item.id in (f"[{PLAYBOOK}]", f"[{RETRIEVED}]") for item in found.values())


def test_a_stub_of_a_message_with_images_is_sent_once() -> None:
    said = Said()
    item = f"u{said.next_id()}"
    image = ImagePart("image/png", "eHh4", "a.png")
    said.tell(ItemStarted(item, "user"), ItemCompleted(item, "ok", (TextPart("What is this?"), image, image)))
    said.answer("Two screens.")
    context = ContextManager((), monitor=TokenMonitor(CharCounter()))
    done = edited(said.ledger, [ContextChange("offload", item)], EntrySizes(context.monitor, INFO))
    said.tell(ContextEdited(done.made, done.entries))
    (part,) = project(said.ledger)[0].parts
    assert isinstance(part, TextPart)
    assert part.text == text_sent(said.ledger, item) == done.entries[0].text


@pytest.mark.parametrize("words", [1, 4, 8, 12, 16, 24, 40])
def test_no_offload_makes_the_meter_rise(words: int) -> None:
    said = Said()
    said.user("Look.")
    item = said.call("read_file", {"path": "src/a.py", "of": "word " * words}, "word " * words)
    said.answer("Done.")
    context = ContextManager((), monitor=TokenMonitor(CharCounter()))
    for name in (item, f"{item}.result"):
        before = context.measure(project(said.ledger), INFO).used
        done = edited(said.ledger, [ContextChange("offload", name)], EntrySizes(context.monitor, INFO))
        assert bool(done.refusals) is not bool(done.entries)
        assert not done.entries or context.measure(project(said.ledger, done.view), INFO).used < before
