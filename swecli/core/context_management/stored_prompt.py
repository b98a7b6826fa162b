"""The system prompt as the record has it, so that a resumed session can send it as it was.

The newest models sign their thoughts together with the system prompt, and every provider's cache begins with it: built
anew from files that have changed meanwhile, it costs all thoughts. The files' differences are appended as notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.context_management.instructions import InstructionFile, Instructions
from swecli.core.context_management.prompt import (
    APPENDED,
    BASE,
    MemoryText,
    Prompt,
    PromptSection,
    digest_of,
    prompt_of,
)
from swecli.core.protocol.budget import MEMORY, PROJECT_INSTRUCTIONS, SKILLS, USER_INSTRUCTIONS
from swecli.core.protocol.context_events import PromptPart, SentSection
from swecli.core.protocol.events import SystemPromptSent

QUOTED: Final = "quoted instructions"
"""Component of a file that is information from an untrusted folder rather than an instruction."""

INSTRUCTION_SOURCES: Final = (USER_INSTRUCTIONS, PROJECT_INSTRUCTIONS, QUOTED)


class Conditions(Struct, frozen=True):
    """What a run has chosen, as far as it decides about an earlier system prompt. ``base`` and ``append`` are given
    explicitly, None = not given. ``trusted``: files of ``folder`` count as instructions. ``memory``: memories count."""

    folder: str = ""
    trusted: bool = False
    safe_mode: bool = False
    memory: bool = True
    base: str | None = None
    append: str | None = None


def sources_of(
    instructions: Instructions, memory: MemoryText, skills: Iterable[tuple[str, str]]
) -> tuple[PromptPart, ...]:
    """The files behind a system prompt; of skills the name and the digest of the file."""

    def component(file: InstructionFile) -> str:
        return QUOTED if file.quoted else USER_INSTRUCTIONS if file.own else PROJECT_INSTRUCTIONS

    return (
        *(PromptPart(file.name, file.digest, component(file)) for file in instructions.files),
        *memory.sources,
        *(PromptPart(name, digest, SKILLS) for name, digest in skills),
    )


def sent_prompt(
    model: str, prompt: Prompt, window: int, tools: str, conditions: Conditions, known: Iterable[SystemPromptSent]
) -> SystemPromptSent:
    """The record of a prompt; without the texts that ``known`` ones have."""
    texts = {section.digest for sent in known for section in sent.sections}
    sections: list[SentSection] = []
    for section in prompt.sections:
        digest = digest_of(section.content)
        sections.append(SentSection(section.name, digest, "" if digest in texts else section.content))
        texts.add(digest)
    return SystemPromptSent(
        model, tuple(sections), prompt.sources, window, tools, conditions.folder, conditions.trusted
    )


def with_texts(sent: SystemPromptSent, known: Iterable[SystemPromptSent]) -> SystemPromptSent:
    """The same record with all of its texts, as far as it or one of the ``known`` ones has them."""
    texts = {section.digest: section.text for record in (*known, sent) for section in record.sections if section.text}
    return replace(
        sent, sections=tuple(replace(section, text=texts.get(section.digest, "")) for section in sent.sections)
    )


def restored(sent: SystemPromptSent) -> Prompt | None:
    """The prompt of a record, byte for byte; None if a text is missing or was changed, as a masked key is."""
    if any(digest_of(section.text) != section.digest for section in sent.sections):
        return None
    return replace(
        prompt_of([PromptSection(section.name, section.text) for section in sent.sections]), sources=sent.sources
    )


def why_built_anew(sent: SystemPromptSent, now: Conditions, sources: Iterable[PromptPart]) -> str:
    """Why a resumed session can't use its system prompt any more, as a clause; empty if it can. ``sources`` are the
    files that a prompt built now would have."""
    texts = {section.name: section.text for section in sent.sections}
    if now.safe_mode:
        return "safe mode leaves out all texts of files"
    if now.base is not None and now.base != texts.get(BASE, ""):
        return "--system-prompt replaced it"
    if now.append is not None and now.append != texts.get(APPENDED, ""):
        return "--append-system-prompt changed it"
    if sent.folder != now.folder:
        return "the session was continued in another folder"
    if sent.trusted and not now.trusted:
        return "this folder is no longer trusted"
    quoted = {(part.name, part.digest) for part in sources if part.source == QUOTED}
    for part in sent.sources:
        if part.source == PROJECT_INSTRUCTIONS and (part.name, part.digest) in quoted:
            return f"{part.name} is no longer approved"
    if texts.get(MEMORY) and not now.memory:
        return "memories are off"
    return ""
