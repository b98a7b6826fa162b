from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from swecli.core.context_management.prompt import BASE, TOOL_NOTES, PromptBuilder, PromptSection
from swecli.core.protocol.budget import MEMORY, PROJECT_INSTRUCTIONS, SKILLS, SYSTEM, USER_INSTRUCTIONS

ALL = [
    PromptSection(BASE, "base text"),
    PromptSection(TOOL_NOTES, "tool text"),
    PromptSection(USER_INSTRUCTIONS, "user text"),
    PromptSection(PROJECT_INSTRUCTIONS, "project text"),
    PromptSection(MEMORY, "memory text"),
    PromptSection(SKILLS, "skill text"),
]


def test_sections_come_from_the_most_stable_to_the_least_whatever_the_order_of_adding() -> None:
    expected = PromptBuilder(ALL).build()
    assert [block.text for block in expected.system] == [section.content for section in ALL]
    for order in itertools.islice(itertools.permutations(ALL), 0, 720, 37):
        builder = PromptBuilder()
        for section in order:
            builder.add(section)
        assert builder.build() == expected


def test_breakpoints_follow_user_project_and_session() -> None:
    prompt = PromptBuilder(ALL).build()
    assert [prompt.system[index].text for index in prompt.breakpoints] == ["user text", "project text", "skill text"]
    assert PromptBuilder(ALL[:1]).build().breakpoints == (0,)
    assert PromptBuilder([]).build().breakpoints == ()
    assert PromptBuilder([ALL[0], ALL[3]]).build().breakpoints == (0, 1)


def test_empty_sections_are_left_out() -> None:
    prompt = PromptBuilder([ALL[0], PromptSection(MEMORY, " \n")]).build()
    assert [block.text for block in prompt.system] == ["base text"]
    assert prompt.breakpoints == (0,)


def test_what_changes_is_not_in_the_system_prompt() -> None:
    sections = [PromptSection("clock", "12:30", cacheable=False), *ALL, PromptSection("x", "y", cacheable=False)]
    prompt = PromptBuilder(sections).build()
    assert prompt.system == PromptBuilder(ALL).build().system
    assert prompt.volatile == "12:30\n\ny"


def test_each_block_is_attributed_to_its_component() -> None:
    components = PromptBuilder(ALL).build().components
    assert components["base text"] == components["tool text"] == SYSTEM
    assert components["project text"] == PROJECT_INSTRUCTIONS
    assert components["memory text"] == MEMORY


NAMES = st.sampled_from([section.name for section in ALL] + ["zebra", "apple"])


@given(st.lists(st.builds(PromptSection, NAMES, st.text(max_size=8), st.booleans()), max_size=12))
def test_any_sections_keep_their_text_and_at_most_three_breakpoints(sections: list[PromptSection]) -> None:
    prompt = PromptBuilder(sections).build()
    texts = [block.text for block in prompt.system]
    assert sorted(texts) == sorted(s.content for s in sections if s.cacheable and s.content.strip())
    assert len(prompt.breakpoints) <= 3
    assert not texts or prompt.system[-1].breakpoint
    assert all(text in prompt.components for text in texts)
