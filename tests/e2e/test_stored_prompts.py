"""A session that is continued after its system prompt's files or the user's choices changed: the real program against
a server with the rules of signed thoughts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from swecli.core.config.trust import write_trust
from swecli.core.llm.scripted import Script
from swecli.core.protocol.codec import encode_body
from swecli.core.protocol.events import Notice
from swecli.core.sessions.database import DATABASE
from tests.support.program import Ended, Program
from tests.support.session_kinds import do, end, read
from tests.support.strict_anthropic import AnthropicRules
from tests.support.strict_server import StrictServer

pytestmark = pytest.mark.e2e

STEPS = (do(read("a.txt")), end("one"), end("two"), end("three"))
TABS, BLANKS = "Use tabs.", "Use blanks."


class Continued:
    """A session with an instruction file and a turn with two thoughts."""

    def __init__(self, folder: Path, server: StrictServer[AnthropicRules]) -> None:
        self.project, self.data, self.server = folder / "project", folder / "home" / "data", server
        self.project.mkdir()
        (self.project / "a.txt").write_text("alpha\n")
        self.write(TABS)
        write_trust(self.data, self.project, "trusted")
        variables = {**server.environment(), "SWECLI_MODEL": "anthropic/claude-opus-5-5", "HOME": str(folder)}
        self._program = Program(self.project, folder / "home", variables)
        self.run("-p", "--yolo", "Go on with one.")

    def write(self, text: str) -> None:
        (self.project / "AGENTS.md").write_text(text)

    def run(self, *arguments: str) -> Ended:
        ended = self._program.run(*arguments)
        assert ended.code == 0, (ended.stdout, ended.stderr)
        return ended

    @property
    def newest(self) -> dict[str, Any]:
        return self.server.asked[-1].body

    @property
    def system(self) -> str:
        return json.dumps(self.newest["system"])

    @property
    def thoughts(self) -> int:
        return json.dumps(self.newest["messages"]).count('"signature"')

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        (path,) = self.data.rglob(DATABASE)
        with closing(sqlite3.connect(path)) as database, database:
            yield database

    def forget_the_prompt(self) -> None:
        """Make the record one of an earlier version."""
        other = encode_body(Notice("Hello", "info", "session"))
        with self.database() as database:
            replace = "UPDATE events SET type = 'notice', body = ? WHERE type = 'system_prompt_sent'"
            assert database.execute(replace, (other,)).rowcount == 1
            database.execute("DELETE FROM session_snapshots")


@contextmanager
def continued(folder: Path) -> Iterator[Continued]:
    with StrictServer(Script(STEPS, name="claude-opus-5-5"), AnthropicRules()) as server:
        yield Continued(folder, server)
        assert server.refused == []


def decline(it: Continued) -> None:
    write_trust(it.data, it.project, "declined")


def nothing(it: Continued) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "options", "cause"),
    [
        (nothing, ("--system-prompt", "You are terse."), "--system-prompt replaced it"),
        (nothing, ("--append-system-prompt", "Be terse."), "--append-system-prompt changed it"),
        (nothing, ("--safe-mode",), "safe mode leaves out all texts of files"),
        (decline, (), "this folder is no longer trusted"),
    ],
)
def test_what_the_user_chooses_now_replaces_an_earlier_prompt(
    change: Callable[[Continued], None], options: tuple[str, ...], cause: str, tmp_path: Path
) -> None:
    with continued(tmp_path) as it:
        change(it)
        ended = it.run("-p", "-c", *options, "Go on with two.")
        assert (TABS in it.system) == ("--append-system-prompt" in options or "--system-prompt" in options)
        assert it.thoughts == 0
        assert (
            f"2 earlier thoughts of the model are lost, because the system prompt was built anew: {cause}."
            in ended.stderr
        )
        assert f"the system prompt was built anew: {cause}" in it.run("-p", "-c", *options, "/cache").stdout
        again = it.run("-p", "-c", *options, "Go on with three.")
        assert it.thoughts == 1
        assert "built anew" not in again.stderr


def test_context_and_cache_name_the_kept_prompt_and_what_has_changed(tmp_path: Path) -> None:
    with continued(tmp_path) as it:
        it.write(BLANKS)
        it.run("-p", "-c", "Go on with two.")
        it.run("-p", "-c", "Go on with three.")
        for command in ("/context text", "/cache"):
            said = it.run("-p", "-c", command).stdout
            assert "The system prompt is kept from an earlier run." in said
            assert "Notes tell what has changed since the system prompt was made: AGENTS.md." in said
        assert "4 thoughts of the model alive." in it.run("-p", "-c", "/context text").stdout
        assert "built anew" not in it.run("-p", "-c", "/cache").stdout


def test_a_session_of_an_earlier_version_keeps_its_thoughts_if_nothing_changed(tmp_path: Path) -> None:
    with continued(tmp_path) as it:
        it.forget_the_prompt()
        it.run("-p", "-c", "Go on with two.")
        assert it.thoughts == 2
        it.write(BLANKS)  # by now its prompt is stored
        it.run("-p", "-c", "Go on with three.")
        assert it.thoughts == 3
        assert BLANKS in json.dumps(it.newest["messages"])
        assert BLANKS not in it.system


def test_a_session_of_an_earlier_version_says_what_changed_files_cost(tmp_path: Path) -> None:
    with continued(tmp_path) as it:
        it.forget_the_prompt()
        it.write(BLANKS)
        ended = it.run("-p", "-c", "Go on with two.")
        assert it.thoughts == 0
        assert BLANKS in it.system
        assert (
            "2 earlier thoughts of the model are lost, because the system prompt or the tools changed." in ended.stderr
        )


def test_a_fork_keeps_the_prompt_and_an_import_does_not(tmp_path: Path) -> None:
    with continued(tmp_path) as it:
        it.write(BLANKS)
        it.run("-p", "-c", "--fork", "Go on with two.")
        assert (it.thoughts, TABS in it.system) == (2, True)
        with it.database() as database:
            ((name,),) = database.execute("SELECT id FROM sessions ORDER BY created DESC LIMIT 1")
        document = it.run("sessions", "export", name, "--format", "json").stdout
        assert TABS not in document
        (it.project / "session.json").write_text(document)
        it.run("sessions", "import", "session.json")
        it.run("-p", "-c", "Go on with three.")
        assert (BLANKS in it.system, TABS in it.system) == (True, False)
