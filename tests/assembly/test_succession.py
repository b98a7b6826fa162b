"""What /clear opens: a new session that goes on as the one before was left."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from swecli.assembly.succession import Succession
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.commands import SetEffort
from swecli.launch import LaunchOptions
from tests.support.fake_session import FakeSession as Session

BEGUN = LaunchOptions(
    Path("/proj"), prompt="fix it", continue_newest=True, model="openai/first", base_url="http://me:pw@localhost:1/v1"
)


class Opened:
    def __init__(self, *sessions: Session) -> None:
        self.asked: list[LaunchOptions] = []
        self._sessions = list(sessions)

    async def __call__(self, options: LaunchOptions) -> Session:
        self.asked.append(options)
        return self._sessions.pop(0)


def session(**values: object) -> Session:
    made = Session()
    for name, value in values.items():
        setattr(made.view, name, value)
    return made


async def test_the_model_the_effort_and_the_mode_stay() -> None:
    other = ModelInfo("openai", "other", address="http://10.0.0.1/v1")
    new = session(model=other)
    opened = Opened(session(model=other, mode="plan", effort="high"), new)
    sessions = Succession(BEGUN, opened)
    await sessions.first()
    await sessions.next()
    first, second = opened.asked
    assert first == BEGUN
    assert (second.model, second.address, second.base_url, second.mode) == (
        "openai/other",
        "http://10.0.0.1/v1",
        None,
        "plan",
    )
    assert (second.prompt, second.continue_newest, second.resume) == ("", False, None)
    assert [each for each in new.commands if isinstance(each, SetEffort)] == [SetEffort("high")]


async def test_only_a_stored_session_can_be_continued() -> None:
    kept, lost = session(), session()
    lost.kept = "nothing"
    sessions = Succession(BEGUN, Opened(kept, lost))
    await sessions.first()
    assert sessions.resume_hint == "swecli -C /proj -c"
    await sessions.next()
    assert sessions.resume_hint == ""
    demo = Succession(LaunchOptions(Path("/proj"), script=Path("demo.toml"), store=False), Opened(lost))
    await demo.first()
    assert demo.resume_hint == "swecli demo"


async def test_a_model_that_stood_in_for_a_turn_does_not_stay() -> None:
    stand_in, own = ModelInfo("openai", "stand-in", address="http://10.0.0.1/v1"), ModelInfo("openai", "first")
    new = session(model=own)
    before = session(model=stand_in, replaced="openai/first", effort="low", own_effort="high")
    opened = Opened(before, new)
    sessions = Succession(BEGUN, opened)
    await sessions.first()
    await sessions.next()
    second = opened.asked[-1]
    assert (second.model, second.address, second.base_url) == ("openai/first", BEGUN.address, BEGUN.base_url)
    assert [each for each in new.commands if isinstance(each, SetEffort)] == [SetEffort("high")]


async def test_the_address_of_the_flag_stays_with_its_password_where_the_model_is_asked_there() -> None:
    at_flag = ModelInfo("openai", "first", address="http://localhost:1/v1")
    opened = Opened(session(model=at_flag), session(model=at_flag))
    sessions = Succession(BEGUN, opened)
    await sessions.first()
    new = cast("Session", await sessions.next())
    assert opened.asked[1].base_url == BEGUN.base_url
    assert [each for each in new.commands if isinstance(each, SetEffort)] == []


async def test_nothing_can_be_continued_where_nothing_was_said() -> None:
    sessions = Succession(BEGUN, Opened(session()))
    assert not sessions.spoke
    await sessions.first()
    assert not sessions.spoke


async def test_a_fork_goes_on_in_the_mode_of_the_session_it_is_made_of() -> None:
    opened = Opened(session(mode="auto"), session())
    sessions = Succession(BEGUN, opened)
    await sessions.first()
    await sessions.fork(LaunchOptions(Path("/proj"), resume="one", mode="plan"))
    forked = opened.asked[1]
    assert (forked.resume, forked.fork, forked.mode) == ("one", True, "auto")
