"""The tool with which the model gets the text of a skill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.tools.base import Params, Tool, ToolContext, ToolError, ToolOutcome, readable_size

if TYPE_CHECKING:
    from swecli.core.extensions.skills import Skill

SOURCE = "skills"
MOST = 48 * 1024
"""Characters of a skill that are given at once."""


class SkillParams(Params):
    name: str
    arguments: str = Field("", description="What the skill is to be used on, where it takes arguments")


class SkillTool(Tool[SkillParams]):
    """``skills`` gives those that count now, by name."""

    name = "skill"
    verb = "Skill"
    params = SkillParams
    source = SOURCE
    result_kind = "stored"

    def __init__(self, skills: Callable[[], Mapping[str, Skill]]) -> None:
        self._skills = skills

    def effects(self, params: SkillParams, ctx: ToolContext) -> Effects:
        return Effects(internal=True)

    def title(self, params: SkillParams, ctx: ToolContext) -> str:
        return f"{params.name} {params.arguments}".strip()

    async def run(self, params: SkillParams, ctx: ToolContext) -> ToolOutcome:
        from swecli.core.extensions.markdown_commands import plain_text
        from swecli.core.extensions.skills import near

        skills = {name: skill for name, skill in self._skills().items() if skill.for_model}
        name = params.name.strip().removeprefix("/").lower()
        skill = skills.get(name)
        if skill is None:
            if name in self._skills():
                raise ToolError(f"Only the user can use the skill {name}.")
            found = near(skills.values(), name)
            lines = [f"- {one.name}: {one.description[:200]}" for one in found]
            hint = "\n".join(["Skills that have to do with it:", *lines]) if lines else f"Skills: {', '.join(skills)}"
            raise ToolError(f"There is no skill {params.name!r}. {hint[:4_000]}")
        text = plain_text(skill, params.arguments)
        if len(text) > MOST:
            text = f"{text[:MOST]}\n… (cut: {len(text):,} characters; read_file {skill.origin.path} reads the rest)"
        return ToolOutcome(text, detail=readable_size(len(text.encode("utf-8", "replace"))))
