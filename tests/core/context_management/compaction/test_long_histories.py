"""A compaction does not look at every earlier message of a long session again."""

from __future__ import annotations

from swecli.core.context_management.compaction.options import Allowances, EntrySizes
from swecli.core.context_management.compaction.package import SessionFacts, build_package, constraints, remembered
from swecli.core.context_management.counter import CharCounter
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.llm.types import ModelInfo
from tests.support.said import Said

MESSAGES = 1_200


class Counted(CharCounter):
    """Counts how often it was asked."""

    asked = 0

    def count(self, text: str) -> int:
        self.asked += 1
        return super().count(text)


def test_messages_without_room_are_not_measured_however_many_there_are() -> None:
    said = Said()
    said.user("Never touch the generated files. Then look around.")
    for number in range(MESSAGES):
        said.user(f"Go on with part {number}, and do it as before. " * 8)
    counter = Counted()
    sizes = EntrySizes(TokenMonitor(counter), ModelInfo("p", "m", 100_000))
    package = build_package(said.ledger, [*said.ledger.entries], "", SessionFacts(), sizes, Allowances.of(20_000))
    assert counter.asked < 400
    assert len(package.kept) + len(package.shortened) == MESSAGES + 1
    assert package.kept[-1] == [*said.ledger.entries][-1]
    assert "Never touch the generated files." in package.text


def test_what_a_message_demands_is_found_once() -> None:
    looked: list[str] = []

    def parts(text: str) -> tuple[str, ...]:
        looked.append(text)
        return (text,)

    found = remembered(parts)
    texts = [f"Never do {number}." for number in range(MESSAGES)]
    for _ in range(3):
        assert [found(text) for text in texts] == [(text,) for text in texts]
    assert len(looked) == MESSAGES
    said = Said()
    for text in texts:
        said.user(text)
    assert [anchor.text for anchor in constraints(said.ledger)] == texts[-40:]
