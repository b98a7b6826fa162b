"""What of skills, commands and agent profiles counts, as one value, and what two of them differ in."""

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
    """A file of the project that is new or has changed since the user approved it. It does not count."""

    kind: Kind
    name: str
    origin: Origin
    text: str = ""
    """All that would count of it."""


class Catalogue(Struct, frozen=True):
    """All by their names. ``problems`` are sentences with their places; ``waiting`` does not count yet."""

    skills: Mapping[str, Skill] = field(default_factory=dict[str, "Skill"])
    commands: Mapping[str, MarkdownCommand] = field(default_factory=dict[str, "MarkdownCommand"])
    profiles: Mapping[str, AgentProfile] = field(default_factory=dict[str, "AgentProfile"])
    waiting: tuple[Waiting, ...] = ()
    problems: tuple[tuple[Kind, str], ...] = ()

    def invocable(self, name: str) -> Invocable | None:
        """What ``/name`` means: a skill that users may call, else a command. ``skill:name`` is a skill in any case."""
        skill = self.skills.get(name.removeprefix("skill:"))
        return skill if skill is not None and skill.for_user else self.commands.get(name)

    @property
    def invocables(self) -> tuple[Invocable, ...]:
        """Everything that users can call with a slash, by name."""
        names = sorted({*self.commands, *(name for name, skill in self.skills.items() if skill.for_user)})
        return tuple(found for name in names if (found := self.invocable(name)) is not None)

    @property
    def skill_folders(self) -> tuple[str, ...]:
        """Resolved folders of skills: what is in them may be read."""
        return tuple(sorted({os.path.realpath(skill.origin.folder) for skill in self.skills.values()}))

    def problems_of(self, *kinds: Kind) -> list[str]:
        return [text for kind, text in self.problems if kind in kinds]


NOTHING = Catalogue()


class Change(Struct, frozen=True):
    """What is different since the session last looked. ``model`` tells the model, empty where it needs no word."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    """What has newly begun to wait."""
    problems: tuple[str, ...] = ()
    model: str = ""

    @property
    def summary(self) -> str:
        parts = ((self.added, "new"), (self.changed, "changed"), (self.removed, "removed"))
        return "; ".join(f"{word}: {', '.join(names)}" for names, word in parts if names)
