"""Sessions of commands in ``tests/data/playbook``, and what swecli learns from each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from swecli.core.llm.secrets import masker_of
from swecli.core.playbook.bullet import Bullet
from swecli.core.playbook.learning import drafts, learn
from swecli.core.playbook.novelty import Known
from swecli.core.playbook.playbook import Playbook
from swecli.core.playbook.project_commands import ProjectCommands
from swecli.core.protocol.events import RestoredFile
from tests.core.playbook.sample import CWD, Told
from tests.core.playbook.sentences import DATA

_COVER = masker_of(()).cover


class Sequence(Struct, frozen=True):
    """``lesson`` has the words of the true lesson; empty: nothing may be learned, and ``kind`` says why."""

    steps: tuple[str, ...]
    kind: str = ""
    lesson: str = ""

    @property
    def text(self) -> str:
        return " ;; ".join(self.steps)


def sequences(name: str) -> Iterator[Sequence]:
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line[:2] in ("- ", "+ "):
            head, _, steps = line[2:].partition(" | ")
            told = tuple(step.strip() for step in steps.split(" ;; "))
            yield Sequence(told, kind=head) if line[0] == "-" else Sequence(told, lesson=head)


def lessons(sequence: Sequence, project: Path) -> list[Bullet]:
    """What is taken as a lesson; ``project`` is an empty folder for the project's files."""
    told = Told()
    for step in sequence.steps:
        _play(step, told, project)
    told.says("Thanks.")
    made = drafts(told.found, "s", "", CWD, lambda expiry: True, ProjectCommands(project).name)
    return [
        result.bullet
        for result in learn(Playbook(), made, Known(masked=_COVER), 1e9)
        if result.new and result.bullet.live
    ]


def _play(step: str, told: Told, project: Path) -> None:
    mark, _, rest = step.partition(" ")
    rest = rest.replace("\\n", "\n")
    before, _, after = rest.partition(" -> ")
    match mark:
        case "@":
            name, _, text = rest.partition(" ")
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, encoding="utf-8")
        case ">":
            told.says(rest)
        case "$" | "!":
            _run(rest, told, own=mark == "!")
        case "~" | "~+":
            arguments = {"path": rest, "old_string": "def limit():" if mark == "~" else ""}
            told.uses("edit_file" if mark == "~" else "write_file", **arguments)
        case "~x":
            told.uses("edit_file", "error", path=rest)
        case "^":
            told.takes_back(RestoredFile(f"{CWD}/{rest}", "restored"))
        case "?":
            told.uses("read_file", path=rest)
        case "/":
            told.uses("search", detail="no matches", pattern=rest)
        case "*":
            told.asked(before, "once", now=after)
        case "x":
            told.asked(before, "reject", note=after)
        case _:
            raise ValueError(f"unknown step: {step}")


def _run(rest: str, told: Told, *, own: bool) -> None:
    command, _, how = rest.rpartition(" => ")
    if not command:
        command, how = rest, "0"
    status, _, output = how.partition(" ")
    if status == "time":
        told.runs(command, detail="killed after 120 s", own=own)
    elif output.isdigit():
        told.runs(command, int(status), seconds=float(output), own=own)
    else:
        told.runs(command, int(status), output, own=own)
