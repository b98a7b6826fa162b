"""Random sequences of turns, the user's own edits and commands, rewinds of conversation and files, undos and forks,
against a model: the history stays valid, files are what the model says to the byte, and what the user wrote is never
overwritten."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import CheckpointOptions, FileHistory
from swecli.core.checkpoints.journal import inherit
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.permissions.types import Policy
from swecli.core.protocol.commands import Rewind, RunShell, UndoRewind
from swecli.core.protocol.events import Event, RewindScope, RewindUndone, Rewound
from swecli.core.protocol.messages import Message, TextPart
from swecli.core.sessions.database import open_database
from swecli.core.tools.registry import builtin_tools
from tests.core.engine.support import Bench, bench, until
from tests.core.engine.test_file_undo import run, script, step
from tests.support.reduced import check_written

SEQUENCES = min(300, int(os.environ.get("SWECLI_EXAMPLES", "25")))
"""300 in `make soak`."""
FREE = Policy(mode="default", yolo=True)
NAMES = ("a", "b", "c")
KINDS = ("turn", "turn", "turn", "user", "shell", "rewind", "rewind", "undo")
SHELL = "I ran this command myself: "
Content = str | None


@dataclass
class Change:
    turn: int
    path: str
    before: Content
    after: Content
    active: bool = True


@dataclass
class Back:
    """A rewind of the model."""

    messages: list[str]
    scope: RewindScope
    turn: int
    reverted: list[Change]


@dataclass
class Model:
    files: dict[str, Content] = field(default_factory=lambda: dict.fromkeys(NAMES))
    changes: list[Change] = field(default_factory=list[Change])
    messages: list[str] = field(default_factory=list[str])
    turns: dict[str, int] = field(default_factory=dict[str, int])
    backs: list[Back] = field(default_factory=list[Back])

    def take_back(self, first_turn: int) -> list[Change]:
        """What of the turns from this one on can be taken back, path by path, as far as nobody else wrote there."""
        done: list[Change] = []
        blocked: set[str] = set()
        for change in reversed([one for one in self.changes if one.active and one.turn >= first_turn]):
            if change.path in blocked:
                continue
            if self.files[change.path] == change.after:
                self.files[change.path] = change.before
                change.active = False
                done.append(change)
            elif self.files[change.path] != change.before:
                blocked.add(change.path)
        return done

    def bring_back(self, reverted: Sequence[Change]) -> None:
        spans: dict[str, tuple[Content, Content]] = {}
        for change in reverted:  # newest first
            newest = spans[change.path][1] if change.path in spans else change.after
            spans[change.path] = (change.before, newest)
        for path, (before, after) in spans.items():
            if self.files[path] == before:
                self.files[path] = after
                for change in reverted:
                    if change.path == path:
                        change.active = True

    def rewind(self, message: str, scope: RewindScope, turn: int) -> None:
        back = Back(list(self.messages), scope, turn, [])
        if scope != "conversation":
            back.reverted = self.take_back(self.turns[message])
        if scope != "files":
            self.messages = self.messages[: self.messages.index(message)]
        self.backs.append(back)

    def undo(self) -> None:
        back = self.backs.pop()
        if back.scope != "conversation":
            self.take_back(back.turn + 1)
            self.bring_back(back.reverted)
        if back.scope != "files":
            self.messages = back.messages


def files_of(work: Path) -> dict[str, Content]:
    return {name: (work / name).read_text() if (work / name).exists() else None for name in NAMES}


def checkpoints(work: Path, session: str) -> Checkpoints:
    def open_history() -> FileHistory:
        rows = open_database(work.parent / "state" / "checkpoints.db", migrations=SCHEMA)
        return FileHistory(rows, session, (str(work),), CheckpointOptions())

    return Checkpoints(open_history, str(work), (str(work),), str(work.parent / "home"), wait=30)


class Play:
    """One sequence. The commands of all turns are made up before, as the scripted model wants."""

    def __init__(self, seed: int, work: Path) -> None:
        self.pick = random.Random(seed)
        self.work = work
        self.model = Model()
        self.number = 0

    def calls(self) -> list[tuple[str, str, Content]]:
        """Tool, path and the content that is wanted after it."""
        made: list[tuple[str, str, Content]] = []
        for _ in range(self.pick.randrange(0, 3)):
            self.number += 1
            path = self.pick.choice(NAMES)
            made.append(("run", path, self.pick.choice((f"agent {self.number}\n", f"agent {self.number}\n", None))))
        return made

    async def segment(self, session: str, history: Sequence[Event], length: int) -> list[Event]:
        plan = [
            self.pick.choice(("turn", "turn", "turn", "user", "shell", "rewind", "rewind", "undo"))
            for _ in range(length)
        ]
        turns = [self.calls() for kind in plan if kind == "turn"]
        steps = script(*("".join(_step(call) for call in turn) for turn in turns)) if turns else script("")
        waiting = iter(turns)
        async with bench(
            steps,
            self.work,
            history=history,
            tools=builtin_tools(),
            policy=FREE,
            checkpoints=checkpoints(self.work, session),
            session_id=session,
        ) as b:
            for kind in plan:
                match kind:
                    case "turn":
                        await self.turn(b, next(waiting))
                    case "user":
                        self.user()
                    case "shell":
                        await self.shell(b)
                    case "rewind":
                        await self.rewind(b)
                    case _:
                        await self.undo(b)
                self.check(b)
            return list(b.facts)

    async def turn(self, b: Bench, calls: list[tuple[str, str, Content]]) -> None:
        self.number += 1
        text = f"message {self.number}"
        await b.say(text)
        turn = b.session.view.totals.turns
        self.model.messages.append(text)
        self.model.turns[text] = turn
        for _, path, after in calls:
            before = self.model.files[path]
            if before != after:
                self.model.changes.append(Change(turn, path, before, after))
                self.model.files[path] = after

    def user(self) -> None:
        self.number += 1
        path = self.pick.choice(NAMES)
        self.model.files[path] = f"the user's {self.number}\n"
        (self.work / path).write_text(f"the user's {self.number}\n")

    async def shell(self, b: Bench) -> None:
        """A command of the user's own, which writes a file: the conversation tells of it, the file is theirs."""
        self.number += 1
        path = self.pick.choice(NAMES)
        self.model.files[path] = f"the user's {self.number}\n"
        command = f'echo "the user\'s {self.number}" > {path}'
        seen = len(said(b.session.view.messages))
        b.send(RunShell(command))
        await until(lambda: len(said(b.session.view.messages)) > seen and not b.session.view.busy)
        self.model.messages.append(f"{SHELL}{command}")

    async def rewind(self, b: Bench) -> None:
        asked = [message for message in self.model.messages if not message.startswith(SHELL)]
        if not asked:
            return
        message = self.pick.choice(asked)
        scope: RewindScope = self.pick.choice(("conversation", "files", "both"))
        points = {point.text: point for point in await b.session.rewinds.points()}
        assert list(points) == asked
        before, seen = files_of(self.work), len(b.bodies(Rewound))
        preview = await b.session.rewinds.preview(points[message].item)
        assert files_of(self.work) == before
        b.send(Rewind(points[message].item, scope))
        await until(lambda: len(b.bodies(Rewound)) > seen and not b.session.view.busy)
        if scope != "conversation":
            there = {Path(file.path).name for file in preview.files}
            assert {name for name, text in files_of(self.work).items() if text != before[name]} <= there
        self.model.rewind(message, scope, b.session.view.totals.turns)
        assert b.bodies(Rewound)[-1].text == ("" if scope == "files" else message)

    async def undo(self, b: Bench) -> None:
        if not self.model.backs:
            assert not b.session.rewinds.undoable
            return
        seen = len(b.bodies(RewindUndone))
        b.send(UndoRewind())
        await until(lambda: len(b.bodies(RewindUndone)) > seen and not b.session.view.busy)
        self.model.undo()

    def check(self, b: Bench) -> None:
        assert files_of(self.work) == self.model.files
        messages = b.session.view.messages
        assert said(messages) == self.model.messages
        require_valid(messages)


def said(messages: Sequence[Message]) -> list[str]:
    """What the user said and ran; the environment stands before the first words."""
    parts = (part for message in messages if message.role == "user" for part in message.parts)
    texts = (part.text for part in parts if isinstance(part, TextPart))
    return [text.split("\n")[0] for text in texts if text.startswith(("message ", SHELL))]


def require_valid(messages: Sequence[Message]) -> None:
    """Each call has one result, in the message behind it."""
    for at, message in enumerate(messages):
        calls = [call.call_id for call in message.tool_calls]
        if calls:
            assert [result.call_id for result in messages[at + 1].tool_results] == calls
        if message.tool_results:
            assert messages[at - 1].tool_calls


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "work"
    folder.mkdir()
    return folder


def _step(call: tuple[str, str, Content]) -> str:
    _, path, after = call
    return run(f"rm -f {path}" if after is None else f"printf '%s\\n' '{after.strip()}' > {path}")


@pytest.mark.parametrize("seed", range(SEQUENCES))
async def test_rewinds_of_random_sequences(seed: int, work: Path) -> None:
    seed += int(os.environ.get("SWECLI_HISTORY", "0"))
    play = Play(seed, work)
    facts = await play.segment("s0", (), play.pick.randrange(3, 8))
    for number in range(play.pick.randrange(0, 3)):  # forks: what is said and changed goes on in a copy
        session = f"s{number + 1}"
        if play.model.changes:
            with closing(sqlite3.connect(work.parent / "state" / "checkpoints.db")) as connection:
                inherit(connection, f"s{number}", session)
                connection.commit()
        facts = await play.segment(session, facts, play.pick.randrange(2, 6))
    check_written(facts, play.pick.randrange(len(facts)))


async def test_files_are_written_by_a_tool_too(work: Path) -> None:
    turns = script(step("write_file", path="a", content="1\n"), step("write_file", path="d/b", content="2\n"))
    async with bench(turns, work, tools=builtin_tools(), policy=FREE, checkpoints=checkpoints(work, "s")) as b:
        await b.say("message one")
        await b.say("message two")
        (work / "d" / "mine").write_text("mine")
        points = await b.session.rewinds.points()
        assert [(point.text, point.files, point.added, point.removed) for point in points] == [
            ("message one", 2, 2, 0),
            ("message two", 1, 1, 0),
        ]
        assert points[0].tokens > points[1].tokens > 0
        b.send(Rewind(points[0].item, "both"))
        await until(lambda: bool(b.bodies(Rewound)) and not b.session.view.busy)
        assert not (work / "a").exists()
        assert (work / "d" / "mine").read_text() == "mine"
        assert "left alone" in b.bodies(Rewound)[0].reason
        assert list(b.session.view.messages) == []
        b.send(UndoRewind())
        await until(lambda: bool(b.bodies(RewindUndone)) and not b.session.view.busy)
        assert (work / "a").read_text() == "1\n"
        assert (work / "d" / "b").read_text() == "2\n"
        assert said(b.session.view.messages) == ["message one", "message two"]
