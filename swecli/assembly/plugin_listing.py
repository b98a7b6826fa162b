"""What a plugin brings in words, for the user who decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from swecli.assembly.powers import powers_of_file
from swecli.core.extensions.sources import Reader, Source
from swecli.features import wirings
from swecli.figures import plural

if TYPE_CHECKING:
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.extensions.sources import FoundFile


def texts_of_plugin(plugin: Plugin) -> tuple[FoundFile, ...]:
    """Its skills, commands and agents as files."""
    sources = [
        Source(kind, folder, shown, plugin=plugin.name, root=plugin.root, only=only)
        for kind, folder, shown, only in plugin.folders
    ]
    return Reader().read(sources)[0]


def brought(plugin: Plugin) -> Iterator[str]:
    """One line for everything that a plugin brings; what runs or leaves the machine says so. The texts are the
    plugin's."""
    files = texts_of_plugin(plugin)
    for kind in ("skills", "commands", "agents"):
        for file in (file for file in files if file.origin.source.kind == kind):
            name = ":".join((plugin.name, *file.stem))
            yield f"{kind[:-1]} {'/' if kind != 'agents' else ''}{name}"
            yield from (f"  {power}" for power in powers_of_file(file))
    others = [wiring.of_plugin(plugin) for wiring in wirings()]
    for other in others:
        yield from other.lines
    more = (problem for other in others for problem in other.problems)
    for problem in (*plugin.problems, *more):
        yield f"not used: {problem.replace(f'{plugin.root}/', '')}"
    if plugin.unused:
        yield f"without effect in swecli: {', '.join(plugin.unused)}"


def summary(plugin: Plugin) -> str:
    """The counts of what it brings, in one line."""
    kinds = [file.origin.source.kind for file in texts_of_plugin(plugin)]
    counted: Sequence[tuple[int, str]] = (
        *((kinds.count(kind), kind[:-1]) for kind in ("skills", "commands", "agents")),
        *((other.count, other.noun) for other in (wiring.of_plugin(plugin) for wiring in wirings())),
    )
    return ", ".join(plural(count, word) for count, word in counted if count) or "nothing that swecli uses"
