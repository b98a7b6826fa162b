"""The features beside the engine, each in a folder of its name that can be deleted together with its word here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.feature import Feature
    from swecli.core.extensions.plugins import Plugin
    from swecli.launch import Launch

FEATURES = (
    "subagents",
    "extensions",
    "playbook",
    "retrieval",
    "memory",
    "sentinel",
    "spending",
    "hooks",
    "mcp",
    "language_servers",
    "telemetry",
    "lab",
    "init",
    "git",
)
"""In the order in which their companions are called. Two that need different orders at two moments show that a moment
is missing."""


def _no_commands() -> Sequence[SlashCommand]:
    return ()


def _only_commands(launch: Launch) -> Feature:
    from swecli.core.engine.feature import Feature

    return Feature()


class Brought(Struct, frozen=True):
    """What a plugin brings to a feature: the number of things of this noun, a line for each, and what is ignored."""

    count: int = 0
    noun: str = ""
    lines: Sequence[str] = ()
    problems: Sequence[str] = ()


def _nothing(plugin: Plugin) -> Brought:
    return Brought()


class Wiring(Struct, frozen=True):
    """``WIRING`` in the module ``wiring`` of each feature. Its functions import what they need when they are called."""

    build: Callable[[Launch], Feature] = _only_commands
    """The feature in one run."""
    commands: Callable[[], Sequence[SlashCommand]] = _no_commands
    """Its slash commands, for every run."""
    before: str = "todos"
    """The command that follows these in lists, none of a feature."""
    of_plugin: Callable[[Plugin], Brought] = _nothing
    writes: Sequence[str] = ()
    """Files in a project's ``.swecli`` that it writes by itself, also while a command runs."""
    screens: Callable[[], Mapping[str, Callable[[Any, str], object]]] = dict
    """What its commands open: by name, from the app and the words after the command."""


def wirings() -> Iterator[Wiring]:
    for name in FEATURES:
        yield import_module(f"swecli.features.{name}.wiring").WIRING


def feature_screens() -> Mapping[str, Callable[[Any, str], object]]:
    """What the commands of all features open, by name."""
    return {name: opener for wiring in wirings() for name, opener in wiring.screens().items()}
