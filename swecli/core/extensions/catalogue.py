"""The skills, commands and agent profiles in use, as one value, and the difference of two such values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from swecli.core.extensions.markdown_commands import Invocable, MarkdownCommand
    from swecli.core.extensions.profiles import AgentProfile
    from swecli.core.extensions.skills import Skill
    from swecli.core.extensions.sources import Kind, Origin


class Waiting(Struct, frozen=True):
    """A project file that is new or has changed since the user approved it; it is not used yet."""

    kind: Kind
    name: str
    origin: Origin
    text: str = ""
    """The text that approval would bring into use."""


class Catalogue(Struct, frozen=True):
    """All extensions by name. ``problems`` are sentences with file and line, ``broken`` those of them about what could
    not be read; ``waiting`` files are not used yet."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, "Skill"])
    commands: Mapping[str, MarkdownCommand] = field(default_factory=dict[str, "MarkdownCommand"])
    profiles: Mapping[str, AgentProfile] = field(default_factory=dict[str, "AgentProfile"])
    waiting: tuple[Waiting, ...] = ()
    problems: tuple[tuple[Kind, str], ...] = ()
    broken: tuple[str, ...] = ()

    def invocable(self, name: str) -> Invocable | None:
        """The target of ``/name``: a skill that users may call, otherwise a command. ``skill:name`` is always a
        skill."""
        skill = self.skills.get(name.removeprefix("skill:"))
        return skill if skill is not None and skill.for_user else self.commands.get(name)

    @property
    def invocables(self) -> tuple[Invocable, ...]:
        """Everything that users can call with a slash, by name."""
        names = sorted({*self.commands, *(name for name, skill in self.skills.items() if skill.for_user)})
        return tuple(invocable for name in names if (invocable := self.invocable(name)) is not None)

    @property
    def skill_folders(self) -> tuple[str, ...]:
        """Resolved folders of skills, which may be read without approval."""
        return tuple(sorted({os.path.realpath(skill.origin.folder) for skill in self.skills.values()}))

    def problems_of(self, *kinds: Kind) -> list[str]:
        return [text for kind, text in self.problems if kind in kinds]


NOTHING = Catalogue()


class Change(Struct, frozen=True):
    """Differences since the session last looked. ``model`` is the text for the model, empty if it needs none."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    """Files that began to wait since the last look."""
    problems: tuple[str, ...] = ()
    model: str = ""

    @property
    def summary(self) -> str:
        parts = ((self.added, "new"), (self.changed, "changed"), (self.removed, "removed"))
        return "; ".join(f"{word}: {', '.join(names)}" for names, word in parts if names)
