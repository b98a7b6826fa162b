"""The names of the history are learned in the background, in folders that the user trusts."""

from __future__ import annotations

from pathlib import Path
from subprocess import Popen

import pytest

from swecli.core.permissions.facts import FileFacts
from swecli.core.permissions.types import Policy, Trust
from tests.core.engine.support import bench, until

SCRIPT = "\n".join(f'[[step]]\ntext = "{text}"' for text in ("one", "two"))


class Learning(FileFacts):
    def __init__(self) -> None:
        self.learned: list[str] = []

    def without_programs(self) -> Learning:
        return self

    def learn_history(self, cwd: str, running: list[Popen[bytes]]) -> None:
        assert running == []
        self.learned.append(cwd)


@pytest.mark.parametrize("trust", ["trusted", "session"])
async def test_the_first_message_begins_it(tmp_path: Path, trust: Trust) -> None:
    facts = Learning()
    async with bench(SCRIPT, tmp_path, policy=Policy(trust=trust, facts=facts)) as b:
        assert facts.learned == [], "nothing before the user has said something"
        await b.say("first")
        await until(lambda: facts.learned == [str(tmp_path)], "the names")
        await b.say("second")
        assert facts.learned == [str(tmp_path)], "no command has run that could add some"


@pytest.mark.parametrize("trust", ["unknown", "declined"])
async def test_no_git_runs_ahead_in_a_folder_that_is_not_trusted(tmp_path: Path, trust: Trust) -> None:
    facts = Learning()
    async with bench(SCRIPT, tmp_path, policy=Policy(trust=trust, facts=facts)) as b:
        await b.say("first")
        await b.say("second")
    assert facts.learned == []
