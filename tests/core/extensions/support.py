"""A project and a home with files that extend swecli."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from swecli.core.extensions.front_matter import FrontMatter, read_front_matter
from swecli.core.extensions.sources import FoundFile, Origin, Source
from swecli.core.extensions.watch import ExtensionFiles


@dataclass
class Places:
    """``project`` is a git work tree. ``kept`` are the digests that were stored."""

    project: Path
    home: Path
    kept: list[str] = field(default_factory=list[str])

    def write(self, name: str, text: str | bytes) -> Path:
        """A file of the project, or of the home where the name begins with ``~/``."""
        path = self.home / name[2:] if name.startswith("~/") else self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def skill(self, name: str, description: str = "for tests", body: str = "do it", home: str = ".claude") -> Path:
        text = f"---\nname: {name.rpartition('/')[2]}\ndescription: {description}\n---\n{body}\n"
        return self.write(f"{home}/skills/{name.rpartition('/')[2]}/SKILL.md", text)

    def open(self, *, trusted: bool = True, at_once: bool = True, built_in: Sequence[str] = ()) -> ExtensionFiles:
        def keep(digests: Sequence[str]) -> str:
            self.kept.extend(digests)
            return ""

        return ExtensionFiles(
            self.project,
            self.home / ".config" / "swecli",
            self.home,
            trusted=trusted,
            at_once=at_once,
            accepted=self.kept,
            keep=keep,
            built_in=lambda: built_in,
        )


def found(text: str, name: str = "x", kind: str = "commands") -> FoundFile:
    """A file that was read."""
    path = Path("/p/.claude") / kind / (f"{name}/SKILL.md" if kind == "skills" else f"{name}.md")
    source = Source(kind, Path("/p/.claude") / kind, f".claude/{kind}")  # pyright: ignore[reportArgumentType]
    return FoundFile(Origin(path, f".claude/{kind}/{name}.md", source, "digest"), tuple(name.split("/")), text)


def fields(text: str) -> FrontMatter:
    return read_front_matter(f"---\n{text}\n---\nbody\n")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path / "project", tmp_path / "home")
    (made.project / ".git").mkdir(parents=True)
    made.home.mkdir()
    return made
