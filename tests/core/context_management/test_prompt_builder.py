from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from swecli.core.context_management.prompt import BASE, TOOL_NOTES, Prompt, PromptSection, build_prompt
from swecli.core.protocol.budget import MEMORY, PROJECT_INSTRUCTIONS, SKILLS, SYSTEM, USER_INSTRUCTIONS

ALL = [
    PromptSection(BASE, "base text"),
    PromptSection(TOOL_NOTES, "tool text"),
    PromptSection(USER_INSTRUCTIONS, "user text"),
    PromptSection(PROJECT_INSTRUCTIONS, "project text"),
    PromptSection(MEMORY, "memory text"),
    PromptSection(SKILLS, "skill text"),
]


def breakpoints(prompt: Prompt) -> tuple[int, ...]:
    return tuple(index for index, block in enumerate(prompt.system) if block.breakpoint)


def test_sections_come_from_the_most_stable_to_the_least_whatever_the_order_of_adding() -> None:
    expected = build_prompt(ALL)
    assert [block.text for block in expected.system] == [section.content for section in ALL]
    for order in itertools.islice(itertools.permutations(ALL), 0, 720, 37):
        assert build_prompt(order) == expected


def test_breakpoints_follow_user_project_and_session() -> None:
    prompt = build_prompt(ALL)
    assert [prompt.system[index].text for index in breakpoints(prompt)] == ["user text", "project text", "skill text"]
    assert breakpoints(build_prompt(ALL[:1])) == (0,)
    assert breakpoints(build_prompt([])) == ()
    assert breakpoints(build_prompt([ALL[0], ALL[3]])) == (0, 1)


def test_empty_sections_are_left_out() -> None:
    prompt = build_prompt([ALL[0], PromptSection(MEMORY, " \n")])
    assert [block.text for block in prompt.system] == ["base text"]
    assert breakpoints(prompt) == (0,)


def test_each_block_is_attributed_to_its_component() -> None:
    components = build_prompt(ALL).components
    assert components["base text"] == components["tool text"] == SYSTEM
    assert components["project text"] == PROJECT_INSTRUCTIONS
    assert components["memory text"] == MEMORY


NAMES = st.sampled_from([section.name for section in ALL] + ["zebra", "apple"])


@given(st.lists(st.builds(PromptSection, NAMES, st.text(max_size=8)), max_size=12))
def test_any_sections_keep_their_text_and_at_most_three_breakpoints(sections: list[PromptSection]) -> None:
    prompt = build_prompt(sections)
    texts = [block.text for block in prompt.system]
    assert sorted(texts) == sorted(s.content for s in sections if s.content.strip())
    assert len(breakpoints(prompt)) <= 3
    assert not texts or prompt.system[-1].breakpoint
    assert all(text in prompt.components for text in texts)
