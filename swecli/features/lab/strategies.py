"""Strategies by name, and the settings that would have served stored sessions best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from swecli.core.config.load import toml_text
from swecli.features.lab.recording import Recording
from swecli.features.lab.replay import Replayed

PRESETS: Mapping[str, Mapping[str, object]] = {
    "current": {},
    "early": {"agent.compact_trigger": 0.8, "context.warn": 0.7},
    "half": {"agent.compact_trigger": 0.5, "context.warn": 0.4},
    "truncation": {"context.strategy": "truncation"},
    "importance": {"context.strategy": "importance"},
    "summarization": {"context.strategy": "summarization"},
    "lean": {"context.keep_recent": 4, "context.max_summary_tokens": 800},
}
"""Names for ``--strategy``, with their changes to the settings in force."""
GRID: tuple[str, ...] = ("early", "half", "truncation", "importance", "summarization", "lean")
"""Candidates for a proposal."""
WORTHWHILE = 0.03
"""Least share of the cost that a proposal must save."""
LEAST_REQUESTS = 10
"""Requests of a recording from which on a strategy makes a difference."""


def changes_of(text: str, read: Callable[[str, str], object]) -> Mapping[str, object]:
    """Changes of a word of ``--strategy``: a preset, or ``key=value``, several joined by ``+``. ``read`` parses the
    text of a key's value.

    Raises:
        ValueError: it is neither.
    """
    if text in PRESETS:
        return PRESETS[text]
    changes: dict[str, object] = {}
    for part in text.split("+"):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"unknown strategy {text!r}: use {', '.join(PRESETS)} or KEY=VALUE")
        changes[key.strip()] = read(key.strip(), value)
    return changes


def with_changes(document: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """A document of settings with other values at dotted keys."""
    changed: dict[str, Any] = {
        name: dict(part) if isinstance(part, Mapping) else part for name, part in document.items()
    }
    for key, value in changes.items():
        section, _, name = key.partition(".")
        changed[section] = {**changed.get(section, {}), name: value}
    trigger, warn = changed["agent"]["compact_trigger"], changed["context"]["warn"]
    if "context.warn" not in changes and isinstance(trigger, float) and trigger < warn:
        changed["context"] = {**changed["context"], "warn": trigger}  # a warning after the compaction makes no sense
    return changed


# --- proposals ----------------------------------------------------------------------------------------------


class Tried(Struct, frozen=True):
    """One strategy over several sessions. ``cost`` is in units of one uncached input token."""

    name: str
    cost: float
    lost: int
    needed_again: int
    blocked: int

    @classmethod
    def of(cls, name: str, results: Sequence[Replayed]) -> Tried:
        return cls(
            name,
            sum(result.cost for result in results),
            sum(len(result.lost) for result in results),
            sum(result.needed_again for result in results),
            sum(result.blocked for result in results),
        )


class Proposal(Struct, frozen=True):
    """The strategy to change to, None if the settings in force are best; ``reason`` is a sentence."""

    best: Tried | None
    reason: str

    @property
    def toml(self) -> str:
        """The settings as lines of a settings file; empty without a proposal."""
        if self.best is None:
            return ""
        lines: list[str] = []
        for key, value in PRESETS[self.best.name].items():
            section, _, name = key.partition(".")
            if f"[{section}]" not in lines:
                lines.append(f"[{section}]")
            lines.append(f"{name} = {toml_text(value)}")
        return "\n".join(lines)


def propose(current: Tried, others: Iterable[Tried]) -> Proposal:
    """The cheapest strategy that loses no more and causes no more repeated lookups than the one in force."""
    fit = [
        trial
        for trial in others
        if trial.lost <= current.lost
        and trial.needed_again <= current.needed_again
        and trial.blocked <= current.blocked
    ]
    best = min(fit, key=lambda trial: (trial.cost, trial.name), default=None)
    if best is None:
        return Proposal(None, "All other strategies lose more or make the model look up more.")
    saved = 1 - best.cost / current.cost if current.cost else 0.0
    if saved < WORTHWHILE:
        return Proposal(None, f"No other strategy saves {WORTHWHILE:.0%} of the cost without losing more.")
    return Proposal(best, f"{best.name} costs {saved:.0%} less and loses nothing more.")


def worth_replaying(recordings: Iterable[Recording]) -> list[Recording]:
    return [recording for recording in recordings if recording.requests >= LEAST_REQUESTS]
