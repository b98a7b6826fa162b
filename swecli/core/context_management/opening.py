"""How each request to a model begins: the system prompt and the tools, frozen for the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swecli.core.context_management.budget import Limits, window_of
from swecli.core.context_management.components import PROJECT_INSTRUCTIONS
from swecli.core.context_management.prompt_builder import BASE, Prompt, PromptBuilder, PromptSection
from swecli.core.context_management.prompts import LEAN_WINDOW, system_prompt
from swecli.core.llm.types import ModelInfo, ToolSchema


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """What goes into the system prompt besides swecli's own words. ``base`` replaces these; None keeps them.
    ``headless`` tells the model that nobody watches."""

    base: str | None = None
    append: str = ""
    instructions: str = ""
    headless: bool = False


class Opening:
    """Prompt and tools by model: equal bytes for the whole session, so that providers can reuse what they computed
    for them. ``lean_tools`` are told to a model with a small window in place of ``tools``, ``special_tools`` besides
    to a model of that name."""

    def __init__(
        self,
        tools: Sequence[ToolSchema],
        lean_tools: Sequence[ToolSchema] | None,
        special_tools: Callable[[str], Sequence[ToolSchema]],
        texts: PromptTexts,
        limits: Limits,
    ) -> None:
        self._tools = tuple(tools)
        self._lean_tools = self._tools if lean_tools is None else tuple(lean_tools)
        self._special_tools = special_tools
        self._texts = texts
        self._limits = limits
        self._prompts: dict[tuple[str, str], Prompt] = {}

    def tools(self, info: ModelInfo) -> tuple[ToolSchema, ...]:
        """The tools, with those that only this model is told of at their place by name."""
        if window_of(info, self._limits).total <= LEAN_WINDOW:
            return self._lean_tools
        special = self._special_tools(info.name)
        return tuple(sorted((*self._tools, *special), key=lambda tool: tool.name)) if special else self._tools

    def prompt(self, info: ModelInfo) -> Prompt:
        """Built once per model, and anew only where its window turns out to be of another class."""
        texts = self._texts
        base = texts.base if texts.base is not None else system_prompt(window_of(info, self._limits).total)
        prompt = self._prompts.get((info.ref, base))
        if prompt is None:
            sections = [
                PromptSection(BASE, base),
                PromptSection("appended", texts.append),
                PromptSection(PROJECT_INSTRUCTIONS, texts.instructions),
            ]
            prompt = self._prompts[info.ref, base] = PromptBuilder(sections).build()
        return prompt
