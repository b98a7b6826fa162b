"""Labelled sentences, in files of ``tests/data/playbook``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from swecli.core.playbook.support import Cited

DATA = Path(__file__).parents[2] / "data" / "playbook"


class Sentence(NamedTuple):
    """``cited`` is all that happened in the project of the sentence, of which a model might cite anything."""

    text: str
    specific: bool
    cited: Cited


def sentences(name: str) -> list[Sentence]:
    """The sentences of a file: advice begins with "-", a fact with "+"; "#" begins a project, "!" an event of it."""
    found: list[Sentence] = []
    events: list[str] = []
    cited = Cited()
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "#":
            events, cited = [], Cited()
        elif mark == "!":
            events.append(text)
            cited = _cited(events)
        elif mark in ("-", "+"):
            found.append(Sentence(text, mark == "+", cited))
    return found


def _cited(events: list[str]) -> Cited:
    failed: list[str] = []
    worked: list[str] = []
    errors: list[str] = []
    said: list[str] = []
    for event in events:
        if event.startswith("$ "):
            command, _, status = event[2:].rpartition(" => ")
            (worked if status == "0" else failed).append(command)
        elif event.startswith("user"):
            said.append(event.partition(":")[2])
        elif not event.startswith(("edit", "read", "search", "write", "undo")):
            errors.append(event)
    return Cited(failed, worked, errors, said)
