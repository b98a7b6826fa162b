"""The system prompt of a session in its record, and when a resumed session can't use it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.context_management.prompt import (
    APPENDED,
    BASE,
    PromptSection,
    build_prompt,
    digest_of,
)
from swecli.core.context_management.stored_prompt import (
    QUOTED,
    Conditions,
    restored,
    sent_prompt,
    why_built_anew,
    with_texts,
)
from swecli.core.protocol.budget import MEMORY, PROJECT_INSTRUCTIONS, USER_INSTRUCTIONS
from swecli.core.protocol.context_events import PromptPart
from swecli.core.protocol.events import SystemPromptSent

SECTIONS = (
    PromptSection(BASE, "You are swecli."),
    PromptSection(APPENDED, "Be brief."),
    PromptSection(PROJECT_INSTRUCTIONS, "Use tabs."),
    PromptSection(USER_INSTRUCTIONS, "Be kind."),
    PromptSection(MEMORY, "We use blanks."),
)
HERE = Conditions("/proj", trusted=True)
FILE = PromptPart("AGENTS.md", "1", PROJECT_INSTRUCTIONS)
PROMPT = replace(build_prompt(SECTIONS), sources=(FILE,))


def sent(*known: SystemPromptSent) -> SystemPromptSent:
    return sent_prompt("a/b", PROMPT, 200_000, "t", HERE, known)


def test_a_prompt_comes_back_byte_for_byte_with_its_breakpoints() -> None:
    assert restored(sent()) == PROMPT


def test_each_text_is_stored_once() -> None:
    first = sent()
    again = replace(sent(first), model="a/c")
    assert not any(section.text for section in again.sections)
    assert restored(with_texts(again, (first,))) == PROMPT


def test_a_text_that_was_masked_or_is_missing_is_not_used() -> None:
    first = sent()
    assert restored(sent(first)) is None
    masked = replace(first.sections[0], text="You are ***.")
    assert restored(replace(first, sections=(masked, *first.sections[1:]))) is None


@pytest.mark.parametrize(
    ("changes", "sources", "reason"),
    [
        ({}, (FILE,), ""),
        ({}, (), ""),
        ({}, (replace(FILE, digest="2"),), ""),
        ({"base": "You are swecli.", "append": "Be brief."}, (), ""),
        ({"base": "You are a pirate."}, (), "--system-prompt replaced it"),
        ({"append": ""}, (), "--append-system-prompt changed it"),
        ({"safe_mode": True}, (), "safe mode leaves out all texts of files"),
        ({"trusted": False}, (), "this folder is no longer trusted"),
        ({}, (replace(FILE, source=QUOTED),), "AGENTS.md is no longer approved"),
        ({}, (replace(FILE, source=QUOTED, digest="2"),), ""),
        ({"folder": "/other"}, (), "the session was continued in another folder"),
        ({"memory": False}, (), "memories are off"),
    ],
)
def test_a_prompt_is_built_anew_for_a_reason(
    changes: dict[str, Any], sources: tuple[PromptPart, ...], reason: str
) -> None:
    assert why_built_anew(sent(), replace(HERE, **changes), sources) == reason


def test_trust_that_is_given_later_keeps_the_prompt() -> None:
    quoted = replace(sent(), trusted=False)
    assert why_built_anew(quoted, HERE, (FILE,)) == ""


def test_a_digest_tells_texts_apart_whatever_they_hold() -> None:
    assert digest_of("\ud800") != digest_of("?")
