"""The system prompt: sections from the most stable to the least, with cache breakpoints between them.

Providers reuse what they computed for a prompt only up to the first byte that changed. So nothing that changes
within a session is in here; it goes into the tail after the newest message (see ``tail``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from swecli.core.context_management.components import MEMORY, PROJECT_INSTRUCTIONS, SKILLS, SYSTEM, USER_INSTRUCTIONS
from swecli.core.llm.types import SystemBlock

BASE = "base"
TOOL_NOTES = "tool notes"

_ORDER = (BASE, TOOL_NOTES, USER_INSTRUCTIONS, PROJECT_INSTRUCTIONS, MEMORY, SKILLS)
_GROUPS = (
    (BASE, TOOL_NOTES, USER_INSTRUCTIONS),  # the same in all projects of one user
    (PROJECT_INSTRUCTIONS,),  # the same in all sessions of one project
)
"""After each group, and after what follows them, there is a breakpoint."""


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One section. ``name`` is one of this module's or of ``components``; other names come last. A section that is
    not ``cacheable`` may change from request to request and is moved out of the system prompt."""

    name: str
    content: str
    cacheable: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """A built system prompt. ``components`` maps each block's text to the component that it counts for;
    ``volatile`` is text for the tail."""

    system: tuple[SystemBlock, ...]
    components: Mapping[str, str]
    volatile: str = ""

    @property
    def breakpoints(self) -> tuple[int, ...]:
        """Indexes of the blocks that end with a cache breakpoint; at most three."""
        return tuple(index for index, block in enumerate(self.system) if block.breakpoint)


class PromptBuilder:
    """Orders sections. Equal sections give equal bytes, whatever the order in which they were added."""

    def __init__(self, sections: Iterable[PromptSection] = ()) -> None:
        self._sections = list(sections)

    def add(self, section: PromptSection) -> None:
        """Add one section; sections of one name keep the order in which they were added."""
        self._sections.append(section)

    def build(self) -> Prompt:
        """Put the prompt together; empty sections are left out."""
        present = [section for section in self._sections if section.content.strip()]
        stable = sorted((section for section in present if section.cacheable), key=_rank)
        blocks: list[SystemBlock] = []
        for index, section in enumerate(stable):
            is_last = index + 1 == len(stable)
            ends_group = is_last or _group(stable[index + 1]) != _group(section)
            blocks.append(SystemBlock(section.content, breakpoint=ends_group))
        return Prompt(
            system=tuple(blocks),
            components={section.content: _component(section) for section in stable},
            volatile="\n\n".join(section.content for section in present if not section.cacheable),
        )


def _rank(section: PromptSection) -> tuple[int, str]:
    """Place of a section; unknown names are sorted, so that the order of adding can't change the bytes."""
    known = section.name in _ORDER
    return (_ORDER.index(section.name), "") if known else (len(_ORDER), section.name)


def _group(section: PromptSection) -> int:
    return next((number for number, names in enumerate(_GROUPS) if section.name in names), len(_GROUPS))


def _component(section: PromptSection) -> str:
    return SYSTEM if section.name in (BASE, TOOL_NOTES) else section.name
