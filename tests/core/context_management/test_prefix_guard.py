"""A request that changes what was sent before is reported, unless the change has a cause."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from swecli.core.context_management.ledger import Ledger
from swecli.core.context_management.prefix_guard import PrefixGuard, unexplained
from swecli.core.llm.types import ModelInfo, ModelRequest, SystemBlock, ToolSchema
from swecli.core.protocol.messages import Message, TextPart

LOOK, SEEK = (ToolSchema(name, "Looks.", {}) for name in ("look", "seek"))


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message("user", (TextPart(text),), text) for text in texts)


BEFORE = ModelRequest((SystemBlock("Be brief."),), (LOOK,), said("one", "two", "three"))


def test_a_request_that_only_grew_is_as_it_should_be() -> None:
    grown = replace(BEFORE, tools=(LOOK, SEEK), messages=(*BEFORE.messages, *said("four")))
    assert unexplained(BEFORE, grown) == ""
    assert unexplained(grown, replace(grown, tools=(SEEK,))) == ""  # a server went


@pytest.mark.parametrize(
    ("now", "change"),
    [
        (replace(BEFORE, system=(SystemBlock("Be long."),)), "the system prompt changed"),
        (replace(BEFORE, tools=(SEEK, LOOK)), "the order of the tools changed"),
        (replace(BEFORE, messages=said("one", "2", "three")), "a message that was sent before changed (user two)"),
        (replace(BEFORE, messages=said("one", "two")), "a message that was sent before changed (user three)"),
    ],
)
def test_any_other_change_is_named(now: ModelRequest, change: str) -> None:
    assert unexplained(BEFORE, now) == change


def test_a_change_with_a_cause_is_none() -> None:
    ledger, told = Ledger(), list[str]()
    guard = PrefixGuard(ledger, told.append)
    model = ModelInfo("a", "b", 8_192)
    guard.check(BEFORE, model)
    guard.answered(BEFORE, model)
    changed = replace(BEFORE, messages=said("else"))
    guard.check(changed, ModelInfo("a", "c", 8_192))
    guard.check(changed, ModelInfo("a", "b", 32_768))  # by which the size of the prompt is chosen
    ledger.rewrites = 1
    guard.check(changed, model)  # the conversation was rewritten
    assert told == []
    ledger.rewrites = 0
    guard.check(changed, model)
    assert told == ["a message that was sent before changed (user one)"]
