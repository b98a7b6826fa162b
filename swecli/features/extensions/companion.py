"""Changes of skills, Markdown commands and agent profiles between turns, for the model and the user."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from swecli.core.context_management.note_topics import SKILL_NEWS
from swecli.core.context_management.prompt import Prompt
from swecli.core.engine.companion import Companion, Joined
from swecli.core.engine.invoked import unapproved
from swecli.core.engine.notes import Notes, Statement
from swecli.core.engine.prompt_record import PromptRecord
from swecli.core.engine.recorder import Recorder
from swecli.core.extensions.catalogue import Catalogue, Change
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.protocol.budget import SKILLS
from swecli.core.protocol.events import Notice
from swecli.core.tools.registry import ToolRegistry
from swecli.core.tools.session_tools import SOURCE, SkillTool


class ExtensionNews(Companion):
    """Checks the files for changes between turns and reports them to the model and the user, who hears of them from the
    session, not from its subagents (``inner``)."""

    def __init__(
        self,
        files: ExtensionFiles,
        tools: ToolRegistry,
        recorder: Recorder,
        notes: Notes,
        prompts: PromptRecord,
        *,
        inner: bool,
    ) -> None:
        self._files = files
        self._seen = files.seen
        self._listed = _skills_of(self._seen.catalogue)
        """Digests of the skills at the start of this run, which its system prompt lists."""
        self._inner = inner
        self._tools = tools
        self._recorder = recorder
        self._notes = notes
        self._prompts = prompts
        self._told_of: tuple[Prompt | None, Catalogue] | None = None
        self._statement = Statement(SKILL_NEWS, "", "")
        self._title = ""

    def start(self, *, resumed: bool) -> None:
        """Offer the skills that have come since an earlier run without any."""
        self.due = resumed  # the prompt of a new session has the skills of now
        if resumed and not self._inner:
            offer_skills(self._tools, self._files)

    async def joined(self, message: Joined) -> None:
        if not message.first:
            return
        seen = self._seen
        change, self._seen = await asyncio.to_thread(self._files.news, seen)
        self.due = self.due or self._seen is not seen
        if change is None:
            return
        self._title = change.summary
        if self._inner:
            return
        offer_skills(self._tools, self._files)
        for line in _lines(change):
            self._recorder.emit(Notice(line, "warning", "extensions"))
        if change.summary and not change.model:
            self._recorder.emit(Notice(change.summary, "info", "extensions"))

    async def before_request(self) -> None:
        """Say in what the skills differ from those that the system prompt lists."""
        earlier, now = self._prompts.earlier, self._seen.catalogue
        if self._told_of is None or self._told_of[0] is not earlier or self._told_of[1] is not now:
            self._told_of = earlier, now
            listed, text = self._listed, ""
            if earlier is not None:
                listed = {part.name: part.digest for part in earlier.sources if part.source == SKILLS}
            if listed != _skills_of(now) and not (self._inner and self._tools.get(SkillTool.name) is None):
                from swecli.core.extensions.reading import skill_news

                text = skill_news(listed, now)
            title = self._title or "Skills changed since the earlier run"
            self._statement = Statement(SKILL_NEWS, title, text, "The skills are again those of the system prompt.")
        self._notes.state(self._statement)


def _skills_of(catalogue: Catalogue) -> Mapping[str, str]:
    """Digests of the files of skills for the model, by name."""
    return {name: skill.origin.digest for name, skill in catalogue.skills.items() if skill.for_model}


def offer_skills(tools: ToolRegistry, files: ExtensionFiles) -> None:
    """Offer the skill tool once there is a skill."""
    if tools.get(SkillTool.name) is None and any(skill.for_model for skill in files.now.skills.values()):
        tools.settle(SOURCE, (SkillTool(lambda: files.now.skills),))


def _lines(change: Change) -> list[str]:
    lines = [*change.problems[:5]]
    if len(change.problems) > 5:
        lines.append(f"{len(change.problems) - 5} more problems: /skills, /commands and /agents list them")
    waiting = change.waiting
    if len(waiting) == 1:
        lines.append(unapproved(waiting[0]))
    elif waiting:
        names = ", ".join(item.origin.shown for item in waiting[:5])
        more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
        lines.append(
            f"{names}{more} are new or have changed since you trusted this folder; /skills, /commands and /agents "
            "with the word approve enable them."
        )
    return lines
