"""From the files of all sources to a catalogue, and the difference of two catalogues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import get_args

from msgspec.structs import replace

from swecli.core.extensions.catalogue import Catalogue, Change, Waiting
from swecli.core.extensions.front_matter import Problem
from swecli.core.extensions.markdown_commands import MarkdownCommand, read_command
from swecli.core.extensions.profiles import AgentProfile, read_profile
from swecli.core.extensions.skills import Skill, read_skill
from swecli.core.extensions.sources import Found, Kind, Origin

Definition = Skill | MarkdownCommand | AgentProfile


def read_catalogue(
    read: Found,
    approved: Callable[[Origin], bool],
    built_in: Collection[str],
    notes: Collection[str] = (),
) -> Catalogue:
    """Build the catalogue. Of two files with the same name the first wins; ``built_in`` are command names that files
    can't take. Each problem is one sentence; ``notes`` are further ones, about plugins."""
    files, unread = read
    skills: dict[str, Skill] = {}
    commands: dict[str, MarkdownCommand] = {}
    profiles: dict[str, AgentProfile] = {}
    waiting: list[Waiting] = []
    problems: list[tuple[Kind, str]] = [(_kind_of(label), _sentence(label, problem)) for label, problem in unread]
    broken = [text for _, text in problems]

    def add(kind: Kind, taken: dict[str, Definition], made: Definition, text: str) -> None:
        if plugin := made.origin.source.plugin:
            made = replace(made, name=f"{plugin}:{made.name}")
        if not approved(made.origin):
            waiting.append(Waiting(kind, made.name, made.origin, text))
            return
        problems.extend((kind, _sentence(made.origin.shown, problem)) for problem in made.problems)
        broken.extend(_sentence(made.origin.shown, problem) for problem in made.problems if problem.broken)
        first = taken.get(made.name)
        if first is None:
            taken[made.name] = made
        elif first.origin.digest != made.origin.digest:
            text = f"{made.name} is also in {first.origin.shown}, which takes precedence"
            problems.append((kind, _sentence(made.origin.shown, Problem(0, text))))

    for file in files:
        kind = file.origin.source.kind
        match kind:
            case "skills":
                add(kind, skills, read_skill(file), file.text)  # pyright: ignore[reportArgumentType]
            case "commands":
                made = read_command(file)
                if made is not None:
                    add(kind, commands, made, file.text)  # pyright: ignore[reportArgumentType]
                else:
                    problems.append((kind, _sentence(file.origin.shown, Problem(0, _NO_NAME))))
                    broken.append(problems[-1][1])
            case "agents":
                profile = read_profile(file)
                if profile is not None:
                    add(kind, profiles, profile, file.text)  # pyright: ignore[reportArgumentType]
                else:
                    reason = _NO_NAME if file.text.startswith("---") else _NO_AGENT
                    problems.append((kind, _sentence(file.origin.shown, Problem(0, reason))))
                    broken += [problems[-1][1]] if reason == _NO_NAME else []
    problems.extend(("commands", note) for note in notes)
    problems += _clashes(skills, commands, built_in)
    return Catalogue(
        skills, commands, profiles, tuple(waiting), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(broken))
    )


_NO_AGENT = "is not an agent: it has no front matter with its description"
_NO_NAME = "has no usable name: use letters of a to z, digits and hyphens, at least one letter"


def _clashes(
    skills: dict[str, Skill], commands: dict[str, MarkdownCommand], built_in: Collection[str]
) -> Iterable[tuple[Kind, str]]:
    for name in [name for name in commands if name in built_in]:
        origin = commands.pop(name).origin.shown
        yield "commands", f"{origin}: /{name} is a command of swecli, which takes precedence; rename the file"
    for name, skill in skills.items():
        if name in built_in:
            text = f"/{name} is a command of swecli; use the skill with /skill {name}"
            yield "skills", f"{skill.origin.shown}: {text}"
        elif name in commands and skill.for_user:
            yield "commands", f"{commands[name].origin.shown}: /{name} is also a skill, which takes precedence"


def _kind_of(label: str) -> Kind:
    """The kind that the label of a source names; folders of these names may be below it."""
    return next((kind for part in label.split("/") for kind in get_args(Kind) if part == kind), "skills")


def _sentence(label: str, problem: Problem) -> str:
    at = f":{problem.line}" if problem.line else ""
    return f"{label}{at}: {problem.text}"


def difference(told: Catalogue, now: Catalogue, waiting: tuple[Waiting, ...], problems: tuple[str, ...]) -> Change:
    """What changed between two catalogues, for the user and the model."""
    added: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    pairs = (
        ("skill ", told.skills, now.skills),
        ("/", told.commands, now.commands),
        ("agent ", told.profiles, now.profiles),
    )
    for prefix, before, after in pairs:
        added += (f"{prefix}{name}" for name in after if name not in before)
        removed += (f"{prefix}{name}" for name in before if name not in after)
        changed += (f"{prefix}{name}" for name, item in after.items() if name in before and before[name] != item)
    return Change(tuple(added), tuple(changed), tuple(removed), waiting, problems, _for_model(told, now))


def _for_model(told: Catalogue, now: Catalogue) -> str:
    """New, changed and removed skills as text for the model; empty if none."""
    return skill_news({name: skill.origin.digest for name, skill in told.skills.items() if skill.for_model}, now)


def skill_news(before: Mapping[str, str], now: Catalogue) -> str:
    """The same for skills whose names and digests of files the model knows."""
    after = {name: skill for name, skill in now.skills.items() if skill.for_model}
    new = [f"- {name}: {skill.description}" for name, skill in after.items() if name not in before]
    different = [name for name, skill in after.items() if before.get(name, skill.origin.digest) != skill.origin.digest]
    renewed = [f"- {name}: {after[name].description}" for name in different]
    removed = [name for name in before if name not in after]
    parts = (
        "\n".join(["New skills, which `skill` gives you by name:", *new]) if new else "",
        "\n".join(["These skills have changed; your earlier copy of them is out of date:", *renewed])
        if renewed
        else "",
        f"These skills no longer exist: {', '.join(removed)}." if removed else "",
    )
    return "\n\n".join(part for part in parts if part)
