"""What a provider says about a request, in words."""

from __future__ import annotations

from typing import get_args

import pytest

from swecli.core.protocol.messages import DroppedThoughts, DropReason
from swecli.core.protocol.provider_reports import disagree, dropped_words, miss_words, newly_dropped


def test_dropped_thoughts_are_counted_with_their_cause() -> None:
    assert dropped_words(DroppedThoughts("prefix", 3)) == (
        "3 thoughts dropped by the provider: the messages before them changed"
    )
    assert dropped_words(DroppedThoughts("model", 1)) == ("1 thought dropped by the provider: this model can't read it")
    assert all(dropped_words(DroppedThoughts(reason, 2)) for reason in get_args(DropReason))


def test_what_is_reported_again_is_not_new() -> None:
    before = (DroppedThoughts("prefix", 2),)
    assert newly_dropped(before, before) == ()
    assert newly_dropped(before, (DroppedThoughts("prefix", 5), DroppedThoughts("model", 1))) == (
        DroppedThoughts("prefix", 3),
        DroppedThoughts("model", 1),
    )
    assert newly_dropped(before, ()) == ()


def test_an_unknown_reason_is_shown_as_it_came() -> None:
    assert miss_words("tools_changed") == "the tools changed"
    assert miss_words("weather_changed") == "weather changed"


@pytest.mark.parametrize(
    ("kind", "reason", "rewritten", "wrong"),
    [
        ("tools", "tools_changed", False, False),
        ("compaction", "messages_changed", True, False),
        ("provider", "messages_changed", False, True),
        ("expired", "system_changed", False, True),
        ("tools", "system_changed", False, True),
        ("", "messages_changed", False, True),
        ("", "messages_changed", True, False),
        ("provider", "unavailable", False, False),
        ("provider", "", False, False),
        ("", "previous_message_not_found", False, False),
    ],
)
def test_two_causes_disagree_only_if_both_are_known(kind: str, reason: str, rewritten: bool, wrong: bool) -> None:
    assert disagree(kind, reason, rewritten=rewritten) is wrong
